// What README.md shows, inside of functions.
import Foundation
import LocalSora
import Sora
import Testing

func useTheSDK() {
    var configuration = Configuration(
        url: URL(string: "ws://127.0.0.1:5000/signaling")!, channelId: "chat", role: .sendrecv)
    configuration.audioEnabled = false
    configuration.videoEnabled = false
    configuration.dataChannelSignaling = true
    configuration.dataChannels = [["label": "#chat", "direction": "sendrecv"]]
    configuration.mediaChannelHandlers.onDataChannelMessage = { _, label, data in
        print(label, String(decoding: data, as: UTF8.self))
    }

    Sora.shared.connect(configuration: configuration) { channel, error in
        guard let channel else { return print(error!.localizedDescription) }
        channel.handlers.onDataChannel = { channel in
            _ = channel.sendMessage(label: "#chat", data: Data("hello".utf8))
        }
    }
}

@Test func reconnectsAfterTheServerCloses() async throws {
    var settings = ServerConfiguration()
    settings.script = { message in
        message.type == "offer" && message.index == 0 ? [.closeWebSocket(code: 4490, reason: "BUSY")] : [.pass]
    }
    let server = try await SoraServer.start(settings)
    await server.stop()
}
