import SoraWire

/// Decides what happens to each packet of a one-way link: when it arrives, once or twice, or never.
///
/// Owns no clock and no packets. The same seed, link number and calls give the same fates, whatever
/// the packets hold.
package struct LinkScheduler: Sendable {
    /// May be changed at any time; holds for packets sent afterwards.
    package var conditions: LinkConditions
    private let draw: PacketDraw
    private var nextPacket: UInt64 = 0
    /// When the transmitter will have sent all that it was given.
    private var busyUntil = Instant(nanoseconds: .min)
    /// Arrival of the latest packet that keeps its order.
    private var lastArrival = Instant(nanoseconds: .min)
    private var isInLossBurst = false

    /// What became of packets so far.
    package struct Counts: Sendable, Equatable {
        package var sent = 0
        package var lost = 0
        package var overflowed = 0
        package var duplicated = 0
        package var reordered = 0
    }
    package private(set) var counts = Counts()

    package init(_ conditions: LinkConditions = .perfect, seed: UInt64, link: UInt64 = 0) {
        self.conditions = conditions
        draw = PacketDraw(seed: seed, link: link)
    }

    /// When a packet of `size` bytes that is sent at `now` arrives. Empty if it is lost.
    package mutating func arrivals(size: Int, now: Instant) -> [Instant] {
        let packet = nextPacket
        nextPacket += 1
        counts.sent += 1
        if let maximum = conditions.maximumPayload, size > maximum {
            counts.overflowed += 1
            return []
        }
        if isLost(packet) {
            counts.lost += 1
            return []
        }
        guard let departure = departure(size: size, now: now) else {
            counts.overflowed += 1
            return []
        }
        let jitter = conditions.jitter * draw.fraction(.jitter, packet: packet)
        var arrival = departure + conditions.delay + jitter
        if draw.fraction(.reordering, packet: packet) < conditions.reordering {
            counts.reordered += 1
            arrival = arrival + conditions.reorderingDelay
        } else {
            arrival = max(arrival, lastArrival)
            lastArrival = arrival
        }
        guard draw.fraction(.duplication, packet: packet) < conditions.duplication else { return [arrival] }
        counts.duplicated += 1
        let gap = conditions.jitter * draw.fraction(.duplicateJitter, packet: packet)
        return [arrival, arrival + gap]
    }

    /// Two states (Gilbert): in a burst every packet is lost, and a burst ends with probability 1 / mean.
    private mutating func isLost(_ packet: UInt64) -> Bool {
        let loss = min(max(conditions.loss, 0), 1)
        guard loss > 0 else {
            isInLossBurst = false
            return false
        }
        if loss >= 1 { return true }
        let mean = max(1, conditions.meanLossBurst)
        if mean == 1 { return draw.fraction(.loss, packet: packet) < loss }
        if isInLossBurst {
            isInLossBurst = draw.fraction(.lossBurst, packet: packet) >= 1 / mean
        } else {
            isInLossBurst = draw.fraction(.loss, packet: packet) < min(1, loss / ((1 - loss) * mean))
        }
        return isInLossBurst
    }

    /// When the last bit leaves; nil if the queue is full.
    private mutating func departure(size: Int, now: Instant) -> Instant? {
        guard let rate = conditions.bitsPerSecond, rate > 0 else { return now }
        let start = max(now, busyUntil)
        let waitingBytes = Double((start - now).wholeNanoseconds) * Double(rate) / 8e9
        guard waitingBytes + Double(size) <= Double(conditions.queueBytes) else { return nil }
        let bits = Double(max(0, size) + conditions.overheadBytes) * 8
        busyUntil = start + .nanoseconds(Int64(min(bits / Double(rate) * 1e9, 1e18)))
        return busyUntil
    }
}
