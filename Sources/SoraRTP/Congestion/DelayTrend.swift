import SoraWire

/// Whether the queue on the path grows (after the idea of Google's congestion control: arrival time filter and
/// over-use detector, draft-ietf-rmcat-gcc-02, with a least-squares slope in place of the Kalman filter).
///
/// Packets sent within 5 ms of each other form a group. The differences between the groups' spacing at arrival and at
/// sending, summed up, are the queue's growth; the slope of that sum over the last twenty groups is compared with a
/// threshold that adapts itself, so that flows with losses-based control beside us do not starve us.
struct DelayTrend: Sendable {
    enum Usage: Sendable { case normal, over, under }

    private struct Group: Sendable {
        var firstSent: Instant
        var lastSent: Instant
        var firstArrival: Instant
        var lastArrival: Instant
    }

    private static let burst: Duration = .milliseconds(5)
    private static let window = 20
    private static let smoothing = 0.9
    private static let gain = 4.0

    private var current: Group?
    private var previous: Group?
    /// Time of arrival in ms since the first group, and smoothed accumulated delay in ms.
    private var points: [(time: Double, delay: Double)] = []
    private var firstArrival: Instant?
    private var accumulated = 0.0
    private var smoothed = 0.0
    private var groupCount = 0
    private var threshold = 12.5
    private var lastThresholdUpdate: Instant?
    private var overusedFor = 0.0
    private var lastTrend = 0.0
    private var lastSlope = 0.0
    private(set) var usage = Usage.normal

    /// Notes a packet that arrived, in the order of arrival. Returns true if a group was finished and looked at.
    mutating func add(sentAt: Instant, receivedAt: Instant) -> Bool {
        guard var group = current else {
            current = Group(firstSent: sentAt, lastSent: sentAt, firstArrival: receivedAt, lastArrival: receivedAt)
            return false
        }
        if sentAt < group.firstSent { return false }  // reordered: says nothing
        if belongs(sentAt, receivedAt, to: group) {
            group.lastSent = max(group.lastSent, sentAt)
            group.lastArrival = max(group.lastArrival, receivedAt)
            current = group
            return false
        }
        defer {
            previous = group
            current = Group(firstSent: sentAt, lastSent: sentAt, firstArrival: receivedAt, lastArrival: receivedAt)
        }
        guard let previous else { return false }
        let sending = (group.lastSent - previous.lastSent).inMilliseconds
        let arrival = (group.lastArrival - previous.lastArrival).inMilliseconds
        // A path change or a clock that jumped: begin anew.
        if abs(arrival - sending) > 3000 {
            reset()
            return false
        }
        update(difference: arrival - sending, sending: sending, at: group.lastArrival)
        return true
    }

    private func belongs(_ sentAt: Instant, _ receivedAt: Instant, to group: Group) -> Bool {
        if sentAt - group.firstSent <= DelayTrend.burst { return true }
        // Packets that a sleeping radio delivered in one go, though sent apart, form one group as well.
        let arrival = receivedAt - group.lastArrival
        let growth = (receivedAt - group.firstArrival).inMilliseconds - (sentAt - group.firstSent).inMilliseconds
        return growth < 0 && arrival <= DelayTrend.burst && receivedAt - group.firstArrival < .milliseconds(100)
    }

    private mutating func reset() {
        points.removeAll()
        accumulated = 0
        smoothed = 0
        groupCount = 0
        firstArrival = nil
        previous = nil
        usage = .normal
    }

    private mutating func update(difference: Double, sending: Double, at arrival: Instant) {
        let origin = firstArrival ?? arrival
        firstArrival = origin
        groupCount = min(groupCount + 1, 1000)
        accumulated += difference
        smoothed = DelayTrend.smoothing * smoothed + (1 - DelayTrend.smoothing) * accumulated
        points.append(((arrival - origin).inMilliseconds, smoothed))
        if points.count > DelayTrend.window { points.removeFirst() }
        if points.count == DelayTrend.window { lastSlope = slope() ?? lastSlope }
        detect(sending: sending, at: arrival)
    }

    /// Least squares.
    private func slope() -> Double? {
        let count = Double(points.count)
        let meanTime = points.reduce(0) { $0 + $1.time } / count
        let meanDelay = points.reduce(0) { $0 + $1.delay } / count
        var numerator = 0.0
        var denominator = 0.0
        for point in points {
            numerator += (point.time - meanTime) * (point.delay - meanDelay)
            denominator += (point.time - meanTime) * (point.time - meanTime)
        }
        return denominator > 0 ? numerator / denominator : nil
    }

    private mutating func detect(sending: Double, at arrival: Instant) {
        guard groupCount >= 2 else { return }
        let trend = Double(min(groupCount, 60)) * lastSlope * DelayTrend.gain
        if trend > threshold {
            overusedFor += overusedFor == 0 ? sending / 2 : sending
            if overusedFor > 10, trend >= lastTrend {
                overusedFor = 0
                usage = .over
            }
        } else {
            overusedFor = 0
            usage = trend < -threshold ? .under : .normal
        }
        lastTrend = trend
        adapt(abs(trend), at: arrival)
    }

    private mutating func adapt(_ trend: Double, at arrival: Instant) {
        defer { lastThresholdUpdate = arrival }
        guard let last = lastThresholdUpdate, trend <= threshold + 15 else { return }  // spikes do not count
        let elapsed = min((arrival - last).inMilliseconds, 100)
        threshold += (trend < threshold ? 0.039 : 0.0087) * (trend - threshold) * max(elapsed, 0)
        threshold = min(max(threshold, 6), 600)
    }
}

/// How many bits per second arrive, over a sliding window.
struct ThroughputMeter: Sendable {
    private let window: Duration
    private var samples: [(at: Instant, bytes: Int)] = []
    private var head = 0
    private var total = 0

    init(window: Duration = .milliseconds(500)) { self.window = window }

    mutating func add(_ bytes: Int, at now: Instant) {
        samples.append((now, bytes))
        total += bytes
        while head < samples.count, samples[head].at + window < now {
            total -= samples[head].bytes
            head += 1
        }
        if head > 512 {
            samples.removeFirst(head)
            head = 0
        }
    }

    /// Nil before a fifth of the window was seen.
    var bitsPerSecond: Double? {
        guard head < samples.count, let last = samples.last else { return nil }
        let span = last.at - samples[head].at
        guard span.inSeconds >= window.inSeconds / 5 else { return nil }
        // The first sample's bytes arrived before the span.
        return Double(total - samples[head].bytes) * 8 / span.inSeconds
    }
}
