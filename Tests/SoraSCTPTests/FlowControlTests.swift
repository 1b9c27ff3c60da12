import SoraWire
import Testing

@testable import SoraSCTP

@Suite struct FlowControlTests {
    // SCT13: a reader that stops is felt by the sender, memory stays bounded, and all flows again.
    @Test func readerThatStopsHoldsUpTheSenderWithinTheWindow() throws {
        var configuration = TransferTests.largeMessages
        configuration.receiveWindow = 100_000
        let pair = SimulatedPair(a: configuration)
        let id = try pair.a.transport.open(label: "x", now: pair.now)
        let other = try pair.a.transport.open(label: "y", now: pair.now)
        pair.connect()
        pair.run(for: .seconds(1))
        pair.b.transport.setDeliveryPaused(true, of: id, now: pair.now)
        for index in 0..<500 {
            try pair.a.transport.send(
                TransferTests.message(index, size: 2_000), isBinary: true, on: id, now: pair.now)
        }
        pair.run(for: .seconds(30))
        #expect(pair.b.received.isEmpty)
        let held = 1_000_000 - pair.a.transport.bufferedAmount(of: id)
        #expect(held > 80_000 && held < 130_000, "\(held)")
        #expect(pair.a.ending == nil)
        pair.b.transport.setDeliveryPaused(false, of: id, now: pair.now)
        pair.run(for: .seconds(30)) { pair.b.received.count == 500 }
        #expect(pair.b.payloads(id).map(TransferTests.number) == Array(0..<500))
        try pair.a.transport.send([1], isBinary: true, on: other, now: pair.now)
        pair.run(for: .seconds(1))
        #expect(pair.b.payloads(other) == [[1]])
        #expect(pair.invariantFailures.isEmpty)
    }

    @Test func applicationBacklogClosesAndReopensTheWindow() throws {
        var configuration = TransferTests.largeMessages
        configuration.receiveWindow = 50_000
        let pair = SimulatedPair(a: configuration)
        let id = try pair.a.transport.open(label: "x", now: pair.now)
        pair.connect()
        pair.run(for: .seconds(1))
        var unread = 0
        pair.onMessage = { side, message in
            guard side == .b else { return }
            unread += message.payload.count
            pair.b.transport.setUnreadBytes(unread, now: pair.now)
        }
        for index in 0..<300 {
            try pair.a.transport.send(
                TransferTests.message(index, size: 1_000), isBinary: true, on: id, now: pair.now)
        }
        pair.run(for: .seconds(10))
        #expect(pair.b.received.count < 60)
        // The application reads slowly.
        while pair.b.received.count < 300, pair.now < Instant(nanoseconds: 400_000_000_000) {
            unread = max(0, unread - 5_000)
            pair.b.transport.setUnreadBytes(unread, now: pair.now)
            pair.run(for: .milliseconds(100))
        }
        #expect(pair.b.received.count == 300)
        #expect(pair.a.ending == nil)
    }

    // SCT3: the window closes with a gap pending and the reader resumes, for every closing byte.
    @Test(arguments: [0, 1, 2, 3])
    func closedWindowWithAGapNeverDeadlocks(phase: Int) throws {
        for extra in stride(from: phase, to: 1_200, by: 4) {
            var configuration = TransferTests.largeMessages
            configuration.receiveWindow = 8_192 + extra
            let pair = SimulatedPair(seed: UInt64(extra), a: configuration)
            let id = try pair.a.transport.open(label: "x", now: pair.now)
            pair.connect()
            pair.run(for: .milliseconds(100))
            pair.b.transport.setDeliveryPaused(true, of: id, now: pair.now)
            var dataPackets = 0
            pair.filter = { from, _, packet in
                guard from == .a, CraftedPeer.chunks(packet).contains(where: { $0.type == 0 }) else { return .pass }
                dataPackets += 1
                return dataPackets == 2 ? .drop : .pass
            }
            for index in 0..<20 {
                try pair.a.transport.send(
                    TransferTests.message(index, size: 997), isBinary: true, on: id, now: pair.now)
            }
            pair.run(for: .milliseconds(1_500))
            pair.b.transport.setDeliveryPaused(false, of: id, now: pair.now)
            let isDone = pair.run(for: .seconds(20)) { pair.b.received.count == 20 }
            #expect(isDone, "window \(8_192 + extra): \(pair.b.received.count) of 20")
            #expect(pair.invariantFailures.isEmpty)
        }
    }

    // SCT3: the next TSN in order is taken although the window is full.
    @Test func nextTSNIsTakenAlthoughTheWindowIsFull() {
        var configuration = CraftedPeer.fixtureConfiguration
        configuration.receiveWindow = 4_096
        var peer = CraftedPeer(configuration: configuration)
        peer.establish()
        let first = peer.nextTSN
        for offset in 1...10 {
            peer.sendData([UInt8](repeating: UInt8(offset), count: 1_000), ssn: UInt16(offset), tsn: first + offset)
        }
        #expect(peer.association.reassembly.heldBytes <= 4_096)
        peer.sendData([UInt8](repeating: 0, count: 1_000), ssn: 0, tsn: first)
        #expect(peer.messages.count >= 4)
        #expect(peer.association.reassembly.cumulative - first == peer.messages.count - 1)
    }

    @Test func closedWindowIsProbedAndSmallUpdatesAreNotSent() {
        var peer = CraftedPeer()
        peer.establish()
        let initial = peer.association.localInitialTSN
        for _ in 0..<5 {
            peer.association.send(
                OutgoingMessage(
                    payload: [UInt8](repeating: 1, count: 900), ppid: 53, isUnordered: false, isCounted: true,
                    limits: DeliveryLimits()), on: 1, now: peer.now)
        }
        #expect(peer.drain().count == 5)
        peer.sendSack(initial + 4, window: 0)
        for _ in 0..<5 {
            peer.association.send(
                OutgoingMessage(
                    payload: [UInt8](repeating: 1, count: 900), ppid: 53, isUnordered: false, isCounted: true,
                    limits: DeliveryLimits()), on: 1, now: peer.now)
        }
        // One probe, repeated for as long as the peer says that its window is closed, and no error.
        #expect(peer.drain().count == 1)
        var probes = 0
        for _ in 0..<60 {
            peer.advance(.seconds(5))
            probes += peer.drain().count
            peer.sendSack(initial + 4, window: 0)
        }
        #expect(probes >= 20)
        #expect(peer.ending == nil)
        peer.sendSack(initial + 5, window: 1 << 20)
        #expect(peer.drain().count == 4)
    }

    @Test func memoryForFragmentsIsBounded() {
        var configuration = CraftedPeer.fixtureConfiguration
        configuration.receiveWindow = 100_000
        var peer = CraftedPeer(configuration: configuration)
        peer.establish()
        let first = peer.nextTSN
        for offset in stride(from: 1, to: 60_000, by: 2) {
            peer.sendData([1], ssn: 5, flags: [], tsn: first + offset)
        }
        #expect(peer.association.reassembly.heldBytes <= 100_000)
        // Beyond what 16-bit offsets can say.
        peer.sendData([1], ssn: 5, flags: [], tsn: first + 70_000)
        #expect(peer.association.reassembly.received.highest - first < 65_536)
    }

    @Test func messagesThatCanNeverBeDeliveredEndInAnError() {
        var configuration = CraftedPeer.fixtureConfiguration
        configuration.receiveWindow = 20_000
        configuration.maximumMessageSize = 10_000
        var peer = CraftedPeer(configuration: configuration)
        peer.establish()
        for number in 1..<100 where peer.ending == nil {
            peer.sendData([UInt8](repeating: 0, count: 1_000), ssn: UInt16(number))
        }
        #expect(peer.ending == .some(.protocolViolation("messages that cannot be delivered fill the receive window")))
        #expect(peer.association.reassembly.heldBytes < 60_000)
    }

    @Test func sackOffersTheWindowThatIsLeft() throws {
        var peer = CraftedPeer()
        peer.establish()
        peer.association.setUnread(bytes: 1_000_000)
        peer.sendData([1], tsn: peer.nextTSN)
        peer.sendData([1], ssn: 5, tsn: peer.nextTSN + 5)
        let sacks = peer.sentChunks().filter { $0.type == ChunkType.sack }
        #expect(sacks.count == 1)
        let expected = 8 * 1_048_576 - 1_000_000 - 49
        #expect(loadUInt32(sacks[0].bytes, 8) == UInt32(expected))
    }

    // The worst order of arrival costs about as much per packet as the best.
    @Test func workIsLinearInWhatArrives() {
        func cost(_ count: Int, reversed: Bool) -> Duration {
            var peer = CraftedPeer()
            peer.establish()
            let first = peer.nextTSN
            let clock = ContinuousClock()
            let start = clock.now
            for index in 1...count {
                let number = reversed ? count - index + 1 : index
                peer.sendData([1, 2, 3], ssn: UInt16(number), tsn: first + number)
                if index % 64 == 0 { _ = peer.association.nextPacket() }
            }
            peer.sendData([0], ssn: 0, tsn: first)
            #expect(peer.messages.count == count + 1)
            #expect(peer.association.reassembly.heldBytes == 0)
            return clock.now - start
        }
        _ = cost(1_000, reversed: false)
        let small = min(cost(4_000, reversed: true), cost(4_000, reversed: true))
        let large = cost(24_000, reversed: true)
        // Six times the input; quadratic work would take thirty-six times as long.
        #expect(large < small * 20, "\(small) for 4,000, \(large) for 24,000")
    }
}
