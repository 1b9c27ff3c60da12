import SoraWire

/// Round-trip estimate and retransmission timeout (RFC 9260, 6.3.1).
struct RetransmissionTimeout {
    private let minimum: Int64
    private let maximum: Int64
    /// Nanoseconds.
    private var variation: Int64 = 0
    /// Smoothed round trip; nil before the first measurement.
    private(set) var smoothed: Duration?
    /// Shortest round trip seen.
    private(set) var shortest: Duration?
    /// How long to wait for an acknowledgement now, back-off included.
    private(set) var current: Duration

    init(configuration: SCTPConfiguration) {
        minimum = max(configuration.minimumRetransmissionTimeout.wholeNanoseconds, 1_000_000)
        maximum = max(configuration.maximumRetransmissionTimeout.wholeNanoseconds, minimum)
        let initial = configuration.initialRetransmissionTimeout.wholeNanoseconds
        current = .nanoseconds(min(max(initial, minimum), maximum))
    }

    /// Takes a measurement of data that was sent once (Karn's rule is the caller's). Ends the back-off.
    mutating func measured(_ roundTrip: Duration) {
        let sample = min(max(roundTrip.wholeNanoseconds, 0), 3_600_000_000_000)
        shortest = min(shortest ?? .nanoseconds(sample), .nanoseconds(sample))
        let mean: Int64
        if let smoothed {
            let old = smoothed.wholeNanoseconds
            variation = (3 * variation + abs(old - sample)) / 4
            mean = (7 * old + sample) / 8
        } else {
            variation = sample / 2
            mean = sample
        }
        smoothed = .nanoseconds(mean)
        endBackOff()
    }

    /// New data was acknowledged: the path carries again, so that the next loss waits no longer than the
    /// measured round trip asks for. Does nothing before the first measurement.
    mutating func endBackOff() {
        guard let smoothed else { return }
        current = .nanoseconds(min(max(smoothed.wholeNanoseconds + 4 * variation, minimum), maximum))
    }

    /// A timer ran out: wait twice as long next time, within the maximum.
    mutating func backOff() {
        current = .nanoseconds(min(current.wholeNanoseconds * 2, maximum))
    }
}
