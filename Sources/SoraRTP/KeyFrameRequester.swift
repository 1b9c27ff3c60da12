import SoraWire

/// Decides when to ask one source for a key frame, for any number of parties that want one.
///
/// The first wish goes out at once; wishes within ``shortestInterval`` of the last request are merged into the next, so
/// that who comes just behind a key frame waits no longer than that. A run of ``burst`` requests (and of what the time of
/// the run itself allows) may come at this pace, then one per ``interval``: many parties cost the source no more. Until a
/// key frame comes the request is repeated with back-off, so that a lost one does no harm.
package struct KeyFrameRequester: Sendable {
    private enum State {
        /// Nobody waits.
        case idle
        /// A request goes out at `due`; `attempts` went out for this wish.
        case waiting(due: Instant, attempts: Int)
    }

    package let shortestInterval: Duration
    package let interval: Duration
    package let burst: Int
    package let maximumInterval: Duration
    private var state = State.idle
    private var lastRequest: Instant?
    /// Up to when the requests so far have used the pace of one per ``interval``.
    private var paidUntil: Instant?
    /// Requests sent.
    package private(set) var requestCount = 0

    package init(
        interval: Duration = .milliseconds(300), shortestInterval: Duration = .milliseconds(100), burst: Int = 3,
        maximumInterval: Duration = .seconds(3)
    ) {
        self.interval = interval
        self.shortestInterval = min(shortestInterval, interval)
        self.burst = max(1, burst)
        self.maximumInterval = maximumInterval
    }

    /// Whether a key frame is still outstanding.
    package var isWaiting: Bool {
        if case .waiting = state { true } else { false }
    }

    /// Somebody needs a key frame. Takes effect at the next ``handleTimeout(now:)``.
    package mutating func request(now: Instant) {
        guard case .idle = state else { return }
        var due = now
        if let lastRequest { due = max(due, lastRequest + shortestInterval) }
        if let paidUntil { due = max(due, paidUntil - interval * (burst - 1)) }
        state = .waiting(due: due, attempts: 0)
    }

    /// A key frame came (or is complete): everybody is served.
    package mutating func keyFrameArrived() { state = .idle }

    /// The source went away or was paused: stop asking.
    package mutating func cancel() { state = .idle }

    package var nextTimeout: Instant? {
        if case .waiting(let due, _) = state { due } else { nil }
    }

    /// Whether to send a request now.
    package mutating func handleTimeout(now: Instant) -> Bool {
        guard case .waiting(let due, let attempts) = state, due <= now else { return false }
        let pause = min(interval * (1 << min(attempts, 4)), maximumInterval)
        state = .waiting(due: now + pause, attempts: attempts + 1)
        lastRequest = now
        paidUntil = max(paidUntil ?? now, now) + interval
        requestCount += 1
        return true
    }
}
