import SoraMessages
import SoraPeer
import SoraRTP
import SoraWire

// Media on its way from one member to the others. Packets are decrypted once and encrypted for each
// receiver; nothing is decoded.
//
// The way of a packet: peer connection of the sender → `forward` (which layer of which track) →
// `StreamForwarder` of each subscription (numbers of that receiver) → peer connection of the receiver.

extension Channel {
    // MARK: Tracks

    /// The sender's own sections are agreed: what it sends can be subscribed to.
    func makeTracks(of member: Member) {
        if let audio = member.ownAudio, audio.mayReceive, member.audioTrack == nil {
            member.audioTrack = SenderTrack(
                sender: member, kind: .audio, transceiver: audio, keyFrameInterval: settings.keyFrameInterval)
        }
        if let video = member.ownVideo, video.mayReceive, member.videoTrack == nil {
            member.videoTrack = SenderTrack(
                sender: member, kind: .video, transceiver: video, keyFrameInterval: settings.keyFrameInterval)
        }
        member.audioTrack?.refresh()
        member.videoTrack?.refresh()
    }

    /// Lets a track flow once its section is agreed and the receiver's connection is up, beginning with
    /// a key frame: earlier ones would be lost.
    func startForwarding(_ subscription: Subscription, now: Instant) {
        let receiver = subscription.receiver
        guard subscription.forwarder == nil, subscription.transceiver.maySend, receiver.peer.state == .connected,
            let encoding = subscription.transceiver.encodings.first
        else { return }
        let track = subscription.track
        subscription.forwarder = StreamForwarder(
            ssrc: encoding.ssrc, payloadType: nil, clockRate: track.clockRate, isVideo: track.kind == .video,
            random: &random)
        subscription.isBlocked = !passesFilters(track, to: receiver)
        emit(event: .forwardingStarted, receiver, "\(track.kind.rawValue) from \(track.sender.id)", now: now)
        select(subscription, now: now)
    }

    /// Starts whatever of a receiver's subscriptions can start.
    func startForwarding(to receiver: Member, now: Instant) {
        for subscription in receiver.subscriptions.values where !subscription.isFlowing {
            startForwarding(subscription, now: now)
        }
    }

    // MARK: Packets

    func forward(_ received: ReceivedRTP, from sender: Member, now: Instant) {
        guard let track = sender.track(of: received.transceiver), let layer = track.layerIndex(of: received) else {
            return
        }
        note(received, track: track, layer: layer, now: now)
        guard !track.subscriptions.isEmpty || track.archive != nil else { return }
        let packet = ForwardablePacket(
            received.packet, header: received.header, format: track.format,
            dependencyDescriptorID: track.dependencyDescriptorID)
        if packet.startsKeyFrame { track.layers[layer].keyFrames.keyFrameArrived() }
        for subscription in track.subscriptions {
            forward(packet, layer: layer, subscription: subscription, now: now)
        }
        archive(packet, layer: layer, track: track, now: now)
    }

    private func forward(_ packet: ForwardablePacket, layer: Int, subscription: Subscription, now: Instant) {
        guard let before = subscription.forwarder?.switchCount else { return }
        var hasSent = false
        if let bytes = subscription.forwarder?.forward(packet, layer: layer, now: now) {
            var header = packet.header
            send(bytes, header: &header, subscription: subscription, now: now)
            hasSent = true
        }
        // Packets that were held until a key frame's beginning came.
        while let held = subscription.forwarder?.poll() {
            guard var header = try? RTPHeader(parsing: held) else { continue }
            send(held, header: &header, subscription: subscription, now: now)
            hasSent = true
        }
        guard hasSent else { return }
        if subscription.forwarder?.switchCount != before { switched(subscription, now: now) }
        drain(subscription.receiver, now: now)
    }

    /// - Parameter header: of the packet as it came; gets the numbers of the packet as it leaves.
    private func send(_ bytes: [UInt8], header: inout RTPHeader, subscription: Subscription, now: Instant) {
        guard bytes.count >= RTPHeader.minimumLength else { return }
        header.sequenceNumber = SequenceNumber(UInt16(bytes[2]) << 8 | UInt16(bytes[3]))
        header.timestamp = RTPTimestamp(
            UInt32(bytes[4]) << 24 | UInt32(bytes[5]) << 16 | UInt32(bytes[6]) << 8 | UInt32(bytes[7]))
        subscription.packets &+= 1
        subscription.bytes &+= UInt64(header.payloadLength)
        // A receiver that is not up any more misses the packet.
        try? subscription.receiver.peer.send(rtp: bytes, header: header, on: subscription.transceiver, now: now)
    }

    /// Books a packet's arrival: whose layer it is, that the layer lives, how loud it is.
    private func note(_ received: ReceivedRTP, track: SenderTrack, layer: Int, now: Instant) {
        track.lastPacket = now
        if track.layers[layer].ssrc != received.ssrc {
            let isRestart = track.layers[layer].ssrc != nil
            track.layers[layer].ssrc = received.ssrc
            if isRestart {
                for subscription in track.subscriptions { subscription.forwarder?.sourceRestarted(layer) }
                track.archive?.forwarder.sourceRestarted(layer)
                requestMissingKeyFrames(of: track, now: now)
            }
        }
        track.layers[layer].lastPacket = now
        track.layers[layer].framesMissed = 0
        track.layers[layer].bytes += received.packet.count
        track.layers[layer].packets &+= 1
        if received.header.marker, track.isSimulcast {
            for index in track.layers.indices where index != layer { track.layers[index].framesMissed += 1 }
        }
        if let id = track.audioLevelID, let range = received.header.extensionRange(id: id, in: received.packet),
            let level = RTPExtensionValue.audioLevel(received.packet, range)
        {
            track.loudness.receive(decibels: level.level, now: now)
        }
        if nextMediaTick == nil { nextMediaTick = now + Self.mediaTickInterval }
        // Padding alone is a probe of the sender's, not a picture.
        if !track.layers[layer].isActive, received.header.payloadLength > 0 {
            track.layers[layer].isActive = true
            layersChanged(of: track, now: now)
        }
    }

    // MARK: Key frames

    /// A receiver lost the picture.
    func keyFrameRequested(by receiver: Member, transceiver: TransceiverID, now: Instant) {
        guard
            let subscription = receiver.subscriptions.values.first(where: { $0.transceiver.id == transceiver }),
            let layer = subscription.forwarder?.currentLayer ?? subscription.forwarder?.targetLayer
        else { return }
        requestKeyFrame(of: subscription.track, layer: layer, now: now)
    }

    /// The sender's packets are lost for good.
    func keyFrameNeeded(of sender: Member, ssrc: SSRC, now: Instant) {
        guard let track = sender.videoTrack, let layer = track.layers.firstIndex(where: { $0.ssrc == ssrc }),
            track.isWanted(layer)
        else { return }
        requestKeyFrame(of: track, layer: layer, now: now)
    }

    /// Asks for a key frame of one layer. Wishes of all receivers merge, and it is asked again until it
    /// comes (pitfall RTP9).
    func requestKeyFrame(of track: SenderTrack, layer: Int, now: Instant) {
        guard track.kind == .video, track.layers.indices.contains(layer), track.layers[layer].isActive else { return }
        track.layers[layer].keyFrames.request(now: now)
        if !track.isAwaitingKeyFrame {
            track.isAwaitingKeyFrame = true
            tracksAwaitingKeyFrames.append(track)
        }
        sendKeyFrameRequests(of: track, now: now)
    }

    /// Asks for what the forwarders of a track wait for.
    func requestMissingKeyFrames(of track: SenderTrack, now: Instant) {
        for layer in track.layers.indices
        where track.archive?.layerNeedingKeyFrame == layer
            || track.subscriptions.contains(where: { $0.forwarder?.layerNeedingKeyFrame == layer })
        {
            requestKeyFrame(of: track, layer: layer, now: now)
        }
    }

    private func sendKeyFrameRequests(of track: SenderTrack, now: Instant) {
        var hasSent = false
        for layer in track.layers.indices {
            guard let ssrc = track.layers[layer].ssrc, track.layers[layer].keyFrames.handleTimeout(now: now) else {
                continue
            }
            track.sender.peer.sendKeyFrameRequest(for: ssrc, now: now)
            hasSent = true
            emit(event: .keyFrameRequested, track.sender, "layer \(track.name(of: layer).rawValue)", now: now)
        }
        if hasSent { drain(track.sender, now: now) }
    }

    /// When the next repeated or merged key frame request is due.
    var keyFrameTimeout: Instant? {
        var earliest: Instant?
        for track in tracksAwaitingKeyFrames {
            for layer in track.layers {
                if let due = layer.keyFrames.nextTimeout { earliest = min(earliest ?? due, due) }
            }
        }
        return earliest
    }

    func handleKeyFrameTimeouts(now: Instant) {
        for track in tracksAwaitingKeyFrames {
            for layer in track.layers.indices where track.layers[layer].keyFrames.isWaiting {
                // Nobody waits any more, or nothing comes that could carry it.
                let isWanted =
                    track.layers[layer].isActive && track.sender.phase != .gone && track.isWanted(layer)
                if !isWanted { track.layers[layer].keyFrames.cancel() }
            }
            sendKeyFrameRequests(of: track, now: now)
        }
        tracksAwaitingKeyFrames.removeAll { track in
            track.isAwaitingKeyFrame = track.layers.contains(where: \.keyFrames.isWaiting)
            return !track.isAwaitingKeyFrame
        }
    }

    // MARK: Sender reports

    /// Carries a sender's clock on to its receivers, so that they play sound and picture in sync: in the
    /// sender's own intervals, on the server's clock.
    func passOn(
        ntp: NTPTime, timestamp: RTPTimestamp, ssrc: SSRC, transceiver: TransceiverID, from sender: Member, now: Instant
    ) {
        guard let track = sender.track(of: transceiver), let layer = track.layers.firstIndex(where: { $0.ssrc == ssrc })
        else { return }
        let report = SenderReport(
            ssrc: ssrc, ntpTime: sender.clock.serverTime(of: ntp, arrival: NTPTime(now, origin: NTPTime(ntpOrigin))),
            rtpTimestamp: timestamp, packetCount: 0, octetCount: 0, reports: [])
        track.archive?.forwarder.receive(report, layer: layer)
        for subscription in track.subscriptions {
            subscription.forwarder?.receive(report, layer: layer)
            guard subscription.forwarder?.currentLayer == layer,
                let outgoing = subscription.forwarder?.outgoingTimestamp(at: report.ntpTime)
            else { continue }
            subscription.receiver.peer.setClockMapping(
                of: subscription.transceiver, ntp: report.ntpTime, timestamp: outgoing, now: now)
        }
    }
}

/// A sender's wall clock against ours. Both its tracks share it, so that they stay in sync.
struct SenderClock {
    /// Ours minus the sender's, in NTP units: the smallest seen, which is the one of the fastest way.
    private var offset: Int64?

    mutating func serverTime(of ntp: NTPTime, arrival: NTPTime) -> NTPTime {
        let measured = Int64(bitPattern: arrival.rawValue &- ntp.rawValue)
        // A jump of more than two seconds is another clock.
        if let known = offset, (measured &- known).magnitude < UInt64(2) << 32 {
            offset = min(known, measured)
        } else {
            offset = measured
        }
        return NTPTime(ntp.rawValue &+ UInt64(bitPattern: offset ?? 0))
    }
}
