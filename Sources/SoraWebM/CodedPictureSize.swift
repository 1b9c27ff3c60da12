/// The picture size that a coded key frame announces, without decoding it.
package enum CodedPictureSize {
    /// Width and height in pixels; nil if `frame` is no key frame or its header is not understood.
    package static func of(_ codec: WebMVideoCodec, _ frame: [UInt8]) -> (width: Int, height: Int)? {
        switch codec {
        case .vp8: vp8(frame)
        case .vp9: vp9(frame)
        case .h264: h264(frame)
        case .av1: av1(frame)
        }
    }

    /// Frame header (RFC 6386, 9.1).
    private static func vp8(_ frame: [UInt8]) -> (width: Int, height: Int)? {
        guard frame.count >= 10, frame[0] & 0x01 == 0, frame[3...5].elementsEqual([0x9D, 0x01, 0x2A]) else {
            return nil
        }
        return (Int(frame[6]) | Int(frame[7] & 0x3F) << 8, Int(frame[8]) | Int(frame[9] & 0x3F) << 8)
    }

    /// Uncompressed header of a key frame (VP9 bitstream, 6.2 and 7.2).
    private static func vp9(_ frame: [UInt8]) -> (width: Int, height: Int)? {
        var bits = BitReader(frame)
        guard bits.read(2) == 0b10, let low = bits.read(1), let high = bits.read(1) else { return nil }
        let profile = low | high << 1
        if profile == 3 { _ = bits.read(1) }
        guard bits.read(1) == 0, bits.read(1) == 0 else { return nil }  // no repeated frame; a key frame
        _ = bits.read(2)
        guard bits.read(24) == 0x498342 else { return nil }
        if profile >= 2 { _ = bits.read(1) }
        guard let colour = bits.read(3) else { return nil }
        if colour != 7 {
            _ = bits.read(1)
            if profile == 1 || profile == 3 { _ = bits.read(3) }
        } else if profile == 1 || profile == 3 {
            _ = bits.read(1)
        }
        guard let width = bits.read(16), let height = bits.read(16) else { return nil }
        return (width + 1, height + 1)
    }

    /// Sequence parameter set (ITU-T H.264, 7.3.2.1.1), cropping applied.
    private static func h264(_ frame: [UInt8]) -> (width: Int, height: Int)? {
        var index = 0
        while index + 4 < frame.count {
            if frame[index] == 0, frame[index + 1] == 0, frame[index + 2] == 1, frame[index + 3] & 0x1F == 7 {
                return sequenceParameters(Array(frame[(index + 4)..<min(frame.count, index + 300)]))
            }
            index += 1
        }
        return nil
    }

    private static func sequenceParameters(_ payload: [UInt8]) -> (width: Int, height: Int)? {
        var bytes: [UInt8] = []
        var zeros = 0
        for byte in payload {
            if zeros >= 2, byte == 3 {
                zeros = 0
                continue
            }
            zeros = byte == 0 ? zeros + 1 : 0
            bytes.append(byte)
        }
        var bits = BitReader(bytes)
        guard let profile = bits.read(8), bits.read(16) != nil, bits.unsigned() != nil else { return nil }
        var chroma = 1
        if [100, 110, 122, 244, 44, 83, 86, 118, 128].contains(profile) {
            guard let format = bits.unsigned() else { return nil }
            chroma = format
            if format == 3 { _ = bits.read(1) }
            _ = bits.unsigned()
            _ = bits.unsigned()
            _ = bits.read(1)
            guard bits.read(1) == 0 else { return nil }  // scaling lists: not worth the way
        }
        guard bits.unsigned() != nil, let order = bits.unsigned() else { return nil }
        if order == 0 {
            _ = bits.unsigned()
        } else if order == 1 {
            _ = bits.read(1)
            _ = bits.unsigned()
            _ = bits.unsigned()
            guard let count = bits.unsigned(), count <= 255 else { return nil }
            for _ in 0..<count { _ = bits.unsigned() }
        }
        guard bits.unsigned() != nil, bits.read(1) != nil, let columns = bits.unsigned(), let rows = bits.unsigned(),
            columns < 1_024, rows < 1_024, let isProgressive = bits.read(1)
        else { return nil }
        if isProgressive == 0 { _ = bits.read(1) }
        _ = bits.read(1)
        var width = (columns + 1) * 16
        var height = (rows + 1) * 16 * (2 - isProgressive)
        if bits.read(1) == 1, let left = bits.unsigned(), let right = bits.unsigned(), let top = bits.unsigned(),
            let bottom = bits.unsigned(), left + right + top + bottom < 1_024
        {
            let unitX = chroma == 1 || chroma == 2 ? 2 : 1
            let unitY = (chroma == 1 ? 2 : 1) * (2 - isProgressive)
            width -= (left + right) * unitX
            height -= (top + bottom) * unitY
        }
        return width > 0 && height > 0 ? (width, height) : nil
    }

    /// Sequence header OBU (AV1 specification, 5.5), up to the frame size.
    private static func av1(_ frame: [UInt8]) -> (width: Int, height: Int)? {
        AV1Units.units(frame).first { $0.type == 1 }.flatMap { av1Sequence(Array(frame[$0.payload])) }
    }

    private static func av1Sequence(_ payload: [UInt8]) -> (width: Int, height: Int)? {
        var bits = BitReader(payload)
        guard bits.read(4) != nil, let isReduced = bits.read(1) else { return nil }
        if isReduced == 1 {
            _ = bits.read(5)
        } else {
            // Timing information is not used in conversation; its fields would follow here.
            guard bits.read(1) == 0, bits.read(1) == 0, let points = bits.read(5) else { return nil }
            for _ in 0...points {
                _ = bits.read(12)
                guard let level = bits.read(5) else { return nil }
                if level > 7 { _ = bits.read(1) }
            }
        }
        guard let widthBits = bits.read(4), let heightBits = bits.read(4), let width = bits.read(widthBits + 1),
            let height = bits.read(heightBits + 1)
        else { return nil }
        return (width + 1, height + 1)
    }
}

/// Bits from the most significant down; nil past the end.
struct BitReader {
    private let bytes: [UInt8]
    private var position = 0

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// Up to 32 bits.
    mutating func read(_ count: Int) -> Int? {
        guard count >= 0, count <= 32, position + count <= bytes.count * 8 else { return nil }
        var value = 0
        for _ in 0..<count {
            value = value << 1 | Int(bytes[position / 8] >> UInt8(7 - position % 8) & 1)
            position += 1
        }
        return value
    }

    /// Exponential-Golomb code (ITU-T H.264, 9.1).
    mutating func unsigned() -> Int? {
        var zeros = 0
        while true {
            guard let bit = read(1) else { return nil }
            if bit == 1 { break }
            zeros += 1
            if zeros > 31 { return nil }
        }
        return read(zeros).map { (1 << zeros) - 1 + $0 }
    }
}
