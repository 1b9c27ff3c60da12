import LocalSora
import SoraICE
import SoraMessages
import SoraPeer
import SoraRTP
import SoraSCTP
import SoraSDP
import SoraSecureTransport
import SoraWire
import Testing

/// A client of a channel under test: scripted signaling over a real peer connection.
final class SimulatedClient {
    /// What happened to the client, in order.
    enum Entry {
        /// A signaling message; `label` is the data channel, nil for the WebSocket.
        case message(type: String, label: String?, JSONObject)
        case data(label: String, [UInt8])
        case channelOpened(String)
        case channelClosed(String)
        case webSocketClosed(code: UInt16, reason: String)
        case webSocketReset
        case ended
    }

    let id: ConnectionID
    let peer: PeerConnection
    let address: SocketAddress
    private(set) var log: [Entry] = []
    var webSocketIsOpen = true
    /// Nothing of the client leaves any more, as if its process had been killed.
    var isDead = false
    /// Answers offers at once; else they wait in ``pendingOffers``.
    var answersAutomatically = true
    var answersPings = true
    private(set) var pendingOffers: [(sdp: String, type: String, label: String?)] = []
    private(set) var offer: OfferMessage?
    private(set) var offeredDescriptions: [SessionDescription] = []
    private(set) var definitions: [String: DataChannelDefinition] = [:]
    private(set) var streams: [String: StreamID] = [:]
    private(set) var infos: [String: DataChannelInfo] = [:]
    private(set) var closedStreams: Set<StreamID> = []
    var isSwitched = false

    // Media.
    var ownTransceivers: [String: Transceiver] = [:]
    /// Rids to send, of those that the server asks for; nil: all.
    var layersToSend: [String]?
    private(set) var received: [ReceivedRTP] = []
    /// Layers of which a key frame was asked, by index, with how often.
    private(set) var keyFrameRequests: [Int: Int] = [:]
    /// No frame on a system label was binary.
    private(set) var systemFramesAreText = true
    private(set) var bitrateLimits: [Int] = []
    private(set) var senderReports: [SSRC: (ntp: NTPTime, timestamp: RTPTimestamp)] = [:]

    /// Texts for the WebSocket.
    private(set) var outgoing: [String] = []
    /// Whether a message that spec/signaling.md does not allow fails the test. Off where a script or fault alters them.
    var isStrict = true
    private(set) var validator: ServerMessageValidator
    /// See ``ServerMessageValidator/transportsAreOrdered``.
    var transportsAreOrdered: Bool {
        get { validator.transportsAreOrdered }
        set { validator.transportsAreOrdered = newValue }
    }

    static let certificate: DTLSCertificate? = try? DTLSCertificate.selfSigned()

    static func capabilities(videoCodecs: [String]) -> MediaCapabilities {
        var video: [CodecDescription] = []
        for (index, name) in videoCodecs.enumerated() {
            let type = UInt8(96 + index * 2)
            video.append(
                CodecDescription(
                    payloadType: PayloadType(type), name: name, clockRate: 90_000,
                    rtcpFeedback: ["nack", "nack pli", "ccm fir", "transport-cc", "goog-remb"]))
            video.append(
                CodecDescription(
                    payloadType: PayloadType(type + 1), name: "rtx", clockRate: 90_000,
                    formatParameters: FormatParameters([SDPAttribute("apt", String(type))])))
        }
        let uris: [RTPExtensionKind] = [
            .mid, .rid, .repairedRid, .audioLevel, .transportSequenceNumber, .absoluteSendTime, .videoOrientation,
            .dependencyDescriptor,
        ]
        let extensions = uris.enumerated().map {
            HeaderExtensionDescription(id: UInt8($0.offset + 1), uri: $0.element.uri)
        }
        return MediaCapabilities(
            audioCodecs: [
                CodecDescription(
                    payloadType: PayloadType(111), name: "opus", clockRate: 48_000, channels: 2,
                    rtcpFeedback: ["transport-cc"])
            ],
            videoCodecs: video, audioExtensions: extensions, videoExtensions: extensions)
    }

    /// - Parameter connect: what it will send, by which the offer is judged.
    init?(
        id: ConnectionID, address: SocketAddress, connect: ConnectMessage, videoCodecs: [String], seed: UInt64,
        now: Instant
    ) {
        guard let certificate = Self.certificate else { return nil }
        validator = ServerMessageValidator(connect: connect)
        self.id = id
        self.address = address
        peer = PeerConnection(
            configuration: PeerConfiguration(
                iceRole: .controlling, certificate: certificate, media: Self.capabilities(videoCodecs: videoCodecs)),
            random: RandomSource(seed: seed), now: now)
        peer.addLocalSocket(SocketID(0), address: address, now: now)
    }

    // MARK: Signaling in

    func receive(text: String, now: Instant) {
        guard !isDead, webSocketIsOpen else { return }
        receive(Array(text.utf8), label: nil, now: now)
    }

    func webSocketClosed(code: UInt16, reason: String) {
        webSocketIsOpen = false
        log.append(.webSocketClosed(code: code, reason: reason))
    }

    func webSocketReset() {
        webSocketIsOpen = false
        log.append(.webSocketReset)
    }

    private func judge(_ faults: @autoclosure () -> [String]) {
        guard isStrict else { return }
        for fault in faults() { Issue.record("\(id) got what no server sends: \(fault)") }
    }

    private func receive(_ bytes: [UInt8], label: String?, now: Instant) {
        judge(validator.faults(bytes, label: label))
        guard let json = try? JSONValue(parsing: bytes), let object = json.objectValue else {
            log.append(.data(label: label ?? "WebSocket", bytes))
            return
        }
        let type = object["type"]?.stringValue ?? (object["jsonrpc"] != nil ? "rpc" : "")
        log.append(.message(type: type, label: label, object))
        guard let message = try? SignalingMessage(json: json) else { return }
        switch message {
        case .offer(let offer):
            self.offer = offer
            for definition in offer.dataChannels ?? [] { definitions[definition.label] = definition }
            receiveOffer(offer.sdp, type: "answer", label: label, now: now)
        case .reOffer(let offer):
            // Nothing relates an answer to its offer, hence one at a time (3.2).
            judge(pendingOffers.isEmpty ? [] : ["re-offer before the last one was answered"])
            receiveOffer(offer.sdp, type: "re-answer", label: label, now: now)
        case .ping(let ping):
            if answersPings {
                send(ping.stats == true ? ["type": "pong", "stats": []] : ["type": "pong"], label: label, now: now)
            }
        case .reqStats: send(["type": "stats", "reports": [["type": "transport", "id": "T"]]], label: label, now: now)
        case .switched(let switched):
            isSwitched = true
            dropsWebSocket = switched.ignoreDisconnectWebSocket == true
        default: break
        }
    }
    /// `switched` with `ignore_disconnect_websocket` came: the WebSocket is to be dropped.
    var dropsWebSocket = false

    private func receiveOffer(_ sdp: String, type: String, label: String?, now: Instant) {
        if let description = try? SessionDescription(parsing: sdp) { offeredDescriptions.append(description) }
        pendingOffers.append((sdp, type, label))
        if answersAutomatically { answerOldest(now: now) }
    }

    /// The oldest offer is answered by the test itself.
    func forgetOldestOffer() { if !pendingOffers.isEmpty { pendingOffers.removeFirst() } }

    func answerOldest(now: Instant) {
        guard !pendingOffers.isEmpty else { return }
        let (sdp, type, label) = pendingOffers.removeFirst()
        guard let description = try? SessionDescription(parsing: sdp) else { return }
        do {
            try peer.acceptOffer(description, now: now)
            prepareSending()
            let answer = try peer.makeAnswer(now: now)
            send(["type": .string(type), "sdp": .string(answer.serialized())], label: label, now: now)
        } catch {
            log.append(.message(type: "failure", label: label, ["error": .string("\(error)")]))
        }
    }

    private func prepareSending() {
        guard let mids = offer?.mid else { return }
        for (kind, mid) in [("audio", mids.audio), ("video", mids.video)] {
            guard let mid, ownTransceivers[kind] == nil, let transceiver = peer.transceiver(mid: Mid(mid)) else {
                continue
            }
            transceiver.direction = .sendonly
            transceiver.streamIdentifier = MediaStreamIdentifier(stream: "local", track: kind)
            let rids = kind == "video" ? (offer?.encodings ?? []).compactMap(\.rid) : []
            let wanted = rids.filter { layersToSend?.contains($0) ?? true }
            transceiver.encodings =
                wanted.isEmpty ? [peer.makeEncoding()] : wanted.map { peer.makeEncoding(rid: RestrictionID($0)) }
            ownTransceivers[kind] = transceiver
        }
    }

    // MARK: Signaling out

    /// Sends a signaling message: over the WebSocket, or over a data channel.
    func send(_ message: JSONValue, label: String? = nil, now: Instant) {
        guard !isDead else { return }
        let text = (message.objectValue ?? JSONObject()).text
        guard let label else {
            outgoing.append(text)
            return
        }
        send(data: Array(text.utf8), label: label, now: now)
    }

    func send(data: [UInt8], label: String, now: Instant) {
        guard !isDead, let stream = streams[label], let definition = definitions[label],
            let frame = try? DataChannelFraming(label: label, compress: definition.isCompressed).frame(data)
        else { return }
        try? peer.send(message: frame.payload, isBinary: frame.isBinary, on: stream, now: now)
    }

    func takeOutgoing() -> [String] {
        defer { outgoing.removeAll() }
        return outgoing
    }

    // MARK: Peer connection

    /// Takes what the peer connection has to say; returns what is to be sent.
    func drain(now: Instant) -> [Datagram] {
        var datagrams: [Datagram] = []
        while let output = peer.poll() {
            switch output {
            case .transmit(let datagram): if !isDead { datagrams.append(datagram) }
            case .localCandidate(let candidate):
                if offer != nil {
                    send(["type": "candidate", "candidate": .string(candidate.attributeValue)], now: now)
                }
            case .rtp(let packet): received.append(packet)
            case .keyFrameRequested(let id, let ssrc):
                if let transceiver = peer.transceiver(id),
                    let layer = transceiver.encodings.firstIndex(where: { $0.ssrc == ssrc })
                {
                    keyFrameRequests[layer, default: 0] += 1
                }
            case .senderReport(_, let ssrc, let ntp, let timestamp): senderReports[ssrc] = (ntp, timestamp)
            case .availableBitrate(let bitrate): bitrateLimits.append(bitrate)
            case .dataChannelOpened(let info):
                if info.isRemote { judge(validator.channelFaults(info)) }
                streams[info.label] = info.id
                infos[info.label] = info
                log.append(.channelOpened(info.label))
            case .dataChannelMessage(let stream, let payload, let isBinary):
                guard let label = streams.first(where: { $0.value == stream })?.key else { continue }
                judge(validator.frameFaults(label: label, payload: payload, isBinary: isBinary))
                guard let definition = definitions[label],
                    let message = try? DataChannelFraming(label: label, compress: definition.isCompressed)
                        .message(in: .init(payload: payload, isBinary: isBinary))
                else { continue }
                if !SystemLabel.isApplication(label), isBinary { systemFramesAreText = false }
                if SystemLabel.isApplication(label) {
                    log.append(.data(label: label, message))
                } else {
                    receive(message, label: label, now: now)
                }
            case .dataChannelClosed(let stream):
                if let label = streams.first(where: { $0.value == stream })?.key { log.append(.channelClosed(label)) }
                closedStreams.insert(stream)
            case .ended: log.append(.ended)
            default: break
            }
        }
        return datagrams
    }

    func clearReceived() { received.removeAll() }
    func clearLog() { log.removeAll() }
    func clearKeyFrameRequests() { keyFrameRequests.removeAll() }

    // MARK: Questions

    func messages(_ type: String) -> [JSONObject] {
        log.compactMap { if case .message(let t, _, let object) = $0, t == type { object } else { nil } }
    }

    func labels(of type: String) -> [String?] {
        log.compactMap { entry -> String?? in
            if case .message(let t, let label, _) = entry, t == type { .some(label) } else { nil }
        }
    }

    func notifications(_ event: String) -> [JSONObject] {
        messages("notify").filter { $0["event_type"]?.stringValue == event }
    }

    func data(_ label: String) -> [[UInt8]] {
        log.compactMap { if case .data(let l, let bytes) = $0, l == label { bytes } else { nil } }
    }

    var closeFrames: [(code: UInt16, reason: String)] {
        log.compactMap { if case .webSocketClosed(let code, let reason) = $0 { (code, reason) } else { nil } }
    }

    var hasEnded: Bool { log.contains { if case .ended = $0 { true } else { false } } }
    var allChannelsAreClosed: Bool { !streams.isEmpty && streams.values.allSatisfy { closedStreams.contains($0) } }

    /// What it gets of a sender, in order of arrival.
    func packets(from sender: ConnectionID, _ kind: MediaKind) -> [ReceivedRTP] {
        let ids = peer.transceivers
            .filter { $0.kind == kind && $0.remoteStreamIdentifiers.first?.stream == sender.rawValue }.map(\.id)
        return received.filter { ids.contains($0.transceiver) }
    }
}
