import SoraWire

/// What a frame is for (RFC 6455, 5.2).
package enum WebSocketOpcode: UInt8, Sendable {
    case continuation = 0x0
    case text = 0x1
    case binary = 0x2
    case close = 0x8
    case ping = 0x9
    case pong = 0xA

    /// Control frames may stand between the fragments of a message.
    package var isControl: Bool { rawValue & 0x8 != 0 }
}

/// The bytes in front of a frame's payload.
package struct WebSocketFrameHeader: Sendable, Equatable {
    package var isFinal: Bool
    package var opcode: WebSocketOpcode
    /// The masking key, on frames of clients.
    package var mask: UInt32?
    package var payloadLength: Int

    package init(isFinal: Bool, opcode: WebSocketOpcode, mask: UInt32?, payloadLength: Int) {
        self.isFinal = isFinal
        self.opcode = opcode
        self.mask = mask
        self.payloadLength = payloadLength
    }

    /// Reads a header from the front of what `reader` has left. Nil, with the reader unmoved, if it is cut off.
    /// Bits and lengths that no negotiated extension explains are errors as soon as they are seen.
    package static func read(from reader: inout ByteReader) throws(WebSocketError) -> WebSocketFrameHeader? {
        var bookmark = reader
        guard let first = try? bookmark.readUInt8() else { return nil }
        guard first & 0x70 == 0 else { throw .reservedBits(first) }
        guard let opcode = WebSocketOpcode(rawValue: first & 0x0F) else { throw .unknownOpcode(first & 0x0F) }
        let isFinal = first & 0x80 != 0
        guard isFinal || !opcode.isControl else { throw .fragmentedControlFrame(opcode) }
        guard let second = try? bookmark.readUInt8() else { return nil }
        let short = second & 0x7F
        guard short <= 125 || !opcode.isControl else { throw .oversizedControlFrame(opcode) }
        var length = UInt64(short)
        if short == 126 {
            guard let value = try? bookmark.readUInt16() else { return nil }
            guard value > 125 else { throw .lengthNotMinimal(UInt64(value)) }
            length = UInt64(value)
        } else if short == 127 {
            guard let value = try? bookmark.readUInt64() else { return nil }
            guard value > UInt64(UInt16.max) else { throw .lengthNotMinimal(value) }
            guard value <= UInt64(Int64.max) else { throw .invalidLength(value) }
            length = value
        }
        var mask: UInt32?
        if second & 0x80 != 0 {
            guard let key = try? bookmark.readUInt32() else { return nil }
            mask = key
        }
        reader = bookmark
        return WebSocketFrameHeader(isFinal: isFinal, opcode: opcode, mask: mask, payloadLength: Int(length))
    }

    /// A whole frame around `payload`, masked if there is a key.
    package static func frame(
        isFinal: Bool = true, _ opcode: WebSocketOpcode, mask: UInt32?, payload: [UInt8]
    ) -> [UInt8] {
        var writer = ByteWriter(capacity: payload.count + 14)
        writer.write((isFinal ? 0x80 : 0) | opcode.rawValue)
        let maskBit: UInt8 = mask == nil ? 0 : 0x80
        switch payload.count {
        case ...125: writer.write(maskBit | UInt8(payload.count))
        case ...0xFFFF:
            writer.write(maskBit | 126)
            writer.write(UInt16(payload.count))
        default:
            writer.write(maskBit | 127)
            writer.write(UInt64(payload.count))
        }
        if let mask { writer.write(mask) }
        let start = writer.count
        writer.write(payload)
        if let mask { applyMask(mask, to: &writer.bytes, from: start) }
        return writer.bytes
    }

    /// Masks or unmasks `bytes[start...]`, of which the first is number `phase` of its payload.
    static func applyMask(_ mask: UInt32, to bytes: inout [UInt8], from start: Int, phase: Int = 0) {
        // The key as it stands on the wire, rotated to the phase, twice in a word of memory order.
        let turns = UInt32(phase & 3) * 8
        let rotated = turns == 0 ? mask : mask << turns | mask >> (32 - turns)
        let word = (UInt64(rotated) << 32 | UInt64(rotated)).bigEndian
        bytes.withUnsafeMutableBytes { raw in
            var index = start
            while index + 8 <= raw.count {
                let value = raw.loadUnaligned(fromByteOffset: index, as: UInt64.self) ^ word
                raw.storeBytes(of: value, toByteOffset: index, as: UInt64.self)
                index += 8
            }
            var shift: UInt32 = 24
            while index < raw.count {
                raw[index] ^= UInt8(truncatingIfNeeded: rotated >> shift)
                shift = shift == 0 ? 24 : shift - 8
                index += 1
            }
        }
    }
}
