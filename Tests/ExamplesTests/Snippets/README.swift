// What README.md shows, inside of functions.
import Foundation
import LocalSora
import Sora
import Testing

func useTheSDK() async throws {
    var configuration = Configuration(
        url: URL(string: "ws://127.0.0.1:5000/signaling")!, channelId: "chat", role: .sendrecv)
    configuration.audioEnabled = false
    configuration.videoEnabled = false
    configuration.dataChannelSignaling = true
    configuration.dataChannels = [["label": "#chat", "direction": "sendrecv"]]

    let channel = try await Sora.shared.connect(configuration: configuration)
    try await channel.waitUntilOpen(label: "#chat")
    let texts = channel.texts(label: "#chat")
    try channel.send("hello", label: "#chat")
    for await text in texts { print(text) }
}

@Test func reconnectsAfterTheServerCloses() async throws {
    var settings = ServerConfiguration()
    settings.script = { message in
        message.type == "offer" && message.index == 0 ? [.closeWebSocket(code: 4490, reason: "BUSY")] : [.pass]
    }
    let server = try await SoraServer.start(settings)
    await server.stop()
}
