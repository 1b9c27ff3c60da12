import SoraMessages
import SoraPeer
import SoraRTP
import SoraSDP
import SoraWire

// Which member receives what, and the re-offers that follow from it.

extension Channel {
    /// Members that send and are announced, in order of joining, whose media `member` may receive.
    func senders(for member: Member) -> [Member] {
        order.compactMap { members[$0] }.filter { $0.isAnnounced && member.receives(from: $0) }
    }

    /// Adds sections for what `sender` sends. They are offered with the next (re-)offer.
    func subscribe(_ member: Member, to sender: Member) {
        for track in [sender.audioTrack, sender.videoTrack] {
            guard let track, track.kind == .audio ? member.grant.audio : member.grant.video else { continue }
            let key = SubscriptionKey(sender: sender.id, kind: track.kind)
            guard member.subscriptions[key] == nil else { continue }
            let transceiver = member.peer.addTransceiver(
                kind: track.kind == .audio ? .audio : .video, direction: .sendonly, mid: makeMid(track.kind.rawValue))
            transceiver.codecPreferences = track.transceiver.codecs
            transceiver.streamIdentifier = MediaStreamIdentifier(
                stream: sender.id.rawValue, track: "\(sender.id.rawValue)-\(track.kind.rawValue)")
            transceiver.encodings = [member.peer.makeEncoding()]
            let subscription = Subscription(track: track, receiver: member, transceiver: transceiver)
            member.subscriptions[key] = subscription
            track.subscriptions.append(subscription)
        }
    }

    func unsubscribe(_ member: Member, from sender: ConnectionID, now: Instant) {
        var changed = false
        for kind in [TrackKind.audio, .video] {
            guard
                let subscription = member.subscriptions.removeValue(forKey: SubscriptionKey(sender: sender, kind: kind))
            else { continue }
            forget(subscription)
            member.peer.stop(subscription.transceiver.id)
            changed = true
        }
        member.layerWishes.removeValue(forKey: sender)
        member.spotlightRIDs.removeValue(forKey: sender)
        if changed { renegotiate(member, now: now) }
    }

    /// Sends a re-offer, or remembers to once the client has answered the one before (pitfall SRV4).
    func renegotiate(_ member: Member, now: Instant) {
        guard member.isActive else { return }
        guard member.phase != .awaitingAnswer, !member.reofferIsOutstanding else {
            member.needsReoffer = true
            return
        }
        member.needsReoffer = false
        do {
            let offer = try member.peer.makeOffer(now: now)
            member.reofferIsOutstanding = true
            member.reofferDeadline = now + settings.answerTimeout
            deliver(
                SignalingMessage.reOffer(DescriptionMessage(sdp: offer.serialized())).json, type: "re-offer",
                to: member,
                now: now)
        } catch {
            departed.descriptionFailures += 1
            end(member, code: SignalingCloseCode.signalingError, reason: SignalingReason.internalError, now: now)
        }
    }

    /// A member's answer is in force: what it sends can be subscribed to, and what it subscribed to begins.
    func subscriptionsNegotiated(of member: Member, now: Instant) {
        makeTracks(of: member)
        for (key, subscription) in member.subscriptions {
            guard !subscription.transceiver.isStopped else {
                // The client lacks the codec: its section was rejected.
                member.subscriptions.removeValue(forKey: key)
                forget(subscription)
                continue
            }
            startForwarding(subscription, now: now)
        }
    }

    private func forget(_ subscription: Subscription) {
        subscription.forwarder = nil
        subscription.track.subscriptions.removeAll { $0 === subscription }
    }

    /// The member is up: the others are told and offered its tracks, and it is told who is there.
    func announce(_ member: Member, now: Instant) {
        guard member.phase == .connecting else { return }
        member.phase = .connected
        member.connectedAt = now
        member.deadline = nil
        member.nextPing = now + settings.pingInterval
        member.nextStats = now + settings.statsInterval
        member.nextUpdate = now + settings.updateInterval
        member.isAnnounced = true
        emit(event: .joined, member, "role \(member.role.rawValue)", now: now)
        notifyCreated(member, now: now)
        report(.created, member, now: now)
        beginArchive(of: member, now: now)
        // Senders that were announced while this member was negotiating.
        var changed = false
        for sender in senders(for: member) {
            let before = member.subscriptions.count
            subscribe(member, to: sender)
            changed = changed || member.subscriptions.count != before
        }
        if changed { renegotiate(member, now: now) }
        guard member.role.sends else { return }
        for other in order.compactMap({ members[$0] })
        where other !== member && other.isActive && other.receives(from: member) {
            let before = other.subscriptions.count
            subscribe(other, to: member)
            if other.subscriptions.count != before { renegotiate(other, now: now) }
            drain(other, now: now)
        }
    }

    // MARK: Codec parameters

    func opusParameters(_ connect: ConnectMessage) -> FormatParameters {
        var parameters = FormatParameters()
        guard let wishes = connect.audio?.wishes?.opusParams else { return parameters }
        if let value = wishes.maxPlaybackRate { parameters["maxplaybackrate"] = String(value) }
        if let value = wishes.minPtime { parameters["minptime"] = String(value) }
        if let value = wishes.ptime { parameters["ptime"] = String(value) }
        if let value = wishes.stereo { parameters["stereo"] = value ? "1" : "0" }
        if let value = wishes.spropStereo { parameters["sprop-stereo"] = value ? "1" : "0" }
        if let value = wishes.useInbandFEC { parameters["useinbandfec"] = value ? "1" : "0" }
        if let value = wishes.useDTX { parameters["usedtx"] = value ? "1" : "0" }
        return parameters
    }

    func videoParameters(_ connect: ConnectMessage, codec: String) -> FormatParameters {
        var parameters = FormatParameters()
        guard let wishes = connect.video?.wishes else { return parameters }
        switch codec {
        case "VP9":
            if let profile = wishes.vp9Params?["profile_id"]?.intValue, (0...3).contains(profile) {
                parameters["profile-id"] = String(profile)
            }
        case "AV1":
            if let profile = wishes.av1Params?["profile"]?.intValue, (0...2).contains(profile) {
                parameters["profile"] = String(profile)
            }
        case "H264":
            if let level = wishes.h264Params?["profile_level_id"]?.stringValue,
                H264ProfileLevel(profileLevelID: level) != nil
            {
                parameters["profile-level-id"] = level
            }
        case "H265":
            if let level = wishes.h265Params?["level_id"]?.intValue, (1...255).contains(level) {
                parameters["level-id"] = String(level)
            }
        default: break
        }
        return parameters
    }

    /// The simulcast layers of a sender: given by authorization, or derived from its bit rate in the
    /// proportions of the three sizes.
    func encodings(for grant: ConnectionGrant) -> [SimulcastEncoding] {
        if grant.spotlight, let given = grant.spotlightEncodings { return given }
        if let given = grant.simulcastEncodings { return given }
        let total = grant.videoBitRate * 1000
        let shares: [(rid: String, scale: Double, share: Double)] = [
            ("r0", 4, 0.07), ("r1", 2, 0.24), ("r2", 1, 0.69),
        ]
        return shares.map { rid, scale, share in
            var encoding = SimulcastEncoding(rid: rid)
            encoding.active = true
            encoding.scaleResolutionDownBy = scale
            encoding.maxBitrate = max(Int(Double(total) * share), 50_000)
            encoding.scalabilityMode = "L1T1"
            return encoding
        }
    }
}
