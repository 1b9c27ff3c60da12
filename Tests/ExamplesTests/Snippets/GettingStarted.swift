import Foundation
import Sora

func sayHello(to url: URL) async throws {
    var configuration = Configuration(url: url, channelId: "room", role: .sendrecv)
    configuration.audioEnabled = false
    configuration.videoEnabled = false
    configuration.dataChannelSignaling = true
    configuration.dataChannels = [["label": "#chat", "direction": "sendrecv"]]

    let channel = try await Sora.shared.connect(configuration: configuration)
    print("connected as", channel.connectionId ?? "?")
    try await channel.waitUntilOpen(label: "#chat")
    try channel.send("hello", label: "#chat")
    await channel.disconnect()
}

func watch(_ url: URL) -> ConnectionTask {
    let configuration = Configuration(url: url, channelId: "room", role: .recvonly)
    configuration.mediaChannelHandlers.onAddStream = { stream in
        print("somebody sends:", stream.streamId)
    }
    configuration.mediaChannelHandlers.onDisconnect = { event in
        print("over:", event)
    }
    return Sora.shared.connect(configuration: configuration) { channel, error in
        if let error { return print("failed:", error.localizedDescription) }
        print("connected as", channel?.connectionId ?? "?")
    }
}
