import SoraICE
import SoraNetwork
import SoraPeer
import SoraRTP
import SoraSCTP
import SoraSDP
import SoraSecureTransport
import SoraWire

/// One client of a server under load: a peer connection on a UDP socket of its own that sends a VP8-looking
/// stream and counts what it receives. Signaling is another's part: ``SoraMember`` or ``JanusSession``.
actor LoadNode {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    struct Count: Sendable {
        var sent = 0
        var received = 0
        /// Of those received, packets that came by retransmission.
        var repaired = 0

        static func - (a: Count, b: Count) -> Count {
            Count(sent: a.sent - b.sent, received: a.received - b.received, repaired: a.repaired - b.repaired)
        }
        static func + (a: Count, b: Count) -> Count {
            Count(sent: a.sent + b.sent, received: a.received + b.received, repaired: a.repaired + b.repaired)
        }
    }

    private let peer: PeerConnection
    private var socket: UDPSocket?
    private var timer: LoopTimer?
    private var sendTimer: LoopTimer?
    private(set) var count = Count()
    private var stream: VP8Stream?
    private var sender: Transceiver?
    private var waiters: [CheckedContinuation<Bool, Never>] = []
    private var isFlushing = false
    /// What the messages of a data channel mean to whoever signals, by label.
    private var onMessage: (@Sendable (String, [UInt8], Bool) -> Void)?
    private var channels: [String: StreamID] = [:]

    init(loop: EventLoop, certificate: DTLSCertificate) {
        self.loop = loop
        peer = PeerConnection(
            configuration: PeerConfiguration(
                iceRole: .controlling, certificate: certificate, media: Self.capabilities), now: EventLoop.clock())
    }

    private static let capabilities: MediaCapabilities = {
        let extensions = [RTPExtensionKind.mid, .transportSequenceNumber, .absoluteSendTime].enumerated().map {
            HeaderExtensionDescription(id: UInt8($0.offset + 1), uri: $0.element.uri)
        }
        return MediaCapabilities(
            audioCodecs: [],
            videoCodecs: [
                CodecDescription(
                    payloadType: PayloadType(96), name: "VP8", clockRate: 90_000,
                    rtcpFeedback: ["goog-remb", "transport-cc", "ccm fir", "nack", "nack pli"]),
                CodecDescription(
                    payloadType: PayloadType(97), name: "rtx", clockRate: 90_000,
                    formatParameters: FormatParameters([SDPAttribute("apt", "96")])),
            ], audioExtensions: extensions, videoExtensions: extensions)
    }()

    func open(at address: IPAddress, bufferSize: Int = 1 << 20) throws {
        let socket = try UDPSocket(
            on: loop, id: SocketID(0), address: SocketAddress(address, port: 0), bufferSize: bufferSize)
        socket.onDatagrams = { [weak self] batch in self?.assumeIsolated { $0.receive(batch) } }
        self.socket = socket
        timer = LoopTimer(on: loop) { [weak self] in self?.assumeIsolated { $0.timeout() } }
        sendTimer = LoopTimer(on: loop) { [weak self] in self?.assumeIsolated { $0.sendDue() } }
        peer.addLocalSocket(SocketID(0), address: socket.localAddress, now: loop.now)
        flush()
    }

    func close() {
        sendTimer?.cancel()
        peer.close(now: loop.now)
        flush()
        timer?.cancel()
        socket?.close()
        socket = nil
        onMessage = nil
    }

    // MARK: Negotiation

    /// An offer to send one video.
    func makeOffer() throws -> String {
        let transceiver = peer.addTransceiver(kind: .video, direction: .sendonly)
        prepare(transceiver)
        defer { flush() }
        return try peer.makeOffer(now: loop.now).serialized()
    }

    func accept(answer: String) throws {
        defer { flush() }
        try peer.acceptAnswer(SessionDescription(parsing: answer), now: loop.now)
    }

    /// Answers an offer; sends on the section `mid` if it is given.
    func answer(_ offer: String, sendingOn mid: String? = nil) throws -> String {
        defer { flush() }
        try peer.acceptOffer(SessionDescription(parsing: offer), now: loop.now)
        if let mid, sender == nil, let transceiver = peer.transceiver(mid: Mid(mid)) {
            transceiver.direction = .sendonly
            prepare(transceiver)
        }
        return try peer.makeAnswer(now: loop.now).serialized()
    }

    private func prepare(_ transceiver: Transceiver) {
        transceiver.streamIdentifier = MediaStreamIdentifier(stream: "load", track: "video")
        transceiver.encodings = [peer.makeEncoding()]
        sender = transceiver
    }

    /// Waits for the connection; false if it does not come in time.
    func connected(within limit: Duration = .seconds(30)) async -> Bool {
        if peer.state == .connected { return true }
        loop.scheduleTimer(at: loop.now + limit) { [weak self] in self?.assumeIsolated { $0.resumeWaiters() } }
        return await withCheckedContinuation { waiters.append($0) }
    }

    private func resumeWaiters() {
        for waiter in waiters { waiter.resume(returning: peer.state == .connected) }
        waiters = []
    }

    /// Streams that were agreed to be received.
    var inboundStreams: Int { peer.transceivers.count(where: \.mayReceive) }

    // MARK: Data channels

    func setOnMessage(_ body: @escaping @Sendable (String, [UInt8], Bool) -> Void) { onMessage = body }
    var openChannels: Int { channels.count }

    func send(_ message: [UInt8], isBinary: Bool, label: String) {
        guard let id = channels[label] else { return }
        try? peer.send(message: message, isBinary: isBinary, on: id, now: loop.now)
        flush()
    }

    // MARK: Media

    /// Sends from now on at this rate, in bits per second of payload.
    func startSending(bitrate: Int) {
        if stream == nil { stream = VP8Stream() }
        stream?.start(bitrate: bitrate, at: loop.now)
        sendDue()
    }

    func stopSending() {
        stream?.stop()
        sendTimer?.cancel()
    }

    private func sendDue() {
        let now = loop.now
        guard let sender, let payloadType = sender.primaryCodec?.payloadType else { return }
        while let packet = stream?.next(payloadType: payloadType, now: now) {
            let bytes = packet.serialized()
            guard let header = try? RTPHeader(parsing: bytes) else { break }
            if (try? peer.send(rtp: bytes, header: header, on: sender, now: now)) != nil { count.sent += 1 }
        }
        flush()
        sendTimer?.schedule(at: stream?.nextTime)
    }

    // MARK: Loop

    private func receive(_ batch: [Datagram]) {
        let now = loop.now
        for datagram in batch { peer.handle(datagram, now: now) }
        flush()
    }

    private func timeout() {
        peer.handleTimeout(now: loop.now)
        flush()
    }

    private func flush() {
        guard !isFlushing else { return }
        isFlushing = true
        defer { isFlushing = false }
        while let output = peer.poll() {
            switch output {
            case .transmit(let datagram): socket?.send(datagram)
            case .stateChanged(let state):
                if state == .connected || state == .failed { resumeWaiters() }
            case .rtp(let packet):
                count.received += 1
                if packet.isRetransmission { count.repaired += 1 }
            case .keyFrameRequested: stream?.makeKeyFrame()
            case .dataChannelOpened(let info): channels[info.label] = info.id
            case .dataChannelMessage(let id, let message, let isBinary):
                if let label = channels.first(where: { $0.value == id })?.key { onMessage?(label, message, isBinary) }
            default: break
            }
        }
        timer?.schedule(at: peer.nextTimeout)
    }
}
