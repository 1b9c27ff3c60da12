import SoraWire

/// What the first bytes of an Opus packet say (RFC 6716, 3). The RTP clock is 48 kHz, whatever is captured (RFC 7587).
package struct OpusPacketInfo: Equatable, Sendable {
    package static let clockRate = 48_000

    /// Mode, bandwidth and frame size, 0...31.
    package let configuration: UInt8
    package let isStereo: Bool
    /// Opus frames in the packet, 1...48.
    package let frameCount: Int
    /// Bytes of the packet.
    package let length: Int
    /// In-band forward error correction: the packet carries a coarse copy of the one before it.
    package let carriesForwardErrorCorrection: Bool

    /// Samples per channel at 48 kHz in each frame.
    package var samplesPerFrame: Int {
        switch configuration {
        case 0..<12: [480, 960, 1920, 2880][Int(configuration) & 3]  // SILK
        case 12..<16: [480, 960][Int(configuration) & 1]  // hybrid
        default: [120, 240, 480, 960][Int(configuration) & 3]  // CELT
        }
    }
    /// Samples per channel at 48 kHz in the packet: what the RTP timestamp advances by.
    package var samples: Int { samplesPerFrame * frameCount }
    /// The encoder had nothing to say: all frames are empty or one byte long (discontinuous transmission).
    package let isSilence: Bool

    /// Nil for an empty packet or one that lasts more than 120 ms, which the RFC forbids.
    package init?(_ packet: [UInt8]) {
        self.init(packet, in: 0..<packet.count)
    }

    package init?(_ packet: [UInt8], in range: Range<Int>) {
        guard range.lowerBound >= 0, range.upperBound <= packet.count, !range.isEmpty else { return nil }
        let toc = packet[range.lowerBound]
        configuration = toc >> 3
        isStereo = toc & 0x04 != 0
        length = range.count
        var first = range.lowerBound + 1
        switch toc & 0x03 {
        case 0:
            frameCount = 1
            isSilence = range.count <= 2
        case 1:
            frameCount = 2
            guard range.count % 2 == 1 else { return nil }
            isSilence = range.count <= 3
        case 2:
            frameCount = 2
            // The first frame's length comes in one or two bytes; the second frame has the rest.
            guard range.count >= 2 else { return nil }
            let short = Int(packet[first])
            let head = short < 252 ? 1 : 2
            guard range.count >= 1 + head else { return nil }
            let size = short < 252 ? short : short + 4 * Int(packet[first + 1])
            guard size <= range.count - 1 - head else { return nil }
            isSilence = size <= 1 && range.count - 1 - head - size <= 1
            first += head
        default:
            guard range.count >= 2 else { return nil }
            let count = Int(packet[first] & 0x3F)
            guard count > 0 else { return nil }
            frameCount = count
            isSilence = range.count <= 2 + count && packet[first] & 0x40 == 0
            // Frame lengths or padding stand between: where the first frame begins is not needed further.
            first = range.upperBound
        }
        carriesForwardErrorCorrection = OpusPacketInfo.hasLowBitrateRedundancy(
            packet, at: first, end: range.upperBound, configuration: toc >> 3, isStereo: toc & 0x04 != 0)
        guard samples <= 5760 else { return nil }
    }

    /// The SILK header begins with one activity flag per 20 ms and one redundancy flag, per channel (RFC 6716, 4.2.3).
    /// At this place the range coder's symbols are plain bits.
    private static func hasLowBitrateRedundancy(
        _ packet: [UInt8], at index: Int, end: Int, configuration: UInt8, isStereo: Bool
    ) -> Bool {
        guard configuration < 16, index < end else { return false }
        let parts: UInt8
        switch configuration {
        case 0..<12: parts = [1, 1, 2, 3][Int(configuration) & 3]
        default: parts = 1
        }
        let byte = packet[index]
        let middle = byte >> (7 - parts) & 1 != 0
        return middle || (isStereo && parts < 4 && byte >> (6 - 2 * min(parts, 3)) & 1 != 0)
    }
}

/// Gives Opus packets their timestamps and marker bits (RFC 7587, 4). One Opus packet is one RTP payload.
package struct OpusPacketizer: Sendable {
    /// One payload, ready for its packet.
    package struct Payload: Equatable, Sendable {
        package var timestamp: RTPTimestamp
        /// First packet of a talk spurt.
        package var marker: Bool
        package var bytes: [UInt8]
    }

    /// Timestamp of the next sample that comes.
    package private(set) var nextTimestamp: RTPTimestamp
    private var isAfterSilence = true

    package init(timestamp: RTPTimestamp) { nextTimestamp = timestamp }

    /// The payload for an encoded packet; nil if it is no Opus packet. Time advances by what the packet lasts.
    package mutating func packetize(_ packet: [UInt8]) -> Payload? {
        guard let info = OpusPacketInfo(packet) else { return nil }
        let payload = Payload(timestamp: nextTimestamp, marker: isAfterSilence && !info.isSilence, bytes: packet)
        nextTimestamp = nextTimestamp + info.samples
        isAfterSilence = info.isSilence
        return payload
    }

    /// Time goes on without a packet, during discontinuous transmission or while muted.
    package mutating func skip(samples: Int) {
        nextTimestamp = nextTimestamp + max(samples, 0)
        isAfterSilence = true
    }
}
