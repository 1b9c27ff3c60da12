import SoraWire

/// A user message that waits, or of which the first part has been sent.
struct OutgoingMessage {
    var payload: [UInt8]
    /// Bytes that already have a TSN.
    var sent = 0
    var ppid: UInt32
    var isUnordered: Bool
    /// Counts in `bufferedAmount` (DCEP messages and the byte of empty messages do not).
    var isCounted: Bool
    var limits: DeliveryLimits
    /// Number given with the first fragment.
    var number: UInt32 = 0
    var ssn: UInt16 = 0
}

/// The sending side of one stream.
struct OutgoingStream {
    let id: UInt16
    var queue = RingQueue<OutgoingMessage>()
    var nextSSN: UInt16 = 0
    /// User bytes that have no TSN yet.
    var bufferedAmount = 0
    var lowThreshold = 0
    /// Bytes that this stream may send before the next one's turn; below zero it owes some.
    var credit = 0
    /// Credit per turn, from the channel's priority.
    var quantum = 8_192
    var isScheduled = false
    /// Chunks with a TSN that are neither acknowledged nor abandoned.
    var outstanding = 0
    var resetState = ResetState.none

    enum ResetState {
        case none
        /// Asked for; waits until everything is sent and acknowledged.
        case waiting
        /// In the request that is under way.
        case requested
    }
}

/// All streams' queues and whose turn it is.
///
/// Streams take turns by bytes (deficit round robin): after a large message the stream waits until the
/// others have caught up. A message that was begun is finished first, because fragments of DATA chunks
/// must have consecutive TSNs.
struct SendQueue {
    private var index = StreamTable<UInt32>()
    private(set) var streams: [OutgoingStream] = []
    private var free: [UInt32] = []
    private var turns = RingQueue<UInt32>()
    /// The stream whose turn it is, or whose message is partly sent.
    private var current: UInt32?
    private var nextMessage: UInt32 = 0
    /// Messages that wait or are partly sent.
    private(set) var messageCount = 0

    init() {}

    var isEmpty: Bool { messageCount == 0 }

    /// Where the stream's state stands, made if it is new.
    mutating func slot(for id: UInt16) -> Int {
        if let existing = index[id] { return Int(existing) }
        if let reused = free.popLast() {
            streams[Int(reused)] = OutgoingStream(id: id)
            index[id] = reused
            return Int(reused)
        }
        streams.append(OutgoingStream(id: id))
        index[id] = UInt32(truncatingIfNeeded: streams.count - 1)
        return streams.count - 1
    }

    /// The stream's state if it was ever used.
    func stream(_ id: UInt16) -> OutgoingStream? {
        guard let slot = index[id] else { return nil }
        return streams[Int(slot)]
    }

    @inline(__always)
    mutating func update(_ id: UInt16, _ change: (inout OutgoingStream) -> Void) {
        guard let slot = index[id] else { return }
        change(&streams[Int(slot)])
    }

    var ids: [UInt16] { index.ids }

    mutating func append(_ message: OutgoingMessage, to id: UInt16) {
        let slot = slot(for: id)
        if message.isCounted { streams[slot].bufferedAmount += message.payload.count }
        streams[slot].queue.append(message)
        messageCount += 1
        if !streams[slot].isScheduled {
            streams[slot].isScheduled = true
            streams[slot].credit = streams[slot].quantum
            turns.append(UInt32(truncatingIfNeeded: slot))
        }
    }

    /// Forgets a stream (after its reset). Messages still queued are dropped.
    mutating func remove(_ id: UInt16) {
        guard let slot = index[id] else { return }
        messageCount -= streams[Int(slot)].queue.count
        streams[Int(slot)].queue.removeAll()
        streams[Int(slot)].bufferedAmount = 0
        streams[Int(slot)].outstanding = 0
        index[id] = nil
        // A stream in the ring of turns is freed when its turn comes.
        if !streams[Int(slot)].isScheduled { free.append(slot) }
    }

    /// Slot of the stream to send from next; nil if nothing waits.
    mutating func nextSlot() -> Int? {
        if let current, !streams[Int(current)].queue.isEmpty {
            let isBegun = (streams[Int(current)].queue.first?.sent ?? 0) > 0
            if isBegun || streams[Int(current)].credit > 0 { return Int(current) }
        }
        if let finished = current {
            current = nil
            endTurn(finished)
        }
        while let slot = turns.popFirst() {
            let i = Int(slot)
            if streams[i].queue.isEmpty {
                endTurn(slot)
                continue
            }
            if turns.isEmpty {
                streams[i].credit = max(streams[i].credit, streams[i].quantum)
            } else if streams[i].credit <= 0 {
                streams[i].credit += streams[i].quantum
                if streams[i].credit <= 0 {
                    turns.append(slot)
                    continue
                }
            }
            current = slot
            return i
        }
        return nil
    }

    private mutating func endTurn(_ slot: UInt32) {
        let i = Int(slot)
        guard streams[i].queue.isEmpty else {
            turns.append(slot)
            return
        }
        streams[i].isScheduled = false
        if index[streams[i].id] != slot { free.append(slot) }
    }

    /// Removes the message at the head of `slot`, sent completely or given up. Returns it.
    @discardableResult
    mutating func finishFirst(_ slot: Int) -> OutgoingMessage? {
        guard let message = streams[slot].queue.popFirst() else { return nil }
        messageCount -= 1
        if message.isCounted {
            streams[slot].bufferedAmount -= max(0, message.payload.count - message.sent)
        }
        return message
    }

    /// Cuts the next fragment of at most `room` bytes from the message at the head of `slot`.
    mutating func takeFragment(_ slot: Int, room: Int) -> SentChunk? {
        guard let head = streams[slot].queue.first, room > 0 else { return nil }
        let begins = head.sent == 0
        let length = min(room, head.payload.count - head.sent)
        let ends = head.sent + length >= head.payload.count
        var number = head.number
        var ssn = head.ssn
        if begins {
            number = nextMessage
            nextMessage &+= 1
            ssn = 0
            if !head.isUnordered {
                ssn = streams[slot].nextSSN
                streams[slot].nextSSN &+= 1
            }
        }
        var flags: DataChunk.Flags = head.isUnordered ? [.unordered] : []
        if begins { flags.insert(.beginning) }
        if ends { flags.insert(.end) }
        let chunk = SentChunk(
            payload: head.payload, start: head.sent, length: length, ppid: head.ppid,
            stream: streams[slot].id, ssn: ssn, flags: flags, message: number, limits: head.limits)
        streams[slot].credit -= length
        streams[slot].outstanding += 1
        if ends {
            // Nothing of it is unsent any more, so that `finishFirst` takes nothing off.
            if head.isCounted { streams[slot].bufferedAmount -= length }
            _ = streams[slot].queue.popFirst()
            messageCount -= 1
        } else {
            if head.isCounted { streams[slot].bufferedAmount -= length }
            streams[slot].queue.updateFirst { message in
                message.sent += length
                message.number = number
                message.ssn = ssn
            }
        }
        return chunk
    }
}
