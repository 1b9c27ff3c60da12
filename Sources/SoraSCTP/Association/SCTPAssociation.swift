import SoraWire

/// One end of an SCTP association over DTLS (RFC 9260, RFC 8261): handshake, reliable and partly reliable
/// messages on many streams, congestion control, stream reset. Sans-IO: time comes in with every call.
///
/// Invariant: while a chunk is in flight a retransmission timer runs (`nextTimeout` is not nil), so that a
/// transfer goes on or the association ends with an error.
struct SCTPAssociation {
    /// Legal ways: closed → cookieWait → cookieEchoed → established → shutdown… → ended; closed →
    /// established by the peer's COOKIE ECHO; any → ended.
    enum State {
        case closed
        case cookieWait
        case cookieEchoed
        case established
        case shutdownPending
        case shutdownSent
        case shutdownReceived
        case shutdownAckSent
        case ended
    }

    enum Event {
        case connected
        case message(IncomingMessage)
        /// The peer restarted these streams of its own; empty means all.
        case incomingReset([UInt16])
        /// The peer agreed that our streams start again, or will never answer.
        case outgoingReset([UInt16])
        /// The stream's unsent bytes fell to its threshold.
        case bufferedAmountLow(UInt16)
        case ended(SCTPError?)
    }

    let configuration: SCTPConfiguration
    var state = State.closed
    var random: RandomSource
    var cookieKey: SipHash
    /// The time of the latest call.
    var now = Instant.zero

    // Identity and what was agreed.
    var localTag: UInt32
    var peerTag: UInt32 = 0
    let localInitialTSN: TSN
    var peerFeatures: InitChunk.Features = []
    var outboundStreams = 0
    var inboundStreams = 0
    /// Cookie and unreadable parameters of the peer's INIT ACK, while COOKIE ECHO may have to be repeated.
    var echoedCookie: [UInt8] = []
    var peerErrors: [[UInt8]] = []

    // Sending.
    var queue = SendQueue()
    var window: TransmissionWindow
    var congestion: CongestionController
    var timeout: RetransmissionTimeout
    var peerWindow = 0
    /// Offsets from `reportedBase` that the latest acknowledgement's gap blocks covered.
    var reportedRuns: [ClosedRange<Int>] = []
    var reportedBase = TSN(0)
    /// Number of the latest packet with data.
    var order: UInt64 = 0
    var lastMeasurement: Instant?
    var lastDataSent: Instant = .zero
    /// A fast retransmission leaves at once, whatever the window says (RFC 9260, 7.2.4).
    var retransmitsAtOnce = false
    /// Where the peer may go on although it misses something (RFC 3758, 3.5).
    var advancedAckPoint: TSN
    var forwardTSNDue = false
    var lastForwardTSN: Instant?
    var burstEnd = Int.max

    // Receiving.
    var reassembly: Reassembly
    var sack = AcknowledgementPolicy()
    /// Bytes handed out that the application has not taken yet.
    var unreadBytes = 0
    /// Bytes of messages in `events`.
    var queuedMessageBytes = 0

    // Timers.
    var handshakeTimer: Instant?
    var handshakeAttempts = 0
    var handshakeTimeout: Duration
    var retransmissionTimer: Instant?
    var consecutiveTimeouts = 0
    /// When the last packet in flight is repeated to learn what has become of it (RFC 8985, 7).
    var probeTimer: Instant?
    var hasProbed = false
    /// Number of the probe's packet while its answer is awaited.
    var probeOrder: UInt64?
    var shutdownTimer: Instant?
    var heartbeatTimer: Instant?
    var heartbeatNonce: UInt64?

    // Stream reset.
    var resets: StreamResets

    // What leaves.
    /// Complete packets (handshake, ABORT) that go before anything else.
    var packets = RingQueue<[UInt8]>()
    /// Chunks that ride in the next packet.
    var controlChunks: [[UInt8]] = []
    var sendsCookieEcho = false
    var shutdownChunkDue = false
    var events = RingQueue<Event>()
    var lastStrayAnswer: Instant?
    var statistics = SCTPStatistics()

    init(configuration: SCTPConfiguration, random: RandomSource) {
        var random = random
        self.configuration = configuration
        localTag = UInt32.random(in: 1 ... .max, using: &random)
        localInitialTSN = TSN(UInt32.random(in: 0 ... .max, using: &random))
        cookieKey = SipHash(key0: random.next(), key1: random.next())
        self.random = random
        window = TransmissionWindow(initialTSN: localInitialTSN)
        advancedAckPoint = localInitialTSN + -1
        congestion = CongestionController(configuration: configuration)
        timeout = RetransmissionTimeout(configuration: configuration)
        reassembly = Reassembly(initialTSN: TSN(0), configuration: configuration)
        handshakeTimeout = configuration.initialRetransmissionTimeout
        resets = StreamResets(firstRequest: localInitialTSN.rawValue)
    }

    // MARK: What an owner asks

    var isEnded: Bool { state == .ended }
    /// User messages are taken from the application.
    var acceptsMessages: Bool {
        switch state {
        case .closed, .cookieWait, .cookieEchoed, .established: true
        default: false
        }
    }
    var isEstablished: Bool {
        switch state {
        case .established, .shutdownPending, .shutdownReceived, .shutdownSent: true
        default: false
        }
    }

    /// The next deadline. Calling ``handleTimeout(now:)`` then always makes progress.
    var nextTimeout: Instant? {
        guard state != .ended else { return nil }
        var earliest: Instant?
        func consider(_ instant: Instant?) {
            guard let instant else { return }
            if earliest.map({ instant < $0 }) ?? true { earliest = instant }
        }
        consider(handshakeTimer)
        consider(retransmissionTimer)
        consider(probeTimer)
        consider(sack.deadline)
        consider(shutdownTimer)
        consider(heartbeatTimer)
        consider(resets.timer)
        return earliest
    }

    /// The next event, in the order in which things happened.
    mutating func nextEvent() -> Event? {
        guard let event = events.popFirst() else {
            guard let message = reassembly.nextMessage() else { return nil }
            windowMayHaveOpened()
            return .message(message)
        }
        if case .message(let message) = event {
            queuedMessageBytes -= message.payload?.count ?? 0
            windowMayHaveOpened()
        }
        return event
    }

    /// Adds an event behind the messages that have arrived before it.
    mutating func emit(_ event: Event) {
        while let message = reassembly.nextMessage() {
            queuedMessageBytes += message.payload?.count ?? 0
            events.append(.message(message))
        }
        events.append(event)
    }

    /// Queues a message. The caller has checked sizes.
    mutating func send(_ message: OutgoingMessage, on stream: UInt16, now: Instant) {
        self.now = now
        guard acceptsMessages else { return }
        beginBurst()
        queue.append(message, to: stream)
    }

    func bufferedAmount(of stream: UInt16) -> Int { queue.stream(stream)?.bufferedAmount ?? 0 }

    mutating func setUnread(bytes: Int) {
        unreadBytes = max(0, bytes)
        windowMayHaveOpened()
    }

    // MARK: Ending

    mutating func end(_ error: SCTPError?) {
        guard state != .ended else { return }
        state = .ended
        handshakeTimer = nil
        retransmissionTimer = nil
        probeTimer = nil
        shutdownTimer = nil
        heartbeatTimer = nil
        resets.timer = nil
        sack = AcknowledgementPolicy()
        controlChunks = []
        sendsCookieEcho = false
        queue = SendQueue()
        window = TransmissionWindow(initialTSN: window.next)
        emit(.ended(error))
    }

    /// Ends at once and tells the peer why.
    mutating func abort(_ cause: ErrorCause, error: SCTPError?, now: Instant) {
        self.now = now
        if peerTag != 0, state != .ended, state != .closed {
            var writer = packetWriter(tag: peerTag)
            ErrorCause.writeChunk(ChunkType.abort, causes: [cause], to: &writer)
            finishPacket(&writer, mayOmitChecksum: true)
        }
        end(error)
    }

    mutating func violation(_ what: String) {
        abort(
            ErrorCause(code: ErrorCause.Code.protocolViolation, reason: what), error: .protocolViolation(what),
            now: now)
    }

    // MARK: Packets that go at once

    func packetWriter(tag: UInt32) -> ByteWriter {
        var writer = ByteWriter(capacity: 256)
        CommonHeader(
            sourcePort: configuration.localPort, destinationPort: configuration.remotePort, verificationTag: tag
        ).write(to: &writer)
        return writer
    }

    /// True if packets to the peer need no checksum.
    var omitsChecksum: Bool { configuration.zeroChecksum && peerFeatures.contains(.zeroChecksum) }

    mutating func finishPacket(_ writer: inout ByteWriter, mayOmitChecksum: Bool) {
        if !(mayOmitChecksum && omitsChecksum) { CommonHeader.seal(&writer) }
        packets.append(writer.bytes)
    }
}

/// Counters of an association.
package struct SCTPStatistics: Sendable, Equatable {
    package var packetsSent = 0
    package var packetsReceived = 0
    package var bytesSent = 0
    package var bytesReceived = 0
    /// DATA chunks sent again.
    package var retransmissions = 0
    package var timeouts = 0
    package var fastRetransmissions = 0
    /// Last packets repeated before the timeout because nothing was heard.
    package var tailProbes = 0
    package var abandonedMessages = 0
    /// Packets dropped for a wrong checksum, tag, port or length.
    package var droppedPackets = 0
    package init() {}
}

/// When acknowledgements leave (RFC 9260, 6.2): at the latest with every second packet, at once on gaps and
/// duplicates, else after a short delay.
struct AcknowledgementPolicy {
    static let maximumDuplicates = 16

    /// Packets with data since the last acknowledgement.
    private(set) var packets = 0
    private(set) var isDue = false
    private(set) var deadline: Instant?
    private(set) var duplicates: [TSN] = []
    /// The window that the peer was told last.
    var advertisedWindow = 0

    /// Something is unacknowledged, whether or not it is due.
    var isPending: Bool { isDue || packets > 0 }

    mutating func received(isUrgent: Bool, now: Instant, delay: Duration) {
        packets += 1
        if isUrgent || packets >= 2 {
            isDue = true
            deadline = nil
        } else if deadline == nil {
            deadline = now + min(max(delay, .zero), .milliseconds(500))
        }
    }

    mutating func duplicate(_ tsn: TSN) {
        if duplicates.count < AcknowledgementPolicy.maximumDuplicates { duplicates.append(tsn) }
    }

    mutating func makeDue() {
        isDue = true
        deadline = nil
    }

    mutating func sent(window: Int) {
        packets = 0
        isDue = false
        deadline = nil
        duplicates.removeAll(keepingCapacity: true)
        advertisedWindow = window
    }
}
