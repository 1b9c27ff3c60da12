import SoraHTTP
import SoraSCTP
import SoraNetwork
import SoraICE
import SoraMessages
import SoraPeer
import SoraRTP
import SoraSDP
import SoraWire

// Driving the peer connection.
extension Examination {
    func receive(_ batch: [Datagram]) {
        note()
        for datagram in batch { peer?.handle(datagram, now: now) }
        drainPeer()
    }

    /// Keeps what the end of the connection would forget.
    func note() {
        guard let peer, course.ended == nil else { return }
        course.servers = peer.iceServerReports
        course.ice = peer.iceStatistics
    }

    func drainPeer() {
        while let output = peer?.poll() { perform(output) }
        if let peer {
            if peer.dtlsIsConnected, course.dtlsConnectedAt == nil { course.dtlsConnectedAt = now }
            note()
            peerTimer?.schedule(at: peer.nextTimeout)
        }
        changed()
    }

    private func perform(_ output: PeerConnection.Output) {
        switch output {
        case .transmit(let datagram): network?.send(datagram)
        case .localCandidate(let candidate):
            send(SignalingMessage.candidate(CandidateMessage(candidate: candidate.attributeValue)).json)
        case .iceStateChanged(let state):
            if state == .connected || state == .completed { course.iceConnectedAt = course.iceConnectedAt ?? now }
        case .ice(.resolve(let name, let token)):
            network?.resolve(name, token: token) { addresses in
                self.note()
                self.peer?.resolved(token, addresses: addresses, now: self.now)
                self.drainPeer()
            }
        case .ice(.openStream(let request)): network?.open(request)
        case .ice(.writeStream(let id, let bytes)): network?.write(bytes, to: id)
        case .ice(.closeStream(let id)): network?.closeStream(id)
        case .rtp(let packet): receive(packet)
        case .dataChannelOpened(let info):
            course.openLabels[info.label] = info.id
            course.labelsByID[info.id] = info.label
        case .dataChannelClosed(let id):
            if let label = course.labelsByID[id] { course.openLabels[label] = nil }
        case .dataChannelMessage(let id, let payload, let isBinary): receive(payload, isBinary: isBinary, on: id)
        case .keyFrameNeeded(let id, _): requestKeyFrame(id)
        case .ended(let error):
            course.ended = .some(error)
            course.endedAt = now
            course.iceFailure = peer?.iceFailureReason
            if let reports = peer?.iceServerReports, !reports.isEmpty { course.servers = reports }
        default: break
        }
    }

    // MARK: Messages behind the offer

    func handle(_ message: SignalingMessage, label: String?) {
        switch message {
        case .ping: send(.pong(PongMessage()), label: label)
        case .reqStats: send(.stats(StatsMessage(reports: [])), label: SystemLabel.stats)
        case .reOffer(let offer), .update(let offer): answer(reOffer: offer.sdp, label: label)
        case .switched(let switched):
            isSwitched = true
            mayLoseWebSocket = switched.ignoreDisconnectWebSocket ?? mayLoseWebSocket
        case .close(let close): course.serverEnd = "the server ended the connection: \(close.code) \(close.reason)"
        default: break
        }
    }

    /// Sends on the WebSocket, or on the data channel of this label.
    func send(_ message: SignalingMessage, label: String?) {
        guard let label else { return send(message.json) }
        guard let id = course.openLabels[label] else { return }
        guard let frame = try? framing(label).frame(message.json.text.utf8Bytes) else { return }
        try? peer?.send(message: frame.payload, isBinary: frame.isBinary, on: id, now: now)
    }

    private func framing(_ label: String) -> DataChannelFraming {
        let definition = offer?.dataChannels?.first { $0.label == label }
        return DataChannelFraming(label: label, compress: definition?.isCompressed ?? false)
    }

    private func receive(_ payload: [UInt8], isBinary: Bool, on id: StreamID) {
        guard let label = course.labelsByID[id], !SystemLabel.isApplication(label), label != SystemLabel.rpc,
            let bytes = try? framing(label).message(in: .init(payload: payload, isBinary: isBinary)),
            let message = try? SignalingMessage(parsing: bytes)
        else { return }
        handle(message, label: label)
    }

    // MARK: Media

    private func receive(_ packet: ReceivedRTP) {
        let id = packet.transceiver
        course.packets[id, default: 0] += 1
        if course.firstPacketAt[id] == nil {
            course.firstPacketAt[id] = now
            requestKeyFrame(id)
        }
        guard course.firstKeyFrameAt[id] == nil, let transceiver = peer?.transceiver(id), transceiver.kind == .video,
            let codec = transceiver.codecs.first(where: { $0.payloadType == packet.header.payloadType }),
            let format = VideoPayloadFormat(encodingName: codec.name)
        else { return }
        let range = packet.header.payloadRange
        guard !range.isEmpty, range.upperBound <= packet.packet.count else { return }
        if let info = try? format.inspect(packet.packet, range), info.startsKeyFrame {
            course.firstKeyFrameAt[id] = now
        } else if let asked = course.keyFrameRequestedAt[id], now - asked > .seconds(1) {
            requestKeyFrame(id)
        }
    }

    private func requestKeyFrame(_ id: TransceiverID) {
        guard let peer, let transceiver = peer.transceiver(id), transceiver.kind == .video,
            let ssrc = peer.inboundSSRC(of: transceiver)
        else { return }
        course.keyFrameRequestedAt[id] = now
        course.keyFrameRequests += 1
        peer.sendKeyFrameRequest(for: ssrc, now: now)
    }

    // MARK: The end

    /// Why the connection is over although nobody here ended it; nil while it lives.
    var unexpectedEnd: String? {
        if let text = course.serverEnd { return text }
        if case .some(let error) = course.ended {
            return error.map { "\($0)" } ?? "the server closed the connection"
        }
        guard let closure, !(isSwitched && mayLoseWebSocket) else { return nil }
        return "the server closed the WebSocket: \(closure.code) \(closure.reason)"
    }

    /// Says goodbye and closes everything.
    func leave() async {
        if let peer, course.ended == nil {
            let goodbye = SignalingMessage.disconnect(DisconnectMessage(reason: SignalingReason.noError))
            let label = isSwitched && course.openLabels[SystemLabel.signaling] != nil ? SystemLabel.signaling : nil
            send(goodbye, label: label)
            drainPeer()
            // The server answers by closing; not waited for long.
            _ = await waitingFor({ self.closure != nil || self.course.ended != nil }, until: now + .milliseconds(300))
            peer.close(now: now)
            drainPeer()
        }
        peerTimer?.cancel()
        peerTimer = nil
        if closure == nil, socket != nil {
            try? socket?.close(code: 1000, reason: "", now: now)
            drainSocket()
            _ = await waitingFor({ self.closure != nil || self.socket == nil }, until: now + .milliseconds(300))
        }
        network?.close()
        network = nil
        peer = nil
        closeWebSocket()
    }
}

extension String {
    var utf8Bytes: [UInt8] { Array(utf8) }
}
