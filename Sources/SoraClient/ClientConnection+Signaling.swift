import SoraMessages
import SoraPeer
import SoraSDP
import SoraWire

extension ClientConnection {
    /// A signaling text, from whichever carrier. Undecodable ones are told, logged and ignored.
    ///
    /// - Parameter channelMessage: what is to be told after the message was acted upon.
    func receive(
        _ text: String, on path: ClientTransport.Path, channelMessage: (label: String, bytes: [UInt8])? = nil,
        now: Instant
    ) {
        tell(.signalingText(text))
        let message: SignalingMessage
        do throws(MessageError) {
            message = try SignalingMessage(parsing: text)
        } catch {
            log(.warning, "ignored a signaling message: \(error)")
            if configuration.waitsForDelivery { undelivered.append(nil) }
            if let channelMessage { tell(.dataChannelMessage(label: channelMessage.label, channelMessage.bytes)) }
            return
        }
        let held = HeldMessage(message: message, text: text, path: path, epoch: epoch, channelMessage: channelMessage)
        guard configuration.waitsForDelivery else { return process(held, now: now) }
        if message.mustNotWait {
            undelivered.append(nil)
            process(held, now: now)
        } else {
            undelivered.append(held)
        }
    }

    /// The application was told of the oldest signaling text that it had not been told of: the message is acted upon.
    /// To be called once for each ``Event/signalingText(_:)`` when ``ClientConfiguration/waitsForDelivery`` is set.
    package func signalingTextDelivered(now: Instant) {
        guard !undelivered.isEmpty, let held = undelivered.removeFirst() else { return }
        guard held.epoch == epoch, state != .disconnected else { return }
        process(held, now: now)
    }

    /// Whether an answer is owed on the WebSocket: being made, waiting for its turn, or for a delivery.
    var owesAnswerOnWebSocket: Bool {
        transport.owesAnswerOnWebSocket
            || undelivered.contains { held in
                guard let held, held.epoch == epoch, held.path == .webSocket else { return false }
                return held.message.wantsAnswer
            }
    }

    private func process(_ held: HeldMessage, now: Instant) {
        actAndTell(held.message, text: held.text, path: held.path, now: now)
        guard let (label, bytes) = held.channelMessage, state != .disconnected, epoch == held.epoch else { return }
        tell(.dataChannelMessage(label: label, bytes))
    }

    private func actAndTell(_ message: SignalingMessage, text: String, path: ClientTransport.Path, now: Instant) {
        let before = epoch
        act(on: message, text: text, path: path, now: now)
        guard state != .disconnected else { return }
        // An offer is told by its own processing, between its synchronous effects and the rest.
        if case .offer = message { return }
        tell(.signaling(message, text: text))
        if epoch == before { startNegotiation(now: now) }
    }

    private func act(on message: SignalingMessage, text: String, path: ClientTransport.Path, now: Instant) {
        // While ending, messages are still told but change nothing.
        guard isAlive else { return }
        switch message {
        case .offer(let offer): take(offer, text: text, path: path, now: now)
        case .redirect(let redirect):
            guard path == .webSocket else {
                log(.warning, "ignored a redirect that came over a data channel")
                return
            }
            self.redirect(to: redirect.location, now: now)
        case .reOffer(let description): enqueue(.init(kind: .reOffer, sdp: description.sdp, path: path), now: now)
        case .update(let description): enqueue(.init(kind: .update, sdp: description.sdp, path: path), now: now)
        case .ping(let ping): answer(ping, on: path, now: now)
        case .reqStats: requestStatistics(.stats, path: path)
        case .notify(let notify): count(notify)
        case .switched(let switched): take(switched, now: now)
        case .close(let close): take(close, now: now)
        case .push: break
        case .connect, .answer, .candidate, .reAnswer, .pong, .stats, .disconnect:
            log(.warning, "ignored a message of type \(message.type), which only clients send")
        case .unknown(let type, _): log(.info, "ignored a message of unknown type \(type.prefix(64))")
        }
    }

    // MARK: Sending

    /// Sends a message on `path`, or on the other way if that one is gone. False if there is none.
    @discardableResult
    func send(_ message: SignalingMessage, on path: ClientTransport.Path, now: Instant) -> Bool {
        switch path {
        case .webSocket:
            if let dial = transport.openWebSocket {
                emit(.sendText(dial, message.text))
                return true
            }
            guard let channel = transport.channelOfLabel[SystemLabel.signaling] else { break }
            return send(Array(message.text.utf8), onChannel: channel, now: now)
        case .channel(let id):
            if send(Array(message.text.utf8), onChannel: id, now: now) { return true }
            if let dial = transport.openWebSocket {
                emit(.sendText(dial, message.text))
                return true
            }
        }
        log(.warning, "no way left to send a message of type \(message.type)")
        return false
    }

    func sendCandidate(_ candidate: String, now: Instant) {
        guard isAlive else { return }
        guard transport.firstAnswerSent else {
            if transport.heldCandidates.count < configuration.limits.waitingCandidates {
                transport.heldCandidates.append(candidate)
            }
            return
        }
        guard let path = transport.signalingPath else { return }
        send(.candidate(CandidateMessage(candidate: candidate)), on: path, now: now)
    }

    // MARK: Ping and statistics

    private func answer(_ ping: PingMessage, on path: ClientTransport.Path, now: Instant) {
        if ping.stats == true, transport.peer != nil {
            requestStatistics(.pong, path: path)
        } else {
            send(.pong(PongMessage()), on: path, now: now)
        }
    }

    func requestStatistics(_ reply: ClientTransport.PendingStatistics.Reply, path: ClientTransport.Path) {
        let token = StatisticsToken(makeToken())
        transport.statistics[token] = .init(reply: reply, path: path)
        emit(.collectStatistics(token))
    }

    /// The statistics that ``Output/collectStatistics(_:)`` asked for; nil if they could not be collected.
    /// Late ones of an older epoch vanish.
    package func provideStatistics(_ reports: [JSONValue]?, for token: StatisticsToken, now: Instant) {
        guard isAlive, let request = transport.statistics.removeValue(forKey: token) else { return }
        switch request.reply {
        case .pong: send(.pong(PongMessage(stats: reports)), on: request.path, now: now)
        case .stats: send(.stats(StatsMessage(reports: reports ?? [])), on: request.path, now: now)
        }
        drainPeer(now: now)
    }

    private func count(_ notify: NotifyMessage) {
        guard let connections = notify.channelConnections, let sendonly = notify.channelSendonlyConnections,
            let recvonly = notify.channelRecvonlyConnections, let sendrecv = notify.channelSendrecvConnections
        else { return }
        tell(
            .countsChanged(
                connections: connections, publishers: sendonly.saturatingSum(sendrecv),
                subscribers: recvonly.saturatingSum(sendrecv)))
    }

    // MARK: Offers

    private func take(_ offer: OfferMessage, text: String, path: ClientTransport.Path, now: Instant) {
        guard transport.offer == nil, path == .webSocket else {
            log(.warning, "ignored a second offer on one transport")
            tell(.signaling(.offer(offer), text: text))
            return
        }
        transport.offer = offer
        connectionID = offer.connectionID
        clientID = offer.clientID
        bundleID = offer.bundleID
        connectedURL = transport.url
        do throws(ClientError) {
            transport.peer = try makePeer(offer, now)
        } catch {
            tell(.signaling(.offer(offer), text: text))
            end(error, cause: .signalingFailure, now: now)
            return
        }
        for warning in transport.peer?.warnings ?? [] { log(.warning, warning) }
        emit(.openSockets(epoch: epoch))
        tell(.offerTaken(offer))
        tell(.signaling(.offer(offer), text: text))
        enqueue(.init(kind: .offer, sdp: offer.sdp, path: path), now: now)
        startNegotiation(now: now)
    }

    private func enqueue(_ description: ClientTransport.Description, now: Instant) {
        guard transport.peer != nil else {
            log(.warning, "ignored a re-offer that came before the offer")
            return
        }
        guard transport.waiting.count < configuration.limits.waitingOffers else {
            end(
                .signalingChannel("more than \(configuration.limits.waitingOffers) unanswered re-offers"),
                cause: .signalingFailure, now: now)
            return
        }
        transport.waiting.append(description)
    }

    /// Begins to answer the oldest waiting description, if none is being answered.
    func startNegotiation(now: Instant) {
        guard isAlive, transport.negotiating == nil, !transport.waiting.isEmpty, let peer = transport.peer else {
            return
        }
        let description = transport.waiting.removeFirst()
        transport.negotiating = description
        let parsed: SessionDescription
        do throws(SDPError) {
            parsed = try SessionDescription(parsing: description.sdp)
        } catch {
            end(.engine(.unusableDescription("\(error)")), cause: .signalingFailure, now: now)
            return
        }
        do throws(PeerError) {
            try peer.accept(parsed, now: now)
        } catch {
            end(.engine(error), cause: .signalingFailure, now: now)
            return
        }
        do throws(ClientError) {
            try attachTracks(of: description.kind, to: peer, now: now)
        } catch {
            end(error, cause: .signalingFailure, now: now)
            return
        }
        peer.beginAnswer(now: now)
        drainPeer(now: now)
    }

    /// Own tracks go to the sections that the offer names. Re-offers apply the same parameters again.
    private func attachTracks(
        of kind: ClientTransport.Description.Kind, to peer: any ClientPeer, now: Instant
    ) throws(ClientError) {
        guard configuration.sendsAudio || configuration.sendsVideo, let offer = transport.offer else { return }
        guard let mids = offer.mid else { throw .peerChannel("mid not found") }
        var senders = AttachedSenders()
        if configuration.sendsAudio, let mid = mids.audio {
            senders.audio = try peer.attach(
                LocalTrack(
                    isVideo: false, mid: mid, streamID: configuration.publisherStreamID,
                    trackID: configuration.audioTrackID, encodings: [], isSimulcast: false), now: now)
        }
        if configuration.sendsVideo, let mid = mids.video {
            senders.video = try peer.attach(
                LocalTrack(
                    isVideo: true, mid: mid, streamID: configuration.publisherStreamID,
                    trackID: configuration.videoTrackID, encodings: offer.encodings ?? [],
                    isSimulcast: offer.simulcast ?? configuration.connect.simulcast ?? false), now: now)
        }
        if kind == .offer { tell(.sendersAttached(senders)) }
    }

    /// The answer is in force: it leaves, then streams are told, then the next description has its turn.
    func answerMade(_ answer: SessionDescription, now: Instant) {
        guard isAlive, let description = transport.negotiating else { return }
        transport.negotiating = nil
        let message = DescriptionMessage(sdp: answer.serialized())
        let reply: SignalingMessage =
            switch description.kind {
            case .offer: .answer(message)
            case .reOffer: .reAnswer(message)
            case .update: .update(message)
            }
        guard send(reply, on: description.path, now: now) else {
            end(
                .peerChannel("failed to send re-answer message over DataChannel"), cause: .signalingFailure, now: now)
            return
        }
        transport.firstAnswerSent = true
        let held = transport.heldCandidates
        transport.heldCandidates = []
        for candidate in held { sendCandidate(candidate, now: now) }
        updateStreams()
        startNegotiation(now: now)
        shutDownWebSocketIfDue(now: now)
    }

    private func updateStreams() {
        guard let peer = transport.peer else { return }
        // The placeholder stream and everything of our own are no remote senders.
        let own = Set([connectionID, clientID, "default"].compactMap { $0 })
        let current = peer.remoteStreams.filter { !own.contains($0.id) }
        for old in transport.streams where !current.contains(where: { $0.id == old.id }) {
            transport.streams.removeAll { $0.id == old.id }
            tell(.streamRemoved(id: old.id))
        }
        for stream in current {
            if let index = transport.streams.firstIndex(where: { $0.id == stream.id }) {
                guard transport.streams[index] != stream else { continue }
                transport.streams[index] = stream
                tell(.streamChanged(stream))
            } else {
                transport.streams.append(stream)
                tell(.streamAdded(stream))
            }
        }
    }

    // MARK: Switching and closing

    private func take(_ switched: SwitchedMessage, now: Instant) {
        transport.switched = true
        if switched.ignoreDisconnectWebSocket == true { transport.ignoresWebSocket = true }
        let missing = expectedLabels.filter { transport.channelOfLabel[$0] == nil }
        if !missing.isEmpty {
            log(.warning, "switched, but these channels are not open: \(missing.joined(separator: ", "))")
        }
        armWebSocketShutdown(now: now)
    }

    /// The message only announces: the channels close afterwards, or the time for that runs out.
    private func take(_ close: CloseMessage, now: Instant) {
        guard transport.announcedClose == nil else { return }
        transport.announcedClose = close
        transport.closeDeadline = now + configuration.limits.closeWait
    }
}

extension SignalingMessage {
    /// What must not wait for an application: signs of life, and facts that decide what the next news means.
    fileprivate var mustNotWait: Bool {
        switch self {
        case .ping, .reqStats, .switched, .redirect, .close: true
        default: false
        }
    }

    fileprivate var wantsAnswer: Bool {
        switch self {
        case .offer, .reOffer, .update: true
        default: false
        }
    }
}

extension Int {
    func saturatingSum(_ other: Int) -> Int {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? (other < 0 ? .min : .max) : sum
    }
}
