import SoraICE
import SoraRTP
import SoraSCTP
import SoraSDP
import SoraSecureTransport
import SoraWire

/// A WebRTC peer connection: one bundled transport (ICE, DTLS, SRTP, SCTP) with its transceivers and
/// data channels, negotiated by offers and answers in either direction.
///
/// A sans-IO machine. Datagrams, time and wishes come in as calls; what is to be done comes out of
/// ``poll()``, which the driver drains after every call. ``nextTimeout`` says when
/// ``handleTimeout(now:)`` wants to run.
///
/// Invariant: DTLS is spoken only over a path that ICE validated, and nothing decrypted leaves this
/// type before the peer's certificate matched the fingerprint of its description.
///
/// The way of a datagram: ``handle(_:now:)`` tells its layer by the first bytes (``DatagramKind``);
/// ICE, DTLS or SRTP opens it; SCTP (`DataChannelTransport`) or ``RTPInbound`` turns it into a
/// message or a packet; ``Output`` carries it up. The way back is the same in reverse.
///
/// Not thread-safe: one driver owns it.
package final class PeerConnection {
    /// What the driver has to do or to know, in order.
    package enum Output {
        case transmit(Datagram)
        case stateChanged(PeerConnectionState)
        case iceStateChanged(ICEState)
        case localCandidate(ICECandidate)
        case gatheringFinished
        /// ICE wants something of the network that is not a datagram: a TURN stream, a name resolved.
        case ice(ICEAgent.Output)
        /// The other side began or ended sending on a transceiver, by negotiation.
        case trackAdded(TransceiverID)
        case trackRemoved(TransceiverID)
        case rtp(ReceivedRTP)
        /// The receiver of our stream lost the picture and needs a key frame.
        case keyFrameRequested(TransceiverID, SSRC)
        /// A packet of an inbound stream is lost for good; only a key frame helps.
        case keyFrameNeeded(TransceiverID, SSRC)
        /// What the path to the peer is estimated to carry, in bits per second.
        case availableBitrate(Int)
        case senderReport(TransceiverID, SSRC, ntp: NTPTime, timestamp: RTPTimestamp)
        case dataChannelOpened(DataChannelInfo)
        case dataChannelMessage(StreamID, [UInt8], isBinary: Bool)
        case dataChannelClosed(StreamID)
        case bufferedAmountLow(StreamID)
        /// The connection ended; no more outputs follow. Nil: closed by us or orderly by the peer.
        case ended(PeerError?)
    }

    package let configuration: PeerConfiguration
    package internal(set) var signalingState: SignalingState = .stable
    package private(set) var state: PeerConnectionState = .new
    /// Transceivers in the order of their creation, stopped ones included until their m-line is reused.
    package internal(set) var transceivers: [Transceiver] = []

    let ice: ICEAgent
    /// Kept from before ICE was closed.
    var lastICEFailureReason: String?
    var hadNoRelayLeft = false
    var lastServerReports: [ICEServerReport] = []
    var dtls: DTLSEndpoint?
    /// The peer's first flight, where it overtook the answer or the nomination: without it the handshake would wait for
    /// the peer's retransmission. It came over a path that the peer proved to be its own; a few datagrams at most.
    var earlyDTLS: [[UInt8]] = []
    /// The handshake is done and the peer's certificate matched its description.
    package internal(set) var dtlsIsConnected = false
    /// The fingerprints of the other side's description; empty before there is one.
    package var remoteFingerprints: [DTLSFingerprint] { remoteTransport?.fingerprints ?? [] }
    /// How media is protected; nil until DTLS is connected, and where no media was negotiated.
    package private(set) var srtpProfile: SRTPProfile?
    var sctp: DataChannelTransport?
    var rtp: RTPTransport
    var random: RandomSource

    // Negotiation (PeerConnection+Negotiation.swift).
    var sections: [Section] = []
    var pendingRemoteOffer: SessionDescription?
    var sectionsBeforeRemoteOffer: [Section]?
    var pendingLocalOffer: PendingLocalOffer?
    var sessionID: UInt64
    var sessionVersion: UInt64 = 1
    var nextTransceiverID = 1
    var localCandidates: [ICECandidate] = []
    var hasFinishedGathering = false
    var remoteTransport: RemoteTransport?
    var wantsDataChannels = false
    /// Kept for the life of the connection once decided (RFC 8842, 5).
    var dtlsRole: DTLSEndpoint.Role?

    private var outputs: [Output] = []
    private var nextOutput = 0
    private(set) var hasEnded = false

    package init(configuration: PeerConfiguration, random: RandomSource = .system, now: Instant) {
        self.configuration = configuration
        var random = random
        sessionID = random.next() >> 2
        ice = ICEAgent(configuration: configuration.ice, role: configuration.iceRole, random: random.split(), now: now)
        rtp = RTPTransport(
            canonicalName: configuration.canonicalName, ntpEpoch: configuration.ntpEpoch,
            maximumDatagramSize: configuration.maximumDatagramSize,
            feedbackSSRC: SSRC(UInt32(truncatingIfNeeded: random.next()) | 1), now: now)
        self.random = random
    }

    // MARK: Outputs

    /// The next thing to do, or nil if there is none for now.
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

    func emit(_ output: Output) {
        if !hasEnded { outputs.append(output) }
    }

    // MARK: Local network

    /// Adds a socket that the connection may use. `address` is what its host candidate advertises.
    package func addLocalSocket(_ id: SocketID, address: SocketAddress, now: Instant) {
        ice.addLocalSocket(id, address: address, now: now)
        pump(now: now)
    }

    package func removeLocalSocket(_ id: SocketID, now: Instant) {
        ice.removeLocalSocket(id, now: now)
        pump(now: now)
    }

    package func addRemoteCandidate(_ candidate: ICECandidate, now: Instant) {
        guard !hasEnded else { return }
        ice.addRemoteCandidate(candidate, now: now)
        pump(now: now)
    }

    /// Our ICE user name fragment: what a server that shares one socket tells connections apart by.
    package var localUsernameFragment: String { ice.localCredentials.usernameFragment }

    /// Whether ICE has reason to believe that the peer is at this address, for a server that shares one socket.
    package func knows(_ remote: SocketAddress, on socket: SocketID) -> Bool { ice.knows(remote, on: socket) }

    // MARK: Input

    /// Takes one datagram from the network. Anything malformed or unauthenticated is dropped.
    package func handle(_ datagram: consuming Datagram, now: Instant) {
        guard !hasEnded else { return }
        // ICE sees everything first: it keeps STUN, unwraps what a relay wrapped, and lets nothing through
        // that did not come over a path that it validated.
        if let payload = ice.handle(datagram, now: now) { handleApplication(payload, now: now) }
        pump(now: now)
    }

    func handleApplication(_ payload: [UInt8], now: Instant) {
        switch DatagramKind(payload) {
        case .dtls:
            if dtlsHasStarted {
                dtls?.handle(payload, now: now)
            } else if earlyDTLS.count < 4, payload.count <= 2048 {
                earlyDTLS.append(payload)
            }
        case .rtp: handleRTP(payload, now: now)
        case .rtcp: handleRTCP(payload, now: now)
        case .stun, .turnChannel, .unknown: break
        }
    }

    package var nextTimeout: Instant? {
        guard !hasEnded else { return nil }
        var earliest = ice.nextTimeout
        for other in [dtls?.nextTimeout, sctp?.nextTimeout, dtlsIsConnected ? rtp.nextTimeout : nil] {
            guard let other else { continue }
            earliest = earliest.map { min($0, other) } ?? other
        }
        return earliest
    }

    package func handleTimeout(now: Instant) {
        guard !hasEnded else { return }
        if let due = ice.nextTimeout, due <= now { ice.handleTimeout(now: now) }
        if let due = dtls?.nextTimeout, due <= now { dtls?.handleTimeout(now: now) }
        if let due = sctp?.nextTimeout, due <= now { sctp?.handleTimeout(now: now) }
        if dtlsIsConnected, let due = rtp.nextTimeout, due <= now { handleRTPTimeout(now: now) }
        pump(now: now)
    }

    // MARK: Ending

    /// Ends the connection: tells the peer by DTLS close_notify if there is one to tell.
    /// Data channels are best closed before, and their closing awaited.
    package func close(now: Instant) {
        guard !hasEnded else { return }
        dtls?.close()
        pump(now: now)
        end(nil, now: now)
    }

    private func end(_ error: PeerError?, now: Instant) {
        guard !hasEnded else { return }
        signalingState = .closed
        changeState(error == nil ? .closed : .failed)
        closeNetwork(now: now)
        emit(.ended(error))
        hasEnded = true
        dtls = nil
        earlyDTLS = []
        sctp = nil
        rtp.close()
    }

    // MARK: Inner plumbing

    /// Moves everything that the layers produced to where it belongs, until none has more to say.
    func pump(now: Instant) {
        guard !hasEnded else { return }
        var isBusy = true
        while isBusy && !hasEnded {
            isBusy = false
            while let output = ice.poll() {
                isBusy = true
                handle(output, now: now)
            }
            while let output = dtls?.poll() {
                isBusy = true
                handle(output, now: now)
            }
            while let output = sctp?.poll() {
                isBusy = true
                handle(output)
            }
        }
        updateState()
    }

    private func handle(_ output: ICEAgent.Output, now: Instant) {
        switch output {
        case .transmit(let datagram):
            emit(.transmit(datagram))
        case .stateChanged(let iceState):
            emit(.iceStateChanged(iceState))
            switch iceState {
            case .connected, .completed: startDTLSIfPossible(now: now)
            case .failed: end(.iceFailed, now: now)
            default: break
            }
        case .localCandidate(let candidate):
            localCandidates.append(candidate)
            emit(.localCandidate(candidate))
        case .gatheringFinished:
            hasFinishedGathering = true
            emit(.gatheringFinished)
        case .selectedPairChanged:
            startDTLSIfPossible(now: now)
            sctp?.pathChanged(now: now)
            emit(.ice(output))
        default:
            emit(.ice(output))
        }
    }

    private func handle(_ output: DTLSEndpoint.Output, now: Instant) {
        switch output {
        case .transmit(let payload):
            if let datagram = ice.datagram(for: payload) { emit(.transmit(datagram)) }
        case .connected(let keys):
            dtlsIsConnected = true
            if let keys {
                srtpProfile = keys.profile
                do {
                    try rtp.start(keys: keys)
                } catch {
                    end(.cannotSend("SRTP keys: \(error)"), now: now)
                    return
                }
            }
            startDataChannelsIfPossible(now: now)
        case .applicationData(let packet):
            sctp?.handle(packet, now: now)
        case .closed:
            end(nil, now: now)
        case .failed(let error):
            end(.dtls(error), now: now)
        }
    }

    private func handle(_ output: DataChannelTransport.Output) {
        switch output {
        case .transmit(let packet):
            // A record that cannot be written now is lost like any datagram; SCTP repeats it.
            try? dtls?.send(packet)
        case .connected: break
        case .channelOpened(let info): emit(.dataChannelOpened(info))
        case .message(let id, let payload, let isBinary):
            emit(.dataChannelMessage(id, payload, isBinary: isBinary))
        case .channelClosed(let id): emit(.dataChannelClosed(id))
        case .bufferedAmountLow(let id): emit(.bufferedAmountLow(id))
        case .closed: break
        }
    }

    func startDTLSIfPossible(now: Instant) {
        guard let dtls, ice.hasSelectedPair, !dtlsHasStarted else { return }
        dtlsHasStarted = true
        dtls.start(now: now)
        for packet in earlyDTLS { dtls.handle(packet, now: now) }
        earlyDTLS = []
    }
    var dtlsHasStarted = false

    func startDataChannelsIfPossible(now: Instant) {
        guard dtlsIsConnected, let sctp, !sctpHasStarted else { return }
        sctpHasStarted = true
        sctp.start(now: now)
    }
    var sctpHasStarted = false

    private func updateState() {
        guard !hasEnded else { return }
        let next: PeerConnectionState
        switch ice.state {
        case .new: next = .new
        case .checking: next = dtlsIsConnected ? .disconnected : .connecting
        case .connected, .completed: next = dtlsIsConnected ? .connected : .connecting
        case .disconnected: next = .disconnected
        case .failed: next = .failed
        case .closed: next = .closed
        }
        changeState(next)
    }

    private func changeState(_ next: PeerConnectionState) {
        guard next != state else { return }
        state = next
        emit(.stateChanged(next))
    }
}
