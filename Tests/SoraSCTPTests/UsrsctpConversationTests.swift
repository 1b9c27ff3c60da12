import Foundation
import SoraWire
import Testing

@testable import SoraSCTP

/// Replays what usrsctp sent in a recorded conversation against our end, which is deterministic.
@Suite struct UsrsctpConversationTests {
    private static let start = Instant(nanoseconds: 1_000_000_000)

    private static func packets() throws -> [(at: Instant, bytes: [UInt8])] {
        let file = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "Fixtures/sctp/usrsctp-conversation.txt")
        return try String(contentsOf: file, encoding: .utf8).split(separator: "\n").compactMap { line in
            let parts = line.split(separator: " ")
            guard parts.count == 2, let milliseconds = Int(parts[0]) else { return nil }
            return (start + .milliseconds(milliseconds + 10), hex(String(parts[1])))
        }
    }

    @Test func wholeConversationIsUnderstood() throws {
        var configuration = SCTPConfiguration()
        configuration.remoteMaximumMessageSize = 262_144
        let ours = DataChannelTransport(configuration: configuration, isDTLSClient: true, random: RandomSource(seed: 9))
        var now = UsrsctpConversationTests.start
        var events: [String] = []
        var sizes: [UInt16: [Int]] = [:]
        func drain() {
            while let output = ours.poll() {
                switch output {
                case .connected: events.append("connected")
                case .channelOpened(let info): events.append("opened \(info.label)")
                case .channelClosed(let id): events.append("closed \(id)")
                case .message(let id, let payload, _): sizes[id.rawValue, default: []].append(payload.count)
                case .closed(let error): events.append("ended \(error.map(String.init(describing:)) ?? "")")
                case .transmit, .bufferedAmountLow: break
                }
            }
        }
        var incoming = try UsrsctpConversationTests.packets()
        #expect(incoming.count > 25)
        func run(until end: Int) {
            let end = UsrsctpConversationTests.start + .milliseconds(end)
            while now < end {
                drain()
                now += .milliseconds(1)
                while let next = incoming.first, next.at <= now {
                    ours.handle(next.bytes, now: now)
                    incoming.removeFirst()
                    drain()
                }
                if let due = ours.nextTimeout, due <= now { ours.handleTimeout(now: now) }
            }
            drain()
        }
        ours.start(now: now)
        run(until: 31)
        #expect(events == ["connected"])
        let first = try ours.open(label: "x", now: now)
        let second = try ours.open(label: "u", ordered: false, reliability: .maxRetransmits(0), now: now)
        run(until: 1_530)
        for _ in 0..<3 {
            try ours.send([UInt8](repeating: 7, count: 1_500), isBinary: true, on: first, now: now)
        }
        run(until: 1_555)
        #expect(sizes[0] == [20, 2_500, 20])
        for _ in 0..<2 {
            try ours.send([UInt8](repeating: 7, count: 2_500), isBinary: true, on: second, now: now)
            run(until: now == UsrsctpConversationTests.start + .milliseconds(1_555) ? 1_570 : 6_580)
        }
        #expect(sizes[2] == [2_500, 2_500])
        try ours.send([1, 2, 3], isBinary: true, on: first, now: now)
        ours.close(first, now: now)
        run(until: 8_100)
        #expect(events.last == "closed 0")
        _ = try ours.open(label: "again", now: now)
        run(until: 9_000)
        ours.shutdown(now: now)
        run(until: 12_000)
        #expect(
            events == [
                "connected", "opened x", "opened u", "closed 0", "opened again", "closed 0", "closed 2", "ended ",
            ])
        #expect(incoming.isEmpty)
        #expect(ours.associationStatistics.droppedPackets == 0)
    }

    @Test func itsInitOffersWhatWeNeed() throws {
        let packet = try UsrsctpConversationTests.packets()[0].bytes
        #expect(CRC32C.checksum(ofPacket: packet) == CommonHeader.checksum(of: packet))
        let chunk = try InitChunk(value: ByteReader(packet, in: 16..<packet.count), isAck: false)
        #expect(chunk.features == [.partialReliability, .reconfiguration])
        #expect(chunk.outboundStreams == 1_024 && chunk.inboundStreams == 1_024)
        #expect(chunk.unrecognized.isEmpty)
    }

    @Test func everyPrefixAndChangedByteOfItsPacketsIsHarmless() throws {
        var random = RandomSource(seed: 8)
        for (_, packet) in try UsrsctpConversationTests.packets() where packet.count < 300 {
            for index in 12..<packet.count {
                var configuration = SCTPConfiguration()
                configuration.heartbeatInterval = nil
                var peer = CraftedPeer(configuration: configuration)
                peer.establish()
                var changed = packet
                changed[index] = UInt8(truncatingIfNeeded: random.next())
                for (offset, byte) in hex("7a3c91e5").enumerated() { changed[4 + offset] = byte }
                peer.send(HostileInputTests.resealed(changed))
                peer.send(HostileInputTests.resealed(Array(changed[0..<index])))
                _ = peer.drain()
            }
        }
    }
}
