import SoraWire

/// Reads and writes RTCP compounds. The SRTCP trailer must be off before.
package enum RTCP {
    /// The first 4 bits of a compound's second byte tell it from RTP on one port (RFC 5761, 4).
    package static func isRTCP(_ packet: [UInt8]) -> Bool {
        packet.count >= 4 && packet[0] >> 6 == 2 && (192...223).contains(packet[1])
    }

    /// Reads all packets of a compound, reduced size (RFC 5506) included. Unknown packets are kept and stepped over.
    ///
    /// Work and memory are linear in the input. One malformed packet refuses the compound: its lengths cannot be
    /// trusted any more.
    package static func parse(compound: [UInt8]) throws(RTPError) -> [RTCPPacket] {
        var packets: [RTCPPacket] = []
        var reader = ByteReader(compound)
        guard !compound.isEmpty else { throw .truncated(field: "RTCP head", needed: 4, available: 0) }
        while !reader.isAtEnd {
            guard let first = reader.peekUInt8(), let type = reader.peekUInt8(at: 1),
                let high = reader.peekUInt8(at: 2), let low = reader.peekUInt8(at: 3)
            else { throw .truncated(field: "RTCP head", needed: 4, available: reader.remaining) }
            guard first >> 6 == 2 else { throw .unsupportedVersion(first >> 6) }
            let length = (Int(high) << 8 | Int(low)) * 4
            guard reader.remaining >= 4 + length else {
                throw .truncated(field: "RTCP packet", needed: 4 + length, available: reader.remaining)
            }
            var bodyLength = length
            if first & 0x20 != 0 {
                guard reader.remaining == 4 + length, length > 0,
                    let padding = reader.peekUInt8(at: 3 + length)
                else { throw .invalidPadding(count: 0, available: 0) }  // only the last packet is padded
                guard padding > 0, padding % 4 == 0, Int(padding) <= length else {
                    throw .invalidPadding(count: Int(padding), available: length)
                }
                bodyLength -= Int(padding)
            }
            do throws(WireError) {
                try reader.skip(4)
                let body = try reader.readSubreader(bodyLength)
                try reader.skip(length - bodyLength)
                packets.append(try RTCPPacket(type: type, format: first & 0x1F, body: body))
            } catch {
                throw .malformedRTCP(packetType: type, reason: error)
            }
        }
        return packets
    }

    /// The packets' bytes, one behind the other. The caller keeps to the order of RFC 3550, 6.1 (report first) where
    /// reduced size was not negotiated, and to the datagram size.
    package static func serialize(_ packets: [RTCPPacket]) -> [UInt8] {
        var writer = ByteWriter(capacity: 128)
        for packet in packets { packet.write(to: &writer) }
        return writer.bytes
    }

    /// Serializes into as few compounds as fit `limit` bytes each. A packet above the limit stands alone.
    package static func serialize(_ packets: [RTCPPacket], limit: Int) -> [[UInt8]] {
        var compounds: [[UInt8]] = []
        var current = ByteWriter(capacity: 128)
        for packet in packets {
            var next = ByteWriter(capacity: 64)
            packet.write(to: &next)
            if current.count > 0, current.count + next.count > limit {
                compounds.append(current.bytes)
                current = ByteWriter(capacity: 128)
            }
            current.write(next.bytes)
        }
        if current.count > 0 { compounds.append(current.bytes) }
        return compounds
    }
}

/// RTCP packet types (RFC 3550, RFC 4585, RFC 3611).
enum RTCPType {
    static let senderReport: UInt8 = 200
    static let receiverReport: UInt8 = 201
    static let sourceDescription: UInt8 = 202
    static let bye: UInt8 = 203
    static let transportFeedback: UInt8 = 205
    static let payloadFeedback: UInt8 = 206
    static let extendedReport: UInt8 = 207
}
