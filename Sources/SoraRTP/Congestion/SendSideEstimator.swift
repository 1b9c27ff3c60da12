import SoraWire

/// All that a sender needs to know how much it may send: numbers the packets of a transport, takes every kind of
/// feedback, and tells when the estimate changed.
package struct SendSideEstimator: Sendable {
    private static let silence: Duration = .seconds(2)
    private var history = SentPacketHistory(firstNumber: 1)
    private var estimator: BandwidthEstimator
    private var told: Int
    private var silentAt: Instant?
    private var lastSequences: [SSRC: UInt32] = [:]

    package init(configuration: BandwidthEstimator.Configuration = .init()) {
        estimator = BandwidthEstimator(configuration: configuration)
        told = estimator.targetBitrate
    }

    /// Bits per second that may be sent, headers included.
    package var targetBitrate: Int { estimator.targetBitrate }
    /// Loss of the last interval, 0...1.
    package var lossFraction: Double { estimator.lossFraction }
    package var roundTripTime: Duration { estimator.roundTripTime }
    package var bytesInFlight: Int { history.bytesInFlight }
    /// The path's limit has not been met yet: probing makes sense.
    package var isStartingUp: Bool { estimator.isStartingUp }

    /// The transport-wide number for a packet of `size` bytes that leaves now; `probe` marks the packets of one probe.
    package mutating func assignSequence(size: Int, probe: Int? = nil, now: Instant) -> UInt16 {
        if history.bytesInFlight == 0, silentAt != nil { silentAt = now + SendSideEstimator.silence }
        return history.register(size: size, probe: probe, now: now)
    }

    package mutating func receive(_ remb: ReceiverEstimatedMaximumBitrate, now: Instant) {
        estimator.handleREMB(remb.bitrate)
    }

    package mutating func receive(_ feedback: TransportFeedback, now: Instant) {
        estimator.handle(history.process(feedback, now: now), now: now)
        silentAt = now + SendSideEstimator.silence
    }

    /// - Parameter roundTripTime: what the block proves, if known.
    package mutating func receive(_ block: ReportBlock, roundTripTime: Duration? = nil, now: Instant) {
        let progress = lastSequences[block.ssrc].map { Int(Int32(bitPattern: block.extendedHighestSequence &- $0)) }
        if lastSequences.count < 64 || progress != nil { lastSequences[block.ssrc] = block.extendedHighestSequence }
        estimator.handle(
            block, roundTripTime: roundTripTime, packetsSinceLast: min(max(progress ?? 0, 0), 10_000), now: now)
    }

    /// When the lack of feedback is to be noticed.
    package var nextTimeout: Instant? { history.bytesInFlight > 0 ? silentAt : nil }

    package mutating func handleTimeout(now: Instant) {
        guard let silentAt, silentAt <= now, history.bytesInFlight > 0 else { return }
        estimator.handleSilence()
        self.silentAt = now + .seconds(1)
    }

    /// The estimate, if it has changed by more than 2 % since it was last asked for (first: since the start).
    package mutating func takeChangedEstimate() -> Int? {
        let current = estimator.targetBitrate
        guard abs(current - told) * 50 > told else { return nil }
        told = current
        return current
    }
}
