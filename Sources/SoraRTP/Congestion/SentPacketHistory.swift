import SoraWire

/// What the other side said about one sent packet.
package struct PacketResult: Equatable, Sendable {
    /// Transport-wide number, extended.
    package var sequence: Int64
    package var sentAt: Instant
    package var size: Int
    /// On the receiver's clock, whose origin is arbitrary; nil: lost.
    package var receivedAt: Instant?
    /// It had been reported lost before: it was only late.
    package var wasReportedLost: Bool
    /// The probe that it belongs to.
    package var probe: Int?

    package init(
        sequence: Int64, sentAt: Instant, size: Int, receivedAt: Instant?, wasReportedLost: Bool = false,
        probe: Int? = nil
    ) {
        self.sequence = sequence
        self.sentAt = sentAt
        self.size = size
        self.receivedAt = receivedAt
        self.wasReportedLost = wasReportedLost
        self.probe = probe
    }
}

/// Numbers sent packets transport-wide and matches the receiver's feedback with them.
///
/// Feedback about packets that are not (or no longer) remembered is ignored; each packet is reported lost at most once
/// and received at most once.
package struct SentPacketHistory: Sendable {
    private enum State { case inFlight, lost, received }
    private struct Slot: Sendable {
        var sequence: Int64
        var sentAt: Instant
        var size: Int
        var probe: Int?
        var state: State
    }

    private static let size = 2048
    private var slots: [Slot] = []
    private var next: Int64
    private var references = ReferenceClock()
    /// Bytes of packets neither acknowledged nor reported lost.
    package private(set) var bytesInFlight = 0
    /// Sent so far.
    package private(set) var sentPackets: UInt64 = 0

    package init(firstNumber: UInt16 = 0) { next = Int64(firstNumber) + 0x1_0000 }

    /// The number for the next packet, of `size` bytes on the wire.
    package mutating func register(size: Int, probe: Int? = nil, now: Instant) -> UInt16 {
        let slot = Slot(sequence: next, sentAt: now, size: size, probe: probe, state: .inFlight)
        let index = Int(next) & (SentPacketHistory.size - 1)
        // Grows with use: a connection that sends little remembers little.
        if slots.count < SentPacketHistory.size {
            if slots.isEmpty { firstIndex = index }
            slots.append(slot)
        } else {
            let position = (index - firstIndex) & (SentPacketHistory.size - 1)
            if slots[position].state == .inFlight { bytesInFlight -= slots[position].size }
            slots[position] = slot
        }
        bytesInFlight += size
        sentPackets &+= 1
        next += 1
        return UInt16(truncatingIfNeeded: slot.sequence)
    }
    private var firstIndex = 0

    private func position(of sequence: Int64) -> Int? {
        guard sequence < next, sequence >= next - Int64(slots.count) else { return nil }
        let position = (Int(sequence) - firstIndex) & (SentPacketHistory.size - 1)
        guard position < slots.count, slots[position].sequence == sequence else { return nil }
        return position
    }

    /// What the feedback tells anew, in order of the numbers.
    package mutating func process(_ feedback: TransportFeedback, now: Instant) -> [PacketResult] {
        let newest = SequenceNumber(UInt16(truncatingIfNeeded: next &- 1))
        let base = next - 1 + Int64(feedback.baseSequence.distance(from: newest))
        var ticks = references.extend(feedback.referenceTime) << 8
        var results: [PacketResult] = []
        var arrivals = feedback.arrivals[...]
        // Losses are looked for only among the packets that we remember.
        let first = max(base, next - Int64(slots.count))
        let end = min(base + Int64(feedback.statusCount), next)
        while let arrival = arrivals.first, base + Int64(arrival.offset) < first {
            ticks += Int64(arrival.delta)
            arrivals.removeFirst()
        }
        guard first < end else { return [] }
        for sequence in first..<end {
            var receivedAt: Instant?
            if let arrival = arrivals.first, base + Int64(arrival.offset) == sequence {
                ticks += Int64(arrival.delta)
                receivedAt = Instant(nanoseconds: ticks &* 250_000)
                arrivals.removeFirst()
            }
            guard let position = position(of: sequence) else { continue }
            let slot = slots[position]
            switch (slot.state, receivedAt) {
            case (.received, _), (.lost, nil): continue
            case (.inFlight, _), (.lost, .some): break
            }
            if slot.state == .inFlight { bytesInFlight -= slot.size }
            slots[position].state = receivedAt == nil ? .lost : .received
            results.append(
                PacketResult(
                    sequence: sequence, sentAt: slot.sentAt, size: slot.size, receivedAt: receivedAt,
                    wasReportedLost: slot.state == .lost, probe: slot.probe))
        }
        return results
    }
}

/// Extends the 24-bit reference time of feedback packets.
private struct ReferenceClock: Sendable {
    private var last: Int64?

    mutating func extend(_ value: Int32) -> Int64 {
        guard let last else {
            let first = Int64(value) & 0xFF_FFFF
            self.last = first
            return first
        }
        // The nearest time to the last one, modulo 2^24.
        let difference = Int64((Int32(truncatingIfNeeded: Int64(value) - last) << 8) >> 8)
        let extended = last + difference
        if difference > 0 { self.last = extended }
        return extended
    }
}
