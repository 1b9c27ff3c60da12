import SoraWire

/// Times in buckets that are 6 % wide, from a microsecond to a minute; a kilobyte and a half, and cheap to add to.
package struct LatencyHistogram: Sendable, Equatable {
    /// Buckets of one octave.
    private static let parts = 16
    private static let octaves = 26
    private var buckets: [UInt32] = []
    package private(set) var count = 0

    package init() {}

    package mutating func record(_ time: Duration) {
        if buckets.isEmpty { buckets = [UInt32](repeating: 0, count: Self.parts * Self.octaves) }
        let index = Self.bucket(max(1, time / .microseconds(1)))
        buckets[index] &+= 1
        count += 1
    }

    private static func bucket(_ microseconds: Double) -> Int {
        let octave = min(octaves - 1, Int(microseconds.exponent))
        return octave * parts + Int((microseconds.significand - 1) * Double(parts))
    }

    /// The time below which this share of all times lie, as the middle of its bucket; nil if there is none.
    /// - Parameter share: 0...1.
    package func percentile(_ share: Double) -> Duration? {
        guard count > 0 else { return nil }
        var rest = max(1, Int((Double(count) * share).rounded(.up)))
        for (index, bucket) in buckets.enumerated() where bucket > 0 {
            rest -= Int(bucket)
            if rest <= 0 {
                let octave = Double(sign: .plus, exponent: index / Self.parts, significand: 1)
                let middle = octave * (1 + (Double(index % Self.parts) + 0.5) / Double(Self.parts))
                return .nanoseconds(Int64(middle * 1000))
            }
        }
        return nil
    }

    package static func + (a: LatencyHistogram, b: LatencyHistogram) -> LatencyHistogram {
        a.combined(b) { $0 &+ $1 }
    }

    /// What was added since `earlier`.
    package static func - (a: LatencyHistogram, earlier: LatencyHistogram) -> LatencyHistogram {
        a.combined(earlier) { $0 &- $1 }
    }

    private func combined(_ other: LatencyHistogram, _ body: (UInt32, UInt32) -> UInt32) -> LatencyHistogram {
        guard other.count > 0 else { return self }
        var result = LatencyHistogram()
        let own = buckets.isEmpty ? [UInt32](repeating: 0, count: other.buckets.count) : buckets
        result.buckets = zip(own, other.buckets).map(body)
        result.count = result.buckets.reduce(0) { $0 + Int($1) }
        return result
    }
}
