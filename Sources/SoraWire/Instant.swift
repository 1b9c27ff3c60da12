/// A point on a monotonic clock, in nanoseconds since an arbitrary origin.
///
/// State machines never read a clock: whoever drives them passes `now`. Tests advance it at will.
@frozen
public struct Instant: Comparable, Hashable, Sendable, CustomStringConvertible {
    public var nanoseconds: Int64

    @inlinable public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    /// The origin, for tests that start at zero.
    public static let zero = Instant(nanoseconds: 0)
    /// Later than every other instant: "no deadline".
    public static let distantFuture = Instant(nanoseconds: .max)

    @inlinable
    public static func < (a: Instant, b: Instant) -> Bool { a.nanoseconds < b.nanoseconds }

    /// Saturates at the ends of the clock instead of trapping.
    @inlinable
    public static func + (instant: Instant, duration: Duration) -> Instant {
        let (sum, overflow) = instant.nanoseconds.addingReportingOverflow(duration.wholeNanoseconds)
        return Instant(
            nanoseconds: overflow ? (duration < .zero ? .min : .max) : sum)
    }

    @inlinable
    public static func - (instant: Instant, duration: Duration) -> Instant {
        instant + (.zero - duration)
    }

    /// How much time passed from `b` to `a`; negative if `a` is earlier.
    @inlinable
    public static func - (a: Instant, b: Instant) -> Duration {
        let (difference, overflow) = a.nanoseconds.subtractingReportingOverflow(b.nanoseconds)
        return .nanoseconds(overflow ? (a < b ? .min : .max) : difference)
    }

    @inlinable public static func += (instant: inout Instant, duration: Duration) {
        instant = instant + duration
    }

    public var description: String { "\(Double(nanoseconds) / 1e9)s" }
}

extension Duration {
    /// This duration in whole nanoseconds, rounded towards zero and clamped to 64 bits
    /// (plus or minus 292 years).
    @inlinable
    public var wholeNanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (scaled, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        guard !overflow else { return seconds < 0 ? .min : .max }
        let (sum, overflowSum) = scaled.addingReportingOverflow(attoseconds / 1_000_000_000)
        return overflowSum ? (seconds < 0 ? .min : .max) : sum
    }

    /// This duration in milliseconds, with fractions.
    @inlinable public var inMilliseconds: Double { Double(wholeNanoseconds) / 1e6 }
    /// This duration in seconds, with fractions.
    @inlinable public var inSeconds: Double { Double(wholeNanoseconds) / 1e9 }
}
