import SoraWire

extension SCTPAssociation {
    /// Missing reports after which a chunk counts as lost (RFC 9260, 7.2.4).
    static let missLimit: UInt8 = 3

    mutating func handleSack(_ sack: SackChunk, packet: [UInt8]) {
        let advance = sack.cumulative - window.cumulative
        // Old ones say nothing new; one beyond what was sent is a fault or an attack.
        guard advance >= 0, advance <= window.count else { return }
        let flightBefore = window.flight
        var progress = Progress()
        removeAcknowledged(advance, &progress)
        let holes = readGaps(sack, packet, &progress)
        peerWindow = Int(sack.receiverWindow)
        if progress.bytes > 0 || advance > 0 || peerWindow < configuration.packetLimit { consecutiveTimeouts = 0 }
        finishAcknowledgement(
            progress, advance: advance, flightBefore: flightBefore, cumulative: sack.cumulative, holes: holes)
    }

    /// The cumulative acknowledgement of a SHUTDOWN chunk.
    mutating func acknowledge(upTo cumulative: TSN) {
        let advance = cumulative - window.cumulative
        guard advance > 0, advance <= window.count else { return }
        let flightBefore = window.flight
        var progress = Progress()
        removeAcknowledged(advance, &progress)
        consecutiveTimeouts = 0
        finishAcknowledgement(
            progress, advance: advance, flightBefore: flightBefore, cumulative: cumulative, holes: [])
    }

    /// What one acknowledgement told.
    private struct Progress {
        var bytes = 0
        var newest = NewestOrders()
        /// When the newest chunk that was sent only once left.
        var measured: Instant?
    }

    private mutating func removeAcknowledged(_ count: Int, _ progress: inout Progress) {
        for _ in 0..<count {
            guard let chunk = window.removeFirst() else { return }
            guard chunk.state == .outstanding || chunk.state == .lost else { continue }
            note(chunk.length, chunk.order, chunk.transmissions, chunk.sentAt, chunk.stream, &progress)
        }
    }

    /// Marks what the gap blocks report and returns the holes between them, as offsets into the window.
    ///
    /// Consecutive reports differ little: what the last one covered is skipped, so that the work follows
    /// what is new and what is missing, not the size of the window.
    private mutating func readGaps(_ sack: SackChunk, _ packet: [UInt8], _ progress: inout Progress) -> [Range<Int>] {
        guard sack.gapCount > 0 else {
            reportedRuns.removeAll(keepingCapacity: true)
            return []
        }
        var holes: [Range<Int>] = []
        var runs: [ClosedRange<Int>] = []
        var known = 0
        var previousEnd = 0
        let base = window.first
        let shift = base - reportedBase
        for index in 0..<sack.gapCount {
            let gap = sack.gap(index, in: packet)
            let end = Int(gap.end)
            var offset = Int(gap.start) - 1
            // Blocks that overlap, run backwards or go beyond what was sent end the list.
            guard offset >= previousEnd, offset < end, end <= window.count else { break }
            if offset > previousEnd { holes.append(previousEnd..<offset) }
            runs.append(offset...(end - 1))
            previousEnd = end
            while offset < end {
                while known < reportedRuns.count, reportedRuns[known].upperBound - shift < offset { known += 1 }
                if known < reportedRuns.count, reportedRuns[known].lowerBound - shift <= offset {
                    offset = reportedRuns[known].upperBound - shift + 1
                } else {
                    markAcknowledged(offset, &progress)
                    offset += 1
                }
            }
        }
        reportedRuns = runs
        reportedBase = base
        return holes
    }

    private mutating func markAcknowledged(_ offset: Int, _ progress: inout Progress) {
        guard let state = window.state(at: offset), state == .outstanding || state == .lost,
            let chunk = window.chunk(at: offset)
        else { return }
        window.setState(.acknowledged, at: offset)
        note(chunk.length, chunk.order, chunk.transmissions, chunk.sentAt, chunk.stream, &progress)
    }

    @inline(__always)
    private mutating func note(
        _ length: Int, _ order: UInt64, _ transmissions: UInt16, _ sentAt: Instant, _ stream: UInt16,
        _ progress: inout Progress
    ) {
        progress.bytes += length
        if transmissions == 1 {
            progress.measured = max(progress.measured ?? sentAt, sentAt)
            progress.newest.insert(order)
        } else if now - sentAt >= timeout.shortest ?? .zero {
            // Sooner than any round trip it was the first copy that arrived, which says nothing of others.
            progress.newest.insert(order)
        }
        queue.update(stream) { $0.outstanding -= 1 }
    }

    private mutating func finishAcknowledgement(
        _ progress: Progress, advance: Int, flightBefore: Int, cumulative: TSN, holes: [Range<Int>]
    ) {
        if let sentAt = progress.measured, let shortest = timeout.shortest {
            congestion.measured(now - sentAt, shortest: shortest)
        }
        // One measurement a round trip: of a chunk that left after the last measurement was taken.
        if let sentAt = progress.measured, lastMeasurement.map({ sentAt >= $0 }) ?? true {
            timeout.measured(now - sentAt)
            lastMeasurement = now
        } else if advance > 0 {
            timeout.endBackOff()
        }
        congestion.acknowledged(
            bytes: progress.bytes, flight: flightBefore, cumulative: cumulative, advanced: advance > 0,
            roundTrip: timeout.smoothed, now: now)
        if !holes.isEmpty, progress.newest.latest > 0 {
            countMisses(in: holes, newest: progress.newest, flightBefore)
        }
        congestion.continueRecovery(delivered: progress.bytes, flight: window.flight)
        if window.isEmpty {
            retransmissionTimer = nil
        } else if advance > 0 || retransmissionTimer == nil {
            retransmissionTimer = now + timeout.current
        }
        if progress.bytes > 0 {
            hasProbed = false
            armProbe()
        } else if window.isEmpty {
            probeTimer = nil
        }
        updateAdvancedAckPoint()
        if advancedAckPoint - window.cumulative > 0, !forwardTSNDue {
            // RFC 3758, 3.5 C3, at most once a round trip.
            let wait = timeout.smoothed ?? timeout.current
            if lastForwardTSN.map({ now - $0 >= wait }) ?? true { forwardTSNDue = true }
        }
        if !resets.waiting.isEmpty { startResets() }
        if state == .shutdownPending || state == .shutdownReceived { continueShutdown() }
    }

    /// Counts a miss for each packet that is now reported although it left after the chunk's, and declares
    /// the chunk lost at the third. Counting packets instead of reports does not depend on how many packets
    /// the peer acknowledges at once, and finds lost repetitions too.
    private mutating func countMisses(in holes: [Range<Int>], newest: NewestOrders, _ flightBefore: Int) {
        // With less in flight than three reports need, and nothing that would bring more, fewer do (RFC 5827).
        let isTail = window.count <= Int(SCTPAssociation.missLimit) && queue.isEmpty
        var limit = isTail ? UInt8(max(1, window.count - 1)) : SCTPAssociation.missLimit
        if let probeOrder, newest.latest >= probeOrder {
            // All that left before the probe has had two round trips and more.
            limit = 1
            self.probeOrder = nil
        }
        let lost = window.countMisses(in: holes, newest: newest, limit: limit)
        guard !lost.isEmpty else { return }
        if !congestion.isInRecovery {
            congestion.lossDetected(highest: window.next + -1, flight: flightBefore)
            retransmitsAtOnce = true
        }
        statistics.fastRetransmissions += lost.count
        for offset in lost {
            guard let chunk = window.chunk(at: offset), chunk.state == .lost else { continue }
            if mayAbandon(chunk) { abandon(at: offset) }
        }
    }
}

/// The three packets that left last among those that one acknowledgement reports for the first time.
struct NewestOrders {
    private(set) var latest: UInt64 = 0
    private var second: UInt64 = 0
    private var third: UInt64 = 0

    @inline(__always)
    mutating func insert(_ order: UInt64) {
        if order > latest {
            (latest, second, third) = (order, latest, second)
        } else if order > second, order != latest {
            (second, third) = (order, second)
        } else if order > third, order != second, order != latest {
            third = order
        }
    }

    /// How many of the three left after the packet with this number.
    func count(after order: UInt64) -> UInt8 {
        (latest > order ? 1 : 0) + (second > order ? 1 : 0) + (third > order ? 1 : 0)
    }
}

extension TransmissionWindow {
    /// Offsets of the chunks in `holes` that this report makes lost; they are marked so.
    mutating func countMisses(in holes: [Range<Int>], newest: NewestOrders, limit: UInt8) -> [Int] {
        var lost: [Int] = []
        for hole in holes {
            for offset in hole where state(at: offset) == .outstanding {
                var isLost = false
                update(offset) { chunk in
                    let later = newest.count(after: chunk.order)
                    guard later > 0 else { return }
                    chunk.misses = min(chunk.misses, 100) + later
                    isLost = chunk.misses >= limit
                }
                guard isLost else { continue }
                setState(.lost, at: offset)
                lost.append(offset)
            }
        }
        return lost
    }
}
