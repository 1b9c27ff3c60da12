import SoraWire
import Testing

@testable import SoraSCTP

@Suite struct TransferTests {
    /// A message that says which it is and what must be in it.
    static func message(_ number: Int, size: Int) -> [UInt8] {
        var writer = ByteWriter()
        writer.write(UInt32(number))
        while writer.count < max(4, size) { writer.write(UInt8(truncatingIfNeeded: writer.count &* 31 &+ number)) }
        return writer.bytes
    }

    static func number(_ message: [UInt8]) -> Int { message.count >= 4 ? Int(loadUInt32(message, 0)) : -1 }

    static var largeMessages: SCTPConfiguration {
        var configuration = SCTPConfiguration()
        configuration.remoteMaximumMessageSize = 262_144
        return configuration
    }

    // SCT2: sixty virtual seconds, 5 % loss, 50 ms: every message once, ordered ones in order.
    @Test func lossyMinuteDeliversEverythingOnceAndInOrder() throws {
        let link = Link(delay: .milliseconds(50), jitter: .milliseconds(10), loss: 0.05, duplication: 0.02)
        let pair = SimulatedPair(seed: 11, link: link, a: TransferTests.largeMessages)
        let ordered = try pair.a.transport.open(label: "ordered", now: pair.now)
        let unordered = try pair.a.transport.open(label: "unordered", ordered: false, now: pair.now)
        let back = try pair.b.transport.open(label: "back", now: pair.now)
        #expect(pair.connect())
        var random = RandomSource(seed: 12)
        var sent = 0
        let end = pair.now + .seconds(60)
        while pair.now < end {
            let size = [10, 100, 1_000, 3_000, 20_000].randomElement(using: &random) ?? 10
            for id in [ordered, unordered] {
                try pair.a.transport.send(
                    TransferTests.message(sent, size: size), isBinary: true, on: id, now: pair.now)
            }
            try pair.b.transport.send(
                TransferTests.message(sent, size: 200), isBinary: true, on: back, now: pair.now)
            sent += 1
            pair.run(for: .milliseconds(120))
        }
        pair.run(for: .seconds(60)) {
            pair.b.received.count == 2 * sent && pair.a.received.count == sent
        }
        #expect(pair.b.payloads(ordered).map(TransferTests.number) == Array(0..<sent))
        #expect(pair.b.payloads(unordered).map(TransferTests.number).sorted() == Array(0..<sent))
        #expect(pair.a.payloads(back).map(TransferTests.number) == Array(0..<sent))
        for payload in pair.b.payloads(ordered) {
            #expect(payload == TransferTests.message(TransferTests.number(payload), size: payload.count))
        }
        #expect(pair.invariantFailures.isEmpty)
    }

    // SCT2: randomised runs with the invariant on.
    @Test(arguments: 0..<40)
    func randomPathsDeliverEverything(seed: Int) throws {
        var random = RandomSource(seed: UInt64(seed) &* 7_919)
        var link = Link()
        link.delay = .milliseconds(Int.random(in: 2...150, using: &random))
        link.jitter = .milliseconds(Int.random(in: 0...40, using: &random))
        link.loss = Double.random(in: 0...0.15, using: &random)
        link.duplication = Double.random(in: 0...0.05, using: &random)
        if Bool.random(using: &random) { link.rate = Double.random(in: 3e5...2e7, using: &random) }
        var configuration = TransferTests.largeMessages
        configuration.receiveWindow = [8_192, 65_536, 8 << 20].randomElement(using: &random) ?? 65_536
        configuration.maximumPacketSize = [200, 576, 1_160, 1_400].randomElement(using: &random) ?? 1_160
        let pair = SimulatedPair(seed: UInt64(seed), link: link, a: configuration)
        var ids: [StreamID] = []
        for index in 0..<4 {
            ids.append(try pair.a.transport.open(label: "\(index)", ordered: index % 2 == 0, now: pair.now))
        }
        #expect(pair.connect())
        let count = 60
        for number in 0..<count {
            for id in ids {
                let size = Int.random(in: 4...(number % 10 == 0 ? 15_000 : 1_500), using: &random)
                try pair.a.transport.send(
                    TransferTests.message(number, size: size), isBinary: true, on: id, now: pair.now)
            }
            if number % 7 == 0 { pair.run(for: .milliseconds(Int.random(in: 0...300, using: &random))) }
        }
        let isDone = pair.run(for: .seconds(400)) { pair.b.received.count >= 4 * count }
        #expect(isDone, "\(pair.b.received.count) of \(4 * count), \(pair.a.transport.associationStatistics)")
        pair.run(for: .seconds(5))
        for (index, id) in ids.enumerated() {
            let numbers = pair.b.payloads(id).map(TransferTests.number)
            #expect((index % 2 == 0 ? numbers : numbers.sorted()) == Array(0..<count))
            for payload in pair.b.payloads(id) {
                #expect(payload == TransferTests.message(TransferTests.number(payload), size: payload.count))
            }
        }
        #expect(pair.invariantFailures.isEmpty)
        #expect(pair.b.transport.association.reassembly.heldBytes == 0)
        #expect(pair.a.transport.association.window.isEmpty)
        #expect(pair.a.ending == nil && pair.b.ending == nil)
    }

    // SCT15
    /// ICE6: what a dead way swallowed does not wait for the timeout that grew meanwhile.
    @Test func aNewPathIsUsedAtOnceAfterADeadOne() throws {
        let pair = SimulatedPair()
        let id = try pair.a.transport.open(label: "x", now: pair.now)
        #expect(pair.connect())
        for side in pair.link.indices { pair.link[side].loss = 1 }
        try pair.a.transport.send([1], isBinary: true, on: id, now: pair.now)
        pair.run(for: .seconds(6))
        for side in pair.link.indices { pair.link[side].loss = 0 }
        pair.a.transport.pathChanged(now: pair.now)
        let start = pair.now
        #expect(pair.run(for: .seconds(1)) { pair.b.payloads(id) == [[1]] })
        #expect(pair.now - start < .milliseconds(50))
        pair.run(for: .seconds(1))
        // A change while nothing is missing repeats nothing.
        let before = pair.a.transport.associationStatistics.timeouts
        try pair.a.transport.send([2], isBinary: true, on: id, now: pair.now)
        pair.a.transport.pathChanged(now: pair.now)
        #expect(pair.run(for: .seconds(1)) { pair.b.payloads(id).count == 2 })
        #expect(pair.a.transport.associationStatistics.timeouts == before)
    }

    @Test func bytesAreExactAndTheIdentifierTellsTheKind() throws {
        let pair = SimulatedPair()
        let id = try pair.a.transport.open(label: "x", now: pair.now)
        pair.connect()
        let cases: [([UInt8], Bool)] = [
            ([0, 1, 2], true), ([1, 0, 2], true), ([1, 2, 0], true), ([0], true), ([0xFF, 0xFE], true), ([], true),
            ([], false), ([0], false), (Array("text".utf8), false),
        ]
        for (payload, isBinary) in cases {
            try pair.a.transport.send(payload, isBinary: isBinary, on: id, now: pair.now)
        }
        pair.run(for: .seconds(1))
        #expect(pair.b.received.map(\.payload) == cases.map(\.0))
        #expect(pair.b.received.map(\.isBinary) == cases.map(\.1))
    }

    // SCT1
    @Test func messageAboveThePeersLimitIsRefusedAndTheChannelGoesOn() throws {
        var configuration = SCTPConfiguration()
        configuration.remoteMaximumMessageSize = 100_000
        let pair = SimulatedPair(a: configuration)
        let id = try pair.a.transport.open(label: "x", now: pair.now)
        pair.connect()
        try pair.a.transport.send([UInt8](repeating: 1, count: 100_000), isBinary: true, on: id, now: pair.now)
        #expect(throws: SCTPError.messageTooLarge(size: 100_001, limit: 100_000)) {
            try pair.a.transport.send([UInt8](repeating: 2, count: 100_001), isBinary: true, on: id, now: pair.now)
        }
        try pair.a.transport.send([3], isBinary: true, on: id, now: pair.now)
        pair.run(for: .seconds(10))
        #expect(pair.b.received.map(\.payload.count) == [100_000, 1])
    }

    @Test func peerThatSendsTooMuchLosesOnlyThatChannel() throws {
        var small = SCTPConfiguration()
        small.maximumMessageSize = 5_000
        let pair = SimulatedPair(a: TransferTests.largeMessages, b: small)
        let bad = try pair.a.transport.open(label: "bad", now: pair.now)
        let good = try pair.a.transport.open(label: "good", now: pair.now)
        pair.connect()
        try pair.a.transport.send([UInt8](repeating: 1, count: 5_001), isBinary: true, on: bad, now: pair.now)
        try pair.a.transport.send([UInt8](repeating: 1, count: 5_000), isBinary: true, on: good, now: pair.now)
        pair.run(for: .seconds(5))
        #expect(pair.b.received.map(\.payload.count) == [5_000])
        #expect(pair.a.closed == [bad.rawValue] && pair.b.closed == [bad.rawValue])
    }

    @Test func largeMessageDoesNotStarveOtherChannels() throws {
        let pair = SimulatedPair(
            link: Link(delay: .milliseconds(10), rate: 10_000_000, queue: .seconds(1)), a: TransferTests.largeMessages)
        let bulk = try pair.a.transport.open(label: "bulk", now: pair.now)
        let talk = try pair.a.transport.open(label: "talk", now: pair.now)
        pair.connect()
        for _ in 0..<20 {
            try pair.a.transport.send([UInt8](repeating: 1, count: 100_000), isBinary: true, on: bulk, now: pair.now)
        }
        for index in 0..<20 {
            try pair.a.transport.send(TransferTests.message(index, size: 100), isBinary: true, on: talk, now: pair.now)
        }
        pair.run(for: .seconds(60)) { pair.b.received.count == 40 }
        // All small ones come after at most two of the twenty large ones.
        let order = pair.b.received.map(\.stream)
        let lastTalk = order.lastIndex(of: talk.rawValue) ?? 0
        #expect(order[...lastTalk].filter { $0 == bulk.rawValue }.count <= 2)
    }

    @Test func equalChannelsShareByBytes() throws {
        let pair = SimulatedPair(
            link: Link(delay: .milliseconds(5), rate: 20_000_000, queue: .seconds(1)), a: TransferTests.largeMessages)
        let large = try pair.a.transport.open(label: "large", now: pair.now)
        let small = try pair.a.transport.open(label: "small", now: pair.now)
        pair.connect()
        for _ in 0..<200 {
            try pair.a.transport.send([UInt8](repeating: 1, count: 50_000), isBinary: true, on: large, now: pair.now)
        }
        for _ in 0..<10_000 {
            try pair.a.transport.send([UInt8](repeating: 1, count: 1_000), isBinary: true, on: small, now: pair.now)
        }
        pair.run(for: .seconds(3))
        let bytes = { (id: StreamID) in pair.b.payloads(id).reduce(0) { $0 + $1.count } }
        let ratio = Double(bytes(large)) / Double(bytes(small))
        #expect(ratio > 0.8 && ratio < 1.25, "ratio \(ratio)")
    }

    // EVT10: forty channels are announced although the first is flooded and one OPEN is lost.
    @Test func floodDoesNotDelayAnnouncements() throws {
        let pair = SimulatedPair(link: Link(delay: .milliseconds(20)))
        let first = try pair.a.transport.open(label: "0", now: pair.now)
        pair.connect()
        pair.run(for: .seconds(1))
        pair.b.transport.setDeliveryPaused(true, of: first, now: pair.now)
        for _ in 0..<100 {
            try pair.a.transport.send([UInt8](repeating: 0, count: 60_000), isBinary: true, on: first, now: pair.now)
        }
        for index in 1..<40 { _ = try pair.a.transport.open(label: "\(index)", now: pair.now) }
        var isLost = false
        pair.filter = { from, _, packet in
            guard from == .a, !isLost, CraftedPeer.chunks(packet).contains(where: { isOpen($0.bytes, label: "7") })
            else { return .pass }
            isLost = true
            return .drop
        }
        #expect(pair.run(for: .seconds(2)) { pair.b.opened.count == 40 })
        #expect(isLost)
        #expect(pair.b.received.isEmpty)
        pair.b.transport.setDeliveryPaused(false, of: first, now: pair.now)
        pair.run(for: .seconds(30)) { pair.b.received.count == 100 }
        #expect(pair.b.received.count == 100)
    }

    private func isOpen(_ chunk: [UInt8], label: String) -> Bool {
        chunk.first == 0 && chunk.count > 17 && chunk[16] == 3
            && chunk.suffix(label.utf8.count).elementsEqual(label.utf8)
    }

    @Test func bufferedAmountIsExactAndLowIsReportedOnce() throws {
        let pair = SimulatedPair()
        let id = try pair.a.transport.open(label: "x", now: pair.now)
        pair.a.transport.setBufferedAmountLowThreshold(1_500, of: id)
        for _ in 0..<10 {
            try pair.a.transport.send([UInt8](repeating: 0, count: 1_000), isBinary: true, on: id, now: pair.now)
        }
        try pair.a.transport.send([], isBinary: true, on: id, now: pair.now)
        #expect(pair.a.transport.bufferedAmount(of: id) == 10_000)
        #expect(pair.a.low.isEmpty)
        pair.connect()
        pair.run(for: .seconds(1))
        #expect(pair.a.transport.bufferedAmount(of: id) == 0)
        #expect(pair.a.low == [id.rawValue])
        #expect(pair.b.received.count == 11)
        #expect(pair.a.transport.statistics(of: id)?.bytesSent == 10_000)
        #expect(pair.b.transport.statistics(of: id)?.messagesReceived == 11)
    }

    // SCT12
    @Test func fastProducerIsBoundedAndLosesNothingAccepted() throws {
        var configuration = SCTPConfiguration()
        configuration.maximumBufferedAmount = 200_000
        let pair = SimulatedPair(
            link: Link(delay: .milliseconds(20), rate: 5_000_000, queue: .milliseconds(200)), a: configuration)
        let id = try pair.a.transport.open(label: "x", now: pair.now)
        pair.connect()
        var accepted = 0
        var refused = 0
        var largest = 0
        let end = pair.now + .seconds(30)
        while pair.now < end {
            do {
                try pair.a.transport.send(
                    TransferTests.message(accepted, size: 2_000), isBinary: true, on: id, now: pair.now)
                accepted += 1
            } catch {
                #expect(
                    error
                        == .sendBufferFull(
                            id, buffered: pair.a.transport.bufferedAmount(of: id), size: 2_000, limit: 200_000))
                refused += 1
            }
            largest = max(largest, pair.a.transport.bufferedAmount(of: id))
            pair.run(for: .milliseconds(2))
        }
        pair.run(for: .seconds(30)) { pair.b.received.count == accepted }
        #expect(refused > 0)
        #expect(largest > 195_000 && largest <= 200_000)
        #expect(pair.b.payloads(id).map(TransferTests.number) == Array(0..<accepted))
    }

    @Test func fullPacketsAllHaveTheSameSize() throws {
        let pair = SimulatedPair(a: TransferTests.largeMessages)
        let id = try pair.a.transport.open(label: "x", now: pair.now)
        pair.connect()
        pair.run(for: .seconds(1))
        pair.keepsPackets = true
        for _ in 0..<10 {
            try pair.a.transport.send([UInt8](repeating: 0, count: 16_384), isBinary: true, on: id, now: pair.now)
        }
        pair.run(for: .seconds(5))
        let sizes = pair.packets.filter { $0.from == .a }.map(\.packet.count)
        #expect(sizes.allSatisfy { $0 <= 1_160 })
        #expect(sizes.filter { $0 == 1_160 }.count >= sizes.count * 9 / 10)
    }

    @Test func unusedStreamsCostNothing() {
        let pair = SimulatedPair()
        pair.connect()
        #expect(pair.a.transport.association.outboundStreams == 65_535)
        #expect(pair.a.transport.association.queue.streams.isEmpty)
    }
}
