import Foundation
import LocalSora
import Testing

@testable import Sora

/// A client on the real engine, with everything that it sees written down.
final class LiveClient: Sendable {
    let journal = Journal()
    let sora = Sora()
    private let objects: Transfer<(channel: MediaChannel, task: ConnectionTask)>

    /// Starts to connect.
    /// - Parameter onAddStream: for each stream, before anything of it is shown.
    init(_ configuration: Configuration, onAddStream: (@Sendable (any MediaStream) -> Void)? = nil) {
        let journal = journal
        let handlers = configuration.mediaChannelHandlers
        handlers.onConnect = { journal.add("connect \($0?.localizedDescription ?? "nil")") }
        handlers.onDisconnect = { journal.add("disconnect \(Stage.text($0))") }
        handlers.onAddStream = {
            onAddStream?($0)
            journal.add("add \($0.streamId)")
        }
        handlers.onRemoveStream = { journal.add("remove \($0.streamId)") }
        handlers.onReceiveSignalingJSON = { json in
            let object = try? JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any]
            let type = object?["type"] as? String ?? "?"
            journal.add("json \(type)\((object?["event_type"] as? String).map { " \($0)" } ?? "")")
        }
        handlers.onDataChannel = { _ in journal.add("available") }
        handlers.onDataChannelOpened = { _, label in journal.add("opened \(label)") }
        handlers.onDataChannelMessage = { _, label, data in
            journal.add("message \(label) \(String(decoding: data.prefix(40), as: UTF8.self)) \(data.count)")
        }
        var added: MediaChannel!
        sora.handlers.onAddMediaChannel = { added = $0 }
        let task = sora.connect(configuration: configuration) { channel, error in
            journal.add("completion \(channel == nil ? "nil" : "channel") \(error?.localizedDescription ?? "nil")")
        }
        // The handler runs inside of `connect`.
        objects = Transfer((added, task))
        sora.handlers.onAddMediaChannel = nil
    }

    var channel: MediaChannel { objects.value.channel }
    var task: ConnectionTask { objects.value.task }

    /// The error text, or nil.
    func send(_ label: String, _ text: String) -> String? {
        channel.sendMessage(label: label, data: Data(text.utf8))?.localizedDescription
    }

    func connected() async -> Bool { await journal.wait(seconds: 20) { $0.contains("connect nil") } }

    /// Connected, switched, and the messaging channels open: from the moment a handler is told of `switched` it takes the
    /// SDK a little until messages may be sent.
    func isReadyForMessages() async -> Bool {
        guard await journal.wait(for: "available", seconds: 20) else { return false }
        return (try? await channel.waitUntilOpen(label: "#spam")) != nil
    }

    /// Ends the connection in order and waits for that.
    func leave() async {
        channel.disconnect(error: nil)
        #expect(await journal.wait(seconds: 20) { $0.contains { $0.hasPrefix("disconnect") } })
    }

    /// Settings without media, with DataChannel signaling.
    static func settings(
        _ urls: [String], _ change: (inout Configuration) -> Void = { _ in }
    ) -> Configuration {
        var configuration = Configuration(
            urlCandidates: urls.compactMap { URL(string: $0) }, channelId: "room", role: .sendrecv)
        configuration.videoEnabled = false
        configuration.audioEnabled = false
        configuration.dataChannelSignaling = true
        change(&configuration)
        return configuration
    }

    /// The same with the labels `#spam` and `#egg`.
    static func messaging(
        _ server: SoraServer, _ role: Role = .sendrecv, room: String = "room",
        _ change: (inout Configuration) -> Void = { _ in }
    ) -> Configuration {
        settings([server.signalingURL]) {
            $0.role = role
            $0.channelId = room
            $0.dataChannels = [
                ["label": "#spam", "direction": "sendrecv"],
                ["label": "#egg", "direction": "sendrecv", "compress": true],
            ]
            change(&$0)
        }
    }
}

/// Runs `body` with a server of its own.
func withServer(
    _ change: (inout ServerConfiguration) -> Void = { _ in }, _ body: (SoraServer) async throws -> Void
) async throws {
    var configuration = ServerConfiguration()
    change(&configuration)
    let server = try await SoraServer.start(configuration)
    do {
        try await body(server)
    } catch {
        await server.stop()
        throw error
    }
    await server.stop()
}
