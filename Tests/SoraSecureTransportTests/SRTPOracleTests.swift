import SoraSecureTransport
import SoraWire
import Testing

/// Random traffic, every packet compared with libsrtp2 in both directions.
@Suite(.serialized) struct SRTPOracleTests {
    @Test(arguments: SRTPProfile.allCases)
    func everyPacketEqualsLibsrtpBothWays(_ profile: SRTPProfile) throws {
        var random = RandomSource(seed: 11)
        for round in 0..<6 {
            let key = TestPackets.bytes(profile.keyLength, &random)
            let salt = TestPackets.bytes(profile.saltLength, &random)
            let ours = try SRTPContext(profile: profile, masterKey: key, masterSalt: salt)
            let oursReceiving = try SRTPContext(profile: profile, masterKey: key, masterSalt: salt)
            let theirs = try #require(SRTPOracle(profile, key: key, salt: salt, isSender: true))
            let theirsReceiving = try #require(SRTPOracle(profile, key: key, salt: salt, isSender: false))
            // Streams that start high, so that the roll-over counter advances.
            var streams = (0..<3).map { _ in
                (
                    ssrc: UInt32.random(in: .min ... .max, using: &random),
                    next: Int.random(in: 0..<32_768, using: &random) + (round % 2) * 32_000
                )
            }
            for step in 0..<600 {
                let stream = Int.random(in: 0..<3, using: &random)
                streams[stream].next += Int.random(in: 1...(round < 2 ? 1 : 400), using: &random)
                let plain = TestPackets.rtp(
                    ssrc: streams[stream].ssrc, sequence: UInt16(truncatingIfNeeded: streams[stream].next), &random)
                var packet = plain
                try ours.protect(&packet)
                #expect(theirs.protect(plain) == packet, "round \(round) step \(step)")
                #expect(theirsReceiving.unprotect(packet) == plain, "round \(round) step \(step)")
                try oursReceiving.unprotect(&packet)
                #expect(packet == plain)

                if step % 3 == 0 {
                    let plain = TestPackets.rtcp(ssrc: streams[stream].ssrc, &random)
                    var packet = plain
                    try ours.protectRTCP(&packet)
                    #expect(theirs.protectRTCP(plain) == packet)
                    #expect(theirsReceiving.unprotectRTCP(packet) == plain)
                    try oursReceiving.unprotectRTCP(&packet)
                    #expect(packet == plain)
                }
            }
        }
    }

    /// Which packets are accepted agrees too: shuffled, doubled and damaged ones.
    @Test(arguments: SRTPProfile.allCases)
    func verdictsEqualLibsrtpUnderReorderingReplayAndDamage(_ profile: SRTPProfile) throws {
        var random = RandomSource(seed: 12)
        let key = TestPackets.bytes(profile.keyLength, &random)
        let salt = TestPackets.bytes(profile.saltLength, &random)
        let sender = try SRTPContext(profile: profile, masterKey: key, masterSalt: salt)
        let receiver = try SRTPContext(profile: profile, masterKey: key, masterSalt: salt)
        let oracle = try #require(SRTPOracle(profile, key: key, salt: salt, isSender: false))
        var packets: [[UInt8]] = []
        for sequence in 65_000..<(65_000 + 3000) {
            var packet = TestPackets.rtp(ssrc: 77, sequence: UInt16(truncatingIfNeeded: sequence), &random)
            try sender.protect(&packet)
            packets.append(packet)
        }
        var accepted = 0
        for position in 0..<6000 {
            // Walks forwards through the packets, up to 400 out of step, every packet about twice.
            let index = min(max(position / 2 + Int.random(in: -400...400, using: &random), 0), packets.count - 1)
            var packet = packets[index]
            if position % 10 == 3 {
                packet[Int.random(in: 12..<packet.count, using: &random)] ^= UInt8.random(in: 1...255, using: &random)
            }
            let expected = oracle.unprotect(packet)
            let isAccepted = (try? receiver.unprotect(&packet)) != nil
            #expect(isAccepted == (expected != nil), "position \(position) index \(index)")
            if isAccepted {
                accepted += 1
                #expect(packet == expected)
            }
        }
        #expect(accepted > 2000)
        #expect(receiver.streamCount == 1)
    }
}

/// Random but well-formed packets.
enum TestPackets {
    static func bytes(_ count: Int, _ random: inout RandomSource) -> [UInt8] {
        (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
    }

    /// An RTP packet with random CSRCs, extension and payload.
    static func rtp(ssrc: UInt32, sequence: UInt16, _ random: inout RandomSource) -> [UInt8] {
        let csrcs = Int.random(in: 0...4, using: &random)
        let hasExtension = Bool.random(using: &random)
        var writer = ByteWriter(capacity: 1500)
        writer.write(UInt8(0x80 | (hasExtension ? 0x10 : 0) | csrcs))
        writer.write(UInt8.random(in: 0...255, using: &random))
        writer.write(sequence)
        writer.write(UInt32.random(in: .min ... .max, using: &random))
        writer.write(ssrc)
        writer.write(bytes(csrcs * 4, &random))
        if hasExtension {
            let words = Int.random(in: 0...6, using: &random)
            writer.write(UInt16(0xBEDE))
            writer.write(UInt16(words))
            writer.write(bytes(words * 4, &random))
        }
        writer.write(bytes(Int.random(in: 1...300, using: &random), &random))
        return writer.bytes
    }

    /// Bytes that look like compound RTCP from outside.
    static func rtcp(ssrc: UInt32, _ random: inout RandomSource) -> [UInt8] {
        let words = Int.random(in: 1...40, using: &random)
        var writer = ByteWriter(capacity: 200)
        writer.write(UInt8(0x80))
        writer.write(UInt8.random(in: 200...206, using: &random))
        writer.write(UInt16(words + 1))
        writer.write(ssrc)
        writer.write(bytes(words * 4, &random))
        return writer.bytes
    }
}
