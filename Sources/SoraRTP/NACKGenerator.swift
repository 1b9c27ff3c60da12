import SoraWire

/// Notices missing packets of one stream and says when to ask for which (RFC 4585, 6.2.1).
///
/// A gap waits for `reorderingPackets` newer packets or `reorderingDelay`, whichever comes first; then the packet is
/// asked for once per round trip, until it comes, or its retries or age run out. Giving up, and gaps too large to be
/// repaired, raise ``Request/isStreamBroken``: a video receiver then asks for a key frame.
///
/// Invariant: at most ``Configuration/maximumMissing`` packets are tracked, ascending.
package struct NACKGenerator: Sendable {
    package struct Configuration: Sendable {
        /// Newer packets that prove that a missing one is lost and not late.
        package var reorderingPackets = 3
        /// Time after which a gap counts as a loss, however few packets came.
        package var reorderingDelay: Duration = .milliseconds(8)
        package var maximumMissing = 600
        package var maximumRetries = 10
        /// After which nobody can use the packet any more.
        package var maximumAge: Duration = .milliseconds(1500)
        /// Shortest time between two requests for a packet.
        package var minimumInterval: Duration = .milliseconds(20)
        package init() {}

        /// Sound is worthless sooner, and has no key frames.
        package static var audio: Configuration {
            var configuration = Configuration()
            configuration.maximumMissing = 50
            configuration.maximumRetries = 3
            configuration.maximumAge = .milliseconds(200)
            return configuration
        }
    }

    /// What to send now.
    package struct Request: Equatable, Sendable {
        /// Ascending in sequence order.
        package var lost: [SequenceNumber] = []
        /// Packets were given up since the last request: what follows them cannot be decoded without a key frame.
        package var isStreamBroken = false
        package var isEmpty: Bool { lost.isEmpty && !isStreamBroken }
    }

    private struct Missing {
        var sequence: Int64
        var since: Instant
        var due: Instant
        var retries: Int
        var askedAt: Instant?
    }

    private let configuration: Configuration
    private var unwrapper = SequenceUnwrapper()
    private var missing: [Missing] = []
    private var isBroken = false
    private var roundTripTime: Duration = .milliseconds(100)
    /// Requests for single packets made so far.
    package private(set) var requestedCount = 0
    /// Missing packets that arrived after all.
    package private(set) var recoveredCount = 0
    /// Missing packets that were given up.
    package private(set) var abandonedCount = 0

    package init(configuration: Configuration = Configuration()) { self.configuration = configuration }

    /// Paces the repetitions, until answers tell better; clamped to 5 ms ... 1 s.
    package mutating func setRoundTripTime(_ time: Duration) {
        roundTripTime = min(max(time, .milliseconds(5)), .seconds(1))
    }

    private mutating func noteRoundTrip(_ sample: Duration) {
        let smoothed = roundTripTime.inMilliseconds * 0.875 + sample.inMilliseconds * 0.125
        setRoundTripTime(.microseconds(Int64(smoothed * 1000)))
    }

    /// Packets now waited for.
    package var missingCount: Int { missing.count }

    /// Whether this packet is among those waited for.
    package func isMissing(_ number: SequenceNumber) -> Bool {
        var copy = unwrapper
        guard copy.highest != nil else { return false }
        return index(of: copy.unwrap(number)) != nil
    }

    /// Notes a packet that arrived, original or repeated. Returns false for one that filled no gap and is not newer:
    /// a duplicate, or one already given up.
    @discardableResult
    package mutating func receive(_ number: SequenceNumber, now: Instant) -> Bool {
        guard let highest = unwrapper.highest else {
            _ = unwrapper.unwrap(number)
            return true
        }
        let sequence = unwrapper.unwrap(number)
        if sequence <= highest {
            guard let index = index(of: sequence) else { return false }
            let entry = missing.remove(at: index)
            recoveredCount += 1
            // Asked for once: the answer's time is known to be a round trip (Karn's rule).
            if entry.retries == 1, let asked = entry.askedAt { noteRoundTrip(now - asked) }
            return true
        }
        let gap = Int(sequence - highest - 1)
        if gap > 0 { noteGap(from: highest + 1, count: gap, now: now) }
        hastenOverdue(newest: sequence, now: now)
        return true
    }

    /// A key frame that starts here makes everything before it unnecessary: stop asking for it.
    package mutating func forget(before number: SequenceNumber) {
        var copy = unwrapper
        guard copy.highest != nil else { return }
        let limit = copy.unwrap(number)
        missing.removeAll { $0.sequence < limit }
        isBroken = false
    }

    /// Starts afresh, as when the stream's source restarted.
    package mutating func reset() {
        unwrapper = SequenceUnwrapper()
        missing.removeAll()
        isBroken = false
    }

    package var nextTimeout: Instant? {
        if isBroken { return .zero }
        return missing.lazy.map(\.due).min()
    }

    /// What to ask for now; empty if nothing is due.
    package mutating func handleTimeout(now: Instant) -> Request {
        var request = Request()
        var given = false
        for index in missing.indices where missing[index].due <= now {
            let entry = missing[index]
            if entry.retries >= configuration.maximumRetries || now - entry.since >= configuration.maximumAge {
                given = true
                abandonedCount += 1
                missing[index].retries = .max  // removed below
                continue
            }
            request.lost.append(SequenceNumber(UInt16(truncatingIfNeeded: entry.sequence)))
            missing[index].retries += 1
            missing[index].askedAt = now
            missing[index].due = now + max(roundTripTime + .milliseconds(5), configuration.minimumInterval)
        }
        if given { missing.removeAll { $0.retries == .max } }
        requestedCount += request.lost.count
        request.isStreamBroken = isBroken || given
        isBroken = false
        return request
    }

    private mutating func noteGap(from first: Int64, count: Int, now: Instant) {
        guard count <= configuration.maximumMissing else {
            abandonedCount += missing.count
            missing.removeAll(keepingCapacity: true)
            isBroken = true
            return
        }
        let excess = missing.count + count - configuration.maximumMissing
        if excess > 0 {
            missing.removeFirst(min(excess, missing.count))
            abandonedCount += excess
            isBroken = true
        }
        for step in 0..<count {
            missing.append(
                Missing(
                    sequence: first + Int64(step), since: now, due: now + configuration.reorderingDelay, retries: 0))
        }
    }

    /// Packets passed by enough newer ones are lost: due at once.
    private mutating func hastenOverdue(newest: Int64, now: Instant) {
        let limit = newest - Int64(configuration.reorderingPackets)
        // Only the young end of the list can hold entries never asked for.
        var index = missing.count - 1
        while index >= 0, missing[index].retries == 0 {
            if missing[index].sequence <= limit {
                if missing[index].due <= now { break }
                missing[index].due = now
            }
            index -= 1
        }
    }

    private func index(of sequence: Int64) -> Int? {
        var low = 0
        var high = missing.count
        while low < high {
            let middle = (low + high) / 2
            if missing[middle].sequence < sequence { low = middle + 1 } else { high = middle }
        }
        return low < missing.count && missing[low].sequence == sequence ? low : nil
    }
}
