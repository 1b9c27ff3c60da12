import SoraWire

/// Decides when to ask one source for a key frame, for any number of parties that want one.
///
/// The first wish goes out at once; wishes within ``minimumInterval`` of the last request are merged into the next.
/// Until a key frame comes the request is repeated with back-off, so that a lost one does no harm.
package struct KeyFrameRequester: Sendable {
    private enum State {
        /// Nobody waits.
        case idle
        /// A request goes out at `due`; `attempts` went out for this wish.
        case waiting(due: Instant, attempts: Int)
    }

    package let minimumInterval: Duration
    package let maximumInterval: Duration
    private var state = State.idle
    private var lastRequest: Instant?
    /// Requests sent.
    package private(set) var requestCount = 0

    package init(minimumInterval: Duration = .milliseconds(300), maximumInterval: Duration = .seconds(3)) {
        self.minimumInterval = minimumInterval
        self.maximumInterval = maximumInterval
    }

    /// Whether a key frame is still outstanding.
    package var isWaiting: Bool {
        if case .waiting = state { true } else { false }
    }

    /// Somebody needs a key frame. Takes effect at the next ``handleTimeout(now:)``.
    package mutating func request(now: Instant) {
        guard case .idle = state else { return }
        state = .waiting(due: max(now, lastRequest.map { $0 + minimumInterval } ?? now), attempts: 0)
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
        let interval = min(minimumInterval * (1 << min(attempts, 4)), maximumInterval)
        state = .waiting(due: now + interval, attempts: attempts + 1)
        lastRequest = now
        requestCount += 1
        return true
    }
}
