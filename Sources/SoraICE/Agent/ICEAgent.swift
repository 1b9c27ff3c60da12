import SoraCrypto
import SoraWire

/// Finds a way for packets to the peer and keeps it (RFC 8445), as full or lite agent, for one stream with one
/// component.
///
/// Sans-IO: datagrams, stream events and time come in as calls, results come out of ``poll()``. It belongs
/// to one driver. Invariant: nothing but a message with valid MESSAGE-INTEGRITY, or an answer to
/// a request of ours from the address that it went to, changes any state.
///
/// A pair is used for data from its first success on, while nomination goes on beside it, so that a
/// connection takes one round trip of checks and no timer.
package final class ICEAgent {
    package enum Mode: Sendable, Equatable { case full, lite }
    package enum Role: Sendable, Equatable { case controlling, controlled }

    /// What the driver has to do, or may want to know.
    package enum Output: Sendable, Equatable {
        case transmit(Datagram)
        case stateChanged(ICEState)
        case selectedPairChanged(local: ICECandidate, remote: ICECandidate)
        /// A new local candidate, to be signalled.
        case localCandidate(ICECandidate)
        case gatheringFinished
        /// Answer with ``ICEAgent/resolved(_:addresses:now:)``.
        case resolve(name: String, token: Int)
        /// Open a connection; report by ``ICEAgent/handleStream(_:_:now:)``.
        case openStream(ICEStreamRequest)
        case writeStream(ICEStreamID, [UInt8])
        /// Close it; nothing is to be reported afterwards.
        case closeStream(ICEStreamID)
    }

    struct LocalSocket {
        var id: SocketID
        var candidate: ICECandidate
        var address: SocketAddress
    }

    let configuration: ICEConfiguration
    var random: RandomSource
    package internal(set) var role: Role
    var tieBreaker: UInt64
    /// Ours, of the present generation. Changed only by ``restart(credentials:now:)``.
    package internal(set) var localCredentials: ICECredentials
    package internal(set) var remoteCredentials: ICECredentials?
    package internal(set) var remoteIsLite = false
    var localKey: HMACKey
    var remoteKey: HMACKey?
    /// USERNAME of requests to us, and of ours.
    var incomingUsername: [UInt8] = []
    var outgoingUsername: [UInt8] = []

    var sockets: [LocalSocket] = []
    var remoteCandidates: [ICECandidate] = []
    var checklist: ICEChecklist
    /// Checks whose answer would still count, by transaction.
    var transactions: [STUNTransactionID: SentCheck] = [:]
    /// Who the checks claimed to come from that arrived before the peer's credentials, by pair.
    var earlyFragments: [Int: String] = [:]
    /// Candidates whose names are being looked up, by token.
    var names: [Int: ICECandidate] = [:]
    var nextNameToken = 0

    package internal(set) var state = ICEState.new
    /// The pair in use, and where its packets go.
    var selectedID: Int?
    var selectedRoute: ICERoute?
    /// When the first pair of this round became valid.
    var firstValidAt: Instant?
    /// The pair that our nominating check is out for.
    var nominatingID: Int?
    /// A pair was nominated before: another nomination means that we moved.
    var hasNominated = false
    /// When the agent fails unless a pair works by then.
    var failAt: Instant?
    /// When other pairs were last put back to be checked because the one in use gave no answers.
    var recoveryAt: Instant?
    /// A lite agent: when it last heard anything authentic.
    var lastHeard: Instant?
    var wasConnected = false

    /// Server-reflexive candidates.
    var gathered: [GatheredCandidate] = []
    /// Tries to use servers, in the order of their start.
    var attempts: [ICEServerAttempt] = []
    var nextAttemptID = 0
    /// Addresses of servers, by their place in the configuration.
    var serverAddresses: [Int: [IPAddress]] = [:]
    /// Servers whose names are being looked up, by token.
    var lookups: [Int: ICEServerLookup] = [:]
    /// A round of gathering is under way and its end has not been reported.
    var isGathering = false {
        didSet { if isGathering { hasGathered = true } }
    }
    private(set) var hasGathered = false
    /// Connections to TCP candidates of the peer.
    var connections: [ICEStreamID: ICETCPConnection] = [:]
    var nextStreamID = 0

    var outputs: [Output] = []
    var outputHead = 0
    var cachedTimeout: Instant?
    var isTimeoutCached = false

    package init(configuration: ICEConfiguration, role: Role, random: RandomSource, now: Instant) {
        var random = random
        self.configuration = configuration
        self.role = configuration.mode == .lite ? .controlled : role
        tieBreaker = random.next()
        localCredentials = configuration.credentials ?? ICECredentials(random: &random)
        localKey = HMACKey(.sha1, key: Array(localCredentials.password.utf8))
        checklist = ICEChecklist(
            limit: configuration.pairLimit, interval: configuration.checkInterval, burst: configuration.checkBurst,
            now: now)
        self.random = random
        updateUsernames()
    }

    // MARK: Input

    /// Sets what the peer's description says. New credentials while others were set mean a restart by the
    /// peer: what was learnt of the peer is forgotten, the pair in use stays in use until another works.
    package func setRemote(credentials: ICECredentials, isLite: Bool, now: Instant) {
        guard state != .closed else { return }
        defer { finish(now) }
        remoteIsLite = isLite
        // A lite agent never controls a full one (RFC 8445, 6.1.1).
        if isLite, configuration.mode == .full, role != .controlling { role = .controlling }
        guard credentials != remoteCredentials else { return }
        if remoteCredentials != nil { forgetPeer() }
        remoteCredentials = credentials
        remoteKey = HMACKey(.sha1, key: Array(credentials.password.utf8))
        updateUsernames()
        dropEarlyPairs()
        if state == .new || state == .failed { setState(.checking) }
        if selectedID == nil { failAt = now + configuration.connectTimeout }
        formPairs(now: now)
        // Checks of the peer that came before its credentials are answered in kind now.
        for pair in checklist.pairs where pair.lastRequest != nil && pair.state == .waiting {
            checklist.trigger(pair.id)
        }
    }

    /// Adds a host candidate. `address` is what the candidate advertises; a socket that is bound to all addresses may
    /// be added once with each.
    package func addLocalSocket(_ id: SocketID, address: SocketAddress, now: Instant) {
        guard state != .closed, !sockets.contains(where: { $0.id == id && $0.address == address }),
            configuration.includesLoopback || !address.ip.isLoopback
        else { return }
        defer { finish(now) }
        let candidate = ICECandidate(
            foundation: ICECandidate.foundation(type: .host, base: address.ip),
            priority: ICECandidate.priority(type: .host, rank: nextRank(of: address.ip)),
            address: .ip(address.withoutScope), type: .host)
        sockets.append(LocalSocket(id: id, candidate: candidate, address: address))
        isGathering = true
        if configuration.transportPolicy == .all {
            announce(candidate)
            if configuration.usesTCPCandidates { announce(tcpCandidate(at: address.ip)) }
            for known in remoteCandidates where known.transport == .tcp {
                if let address = known.socketAddress { connect(to: known, at: address) }
            }
            formPairs(now: now)
        }
        gather(now: now)
    }

    /// Takes a socket out of use, as when its interface went down. If the pair in use was on it, another takes over.
    package func removeLocalSocket(_ id: SocketID, now: Instant) {
        guard sockets.contains(where: { $0.id == id }) else { return }
        defer { finish(now) }
        sockets.removeAll { $0.id == id }
        let relays = removeAttempts(of: id)
        removePairs(now: now) { pair in
            if case .relay(let relay) = pair.path { return relays.contains(relay) }
            return pair.path == .socket(id)
        }
    }

    /// Adds a candidate of the peer, at any time. What cannot be used is ignored.
    package func addRemoteCandidate(_ candidate: ICECandidate, now: Instant) {
        guard state != .closed, candidate.component == 1 else { return }
        if let fragment = candidate.usernameFragment, let remote = remoteCredentials,
            fragment != remote.usernameFragment
        {
            return
        }
        defer { finish(now) }
        switch candidate.address {
        case .ip(let address): addRemote(candidate, at: address, now: now)
        case .name(let name, _): resolve(name, candidate)
        }
    }

    /// The answer to ``Output/resolve(name:token:)``; empty if there is none.
    package func resolved(_ token: Int, addresses: [IPAddress], now: Instant) {
        defer { finish(now) }
        if noteLookup(token, addresses, now: now) { return }
        guard var candidate = names.removeValue(forKey: token), state != .closed else { return }
        let port = candidate.address.port
        for address in addresses.prefix(4) {
            candidate.address = .ip(SocketAddress(address, port: port))
            addRemote(candidate, at: SocketAddress(address, port: port), now: now)
        }
    }

    /// Whether this address was signalled or has sent an authentic check: where the peer may be.
    package func knows(_ remote: SocketAddress, on socket: SocketID) -> Bool {
        checklist.index(path: .socket(socket), remote: remote) != nil
    }

    /// Takes a datagram from a local socket: STUN is acted upon, application data is returned.
    ///
    /// Returns the application data of a datagram that came from the peer, straight or relayed (then
    /// unwrapped). Nil for STUN and for what comes from anybody else.
    package func handle(_ datagram: consuming Datagram, now: Instant) -> [UInt8]? {
        guard state != .closed else { return nil }
        let socket = datagram.socket
        let remote = datagram.remote
        if !attempts.isEmpty, attemptIndex(socket: socket, remote: remote) != nil {
            return handleServer(datagram.payload, on: socket, from: remote, now: now)
        }
        return receive(datagram.payload, on: .socket(socket), from: remote, now: now)
    }

    /// What came from a server's address: ChannelData and Data indications are unwrapped. A peer may be there, too.
    private func handleServer(
        _ packet: consuming [UInt8], on socket: SocketID, from remote: SocketAddress, now: Instant
    ) -> [UInt8]? {
        if TURNChannelData.isChannelData(packet) {
            guard let index = relayIndex(socket: socket, remote: remote), let allocation = attempts[index].allocation,
                let delivery = allocation.receive(packet, now: now)
            else { return nil }
            return receive(delivery.payload, on: .relay(attempts[index].id), from: delivery.peer, now: now)
        }
        guard STUNMessage.looksLikeSTUN(packet), let message = try? STUNMessage(parsing: copy packet) else {
            return receive(packet, on: .socket(socket), from: remote, now: now)
        }
        let (isHandled, relayed) = handleServerMessage(message, from: remote, on: socket, now: now)
        guard isHandled else {
            handle(message, on: .socket(socket), from: remote, now: now)
            finish(now)
            return nil
        }
        if relayed == nil || message.messageClass != .indication { finish(now) }
        guard let (relay, delivery) = relayed else { return nil }
        return receive(delivery.payload, on: .relay(relay), from: delivery.peer, now: now)
    }

    /// What arrived on a path, without any framing of servers and streams.
    func receive(_ packet: consuming [UInt8], on path: ICEPath, from remote: SocketAddress, now: Instant) -> [UInt8]? {
        if STUNMessage.looksLikeSTUN(packet) {
            guard let message = try? STUNMessage(parsing: packet) else { return nil }
            defer { finish(now) }
            handle(message, on: path, from: remote, now: now)
            return nil
        }
        guard let index = checklist.index(path: path, remote: remote), checklist.pairs[index].acceptsData else {
            return nil
        }
        checklist.pairs[index].statistics.packetsReceived &+= 1
        checklist.pairs[index].statistics.bytesReceived &+= UInt64(packet.count)
        checklist.pairs[index].statistics.lastPacketReceived = now
        return packet
    }

    private func handle(_ message: STUNMessage, on path: ICEPath, from remote: SocketAddress, now: Instant) {
        guard message.method == .binding else { return }
        switch message.messageClass {
        case .request: handleRequest(message, on: path, from: remote, now: now)
        case .success, .error: handleAnswer(message, on: path, from: remote, now: now)
        case .indication: break  // a keep-alive
        }
    }

    /// The upper layer authenticated something from the peer (SRTP, DTLS): a lite agent counts it as a sign of life.
    package func noteAuthenticTraffic(now: Instant) {
        guard configuration.mode == .lite, lastHeard != nil, state != .failed, state != .closed else { return }
        // The timer may come early then, and sees that it does.
        lastHeard = now
        if state == .disconnected { finish(now) }
    }

    /// Starts a new generation: fresh credentials, to be signalled; the peer's are awaited by
    /// ``setRemote(credentials:isLite:now:)``.
    package func restart(credentials: ICECredentials? = nil, now: Instant) {
        guard state != .closed else { return }
        defer { finish(now) }
        localCredentials = credentials ?? ICECredentials(random: &random)
        localKey = HMACKey(.sha1, key: Array(localCredentials.password.utf8))
        tieBreaker = random.next()
        forgetPeer()
        remoteCredentials = nil
        remoteKey = nil
        updateUsernames()
        for candidate in localCandidates { announce(candidate) }
        if state == .failed { setState(.checking) }
    }

    /// Ends everything: gives relays back and closes connections. Nothing is sent to the peer afterwards.
    package func close(now: Instant) {
        guard state != .closed else { return }
        transactions = [:]
        checklist.remove { _ in true }
        select(nil, now: now)
        releaseServers(now: now)
        closeConnections()
        sockets = []
        gathered = []
        setState(.closed)
        isTimeoutCached = false
    }

    // MARK: Output

    /// The next thing to do, in order; nil when there is none.
    package func poll() -> Output? {
        guard outputHead < outputs.count else { return nil }
        let output = outputs[outputHead]
        outputHead += 1
        if outputHead == outputs.count {
            outputs.removeAll(keepingCapacity: true)
            outputHead = 0
        }
        return output
    }

    /// Application data (DTLS, SRTP) made ready for the pair in use; in a relay it is wrapped.
    ///
    /// Nil while there is none, and also where the pair goes over a connection: then ``poll()`` has an
    /// ``Output/writeStream(_:_:)`` with it.
    package func datagram(for payload: consuming [UInt8]) -> Datagram? {
        guard let id = selectedID, let route = selectedRoute else { return nil }
        if let index = checklist.index(of: id) {
            checklist.pairs[index].statistics.packetsSent &+= 1
            checklist.pairs[index].statistics.bytesSent &+= UInt64(payload.count)
        }
        switch route {
        case .direct(let socket, let remote): return Datagram(socket: socket, remote: remote, payload: payload)
        case .relay(let allocation, let socket, let server, let peer):
            guard let packet = allocation.wrap(payload, to: peer) else { return nil }
            return Datagram(socket: socket, remote: server, payload: packet)
        case .relayStream(let allocation, let stream, let peer):
            if let packet = allocation.wrap(payload, to: peer) { emit(.writeStream(stream, packet)) }
            return nil
        case .stream(let stream):
            if let framed = StreamFramer.frame(payload) { emit(.writeStream(stream, framed)) }
            return nil
        }
    }

    /// True while there is a pair in use: ``datagram(for:)`` has somewhere to send to.
    package var hasSelectedPair: Bool { selectedID != nil }

    /// The pair in use.
    package var selectedPair: (local: ICECandidate, remote: ICECandidate)? {
        guard let id = selectedID, let index = checklist.index(of: id) else { return nil }
        return (checklist.pairs[index].local, checklist.pairs[index].remote)
    }

    // MARK: Shared by the extensions

    func emit(_ output: Output) { outputs.append(output) }

    func setState(_ new: ICEState) {
        guard state != new else { return }
        // `completed` never comes without `connected` before it.
        if new == .completed, state != .connected {
            state = .connected
            emit(.stateChanged(.connected))
        }
        state = new
        emit(.stateChanged(new))
    }

    func announce(_ candidate: ICECandidate) {
        var candidate = candidate
        candidate.usernameFragment = localCredentials.usernameFragment
        emit(.localCandidate(candidate))
    }

    /// Sends a STUN packet of ours by `path`.
    func send(_ packet: [UInt8], by path: ICEPath, to remote: SocketAddress) {
        switch path {
        case .socket(let socket): emit(.transmit(Datagram(socket: socket, remote: remote, payload: packet)))
        case .relay(let id):
            guard let attempt = attempts.first(where: { $0.id == id }),
                let wrapped = attempt.allocation?.wrap(packet, to: remote)
            else { return }
            sendToServer(wrapped, attempt)
        case .stream(let id):
            if let framed = StreamFramer.frame(packet) { emit(.writeStream(ICEStreamID(id), framed)) }
        }
    }

    private func updateUsernames() {
        let local = localCredentials.usernameFragment
        let remote = remoteCredentials?.usernameFragment ?? ""
        incomingUsername = Array("\(local):\(remote)".utf8)
        outgoingUsername = Array("\(remote):\(local)".utf8)
    }

    /// Local preference: in the order of arrival, IPv6 before IPv4 of the same place (RFC 8421), loopback last.
    private func nextRank(of address: IPAddress) -> Int {
        sockets.count * 4 + (address.isV4 ? 1 : 0) + (address.isLoopback ? 1_024 : 0)
    }
}
