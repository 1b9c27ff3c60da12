import SoraWire

/// A fragment that has a TSN and is not yet covered by the peer's cumulative acknowledgement.
struct SentChunk {
    enum State: UInt8 {
        /// On its way, counted in the flight size.
        case outstanding
        /// Lost as far as we know; waits to be sent again.
        case lost
        /// Reported in a gap block. Kept until the cumulative acknowledgement covers it.
        case acknowledged
        /// Given up (RFC 3758); the peer is told with FORWARD TSN.
        case abandoned
    }

    /// The whole message, shared with the other fragments.
    var payload: [UInt8]
    var start: Int
    var length: Int
    var ppid: UInt32
    var stream: UInt16
    var ssn: UInt16
    var flags: DataChunk.Flags
    var state: State = .outstanding
    var misses: UInt8 = 0
    var transmissions: UInt16 = 0
    /// Equal for all fragments of one message.
    var message: UInt32
    /// Counts transmissions of the whole association: a later one that arrived proves this one late.
    var order: UInt64 = 0
    var sentAt: Instant = .zero
    var limits: DeliveryLimits

    /// True if no further transmission is allowed at `now`.
    func isExhausted(now: Instant) -> Bool {
        now >= limits.expires || Int(transmissions) > limits.maximumRetransmissions
    }
}

/// How hard a message is tried (RFC 3758, RFC 7496).
struct DeliveryLimits {
    var maximumRetransmissions = Int.max
    var expires = Instant.distantFuture
    var isReliable: Bool { maximumRetransmissions == .max && expires == .distantFuture }
}

/// The chunks between the peer's cumulative acknowledgement and the next TSN, in a ring addressed by TSN.
///
/// Invariant: `flight` is the sum of the lengths of `outstanding` chunks and `lostCount` the number of
/// `lost` ones.
struct TransmissionWindow {
    /// More than this many chunks are never in flight.
    static let maximumChunks = 65_536

    private var ring: [SentChunk?] = []
    private var head = 0
    private(set) var count = 0
    /// TSN of the first chunk in the window, or of the next to be sent.
    private(set) var first: TSN
    private(set) var flight = 0
    private(set) var lostCount = 0
    /// No chunk before this offset is lost.
    private var lostHint = 0

    init(initialTSN: TSN) { first = initialTSN }

    var next: TSN { first + count }
    var cumulative: TSN { first + -1 }
    var isEmpty: Bool { count == 0 }
    /// Chunks for which there is memory.
    var capacity: Int { ring.count }
    var isFull: Bool { count >= TransmissionWindow.maximumChunks }

    @inline(__always)
    private func slot(_ offset: Int) -> Int { (head + offset) & (ring.count - 1) }

    /// The chunk `offset` places behind the cumulative acknowledgement; nil outside the window.
    func chunk(at offset: Int) -> SentChunk? {
        guard offset >= 0, offset < count else { return nil }
        return ring[slot(offset)]
    }

    /// Number of the packet that the chunk at `offset` left in last.
    func order(at offset: Int) -> UInt64? {
        guard offset >= 0, offset < count else { return nil }
        return ring[slot(offset)]?.order
    }

    func state(at offset: Int) -> SentChunk.State? {
        guard offset >= 0, offset < count else { return nil }
        return ring[slot(offset)]?.state
    }

    /// Changes the chunk at `offset` in place, for fields other than its state.
    @inline(__always)
    mutating func update(_ offset: Int, _ change: (inout SentChunk) -> Void) {
        guard offset >= 0, offset < count, ring[slot(offset)] != nil else { return }
        change(&ring[slot(offset)]!)  // not nil: checked in the line above
    }

    /// Adds a chunk at ``next``.
    mutating func append(_ chunk: SentChunk) {
        if count == ring.count { grow() }
        ring[slot(count)] = chunk
        switch chunk.state {
        case .outstanding: flight += chunk.length
        case .lost: lostCount += 1
        case .acknowledged, .abandoned: break
        }
        count += 1
    }

    /// Moves a chunk to another state and keeps the sums right. Returns the former state.
    @discardableResult
    mutating func setState(_ state: SentChunk.State, at offset: Int) -> SentChunk.State? {
        guard offset >= 0, offset < count else { return nil }
        let index = slot(offset)
        guard let former = ring[index]?.state else { return nil }
        guard former != state else { return former }
        let length = ring[index]?.length ?? 0
        switch former {
        case .outstanding: flight -= length
        case .lost: lostCount -= 1
        case .acknowledged, .abandoned: break
        }
        switch state {
        case .outstanding: flight += length
        case .lost:
            lostCount += 1
            lostHint = min(lostHint, offset)
        case .acknowledged: break
        case .abandoned: ring[index]?.payload = []
        }
        ring[index]?.state = state
        return former
    }

    /// Removes the first chunk because the peer has it, or has been told to go on without it.
    mutating func removeFirst() -> SentChunk? {
        guard count > 0, let chunk = ring[head].take() else { return nil }
        switch chunk.state {
        case .outstanding: flight -= chunk.length
        case .lost: lostCount -= 1
        case .acknowledged, .abandoned: break
        }
        head = (head + 1) & (ring.count - 1)
        count -= 1
        first += 1
        if lostHint > 0 { lostHint -= 1 }
        if count == 0 && ring.count > 128 {
            ring = []
            head = 0
        }
        return chunk
    }

    /// Offset of the first lost chunk.
    mutating func firstLost() -> Int? {
        guard lostCount > 0 else { return nil }
        while lostHint < count {
            if ring[slot(lostHint)]?.state == .lost { return lostHint }
            lostHint += 1
        }
        return nil
    }

    private mutating func grow() {
        var larger = [SentChunk?](repeating: nil, count: max(16, ring.count * 2))
        for offset in 0..<count { larger[offset] = ring[slot(offset)].take() }
        ring = larger
        head = 0
    }
}
