import SoraWire

/// The receiver's estimate for senders without transport-wide feedback, from the absolute send times of packets, told
/// to them by REMB (draft-alvestrand-rmcat-remb-03).
package struct ReceiverBandwidthEstimator: Sendable {
    private var trend = DelayTrend()
    private var rate: RateController
    private var meter = ThroughputMeter()
    private var lastSendTime: (value: UInt32, nanoseconds: Int64)?
    private var isReportDue = false
    private var reported = 0.0
    private var nextReport: Instant?
    private var roundTripTime: Duration = .milliseconds(100)
    private var hasMeasured = false

    /// - Parameter start: bits per second assumed before anything is known.
    package init(start: Double = 500_000, minimum: Double = 30_000) {
        rate = RateController(start: start, minimum: minimum)
    }

    /// Bits per second.
    package var bitrate: UInt64 { UInt64(max(rate.bitsPerSecond, 0)) }

    package mutating func setRoundTripTime(_ time: Duration) { roundTripTime = time }

    /// Notes a packet with its 24-bit absolute send time.
    package mutating func receive(sendTime: UInt32, size: Int, now: Instant) {
        let sentAt = unwrap(sendTime & 0xFF_FFFF)
        meter.add(size, at: now)
        if nextReport == nil { nextReport = now + .seconds(1) }
        guard trend.add(sentAt: sentAt, receivedAt: now) else { return }
        rate.update(trend.usage, throughput: meter.bitsPerSecond, roundTripTime: roundTripTime, now: now)
        hasMeasured = true
        // A decrease is told at once.
        if reported > 0, rate.bitsPerSecond < reported * 0.97 { nextReport = now }
    }

    package var nextTimeout: Instant? { nextReport }

    /// The estimate to send now, if one is due.
    package mutating func handleTimeout(now: Instant) -> UInt64? {
        guard let due = nextReport, due <= now else { return nil }
        nextReport = now + .seconds(1)
        guard hasMeasured else { return nil }
        reported = rate.bitsPerSecond
        return bitrate
    }

    /// 6.18 fixed point seconds, modulo 64 s, to a time that does not wrap.
    private mutating func unwrap(_ value: UInt32) -> Instant {
        guard let last = lastSendTime else {
            let start = Int64(value) * 1_000_000_000 >> 18
            lastSendTime = (value, start)
            return Instant(nanoseconds: start)
        }
        // The nearer way round the circle of 24 bits.
        let difference = Int64(Int32(bitPattern: (value &- last.value) << 8) >> 8)
        let time = last.nanoseconds &+ (difference * 1_000_000_000 >> 18)
        if difference > 0 { lastSendTime = (value, time) }
        return Instant(nanoseconds: time)
    }
}
