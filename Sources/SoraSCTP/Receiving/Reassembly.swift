import SoraWire

/// A complete message from the peer.
struct IncomingMessage {
    var stream: UInt16
    var ppid: UInt32
    /// Nil for a message above our limit, of which only the end was noticed.
    var payload: [UInt8]?
}

/// Puts fragments together and messages into order.
///
/// Fragments that arrive in the order of their TSNs are appended straight to the message in progress.
/// Others wait in a ring addressed by TSN, as runs of neighbours of one message; a run that has both ends is
/// delivered at once if its channel is unordered or waits for just this message, so that a loss on one
/// channel does not hold up another.
///
/// Invariant: memory held is at most the receive window, one message, and a fixed overhead per fragment.
struct Reassembly {
    /// What a waiting fragment or message counts beyond its bytes.
    private static let overhead = 48

    private struct Fragment {
        var payload: [UInt8]
        var ppid: UInt32
        var stream: UInt16
        var ssn: UInt16
        var flags: DataChunk.Flags
        /// The other end of this run; kept right at both ends of a run only.
        var otherEnd: TSN
    }

    private struct IncomingStream {
        var nextSSN: UInt16 = 0
        /// Complete messages that came before their turn, by sequence number.
        var waiting: [UInt16: IncomingMessage] = [:]
    }

    private struct Partial {
        var header: DataChunk
        var bytes: [UInt8]
        var isTooLarge = false
    }

    /// A reset that waits for everything sent before it (RFC 6525, 5.2.2).
    struct PendingReset: Equatable {
        var request: UInt32
        var lastTSN: TSN
        /// Empty means all streams.
        var streams: [UInt16]
        func covers(_ stream: UInt16) -> Bool { streams.isEmpty || streams.contains(stream) }
    }

    enum Outcome { case inOrder, outOfOrder, duplicate, refused }

    private(set) var received: ReceivedTSNs
    private var fragments: [Fragment?] = []
    private var streams = StreamTable<IncomingStream>()
    private var partial: Partial?
    private var sizeHint = 0
    private let windowLimit: Int
    private let messageLimit: Int

    /// Bytes in fragments, in the message in progress and in messages that wait for their turn.
    private(set) var heldBytes = 0
    /// Messages to hand out, in order, and the bytes in them.
    private var ready = RingQueue<IncomingMessage>()
    private(set) var readyBytes = 0
    private(set) var pendingReset: PendingReset?
    /// A pending reset that has just become possible and was carried out.
    private(set) var completedReset: PendingReset?

    init(initialTSN: TSN, configuration: SCTPConfiguration) {
        received = ReceivedTSNs(initialTSN: initialTSN)
        windowLimit = configuration.windowLimit
        messageLimit = configuration.messageLimit
    }

    var cumulative: TSN { received.cumulative }
    /// The peer fills memory with messages that can never be delivered.
    var isOverrun: Bool { heldBytes > 2 * windowLimit + messageLimit }

    mutating func nextMessage() -> IncomingMessage? {
        guard let message = ready.popFirst() else { return nil }
        readyBytes -= message.payload?.count ?? 0
        return message
    }

    mutating func takeCompletedReset() -> PendingReset? { completedReset.take() }

    // MARK: Fragments

    /// Takes the DATA chunk whose user data is `packet[range]`. `unread` bytes wait for the application.
    ///
    /// The next TSN in order is taken although fragments fill the window, since only it can empty it; it is
    /// refused only if what the application has not read fills the window alone.
    mutating func receive(_ header: DataChunk, packet: [UInt8], range: Range<Int>, unread: Int) -> Outcome {
        let ahead = header.tsn - received.cumulative
        let isBlocked = readyBytes + unread >= windowLimit
        if ahead == 1 && !received.hasGaps && !isBlocked {
            received.advance()
            consume(header, packet, range)
            if pendingReset != nil { performPendingReset() }
            return .inOrder
        }
        guard ahead > 0 else { return .duplicate }
        guard ahead <= ReceivedTSNs.maximumGap, !isBlocked else { return .refused }
        if ahead == 1 {
            received.advance()
            consume(header, packet, range)
            if pendingReset != nil { performPendingReset() }
            consumeWaitingFragments()
            return .inOrder
        }
        guard !received.contains(header.tsn) else { return .duplicate }
        let size = range.count + Reassembly.overhead
        guard heldBytes + readyBytes + unread + size <= windowLimit else { return .refused }
        let cumulativeBefore = received.capacity
        if received.insert(header.tsn) { regrow(from: cumulativeBefore) }
        store(header, Array(packet[range]))
        return .outOfOrder
    }

    private func slot(_ tsn: TSN) -> Int { Int(tsn.rawValue) & (fragments.count - 1) }

    /// The fragment with this TSN; only for TSNs behind the cumulative one and up to the highest.
    private func fragment(_ tsn: TSN) -> Fragment? {
        guard !fragments.isEmpty, tsn - received.cumulative > 0, tsn - received.highest <= 0 else { return nil }
        return fragments[slot(tsn)]
    }

    private mutating func takeFragment(_ tsn: TSN) -> Fragment? {
        guard !fragments.isEmpty, let fragment = fragments[slot(tsn)].take() else { return nil }
        heldBytes -= fragment.payload.count + Reassembly.overhead
        return fragment
    }

    /// Moves the fragments to a ring of the size that the TSN ring now has.
    private mutating func regrow(from former: Int) {
        var larger = [Fragment?](repeating: nil, count: received.capacity)
        if former > 0 && fragments.count == former {
            var tsn = received.cumulative + 1
            for _ in 0..<former {
                larger[Int(tsn.rawValue) & (larger.count - 1)] = fragments[slot(tsn)].take()
                tsn += 1
            }
        }
        fragments = larger
    }

    private mutating func store(_ header: DataChunk, _ payload: [UInt8]) {
        let tsn = header.tsn
        heldBytes += payload.count + Reassembly.overhead
        fragments[slot(tsn)] = Fragment(
            payload: payload, ppid: header.ppid, stream: header.stream, ssn: header.ssn, flags: header.flags,
            otherEnd: tsn)
        var first = tsn
        var last = tsn
        if !header.flags.contains(.beginning), let left = fragment(tsn + -1), !left.flags.contains(.end) {
            first = left.otherEnd
        }
        if !header.flags.contains(.end), let right = fragment(tsn + 1), !right.flags.contains(.beginning) {
            last = right.otherEnd
        }
        fragments[slot(first)]?.otherEnd = last
        fragments[slot(last)]?.otherEnd = first
        guard let head = fragment(first), head.flags.contains(.beginning),
            let tail = fragment(last), tail.flags.contains(.end)
        else { return }
        deliverRun(first: first, last: last, stream: head.stream)
    }

    /// Delivers a run with both ends before the gap in front of it is closed.
    private mutating func deliverRun(first: TSN, last: TSN, stream: UInt16) {
        if let pending = pendingReset, pending.covers(stream), last - pending.lastTSN > 0 { return }
        guard let head = takeFragment(first) else { return }
        var bytes = head.payload
        var fits = bytes.count <= messageLimit
        var isConsistent = true
        if first != last {
            bytes.reserveCapacity(min(messageLimit, (last - first + 1) * bytes.count))
            var tsn = first
            while tsn != last {
                tsn += 1
                guard let next = takeFragment(tsn) else { continue }
                isConsistent = isConsistent && next.stream == head.stream && next.ssn == head.ssn
                fits = fits && bytes.count + next.payload.count <= messageLimit
                if fits { bytes += next.payload }
            }
        }
        guard isConsistent else { return }
        let message = IncomingMessage(stream: head.stream, ppid: head.ppid, payload: fits ? bytes : nil)
        finish(message, ssn: head.ssn, isUnordered: head.flags.contains(.unordered))
    }

    /// Goes on through what had arrived behind a gap that is now closed.
    private mutating func consumeWaitingFragments() {
        while received.hasGaps, received.contains(received.cumulative + 1) {
            let tsn = received.cumulative + 1
            let fragment = takeFragment(tsn)
            received.advance()
            if let fragment {
                let header = DataChunk(
                    flags: fragment.flags, tsn: tsn, stream: fragment.stream, ssn: fragment.ssn,
                    ppid: fragment.ppid)
                consume(header, fragment.payload, 0..<fragment.payload.count)
            } else {
                dropPartial()
            }
            if pendingReset != nil { performPendingReset() }
        }
        if !received.hasGaps && fragments.count > 1_024 {
            fragments = []
            received.releaseIfIdle()
        }
    }

    /// The next fragment in the order of TSNs.
    @inline(__always)
    private mutating func consume(_ header: DataChunk, _ bytes: [UInt8], _ range: Range<Int>) {
        let begins = header.flags.contains(.beginning)
        let ends = header.flags.contains(.end)
        if begins {
            if partial != nil { dropPartial() }
            if ends {
                let fits = range.count <= messageLimit
                finish(
                    IncomingMessage(
                        stream: header.stream, ppid: header.ppid, payload: fits ? Array(bytes[range]) : nil),
                    ssn: header.ssn, isUnordered: header.flags.contains(.unordered))
                return
            }
            var start = Partial(header: header, bytes: [])
            if range.count <= messageLimit {
                start.bytes.reserveCapacity(max(sizeHint, 2 * range.count))
                start.bytes += bytes[range]
                heldBytes += range.count
            } else {
                start.isTooLarge = true
            }
            partial = start
            return
        }
        // A fragment whose message's beginning was abandoned, or is missing by a fault of the peer: dropped.
        guard let current = partial?.header, current.stream == header.stream, current.ssn == header.ssn,
            current.flags.contains(.unordered) == header.flags.contains(.unordered)
        else { return dropPartial() }
        appendToPartial(bytes, range)
        if ends, let whole = partial.take() {
            heldBytes -= whole.bytes.count
            sizeHint = whole.bytes.count
            finish(
                IncomingMessage(
                    stream: header.stream, ppid: current.ppid, payload: whole.isTooLarge ? nil : whole.bytes),
                ssn: header.ssn, isUnordered: header.flags.contains(.unordered))
        }
    }

    private mutating func appendToPartial(_ bytes: [UInt8], _ range: Range<Int>) {
        guard let size = partial?.bytes.count, partial?.isTooLarge == false else { return }
        if size + range.count > messageLimit {
            heldBytes -= size
            partial?.isTooLarge = true
            partial?.bytes = []
        } else {
            partial?.bytes += bytes[range]
            heldBytes += range.count
        }
    }

    private mutating func dropPartial() {
        heldBytes -= partial?.bytes.count ?? 0
        partial = nil
    }

    // MARK: Order

    @inline(__always)
    private mutating func finish(_ message: IncomingMessage, ssn: UInt16, isUnordered: Bool) {
        guard !isUnordered else { return deliver(message) }
        let isNext =
            streams.update(message.stream) { stream -> Bool in
                guard stream.nextSSN == ssn else { return false }
                stream.nextSSN &+= 1
                return true
            } ?? startStream(message.stream, ssn: ssn)
        guard isNext else { return wait(message, ssn: ssn) }
        deliver(message)
        deliverWaiting(stream: message.stream)
    }

    private mutating func startStream(_ id: UInt16, ssn: UInt16) -> Bool {
        streams[id] = IncomingStream(nextSSN: ssn == 0 ? 1 : 0)
        return ssn == 0
    }

    private mutating func deliver(_ message: IncomingMessage) {
        readyBytes += message.payload?.count ?? 0
        ready.append(message)
    }

    /// Keeps a complete message until those before it have come. Old and double ones are dropped.
    private mutating func wait(_ message: IncomingMessage, ssn: UInt16) {
        let size = (message.payload?.count ?? 0) + Reassembly.overhead
        let kept = streams.update(message.stream) { stream -> Bool in
            guard ssnDistance(ssn, from: stream.nextSSN) > 0, stream.waiting[ssn] == nil else { return false }
            stream.waiting[ssn] = message
            return true
        }
        if kept == true { heldBytes += size }
    }

    /// Delivers the messages that follow on without a gap; with `skipping`, first all up to that number.
    private mutating func deliverWaiting(stream id: UInt16, skipping: UInt16? = nil) {
        let due = streams.update(id) { stream -> [IncomingMessage] in
            var due: [IncomingMessage] = []
            if let skipping {
                let passed = stream.waiting.keys.filter { ssnDistance($0, from: skipping) <= 0 }
                    .sorted { ssnDistance($0, from: $1) < 0 }
                for ssn in passed { if let message = stream.waiting.removeValue(forKey: ssn) { due.append(message) } }
                stream.nextSSN = skipping &+ 1
            }
            while !stream.waiting.isEmpty, let message = stream.waiting.removeValue(forKey: stream.nextSSN) {
                stream.nextSSN &+= 1
                due.append(message)
            }
            return due
        }
        for message in due ?? [] {
            heldBytes -= (message.payload?.count ?? 0) + Reassembly.overhead
            deliver(message)
        }
    }

    // MARK: FORWARD TSN

    /// The peer gives up everything up to `chunk.newCumulative`. False if that is nothing new.
    mutating func skip(_ chunk: ForwardTSNChunk) -> Bool {
        guard chunk.newCumulative - received.cumulative > 0 else { return false }
        dropPartial()
        while chunk.newCumulative != received.cumulative, received.hasGaps {
            _ = takeFragment(received.cumulative + 1)
            received.advance()
        }
        if chunk.newCumulative != received.cumulative { received.jump(to: chunk.newCumulative) }
        dropRemnant()
        for skip in chunk.skips {
            guard let next = streams[skip.stream]?.nextSSN else {
                streams[skip.stream] = IncomingStream(nextSSN: skip.ssn &+ 1)
                continue
            }
            if ssnDistance(skip.ssn, from: next) >= 0 { deliverWaiting(stream: skip.stream, skipping: skip.ssn) }
        }
        if pendingReset != nil { performPendingReset() }
        consumeWaitingFragments()
        return true
    }

    /// Drops what has arrived of a message whose beginning has just been skipped.
    private mutating func dropRemnant() {
        var tsn = received.cumulative + 1
        while let fragment = fragment(tsn), !fragment.flags.contains(.beginning) {
            _ = takeFragment(tsn)
            if fragment.flags.contains(.end) { return }
            tsn += 1
        }
    }

    // MARK: Resets

    /// Restarts the numbering of the peer's streams, now or when everything before has arrived.
    /// False if that is still to come.
    mutating func reset(_ reset: PendingReset) -> Bool {
        if received.cumulative - reset.lastTSN >= 0 {
            restart(reset)
            return true
        }
        pendingReset = reset
        return false
    }

    private mutating func performPendingReset() {
        guard let pending = pendingReset, received.cumulative - pending.lastTSN >= 0 else { return }
        pendingReset = nil
        restart(pending)
        completedReset = pending
    }

    private mutating func restart(_ reset: PendingReset) {
        for id in reset.streams.isEmpty ? streams.ids : reset.streams {
            for message in streams[id]?.waiting.values ?? [:].values {
                heldBytes -= (message.payload?.count ?? 0) + Reassembly.overhead
            }
            streams[id] = nil
        }
    }
}
