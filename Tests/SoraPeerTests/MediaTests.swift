import SoraEmulator
import SoraICE
import SoraPeer
import SoraRTP
import SoraSDP
import SoraWire
import TestSupport
import Testing

@Suite(.serialized, .leavesNoObjects) struct MediaTests {
    /// The server side offers to receive; the client sends.
    static func sendingPair(_ conditions: LinkConditions = .perfect, layers: [String] = []) throws -> (
        PeerPair, Transceiver, Transceiver
    ) {
        let pair = PeerPair(conditions: conditions)
        let receiving = pair.offerer.addTransceiver(kind: .video, direction: .recvonly, mid: Mid("video_a"))
        receiving.requestedLayers = layers.map { RequestedLayer(rid: RestrictionID($0)) }
        try pair.negotiate {
            guard let sending = pair.answerer.transceiver(mid: Mid("video_a")) else { return }
            sending.direction = .sendonly
            sending.streamIdentifier = MediaStreamIdentifier(stream: "s", track: "t")
            sending.encodings =
                layers.isEmpty
                ? [pair.answerer.makeEncoding()] : layers.map { pair.answerer.makeEncoding(rid: RestrictionID($0)) }
        }
        let connected = pair.run(for: .seconds(5)) { pair.isConnected }
        #expect(connected)
        let sending = try #require(pair.answerer.transceiver(mid: Mid("video_a")))
        return (pair, receiving, sending)
    }

    static func packet(_ number: Int, payloadType: PayloadType = PayloadType(120), length: Int = 100) -> RTPPacket {
        RTPPacket(
            marker: number % 3 == 2, payloadType: payloadType,
            sequenceNumber: SequenceNumber(UInt16(truncatingIfNeeded: 65_500 + number)),
            timestamp: RTPTimestamp(UInt32(truncatingIfNeeded: number / 3 * 3000)), ssrc: SSRC(0),
            payload: [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: length))
    }

    static func send(_ packet: RTPPacket, on transceiver: Transceiver, encoding: Int = 0, _ pair: PeerPair) throws {
        let bytes = packet.serialized()
        try pair.answerer.send(
            rtp: bytes, header: RTPHeader(parsing: bytes), on: transceiver, encoding: encoding, now: pair.now)
        pair.collect()
    }

    @Test func packetsArriveUnchanged() throws {
        let (pair, receiving, sending) = try Self.sendingPair()
        #expect(receiving.currentDirection == .recvonly)
        #expect(sending.currentDirection == .sendonly)
        for number in 0..<100 {
            try Self.send(Self.packet(number), on: sending, pair)
            pair.run(for: .milliseconds(10))
        }
        let received = pair.received(.offerer)
        #expect(received.count == 100)
        for (number, packet) in received.enumerated() {
            let expected = Self.packet(number)
            #expect(packet.transceiver == receiving.id)
            #expect(packet.header.sequenceNumber == expected.sequenceNumber)
            #expect(packet.header.timestamp == expected.timestamp)
            #expect(packet.header.marker == expected.marker)
            #expect(Array(packet.packet[packet.header.payloadRange]) == expected.payload)
            #expect(packet.header.ssrc == sending.encodings[0].ssrc)
        }
    }

    @Test func mediaMayNotBeSentOnWhatIsOnlyReceived() throws {
        let (pair, receiving, _) = try Self.sendingPair()
        let bytes = Self.packet(0).serialized()
        #expect(throws: PeerError.self) {
            try pair.offerer.send(rtp: bytes, header: RTPHeader(parsing: bytes), on: receiving, now: pair.now)
        }
    }

    /// Losses are repaired by NACK and RTX: each packet arrives, once.
    @Test(arguments: [UInt64(1), 2, 3])
    func lossesAreRepaired(seed: UInt64) throws {
        let (pair, _, sending) = try Self.sendingPair(LinkConditions(delay: .milliseconds(25)))
        var random = RandomSource(seed: seed)
        pair.drop = { side, payload in
            side == .answerer && DatagramKind(payload) == .rtp && Int.random(in: 0..<20, using: &random) == 0
        }
        for number in 0..<1000 {
            try Self.send(Self.packet(number), on: sending, pair)
            pair.run(for: .milliseconds(5))
        }
        pair.drop = nil
        // The very last packets cannot be missed without a successor.
        for number in 1000..<1010 {
            try Self.send(Self.packet(number), on: sending, pair)
            pair.run(for: .milliseconds(50))
        }
        let numbers = pair.received(.offerer).map(\.header.sequenceNumber)
        #expect(Set(numbers).count == 1010)
        #expect(numbers.count == 1010)
        #expect(pair.received(.offerer).contains { $0.isRetransmission })
    }

    @Test func keyFrameRequestReachesTheSender() throws {
        let (pair, receiving, sending) = try Self.sendingPair()
        try Self.send(Self.packet(0), on: sending, pair)
        pair.run(for: .milliseconds(10))
        let ssrc = try #require(pair.offerer.inboundSSRC(of: receiving))
        pair.offerer.sendKeyFrameRequest(for: ssrc, now: pair.now)
        pair.run(for: .milliseconds(10))
        let requested = pair.outputs[1].contains {
            if case .keyFrameRequested(let id, let asked) = $0 { id == sending.id && asked == ssrc } else { false }
        }
        #expect(requested)
    }

    @Test func simulcastLayersAreToldApartByTheirNames() throws {
        let (pair, receiving, sending) = try Self.sendingPair(layers: ["r0", "r1", "r2"])
        #expect(receiving.receivingLayers.map(\.rawValue) == ["r0", "r1", "r2"])
        #expect(sending.encodings.count == 3)
        for number in 0..<9 {
            for layer in 0..<3 {
                try Self.send(Self.packet(number, length: 50 + layer), on: sending, encoding: layer, pair)
            }
            pair.run(for: .milliseconds(10))
        }
        for layer in 0..<3 {
            let packets = pair.received(.offerer).filter { $0.rid?.rawValue == "r\(layer)" }
            #expect(packets.count == 9)
            #expect(packets.allSatisfy { $0.header.payloadLength == 50 + layer })
        }
    }

    @Test func reportsCarryRoundTripAndClock() throws {
        let (pair, _, sending) = try Self.sendingPair(LinkConditions(delay: .milliseconds(40)))
        for number in 0..<600 {
            try Self.send(Self.packet(number), on: sending, pair)
            pair.run(for: .milliseconds(10))
        }
        let reports = pair.outputs[0].count { if case .senderReport = $0 { true } else { false } }
        #expect(reports >= 4)
        let roundTrip = try #require(pair.answerer.statistics(now: pair.now).outbound.first?.roundTripTime)
        #expect(roundTrip > .milliseconds(79) && roundTrip < .milliseconds(85), "\(roundTrip)")
    }

    /// DTL10: forged packets move nothing but a counter.
    @Test func forgedPacketsAreCountedAndDropped() throws {
        let (pair, _, sending) = try Self.sendingPair()
        try Self.send(Self.packet(0), on: sending, pair)
        pair.run(for: .milliseconds(20))
        _ = pair.takeOutputs(.offerer)
        var random = RandomSource(seed: 3)
        for kind in [UInt8(120), 200, 201, 206] {
            var payload = random.bytes(80)
            payload[0] = 0x80
            payload[1] = kind
            pair.offerer.handle(
                Datagram(socket: SocketID(0), remote: SocketAddress(.v4(0x0A00_0002), port: 2000), payload: payload),
                now: pair.now)
        }
        #expect(pair.offerer.statistics(now: pair.now).rejectedPackets == 4)
        while let output = pair.offerer.poll() { Issue.record("a forged packet caused \(output)") }
    }
}

@Suite(.serialized, .leavesNoObjects) struct BandwidthTests {
    /// Transport-wide feedback of the receiver becomes an estimate at the sender that follows the link.
    @Test func estimateFollowsTheLink() throws {
        let (pair, _, sending) = try MediaTests.sendingPair(
            LinkConditions(delay: .milliseconds(20), bitsPerSecond: 1_000_000, queueBytes: 60_000))
        var estimate = 300_000
        var number = 0
        for _ in 0..<3000 {
            // A sender that follows its estimate in packets of 1,000 bytes.
            try MediaTests.send(MediaTests.packet(number, length: 1000), on: sending, pair)
            number += 1
            pair.run(for: .microseconds(8_000_000_000 / max(estimate, 50_000)))
            for output in pair.takeOutputs(.answerer) {
                if case .availableBitrate(let bitrate) = output { estimate = bitrate }
            }
            _ = pair.takeOutputs(.offerer)
        }
        #expect(estimate > 500_000 && estimate < 1_300_000, "\(estimate)")
    }
}

@Suite(.serialized, .leavesNoObjects) struct ProbingTests {
    /// On a path with room the estimate is at what is wanted within a second, although little is sent.
    @Test func estimateRisesByProbes() throws {
        let (pair, _, sending) = try MediaTests.sendingPair(
            LinkConditions(delay: .milliseconds(20), bitsPerSecond: 20_000_000, queueBytes: 200_000))
        sending.encodings[0].maximumBitrate = 2_000_000
        var estimate = 0
        for number in 0..<100 {
            try MediaTests.send(MediaTests.packet(number, length: 400), on: sending, pair)
            pair.run(for: .milliseconds(10))
            for output in pair.takeOutputs(.answerer) {
                if case .availableBitrate(let bitrate) = output { estimate = bitrate }
            }
        }
        pair.run(for: .milliseconds(100))
        #expect(estimate >= 1_800_000, "\(estimate)")
        // Padding is no media: the other side delivers only what was sent.
        #expect(pair.received(.offerer).count == 100)
    }

    /// A slow path is not flooded: probes measure what it carries.
    @Test func probesRespectTheLink() throws {
        let (pair, _, sending) = try MediaTests.sendingPair(
            LinkConditions(delay: .milliseconds(20), bitsPerSecond: 700_000, queueBytes: 40_000))
        sending.encodings[0].maximumBitrate = 4_000_000
        var estimate = 0
        for number in 0..<600 {
            try MediaTests.send(MediaTests.packet(number, length: 500), on: sending, pair)
            pair.run(for: .milliseconds(10))
            for output in pair.takeOutputs(.answerer) {
                if case .availableBitrate(let bitrate) = output { estimate = bitrate }
            }
        }
        #expect(estimate < 1_000_000 && estimate > 300_000, "\(estimate)")
    }
}
