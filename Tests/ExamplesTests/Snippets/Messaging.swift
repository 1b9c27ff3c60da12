import Foundation
import Sora

func messagingConfiguration(_ url: URL) -> Configuration {
    var configuration = Configuration(url: url, channelId: "room", role: .sendrecv)
    configuration.audioEnabled = false
    configuration.videoEnabled = false
    configuration.dataChannelSignaling = true
    configuration.dataChannels = [
        ["label": "#chat", "direction": "sendrecv"],
        ["label": "#pose", "direction": "sendrecv", "ordered": false, "max_retransmits": 0],
        ["label": "#log", "direction": "sendonly", "compress": true],
    ]
    return configuration
}

func chat(_ configuration: Configuration) async throws {
    var lines: AsyncStream<String>?
    let channel = try await Sora.shared.connect(configuration: configuration) { channel in
        lines = channel.texts(label: "#chat")
    }
    try await channel.waitUntilOpen(label: "#chat")
    try channel.send("hello", label: "#chat")
    for await line in lines! {
        print(line)
        if line == "bye" { break }
    }
    await channel.disconnect()
}

func report(_ reading: Double, over channel: MediaChannel) {
    do {
        try channel.send("\(reading)", label: "#chat")
    } catch .messagingError(let reason) {
        print("not sent:", reason)
    } catch {
        print("not sent:", error.localizedDescription)
    }
}

final class ClassicChat {
    var headerLengths: [String: Int] = [:]

    func install(in configuration: Configuration) {
        let handlers = configuration.mediaChannelHandlers
        handlers.onDataChannelOpened = { channel, label in
            print(label, "is open")
        }
        handlers.onDataChannel = { channel in
            if let error = channel.sendMessage(label: "#chat", data: Data("hello".utf8)) { print(error) }
        }
        handlers.onDataChannelMessage = { [weak self] _, label, data in
            guard label.hasPrefix("#") else { return }
            let length = self?.headerLengths[label] ?? 0
            let sender = String(decoding: data.prefix(length), as: UTF8.self)
            let body = data.suffix(from: length)
            print(label, sender, body.count)
        }
    }

    func read(_ offer: SignalingOffer) {
        for channel in offer.dataChannels ?? [] {
            guard let label = channel["label"] as? String, let headers = channel["header"] as? [[String: Any]] else {
                continue
            }
            for header in headers where header["type"] as? String == "sender_connection_id" {
                headerLengths[label] = Int(header["length"] as! Double)
            }
        }
    }
}
