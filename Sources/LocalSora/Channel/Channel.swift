import SoraICE
import SoraMessages
import SoraPeer
import SoraRTP
import SoraSDP
import SoraWire

/// One channel with all its connections: signaling, messaging and forwarding of media.
///
/// A sans-IO machine. WebSocket frames, datagrams and time come in as calls; what is to be done comes
/// out of ``poll()``. Nothing here decodes media.
///
/// Invariant: a connection that was announced as created is announced as destroyed exactly once, and
/// one that was never announced never is.
///
/// Not thread-safe: one ``ServerLoop`` owns it.
package final class Channel {
    package enum Output {
        /// A text frame for a connection's WebSocket.
        case text(ConnectionID, String)
        /// A close frame. The WebSocket sends nothing more.
        case closeWebSocket(ConnectionID, code: UInt16, reason: String)
        /// Cut the TCP connection without a close frame; only scripts ask for it.
        case resetWebSocket(ConnectionID)
        case transmit(ConnectionID, Datagram)
        /// The connection is over; forget its addresses and credentials.
        case removed(ConnectionID)
        case event(ServerEvent)
        /// For webhooks and counters.
        case connection(ConnectionEvent)
        /// For webhooks.
        case recording(RecordingEvent)
        /// Bytes for a file of a recording.
        case file(FileOutput)
    }

    package let id: String
    package let sessionID: String
    let settings: ChannelSettings
    var random: RandomSource
    var members: [ConnectionID: Member] = [:]
    /// In order of joining.
    var order: [ConnectionID] = []
    /// Called with each signaling message before it leaves; nil lets everything pass.
    package var script: (@Sendable (ScriptedMessage) -> [ScriptAction])?
    var delayed: [DelayedMessage] = []
    var held: [String: [DelayedMessage]] = [:]

    /// Filters for all receivers, beside each receiver's own.
    var channelFilters: [ForwardingFilter] = []
    /// Channels are made of spotlight connections alone or have none.
    private(set) var isSpotlight = false
    var recording: Recording?
    var spotlightNumber: Int
    /// When its first connection came.
    private(set) var createdAt = Instant.zero
    private(set) var maximumConnections = 0
    private(set) var totalConnections = 0
    /// What members that are gone had counted, for the server's report.
    var departed = ChannelTotals()
    /// Tracks of which some layer waits for a key frame.
    var tracksAwaitingKeyFrames: [SenderTrack] = []
    /// When layers, rates and loudness are looked at next; nil while no media comes.
    var nextMediaTick: Instant?
    var lastRateReckoning = Instant.zero
    var lastStatusCheck = Instant.zero

    var timeouts = TimeoutQueue()
    /// Members whose deadlines may have changed since they were scheduled.
    private var touched: [Member] = []
    private var outputs: [Output] = []
    private var nextOutput = 0

    package init(id: String, settings: ChannelSettings, random: RandomSource) {
        self.id = id
        self.settings = settings
        spotlightNumber = settings.spotlightNumber
        var random = random
        sessionID = SignalingID.generate(using: &random)
        self.random = random
    }

    deinit {
        for member in members.values { member.forgetMedia() }
    }

    package var isEmpty: Bool { members.isEmpty }
    package func hasMember(_ id: ConnectionID) -> Bool { members[id]?.isActive ?? false }
    /// Connections that the others know of, in order of joining.
    package var announcedIDs: [String] {
        order.filter { members[$0]?.isAnnounced ?? false }.map(\.rawValue)
    }

    package func poll() -> Output? {
        guard nextOutput < outputs.count else {
            if nextOutput > 0 {
                outputs.removeAll(keepingCapacity: true)
                nextOutput = 0
            }
            return nil
        }
        defer { nextOutput += 1 }
        return outputs[nextOutput]
    }

    func emit(_ output: Output) { outputs.append(output) }
    func emit(event: ServerEvent.Kind, _ member: Member, _ detail: String = "", now: Instant) {
        emit(.event(ServerEvent(kind: event, at: now, channelID: id, connectionID: member.id.rawValue, detail: detail)))
    }

    // MARK: Joining

    /// Admits a connection and sends it the offer.
    /// - Parameters:
    ///   - socket: where its media is to arrive, and the address that its candidate advertises.
    /// - Returns: the ICE user name fragment by which its first packets are recognised.
    package func join(
        _ id: ConnectionID, connect: ConnectMessage, grant: ConnectionGrant,
        sockets: [(id: SocketID, address: SocketAddress)], now: Instant
    ) throws(ConnectRejection) -> String {
        guard members.count < settings.maximumMembers else { throw ConnectRejection(reason: "TOO-MANY-CONNECTIONS") }
        if !members.isEmpty, members.values.contains(where: { $0.grant.spotlight != grant.spotlight }) {
            throw ConnectRejection(reason: "SPOTLIGHT-MISMATCH-IN-CHANNEL")
        }
        var ice = SoraICE.ICEConfiguration()
        ice.mode = .lite
        let peer = PeerConnection(
            configuration: PeerConfiguration(
                iceRole: .controlled, ice: ice, certificate: settings.certificate,
                media: MediaNumbers.capabilities, maximumMessageSize: settings.maximumMessageSize,
                canonicalName: id.rawValue, ntpEpoch: ntpOrigin),
            random: random.split(), now: now)
        for socket in sockets { peer.addLocalSocket(socket.id, address: socket.address, now: now) }
        let member = Member(id: id, connect: connect, grant: grant, peer: peer, settings: settings, now: now)
        addOwnSections(of: member)
        if grant.dataChannelSignaling { peer.enableDataChannels() }
        if totalConnections == 0 { createdAt = now }
        totalConnections += 1
        members[id] = member
        order.append(id)
        maximumConnections = max(maximumConnections, members.count)
        if members.count == 1 {
            isSpotlight = grant.spotlight
            if isSpotlight { spotlightNumber = grant.spotlightNumber }
        }
        for sender in senders(for: member) { subscribe(member, to: sender) }
        if member.ownAudio == nil, member.ownVideo == nil, member.subscriptions.isEmpty, !grant.dataChannelSignaling {
            // A connection without any section could not connect; an inactive one is enough (2.7.3).
            _ = peer.addTransceiver(kind: .audio, direction: .inactive, mid: makeMid("audio"))
        }
        do {
            let offer = try peer.makeOffer(now: now)
            deliver(offerMessage(for: member, sdp: offer.serialized()).json, type: "offer", to: member, now: now)
        } catch {
            departed.descriptionFailures += 1
            remove(member, now: now)
            throw ConnectRejection(reason: SignalingReason.internalError)
        }
        drain(member, now: now)
        emit(event: .connectReceived, member, "role \(grant.role.rawValue)", now: now)
        return peer.localUsernameFragment
    }

    private func addOwnSections(of member: Member) {
        let grant = member.grant
        guard grant.role.sends else { return }
        if grant.audio {
            let audio = member.peer.addTransceiver(kind: .audio, direction: .recvonly, mid: makeMid("audio"))
            audio.codecPreferences = [MediaNumbers.opusCodec(opusParameters(member.connect))]
            audio.receiveBandwidthLimit = grant.audioBitRate
            member.ownAudio = audio
        }
        if grant.video {
            let video = member.peer.addTransceiver(kind: .video, direction: .recvonly, mid: makeMid("video"))
            video.codecPreferences = MediaNumbers.videoCodec(
                grant.videoCodec, parameters: videoParameters(member.connect, codec: grant.videoCodec))
            video.receiveBandwidthLimit = grant.videoBitRate
            if grant.simulcast {
                video.requestedLayers = encodings(for: grant).map {
                    RequestedLayer(rid: RestrictionID($0.rid ?? "r0"), isPaused: !$0.isActive)
                }
            }
            member.ownVideo = video
        }
    }

    func makeMid(_ prefix: String) -> Mid {
        Mid(
            prefix + "_"
                + random.string(6, from: Array("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")))
    }

    // MARK: Input

    /// A text frame of a connection's WebSocket.
    package func receive(text: String, from id: ConnectionID, now: Instant) {
        guard let member = members[id], member.isActive else { return }
        member.lastHeard = now
        guard isWithinRate(member, size: text.utf8.count, now: now) else { return drain(member, now: now) }
        handle(text: text, carrier: .webSocket, from: member, now: now)
        drain(member, now: now)
    }

    /// Counts a message of a client, and ends a client that floods (pitfall SRV1).
    func isWithinRate(_ member: Member, size: Int, now: Instant) -> Bool {
        if member.rate.allows(size, settings: settings, now: now) { return true }
        end(member, code: SignalingCloseCode.signalingError, reason: "TOO-MANY-MESSAGES", now: now)
        return false
    }

    /// A connection's WebSocket ended. `code` is what its close frame said; 1005 without a code, 1006
    /// without a close frame.
    package func webSocketClosed(_ id: ConnectionID, code: UInt16, now: Instant) {
        guard let member = members[id] else { return }
        member.webSocketIsOpen = false
        if member.isSwitched, member.grant.ignoreDisconnectWebSocket {
            emit(event: .webSocketClosed, member, "code \(code), goes on over data channels", now: now)
            return
        }
        emit(event: .webSocketClosed, member, "code \(code)", now: now)
        if member.phase == .ending {
            // Ours was the first close frame; the channels may still be closing.
            return
        }
        remove(member, now: now)
    }

    /// Whether a member may be at this address; forged packets do not make it so.
    func knows(_ remote: SocketAddress, on socket: SocketID, of id: ConnectionID) -> Bool {
        members[id]?.peer.knows(remote, on: socket) ?? false
    }

    package func handle(_ datagram: Datagram, for id: ConnectionID, now: Instant) {
        guard let member = members[id], member.phase != .gone else { return }
        member.peer.handle(datagram, now: now)
        drain(member, now: now)
    }

    package var nextTimeout: Instant? {
        settleTimeouts()
        var earliest = timeouts.earliest ?? .distantFuture
        for message in delayed { earliest = min(earliest, message.due) }
        if let due = nextMediaTick { earliest = min(earliest, due) }
        if let due = keyFrameTimeout { earliest = min(earliest, due) }
        if let due = recordingTimeout { earliest = min(earliest, due) }
        return earliest == .distantFuture ? nil : earliest
    }

    package func handleTimeout(now: Instant) {
        releaseDelayed(now: now)
        settleTimeouts()
        while let member = timeouts.pop(now: now) {
            touch(member)
            if let due = member.peer.nextTimeout, due <= now { member.peer.handleTimeout(now: now) }
            drain(member, now: now)
            if member.phase != .gone { handleSignalingTimeout(of: member, now: now) }
        }
        if let due = nextMediaTick, due <= now { handleMediaTick(now: now) }
        if let due = keyFrameTimeout, due <= now { handleKeyFrameTimeouts(now: now) }
        if let due = recordingTimeout, due <= now { handleRecordingTimeout(now: now) }
    }

    /// Notes that a member's deadlines may have changed.
    func touch(_ member: Member) {
        guard !member.isTouched else { return }
        member.isTouched = true
        touched.append(member)
    }

    private func settleTimeouts() {
        for member in touched {
            member.isTouched = false
            timeouts.schedule(member, at: member.phase == .gone ? .distantFuture : nextTimeout(of: member))
        }
        touched.removeAll(keepingCapacity: true)
    }

    private func nextTimeout(of member: Member) -> Instant {
        var earliest = member.peer.nextTimeout ?? .distantFuture
        if let deadline = member.deadline { earliest = min(earliest, deadline) }
        if let deadline = member.reofferDeadline { earliest = min(earliest, deadline) }
        if let ending = member.ending {
            earliest = min(earliest, ending.removesAt, ending.closesChannelsAt ?? .distantFuture)
        } else if member.phase == .connected {
            earliest = min(earliest, member.nextUpdate)
            if let lifetime = member.grant.lifetime { earliest = min(earliest, member.joinedAt + lifetime) }
            if member.webSocketIsOpen {
                earliest = min(earliest, member.nextPing, member.lastHeard + settings.silenceTimeout)
            }
            if member.isSwitched, member.grant.collectsClientStats { earliest = min(earliest, member.nextStats) }
        }
        return earliest
    }

    private func handleSignalingTimeout(of member: Member, now: Instant) {
        if let ending = member.ending {
            if let due = ending.closesChannelsAt, due <= now {
                member.ending?.closesChannelsAt = nil
                closeDataChannels(of: member, now: now)
            }
            if ending.removesAt <= now { finishEnding(of: member, now: now) }
            return
        }
        if min(member.deadline ?? .distantFuture, member.reofferDeadline ?? .distantFuture) <= now {
            end(member, code: SignalingCloseCode.signalingError, reason: SignalingReason.timeout, now: now)
            return
        }
        guard member.phase == .connected else { return }
        if let lifetime = member.grant.lifetime, member.joinedAt + lifetime <= now {
            end(member, code: SignalingCloseCode.normal, reason: SignalingReason.lifetimeExpired, now: now)
            return
        }
        if member.webSocketIsOpen {
            if member.lastHeard + settings.silenceTimeout <= now {
                end(member, code: SignalingCloseCode.signalingError, reason: SignalingReason.timeout, now: now)
                return
            }
            if member.nextPing <= now {
                member.nextPing = now + settings.pingInterval
                // Without data channels the answer to a ping carries the statistics.
                let asksForStats =
                    !member.grant.dataChannelSignaling && member.grant.collectsClientStats && member.nextStats <= now
                if asksForStats { member.nextStats = now + settings.statsInterval }
                deliver(PingMessage(stats: asksForStats).json, type: "ping", to: member, over: .webSocket, now: now)
            }
        }
        if member.isSwitched, member.grant.collectsClientStats, member.nextStats <= now {
            member.nextStats = now + settings.statsInterval
            deliver(
                ["type": "req-stats"], type: "req-stats", to: member, over: .dataChannel(SystemLabel.stats), now: now)
        }
        if member.nextUpdate <= now {
            member.nextUpdate = now + settings.updateInterval
            notifyAll(
                connectionNotification(NotifyMessage.Event.connectionUpdated, about: member, now: now), about: member,
                now: now)
            report(.updated, member, now: now)
        }
        drain(member, now: now)
    }

    // MARK: The peer connection's outputs

    /// Does what a member's peer connection asks for.
    func drain(_ member: Member, now: Instant) {
        touch(member)
        while let output = member.peer.poll() {
            switch output {
            case .transmit(let datagram): emit(.transmit(member.id, datagram))
            case .rtp(let received): forward(received, from: member, now: now)
            case .stateChanged(let state):
                if state == .connected {
                    mediaConnected(member, now: now)
                    startForwarding(to: member, now: now)
                }
            case .keyFrameRequested(let transceiver, _):
                keyFrameRequested(by: member, transceiver: transceiver, now: now)
            case .keyFrameNeeded(_, let ssrc):
                keyFrameNeeded(of: member, ssrc: ssrc, now: now)
            case .availableBitrate(let bitrate):
                availableBitrateChanged(bitrate, of: member, now: now)
            case .senderReport(let transceiver, let ssrc, let ntp, let timestamp):
                passOn(ntp: ntp, timestamp: timestamp, ssrc: ssrc, transceiver: transceiver, from: member, now: now)
            case .dataChannelOpened(let info): dataChannelOpened(info, of: member, now: now)
            case .dataChannelMessage(let stream, let payload, let isBinary):
                dataChannelMessage(payload, isBinary: isBinary, stream: stream, from: member, now: now)
            case .dataChannelClosed(let stream): dataChannelClosed(stream, of: member, now: now)
            case .ended(let error): peerEnded(member, error: error, now: now)
            case .iceStateChanged(let state): member.iceTimes.enter(state, now: now)
            case .localCandidate, .gatheringFinished, .ice, .trackAdded, .trackRemoved, .bufferedAmountLow:
                break
            }
        }
    }

    private func mediaConnected(_ member: Member, now: Instant) {
        guard member.phase == .connecting else { return }
        member.deadline = now + settings.answerTimeout
        if member.grant.dataChannelSignaling {
            openDataChannels(of: member, now: now)
        } else {
            announce(member, now: now)
        }
    }

    // MARK: Clocks

    /// NTP time at the loop's time zero.
    var ntpOrigin: UInt64 {
        // NTP counts from 1900, seventy years before Unix.
        let seconds = settings.wallClockOrigin + 2_208_988_800
        guard seconds > 0, seconds < 4e9 * 2 else { return 0 }
        let whole = UInt64(seconds)
        return whole << 32 | UInt64((seconds - Double(whole)) * 4_294_967_296)
    }
}
