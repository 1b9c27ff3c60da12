/// SipHash-2-4: a short keyed hash. It proves that a state cookie that comes back is one that we made.
struct SipHash {
    private let key0: UInt64
    private let key1: UInt64

    init(key0: UInt64, key1: UInt64) {
        self.key0 = key0
        self.key1 = key1
    }

    /// The tag of `bytes[range]`; the range must lie within the array (an empty tag of zero otherwise).
    func tag(_ bytes: [UInt8], in range: Range<Int>) -> UInt64 {
        guard range.lowerBound >= 0, range.upperBound <= bytes.count else { return 0 }
        var v0 = key0 ^ 0x736F_6D65_7073_6575
        var v1 = key1 ^ 0x646F_7261_6E64_6F6D
        var v2 = key0 ^ 0x6C79_6765_6E65_7261
        var v3 = key1 ^ 0x7465_6462_7974_6573

        func rotate(_ value: UInt64, _ bits: UInt64) -> UInt64 { value << bits | value >> (64 - bits) }
        func round() {
            v0 = v0 &+ v1
            v1 = rotate(v1, 13) ^ v0
            v0 = rotate(v0, 32)
            v2 = v2 &+ v3
            v3 = rotate(v3, 16) ^ v2
            v0 = v0 &+ v3
            v3 = rotate(v3, 21) ^ v0
            v2 = v2 &+ v1
            v1 = rotate(v1, 17) ^ v2
            v2 = rotate(v2, 32)
        }
        func absorb(_ word: UInt64) {
            v3 ^= word
            round()
            round()
            v0 ^= word
        }

        var word: UInt64 = 0
        var count: UInt64 = 0
        for index in range {
            word |= UInt64(bytes[index]) << ((count & 7) * 8)
            count += 1
            if count & 7 == 0 {
                absorb(word)
                word = 0
            }
        }
        absorb(word | (count & 0xFF) << 56)
        v2 ^= 0xFF
        for _ in 0..<4 { round() }
        return v0 ^ v1 ^ v2 ^ v3
    }
}
