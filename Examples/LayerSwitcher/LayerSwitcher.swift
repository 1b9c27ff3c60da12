// Switches simulcast layers by RPC: asks for each layer in turn and says which picture arrives.
//
//     sora serve --port 5000                                              a local server, in another terminal
//     sora publish --channel room --simulcast                             somebody to watch
//     swift run ExampleLayerSwitcher ws://127.0.0.1:5000/signaling room 5
//
// The last word is how many seconds each layer is watched.
import Foundation
import Sora

/// A method that the SDK has no type for would be declared in the same way.
enum StoreMood: SendableRPCMethodProtocol {
    struct Mood: Codable, Sendable {
        var mood: String
    }
    struct Params: Codable, Sendable {
        var metadata: Mood
        var push: Bool
    }
    typealias Result = Mood
    static let name = "2025.2.0/PutSignalingNotifyMetadata"
}

@main
struct LayerSwitcher {
    static func main() async throws {
        let words = CommandLine.arguments
        guard words.count == 4, let url = URL(string: words[1]), let seconds = Double(words[3]) else {
            print("usage: ExampleLayerSwitcher SIGNALING-URL CHANNEL SECONDS")
            exit(64)
        }
        Sora.logLevel = .warn

        var configuration = Configuration(url: url, channelId: words[2], role: .recvonly)
        configuration.simulcastEnabled = true
        configuration.simulcastRequestRid = .r0
        configuration.dataChannelSignaling = true

        let channel = try await Sora.shared.connect(configuration: configuration)
        try await channel.waitUntilOpen(label: "rpc")
        let size = LatestSize()
        let watching = Task { [streams = channel.remoteStreams()] in
            for await stream in streams {
                for await frame in stream.frames() { await size.set(frame.width, frame.height) }
            }
        }

        let mood = try await channel.sendableRPC(
            method: StoreMood.self, params: .init(metadata: .init(mood: "curious"), push: true))
        print("the others now know that I am \(mood?.result.mood ?? "?")")
        for rid in [Rid.r0, .r1, .r2] {
            do {
                let answer = try await channel.rpc(
                    method: RequestSimulcastRid.self, params: RequestSimulcastRidParams(rid: rid))
                try await Task.sleep(for: .seconds(seconds))
                print("asked for \(rid), answered \(answer?.result.rid ?? .none), sees \(await size.text)")
            } catch SoraError.rpcServerError(let detail) {
                print("the server refused \(rid): \(detail.message)")
            } catch SoraError.rpcTimeout {
                print("no answer for \(rid)")
            }
        }
        watching.cancel()
        await channel.disconnect()
        Sora.finish()
    }
}

/// The size of the picture that came last.
actor LatestSize {
    private(set) var text = "nothing"
    func set(_ width: Int, _ height: Int) { text = "\(width)x\(height)" }
}
