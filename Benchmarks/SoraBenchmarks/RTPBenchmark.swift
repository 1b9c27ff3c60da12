import SoraRTP
import SoraWire

/// Cost per packet of what an SFU does with RTP, cryptography and sockets aside, on one core.
enum RTPBenchmark {
    struct Result: Sendable {
        /// Nanoseconds to parse a header with two extension elements.
        var headerParse: Double
        /// Nanoseconds to look at an incoming VP8 packet once for all receivers.
        var inspect: Double
        /// Nanoseconds to make one receiver's copy: numbers, picture id, base layer index.
        var forward: Double
        /// The same with a new header extension block.
        var forwardWithExtensions: Double
        /// Nanoseconds to parse a receiver report with a NACK and a REMB.
        var parseRTCP: Double
    }

    /// The fastest of `rounds` rounds.
    static func run(packets: Int = 100_000, rounds: Int = 5) throws -> Result {
        let clock = ContinuousClock()
        var result = Result(
            headerParse: .infinity, inspect: .infinity, forward: .infinity, forwardWithExtensions: .infinity,
            parseRTCP: .infinity)
        var random = RandomSource(seed: 1)
        var packetizer = VP8Packetizer(random: &random)
        let payloads = packetizer.packetize(
            [UInt8](repeating: 0, count: 1100 * 16), traits: .init(isKeyFrame: true, temporalLayer: 0), limit: 1110)
        let incoming = payloads.enumerated().map { index, payload in
            RTPPacket(
                marker: index == payloads.count - 1, payloadType: PayloadType(96),
                sequenceNumber: SequenceNumber(UInt16(index)), timestamp: RTPTimestamp(1), ssrc: SSRC(1),
                extensions: [.init(id: 1, value: [0x30]), .init(id: 4, value: [1, 2])], payload: payload
            ).serialized()
        }
        let compound = RTCP.serialize([
            .receiverReport(.init(ssrc: SSRC(1), reports: [.init(ssrc: SSRC(2))])),
            .genericNack(.init(senderSSRC: SSRC(1), mediaSSRC: SSRC(2), lost: [SequenceNumber(5), SequenceNumber(9)])),
            .receiverEstimatedMaximumBitrate(.init(senderSSRC: SSRC(1), bitrate: 1_000_000, ssrcs: [SSRC(2)])),
        ])
        let map = RTPExtensionMap([.mid: 1, .transportSequenceNumber: 4])
        var sum = 0
        for _ in 0..<rounds {
            let parsing = try clock.measure {
                for index in 0..<packets {
                    sum &+= try RTPHeader(parsing: incoming[index & 15]).headerLength
                }
            }
            result.headerParse = min(result.headerParse, parsing.inMilliseconds * 1e6 / Double(packets))

            let headers = try incoming.map { try RTPHeader(parsing: $0) }
            let inspecting = clock.measure {
                for index in 0..<packets {
                    let packet = ForwardablePacket(incoming[index & 15], header: headers[index & 15], format: .vp8)
                    sum &+= packet.startsKeyFrame ? 1 : 0
                }
            }
            result.inspect = min(result.inspect, inspecting.inMilliseconds * 1e6 / Double(packets))

            for withExtensions in [false, true] {
                var forwarder = StreamForwarder(
                    ssrc: SSRC(9), payloadType: PayloadType(100), clockRate: 90_000, isVideo: true, random: &random)
                var extensions = ForwardedExtensions(incoming: map, outgoing: map, mid: Mid("video"))
                forwarder.select(0)
                let sources = try numbered(incoming, count: packets)
                let forwarding = clock.measure {
                    for packet in sources {
                        guard var bytes = forwarder.forward(packet, layer: 0, now: .zero) else { continue }
                        if withExtensions { extensions.rewrite(&bytes, header: packet.header, transportSequence: 7) }
                        sum &+= bytes.count
                    }
                }
                let each = forwarding.inMilliseconds * 1e6 / Double(packets)
                if withExtensions {
                    result.forwardWithExtensions = min(result.forwardWithExtensions, each)
                } else {
                    result.forward = min(result.forward, each)
                }
            }

            let reading = try clock.measure {
                for _ in 0..<(packets / 10) { sum &+= try RTCP.parse(compound: compound).count }
            }
            result.parseRTCP = min(result.parseRTCP, reading.inMilliseconds * 1e7 / Double(packets))
        }
        precondition(sum > 0)  // keeps the work from being optimised away
        return result
    }

    /// The packets with ascending sequence numbers, so that none looks like a copy.
    private static func numbered(_ packets: [[UInt8]], count: Int) throws -> [ForwardablePacket] {
        try (0..<count).map { index in
            var bytes = packets[index & 15]
            if index >= 16 {
                RTPPacketEditing.setSequenceNumber(SequenceNumber(UInt16(truncatingIfNeeded: index)), in: &bytes)
            }
            return ForwardablePacket(bytes, header: try RTPHeader(parsing: bytes), format: .vp8)
        }
    }
}
