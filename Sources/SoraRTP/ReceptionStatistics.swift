import SoraWire

/// How one stream arrives: what receiver reports and statistics need (RFC 3550, 6.4.1, A.1, A.3, A.8).
package struct ReceptionStatistics: Sendable {
    package let ssrc: SSRC
    /// Hz of the stream's RTP clock.
    package let clockRate: Int
    package private(set) var packetsReceived: UInt64 = 0
    /// Header, payload and padding bytes of decrypted packets.
    package private(set) var bytesReceived: UInt64 = 0
    /// Bytes of payloads alone.
    package private(set) var payloadBytesReceived: UInt64 = 0
    package private(set) var lastPacketAt: Instant?

    private var unwrapper = SequenceUnwrapper()
    private var first: Int64?
    /// In clock units times 16, as in RFC 3550 A.8.
    private var scaledJitter: Int64 = 0
    private var lastTransit: Int32?
    private var lastTimestamp: RTPTimestamp?
    private var expectedAtReport: Int64 = 0
    private var receivedAtReport: Int64 = 0
    private var lastSenderReport: (time: NTPTime, arrival: Instant)?
    /// RTP time to wall clock by the newest sender report, for lip sync.
    package private(set) var clock: RTPClockMapping?

    package init(ssrc: SSRC, clockRate: Int) {
        self.ssrc = ssrc
        self.clockRate = max(clockRate, 1)
    }

    /// Notes a packet. `isRecovered`: it came by retransmission, so that its arrival says nothing of jitter.
    package mutating func receive(_ header: RTPHeader, now: Instant, isRecovered: Bool = false) {
        packetsReceived &+= 1
        bytesReceived &+= UInt64(header.packetLength)
        payloadBytesReceived &+= UInt64(header.payloadLength)
        lastPacketAt = now
        let highest = unwrapper.highest
        let sequence = unwrapper.unwrap(header.sequenceNumber)
        // A packet in front of the very first one was reordered: it belongs to the stream, too.
        first = min(first ?? sequence, sequence)
        let isNewest = highest.map { sequence > $0 } ?? true
        guard isNewest, !isRecovered, header.timestamp != lastTimestamp else { return }
        let arrival = ReceptionStatistics.ticks(now, clockRate)
        let transit = Int32(bitPattern: arrival &- header.timestamp.rawValue)
        if let last = lastTransit {
            let difference = Int64((transit &- last).magnitude)
            // A jump of seconds is a new timeline, not jitter.
            if difference < Int64(clockRate) * 5 { scaledJitter += difference - ((scaledJitter + 8) >> 4) }
        }
        lastTransit = transit
        lastTimestamp = header.timestamp
    }

    /// Notes a sender report of this stream's source.
    package mutating func receive(_ report: SenderReport, now: Instant) {
        lastSenderReport = (report.ntpTime, now)
        clock = RTPClockMapping(ntpTime: report.ntpTime, rtpTimestamp: report.rtpTimestamp, clockRate: clockRate)
    }

    /// Packets that should have come so far.
    package var packetsExpected: Int64 {
        guard let first, let highest = unwrapper.highest else { return 0 }
        return highest - first + 1
    }
    /// Expected less received; negative when duplicates outnumber losses.
    package var packetsLost: Int64 { packetsExpected - Int64(clamping: packetsReceived) }
    /// Interarrival jitter in clock units.
    package var jitter: UInt32 { UInt32(clamping: scaledJitter >> 4) }
    package var jitterInSeconds: Double { Double(jitter) / Double(clockRate) }

    /// The block for the next report, and the start of a new interval for its loss fraction. Nil before any packet.
    package mutating func makeReport(now: Instant) -> ReportBlock? {
        guard let highest = unwrapper.highest else { return nil }
        let received = Int64(clamping: packetsReceived)
        let expectedInterval = packetsExpected - expectedAtReport
        let lostInterval = expectedInterval - (received - receivedAtReport)
        expectedAtReport = packetsExpected
        receivedAtReport = received
        let fraction = expectedInterval > 0 && lostInterval > 0 ? min(lostInterval * 256 / expectedInterval, 255) : 0
        return ReportBlock(
            ssrc: ssrc, fractionLost: UInt8(fraction), cumulativeLost: Int32(clamping: packetsLost),
            // The unwrapper begins one cycle up; on the wire the first cycle is 0.
            extendedHighestSequence: UInt32(truncatingIfNeeded: highest - 0x1_0000), jitter: jitter,
            lastSenderReport: lastSenderReport?.time.compact ?? 0,
            delaySinceLastSenderReport: lastSenderReport.map { CompactDuration.encode(now - $0.arrival) } ?? 0)
    }

    /// `now` in units of an RTP clock, modulo 2^32.
    static func ticks(_ now: Instant, _ clockRate: Int) -> UInt32 {
        let rate = UInt64(clockRate)
        let nanoseconds = UInt64(bitPattern: now.nanoseconds)
        let seconds = nanoseconds / 1_000_000_000
        return UInt32(truncatingIfNeeded: seconds &* rate &+ nanoseconds % 1_000_000_000 &* rate / 1_000_000_000)
    }
}

extension ReportBlock {
    /// The round trip that this block of the other side's report proves (RFC 3550, 6.4.1); nil if that side has not
    /// seen a sender report of ours. Never negative.
    /// - Parameter now: arrival of the report, on the clock that our sender reports carry.
    package func roundTripTime(now: NTPTime) -> Duration? {
        guard lastSenderReport != 0 else { return nil }
        let elapsed = now.compact &- lastSenderReport &- delaySinceLastSenderReport
        // Differences are modulo 18 hours; the upper half is a negative one (clocks that drift apart): zero.
        return elapsed < 0x8000_0000 ? CompactDuration.decode(elapsed) : .zero
    }
}

/// Ties a stream's RTP time to the wall clock of its sender, by a sender report.
package struct RTPClockMapping: Equatable, Sendable {
    package var ntpTime: NTPTime
    package var rtpTimestamp: RTPTimestamp
    package var clockRate: Int

    package init(ntpTime: NTPTime, rtpTimestamp: RTPTimestamp, clockRate: Int) {
        self.ntpTime = ntpTime
        self.rtpTimestamp = rtpTimestamp
        self.clockRate = max(clockRate, 1)
    }

    /// When the sample with this timestamp was captured, on the sender's clock.
    package func ntpTime(of timestamp: RTPTimestamp) -> NTPTime {
        let ticks = Int64(timestamp.distance(from: rtpTimestamp))
        return ntpTime + .nanoseconds(ticks * 1_000_000_000 / Int64(clockRate))
    }

    /// The timestamp of a capture time.
    package func timestamp(of time: NTPTime) -> RTPTimestamp {
        let nanoseconds = time.duration(since: ntpTime).wholeNanoseconds
        let seconds = nanoseconds / 1_000_000_000
        let rest = nanoseconds % 1_000_000_000
        let rate = Int64(clockRate)
        return rtpTimestamp + Int(truncatingIfNeeded: seconds &* rate &+ rest &* rate / 1_000_000_000)
    }
}

/// Counts what one stream sends, for its sender reports.
package struct SendStatistics: Sendable {
    package private(set) var packetsSent: UInt64 = 0
    /// Bytes of payloads, without headers and padding (RFC 3550, 6.4.1).
    package private(set) var payloadBytesSent: UInt64 = 0
    /// Bytes with headers and padding.
    package private(set) var bytesSent: UInt64 = 0
    private var last: (timestamp: RTPTimestamp, at: Instant)?

    package init(packetsSent: UInt64 = 0) { self.packetsSent = packetsSent }

    package mutating func send(_ header: RTPHeader, now: Instant) {
        packetsSent &+= 1
        payloadBytesSent &+= UInt64(header.payloadLength)
        bytesSent &+= UInt64(header.packetLength)
        last = (header.timestamp, now)
    }

    /// The report for `now`; nil before the first packet. Counters wrap at 2^32 on the wire.
    package func makeReport(
        ssrc: SSRC, clockRate: Int, now: Instant, origin: NTPTime, reports: [ReportBlock] = []
    ) -> SenderReport? {
        guard let last else { return nil }
        let elapsed = ReceptionStatistics.ticks(now, clockRate) &- ReceptionStatistics.ticks(last.at, clockRate)
        return SenderReport(
            ssrc: ssrc, ntpTime: NTPTime(now, origin: origin),
            rtpTimestamp: RTPTimestamp(last.timestamp.rawValue &+ elapsed),
            packetCount: UInt32(truncatingIfNeeded: packetsSent),
            octetCount: UInt32(truncatingIfNeeded: payloadBytesSent), reports: reports)
    }
}
