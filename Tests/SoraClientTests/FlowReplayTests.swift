import Foundation
import SoraClient
import SoraMessages
import SoraPeer
import SoraWire
import TestSupport
import Testing

/// The recorded conversations with other clients: what the server said there is said to ours, and ours answers what
/// those answered.
@Suite(.serialized, .leavesNoObjects) struct FlowReplayTests {
    static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Fixtures/signaling")
    static let names =
        ((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? [])
        .filter { $0.hasPrefix("flow-") }.sorted()

    @Test(arguments: names)
    func everyServerMessageIsAnsweredAsOthersDo(name: String) throws {
        let text = try String(contentsOf: Self.folder.appendingPathComponent(name), encoding: .utf8)
        let entries = try #require(try JSONValue(parsing: text).arrayValue).compactMap(\.objectValue)
        let test = Harness()
        test.start()
        test.open(1)
        var ids: [String: UInt16] = [:]
        var expected: [String] = []
        var isOver = false
        for entry in entries where !isOver {
            let carrier = entry["transport"]?.stringValue ?? ""
            let label = carrier.hasPrefix("dc:") ? String(carrier.dropFirst(3)) : nil
            switch entry["direction"]?.stringValue {
            case "server->client":
                guard case .object(var message)? = entry["message"] else { continue }
                if message["sdp"] != nil { message["sdp"] = .string(Harness.sdp) }
                switch message["type"]?.stringValue {
                case "ping": expected.append("pong")
                case "req-stats": expected.append("stats")
                case "re-offer": expected.append("re-answer")
                case "offer": expected.append("answer")
                default: break
                }
                if let label {
                    guard let id = ids[label] else { continue }
                    test.channel(label, id: id, message.text)
                } else {
                    test.text(message.text)
                }
                for token in test.statistics { test.client.provideStatistics([], for: token, now: test.now) }
                test.drain()
            case "event":
                guard let event = entry["event"]?.objectValue else { continue }
                if event["state"] == "connected" { test.peer(.stateChanged(.connected)) }
                if let label, event["open"] == true {
                    ids[label] = UInt16(ids.count)
                    test.peer(.dataChannelOpened(StreamID(ids[label] ?? 0), label: label))
                }
                if let label, let id = ids[label], event["close"] == true {
                    test.peer(.dataChannelClosed(StreamID(id)))
                }
                isOver = test.client.state != .connecting && test.client.state != .connected
            default: break
            }
        }
        // What was answered, on whichever carrier.
        var answered = test.texts.compactMap { (try? SignalingMessage(parsing: $0.text))?.type }
        for peer in test.allPeers {
            for sent in peer.sent {
                guard let label = ids.first(where: { $0.value == sent.channel.rawValue })?.key else { continue }
                let definition = Self.definition(label, in: test)
                let framing = DataChannelFraming(label: label, compress: definition?.isCompressed ?? false)
                if let bytes = try? framing.message(in: .init(payload: sent.payload, isBinary: sent.isBinary)),
                    let message = try? SignalingMessage(parsing: bytes)
                {
                    answered.append(message.type)
                }
            }
        }
        for type in ["answer", "pong", "stats", "re-answer"] {
            #expect(
                answered.filter { $0 == type }.count == expected.filter { $0 == type }.count,
                "\(type): \(answered) instead of \(expected)")
        }
        // Only a redirect leaves the first socket without an offer.
        #expect(expected.contains("answer") || test.client.epoch == 1)
        test.client.disconnect(now: test.now)
        test.advance(.seconds(10))
        #expect(test.ends.count == 1)
    }

    private static func definition(_ label: String, in test: Harness) -> DataChannelDefinition? {
        for event in test.events {
            if case .offerTaken(let offer) = event { return offer.dataChannels?.first { $0.label == label } }
        }
        return nil
    }
}
