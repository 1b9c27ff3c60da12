/// Random numbers that depend on the seed, the link and the packet's place in its order, and on nothing else.
///
/// Not on content or size: TLS libraries draw their own randomness, so content differs between runs
/// of the same test, and what the network does must not.
struct PacketDraw: Sendable {
    /// What a number is drawn for; each purpose has its own sequence.
    enum Purpose: UInt64, Sendable { case loss, lossBurst, jitter, reordering, duplication, duplicateJitter }

    private let base: UInt64

    init(seed: UInt64, link: UInt64) {
        base = PacketDraw.mix(seed &+ 0x9E37_79B9_7F4A_7C15 &* (link &+ 1))
    }

    /// 0 ..< 1.
    func fraction(_ purpose: Purpose, packet: UInt64) -> Double {
        let word = PacketDraw.mix(base ^ PacketDraw.mix(packet &* 8 &+ purpose.rawValue))
        return Double(word >> 11) / 9_007_199_254_740_992
    }

    /// The finalizer of SplitMix64.
    private static func mix(_ value: UInt64) -> UInt64 {
        var z = value &+ 0x9E37_79B9_7F4A_7C15
        z = (z ^ z >> 30) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ z >> 27) &* 0x94D0_49BB_1331_11EB
        return z ^ z >> 31
    }
}
