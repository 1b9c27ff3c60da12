/// What a file says about an H.264 stream: its parameter sets, and NAL units with lengths in place of start codes
/// (ISO/IEC 14496-15, 5.3.3).
struct H264ParameterSets {
    private(set) var sequence: [UInt8] = []
    private(set) var picture: [UInt8] = []

    /// AVCDecoderConfigurationRecord; nil before both parameter sets were seen.
    var configuration: [UInt8]? {
        guard sequence.count >= 4, !picture.isEmpty, sequence.count < 65_536, picture.count < 65_536 else { return nil }
        return [1, sequence[1], sequence[2], sequence[3], 0xFF, 0xE1]
            + [UInt8(truncatingIfNeeded: sequence.count >> 8), UInt8(truncatingIfNeeded: sequence.count)] + sequence
            + [1, UInt8(truncatingIfNeeded: picture.count >> 8), UInt8(truncatingIfNeeded: picture.count)] + picture
    }

    /// The access unit (Annex B) with four-byte lengths. Remembers the parameter sets in it.
    mutating func lengthPrefixed(_ annexB: [UInt8]) -> [UInt8] {
        var output: [UInt8] = []
        output.reserveCapacity(annexB.count + 16)
        for unit in Self.units(annexB) {
            guard let first = annexB[unit].first else { continue }
            switch first & 0x1F {
            case 7: sequence = Array(annexB[unit])
            case 8: picture = Array(annexB[unit])
            case 9: continue  // Delimiters have no place in a file.
            default: break
            }
            for shift in [24, 16, 8, 0] { output.append(UInt8(truncatingIfNeeded: unit.count >> shift)) }
            output += annexB[unit]
        }
        return output
    }

    /// NAL units between start codes (00 00 01, with any zeros before it).
    static func units(_ bytes: [UInt8]) -> [Range<Int>] {
        var units: [Range<Int>] = []
        var start: Int?
        var index = 0
        while index + 2 < bytes.count {
            if bytes[index] == 0, bytes[index + 1] == 0, bytes[index + 2] == 1 {
                if let start { units.append(trimmed(bytes, start..<index)) }
                start = index + 3
                index += 3
            } else {
                index += 1
            }
        }
        if let start, start < bytes.count { units.append(start..<bytes.count) }
        return units.filter { !$0.isEmpty }
    }

    private static func trimmed(_ bytes: [UInt8], _ range: Range<Int>) -> Range<Int> {
        var end = range.upperBound
        while end > range.lowerBound, bytes[end - 1] == 0 { end -= 1 }
        return range.lowerBound..<end
    }
}

/// AV1's open bitstream units, as far as a file needs them (AV1 specification 5.3; AV1 in Matroska).
enum AV1Units {
    /// Type of each unit, its range, and that of its payload behind header and size; ends at the first that does not
    /// fit.
    static func units(_ bytes: [UInt8]) -> [(type: UInt8, whole: Range<Int>, payload: Range<Int>)] {
        var output: [(UInt8, Range<Int>, Range<Int>)] = []
        var index = 0
        while index < bytes.count {
            let start = index
            let header = bytes[index]
            index += header & 0x04 != 0 ? 2 : 1
            var size = bytes.count - index
            if header & 0x02 != 0 {
                size = 0
                var shift = 0
                while true {
                    guard index < bytes.count, shift < 56 else { return output }
                    let byte = bytes[index]
                    index += 1
                    size |= Int(byte & 0x7F) << shift
                    shift += 7
                    if byte & 0x80 == 0 { break }
                }
            }
            guard size >= 0, size <= bytes.count - index else { return output }
            output.append((header >> 3 & 0x0F, start..<(index + size), index..<(index + size)))
            index += size
        }
        return output
    }

    static func withoutDelimiters(_ bytes: [UInt8]) -> [UInt8] {
        units(bytes).filter { $0.type != 2 }.flatMap { bytes[$0.whole] }
    }

    /// `av1C` from the sequence header in a key frame; nil without one. Says 8 bit, 4:2:0, which is all that is
    /// offered in SDP (profile 0); the profile is read, the level is an upper bound.
    static func configuration(_ bytes: [UInt8]) -> [UInt8]? {
        guard let sequence = units(bytes).first(where: { $0.type == 1 }) else { return nil }
        // seq_profile (3 bits), still_picture, reduced_still_picture_header, and more.
        guard sequence.payload.count >= 3 else { return nil }
        let profile = bytes[sequence.payload.lowerBound] >> 5
        let level: UInt8 = 8  // 4.0: an upper bound that decoders do not rely on.
        return [0x81, profile << 5 | level, 0x0C, 0x00] + bytes[sequence.whole]
    }
}
