import SoraWire

/// The sender's estimate of what the path carries, from transport-wide feedback, receiver reports and REMB.
///
/// The target is the least of the delay-based estimate, the loss-based one and the receiver's REMB, within the
/// configured bounds.
package struct BandwidthEstimator: Sendable {
    package struct Configuration: Sendable {
        /// Bits per second.
        package var minimum = 30_000.0
        package var start = 500_000.0
        package var maximum = 20_000_000.0
        package init() {}
    }

    private let configuration: Configuration
    private var trend = DelayTrend()
    private var delayBased: RateController
    private var lossBased: LossController
    private var standing = StandingQueue()
    private var meter = ThroughputMeter()
    private var remb: Double?
    private var probes: [ProbeMeasurement] = []
    /// From feedback and reports, smoothed.
    package private(set) var roundTripTime: Duration = .milliseconds(100)
    private var lastFeedback: Instant?

    package init(configuration: Configuration = Configuration()) {
        self.configuration = configuration
        delayBased = RateController(start: configuration.start, minimum: configuration.minimum)
        lossBased = LossController(start: configuration.maximum, minimum: configuration.minimum)
    }

    /// Bits per second, everything included, that may be sent.
    package var targetBitrate: Int {
        var rate = min(delayBased.bitsPerSecond, lossBased.bitsPerSecond)
        if let remb { rate = min(rate, remb) }
        return Int(min(max(rate, configuration.minimum), configuration.maximum))
    }

    /// Loss of the last interval, 0...1.
    package var lossFraction: Double { lossBased.lossFraction }
    /// Bits per second that arrive, as far as known.
    package var throughput: Int? { meter.bitsPerSecond.map { Int($0) } }
    /// The path's limit has not been met yet: probing makes sense.
    package var isStartingUp: Bool { !delayBased.hasSeenOveruse }

    /// Takes what one feedback packet told.
    package mutating func handle(_ results: [PacketResult], now: Instant) {
        var lost = 0
        var received = 0
        var newest: Instant?
        for result in results {
            if result.receivedAt != nil {
                received += 1
                if result.wasReportedLost { lost -= 1 }
                newest = max(newest ?? result.sentAt, result.sentAt)
            } else {
                lost += 1
            }
        }
        lastFeedback = now
        if let newest { noteRoundTrip(now - newest) }
        let arrived = results.filter { $0.receivedAt != nil }.sorted {
            ($0.receivedAt ?? .zero, $0.sequence) < ($1.receivedAt ?? .zero, $1.sequence)
        }
        for result in arrived { if let at = result.receivedAt { standing.add(at - result.sentAt, at: at) } }
        // Over-use anywhere in the batch counts.
        var usage = DelayTrend.Usage.normal
        var isFirst = true
        for result in arrived {
            guard let receivedAt = result.receivedAt else { continue }
            meter.add(result.size, at: receivedAt)
            if trend.add(sentAt: result.sentAt, receivedAt: receivedAt), isFirst || usage != .over {
                usage = trend.usage
                isFirst = false
            }
            if let probe = result.probe { note(probe, result, receivedAt) }
        }
        if isFirst { usage = trend.usage }
        usage = standing.judge(usage, now: now)
        delayBased.update(
            usage, throughput: meter.bitsPerSecond, isQueueLong: standing.isLong, roundTripTime: roundTripTime, now: now
        )
        delayBased.limit(to: configuration.maximum)
        lossBased.add(lost: lost, received: received)
        lossBased.update(limit: delayBased.bitsPerSecond, roundTripTime: roundTripTime, now: now)
        // The delay-based estimate does not run away while loss holds the rate down.
        delayBased.limit(to: max(lossBased.bitsPerSecond * 1.5, configuration.minimum))
    }

    /// Takes a report block of the receiver. Its loss counts only while there is no transport-wide feedback.
    package mutating func handle(
        _ block: ReportBlock, roundTripTime time: Duration?, packetsSinceLast: Int, now: Instant
    ) {
        if let time { noteRoundTrip(time) }
        if let lastFeedback, now - lastFeedback < .seconds(2) { return }
        let lost = packetsSinceLast * Int(block.fractionLost) / 256
        lossBased.add(lost: lost, received: max(packetsSinceLast - lost, 0))
        // Without feedback nothing else bounds the growth: the target grows with the loss-based estimate.
        delayBased.raise(to: min(lossBased.bitsPerSecond, delayBased.bitsPerSecond * 1.08))
        lossBased.update(limit: delayBased.bitsPerSecond, roundTripTime: roundTripTime, now: now)
    }

    /// Takes the receiver's own estimate in bits per second.
    package mutating func handleREMB(_ bitrate: UInt64) {
        let rate = min(Double(bitrate), configuration.maximum)
        remb = rate
        if lastFeedback == nil { delayBased.raise(to: rate) }
    }

    /// Feedback that should have come did not: the path may be gone.
    mutating func handleSilence() {
        delayBased.limit(to: Double(targetBitrate) / 2)
    }

    private mutating func noteRoundTrip(_ sample: Duration) {
        guard sample >= .zero, sample < .seconds(10) else { return }
        let smoothed = roundTripTime.inMilliseconds * 0.8 + sample.inMilliseconds * 0.2
        roundTripTime = .microseconds(Int64(smoothed * 1000))
    }
}

/// A queue that neither grows nor shrinks, which the trend cannot see: delay above the least of the last seconds.
struct StandingQueue: Sendable {
    private static let buckets = 6
    /// The least delay of each of the last seconds; clocks are not the same, so only differences mean something.
    private var least: [(second: Int64, delay: Duration)] = []
    private var current: Duration?
    private var lastVerdict: Instant?

    mutating func add(_ delay: Duration, at arrival: Instant) {
        let second = arrival.nanoseconds / 1_000_000_000
        if let last = least.last, last.second == second {
            least[least.count - 1].delay = min(last.delay, delay)
        } else {
            least.append((second, delay))
            if least.count > StandingQueue.buckets { least.removeFirst() }
        }
        current = delay
    }

    private var delay: Duration? {
        guard let current, let base = least.lazy.map(\.delay).min() else { return nil }
        return current - base
    }

    /// More than a quarter of a second.
    var isLong: Bool { delay.map { $0 > .milliseconds(250) } ?? false }

    /// No growth with a tenth of a second in the queue, and over-use, at most once a second, with two.
    mutating func judge(_ usage: DelayTrend.Usage, now: Instant) -> DelayTrend.Usage {
        guard usage == .normal, let queue = delay else { return usage }
        if queue > .milliseconds(200), lastVerdict.map({ now - $0 >= .seconds(1) }) ?? true {
            lastVerdict = now
            return .over
        }
        return queue > .milliseconds(100) ? .under : .normal
    }
}

// MARK: Probing

/// What arrived of one probe: a short burst at a rate above the estimate.
struct ProbeMeasurement: Sendable {
    var probe: Int
    var packets = 0
    var bytes = 0
    var firstSize = 0
    var firstSent: Instant
    var lastSent: Instant
    var firstArrival: Instant
    var lastArrival: Instant
}

extension BandwidthEstimator {
    private static let probePackets = 5

    private mutating func note(_ probe: Int, _ result: PacketResult, _ receivedAt: Instant) {
        guard let index = probes.firstIndex(where: { $0.probe == probe }) else {
            if probes.count >= 8 { probes.removeFirst() }
            probes.append(
                ProbeMeasurement(
                    probe: probe, packets: 1, bytes: result.size, firstSize: result.size, firstSent: result.sentAt,
                    lastSent: result.sentAt, firstArrival: receivedAt, lastArrival: receivedAt))
            return
        }
        probes[index].packets += 1
        probes[index].bytes += result.size
        probes[index].firstSent = min(probes[index].firstSent, result.sentAt)
        probes[index].lastSent = max(probes[index].lastSent, result.sentAt)
        probes[index].lastArrival = max(probes[index].lastArrival, receivedAt)
        let measured = probes[index]
        guard measured.packets >= BandwidthEstimator.probePackets else { return }
        let bits = Double(measured.bytes - measured.firstSize) * 8
        let sending = (measured.lastSent - measured.firstSent).inSeconds
        let arrival = (measured.lastArrival - measured.firstArrival).inSeconds
        guard arrival > 0.0005 else { return }
        let sendRate = sending > 0.0005 ? bits / sending : .infinity
        let arrivalRate = bits / arrival
        // Arriving faster than sent is an artefact of batching; clearly slower shows the path's limit.
        guard arrivalRate <= 2 * sendRate else { return }
        var rate = min(sendRate, arrivalRate)
        if arrivalRate < 0.9 * sendRate { rate *= 0.95 }
        delayBased.raise(to: min(rate, configuration.maximum))
    }
}
