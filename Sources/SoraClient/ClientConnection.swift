import SoraICE
import SoraMessages
import SoraPeer
import SoraWire

/// The connection of a client to Sora as one sans-IO machine: dialling, signaling over WebSocket and data
/// channels, redirects, negotiation, messaging and RPC, and the end.
///
/// What happens comes in by calls; what is to be done and told comes out of ``poll()``, which the driver
/// drains after every call, in order. ``nextTimeout`` says when ``handleTimeout(now:)`` wants to run.
///
/// Invariant: the outcome is settled once. After ``Event/ended(_:)`` nothing more is told, except that RPC
/// calls made then have failed, and everything that was opened has been closed by an output. What belongs
/// to an older epoch is dropped.
///
/// Not thread-safe: one driver owns it.
package final class ClientConnection {
    /// Makes the peer connection for an offer, whose `config` names the ICE servers.
    package typealias PeerFactory = (_ offer: OfferMessage, _ now: Instant) throws(ClientError) -> any ClientPeer

    package let configuration: ClientConfiguration
    let makePeer: PeerFactory

    package internal(set) var state = ClientState.idle
    /// 0 at first, one more after each redirect.
    package internal(set) var epoch = 0
    package internal(set) var connectionID: String?
    package internal(set) var clientID: String?
    package internal(set) var bundleID: String?
    /// Where the first `connect` message went.
    package internal(set) var contactURL: String?
    /// Where the latest offer came from.
    package internal(set) var connectedURL: String?

    var transport = ClientTransport()
    var nextDial = 1
    var nextToken = 1
    var redirects = 0
    var wasConnected = false
    /// End of the attempt; nil once connected.
    var connectDeadline: Instant?
    /// Set while an end waits for the server to let go.
    var closing: Closing?
    /// One entry for each text that was told and not yet delivered: what is to be done then, if anything is left.
    var undelivered: [HeldMessage?] = []
    private var outputs: [Output] = []
    private var nextOutput = 0

    struct Closing {
        var error: ClientError?
        var deadline: Instant
        /// The farewell went over a data channel: the server closes the channels.
        var waitsForChannels: Bool
    }

    /// A message that waits for the delivery of its text.
    struct HeldMessage {
        var message: SignalingMessage
        var text: String
        var path: ClientTransport.Path
        var epoch: Int
        /// To be told afterwards as a message of this label.
        var channelMessage: (label: String, bytes: [UInt8])?
    }

    package init(configuration: ClientConfiguration, makePeer: @escaping PeerFactory) {
        self.configuration = configuration
        self.makePeer = makePeer
    }

    /// The peer connection of the current epoch.
    package var peer: (any ClientPeer)? { transport.peer }
    /// The latest offer.
    package var offer: OfferMessage? { transport.offer }
    /// Remote streams, in order of addition.
    package var streams: [RemoteStream] { transport.streams }

    // MARK: Outputs

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

    func tell(_ event: Event) {
        emit(.event(EventRecord(event: event, epoch: epoch, connectionID: connectionID)))
    }

    func log(_ level: ClientLogEntry.Level, _ text: String) {
        emit(.log(ClientLogEntry(level: level, text: text)))
    }

    func makeToken() -> Int {
        defer { nextToken += 1 }
        return nextToken
    }

    /// Whether the connection is neither ending nor ended.
    var isAlive: Bool { state == .connecting || state == .connected }

    // MARK: Start, network, time

    /// Begins to dial. Has an effect only once.
    package func start(now: Instant) {
        guard state == .idle else { return }
        state = .connecting
        connectDeadline = now + configuration.connectionTimeout
        var seen = Set<String>()
        let urls = configuration.urls.filter { seen.insert($0).inserted }
        guard !urls.isEmpty else {
            end(.configuration("urlCandidates is empty"), cause: .signalingFailure, now: now)
            return
        }
        for url in urls { dial(url) }
    }

    package func addLocalSocket(_ id: SocketID, address: SocketAddress, epoch: Int, now: Instant) {
        guard epoch == self.epoch, isAlive else { return }
        transport.peer?.addLocalSocket(id, address: address, now: now)
        drainPeer(now: now)
    }

    package func removeLocalSocket(_ id: SocketID, epoch: Int, now: Instant) {
        guard epoch == self.epoch, isAlive else { return }
        transport.peer?.removeLocalSocket(id, now: now)
        drainPeer(now: now)
    }

    /// Says that all local sockets were added, also if there are none: STUN and TURN servers are asked.
    package func localSocketsComplete(epoch: Int, now: Instant) {
        guard epoch == self.epoch, isAlive else { return }
        transport.peer?.gather(now: now)
        drainPeer(now: now)
    }

    /// One datagram from a socket of `epoch`.
    package func handle(_ datagram: Datagram, epoch: Int, now: Instant) {
        guard epoch == self.epoch, state != .disconnected else { return }
        transport.peer?.handle(datagram, now: now)
        drainPeer(now: now)
    }

    /// What happened to a connection that `.ice(.openStream(…))` of `epoch` asked for.
    package func handleStream(_ id: ICEStreamID, _ event: ICEStreamEvent, epoch: Int, now: Instant) {
        guard epoch == self.epoch, state != .disconnected else { return }
        transport.peer?.handleStream(id, event, now: now)
        drainPeer(now: now)
    }

    /// The answer to `.ice(.resolve(…))` of `epoch`; empty if the name has no address.
    package func resolved(_ token: Int, addresses: [IPAddress], epoch: Int, now: Instant) {
        guard epoch == self.epoch, state != .disconnected else { return }
        transport.peer?.resolved(token, addresses: addresses, now: now)
        drainPeer(now: now)
    }

    /// Call after using the peer connection directly (sending media), to get what it produced.
    package func peerWasUsed(now: Instant) { drainPeer(now: now) }

    package var nextTimeout: Instant? {
        guard state != .disconnected, state != .idle else { return nil }
        var earliest = transport.peer?.nextTimeout
        func consider(_ deadline: Instant?) {
            guard let deadline else { return }
            earliest = earliest.map { min($0, deadline) } ?? deadline
        }
        if let closing {
            consider(closing.deadline)
            return earliest
        }
        consider(connectDeadline)
        consider(transport.disconnectedDeadline)
        if !owesAnswerOnWebSocket { consider(transport.shutdownDeadline) }
        consider(transport.closeDeadline)
        for call in transport.calls.values { consider(call.deadline) }
        return earliest
    }

    package func handleTimeout(now: Instant) {
        guard state != .disconnected else { return }
        if let closing, closing.deadline <= now {
            log(.warning, "the server did not close the connection in time; closing it anyway")
            completeEnd(closing.error, now: now)
            return
        }
        if let due = transport.peer?.nextTimeout, due <= now {
            transport.peer?.handleTimeout(now: now)
            drainPeer(now: now)
        }
        guard isAlive else { return }
        if let due = connectDeadline, due <= now {
            end(.timeout, cause: .signalingFailure, now: now)
            return
        }
        if let due = transport.disconnectedDeadline, due <= now {
            let error = peerProblem("disconnected")
            end(error, cause: .peerConnectionStateDisconnected, now: now)
            return
        }
        if let due = transport.closeDeadline, due <= now, let close = transport.announcedClose {
            end(.dataChannelClosed(code: close.code, reason: close.reason), cause: .dataChannelClosed, now: now)
            return
        }
        expireCalls(now: now)
        shutDownWebSocketIfDue(now: now)
    }

    // MARK: What the peer connection says

    func drainPeer(now: Instant) {
        let epoch = epoch
        // The peer may go away while its outputs are handled.
        while state != .disconnected, epoch == self.epoch, let output = transport.peer?.poll() {
            handle(output, now: now)
        }
    }

    private func handle(_ output: ClientPeerOutput, now: Instant) {
        switch output {
        case .transmit(let datagram): emit(.transmit(datagram))
        case .ice(let output): emit(.ice(output, epoch: epoch))
        case .media(let output): emit(.media(output, epoch: epoch))
        case .stateChanged(let peerState): peerStateChanged(peerState, now: now)
        case .localCandidate(let candidate): sendCandidate(candidate, now: now)
        case .answer(let description): answerMade(description, now: now)
        case .answerFailed(let error):
            guard isAlive, transport.negotiating != nil else { return }
            end(.engine(error), cause: .signalingFailure, now: now)
        case .dataChannelOpened(let id, let label): dataChannelOpened(id, label: label, now: now)
        case .dataChannelMessage(let id, let payload, let isBinary):
            dataChannelMessage(id, DataChannelFraming.Frame(payload: payload, isBinary: isBinary), now: now)
        case .dataChannelClosed(let id): dataChannelClosed(id, now: now)
        case .ended(let error): peerEnded(error, now: now)
        }
    }

    private func peerStateChanged(_ peerState: PeerConnectionState, now: Instant) {
        guard isAlive else { return }
        switch peerState {
        case .connected:
            transport.disconnectedDeadline = nil
            guard !transport.peerHasConnected else { return }
            transport.peerHasConnected = true
            connectDeadline = nil
            redirects = 0
            guard state == .connecting else { return }
            state = .connected
            wasConnected = true
            tell(.connected)
        case .disconnected:
            guard transport.peerHasConnected, transport.disconnectedDeadline == nil else { return }
            transport.disconnectedDeadline = now + configuration.limits.disconnectedGrace
        case .connecting: transport.disconnectedDeadline = nil
        case .failed: peerEnded(.iceFailed, now: now)
        case .new, .closed: break
        }
    }

    /// The error for a peer connection in `state`. Its text is the one of api.md 3.2.2; why it came to that is in the
    /// log. One exception: an attempt for which no TURN server is left ends with their reasons (ICE12), which nobody
    /// could guess.
    private func peerProblem(_ state: String) -> ClientError {
        let text = "peer connection state: \(state)"
        guard let problem = transport.peer?.pathProblem else { return .peerChannel(text) }
        log(.error, "\(text): \(problem.reason)")
        return .peerChannel(problem.endsAttempt && !wasConnected ? "\(text): \(problem.reason)" : text)
    }

    private func peerEnded(_ error: PeerError?, now: Instant) {
        if let closing {
            completeEnd(closing.error, now: now)
            return
        }
        guard isAlive else { return }
        if let close = transport.announcedClose {
            // The server said that it would go.
            end(.dataChannelClosed(code: close.code, reason: close.reason), cause: .dataChannelClosed, now: now)
        } else if error != nil {
            if let error { log(.warning, "peer connection failed: \(error)") }
            end(peerProblem("failed"), cause: .peerConnectionStateFailed, now: now)
        } else {
            end(nil, cause: .dataChannelClosed, now: now)
        }
    }
}
