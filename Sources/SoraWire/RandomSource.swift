/// The random numbers of a state machine: the system's in production, a seeded sequence in tests.
///
/// Injected so that a run can be repeated exactly. A seeded source is not fit for secrets.
public struct RandomSource: RandomNumberGenerator, Sendable {
    private enum Kind {
        case system
        case seeded(UInt64)
    }
    private var kind: Kind

    /// The operating system's cryptographically secure generator.
    public static let system = RandomSource(kind: .system)

    /// A repeatable sequence (SplitMix64) for tests and simulations.
    public init(seed: UInt64) { kind = .seeded(seed) }

    private init(kind: Kind) { self.kind = kind }

    public mutating func next() -> UInt64 {
        switch kind {
        case .system:
            var generator = SystemRandomNumberGenerator()
            return generator.next()
        case .seeded(var state):
            state &+= 0x9E37_79B9_7F4A_7C15
            kind = .seeded(state)
            var mixed = state
            mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
            mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
            return mixed ^ (mixed >> 31)
        }
    }

    /// A source for another machine: the system's again, or an independent seeded sequence.
    public mutating func split() -> RandomSource {
        switch kind {
        case .system: .system
        case .seeded: RandomSource(seed: next())
        }
    }

    /// `count` random bytes.
    public mutating func bytes(_ count: Int) -> [UInt8] {
        var result: [UInt8] = []
        result.reserveCapacity(count)
        while result.count < count {
            var word = next()
            for _ in 0..<min(8, count - result.count) {
                result.append(UInt8(truncatingIfNeeded: word))
                word >>= 8
            }
        }
        return result
    }

    /// `count` characters drawn evenly from `alphabet` (which must not be empty).
    public mutating func string(_ count: Int, from alphabet: [Character]) -> String {
        var text = ""
        for _ in 0..<count { text.append(alphabet[Int.random(in: 0..<alphabet.count, using: &self)]) }
        return text
    }
}
