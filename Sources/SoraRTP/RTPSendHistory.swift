import SoraWire

/// The packets of one stream sent last, to answer NACKs from.
///
/// A ring by sequence number that grows on demand up to ``Configuration/maximumPackets``. A packet is repeated at
/// most once per round trip and ``Configuration/maximumRepeats`` times; all repeats together keep within a byte rate,
/// so that NACKs, even forged ones, cannot multiply traffic.
package struct RTPSendHistory: Sendable {
    package struct Configuration: Sendable {
        /// Rounded up to a power of two, at most 32,768.
        package var maximumPackets = 1024
        package var maximumAge: Duration = .seconds(2)
        package var maximumRepeats = 10
        /// Bytes per second of repeats over the long run; bursts of half a second's worth.
        package var repeatBytesPerSecond = 1_250_000
        package init() {}
    }

    private struct Slot {
        var sequenceNumber: SequenceNumber
        var sentAt: Instant
        var lastRepeat: Instant?
        var repeats: Int
        var packet: [UInt8]
    }

    private let configuration: Configuration
    private let limit: Int
    private var slots: [Slot?]
    private var rtx: RTXSender?
    private var roundTripTime: Duration = .milliseconds(50)
    private var budget: Double
    private var budgetUpdated: Instant?
    /// Packets repeated so far, and their bytes.
    package private(set) var repeatedPackets: UInt64 = 0
    package private(set) var repeatedBytes: UInt64 = 0

    /// - Parameter rtx: wraps repeats (RFC 4588); nil repeats the packet as it was.
    package init(configuration: Configuration = Configuration(), rtx: RTXSender? = nil) {
        self.configuration = configuration
        self.rtx = rtx
        var size = 16
        while size < min(max(configuration.maximumPackets, 16), 32_768) { size *= 2 }
        limit = size
        slots = [Slot?](repeating: nil, count: min(64, size))
        budget = Double(configuration.repeatBytesPerSecond) / 2
    }

    /// The SSRC that repeats are sent on, if not the stream's own.
    package var rtxSSRC: SSRC? { rtx?.ssrc }

    /// A packet of nothing but padding on the repair stream, for measuring the path; nil without one.
    package mutating func padding(_ count: UInt8, timestamp: RTPTimestamp) -> [UInt8]? {
        rtx?.padding(count, timestamp: timestamp)
    }

    package mutating func setRoundTripTime(_ time: Duration) {
        roundTripTime = min(max(time, .milliseconds(5)), .seconds(1))
    }

    /// Keeps a packet as it was before encryption.
    package mutating func store(_ packet: [UInt8], sequenceNumber: SequenceNumber, now: Instant) {
        var index = Int(sequenceNumber.rawValue) & (slots.count - 1)
        while slots.count < limit, let old = slots[index], old.sequenceNumber != sequenceNumber,
            now - old.sentAt < configuration.maximumAge
        {
            grow()
            index = Int(sequenceNumber.rawValue) & (slots.count - 1)
        }
        slots[index] = Slot(
            sequenceNumber: sequenceNumber, sentAt: now, lastRepeat: nil, repeats: 0, packet: packet)
    }

    /// The packet as it was stored, if it still is and is not too old.
    package func packet(_ number: SequenceNumber, now: Instant) -> [UInt8]? {
        guard let slot = slots[Int(number.rawValue) & (slots.count - 1)], slot.sequenceNumber == number,
            now - slot.sentAt <= configuration.maximumAge
        else { return nil }
        return slot.packet
    }

    /// The packets to send for a NACK, wrapped if RTX is in use. Unknown, too old and just repeated ones are left out.
    package mutating func answer(_ lost: [SequenceNumber], now: Instant) -> [[UInt8]] {
        refill(now)
        var answers: [[UInt8]] = []
        for number in lost {
            let index = Int(number.rawValue) & (slots.count - 1)
            guard let slot = slots[index], slot.sequenceNumber == number,
                now - slot.sentAt <= configuration.maximumAge, slot.repeats < configuration.maximumRepeats
            else { continue }
            if let last = slot.lastRepeat, now - last < roundTripTime { continue }
            guard budget >= Double(slot.packet.count) else { break }
            let wrapped: [UInt8]
            if rtx != nil {
                guard let packet = rtx?.wrap(slot.packet) else { continue }
                wrapped = packet
            } else {
                wrapped = slot.packet
            }
            budget -= Double(wrapped.count)
            slots[index]?.lastRepeat = now
            slots[index]?.repeats += 1
            repeatedPackets &+= 1
            repeatedBytes &+= UInt64(wrapped.count)
            answers.append(wrapped)
        }
        return answers
    }

    /// Frees everything, as when the section was stopped.
    package mutating func removeAll() {
        slots = [Slot?](repeating: nil, count: min(64, limit))
    }

    private mutating func refill(_ now: Instant) {
        let rate = Double(configuration.repeatBytesPerSecond)
        if let last = budgetUpdated { budget = min(budget + max((now - last).inSeconds, 0) * rate, rate / 2) }
        budgetUpdated = now
    }

    private mutating func grow() {
        let old = slots
        slots = [Slot?](repeating: nil, count: old.count * 2)
        for case .some(let slot) in old { slots[Int(slot.sequenceNumber.rawValue) & (slots.count - 1)] = slot }
    }
}
