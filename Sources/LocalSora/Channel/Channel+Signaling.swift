import SoraICE
import SoraMessages
import SoraPeer
import SoraSDP
import SoraWire

// Signaling messages in and out.

extension Channel {
    // MARK: Out

    /// Sends a signaling message, after the script had its say.
    /// - Parameter carrier: nil chooses: the data channel of the message's type once signaling has been
    ///   switched, else the WebSocket.
    func deliver(
        _ message: JSONObject, type: String, to member: Member, over carrier: Carrier? = nil, now: Instant
    ) {
        touch(member)
        let carrier = carrier ?? self.carrier(for: type, of: member)
        guard let script else {
            transmit(message.text, to: member, over: carrier, now: now)
            return
        }
        let index = member.scriptCounts[type, default: 0]
        member.scriptCounts[type] = index + 1
        var label: String?
        if case .dataChannel(let name) = carrier { label = name }
        let scripted = ScriptedMessage(
            channelID: id, connectionID: member.id.rawValue, type: type, text: message.text, label: label,
            index: index)
        for action in script(scripted) {
            switch action {
            case .pass: transmit(scripted.text, to: member, over: carrier, now: now)
            case .drop: break
            case .send(let text): transmit(text, to: member, over: carrier, now: now)
            case .delay(let delay):
                delayed.append(
                    DelayedMessage(due: now + delay, member: member.id, text: scripted.text, carrier: carrier))
            case .hold(let name):
                held[name, default: []].append(
                    DelayedMessage(due: now, member: member.id, text: scripted.text, carrier: carrier))
            case .closeWebSocket(let code, let reason):
                emit(.closeWebSocket(member.id, code: code, reason: reason))
            case .resetWebSocket:
                emit(.resetWebSocket(member.id))
            }
        }
    }

    /// Lets messages go that a script held under this name.
    package func release(_ name: String, now: Instant) {
        for message in held.removeValue(forKey: name) ?? [] {
            guard let member = members[message.member] else { continue }
            transmit(message.text, to: member, over: message.carrier, now: now)
            drain(member, now: now)
        }
    }

    func releaseDelayed(now: Instant) {
        let due = delayed.filter { $0.due <= now }
        guard !due.isEmpty else { return }
        delayed.removeAll { $0.due <= now }
        for message in due {
            guard let member = members[message.member] else { continue }
            transmit(message.text, to: member, over: message.carrier, now: now)
            drain(member, now: now)
        }
    }

    func carrier(for type: String, of member: Member) -> Carrier {
        let label =
            switch type {
            case "re-offer", "close": SystemLabel.signaling
            case "notify": SystemLabel.notify
            case "push": SystemLabel.push
            case "req-stats": SystemLabel.stats
            default: ""
            }
        return member.isSwitched && member.openChannel(label) != nil ? .dataChannel(label) : .webSocket
    }

    func transmit(_ text: String, to member: Member, over carrier: Carrier, now: Instant) {
        switch carrier {
        case .webSocket:
            if member.webSocketIsOpen { emit(.text(member.id, text)) }
        case .dataChannel(let label):
            send(Array(text.utf8), to: member, label: label, now: now)
        }
    }

    func offerMessage(for member: Member, sdp: String) -> OfferMessage {
        let grant = member.grant
        var offer = OfferMessage(sdp: sdp, connectionID: member.id.rawValue)
        offer.version = settings.version
        offer.channelID = id
        offer.sessionID = sessionID
        offer.clientID = grant.clientID
        offer.bundleID = grant.bundleID
        offer.simulcast = grant.simulcast
        offer.simulcastMulticodec = false
        offer.spotlight = grant.spotlight
        offer.metadata = grant.metadata
        // The iOS SDK decodes no policy but `relay` (spec/signaling.md 2.3): it gets that or no configuration.
        let isIOS = member.connect.soraClient?.hasPrefix("Sora iOS SDK") ?? false
        let servers = grant.turn.apply(to: settings.iceServers)
        if !servers.isEmpty || !isIOS {
            offer.config = OfferICEConfiguration(
                iceServers: servers, iceTransportPolicy: isIOS ? "relay" : settings.iceTransportPolicy)
        }
        if grant.simulcast, grant.role.sends, grant.video { offer.encodings = encodings(for: grant) }
        if grant.role.sends, grant.audio || grant.video {
            offer.mid = OfferMids(audio: member.ownAudio?.mid?.rawValue, video: member.ownVideo?.mid?.rawValue)
        }
        offer.dataChannelSignaling = grant.dataChannelSignaling
        offer.ignoreDisconnectWebSocket = grant.ignoreDisconnectWebSocket
        if grant.dataChannelSignaling { offer.dataChannels = channelDefinitions(for: grant) }
        if !grant.rpcMethods.isEmpty { offer.rpcMethods = grant.rpcMethods }
        offer.audio = grant.audio
        offer.video = grant.video
        if grant.audio { offer.audioCodecType = grant.audioCodec }
        if grant.video {
            offer.videoCodecType = grant.videoCodec
            offer.videoBitRate = grant.videoBitRate
        }
        offer.audioBitRate = grant.audioBitRate
        return offer
    }

    // MARK: In

    func handle(text: String, carrier: Carrier, from member: Member, now: Instant) {
        let message: SignalingMessage
        do {
            message = try SignalingMessage(parsing: text)
        } catch {
            // On the system's data channels any misuse has one name (4.7).
            let reason = carrier == .webSocket ? "INVALID-MESSAGE" : SignalingReason.internalError
            end(member, code: SignalingCloseCode.signalingError, reason: reason, now: now)
            emit(event: .protocolError, member, "\(error)", now: now)
            return
        }
        switch message {
        case .stats, .unknown: break
        default:
            // The label carries statistics alone.
            if carrier == .dataChannel(SystemLabel.stats) {
                return end(
                    member, code: SignalingCloseCode.signalingError, reason: SignalingReason.internalError, now: now)
            }
        }
        switch message {
        case .answer(let answer):
            guard member.phase == .awaitingAnswer else { return }
            acceptAnswer(answer.sdp, from: member, now: now)
        case .reAnswer(let answer), .update(let answer):
            guard member.reofferIsOutstanding else { return }
            acceptAnswer(answer.sdp, from: member, now: now)
        case .candidate(let message):
            // End-of-candidates is an empty text; what cannot be used is no error (3.3).
            if let candidate = try? ICECandidate(parsing: message.candidate) {
                member.peer.addRemoteCandidate(candidate, now: now)
            }
        case .pong(let pong):
            if let stats = pong.stats { member.latestStats = .array(stats) }
        case .stats(let stats):
            member.latestStats = .array(stats.reports)
        case .disconnect(let message):
            clientDisconnected(member, reason: message.reason, now: now)
        case .connect:
            end(member, code: SignalingCloseCode.signalingError, reason: "DUPLICATE-CONNECT", now: now)
        case .ping, .redirect, .offer, .reOffer, .reqStats, .notify, .push, .switched, .close, .unknown:
            break  // not for a server; unknown types are ignored on both sides
        }
    }

    private func acceptAnswer(_ sdp: String, from member: Member, now: Instant) {
        let isFirst = member.phase == .awaitingAnswer
        do throws(AnswerFailure) {
            let description: SessionDescription
            do {
                description = try SessionDescription(parsing: sdp)
            } catch {
                throw AnswerFailure(text: "\(error)")
            }
            do throws(PeerError) {
                try member.peer.acceptAnswer(description, now: now)
            } catch {
                throw AnswerFailure(text: "\(error)")
            }
        } catch {
            emit(event: .protocolError, member, error.text, now: now)
            end(member, code: SignalingCloseCode.signalingError, reason: "INVALID-ANSWER", now: now)
            return
        }
        member.reofferDeadline = nil
        member.reofferIsOutstanding = false
        subscriptionsNegotiated(of: member, now: now)
        if isFirst {
            member.phase = .connecting
            member.deadline = now + settings.answerTimeout
            emit(event: .answered, member, now: now)
        }
        if member.needsReoffer { renegotiate(member, now: now) }
    }

    private struct AnswerFailure: Error { var text: String }
}
