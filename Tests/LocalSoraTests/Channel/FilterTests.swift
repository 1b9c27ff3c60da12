import LocalSora
import SoraMessages
import SoraPeer
import SoraRTP
import SoraSDP
import SoraWire
import TestSupport
import Testing

/// Forwarding filters (spec/signaling.md 7.8).
@Suite(.serialized, .leavesNoObjects) struct FilterTests {
    static func rule(_ field: ForwardingFilter.Field, _ comparison: ForwardingFilter.Operator, _ values: [String])
        -> ForwardingFilter.Rule
    {
        ForwardingFilter.Rule(field: field, operator: comparison, values: values)
    }

    /// What a viewer with these filters gets of two publishers `a` and `b`: letters for sound, capitals for picture.
    static func outcome(single: Bool = false, _ filters: (SimulatedClient, SimulatedClient) -> [ForwardingFilter])
        throws -> String
    {
        let harness = try ChannelHarness()
        let a = try harness.joined(ChannelHarness.connect(.sendonly) { $0.clientID = "alice" })
        let b = try harness.joined(ChannelHarness.connect(.sendonly) { $0.clientID = "bob" })
        let chosen = filters(a, b)
        let viewer = try harness.joined(
            ChannelHarness.connect(.recvonly) {
                if single { $0.forwardingFilter = chosen.first } else { $0.forwardingFilters = chosen }
            })
        let sources = [MediaSource(a), MediaSource(b)]
        harness.play(sources, for: .milliseconds(500))
        return outcome(viewer, a, b)
    }

    static func outcome(_ viewer: SimulatedClient, _ a: SimulatedClient, _ b: SimulatedClient) -> String {
        var text = ""
        for (sender, name) in [(a, "a"), (b, "b")] {
            if !viewer.packets(from: sender.id, .audio).isEmpty { text += name }
            if !viewer.packets(from: sender.id, .video).isEmpty { text += name.uppercased() }
        }
        return text
    }

    @Test func everyFieldOperatorAndActionHolds() throws {
        #expect(try Self.outcome { _, _ in [] } == "aAbB")
        #expect(try Self.outcome { _, _ in [ForwardingFilter(rules: [[Self.rule(.kind, .isIn, ["video"])]])] } == "ab")
        #expect(
            try Self.outcome { _, _ in [ForwardingFilter(action: .allow, rules: [[Self.rule(.kind, .isIn, ["video"])]])]
            } == "AB")
        #expect(
            try Self.outcome { a, _ in
                [ForwardingFilter(action: .block, rules: [[Self.rule(.connectionID, .isIn, [a.id.rawValue])]])]
            } == "bB")
        #expect(
            try Self.outcome { _, _ in
                [ForwardingFilter(action: .block, rules: [[Self.rule(.clientID, .isNotIn, ["alice"])]])]
            } == "aA")
        // The inner list is AND, the outer OR.
        #expect(
            try Self.outcome { _, _ in
                [
                    ForwardingFilter(rules: [
                        [Self.rule(.clientID, .isIn, ["alice"]), Self.rule(.kind, .isIn, ["audio"])]
                    ])
                ]
            } == "AbB")
        #expect(
            try Self.outcome { _, _ in
                [
                    ForwardingFilter(rules: [
                        [Self.rule(.clientID, .isIn, ["alice"])], [Self.rule(.kind, .isIn, ["audio"])],
                    ])
                ]
            } == "B")
    }

    @Test func allFiltersAreAsked() throws {
        #expect(
            try Self.outcome { _, _ in
                [
                    ForwardingFilter(
                        name: "x", priority: 20, action: .block, rules: [[Self.rule(.kind, .isIn, ["audio"])]]),
                    ForwardingFilter(
                        name: "y", priority: 10, action: .allow, rules: [[Self.rule(.clientID, .isIn, ["bob"])]]),
                ]
            } == "B")
    }

    @Test func olderSingleFormHolds() throws {
        #expect(
            try Self.outcome(single: true) { _, _ in [ForwardingFilter(rules: [[Self.rule(.kind, .isIn, ["video"])]])] }
                == "ab")
    }

    @Test func filtersChangeWhileMediaFlows() throws {
        let harness = try ChannelHarness()
        let a = try harness.joined(ChannelHarness.connect(.sendonly))
        let viewer = try harness.joined(ChannelHarness.connect(.recvonly))
        let other = try harness.joined(ChannelHarness.connect(.recvonly))
        let source = MediaSource(a)
        func frames(_ client: SimulatedClient) -> (Int, Int) {
            client.clearReceived()
            harness.play([source], for: .seconds(1))
            return (client.packets(from: a.id, .audio).count, client.packets(from: a.id, .video).count)
        }
        #expect(frames(viewer).1 > 20)
        let block = ForwardingFilter(
            name: "v", priority: 1, rules: [[Self.rule(.kind, .isIn, ["video"])]], version: "1")
        try harness.perform { try $0.createForwardingFilter(block, connection: viewer.id.rawValue, now: $1) }
        #expect(try harness.channel.forwardingFilters(of: viewer.id.rawValue) == [block])
        #expect(throws: OperationError.duplicateFilter("v")) {
            try harness.perform { try $0.createForwardingFilter(block, connection: viewer.id.rawValue, now: $1) }
        }
        harness.run(for: .milliseconds(50))
        let blocked = frames(viewer)
        #expect(blocked.0 > 20 && blocked.1 == 0)
        #expect(frames(other).1 > 20)
        var changed = block
        changed.rules = [[Self.rule(.kind, .isIn, ["audio"])]]
        changed.version = "2"
        #expect(throws: OperationError.filterVersionConflict(expected: "7", actual: "1")) {
            try harness.perform {
                try $0.updateForwardingFilter(changed, expectedVersion: "7", connection: viewer.id.rawValue, now: $1)
            }
        }
        try harness.perform {
            try $0.updateForwardingFilter(changed, expectedVersion: "1", connection: viewer.id.rawValue, now: $1)
        }
        harness.run(for: .milliseconds(50))
        let swapped = frames(viewer)
        #expect(swapped.0 == 0 && swapped.1 > 20)
        try harness.perform { try $0.deleteForwardingFilter(named: "v", connection: viewer.id.rawValue, now: $1) }
        // For all receivers of the channel.
        try harness.perform { try $0.createForwardingFilter(block, connection: nil, now: $1) }
        harness.run(for: .milliseconds(50))
        #expect(frames(other).1 == 0)
        #expect(frames(viewer).1 == 0)
        try harness.perform { try $0.deleteForwardingFilter(named: "v", connection: nil, now: $1) }
        let back = frames(viewer)
        #expect(back.0 > 20 && back.1 > 20)
        #expect(throws: OperationError.unknownFilter("v")) {
            try harness.perform { try $0.deleteForwardingFilter(named: "v", connection: nil, now: $1) }
        }
    }
}
