import SoraWire

/// When to send a request again and when to give up (RFC 8489, 6.2.1 and 6.2.2).
///
/// Over UDP: after 500 ms, doubling, seven times in all, then 16 times the first interval: 39.5 s
/// together. Over a stream: once, and the same 39.5 s.
struct STUNRetransmission: Sendable, Equatable {
    enum Event: Equatable { case retransmit, timeout }

    static let initialInterval = Duration.milliseconds(500)
    private static let streamTimeout = Duration.milliseconds(39_500)

    private(set) var next: Instant
    private(set) var sent = 1
    private var interval: Duration
    private let isReliable: Bool
    private let maximumCount: Int

    init(
        now: Instant, isReliable: Bool = false, initialInterval: Duration = STUNRetransmission.initialInterval,
        maximumCount: Int = 7
    ) {
        self.isReliable = isReliable
        self.maximumCount = maximumCount
        interval = initialInterval
        next = now + (isReliable ? STUNRetransmission.streamTimeout : initialInterval)
    }

    /// What to do at `now`; nil if it is too early.
    mutating func handleTimeout(now: Instant) -> Event? {
        guard now >= next else { return nil }
        if isReliable || sent >= maximumCount { return .timeout }
        sent += 1
        interval = interval * 2
        next = now + (sent == maximumCount ? STUNRetransmission.initialInterval * 16 : interval)
        return .retransmit
    }
}
