import SoraWire

/// One channel as the transport sees it.
struct DataChannel {
    enum State {
        /// Waits for the association.
        case connecting
        case open
        /// The reset of our direction was asked for; nothing is sent or delivered any more.
        case closing
    }

    /// A message kept while delivery is paused.
    struct Unread {
        var payload: [UInt8]
        var isBinary: Bool
    }

    var info: DataChannelInfo
    var state: State
    /// The peer's ACK, or anything that implies it, has come: unordered sending is allowed (RFC 8832, 6).
    var isAcknowledged: Bool
    var outgoingReset = false
    var incomingReset = false
    /// The peer has closed the next channel of this id too, while we waited for the answer to our reset.
    var nextIsReset = false
    var isPaused = false
    var unread = RingQueue<Unread>()
    var unreadBytes = 0
    /// Parts of a message sent with the deprecated identifiers.
    var parts: [UInt8] = []
    var statistics = DataChannelStatistics()

    init(info: DataChannelInfo, state: State, isAcknowledged: Bool) {
        self.info = info
        self.state = state
        self.isAcknowledged = isAcknowledged
    }

    var isReset: Bool { outgoingReset && incomingReset }

    /// What becomes of a message that has arrived.
    enum Reception {
        case deliver([UInt8], isBinary: Bool)
        /// Delivery is paused; this many bytes were put aside.
        case keptUnread(Int)
        /// The channel has not been announced yet.
        case tooEarly
        /// A part of a message, an unknown kind, or a message for a closing channel.
        case nothing
    }

    mutating func receive(_ payload: [UInt8], ppid: UInt32, limit: Int) -> Reception {
        switch state {
        case .connecting: return .tooEarly
        // Behind the peer's reset comes its next channel of this id.
        case .closing: return incomingReset ? .tooEarly : .nothing
        case .open: break
        }
        // The peer knows the channel, so its OPEN has been taken.
        isAcknowledged = true
        guard let (bytes, isBinary) = decode(payload, ppid: ppid, limit: limit) else { return .nothing }
        statistics.messagesReceived += 1
        statistics.bytesReceived += bytes.count
        guard isPaused else { return .deliver(bytes, isBinary: isBinary) }
        unread.append(Unread(payload: bytes, isBinary: isBinary))
        unreadBytes += bytes.count
        return .keptUnread(bytes.count)
    }

    /// The identifier alone tells text, binary and empty (RFC 8831, 6.6).
    private mutating func decode(_ payload: [UInt8], ppid: UInt32, limit: Int) -> ([UInt8], isBinary: Bool)? {
        switch ppid {
        case PayloadProtocol.text, PayloadProtocol.binary:
            let isBinary = ppid == PayloadProtocol.binary
            guard !parts.isEmpty else { return (payload, isBinary) }
            let whole = parts + payload
            parts = []
            return whole.count <= limit ? (whole, isBinary) : nil
        case PayloadProtocol.emptyText: return ([], false)
        case PayloadProtocol.emptyBinary: return ([], true)
        case PayloadProtocol.partialText, PayloadProtocol.partialBinary:
            // One byte more than the limit is kept at most: enough to refuse the whole.
            parts += payload.prefix(max(0, limit + 1 - parts.count))
            return nil
        default: return nil
        }
    }
}

/// Messages that came before their channel was known, within bounds (RFC 8832, 6).
struct EarlyMessages {
    private static let overhead = 64
    private var messages: [IncomingMessage] = []
    private var bytes = 0
    private let limit: Int

    init(limit: Int) { self.limit = limit }

    /// False if there is no room.
    mutating func keep(_ message: IncomingMessage) -> Bool {
        let size = (message.payload?.count ?? 0) + EarlyMessages.overhead
        guard bytes + size <= limit else { return false }
        bytes += size
        messages.append(message)
        return true
    }

    /// Removes and returns what has come for `stream`.
    mutating func take(_ stream: UInt16) -> [IncomingMessage] {
        guard !messages.isEmpty else { return [] }
        let taken = messages.filter { $0.stream == stream }
        guard !taken.isEmpty else { return [] }
        messages.removeAll { $0.stream == stream }
        for message in taken { bytes -= (message.payload?.count ?? 0) + EarlyMessages.overhead }
        return taken
    }

    mutating func removeAll() {
        messages = []
        bytes = 0
    }
}
