import SoraEmulator
import SoraICE
import SoraPeer
import SoraRTP
import SoraSCTP
import SoraSDP
import SoraWire
import TestSupport
import Testing

/// A whole peer connection over a bad path for a minute of virtual time.
@Suite(.serialized, .leavesNoObjects) struct SurvivalTests {
    /// 5 % random loss, 50 ms delay, reordering: every reliable message arrives once and in order, and
    /// video keeps playing.
    @Test(arguments: [UInt64(1), 2])
    func messagesAndVideoSurviveABadPath(seed: UInt64) throws {
        let conditions = LinkConditions(
            delay: .milliseconds(50), jitter: .milliseconds(10), loss: 0.05, reordering: 0.02,
            reorderingDelay: .milliseconds(15))
        let pair = PeerPair(conditions: conditions, seed: seed)
        let receiving = pair.offerer.addTransceiver(kind: .video, direction: .recvonly, mid: Mid("v"))
        pair.offerer.enableDataChannels()
        try pair.negotiate {
            guard let sending = pair.answerer.transceiver(mid: Mid("v")) else { return }
            sending.direction = .sendonly
            sending.streamIdentifier = MediaStreamIdentifier(stream: "s", track: "t")
            sending.encodings = [pair.answerer.makeEncoding()]
        }
        #expect(pair.run(for: .seconds(20)) { pair.isConnected })
        let sending = try #require(pair.answerer.transceiver(mid: Mid("v")))
        let id = try pair.offerer.openDataChannel(label: "#a", now: pair.now)
        #expect(
            pair.run(for: .seconds(20)) {
                pair.outputs[1].contains { if case .dataChannelOpened = $0 { true } else { false } }
            })

        var random = RandomSource(seed: seed)
        var packetizer = VideoPayloadFormat.vp8.makePacketizer(random: &random)
        var buffer = VideoJitterBuffer(format: .vp8)
        var requester = KeyFrameRequester()
        var sequence = SequenceNumber(65_000)
        var wantsKeyFrame = true
        var sent: [[UInt8]] = []
        var received: [[UInt8]] = []
        var shown: [Instant] = []
        let begin = pair.now
        var frame = 0
        while pair.now < begin + .seconds(60) {
            // Video: 30 frames a second, about 600 kbit/s.
            let isKey = wantsKeyFrame
            wantsKeyFrame = false
            let payloads = packetizer.packetize(
                Self.frame(isKey: isKey, length: isKey ? 8000 : 2300),
                traits: VideoFrameTraits(isKeyFrame: isKey, width: 640, height: 360), limit: 1100)
            for (index, payload) in payloads.enumerated() {
                let packet = RTPPacket(
                    marker: index == payloads.count - 1, payloadType: PayloadType(120), sequenceNumber: sequence,
                    timestamp: RTPTimestamp(UInt32(truncatingIfNeeded: frame * 3000)), ssrc: SSRC(0), payload: payload)
                sequence += 1
                try MediaTests.send(packet, on: sending, pair)
            }
            // A message each 200 ms, both reliable ways carry all sizes.
            if frame % 6 == 0 {
                let message = [UInt8](repeating: UInt8(truncatingIfNeeded: sent.count), count: sent.count * 37 % 5000)
                try pair.answerer.send(message: message, isBinary: true, on: id, now: pair.now)
                sent.append(message)
            }
            frame += 1
            pair.run(for: .microseconds(33_333))
            for output in pair.takeOutputs(.answerer) {
                if case .keyFrameRequested = output { wantsKeyFrame = true }
            }
            for output in pair.takeOutputs(.offerer) {
                switch output {
                case .rtp(let packet): buffer.insert(packet.packet, header: packet.header, now: pair.now)
                case .dataChannelMessage(_, let message, _): received.append(message)
                case .keyFrameNeeded: buffer.abandonGap(now: pair.now)
                default: break
                }
            }
            if let due = buffer.nextTimeout, due <= pair.now { buffer.handleTimeout(now: pair.now) }
            while let output = buffer.poll() {
                switch output {
                case .frame:
                    shown.append(pair.now)
                    requester.keyFrameArrived()
                case .keyFrameNeeded: requester.request(now: pair.now)
                }
            }
            // RTP9: requests are lost like anything else, and repeated.
            if let due = requester.nextTimeout, due <= pair.now, requester.handleTimeout(now: pair.now),
                let ssrc = pair.offerer.inboundSSRC(of: receiving)
            {
                pair.offerer.sendKeyFrameRequest(for: ssrc, now: pair.now)
            }
        }
        let arrived = pair.run(for: .seconds(20)) {
            received.count + pair.messages(.offerer).count >= sent.count
        }
        received += pair.messages(.offerer)
        #expect(arrived)
        #expect(received == sent)
        #expect(shown.count > frame * 9 / 10, "\(shown.count) of \(frame) frames")
        let longest = zip(shown, shown.dropFirst()).map { $1 - $0 }.max() ?? .seconds(60)
        #expect(longest < .seconds(1), "the longest freeze was \(longest)")
        #expect(pair.isConnected)
    }

    /// Bytes that look like a VP8 frame to a packetizer (RFC 6386, 9.1).
    private static func frame(isKey: Bool, length: Int) -> [UInt8] {
        let head: [UInt8] = isKey ? [0x10, 0, 0, 0x9D, 0x01, 0x2A, 0x80, 0x02, 0x68, 0x01] : [0x11, 0, 0]
        return head + [UInt8](repeating: 0x55, count: length - head.count)
    }
}
