import SoraWire

/// Additive increase, multiplicative decrease of the delay-based estimate.
///
/// States and ways out: *increase* until over-use, then *decrease* once to 85 % of what arrives, then *hold* until the
/// queue has drained, then *increase* again. Before the first over-use the rate may double every second; near the rate
/// of the last decrease it grows by about one packet a round trip.
struct RateController: Sendable {
    private enum State: Sendable { case increase, hold }

    private var state = State.increase
    private(set) var bitsPerSecond: Double
    private let minimum: Double
    private var lastUpdate: Instant?
    private var lastDecrease: Instant?
    /// Mean and relative variance of the throughput at decreases: the link's capacity as far as known.
    private var capacity: Double?
    private var capacityDeviation = 0.4
    private(set) var hasSeenOveruse = false
    private var rateAfterDrain: Double?

    init(start: Double, minimum: Double) {
        bitsPerSecond = start
        self.minimum = minimum
    }

    /// - Parameters:
    ///   - throughput: bits per second that arrive now.
    ///   - isQueueLong: so much stands in the path's queue that going a little below its capacity would take seconds
    ///     to empty it.
    mutating func update(
        _ usage: DelayTrend.Usage, throughput: Double?, isQueueLong: Bool = false, roundTripTime: Duration, now: Instant
    ) {
        let elapsed = lastUpdate.map { min(max((now - $0).inSeconds, 0), 1) } ?? 0
        lastUpdate = now
        switch usage {
        case .over:
            // One decrease must have time to show before the next.
            if let lastDecrease, now - lastDecrease < roundTripTime + .milliseconds(100) { return }
            decrease(throughput, isQueueLong, now)
        case .under:
            state = .hold
        case .normal:
            if state == .hold {
                state = .increase
                if let rate = rateAfterDrain { bitsPerSecond = max(bitsPerSecond, rate) }
                rateAfterDrain = nil
                return
            }
            increase(throughput, elapsed: elapsed, roundTripTime: roundTripTime)
        }
    }

    /// A probe proved that more gets through.
    mutating func raise(to rate: Double) {
        if rate > bitsPerSecond { bitsPerSecond = rate }
    }

    /// Something else (loss) allows less: growth starts from there.
    mutating func limit(to rate: Double) {
        if rate < bitsPerSecond { bitsPerSecond = max(rate, minimum) }
        if let after = rateAfterDrain, rate < after { rateAfterDrain = max(rate, minimum) }
    }

    private mutating func decrease(_ throughput: Double?, _ isQueueLong: Bool, _ now: Instant) {
        hasSeenOveruse = true
        let measured = throughput ?? bitsPerSecond
        if let known = capacity, measured < known * (1 - 3 * deviation) { capacity = nil }  // another path
        noteCapacity(measured)
        let rate = max(min(bitsPerSecond, 0.85 * measured), minimum)
        // A long queue is emptied by going well below for a while, and then back.
        rateAfterDrain = isQueueLong ? max(rate, rateAfterDrain ?? 0) : nil
        bitsPerSecond = isQueueLong ? max(min(rate, 0.5 * measured), minimum) : rate
        lastDecrease = now
        state = .hold
    }

    private var deviation: Double { capacityDeviation.squareRoot() * 0.1 }

    private mutating func noteCapacity(_ measured: Double) {
        guard let known = capacity else {
            capacity = measured
            return
        }
        let mean = 0.95 * known + 0.05 * measured
        let relative = (measured - mean) / max(mean, 1)
        capacityDeviation = min(max(0.95 * capacityDeviation + 0.05 * relative * relative * 100, 0.4), 2.5)
        capacity = mean
    }

    private mutating func increase(_ throughput: Double?, elapsed: Double, roundTripTime: Duration) {
        if let known = capacity, let throughput, throughput > known * (1 + 3 * deviation) { capacity = nil }
        let rate = bitsPerSecond
        if !hasSeenOveruse {
            // What arrives without a growing queue is carried, whatever was thought before.
            bitsPerSecond = max(rate * (1 + elapsed), 0.9 * (throughput ?? 0))
        } else if capacity != nil {
            // About one average packet per response time.
            let frame = rate / 30
            let packets = max((frame / (1200 * 8)).rounded(.up), 1)
            let response = roundTripTime.inSeconds + 0.1
            bitsPerSecond += max(frame / packets / response, 4000) * elapsed
        } else {
            bitsPerSecond *= 1 + 0.08 * elapsed
        }
        // Not far beyond what was ever tried: an application that sends little proves nothing.
        if let throughput { bitsPerSecond = min(bitsPerSecond, max(rate, 1.5 * throughput + 10_000)) }
    }
}

/// The loss-based estimate: more than 10 % loss cuts the rate, less than 2 % lets it grow.
struct LossController: Sendable {
    private(set) var bitsPerSecond: Double
    private let minimum: Double
    private var lost = 0
    private var expected = 0
    private var lastUpdate: Instant?
    private var lastDecrease: Instant?
    /// Loss of the last interval, 0...1.
    private(set) var lossFraction = 0.0

    init(start: Double, minimum: Double) {
        bitsPerSecond = start
        self.minimum = minimum
    }

    /// Counts what feedback told. A packet that came after it was reported lost makes up for that.
    mutating func add(lost: Int, received: Int) {
        self.lost += lost
        expected += lost + received
    }

    mutating func update(limit: Double, roundTripTime: Duration, now: Instant) {
        let last = lastUpdate ?? now
        if lastUpdate == nil { lastUpdate = now }
        guard now - last >= .milliseconds(200), expected >= 20 else { return }
        lossFraction = min(max(Double(lost) / Double(expected), 0), 1)
        let elapsed = min((now - last).inSeconds, 1)
        lost = 0
        expected = 0
        lastUpdate = now
        if lossFraction > 0.1 {
            if let lastDecrease, now - lastDecrease < .milliseconds(300) + roundTripTime { return }
            bitsPerSecond = max(min(bitsPerSecond, limit) * (1 - 0.5 * lossFraction), minimum)
            lastDecrease = now
        } else if lossFraction < 0.02 {
            bitsPerSecond = max(min(bitsPerSecond * (1 + elapsed), limit * 1.5), minimum)
        }
    }
}
