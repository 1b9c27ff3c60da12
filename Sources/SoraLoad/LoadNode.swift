import SoraICE
import SoraNetwork
import SoraPeer
import SoraRTP
import SoraSCTP
import SoraSDP
import SoraSecureTransport
import SoraWire

/// One client of a server under load: a peer connection on a UDP socket of its own that sends a VP8-looking stream or
/// messages, and counts what it receives. Signaling is another's part, ``SoraMember`` above all.
package actor LoadNode {
    package nonisolated let loop: EventLoop
    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    package struct Count: Sendable {
        /// Packets and messages.
        package var sent = 0
        package var received = 0
        /// Of those received, packets that came by retransmission.
        package var repaired = 0
        /// Messages that were not sent because too many waited already.
        package var skipped = 0
        /// From sending to receiving, for what this process has sent.
        package var latency = LatencyHistogram()

        package init() {}

        package static func - (a: Count, b: Count) -> Count { combine(a, b, -, { $0 - $1 }) }
        package static func + (a: Count, b: Count) -> Count { combine(a, b, +, { $0 + $1 }) }

        private static func combine(
            _ a: Count, _ b: Count, _ numbers: (Int, Int) -> Int,
            _ histograms: (LatencyHistogram, LatencyHistogram) -> LatencyHistogram
        ) -> Count {
            var result = Count()
            result.sent = numbers(a.sent, b.sent)
            result.received = numbers(a.received, b.received)
            result.repaired = numbers(a.repaired, b.repaired)
            result.skipped = numbers(a.skipped, b.skipped)
            result.latency = histograms(a.latency, b.latency)
            return result
        }
    }

    /// The data channel whose messages are counted.
    package static let label = "#load"
    /// Bytes of messages that may wait.
    private static let bufferLimit = 1 << 20

    private let socket: PeerSocket
    private var peer: PeerConnection { socket.peer }
    private var sendTimer: LoopTimer?
    package private(set) var count = Count()
    private var stream: VP8Stream?
    private var messages: MessageStream?
    private var sender: Transceiver?
    private var waiters: [CheckedContinuation<Bool, Never>] = []
    /// What the messages of a data channel mean to whoever signals, by label.
    private var onMessage: (@Sendable (String, [UInt8], Bool) -> Void)?
    private var channels: [String: StreamID] = [:]
    private var labels: [StreamID: String] = [:]
    private var resolutions: [Int: Resolution] = [:]

    /// - Parameter ice: Servers and policy that the other side asks for.
    package init(loop: EventLoop, certificate: DTLSCertificate, ice: ICEConfiguration = ICEConfiguration()) {
        self.loop = loop
        let peer = PeerConnection(
            configuration: PeerConfiguration(
                iceRole: .controlling, ice: ice, certificate: certificate, media: Self.capabilities),
            now: EventLoop.clock())
        socket = PeerSocket(peer, on: loop)
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

    package func open(at address: IPAddress, bufferSize: Int = 1 << 20) throws {
        try socket.open(at: address, bufferSize: bufferSize) { [weak self] in self?.assumeIsolated { $0.flush() } }
        sendTimer = LoopTimer(on: loop) { [weak self] in self?.assumeIsolated { $0.sendDue() } }
        flush()
    }

    package func close() {
        sendTimer?.cancel()
        for resolution in resolutions.values { resolution.cancel() }
        resolutions = [:]
        peer.close(now: loop.now)
        flush()
        socket.close()
        onMessage = nil
    }

    // MARK: Negotiation

    /// An offer to send one video.
    package func makeOffer() throws -> String {
        let transceiver = peer.addTransceiver(kind: .video, direction: .sendonly)
        prepare(transceiver)
        defer { flush() }
        return try peer.makeOffer(now: loop.now).serialized()
    }

    package func accept(answer: String) throws {
        defer { flush() }
        try peer.acceptAnswer(SessionDescription(parsing: answer), now: loop.now)
    }

    /// Answers an offer; sends on the section `mid` if it is given.
    package func answer(_ offer: String, sendingOn mid: String? = nil) throws -> String {
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
    package func connected(within limit: Duration = .seconds(30)) async -> Bool {
        if peer.state == .connected || peer.state == .failed { return peer.state == .connected }
        loop.scheduleTimer(at: loop.now + limit) { [weak self] in self?.assumeIsolated { $0.resumeWaiters() } }
        return await withCheckedContinuation { waiters.append($0) }
    }

    private func resumeWaiters() {
        for waiter in waiters { waiter.resume(returning: peer.state == .connected) }
        waiters = []
    }

    /// Streams that were agreed to be received.
    package var inboundStreams: Int { peer.transceivers.count(where: \.mayReceive) }

    // MARK: Data channels

    package func setOnMessage(_ body: @escaping @Sendable (String, [UInt8], Bool) -> Void) { onMessage = body }
    package var openChannels: Int { channels.count }
    package var hasLoadChannel: Bool { channels[Self.label] != nil }

    package func send(_ message: [UInt8], isBinary: Bool, label: String) {
        guard let id = channels[label] else { return }
        try? peer.send(message: message, isBinary: isBinary, on: id, now: loop.now)
        flush()
    }

    // MARK: Media

    /// Sends from now on at this rate, in bits per second of payload.
    package func startSending(bitrate: Int, after pause: Duration = .zero) {
        if stream == nil { stream = VP8Stream() }
        stream?.start(bitrate: bitrate, at: loop.now + pause)
        sendDue()
    }

    /// Sends messages on ``label`` from now on.
    package func startMessages(perSecond: Double, size: Int, after pause: Duration = .zero) {
        messages = MessageStream(perSecond: perSecond, size: size, start: loop.now + pause)
        sendDue()
    }

    package func stopSending() {
        stream?.stop()
        messages = nil
        sendTimer?.cancel()
    }

    private func sendDue() {
        let now = loop.now
        if let sender, let payloadType = sender.primaryCodec?.payloadType {
            while let packet = stream?.next(payloadType: payloadType, now: now) {
                let bytes = packet.serialized()
                guard let header = try? RTPHeader(parsing: bytes) else { break }
                if (try? peer.send(rtp: bytes, header: header, on: sender, now: now)) != nil { count.sent += 1 }
            }
        }
        if let id = channels[Self.label] {
            while let message = messages?.next(now: now) {
                guard peer.bufferedAmount(of: id) < Self.bufferLimit,
                    (try? peer.send(message: message, isBinary: true, on: id, now: now)) != nil
                else {
                    count.skipped += 1
                    continue
                }
                count.sent += 1
            }
        }
        flush()
        sendTimer?.schedule(at: [stream?.nextTime, messages?.nextTime].compactMap { $0 }.min())
    }

    // MARK: Loop

    private func flush() {
        socket.flush { output in
            switch output {
            case .stateChanged(let state):
                if state == .connected || state == .failed { resumeWaiters() }
            case .rtp(let packet):
                count.received += 1
                if packet.isRetransmission { count.repaired += 1 }
                note(packet.packet[...])
            case .keyFrameRequested: stream?.makeKeyFrame()
            case .dataChannelOpened(let info):
                channels[info.label] = info.id
                labels[info.id] = info.label
            case .dataChannelMessage(let id, let message, let isBinary):
                guard let label = labels[id] else { return }
                if label == Self.label {
                    count.received += 1
                    note(message[...])
                } else {
                    onMessage?(label, message, isBinary)
                }
            case .ice(.resolve(let name, let token)): resolve(name, token)
            default: break
            }
        }
    }

    /// How long something took that carries a stamp of this process.
    private func note(_ payload: ArraySlice<UInt8>) {
        guard let stamp = Stamp(endOf: payload), stamp.time <= loop.now else { return }
        count.latency.record(loop.now - stamp.time)
    }

    private func resolve(_ name: String, _ token: Int) {
        resolutions[token] = Resolver.shared.resolve(name, on: loop, deadline: loop.now + .seconds(10)) {
            [weak self] result in
            self?.assumeIsolated { node in
                node.resolutions[token] = nil
                node.peer.resolved(token, addresses: (try? result.get()) ?? [], now: node.loop.now)
                node.flush()
            }
        }
    }
}
