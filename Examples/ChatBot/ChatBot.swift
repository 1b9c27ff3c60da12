// A chat bot on messaging: greets the channel, answers what others write on #chat, leaves at "!bye".
//
//     sora serve --port 5000                                              a local server, in another terminal
//     swift run ExampleChatBot ws://127.0.0.1:5000/signaling room
//     sora message --channel room --label '#chat'                         to talk with it
import Foundation
import Sora

@main
struct ChatBot {
    static let label = "#chat"

    static func main() async throws {
        guard CommandLine.arguments.count == 3, let url = URL(string: CommandLine.arguments[1]) else {
            print("usage: ExampleChatBot SIGNALING-URL CHANNEL")
            exit(64)
        }
        Sora.logLevel = .warn

        var configuration = Configuration(url: url, channelId: CommandLine.arguments[2], role: .sendrecv)
        configuration.audioEnabled = false
        configuration.videoEnabled = false
        configuration.dataChannelSignaling = true
        configuration.dataChannels = [["label": label, "direction": "sendrecv"]]

        // Subscribed before the connection starts, so that no message is missed.
        var messages: AsyncStream<String>?
        let channel = try await Sora.shared.connect(configuration: configuration) { channel in
            messages = channel.texts(label: label)
        }
        try await channel.waitUntilOpen(label: label)
        try channel.send("hello, I am a bot; write !help", label: label)

        for await message in messages! {
            print("< \(message)")
            let answer = answer(to: message)
            print("> \(answer)")
            try channel.send(answer, label: label)
            if message == "!bye" { break }
        }
        await channel.disconnect()
        Sora.finish()
    }

    static func answer(to message: String) -> String {
        let words = message.split(separator: " ")
        switch words.first {
        case "!help": return "!time, !add NUMBER NUMBER…, !bye"
        case "!time": return Date().formatted(.iso8601)
        case "!add": return "\(words.dropFirst().compactMap { Double($0) }.reduce(0, +))"
        case "!bye": return "goodbye"
        default: return "you wrote: \(message)"
        }
    }
}
