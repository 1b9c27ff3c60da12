import SoraRTP
import SoraWire

/// Bytes of a hex string; spaces are allowed.
func hex(_ text: String) -> [UInt8] {
    var bytes: [UInt8] = []
    var high: UInt8?
    for character in text.utf8 {
        let nibble: UInt8
        switch character {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): nibble = character - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): nibble = character - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): nibble = character - UInt8(ascii: "A") + 10
        default: continue
        }
        if let first = high {
            bytes.append(first << 4 | nibble)
            high = nil
        } else {
            high = nibble
        }
    }
    return bytes
}

func hexText(_ bytes: [UInt8]) -> String {
    let digits = Array("0123456789abcdef".utf8)
    return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
}

/// Variations of a good input for a parser that must answer each with a value or an error, and never trap:
/// cut at every length, bytes appended, each byte changed, and seeded random bytes.
func variations(of good: [UInt8], seed: UInt64 = 1, random count: Int = 200) -> [[UInt8]] {
    var inputs: [[UInt8]] = []
    for length in 0..<good.count { inputs.append(Array(good[..<length])) }
    for extra in 1...5 { inputs.append(good + [UInt8](repeating: 0xA5, count: extra)) }
    for index in good.indices {
        for mask: UInt8 in [0x01, 0x0F, 0x10, 0x80, 0xFF] {
            var changed = good
            changed[index] ^= mask
            inputs.append(changed)
        }
    }
    var random = RandomSource(seed: seed)
    for _ in 0..<count {
        var changed = good
        for _ in 0..<Int.random(in: 1...6, using: &random) where !changed.isEmpty {
            changed[Int.random(in: 0..<changed.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
        }
        inputs.append(changed)
        inputs.append(random.bytes(Int.random(in: 0...64, using: &random)))
    }
    return inputs
}

/// Seconds and milliseconds as instants of virtual time.
func at(milliseconds: Int) -> Instant { Instant(nanoseconds: Int64(milliseconds) * 1_000_000) }
