import SoraWire

/// Notes the transport-wide sequence numbers that arrive and reports them to the sender at an interval.
///
/// Invariant: at most ``maximumArrivals`` are remembered; each feedback packet fits a datagram.
package struct TransportFeedbackGenerator: Sendable {
    private struct Arrival: Sendable {
        var sequence: Int64
        /// In units of 250 µs.
        var ticks: Int64
    }

    private static let maximumArrivals = 4000
    /// Statuses in one packet: at worst two bytes of delta each and two bits of status.
    private static let maximumStatuses: Int64 = 450
    /// A packet that comes this long after newer ones were reported is reported again with its neighbours.
    private static let memory: Duration = .milliseconds(500)

    private let senderSSRC: SSRC
    private var mediaSSRC = SSRC(0)
    package let interval: Duration
    private var unwrapper = SequenceUnwrapper()
    private var arrivals: [Arrival] = []
    /// First number not reported yet.
    private var next: Int64?
    private var feedbackCount: UInt8 = 0
    private var due: Instant?

    package init(senderSSRC: SSRC, interval: Duration = .milliseconds(50)) {
        self.senderSSRC = senderSSRC
        self.interval = interval
    }

    /// Notes a packet; `mediaSSRC` names any stream of the transport, as the format demands one.
    package mutating func receive(_ number: SequenceNumber, mediaSSRC: SSRC, now: Instant) {
        self.mediaSSRC = mediaSSRC
        let sequence = unwrapper.unwrap(number)
        let arrival = Arrival(sequence: sequence, ticks: now.nanoseconds / 250_000)
        var index = arrivals.count
        while index > 0, arrivals[index - 1].sequence >= sequence { index -= 1 }
        if index < arrivals.count, arrivals[index].sequence == sequence { return }
        arrivals.insert(arrival, at: index)
        if arrivals.count > TransportFeedbackGenerator.maximumArrivals {
            arrivals.removeFirst(arrivals.count / 4)
        }
        if let next, sequence < next { self.next = max(sequence, arrivals[0].sequence) }
        if next == nil { next = sequence }
        if due == nil { due = now + interval }
    }

    package var nextTimeout: Instant? { due }

    /// The feedback that is due, in as many packets as needed.
    package mutating func handleTimeout(now: Instant) -> [TransportFeedback] {
        guard let due, due <= now else { return [] }
        self.due = nil
        var packets: [TransportFeedback] = []
        var index = arrivals.firstIndex { $0.sequence >= next ?? 0 } ?? arrivals.count
        while index < arrivals.count {
            packets.append(makePacket(&index))
        }
        let oldest = (now - TransportFeedbackGenerator.memory).nanoseconds / 250_000
        let kept = arrivals.firstIndex { $0.ticks >= oldest } ?? arrivals.count
        arrivals.removeFirst(kept)
        return packets
    }

    /// One packet from the arrival at `index` on; moves `index` behind what it holds.
    private mutating func makePacket(_ index: inout Int) -> TransportFeedback {
        let first = arrivals[index]
        // Losses in front of the first arrival are reported with it, unless they would fill the packet.
        let wanted = next ?? first.sequence
        let base = first.sequence - wanted < TransportFeedbackGenerator.maximumStatuses / 2 ? wanted : first.sequence
        let reference = first.ticks >> 8
        var last = reference << 8
        var reported: [TransportFeedback.Arrival] = []
        var end = base
        while index < arrivals.count {
            let arrival = arrivals[index]
            guard arrival.sequence - base < TransportFeedbackGenerator.maximumStatuses,
                let delta = Int16(exactly: arrival.ticks - last)
            else { break }
            reported.append(.init(offset: UInt16(arrival.sequence - base), delta: delta))
            last = arrival.ticks
            end = arrival.sequence + 1
            index += 1
        }
        next = end
        defer { feedbackCount &+= 1 }
        return TransportFeedback(
            senderSSRC: senderSSRC, mediaSSRC: mediaSSRC,
            baseSequence: SequenceNumber(UInt16(truncatingIfNeeded: base)), statusCount: UInt16(end - base),
            // Sign extension of the low 24 bits: the field wraps.
            referenceTime: (Int32(truncatingIfNeeded: reference) << 8) >> 8, feedbackCount: feedbackCount,
            arrivals: reported)
    }
}
