import SoraWire
import Testing

@testable import SoraSCTP

/// What a peer may send to break us (SCT9, SCT10).
@Suite struct HostileInputTests {
    static let fixtures: [(name: String, bytes: [UInt8])] = [
        ("sctp-chunk-length-below-4", hex("177117727a3c91e5547775b80003000200000000")),
        ("sctp-data-without-payload", hex("177117727a3c91e5c200db4600030010102030400007000000000035")),
        ("sctp-sack-gap-count-lies", hex("177117727a3c91e5abe9879503000014102030400000fde80009000000020003")),
        (
            "sctp-init-parameter-length-zero",
            hex("177117720000000088d6719d010000185e6f7081000200000010001099aabbccc0000000")
        ),
        ("sctp-init-zero-streams", hex("17711772000000001edd9872010000145e6f7081000200000000001099aabbcc")),
        ("sctp-forward-tsn-odd-length", hex("177117727a3c91e59e07a28bc000000b1020304400070000")),
        ("sctp-unknown-skip-and-report", hex("177117727a3c91e5b1dab339fe00000861626364")),
        ("sctp-unknown-stop", hex("177117727a3c91e5e787b2173e00000861626364")),
    ]

    private func fixture(_ name: String) -> [UInt8] {
        HostileInputTests.fixtures.first { $0.name == name }?.bytes ?? []
    }

    private func established() -> CraftedPeer {
        var peer = CraftedPeer()
        peer.establish()
        return peer
    }

    @Test func craftedPeerEstablishes() {
        #expect(established().association.state == .established)
    }

    @Test func shortChunkLengthDropsThePacket() {
        var peer = established()
        peer.send(fixture("sctp-chunk-length-below-4"))
        #expect(peer.drain().isEmpty)
        #expect(peer.association.state == .established)
    }

    @Test func dataWithoutPayloadAborts() {
        var peer = established()
        peer.send(fixture("sctp-data-without-payload"))
        let sent = peer.sentChunks()
        #expect(sent.map(\.type) == [ChunkType.abort])
        #expect(Array(sent[0].bytes[4...]) == hex("0009000810203040"))
        #expect(peer.ending != nil)
    }

    @Test func lyingGapCountIsDropped() {
        var peer = established()
        peer.send(fixture("sctp-sack-gap-count-lies"))
        #expect(peer.drain().isEmpty)
        #expect(peer.association.state == .established)
    }

    @Test func parameterOfLengthZeroDoesNotLoop() {
        var peer = CraftedPeer()
        peer.send(fixture("sctp-init-parameter-length-zero"))
        #expect(peer.drain().isEmpty)
        #expect(peer.association.state == .closed)
    }

    @Test func initWithoutStreamsIsAborted() {
        var peer = CraftedPeer()
        peer.send(fixture("sctp-init-zero-streams"))
        let packets = peer.drain()
        #expect(packets.count == 1)
        #expect(CommonHeader(packet: packets[0])?.verificationTag == 0x5E6F_7081)
        #expect(CraftedPeer.chunks(packets[0]).map(\.type) == [ChunkType.abort])
        #expect(peer.association.state == .closed)
    }

    @Test func forwardTSNOfOddLengthIsDropped() {
        var peer = established()
        peer.send(fixture("sctp-forward-tsn-odd-length"))
        #expect(peer.drain().isEmpty)
        #expect(peer.association.reassembly.cumulative == TSN(0x1020_303F))
    }

    @Test func unknownChunkIsSkippedAndReported() {
        var peer = established()
        peer.send(fixture("sctp-unknown-skip-and-report"))
        let sent = peer.sentChunks()
        #expect(sent.map(\.type) == [ChunkType.error])
        #expect(Array(sent[0].bytes[4...]) == hex("0006000cfe00000861626364"))
    }

    @Test func unknownChunkThatSaysStopEndsThePacketInSilence() {
        var peer = established()
        let good = peer.packet {
            $0.write(hex("3e00000861626364"))
            DataChunk(flags: [.beginning, .end], tsn: peer.nextTSN, stream: 1, ssn: 0, ppid: 53)
                .write(to: &$0, payload: [1], range: 0..<1)
        }
        peer.send(fixture("sctp-unknown-stop"))
        peer.send(good)
        #expect(peer.drain().isEmpty)
        #expect(peer.messages.isEmpty)
    }

    @Test(arguments: [
        "sctp-chunk-length-below-4", "sctp-sack-gap-count-lies", "sctp-forward-tsn-odd-length", "sctp-unknown-stop",
        "sctp-unknown-skip-and-report",
    ])
    func badChunkBehindAGoodOneLeavesTheGoodOne(name: String) {
        var peer = established()
        let bad = Array(fixture(name)[12...])
        let packet = peer.packet {
            DataChunk(flags: [.beginning, .end], tsn: peer.nextTSN, stream: 1, ssn: 0, ppid: 53)
                .write(to: &$0, payload: [7, 8, 9], range: 0..<3)
            $0.write(bad)
        }
        peer.send(packet)
        #expect(peer.messages.map(\.payload) == [[7, 8, 9]])
        #expect(peer.association.state == .established)
    }

    // SCT10
    @Test func wrongChecksumOrTagIsSilentlyDropped() {
        for (name, bytes) in HostileInputTests.fixtures {
            for bit in 0..<32 {
                var peer = established()
                var changed = bytes
                changed[8 + bit / 8] ^= 1 << UInt8(bit % 8)
                peer.send(changed)
                #expect(peer.drain().isEmpty, "\(name), checksum bit \(bit)")
                #expect(peer.association.state == .established)
            }
            var peer = established()
            var changed = bytes
            changed[7] &+= 1
            if let crc = CRC32C.checksum(ofPacket: changed) {
                for index in 0..<4 { changed[8 + index] = UInt8(truncatingIfNeeded: crc >> UInt32(8 * index)) }
            }
            peer.send(changed)
            #expect(peer.drain().isEmpty, "\(name), tag off by one")
            #expect(peer.association.state == .established)
        }
    }

    // SCT10: the T bit says whose tag it is.
    @Test func abortIsTakenWithEitherTagButNoOther() {
        for (tag, flags, ends) in [
            (0x7A3C_91E5, 0, true), (0x0BAD_CAFE, 1, true), (0x7A3C_91E5, 1, false), (0x0BAD_CAFE, 0, false),
            (0x1234_5678, 0, false), (0x1234_5678, 1, false),
        ] as [(UInt32, UInt8, Bool)] {
            var peer = established()
            peer.send(peer.packet(tag: tag) { writeChunk(ChunkType.abort, flags: flags, to: &$0) { _ in } })
            #expect((peer.ending != nil) == ends, "tag \(tag), flags \(flags)")
        }
    }

    // SCT10: a checksum of zero is wrong unless agreed.
    @Test func zeroChecksumNeedsAgreement() {
        for (allowed, delivered) in [(true, 1), (false, 0)] {
            var configuration = CraftedPeer.fixtureConfiguration
            configuration.zeroChecksum = allowed
            var peer = CraftedPeer(configuration: configuration)
            peer.establish()
            var packet = peer.packet {
                DataChunk(flags: [.beginning, .end], tsn: peer.nextTSN, stream: 1, ssn: 0, ppid: 53)
                    .write(to: &$0, payload: [1], range: 0..<1)
            }
            for index in 8..<12 { packet[index] = 0 }
            peer.send(packet)
            #expect(peer.messages.count == delivered)
        }
    }

    @Test func zeroChecksumIsSentOnlyIfThePeerOffersIt() {
        for (features, isZero) in [
            ([.zeroChecksum, .partialReliability], true), ([.partialReliability], false),
        ] as [(InitChunk.Features, Bool)] {
            var peer = CraftedPeer()
            peer.establish(features: features)
            peer.sendData([1])
            peer.advance(.seconds(1))
            let packets = peer.drain()
            #expect(packets.count == 1)
            #expect((CommonHeader.checksum(of: packets[0]) == 0) == isZero)
        }
    }

    @Test func everyPrefixAndEveryChangedByteIsHarmless() {
        var random = RandomSource(seed: 4)
        for packet in HostileInputTests.goodPackets() {
            for length in 0...packet.count {
                var peer = established()
                peer.send(HostileInputTests.resealed(Array(packet[0..<length])))
                _ = peer.drain()
                peer.advance(.milliseconds(300))
            }
            for index in packet.indices where !(8..<12).contains(index) {
                var peer = established()
                var changed = packet
                changed[index] ^= UInt8(truncatingIfNeeded: random.next() | 1)
                peer.send(HostileInputTests.resealed(changed))
                _ = peer.drain()
                peer.advance(.milliseconds(300))
            }
            var peer = established()
            peer.send(HostileInputTests.resealed(packet + [0, 0, 0]))
            peer.send(HostileInputTests.resealed(packet + packet))
            _ = peer.drain()
        }
    }

    @Test(arguments: [1, 2, 3, 4] as [UInt64])
    func randomChunksNeverTrapAndMemoryStaysBounded(seed: UInt64) {
        var random = RandomSource(seed: seed)
        var peer = established()
        for round in 0..<4_000 {
            if peer.association.isEnded { peer = established() }
            if round % 3 == 0 {
                peer.association.send(
                    OutgoingMessage(
                        payload: random.bytes(300), ppid: 53, isUnordered: round % 2 == 0, isCounted: true,
                        limits: DeliveryLimits(maximumRetransmissions: round % 5)),
                    on: UInt16.random(in: 0..<8, using: &random), now: peer.now)
            }
            let types: [UInt8] = [0, 0, 0, 1, 2, 3, 3, 3, 4, 5, 7, 8, 9, 10, 11, 130, 130, 192, 192, 0x3E, 0xFE]
            let packet = peer.packet { writer in
                for _ in 0...Int.random(in: 0..<3, using: &random) {
                    let type = types.randomElement(using: &random) ?? 0
                    let body = HostileInputTests.body(type, peer, &random)
                    writeChunk(type, flags: UInt8.random(in: 0..<16, using: &random), to: &writer) { $0.write(body) }
                }
            }
            peer.send(packet)
            if Bool.random(using: &random) { _ = peer.drain() }
            if Int.random(in: 0..<10, using: &random) == 0 { peer.advance(.milliseconds(400)) }
            peer.events.removeAll()
            #expect(peer.association.reassembly.heldBytes >= 0)
            #expect(peer.association.controlChunks.count <= 16)
            let window = peer.association.window
            let states = (0..<window.count).compactMap { window.chunk(at: $0) }
            #expect(window.flight == states.filter { $0.state == .outstanding }.reduce(0) { $0 + $1.length })
            #expect(window.lostCount == states.filter { $0.state == .lost }.count)
            for id in peer.association.queue.ids {
                let pending = states.filter { $0.stream == id && ($0.state == .outstanding || $0.state == .lost) }
                #expect(peer.association.queue.stream(id)?.outstanding == pending.count)
            }
        }
    }

    /// Bodies near the association's real state, so that they pass the first checks.
    private static func body(_ type: UInt8, _ peer: CraftedPeer, _ random: inout RandomSource) -> [UInt8] {
        var writer = ByteWriter()
        let near = peer.association.reassembly.cumulative + Int.random(in: -3...40, using: &random)
        switch type {
        case ChunkType.data:
            writer.write(near.rawValue)
            writer.write(UInt16.random(in: 0..<6, using: &random))
            writer.write(UInt16.random(in: 0..<6, using: &random))
            writer.write(53 as UInt32)
            writer.write(random.bytes(Int.random(in: 0..<50, using: &random)))
        case ChunkType.sack:
            let window = peer.association.window
            writer.write((window.cumulative + Int.random(in: -2...(window.count + 2), using: &random)).rawValue)
            writer.write(UInt32.random(in: 0..<100_000, using: &random))
            let count = Int.random(in: 0..<5, using: &random)
            writer.write(UInt16(count))
            writer.write(UInt16(Int.random(in: 0..<2, using: &random)))
            for _ in 0..<count {
                writer.write(UInt16.random(in: 0..<20, using: &random))
                writer.write(UInt16.random(in: 0..<20, using: &random))
            }
        case ChunkType.forwardTSN:
            writer.write(near.rawValue)
            for _ in 0..<Int.random(in: 0..<3, using: &random) {
                writer.write(UInt16.random(in: 0..<6, using: &random))
                writer.write(UInt16.random(in: 0..<9, using: &random))
            }
        case ChunkType.reconfiguration:
            writer.write(UInt16.random(in: 13..<19, using: &random))
            writer.write(UInt16.random(in: 8..<20, using: &random))
            writer.write(peer.association.resets.expected &+ UInt32.random(in: 0..<2, using: &random))
            writer.write(UInt32.random(in: 0..<7, using: &random))
            writer.write(near.rawValue)
            writer.write(UInt16.random(in: 0..<6, using: &random))
        default: writer.write(random.bytes(Int.random(in: 0..<40, using: &random)))
        }
        return writer.bytes
    }

    /// One packet of every kind, for an association as ``established()`` makes it.
    static func goodPackets() -> [[UInt8]] {
        let peer = CraftedPeer()
        return [
            peer.packet(tag: 0) { peer.initChunk().write(to: &$0) },
            peer.packet { peer.initChunk(cookie: [1, 2, 3, 4, 5]).write(to: &$0) },
            peer.packet {
                DataChunk(flags: [.beginning, .end], tsn: peer.nextTSN, stream: 1, ssn: 0, ppid: 53)
                    .write(to: &$0, payload: [1, 2, 3, 4, 5], range: 0..<5)
            },
            peer.packet {
                SackChunk.write(
                    cumulative: TSN(7), receiverWindow: 100, gaps: [.init(start: 2, end: 3)], duplicates: [TSN(9)],
                    to: &$0)
            },
            peer.packet { HeartbeatChunk(info: [1, 2, 3]).write(isAck: false, to: &$0) },
            peer.packet { HeartbeatChunk(info: [1, 2, 3]).write(isAck: true, to: &$0) },
            peer.packet { ErrorCause.writeChunk(6, causes: [ErrorCause(code: 12, reason: "x")], to: &$0) },
            peer.packet { ErrorCause.writeChunk(9, causes: [ErrorCause(code: 3, info: [1, 2, 3])], to: &$0) },
            peer.packet { writeChunk(ChunkType.shutdown, to: &$0) { $0.write(7 as UInt32) } },
            peer.packet { writeChunk(ChunkType.shutdownAck, to: &$0) { _ in } },
            peer.packet { writeChunk(ChunkType.shutdownComplete, to: &$0) { _ in } },
            peer.packet { writeChunk(ChunkType.cookieEcho, to: &$0) { $0.write([UInt8](repeating: 1, count: 52)) } },
            peer.packet { writeChunk(ChunkType.cookieAck, to: &$0) { _ in } },
            peer.packet {
                ForwardTSNChunk(newCumulative: peer.nextTSN + 3, skips: [.init(stream: 1, ssn: 2)]).write(to: &$0)
            },
            peer.packet {
                ReconfigurationChunk(parameters: [
                    .outgoingReset(
                        request: peer.nextTSN.rawValue, response: 0, lastTSN: peer.nextTSN + 5, streams: [1, 2, 3]),
                    .response(request: 5, result: 1),
                ]).write(to: &$0)
            },
        ]
    }

    static func resealed(_ packet: [UInt8]) -> [UInt8] {
        var changed = packet
        guard let crc = CRC32C.checksum(ofPacket: packet) else { return packet }
        for index in 0..<4 { changed[8 + index] = UInt8(truncatingIfNeeded: crc >> UInt32(8 * index)) }
        return changed
    }
}
