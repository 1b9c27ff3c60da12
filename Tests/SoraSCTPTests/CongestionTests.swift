import SoraWire
import Testing

@testable import SoraSCTP

@Suite struct CongestionTests {
    private func send(_ peer: inout CraftedPeer, _ count: Int, size: Int = 1_000) {
        for _ in 0..<count {
            peer.association.send(
                OutgoingMessage(
                    payload: [UInt8](repeating: 1, count: size), ppid: 53, isUnordered: false, isCounted: true,
                    limits: DeliveryLimits()), on: 1, now: peer.now)
        }
    }

    private func tsns(_ chunks: [(type: UInt8, flags: UInt8, bytes: [UInt8])]) -> [UInt32] {
        chunks.filter { $0.type == 0 }.map { loadUInt32($0.bytes, 4) }
    }

    // SCT16: at least 80 % of 200 Mbit/s at 60 ms after start-up.
    @Test(arguments: [50])
    func longFatPathIsFilled(queue: Int) throws {
        var configuration = TransferTests.largeMessages
        configuration.maximumBufferedAmount = 64 << 20
        let pair = SimulatedPair(
            link: Link(delay: .milliseconds(30), rate: 200_000_000, queue: .milliseconds(queue)), a: configuration)
        let id = try pair.a.transport.open(label: "x", now: pair.now)
        pair.connect()
        let message = [UInt8](repeating: 7, count: 65_536)
        var bytes = 0
        pair.onMessage = { _, message in bytes += message.payload.count }
        func feed(_ seconds: Int) throws {
            let end = pair.now + .seconds(seconds)
            while pair.now < end {
                while pair.a.transport.bufferedAmount(of: id) < 4 << 20 {
                    try pair.a.transport.send(message, isBinary: true, on: id, now: pair.now)
                }
                pair.run(for: .milliseconds(50))
                pair.b.received.removeAll(keepingCapacity: true)
            }
        }
        try feed(2)
        bytes = 0
        try feed(1)
        let rate = Double(bytes) * 8
        #expect(rate > 160e6, "\(rate / 1e6) Mbit/s, \(pair.a.transport.associationStatistics)")
        #expect(pair.invariantFailures.isEmpty)
    }

    // SCT16: at most one acknowledgement for two packets, one for a batch.
    @Test func acknowledgementsAreNotSentPerPacket() {
        var peer = CraftedPeer()
        peer.establish()
        peer.sendData([1], ssn: 0)
        #expect(peer.drain().isEmpty)
        peer.sendData([1], ssn: 1)
        #expect(peer.sentChunks().map(\.type) == [ChunkType.sack])
        for index in 2..<12 { peer.sendData([1], ssn: UInt16(index)) }
        #expect(peer.sentChunks().map(\.type) == [ChunkType.sack])
        // A single one is acknowledged after the delay, at once if asked or if there is a gap.
        peer.sendData([1], ssn: 12)
        #expect(peer.drain().isEmpty)
        #expect(peer.association.nextTimeout == peer.now + .milliseconds(20))
        peer.advance(.milliseconds(20))
        #expect(peer.sentChunks().map(\.type) == [ChunkType.sack])
        peer.sendData([1], ssn: 13, flags: [.beginning, .end, .immediate])
        #expect(peer.sentChunks().map(\.type) == [ChunkType.sack])
        peer.sendData([1], ssn: 15, tsn: peer.nextTSN + 1)
        #expect(peer.sentChunks().map(\.type) == [ChunkType.sack])
    }

    private func word(_ value: UInt32) -> [UInt8] {
        [UInt8(value >> 24), UInt8(value >> 16 & 255), UInt8(value >> 8 & 255), UInt8(value & 255)]
    }

    @Test func duplicatesAreReported() {
        var peer = CraftedPeer()
        peer.establish()
        let first = peer.nextTSN
        peer.sendData([1])
        peer.sendData([1], tsn: first)
        peer.sendData([1], tsn: first + 2)
        peer.sendData([1], tsn: first + 2)
        // One for each packet behind the gap, so that the peer can count.
        let sacks = peer.sentChunks().map(\.bytes)
        #expect(sacks.count == 2)
        #expect(sacks.allSatisfy { loadUInt32($0, 4) == first.rawValue && Array($0[16..<20]) == [0, 2, 0, 2] })
        #expect(sacks.map { Array($0[20...]) } == [word(first.rawValue), word((first + 2).rawValue)])
        #expect(peer.messages.count == 1)
    }

    @Test func timeoutFollowsTheMeasuredRoundTrip() {
        var timeout = RetransmissionTimeout(configuration: SCTPConfiguration())
        #expect(timeout.current == .milliseconds(500))
        timeout.measured(.milliseconds(200))
        #expect(timeout.current == .milliseconds(600))  // 200 + 4 * 100
        timeout.measured(.milliseconds(200))
        #expect(timeout.current == .milliseconds(500))  // variation 75
        timeout.backOff()
        #expect(timeout.current == .milliseconds(1_000))
        for _ in 0..<5 { timeout.backOff() }
        #expect(timeout.current == .seconds(4))
        for _ in 0..<100 { timeout.measured(.milliseconds(2)) }
        #expect(timeout.current == .milliseconds(250))
    }

    @Test func timerRunsFromTheFirstChunkAndDoubles() {
        var peer = CraftedPeer()
        peer.establish()
        send(&peer, 1)
        #expect(peer.drain().count == 1)
        let start = peer.now
        var times: [Duration] = []
        for _ in 0..<4 {
            guard let due = peer.association.retransmissionTimer else { break }
            peer.now = due
            peer.association.handleTimeout(now: due)
            #expect(tsns(peer.sentChunks()) == [peer.association.localInitialTSN.rawValue])
            times.append(due - start)
        }
        #expect(times == [.milliseconds(500), .milliseconds(1_500), .milliseconds(3_500), .milliseconds(7_500)])
    }

    @Test func karnIgnoresRepeatedChunks() {
        var peer = CraftedPeer()
        peer.establish()
        send(&peer, 1)
        _ = peer.drain()
        peer.advance(.milliseconds(500))
        _ = peer.drain()
        peer.now += .milliseconds(10)
        peer.sendSack(peer.association.localInitialTSN)
        #expect(peer.association.timeout.smoothed == nil)
        #expect(peer.association.timeout.current == .seconds(1))
        send(&peer, 1)
        _ = peer.drain()
        peer.now += .milliseconds(30)
        peer.sendSack(peer.association.localInitialTSN + 1)
        #expect(peer.association.timeout.smoothed == .milliseconds(30))
    }

    @Test func thirdMissRepeatsAtOnceAndHalvesOnce() {
        var peer = CraftedPeer()
        peer.establish()
        send(&peer, 9)
        let initial = peer.association.localInitialTSN
        let window = peer.association.congestion.window
        #expect(peer.drain().count == 9)
        for end in 2...3 {
            peer.sendSack(initial + -1, gaps: [.init(start: 2, end: UInt16(end))])
            #expect(peer.drain().isEmpty)
        }
        peer.sendSack(initial + -1, gaps: [.init(start: 2, end: 4)])
        #expect(tsns(peer.sentChunks()) == [initial.rawValue])
        let reduced = peer.association.congestion.window
        #expect(reduced < window && peer.association.congestion.isInRecovery)
        peer.sendSack(initial + -1, gaps: [.init(start: 2, end: 5)])
        #expect(peer.association.congestion.window == reduced)
        peer.sendSack(initial + 8)
        #expect(!peer.association.congestion.isInRecovery)
        #expect(peer.association.retransmissionTimer == nil)
    }

    @Test func lostRepetitionIsFoundWithoutATimeout() {
        var peer = CraftedPeer()
        peer.establish()
        send(&peer, 30)
        let initial = peer.association.localInitialTSN
        _ = peer.drain()
        for end in 2...4 { peer.sendSack(initial + -1, gaps: [.init(start: 2, end: UInt16(end))]) }
        #expect(tsns(peer.sentChunks()).first == initial.rawValue)
        var repeated = false
        for end in 5...30 where !repeated {
            peer.sendSack(initial + -1, gaps: [.init(start: 2, end: UInt16(end))])
            repeated = tsns(peer.sentChunks()).contains(initial.rawValue)
        }
        #expect(repeated)
        #expect(peer.association.statistics.timeouts == 0)
    }

    @Test func windowGrowsInSlowStartAndOnlyWhenUsed() {
        var configuration = SCTPConfiguration()
        configuration.initialWindowPackets = 4
        var congestion = CongestionController(configuration: configuration)
        let start = congestion.window
        #expect(start == 4 * 1_160)
        congestion.acknowledged(
            bytes: 1_160, flight: 1_160, cumulative: TSN(5), advanced: true, roundTrip: nil, now: .zero)
        #expect(congestion.window == start)
        congestion.acknowledged(
            bytes: 1_160, flight: start, cumulative: TSN(6), advanced: true, roundTrip: nil, now: .zero)
        #expect(congestion.window == start + 1_160)
        congestion.timedOut()
        #expect(congestion.window == 4 * 1_160)
        #expect(congestion.slowStartThreshold == 4 * 1_160)
    }

    @Test func cubicReturnsToTheFormerWindow() {
        var congestion = CongestionController(configuration: SCTPConfiguration())
        var now = Instant.zero
        while congestion.window < 1_000 * 1_160 {
            congestion.acknowledged(
                bytes: 16 * 1_160, flight: congestion.window, cumulative: TSN(1), advanced: true,
                roundTrip: .milliseconds(50), now: now)
        }
        let top = congestion.window
        congestion.lossDetected(highest: TSN(10), flight: top)
        #expect(abs(Double(congestion.window) / Double(top) - 0.7) < 0.01)
        congestion.acknowledged(
            bytes: 1_160, flight: congestion.window, cumulative: TSN(10), advanced: true,
            roundTrip: .milliseconds(50), now: now)
        // Cube root of 300 packets over 0.4: nine seconds to the plateau.
        for _ in 0..<180 {
            now += .milliseconds(50)
            var acknowledged = 0
            let flight = congestion.window
            while acknowledged < flight {
                congestion.acknowledged(
                    bytes: 2 * 1_160, flight: congestion.window, cumulative: TSN(20), advanced: true,
                    roundTrip: .milliseconds(50), now: now)
                acknowledged += 2 * 1_160
            }
        }
        #expect(abs(Double(congestion.window) / Double(top) - 1) < 0.1)
    }

    // A lost tail is found by a probe after two round trips, not by the timeout.
    @Test(arguments: [1, 2, 5])
    func lostTailIsProbed(lost: Int) throws {
        let pair = SimulatedPair(link: Link(delay: .milliseconds(10)))
        let id = try pair.a.transport.open(label: "x", now: pair.now)
        pair.connect()
        for index in 0..<20 {
            try pair.a.transport.send(TransferTests.message(index, size: 1_000), isBinary: true, on: id, now: pair.now)
            pair.run(for: .milliseconds(5))
        }
        pair.run(for: .seconds(1))
        let window = pair.a.transport.congestionWindow
        var dropped = 0
        var data = 0
        pair.filter = { from, _, packet in
            guard from == .a, packet[12] == 0 else { return .pass }
            data += 1
            guard data > 7 - lost, dropped < lost else { return .pass }
            dropped += 1
            return .drop
        }
        let start = pair.now
        for index in 20..<27 {
            try pair.a.transport.send(TransferTests.message(index, size: 1_000), isBinary: true, on: id, now: pair.now)
        }
        pair.run(for: .seconds(5)) { pair.b.received.count == 27 }
        #expect(pair.b.payloads(id).map(TransferTests.number) == Array(0..<27))
        #expect(pair.now - start < .milliseconds(150), "\(pair.now - start)")
        pair.run(for: .seconds(1))
        #expect(pair.a.transport.associationStatistics.timeouts == 0)
        #expect(pair.a.transport.associationStatistics.tailProbes == 1)
        #expect(pair.a.transport.congestionWindow >= window * 6 / 10)
    }

    @Test func unansweredDataEndsInAnError() throws {
        var configuration = SCTPConfiguration()
        configuration.maximumRetransmissions = 6
        let pair = SimulatedPair(a: configuration)
        let id = try pair.a.transport.open(label: "x", now: pair.now)
        pair.connect()
        pair.run(for: .seconds(1))
        pair.filter = { _, _, _ in .drop }
        try pair.a.transport.send([1], isBinary: true, on: id, now: pair.now)
        let start = pair.now
        #expect(pair.run(for: .seconds(60)) { pair.a.ending != nil })
        #expect(pair.a.ending == .some(.peerUnreachable(timeouts: 7)))
        #expect(pair.a.closed == [0])
        #expect(pair.now - start < .seconds(30))
    }

    @Test func renegedChunksAreSentAgain() {
        var peer = CraftedPeer()
        peer.establish()
        send(&peer, 3)
        let initial = peer.association.localInitialTSN
        _ = peer.drain()
        peer.sendSack(initial, gaps: [.init(start: 2, end: 2)])
        peer.sendSack(initial + 1)
        // The peer has taken back the third chunk and never says so.
        #expect(peer.association.window.count == 1)
        var repeated = false
        for _ in 0..<3 {
            peer.advance(.seconds(2))
            repeated = repeated || tsns(peer.sentChunks()).contains((initial + 2).rawValue)
        }
        #expect(repeated)
    }
}
