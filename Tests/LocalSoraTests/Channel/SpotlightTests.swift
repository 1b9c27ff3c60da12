@testable import LocalSora
import SoraMessages
import SoraPeer
import SoraRTP
import SoraSDP
import SoraWire
import TestSupport
import Testing

/// The latest speakers are in focus (spec/signaling.md 7.6).
@Suite(.serialized, .leavesNoObjects) struct SpotlightTests {
    static func member(
        _ harness: ChannelHarness, number: Int = 1, focus: LayerRID? = nil, unfocus: LayerRID? = nil
    ) throws -> (SimulatedClient, MediaSource) {
        let client = try harness.joined(
            ChannelHarness.connect(.sendrecv) {
                $0.simulcast = true
                $0.spotlight = true
                $0.spotlightNumber = number
                $0.spotlightFocusRID = focus
                $0.spotlightUnfocusRID = unfocus
            })
        return (client, MediaSource(client))
    }

    static func layer(_ receiver: SimulatedClient, of sender: SimulatedClient) -> Int? {
        StreamCheck(receiver.packets(from: sender.id, .video)).layers.last
    }

    @Test func speakerComesIntoFocusAndIsSeenWell() throws {
        let harness = try ChannelHarness()
        let members = try (0..<3).map { _ in try Self.member(harness) }
        let sources = members.map(\.1)
        harness.play(sources, for: .seconds(1))
        #expect(Self.layer(members[0].0, of: members[1].0) == 0)
        sources[1].audioLevel = 30
        harness.play(sources, for: .seconds(1))
        #expect(Self.layer(members[0].0, of: members[1].0) == 1)
        #expect(Self.layer(members[2].0, of: members[1].0) == 1)
        #expect(Self.layer(members[0].0, of: members[2].0) == 0)
        for (client, _) in members {
            let focused = client.notifications("spotlight.focused")
            #expect(focused.count == 1)
            #expect(focused.first?["connection_id"]?.stringValue == members[1].0.id.rawValue)
            #expect(focused.first?["fixed"] == false)
            #expect(focused.first?["audio"] == true)
        }
        // Silence alone changes nothing; the next speaker takes the place.
        sources[1].audioLevel = 127
        harness.play(sources, for: .seconds(3))
        #expect(members[0].0.notifications("spotlight.unfocused").isEmpty)
        sources[2].audioLevel = 25
        harness.play(sources, for: .seconds(1))
        #expect(Self.layer(members[0].0, of: members[2].0) == 1)
        #expect(Self.layer(members[0].0, of: members[1].0) == 0)
        #expect(
            members[0].0.notifications("spotlight.unfocused").first?["connection_id"]?.stringValue
                == members[1].0.id.rawValue)
        for (receiver, _) in members {
            for (sender, _) in members where sender !== receiver {
                #expect(StreamCheck(receiver.packets(from: sender.id, .video)).faults.isEmpty)
            }
        }
    }

    /// A cough is no speech, and two who speak at once do not take turns at flickering.
    @Test func focusHasHysteresis() throws {
        let harness = try ChannelHarness()
        let members = try (0..<3).map { _ in try Self.member(harness) }
        let sources = members.map(\.1)
        sources[0].audioLevel = 40
        harness.play(sources, for: .seconds(1))
        sources[1].audioLevel = 10
        harness.play(sources, for: .milliseconds(100))
        sources[1].audioLevel = 127
        harness.play(sources, for: .seconds(1))
        #expect(members[2].0.notifications("spotlight.focused").count == 1)
        sources[1].audioLevel = 30
        harness.play(sources, for: .seconds(5))
        #expect(members[2].0.notifications("spotlight.focused").count == 1)
        #expect(members[2].0.notifications("spotlight.unfocused").isEmpty)
    }

    @Test func unfocusedWithNoneAreHeardButNotSeen() throws {
        let harness = try ChannelHarness()
        let (viewer, a) = try Self.member(harness, focus: .r2, unfocus: LayerRID.none)
        let (speaker, b) = try Self.member(harness)
        harness.play([a, b], for: .seconds(1))
        #expect(viewer.packets(from: speaker.id, .video).isEmpty)
        #expect(!viewer.packets(from: speaker.id, .audio).isEmpty)
        b.audioLevel = 20
        harness.play([a, b], for: .seconds(1))
        #expect(Self.layer(viewer, of: speaker) == 2)
        #expect(StreamCheck(viewer.packets(from: speaker.id, .video)).faults.isEmpty)
    }

    @Test func numberOfFocusedIsLimitedAndChangeable() throws {
        let harness = try ChannelHarness()
        let members = try (0..<4).map { _ in try Self.member(harness, number: 2) }
        let sources = members.map(\.1)
        for source in sources.prefix(3) {
            source.audioLevel = 30
            harness.play(sources, for: .seconds(1))
            source.audioLevel = 127
            harness.play(sources, for: .seconds(1))
        }
        func focused() -> [String] {
            var present: [String] = []
            for message in members[3].0.messages("notify") {
                guard let id = message["connection_id"]?.stringValue else { continue }
                switch message["event_type"]?.stringValue {
                case "spotlight.focused": present.append(id)
                case "spotlight.unfocused": present.removeAll { $0 == id }
                default: break
                }
            }
            return present
        }
        #expect(focused() == [members[1].0.id.rawValue, members[2].0.id.rawValue])
        try harness.perform { try $0.setSpotlightNumber(1, now: $1) }
        harness.run(for: .milliseconds(100))
        #expect(focused() == [members[2].0.id.rawValue])
    }

    @Test func fixedFocusStaysUntilTakenOut() throws {
        let harness = try ChannelHarness()
        let members = try (0..<3).map { _ in try Self.member(harness) }
        let sources = members.map(\.1)
        try harness.perform { try $0.focusSpotlight(members[0].0.id.rawValue, isFixed: true, now: $1) }
        sources[1].audioLevel = 20
        harness.play(sources, for: .seconds(2))
        #expect(members[2].0.notifications("spotlight.focused").map { $0["fixed"] } == [true])
        #expect(Self.layer(members[2].0, of: members[0].0) == 1)
        #expect(Self.layer(members[2].0, of: members[1].0) == 0)
        try harness.perform { try $0.unfocusSpotlight(members[0].0.id.rawValue, now: $1) }
        harness.play(sources, for: .seconds(1))
        #expect(Self.layer(members[2].0, of: members[0].0) == 0)
        #expect(Self.layer(members[2].0, of: members[1].0) == 1)
        #expect(throws: OperationError.unknownConnection("X")) {
            try harness.perform { try $0.focusSpotlight("X", isFixed: false, now: $1) }
        }
    }

    @Test func layersAreChangedAndResetOverRPC() throws {
        let harness = try ChannelHarness()
        let (viewer, a) = try Self.member(harness)
        let (speaker, b) = try Self.member(harness)
        func call(_ method: String, _ params: JSONValue, id: Int64) {
            harness.perform {
                viewer.send(
                    ["jsonrpc": "2.0", "id": .integer(id), "method": .string(method), "params": params], label: "rpc",
                    now: $1)
            }
            harness.play([a, b], for: .seconds(1))
        }
        call(RPCMethodName.requestSpotlightRID, ["spotlight_focus_rid": "r2", "spotlight_unfocus_rid": "r1"], id: 1)
        #expect(Self.layer(viewer, of: speaker) == 1)
        let result = try #require(viewer.messages("rpc").first?["result"]?.objectValue)
        #expect(result["spotlight_focus_rid"]?.stringValue == "r2")
        #expect(result["recv_connection_id"]?.stringValue == viewer.id.rawValue)
        b.audioLevel = 20
        harness.play([a, b], for: .seconds(1))
        #expect(Self.layer(viewer, of: speaker) == 2)
        call(RPCMethodName.resetSpotlightRID, [:], id: 2)
        #expect(Self.layer(viewer, of: speaker) == 1)
        #expect(viewer.messages("rpc").last?["result"]?.objectValue?["channel_id"]?.stringValue == "sora")
    }

    /// `BatchRequestSpotlightRid`: all items, or none of them.
    @Test func severalReceiversAreChangedAtOnce() throws {
        let harness = try ChannelHarness()
        let (viewer, a) = try Self.member(harness)
        let (other, b) = try Self.member(harness)
        let (speaker, c) = try Self.member(harness)
        func request(_ json: JSONValue) throws {
            let parameters = APIParameters(object: try #require(json.objectValue))
            try harness.perform { try $0.requestSpotlightLayers(try parameters.spotlightRequests(), now: $1) }
            harness.play([a, b, c], for: .seconds(1))
        }
        let (first, second) = (viewer.id.rawValue, other.id.rawValue)
        try request([
            "spotlight_focus_rid": "r2",
            "item_list": [
                [
                    "recv_connection_id": .string(first), "send_connection_id": .string(speaker.id.rawValue),
                    "spotlight_unfocus_rid": "r2",
                ],
                ["recv_connection_id": .string(second), "spotlight_focus_rid": "r0", "spotlight_unfocus_rid": "r1"],
            ],
        ])
        #expect(Self.layer(viewer, of: speaker) == 2)
        #expect(Self.layer(viewer, of: other) == 0)
        #expect(Self.layer(other, of: speaker) == 1)
        #expect(throws: OperationError.unknownConnection("X")) {
            try request([
                "recv_connection_id": .string(first), "spotlight_focus_rid": "r0", "spotlight_unfocus_rid": "r0",
                "item_list": [[:], ["recv_connection_id": "X"]],
            ])
        }
        harness.play([a, b, c], for: .seconds(1))
        #expect(Self.layer(viewer, of: speaker) == 2)
        #expect(throws: OperationError.invalidParameter("item_list")) { try request([:]) }
        #expect(throws: OperationError.invalidParameter("spotlight_unfocus_rid")) {
            try request(["recv_connection_id": .string(first), "spotlight_focus_rid": "r0", "item_list": [[:]]])
        }
    }

    @Test func spotlightAndOrdinaryConnectionsDoNotMix() throws {
        let harness = try ChannelHarness()
        _ = try Self.member(harness)
        #expect(throws: ConnectRejection.self) { try harness.join(ChannelHarness.connect()) }
    }
}
