import SoraWire

/// Which TSNs have arrived, in a ring of bits that exists only while there are gaps.
///
/// Invariant: `highest` is never before `cumulative`; bits are set only for TSNs between the two.
struct ReceivedTSNs {
    /// A TSN further ahead than this is refused: offsets in gap blocks have 16 bits.
    static let maximumGap = 65_535

    private(set) var cumulative: TSN
    private(set) var highest: TSN
    private var bits: [UInt64] = []

    init(initialTSN: TSN) {
        cumulative = initialTSN + -1
        highest = cumulative
    }

    var hasGaps: Bool { highest != cumulative }
    /// How many TSNs the ring can tell apart.
    var capacity: Int { bits.count * 64 }

    func contains(_ tsn: TSN) -> Bool {
        let ahead = tsn - cumulative
        guard ahead > 0 else { return true }
        guard tsn - highest <= 0 else { return false }
        let bit = Int(tsn.rawValue) & (capacity - 1)
        return bits[bit >> 6] >> UInt64(bit & 63) & 1 == 1
    }

    /// Takes a TSN behind `cumulative + 1`, at most `maximumGap` ahead. True if the ring had to grow.
    mutating func insert(_ tsn: TSN) -> Bool {
        let grown = tsn - cumulative >= capacity
        if grown { grow(toHold: tsn - cumulative + 1) }
        let bit = Int(tsn.rawValue) & (capacity - 1)
        bits[bit >> 6] |= 1 << UInt64(bit & 63)
        if tsn - highest > 0 { highest = tsn }
        return grown
    }

    /// Moves on by one TSN, whether or not it was inserted.
    mutating func advance() {
        cumulative += 1
        if highest - cumulative < 0 {
            highest = cumulative
        } else if capacity > 0 {
            let bit = Int(cumulative.rawValue) & (capacity - 1)
            bits[bit >> 6] &= ~(1 << UInt64(bit & 63))
        }
    }

    /// Moves on to a TSN beyond everything that has arrived.
    mutating func jump(to tsn: TSN) {
        guard tsn - highest >= 0 else { return }
        cumulative = tsn
        highest = tsn
        bits = []
    }

    /// Releases the ring when there are no gaps.
    mutating func releaseIfIdle() {
        if !hasGaps && bits.count > 16 { bits = [] }
    }

    /// The runs of TSNs behind the gaps, nearest first, at most `limit`.
    func gapBlocks(limit: Int) -> [SackChunk.GapBlock] {
        var blocks: [SackChunk.GapBlock] = []
        let last = min(highest - cumulative, ReceivedTSNs.maximumGap)
        var offset = 2
        while offset <= last, blocks.count < limit, let start = next(set: true, from: offset, through: last) {
            let end = (next(set: false, from: start + 1, through: last) ?? last + 1) - 1
            blocks.append(
                SackChunk.GapBlock(
                    start: UInt16(truncatingIfNeeded: start), end: UInt16(truncatingIfNeeded: end)))
            offset = end + 2
        }
        return blocks
    }

    private func next(set: Bool, from start: Int, through last: Int) -> Int? {
        var offset = start
        let invert: UInt64 = set ? 0 : ~0
        while offset <= last {
            let position = Int((cumulative + offset).rawValue) & (capacity - 1)
            let word = (bits[position >> 6] ^ invert) >> UInt64(position & 63)
            if word != 0 {
                let found = offset + word.trailingZeroBitCount
                return found <= last ? found : nil
            }
            offset += 64 - (position & 63)
        }
        return nil
    }

    private mutating func grow(toHold span: Int) {
        var size = max(256, capacity)
        while size < span { size *= 2 }
        var larger = [UInt64](repeating: 0, count: size / 64)
        var offset = 1
        let last = highest - cumulative
        while offset <= last {
            let tsn = cumulative + offset
            if contains(tsn) {
                let bit = Int(tsn.rawValue) & (size - 1)
                larger[bit >> 6] |= 1 << UInt64(bit & 63)
            }
            offset += 1
        }
        bits = larger
    }
}
