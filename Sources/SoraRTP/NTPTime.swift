import SoraWire

/// A wall-clock time as RTCP carries it: seconds since 1900 in 32.32 fixed point (RFC 3550, 4).
///
/// The stack knows no wall clock: whoever drives it may anchor this to any origin, as long as both media of a
/// connection use the same one. Differences wrap every 136 years.
package struct NTPTime: Hashable, Sendable, CustomStringConvertible {
    package var rawValue: UInt64
    package init(_ rawValue: UInt64) { self.rawValue = rawValue }

    /// The time `now` when the clock's origin is `origin` on the wall.
    package init(_ now: Instant, origin: NTPTime = NTPTime(0)) {
        rawValue = origin.rawValue &+ NTPTime.fixedPoint(nanoseconds: now.nanoseconds)
    }

    /// Middle 32 bits: 16.16 seconds, the form of LSR and LRR.
    package var compact: UInt32 { UInt32(truncatingIfNeeded: rawValue >> 16) }

    /// Time passed from `other` to this, negative if this is earlier.
    package func duration(since other: NTPTime) -> Duration {
        let difference = Int64(bitPattern: rawValue &- other.rawValue)
        // Split so that nothing overflows: whole seconds fit in 32 bits.
        let seconds = difference >> 32
        let fraction = difference & 0xFFFF_FFFF
        return .nanoseconds(seconds * 1_000_000_000 + (fraction * 1_000_000_000) >> 32)
    }

    package static func + (time: NTPTime, duration: Duration) -> NTPTime {
        NTPTime(time.rawValue &+ fixedPoint(nanoseconds: duration.wholeNanoseconds))
    }

    private static func fixedPoint(nanoseconds: Int64) -> UInt64 {
        var seconds = nanoseconds / 1_000_000_000
        var rest = nanoseconds % 1_000_000_000
        if rest < 0 {
            seconds -= 1
            rest += 1_000_000_000
        }
        let fraction = (UInt64(rest) << 32) / 1_000_000_000
        return UInt64(bitPattern: seconds) << 32 | fraction
    }

    package var description: String { "\(rawValue >> 32).\((rawValue & 0xFFFF_FFFF) * 1000 >> 32)" }
}

/// Durations in the 16.16 seconds of report blocks.
package enum CompactDuration {
    /// Saturates at 0 and at the maximum (18 hours).
    package static func encode(_ duration: Duration) -> UInt32 {
        let nanoseconds = duration.wholeNanoseconds
        guard nanoseconds > 0 else { return 0 }
        let seconds = UInt64(nanoseconds) / 1_000_000_000
        guard seconds < 0xFFFF else { return .max }
        let rest = UInt64(nanoseconds) % 1_000_000_000
        return UInt32(seconds << 16 | (rest << 16) / 1_000_000_000)
    }

    package static func decode(_ value: UInt32) -> Duration {
        .nanoseconds(Int64((UInt64(value) * 1_000_000_000) >> 16))
    }
}
