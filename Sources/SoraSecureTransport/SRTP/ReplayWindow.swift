/// Which packet indices of a stream were seen: the last ``size`` of them (RFC 3711 3.3.2 asks for at
/// least 64; WebRTC's video wants more).
///
/// A ring of 64-bit words: moving on clears whole words, so any step costs at most one pass.
struct ReplayWindow {
    enum Verdict { case new, replayed, tooOld }

    /// Number of bits in the ring. One word of them is always being refilled, hence ``size``.
    private static let bits = 1024
    /// How far behind the highest index a packet is still accepted.
    static let size: UInt64 = UInt64(bits - 64)

    /// The highest index seen, or nil before the first.
    private(set) var highest: UInt64?
    private var words = InlineArray<16, UInt64>(repeating: 0)

    /// Whether a packet with `index` may be accepted.
    func check(_ index: UInt64) -> Verdict {
        guard let highest, index <= highest else { return .new }
        guard highest - index < Self.size else { return .tooOld }
        let (word, mask) = Self.place(of: index)
        return words[word] & mask == 0 ? .new : .replayed
    }

    /// Remembers `index`, whose ``check(_:)`` said `.new`.
    mutating func insert(_ index: UInt64) {
        if let highest {
            if index > highest {
                let steps = min(index >> 6 &- highest >> 6, 16)
                for step in 0..<Int(steps) {
                    words[Int(truncatingIfNeeded: (index >> 6 &- UInt64(step)) & 15)] = 0
                }
                self.highest = index
            }
        } else {
            highest = index
        }
        let (word, mask) = Self.place(of: index)
        words[word] |= mask
    }

    private static func place(of index: UInt64) -> (word: Int, mask: UInt64) {
        (Int(truncatingIfNeeded: index >> 6 & 15), 1 << (index & 63))
    }
}
