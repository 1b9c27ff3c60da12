import SoraWire

/// Data channels over one SCTP association (RFC 8831, RFC 8832): what a peer connection uses.
///
/// Sans-IO: after each call drain ``poll()`` and ask ``nextTimeout``.
/// Invariant: each channel that was announced by ``Output/channelOpened(_:)`` is followed by exactly one
/// ``Output/channelClosed(_:)``, and the transport by exactly one ``Output/closed(_:)``.
package final class DataChannelTransport {
    package enum Output: Sendable {
        /// One SCTP packet for one DTLS record.
        case transmit([UInt8])
        case connected
        /// A channel opened by either side can be used.
        case channelOpened(DataChannelInfo)
        case message(StreamID, [UInt8], isBinary: Bool)
        /// Both directions are closed; the id may be used again.
        case channelClosed(StreamID)
        case bufferedAmountLow(StreamID)
        /// The association has ended; nil if it was meant to.
        case closed(SCTPError?)
    }

    package let configuration: SCTPConfiguration
    /// Largest message that the peer accepts, if it is known only after the transport was made.
    package var remoteMaximumMessageSize: Int
    private let isDTLSClient: Bool
    private(set) var association: SCTPAssociation
    private var channels = StreamTable<DataChannel>()
    private var early: EarlyMessages
    private var outputs = RingQueue<Output>()
    private var now = Instant.zero
    private var pausedBytes = 0
    private var applicationBytes = 0
    /// No free id of ours is below this one.
    private var lowestFreeID: Int
    package private(set) var isConnected = false

    package init(configuration: SCTPConfiguration, isDTLSClient: Bool, random: RandomSource) {
        self.configuration = configuration
        self.isDTLSClient = isDTLSClient
        remoteMaximumMessageSize = configuration.remoteMaximumMessageSize
        association = SCTPAssociation(configuration: configuration, random: random)
        early = EarlyMessages(limit: configuration.maximumHeldBytes)
        lowestFreeID = isDTLSClient ? 0 : 1
    }

    // MARK: Time and packets

    /// DTLS is up: begins the handshake. Both ends may call it.
    package func start(now: Instant) {
        self.now = now
        association.start(now: now)
    }

    /// Takes the application data of one DTLS record.
    package func handle(_ packet: [UInt8], now: Instant) {
        self.now = now
        association.handle(packet, now: now)
    }

    package func handleTimeout(now: Instant) {
        self.now = now
        association.handleTimeout(now: now)
    }

    package var nextTimeout: Instant? { association.nextTimeout }

    /// Packets go another way from now on (ICE6).
    package func pathChanged(now: Instant) { association.pathChanged(now: now) }

    /// The next thing to do, until nil. Events come in the order in which they happened.
    package func poll() -> Output? {
        while true {
            if let output = outputs.popFirst() { return output }
            if let event = association.nextEvent() {
                if let output = process(event) { return output }
                continue
            }
            if let packet = association.nextPacket() { return .transmit(packet) }
            guard let event = association.nextEvent() else { return outputs.popFirst() }
            if let output = process(event) { return output }
        }
    }

    // MARK: Channels

    /// Opens a channel. Messages may be sent on it at once; they wait until the association is up.
    ///
    /// - Parameter negotiatedID: an id that the application agreed with the peer; without one the lowest
    ///   free id of our parity is taken and the peer is told (RFC 8832, 6).
    package func open(
        label: String, protocolName: String = "", ordered: Bool = true, reliability: Reliability = .reliable,
        negotiatedID: StreamID? = nil, priority: UInt16 = 256, now: Instant
    ) throws(SCTPError) -> StreamID {
        self.now = now
        guard association.acceptsMessages else { throw .associationClosed }
        let labelBytes = label.utf8.count
        guard labelBytes <= 65_535 else { throw .labelTooLong(bytes: labelBytes, limit: 65_535) }
        let protocolBytes = protocolName.utf8.count
        guard protocolBytes <= 65_535 else { throw .protocolTooLong(bytes: protocolBytes, limit: 65_535) }
        guard channels.count < configuration.maximumChannels else {
            throw .tooManyChannels(limit: configuration.maximumChannels)
        }
        let id: UInt16
        if let negotiatedID {
            guard channels[negotiatedID.rawValue] == nil else { throw .streamInUse(negotiatedID) }
            guard Int(negotiatedID.rawValue) < streamLimit else {
                throw .streamOutOfRange(negotiatedID, limit: streamLimit)
            }
            id = negotiatedID.rawValue
        } else {
            id = try allocateID()
        }
        let info = DataChannelInfo(
            id: StreamID(id), label: label, protocolName: protocolName, ordered: ordered, reliability: reliability,
            priority: priority, isRemote: false, isNegotiated: negotiatedID != nil)
        channels[id] = DataChannel(info: info, state: .connecting, isAcknowledged: negotiatedID != nil)
        prepareStream(info)
        if negotiatedID == nil {
            sendControl(
                .open(
                    DCEPMessage.Open(
                        ordered: ordered, reliability: reliability, priority: priority, label: label,
                        protocolName: protocolName)), on: id)
        }
        if isConnected { announce(id) }
        return StreamID(id)
    }

    /// Sends one message. Nothing is sent if it throws, and the channel stays usable.
    package func send(_ payload: [UInt8], isBinary: Bool, on id: StreamID, now: Instant) throws(SCTPError) {
        self.now = now
        guard association.acceptsMessages else { throw .associationClosed }
        guard payload.count <= remoteMaximumMessageSize else {
            throw .messageTooLarge(size: payload.count, limit: remoteMaximumMessageSize)
        }
        let buffered = association.bufferedAmount(of: id.rawValue)
        let limit = configuration.maximumBufferedAmount
        // One message is always taken, so that a limit below the message size does not block for ever.
        guard buffered == 0 || buffered + payload.count <= limit else {
            throw .sendBufferFull(id, buffered: buffered, size: payload.count, limit: limit)
        }
        let message = channels.update(id.rawValue) { channel -> OutgoingMessage? in
            guard channel.state != .closing else { return nil }
            channel.statistics.messagesSent += 1
            channel.statistics.bytesSent += payload.count
            let isEmpty = payload.isEmpty
            let ppid =
                isBinary
                ? (isEmpty ? PayloadProtocol.emptyBinary : PayloadProtocol.binary)
                : (isEmpty ? PayloadProtocol.emptyText : PayloadProtocol.text)
            return OutgoingMessage(
                payload: isEmpty ? [0] : payload, ppid: ppid,
                isUnordered: !channel.info.ordered && channel.isAcknowledged, isCounted: !isEmpty,
                limits: channel.info.reliability.limits(now: now))
        }
        guard let found = message else { throw .unknownChannel(id) }
        guard let message = found else { throw .channelClosing(id) }
        association.send(message, on: id.rawValue, now: now)
    }

    /// Closes a channel: what `send` accepted is delivered first, then both directions are reset.
    /// ``Output/channelClosed(_:)`` follows. Does nothing for unknown or closing channels.
    package func close(_ id: StreamID, now: Instant) {
        self.now = now
        beginClosing(id.rawValue)
    }

    /// User bytes accepted by ``send(_:isBinary:on:now:)`` that have not been sent for the first time.
    package func bufferedAmount(of id: StreamID) -> Int { association.bufferedAmount(of: id.rawValue) }

    /// ``Output/bufferedAmountLow(_:)`` comes when the buffered amount falls to `bytes` from above.
    package func setBufferedAmountLowThreshold(_ bytes: Int, of id: StreamID) {
        association.queue.update(id.rawValue) { $0.lowThreshold = max(0, bytes) }
    }

    package func info(of id: StreamID) -> DataChannelInfo? { channels[id.rawValue]?.info }
    package func statistics(of id: StreamID) -> DataChannelStatistics? { channels[id.rawValue]?.statistics }
    /// Channels that are open, in the order of their ids.
    package var openChannels: [StreamID] {
        channels.ids.filter { channels[$0]?.state == .open }.map { StreamID($0) }
    }
    package var associationStatistics: SCTPStatistics { association.statistics }
    /// Smoothed round trip; nil before the first measurement.
    package var roundTripTime: Duration? { association.timeout.smoothed }
    /// Bytes that may be in flight, and that are.
    package var congestionWindow: Int { association.congestion.window }
    package var bytesInFlight: Int { association.window.flight }
    package var channelCount: Int { channels.count }

    // MARK: Back-pressure

    /// Bytes of messages that the application was given and has not processed. The receive window
    /// shrinks by them, so that a peer that sends faster than the application reads is slowed down.
    package func setUnreadBytes(_ bytes: Int, now: Instant) {
        self.now = now
        association.now = now
        applicationBytes = max(0, bytes)
        association.setUnread(bytes: applicationBytes + pausedBytes)
    }

    /// Holds back one channel's messages (they fill the receive window), or lets them go on. Other
    /// channels and announcements are not affected.
    package func setDeliveryPaused(_ isPaused: Bool, of id: StreamID, now: Instant) {
        self.now = now
        association.now = now
        channels.update(id.rawValue) { $0.isPaused = isPaused }
        if !isPaused { resume(id.rawValue) }
    }

    // MARK: Ending

    /// Ends after everything queued has been delivered (RFC 9260, 9.2).
    package func shutdown(now: Instant) {
        self.now = now
        association.shutdown(now: now)
    }

    /// Ends at once and tells the peer so.
    package func abort(now: Instant) {
        self.now = now
        association.abort(
            ErrorCause(code: ErrorCause.Code.userInitiatedAbort), error: nil, now: now)
    }

    // MARK: Internals

    /// Sends a message past the channels' rules: for tests of how the peer takes it.
    func sendRaw(_ message: OutgoingMessage, on stream: UInt16, now: Instant) {
        self.now = now
        association.send(message, on: stream, now: now)
    }

    /// Ids below this can be used on both sides.
    private var streamLimit: Int {
        let agreed = min(association.outboundStreams, association.inboundStreams)
        return min(isConnected ? agreed : Int(configuration.maximumStreams), 65_535)
    }

    private func allocateID() throws(SCTPError) -> UInt16 {
        var candidate = lowestFreeID
        while candidate < streamLimit {
            let id = UInt16(truncatingIfNeeded: candidate)
            if channels[id] == nil {
                lowestFreeID = candidate + 2
                return id
            }
            candidate += 2
        }
        throw .tooManyChannels(limit: streamLimit / 2)
    }

    private func prepareStream(_ info: DataChannelInfo) {
        _ = association.queue.slot(for: info.id.rawValue)
        let weight = min(max(Int(info.priority), 32), 4_096)
        association.queue.update(info.id.rawValue) { $0.quantum = 32 * weight }
    }

    private func sendControl(_ message: DCEPMessage, on id: UInt16) {
        association.send(
            OutgoingMessage(
                payload: message.bytes, ppid: PayloadProtocol.control, isUnordered: false, isCounted: false,
                limits: DeliveryLimits()), on: id, now: now)
    }

    private func announce(_ id: UInt16) {
        let info = channels.update(id) { channel -> DataChannelInfo? in
            guard channel.state == .connecting else { return nil }
            channel.state = .open
            return channel.info
        }
        guard let found = info, let info = found else { return }
        outputs.append(.channelOpened(info))
        for message in early.take(id) {
            if let output = receive(message) { outputs.append(output) }
        }
    }

    private func beginClosing(_ id: UInt16) {
        let begins = channels.update(id) { channel -> Bool in
            guard channel.state != .closing else { return false }
            channel.state = .closing
            channel.parts = []
            return true
        }
        if begins == true { association.resetOutgoing(id, now: now) }
    }

    private func process(_ event: SCTPAssociation.Event) -> Output? {
        switch event {
        case .message(let message): return receive(message)
        case .connected:
            isConnected = true
            outputs.append(.connected)
            for id in channels.ids {
                if Int(id) < streamLimit { announce(id) } else { finishClosing(id) }
            }
        case .bufferedAmountLow(let id):
            if channels[id] != nil { return .bufferedAmountLow(StreamID(id)) }
        case .incomingReset(let ids):
            for id in ids.isEmpty ? channels.ids : ids {
                receiveReset(id)
            }
        case .outgoingReset(let ids):
            for id in ids {
                channels.update(id) { $0.outgoingReset = true }
                finishIfReset(id)
            }
        case .ended(let error):
            early.removeAll()
            for id in channels.ids { finishClosing(id) }
            isConnected = false
            outputs.append(.closed(error))
        }
        return nil
    }

    private func receiveReset(_ id: UInt16) {
        let isKnown: Void? = channels.update(id) { channel in
            if channel.incomingReset { channel.nextIsReset = true }
            channel.incomingReset = true
        }
        guard isKnown != nil else {
            _ = early.take(id)
            return
        }
        beginClosing(id)
        finishIfReset(id)
    }

    private func finishIfReset(_ id: UInt16) {
        guard let channel = channels[id], channel.isReset, channel.unread.isEmpty else { return }
        finishClosing(id)
    }

    private func finishClosing(_ id: UInt16) {
        guard let channel = channels[id] else { return }
        releaseUnread(channel.unreadBytes)
        channels[id] = nil
        association.queue.remove(id)
        if (id & 1 == 0) == isDTLSClient { lowestFreeID = min(lowestFreeID, Int(id)) }
        outputs.append(.channelClosed(StreamID(id)))
        // What came for the id's next channel meanwhile.
        for message in early.take(id) {
            if let output = receive(message) { outputs.append(output) }
        }
        if channel.nextIsReset { receiveReset(id) }
    }
}

// MARK: - Messages from the peer

extension DataChannelTransport {
    private func receive(_ message: IncomingMessage) -> Output? {
        let id = message.stream
        // Acknowledged and reported by the association; there can be no channel (RFC 9260, 6.5).
        guard Int(id) < streamLimit else { return nil }
        guard let payload = message.payload else {
            // Larger than we announced: the channel is closed, the others go on.
            if channels[id] != nil { beginClosing(id) } else { association.resetOutgoing(id, now: now) }
            return nil
        }
        if message.ppid == PayloadProtocol.control {
            if channels[id]?.incomingReset == true { keepEarly(message) } else { receiveControl(payload, on: id) }
            return nil
        }
        let limit = configuration.messageLimit
        switch channels.update(id, { $0.receive(payload, ppid: message.ppid, limit: limit) }) {
        case .deliver(let bytes, let isBinary): return .message(StreamID(id), bytes, isBinary: isBinary)
        case .keptUnread(let count):
            pausedBytes += count
            association.setUnread(bytes: applicationBytes + pausedBytes)
        case .tooEarly, nil: keepEarly(message)
        case .nothing: break
        }
        return nil
    }

    /// The channel is not known yet. Without room its stream is closed, so that the peer sees it.
    private func keepEarly(_ message: IncomingMessage) {
        if !early.keep(message) { association.resetOutgoing(message.stream, now: now) }
    }

    private func receiveControl(_ payload: [UInt8], on id: UInt16) {
        switch DCEPMessage(payload, maximumLength: configuration.maximumLabelLength) {
        case .ack?: channels.update(id) { $0.isAcknowledged = true }
        case .open(let open)?:
            // An OPEN on a stream in use, or one too many: refused by closing the stream.
            guard channels[id] == nil else { return beginClosing(id) }
            guard channels.count < configuration.maximumChannels, Int(id) < streamLimit else { return refuse(id) }
            let info = DataChannelInfo(
                id: StreamID(id), label: open.label, protocolName: open.protocolName, ordered: open.ordered,
                reliability: open.reliability, priority: open.priority, isRemote: true)
            channels[id] = DataChannel(info: info, state: .connecting, isAcknowledged: true)
            prepareStream(info)
            sendControl(.ack, on: id)
            announce(id)
        case nil:
            if channels[id] == nil { refuse(id) } else { beginClosing(id) }
        }
    }

    private func refuse(_ id: UInt16) {
        _ = early.take(id)
        association.resetOutgoing(id, now: now)
    }

    private func resume(_ id: UInt16) {
        while let unread = channels.update(id, { $0.unread.popFirst() }).flatMap({ $0 }) {
            channels.update(id) { $0.unreadBytes -= unread.payload.count }
            outputs.append(.message(StreamID(id), unread.payload, isBinary: unread.isBinary))
            releaseUnread(unread.payload.count)
        }
        finishIfReset(id)
    }

    private func releaseUnread(_ bytes: Int) {
        guard bytes > 0 else { return }
        pausedBytes -= bytes
        association.setUnread(bytes: applicationBytes + pausedBytes)
    }
}
