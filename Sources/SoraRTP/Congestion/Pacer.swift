import SoraWire

/// Spreads packets over time at a given rate, so that a key frame does not fill the path's queue at once.
///
/// Sound passes first, then repeats, then video, each in order. The rate is raised when the queue would last longer
/// than ``Configuration/maximumQueueTime``. Invariant: the queue never holds more than ``Configuration/maximumBytes``.
package struct Pacer<Element: Sendable>: Sendable {
    package enum Priority: Int, CaseIterable, Sendable { case audio, retransmission, video, padding }

    package struct Configuration: Sendable {
        /// Sending rate over target rate: frames leave faster than the encoder's average.
        package var factor = 2.5
        /// How much may leave at once.
        package var burst: Duration = .milliseconds(5)
        package var maximumQueueTime: Duration = .milliseconds(1500)
        package var maximumBytes = 4 << 20
        package init() {}
    }

    private struct Entry: Sendable {
        var element: Element
        var stream: SSRC
        var size: Int
    }

    private let configuration: Configuration
    private var queues: [[Entry]]
    private var heads: [Int]
    private var bitsPerSecond: Double
    /// Bytes that may leave; negative after a packet larger than the budget.
    private var budget = 0.0
    private var updated: Instant?
    /// Bytes waiting.
    package private(set) var queuedBytes = 0
    /// Packets refused because the queue was full.
    package private(set) var droppedPackets = 0

    package init(bitrate: Int, configuration: Configuration = Configuration()) {
        self.configuration = configuration
        bitsPerSecond = Double(max(bitrate, 1))
        queues = Priority.allCases.map { _ in [] }
        heads = Priority.allCases.map { _ in 0 }
    }

    package mutating func setTargetBitrate(_ bitrate: Int) { bitsPerSecond = Double(max(bitrate, 1)) }

    package var isEmpty: Bool { queuedBytes == 0 }

    /// Bytes per second at which packets leave now.
    private var drainRate: Double {
        max(
            bitsPerSecond * configuration.factor / 8,
            Double(queuedBytes) / configuration.maximumQueueTime.inSeconds)
    }

    /// Queues a packet. False if the queue is full: the packet is not taken.
    @discardableResult
    package mutating func enqueue(
        _ element: Element, stream: SSRC, size: Int, priority: Priority, now: Instant
    ) -> Bool {
        guard queuedBytes + size <= configuration.maximumBytes else {
            droppedPackets += 1
            return false
        }
        refill(now)
        queues[priority.rawValue].append(Entry(element: element, stream: stream, size: max(size, 1)))
        queuedBytes += max(size, 1)
        return true
    }

    /// When ``poll(now:)`` will have the next packet; nil if the queue is empty.
    package var nextTimeout: Instant? {
        guard queuedBytes > 0, let updated else { return nil }
        return budget >= 0 ? updated : updated + .nanoseconds(Int64((-budget / drainRate * 1e9).rounded(.up)) + 1)
    }

    /// The next packet that may leave at `now`.
    package mutating func poll(now: Instant) -> Element? {
        guard queuedBytes > 0 else { return nil }
        refill(now)
        guard budget >= 0 else { return nil }
        for index in queues.indices where heads[index] < queues[index].count {
            let entry = queues[index][heads[index]]
            heads[index] += 1
            if heads[index] == queues[index].count {
                queues[index].removeAll(keepingCapacity: true)
                heads[index] = 0
            } else if heads[index] >= 256 {
                queues[index].removeFirst(heads[index])
                heads[index] = 0
            }
            queuedBytes -= entry.size
            budget -= Double(entry.size)
            return entry.element
        }
        return nil
    }

    /// Drops what is queued for a stream that was stopped.
    package mutating func removeAll(of stream: SSRC) {
        for index in queues.indices {
            queues[index].removeFirst(heads[index])
            heads[index] = 0
            queues[index].removeAll { $0.stream == stream }
        }
        queuedBytes = queues.reduce(0) { $0 + $1.reduce(0) { $0 + $1.size } }
    }

    private mutating func refill(_ now: Instant) {
        if let updated {
            let elapsed = max((now - updated).inSeconds, 0)
            let rate = drainRate
            budget = min(budget + elapsed * rate, rate * configuration.burst.inSeconds)
        } else {
            budget = drainRate * configuration.burst.inSeconds
        }
        updated = max(updated ?? now, now)
    }
}
