import SoraMessages
import SoraPeer
import SoraRTP
import SoraWire

// Media on its way from one member to the others. Packets are decrypted once and encrypted for each
// receiver; nothing is decoded.

extension Channel {
    func makeForwarder(kind: TrackKind, source: Transceiver) -> TrackForwarder { TrackForwarder(kind: kind) }

    /// A receiver's section is negotiated: let the track flow, beginning with a key frame.
    func startForwarding(_ subscription: Subscription, key: SubscriptionKey, to member: Member, now: Instant) {
        guard subscription.transceiver.maySend, !subscription.forwarder.isRunning else { return }
        subscription.forwarder.start()
        emit(event: .forwardingStarted, member, "\(key.kind.rawValue) from \(key.sender)", now: now)
        if key.kind == .video, let sender = members[key.sender] {
            askForKeyFrame(of: sender, now: now)
        }
    }

    func forward(_ received: ReceivedRTP, from sender: Member, now: Instant) {
        let kind: TrackKind
        if received.transceiver == sender.ownAudio?.id {
            kind = .audio
        } else if received.transceiver == sender.ownVideo?.id {
            kind = .video
        } else {
            return
        }
        let key = SubscriptionKey(sender: sender.id, kind: kind)
        for id in order {
            guard let receiver = members[id], let subscription = receiver.subscriptions[key],
                passesFilters(kind, of: sender, to: receiver), subscription.forwarder.accepts(received)
            else { continue }
            // A receiver that is not up yet, or not any more, misses the packet.
            try? receiver.peer.send(
                rtp: received.packet, header: received.header, on: subscription.transceiver, now: now)
            drainTransmissions(of: receiver, now: now)
        }
    }

    private func drainTransmissions(of member: Member, now: Instant) { drain(member, now: now) }

    private func passesFilters(_ kind: TrackKind, of sender: Member, to receiver: Member) -> Bool {
        receiver.filters.isEmpty
            || ForwardingFilter.forwards(
                .init(connectionID: sender.id.rawValue, clientID: sender.clientID, kind: kind.rawValue),
                through: receiver.filters)
    }

    // MARK: Key frames

    func keyFrameRequested(by member: Member, transceiver: TransceiverID, now: Instant) {
        guard let (key, _) = member.subscriptions.first(where: { $0.value.transceiver.id == transceiver }),
            key.kind == .video, let sender = members[key.sender]
        else { return }
        askForKeyFrame(of: sender, now: now)
    }

    /// Asks a sender for a key frame of its video, unless it was asked a moment ago: requests of all
    /// receivers merge (pitfall RTP9).
    func askForKeyFrame(of sender: Member, now: Instant) {
        guard let video = sender.ownVideo else { return }
        let layers = video.receivingLayers.isEmpty ? [nil] : video.receivingLayers.map { Optional($0) }
        for rid in layers {
            if let ssrc = sender.peer.inboundSSRC(of: video, rid: rid) {
                askForKeyFrame(of: sender, ssrc: ssrc, now: now)
            }
        }
    }

    func askForKeyFrame(of sender: Member, ssrc: SSRC, now: Instant) {
        if let last = sender.lastKeyFrameRequest[ssrc], now - last < settings.keyFrameInterval { return }
        sender.lastKeyFrameRequest[ssrc] = now
        sender.peer.sendKeyFrameRequest(for: ssrc, now: now)
        emit(event: .keyFrameRequested, sender, "ssrc \(ssrc)", now: now)
        drain(sender, now: now)
    }

    // MARK: Sender reports

    /// Carries a sender's clock on to its receivers, so that they play sound and picture in sync.
    func passOn(
        ntp: NTPTime, timestamp: RTPTimestamp, ssrc: SSRC, transceiver: TransceiverID, from sender: Member, now: Instant
    ) {
        let kind: TrackKind = transceiver == sender.ownAudio?.id ? .audio : .video
        let key = SubscriptionKey(sender: sender.id, kind: kind)
        for member in members.values {
            guard let subscription = member.subscriptions[key], subscription.forwarder.source == ssrc else { continue }
            member.peer.setClockMapping(of: subscription.transceiver, ntp: ntp, timestamp: timestamp, now: now)
        }
    }

    func availableBitrateChanged(_ bitrate: Int, of member: Member, now: Instant) {}

    // MARK: Layers

    func requestLayer(_ rid: LayerRID, of sender: ConnectionID?, for member: Member, now: Instant) throws(RPCErrorObject) {
        if let sender {
            member.requestedLayers[sender] = rid
        } else {
            member.requestedLayers.removeAll()
            member.defaultLayer = rid
        }
    }

    func requestSpotlightLayers(
        focus: LayerRID, unfocus: LayerRID, of sender: ConnectionID?, for member: Member, now: Instant
    ) throws(RPCErrorObject) {
        guard member.grant.spotlight else {
            throw RPCErrorObject(code: RPCErrorObject.invalidParams, message: "the channel has no spotlight")
        }
    }

    func resetSpotlightLayers(of sender: ConnectionID?, for member: Member, now: Instant) throws(RPCErrorObject) {
        guard member.grant.spotlight else {
            throw RPCErrorObject(code: RPCErrorObject.invalidParams, message: "the channel has no spotlight")
        }
    }
}
