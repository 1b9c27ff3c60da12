// Writes the events of a connection down, one JSON object a line, with an actor that owns the log.
//
//     sora serve --port 5000                                              a local server, in another terminal
//     swift run ExampleEventLogger ws://127.0.0.1:5000/signaling room
//
// It ends when the server ends the connection (Ctrl-C at the server).
import Foundation
import Sora

@main
struct EventLogger {
    static func main() async throws {
        guard CommandLine.arguments.count == 3, let url = URL(string: CommandLine.arguments[1]) else {
            print("usage: ExampleEventLogger SIGNALING-URL CHANNEL")
            exit(64)
        }
        Sora.logLevel = .warn

        var configuration = Configuration(url: url, channelId: CommandLine.arguments[2], role: .recvonly)
        configuration.dataChannelSignaling = true

        let log = EventLog()
        // Events of the instance: added, connected, removed. They end with the task.
        let instance = Task { [events = Sora.shared.subscribeEvents()] in await log.write(events, source: "sora") }
        // Events of the connection. They end with it.
        var events: AsyncStream<SoraEvent>?
        do {
            let channel = try await Sora.shared.connect(configuration: configuration) { channel in
                events = channel.subscribeEvents(bufferingPolicy: .unbounded)
            }
            if let events { await log.write(events, source: "channel") }
            print(await log.summary, "after", channel.connectionTime ?? 0, "seconds")
        } catch {
            if let events { await log.write(events, source: "channel") }
            print("failed: \(error.localizedDescription)")
        }
        instance.cancel()
        Sora.finish()
    }
}

/// Owns the log: events of several sources come in one at a time.
actor EventLog {
    private var count = 0
    private var closeText = "still open"

    var summary: String { "\(count) events, ended by \(closeText)" }

    func write(_ events: AsyncStream<SoraEvent>, source: String) async {
        var expected: UInt64?
        for await event in events {
            if let expected, event.sequence > expected { print("lost \(event.sequence - expected) events") }
            expected = event.sequence + 1
            write(event, source: source)
        }
    }

    private func write(_ event: SoraEvent, source: String) {
        var object: [String: Any] = ["source": source, "event": event.kind.rawValue, "sequence": event.sequence]
        object["connection"] = event.connectionId
        object["stream"] = event.streamId
        object["label"] = event.dataChannelLabel
        object["error"] = event.error?.message
        switch event.kind {
        case .disconnected:
            switch event.closeEvent {
            case .ok(let code, let reason)?: closeText = "\(code) \(reason)"
            case .error(let error)?: closeText = error.localizedDescription
            case nil: break
            }
        case .signalingReceivedJSON:
            // The message holds credentials of TURN servers; its type is enough for a log.
            let message = try? JSONSerialization.jsonObject(with: Data((event.signalingJSON ?? "").utf8))
            object["type"] = (message as? [String: Any])?["type"]
        default: break
        }
        count += 1
        guard let line = try? JSONSerialization.data(withJSONObject: object, options: .sortedKeys) else { return }
        print(String(decoding: line, as: UTF8.self))
    }
}
