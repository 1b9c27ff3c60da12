import SoraWire
import Testing

@testable import SoraSCTP

@Suite struct PartialReliabilityTests {
    private func dataTSNs(_ packet: [UInt8], marker: UInt8) -> Bool {
        CraftedPeer.chunks(packet).contains { $0.type == 0 && $0.bytes.count > 16 && $0.bytes[16] == marker }
    }

    // SCT4: N means one transmission and N repetitions.
    @Test(arguments: [0, 1, 3], [true, false])
    func retransmitLimitIsExact(limit: Int, ordered: Bool) throws {
        for (dropped, arrives) in [(limit, true), (limit + 1, false)] {
            let pair = SimulatedPair()
            let id = try pair.a.transport.open(
                label: "x", ordered: ordered, reliability: .maxRetransmits(UInt16(limit)), now: pair.now)
            pair.connect()
            pair.run(for: .seconds(1))
            var copies = 0
            pair.filter = { from, _, packet in
                guard from == .a, dataTSNs(packet, marker: 0xAA) else { return .pass }
                copies += 1
                return copies <= dropped ? .drop : .pass
            }
            try pair.a.transport.send([0xAA], isBinary: true, on: id, now: pair.now)
            pair.run(for: .seconds(30)) { pair.a.transport.association.window.isEmpty }
            try pair.a.transport.send([0xBB], isBinary: true, on: id, now: pair.now)
            pair.run(for: .seconds(5))
            #expect(copies == min(dropped + 1, limit + 1))
            #expect(pair.b.payloads(id) == (arrives ? [[0xAA], [0xBB]] : [[0xBB]]))
        }
    }

    // SCT4: the same by fast retransmission.
    @Test func retransmitLimitHoldsForFastRetransmission() throws {
        for (limit, arrives) in [(0, false), (1, true)] {
            let pair = SimulatedPair()
            let id = try pair.a.transport.open(
                label: "x", reliability: .maxRetransmits(UInt16(limit)), now: pair.now)
            pair.connect()
            pair.run(for: .seconds(1))
            var copies = 0
            pair.filter = { from, _, packet in
                guard from == .a, dataTSNs(packet, marker: 0xAA) else { return .pass }
                copies += 1
                return copies == 1 ? .drop : .pass
            }
            try pair.a.transport.send([0xAA], isBinary: true, on: id, now: pair.now)
            pair.run(for: .milliseconds(2))
            for index in 0..<10 {
                try pair.a.transport.send(
                    [UInt8](repeating: UInt8(index), count: 1_100), isBinary: true, on: id, now: pair.now)
                pair.run(for: .milliseconds(2))
            }
            pair.run(for: .milliseconds(100))
            #expect(copies == 1 + limit)
            #expect(pair.a.transport.associationStatistics.timeouts == 0)
            #expect(pair.b.received.map { $0.payload[0] } == (arrives ? [0xAA] : []) + Array(0..<10))
        }
    }

    // SCT5: whole messages are abandoned and the rest flows, for ten virtual minutes.
    @Test(arguments: [1] as [UInt64])
    func unreliableStreamFlowsThroughLoss(seed: UInt64) throws {
        let pair = SimulatedPair(seed: seed, link: Link(delay: .milliseconds(30), loss: 0.12))
        let id = try pair.a.transport.open(
            label: "x", ordered: false, reliability: .maxRetransmits(0), now: pair.now)
        #expect(pair.connect())
        pair.run(for: .seconds(5)) { !pair.b.opened.isEmpty }
        var last = pair.now
        var longest = Duration.zero
        var received = 0
        pair.onMessage = { side, message in
            guard side == .b else { return }
            #expect(message.payload.count == 3_000)
            longest = max(longest, message.at - last)
            last = message.at
            received += 1
        }
        var sent = 0
        for number in 0..<40_000 {
            // Congestion control allows less than is offered; an application drops what would only wait.
            if pair.a.transport.bufferedAmount(of: id) < 60_000 {
                sent += 1
                try pair.a.transport.send(
                    TransferTests.message(number, size: 3_000), isBinary: true, on: id, now: pair.now)
            }
            pair.run(for: .milliseconds(15))
            pair.b.received.removeAll(keepingCapacity: true)
        }
        #expect(longest < .seconds(1))
        #expect(received > sent / 2)
        #expect(pair.a.ending == nil && pair.b.ending == nil)
        #expect(pair.invariantFailures.isEmpty)
    }

    // SCT5: no copy leaves after the lifetime is over.
    @Test func nothingIsSentAfterItsLifetime() throws {
        var configuration = SCTPConfiguration()
        configuration.initialRetransmissionTimeout = .seconds(1)
        configuration.minimumRetransmissionTimeout = .seconds(1)
        let pair = SimulatedPair(a: configuration)
        let id = try pair.a.transport.open(
            label: "x", reliability: .maxLifetime(milliseconds: 250), now: pair.now)
        pair.connect()
        pair.run(for: .seconds(1))
        let start = pair.now
        var latest = pair.now
        pair.filter = { from, _, packet in
            guard from == .a, dataTSNs(packet, marker: 0xAA) else { return .pass }
            latest = pair.now
            return .drop
        }
        try pair.a.transport.send([0xAA], isBinary: true, on: id, now: pair.now)
        pair.run(for: .seconds(10))
        #expect(latest - start < .milliseconds(250))
        try pair.a.transport.send([0xBB], isBinary: true, on: id, now: pair.now)
        pair.run(for: .seconds(2))
        #expect(pair.b.payloads(id) == [[0xBB]])
        #expect(pair.a.transport.associationStatistics.abandonedMessages == 1)
    }

    @Test func expiredMessagesInTheQueueAreNeverSent() throws {
        let pair = SimulatedPair()
        let id = try pair.a.transport.open(
            label: "x", reliability: .maxLifetime(milliseconds: 100), now: pair.now)
        for index in 0..<5 { try pair.a.transport.send([UInt8(index)], isBinary: true, on: id, now: pair.now) }
        pair.run(for: .milliseconds(200))
        try pair.a.transport.send([9], isBinary: true, on: id, now: pair.now)
        #expect(pair.a.transport.bufferedAmount(of: id) == 6)
        pair.connect()
        pair.run(for: .seconds(1))
        #expect(pair.b.payloads(id) == [[9]])
        #expect(pair.a.transport.bufferedAmount(of: id) == 0)
    }

    // SCT5: FORWARD TSN is repeated until it is acknowledged.
    @Test func forwardTSNIsRepeatedUntilAcknowledged() throws {
        let pair = SimulatedPair()
        let id = try pair.a.transport.open(label: "x", reliability: .maxRetransmits(0), now: pair.now)
        pair.connect()
        pair.run(for: .seconds(1))
        var forwards = 0
        pair.filter = { from, _, packet in
            guard from == .a else { return .pass }
            if CraftedPeer.chunks(packet).contains(where: { $0.type == ChunkType.forwardTSN }) {
                forwards += 1
                return forwards <= 3 ? .drop : .pass
            }
            return dataTSNs(packet, marker: 0xAA) ? .drop : .pass
        }
        try pair.a.transport.send([0xAA], isBinary: true, on: id, now: pair.now)
        pair.run(for: .seconds(20))
        #expect(forwards == 4)
        try pair.a.transport.send([0xBB], isBinary: true, on: id, now: pair.now)
        pair.run(for: .seconds(1))
        #expect(pair.b.payloads(id) == [[0xBB]])
    }

    @Test func partlySentMessageIsAbandonedWhole() throws {
        // The window lets only a part of the message out before its lifetime ends.
        var configuration = TransferTests.largeMessages
        configuration.initialWindowPackets = 4
        let pair = SimulatedPair(link: Link(delay: .milliseconds(100)), a: configuration)
        let id = try pair.a.transport.open(
            label: "x", reliability: .maxLifetime(milliseconds: 150), now: pair.now)
        pair.connect()
        pair.run(for: .seconds(2))
        try pair.a.transport.send([UInt8](repeating: 1, count: 100_000), isBinary: true, on: id, now: pair.now)
        try pair.a.transport.send([UInt8](repeating: 2, count: 10), isBinary: true, on: id, now: pair.now)
        pair.run(for: .milliseconds(180))
        try pair.a.transport.send([UInt8](repeating: 3, count: 10), isBinary: true, on: id, now: pair.now)
        pair.run(for: .seconds(5))
        #expect(pair.b.payloads(id) == [[UInt8](repeating: 3, count: 10)])
        #expect(pair.a.transport.bufferedAmount(of: id) == 0)
        #expect(pair.a.transport.association.window.isEmpty)
        #expect(pair.b.transport.association.reassembly.heldBytes == 0)
        #expect(pair.b.ending == nil)
    }

    // SCT6: OPEN is reliable on a channel without repetitions, and data may come before it.
    @Test(arguments: [true, false])
    func openIsRepeatedAlthoughTheChannelIsUnreliable(ordered: Bool) throws {
        let pair = SimulatedPair()
        pair.connect()
        var isLost = false
        pair.filter = { from, _, packet in
            guard from == .a, !isLost, CraftedPeer.chunks(packet).contains(where: { $0.type == 0 }) else {
                return .pass
            }
            isLost = true
            return .drop
        }
        let id = try pair.a.transport.open(
            label: "x", ordered: ordered, reliability: .maxRetransmits(0), now: pair.now)
        pair.run(for: .milliseconds(1))
        for index in 0..<5 {
            try pair.a.transport.send([UInt8(index)], isBinary: true, on: id, now: pair.now)
            pair.run(for: .milliseconds(1))
        }
        pair.run(for: .seconds(5))
        #expect(isLost)
        #expect(pair.b.opened.map(\.label) == ["x"])
        #expect(pair.b.payloads(id) == (0..<5).map { [UInt8($0)] })
    }

    @Test func peerWithoutTheExtensionGetsEverythingReliably() {
        var peer = CraftedPeer()
        peer.establish(features: [])
        peer.association.send(
            OutgoingMessage(
                payload: [1], ppid: 53, isUnordered: false, isCounted: true,
                limits: DeliveryLimits(maximumRetransmissions: 0)), on: 1, now: peer.now)
        #expect(peer.sentChunks().map(\.type) == [0])
        peer.advance(.milliseconds(600))
        #expect(peer.sentChunks().map(\.type) == [0])
        peer.advance(.milliseconds(1_100))
        #expect(peer.sentChunks().map(\.type) == [0])
    }

    @Test func skippedOrderedMessagesLetLaterOnesThrough() {
        var peer = CraftedPeer()
        peer.establish()
        let first = peer.nextTSN
        peer.sendData([3], ssn: 2, tsn: first + 2)
        peer.sendData([4], ssn: 3, tsn: first + 3)
        #expect(peer.messages.isEmpty)
        peer.send(
            peer.packet {
                ForwardTSNChunk(newCumulative: first + 1, skips: [.init(stream: 1, ssn: 1)]).write(to: &$0)
            })
        #expect(peer.messages.map(\.payload) == [[3], [4]])
        #expect(peer.association.reassembly.cumulative == first + 3)
    }
}
