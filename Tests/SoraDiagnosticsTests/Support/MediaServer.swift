import SoraHTTP
import SoraICE
import SoraMessages
import SoraNetwork
import SoraPeer
import SoraRTP
import SoraSDP
import SoraSecureTransport
import SoraWire

@testable import SoraDiagnostics

/// A signaling server for one client that offers one audio and one video stream and sends what the test wants.
actor MediaServer {
    struct Media: Sendable {
        var sendsAudio = true
        var sendsVideo = true
        /// Whether a request for a key frame is answered with one.
        var hasKeyFrames = true
        /// Video is offered only once the first answer has come.
        var offersVideoLater = false
    }

    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private let media: Media
    private var listener: TCPListener?
    private var stream: (any ByteStream)?
    private var collector = HTTPCollector(.request)
    private var webSocket: WebSocketConnection?
    private var udp: UDPSocket?
    private var peer: PeerConnection?
    private var peerTimer: LoopTimer?
    private var mediaTimer: LoopTimer?
    private var sequence: UInt16 = 0
    private var owesKeyFrame = false
    private(set) var keyFrameRequests = 0
    private(set) var reAnswers = 0
    private(set) var port: UInt16 = 0
    var url: String { "ws://127.0.0.1:\(port)/signaling" }

    static func start(_ media: Media = Media()) async throws -> MediaServer {
        let server = MediaServer(loop: try EventLoop(name: "media-server"), media)
        try await server.listen()
        return server
    }

    private init(loop: EventLoop, _ media: Media) {
        self.loop = loop
        self.media = media
    }

    private func listen() throws {
        let listener = try TCPListener(on: loop, address: SocketAddress(.loopbackV4, port: 0))
        port = listener.localAddress.port
        listener.onConnection = { connection in
            self.stream = connection
            connection.onEvent = { self.handle($0) }
        }
        self.listener = listener
        let udp = try UDPSocket(on: loop, id: SocketID(0), address: SocketAddress(.loopbackV4, port: 0))
        udp.onDatagrams = { batch in
            for datagram in batch { self.peer?.handle(datagram, now: self.loop.now) }
            self.drainPeer()
        }
        self.udp = udp
    }

    /// Lets go of everything whose handlers keep the server.
    func stop() {
        mediaTimer?.cancel()
        peerTimer?.cancel()
        listener?.close()
        stream?.onEvent = nil
        stream?.close()
        udp?.close()
        (mediaTimer, peerTimer, listener, stream, udp, peer) = (nil, nil, nil, nil, nil, nil)
        loop.stop()
    }

    // MARK: Signaling

    private func handle(_ event: StreamEvent) {
        guard case .data(let bytes) = event else { return }
        if webSocket == nil {
            collector.receive(bytes)
            guard case .request(let request)? = try? collector.next(),
                let response = try? WebSocketHandshake.respond(to: request.head)
            else { return }
            stream?.write(response.serialized())
            webSocket = WebSocketConnection(role: .server, random: .system)
            webSocket?.handle(collector.takeRest(), now: loop.now)
        } else {
            webSocket?.handle(bytes, now: loop.now)
        }
        drainWebSocket()
    }

    private func drainWebSocket() {
        while let output = webSocket?.poll() {
            switch output {
            case .transmit(let bytes): stream?.write(bytes)
            case .text(let text): receive(text)
            case .closeStream: stream?.finish()
            case .binary, .ping, .pong, .closed: break
            }
        }
    }

    private func receive(_ text: String) {
        switch try? SignalingMessage(parsing: text) {
        case .connect: try? offer()
        case .answer(let answer):
            guard let description = try? SessionDescription(parsing: answer.sdp) else { return }
            try? peer?.acceptAnswer(description, now: loop.now)
            drainPeer()
            mediaTimer = LoopTimer(on: loop) { self.sendMedia() }
            mediaTimer?.schedule(at: loop.now + .milliseconds(20))
            if media.offersVideoLater { try? offerAgain() }
        case .reAnswer(let answer):
            guard let description = try? SessionDescription(parsing: answer.sdp) else { return }
            try? peer?.acceptAnswer(description, now: loop.now)
            reAnswers += 1
            drainPeer()
        case .candidate(let message):
            guard let candidate = try? ICECandidate(parsing: message.candidate) else { return }
            peer?.addRemoteCandidate(candidate, now: loop.now)
            drainPeer()
        default: break
        }
    }

    private func offer() throws {
        var ice = ICEConfiguration()
        ice.mode = .lite
        let configuration = PeerConfiguration(
            ice: ice, certificate: try DTLSCertificate.selfSigned(), media: DoctorMedia.capabilities)
        let peer = PeerConnection(configuration: configuration, now: loop.now)
        self.peer = peer
        peerTimer = LoopTimer(on: loop) {
            self.peer?.handleTimeout(now: self.loop.now)
            self.drainPeer()
        }
        if let udp { peer.addLocalSocket(udp.id, address: udp.localAddress, now: loop.now) }
        for kind in [MediaKind.audio, .video] where kind == .audio || !media.offersVideoLater {
            add(kind, to: peer)
        }
        let description = try peer.makeOffer(now: loop.now)
        var offer = OfferMessage(sdp: description.serialized(), connectionID: "RECEIVER")
        offer.config = OfferICEConfiguration(iceServers: [], iceTransportPolicy: "all")
        offer.dataChannelSignaling = false
        try webSocket?.send(text: offer.json.text)
        drainWebSocket()
        drainPeer()
    }

    private func offerAgain() throws {
        guard let peer else { return }
        add(.video, to: peer)
        let description = try peer.makeOffer(now: loop.now)
        try webSocket?.send(
            text: SignalingMessage.reOffer(DescriptionMessage(sdp: description.serialized())).json.text)
        drainWebSocket()
        drainPeer()
    }

    private func add(_ kind: MediaKind, to peer: PeerConnection) {
        let transceiver = peer.addTransceiver(kind: kind, direction: .sendonly, mid: Mid("\(kind.text)_1"))
        transceiver.streamIdentifier = MediaStreamIdentifier(stream: "SENDER", track: kind.text)
        transceiver.encodings = [peer.makeEncoding()]
    }

    // MARK: Media

    private func drainPeer() {
        while let output = peer?.poll() {
            switch output {
            case .transmit(let datagram): udp?.send(datagram)
            case .keyFrameRequested:
                keyFrameRequests += 1
                owesKeyFrame = media.hasKeyFrames
            default: break
            }
        }
        peerTimer?.schedule(at: peer?.nextTimeout)
    }

    private func sendMedia() {
        mediaTimer?.schedule(at: loop.now + .milliseconds(20))
        for transceiver in peer?.transceivers ?? [] {
            guard transceiver.kind == .audio ? media.sendsAudio : media.sendsVideo else { continue }
            // VP8: a descriptor that begins a frame, then the frame's first byte, whose lowest bit is 0 in key frames.
            let payload: [UInt8] =
                transceiver.kind == .audio
                ? [0xF8, 0xFF, 0xFE] : [0x10, owesKeyFrame ? 0x10 : 0x11, 0, 0, 0x9D, 0x01, 0x2A]
            if transceiver.kind == .video { owesKeyFrame = false }
            send(payload, on: transceiver)
        }
        sequence &+= 1
        drainPeer()
    }

    private func send(_ payload: [UInt8], on transceiver: Transceiver) {
        guard let codec = transceiver.primaryCodec, let ssrc = transceiver.encodings.first?.ssrc else { return }
        let packet = RTPPacket(
            marker: true, payloadType: codec.payloadType, sequenceNumber: SequenceNumber(sequence),
            timestamp: RTPTimestamp(UInt32(sequence) * 960), ssrc: ssrc, payload: payload
        ).serialized()
        guard let header = try? RTPHeader(parsing: packet) else { return }
        // Refused until the connection is up.
        try? peer?.send(rtp: packet, header: header, on: transceiver, now: loop.now)
    }
}
