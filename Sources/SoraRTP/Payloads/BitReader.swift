/// Reads bit fields, most significant bit first, and never past the end.
struct BitReader: Sendable {
    private let bytes: [UInt8]
    private var position: Int
    private let end: Int

    init(_ bytes: [UInt8], in range: Range<Int>) {
        self.bytes = bytes
        let upper = min(max(range.upperBound, 0), bytes.count)
        position = min(max(range.lowerBound, 0), upper) * 8
        end = upper * 8
    }

    var remaining: Int { end - position }

    /// The next `count` bits, 0...32; nil if fewer are left.
    mutating func read(_ count: Int) -> UInt32? {
        guard count >= 0, count <= 32, count <= remaining else { return nil }
        var value: UInt32 = 0
        for _ in 0..<count {
            value = value << 1 | UInt32(bytes[position >> 3] >> UInt8(7 - position & 7) & 1)
            position += 1
        }
        return value
    }

    mutating func readFlag() -> Bool? { read(1).map { $0 != 0 } }

    /// A number below `limit` in the non-symmetric code of AV1 (4.10.7); `limit` is at least 1.
    mutating func readNonSymmetric(_ limit: UInt32) -> UInt32? {
        guard limit > 1 else { return limit == 1 ? 0 : nil }
        let width = 32 - limit.leadingZeroBitCount
        let short = (UInt32(1) << UInt32(width)) &- limit
        guard let value = read(width - 1) else { return nil }
        if value < short { return value }
        guard let extra = read(1) else { return nil }
        return value << 1 &- short &+ extra
    }
}

/// Writes bit fields, most significant bit first.
struct BitWriter: Sendable {
    private(set) var bytes: [UInt8] = []
    private var used = 0  // bits of the last byte

    mutating func write(_ value: UInt32, _ count: Int) {
        for bit in stride(from: count - 1, through: 0, by: -1) {
            if used == 0 { bytes.append(0) }
            bytes[bytes.count - 1] |= UInt8(value >> UInt32(bit) & 1) << UInt8(7 - used)
            used = (used + 1) & 7
        }
    }

    mutating func write(_ flag: Bool) { write(flag ? 1 : 0, 1) }

    /// The counterpart of ``BitReader/readNonSymmetric(_:)``.
    mutating func writeNonSymmetric(_ value: UInt32, limit: UInt32) {
        guard limit > 1, value < limit else { return }
        let width = 32 - limit.leadingZeroBitCount
        let short = (UInt32(1) << UInt32(width)) &- limit
        if value < short {
            write(value, width - 1)
        } else {
            write((value &+ short) >> 1, width - 1)
            write((value &+ short) & 1, 1)
        }
    }
}
