import CDtlsTestClock
import SoraWire

/// The clock of OpenSSL's DTLS timers, which state machines cannot be given as an argument.
///
/// A test in virtual time sets it before every call into a machine that owns a `DTLSEndpoint`, on the
/// thread that makes the call; then handshakes are repeated exactly after 50, 100, 200 ms. Other
/// threads keep the real time. A test must stay on one thread (not `async`) between `set` and `reset`.
package enum DTLSClock {
    /// Makes this thread's time `now`.
    package static func set(_ now: Instant) { dtls_test_clock_set(now.nanoseconds) }

    /// Gives this thread the real time back.
    package static func reset() { dtls_test_clock_reset() }

    /// Runs `body` at the time `now`, and gives the real time back.
    package static func at<Result>(_ now: Instant, _ body: () throws -> Result) rethrows -> Result {
        set(now)
        defer { reset() }
        return try body()
    }
}
