import SoraRTP
import SoraWire

/// Packets that a forwarder takes for VP8 (RFC 7741): 30 frames a second, descriptors with picture ids, key frames on
/// request. The picture itself is filler, with the time of sending at its end: forwarders leave it alone.
package struct VP8Stream {
    /// Bytes of an RTP payload, its descriptor among them.
    package static let payloadLength = 1100

    /// Whatever the bit rate.
    package static let framesPerSecond = 30
    private var bitrate = 0
    private var start: Instant?
    private var frames = 0
    private var packets = 0
    /// Packets of the frame that is being sent.
    private var remaining = 0
    private var isFirst = true
    private var isKeyFrame = true
    private var wantsKeyFrame = true
    private var sequence = SequenceNumber(1)
    private var timestamp = RTPTimestamp(90_000)
    private var pictureID: UInt16 = 0

    package init() {}

    package mutating func start(bitrate: Int, at now: Instant) {
        self.bitrate = bitrate
        start = now
        (frames, packets, remaining) = (0, 0, 0)
        wantsKeyFrame = true
    }

    package mutating func stop() { start = nil }
    package mutating func makeKeyFrame() { wantsKeyFrame = true }

    /// When the next frame is due.
    package var nextTime: Instant? {
        start.map { $0 + .nanoseconds(Int64(frames) * 1_000_000_000 / Int64(Self.framesPerSecond)) }
    }

    /// The next packet that is due.
    package mutating func next(payloadType: PayloadType, now: Instant) -> RTPPacket? {
        guard start != nil else { return nil }
        while remaining == 0 {
            guard let due = nextTime, due <= now else { return nil }
            frames += 1
            let total = Double(bitrate) / 8 / Double(Self.payloadLength) * Double(frames) / Double(Self.framesPerSecond)
            remaining = Int(total) - packets
            guard remaining > 0 else { continue }
            isFirst = true
            isKeyFrame = wantsKeyFrame
            wantsKeyFrame = false
            pictureID = (pictureID &+ 1) & 0x7FFF
            timestamp = RTPTimestamp(
                UInt32(truncatingIfNeeded: 90_000 + (due - .zero).wholeNanoseconds / 1000 * 9 / 100))
        }

        remaining -= 1
        packets += 1
        defer {
            isFirst = false
            sequence = SequenceNumber(sequence.rawValue &+ 1)
        }
        return RTPPacket(
            marker: remaining == 0, payloadType: payloadType, sequenceNumber: sequence, timestamp: timestamp,
            ssrc: SSRC(1), payload: payload(now))
    }

    private func payload(_ now: Instant) -> [UInt8] {
        // X and, on the first packet, S; then I; then a picture id of 15 bits.
        var bytes: [UInt8] = [
            isFirst ? 0x90 : 0x80, 0x80, 0x80 | UInt8(pictureID >> 8), UInt8(truncatingIfNeeded: pictureID),
        ]
        if isFirst {
            // The frame tag (RFC 6386, 9.1): shown, and whether it depends on others; 640x480 for a key frame.
            bytes += isKeyFrame ? [0x10, 0x40, 0, 0x9D, 0x01, 0x2A, 0x80, 0x02, 0xE0, 0x01] : [0x11, 0x40, 0]
        }
        bytes += [UInt8](repeating: 0xA5, count: Self.payloadLength - bytes.count)
        Stamp(sequence: 0, time: now).write(to: &bytes)
        return bytes
    }
}
