import SoraWire

/// Stamped messages at an even rate.
struct MessageStream {
    private let perSecond: Double
    private let size: Int
    private let start: Instant
    private var count: UInt64 = 0

    /// - Parameter size: At least ``Stamp/length``.
    init(perSecond: Double, size: Int, start: Instant) {
        self.perSecond = max(0.001, perSecond)
        self.size = max(size, Stamp.length)
        self.start = start
    }

    /// When the next message is due.
    var nextTime: Instant { start + .nanoseconds(Int64(Double(count) / perSecond * 1e9)) }

    /// The next message that is due.
    mutating func next(now: Instant) -> [UInt8]? {
        guard nextTime <= now else { return nil }
        var message = [UInt8](repeating: 0x2E, count: size)
        Stamp(sequence: count, time: now).write(to: &message)
        count += 1
        return message
    }
}
