import SoraWire

/// What a simulated one-way link does to packets. The default is a perfect link.
package struct LinkConditions: Sendable, Equatable {
    /// Time from one end to the other, for each packet.
    package var delay: Duration
    /// Largest additional time; each packet draws its own, evenly from zero to this. Alone it does not change
    /// the order of packets.
    package var jitter: Duration
    /// Share of packets lost at random, 0...1.
    package var loss: Double
    /// Mean number of packets lost in a row, at least 1: 1 loses each packet independently.
    package var meanLossBurst: Double
    /// Share of packets that overtake others: they skip queue order and jitter's ordering, 0...1.
    package var reordering: Double
    /// How much later a reordered packet arrives.
    package var reorderingDelay: Duration
    /// Share of packets that arrive twice, 0...1.
    package var duplication: Double
    /// Bits per second; nil is unlimited.
    package var bitsPerSecond: Int?
    /// Bytes that wait for the rate limit before more are dropped.
    package var queueBytes: Int
    /// Bytes that each packet counts more than its payload (28: IPv4 and UDP headers).
    package var overheadBytes: Int
    /// Longer payloads are dropped; nil carries any.
    package var maximumPayload: Int?

    package init(
        delay: Duration = .zero, jitter: Duration = .zero, loss: Double = 0, meanLossBurst: Double = 1,
        reordering: Double = 0, reorderingDelay: Duration = .milliseconds(10), duplication: Double = 0,
        bitsPerSecond: Int? = nil, queueBytes: Int = 128 * 1_024, overheadBytes: Int = 28,
        maximumPayload: Int? = nil
    ) {
        self.delay = delay
        self.jitter = jitter
        self.loss = loss
        self.meanLossBurst = meanLossBurst
        self.reordering = reordering
        self.reorderingDelay = reorderingDelay
        self.duplication = duplication
        self.bitsPerSecond = bitsPerSecond
        self.queueBytes = queueBytes
        self.overheadBytes = overheadBytes
        self.maximumPayload = maximumPayload
    }

    /// A perfect link.
    package static let perfect = LinkConditions()
}
