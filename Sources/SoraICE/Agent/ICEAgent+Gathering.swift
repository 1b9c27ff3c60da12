import SoraWire

// Servers: all tried side by side, in the background, each with its own schedule and end (ICE10).
extension ICEAgent {
    static let attemptLimit = 32
    static let lookupTimeout = Duration.seconds(10)
    private static let redirectLimit = 3

    /// Starts what has not been started: look-ups of servers' names, requests from each local socket, and connections.
    /// Called by itself whenever a socket is added; to be called by drivers that have no UDP socket at all.
    package func gather(now: Instant) {
        guard configuration.mode == .full, state != .closed, state != .failed else { return }
        defer { finish(now) }
        isGathering = true
        for index in configuration.servers.indices {
            if serverAddresses[index] == nil { lookUp(index, now: now) }
            startAttempts(index, now: now)
        }
    }

    private func lookUp(_ index: Int, now: Instant) {
        let host = configuration.servers[index].uri.host
        if let ip = IPAddress(host) {
            serverAddresses[index] = [ip]
        } else if !lookups.values.contains(where: { $0.serverIndex == index }) {
            nextNameToken += 1
            lookups[nextNameToken] = ICEServerLookup(serverIndex: index, startedAt: now)
            emit(.resolve(name: host, token: nextNameToken))
        }
    }

    /// True if the token belonged to a server's name.
    func noteLookup(_ token: Int, _ addresses: [IPAddress], now: Instant) -> Bool {
        guard let lookup = lookups.removeValue(forKey: token) else { return false }
        serverAddresses[lookup.serverIndex] = Array(addresses.prefix(8))
        if addresses.isEmpty {
            var attempt = makeAttempt(lookup.serverIndex, address: nil, socket: nil, now: lookup.startedAt)
            attempt.finish(.failed(reason: "the name has no address"), now: now)
            attempts.append(attempt)
            serverAddresses[lookup.serverIndex] = nil
        } else {
            attempts.removeAll { $0.serverIndex == lookup.serverIndex && $0.report.address == nil }
            startAttempts(lookup.serverIndex, now: now)
        }
        return true
    }

    private func makeAttempt(_ index: Int, address: SocketAddress?, socket: LocalSocket?, now: Instant)
        -> ICEServerAttempt
    {
        nextAttemptID += 1
        let uri = configuration.servers[index].uri
        let report = ICEServerReport(
            server: uri, address: address, localAddress: socket?.address,
            status: uri.transport.isStream ? .connecting : .requesting, startedAt: now)
        return ICEServerAttempt(
            id: nextAttemptID, serverIndex: index, address: address ?? SocketAddress(.anyV4, port: 0),
            socket: socket?.id,
            report: report)
    }

    private func startAttempts(_ index: Int, now: Instant) {
        let server = configuration.servers[index]
        guard let addresses = serverAddresses[index], server.uri.isTURN || configuration.transportPolicy == .all else {
            return
        }
        if server.uri.transport.isStream {
            guard
                !attempts.contains(where: {
                    $0.serverIndex == index && ($0.isRunning || $0.report.status == .succeeded)
                })
            else { return }
            // The network has changed: what was lost is tried again at once.
            for lost in attempts.indices where attempts[lost].serverIndex == index && attempts[lost].retryAt != nil {
                attempts[lost].retryAt = now
            }
            attempts.removeAll { $0.serverIndex == index && $0.retryAt == nil }
            guard !attempts.contains(where: { $0.serverIndex == index }), let first = addresses.first else { return }
            startStreamAttempt(index, SocketAddress(first, port: server.uri.port), now: now)
            return
        }
        for socket in sockets {
            guard attempts.count < ICEAgent.attemptLimit,
                let ip = addresses.first(where: { ICEAgent.canPair(socket.address.ip, $0) })
            else { continue }
            let address = SocketAddress(ip, port: server.uri.port)
            let isKnown = attempts.contains {
                $0.socket == socket.id
                    && ($0.serverIndex == index || $0.address == address && $0.allocation != nil && server.uri.isTURN)
            }
            if isKnown { continue }
            var attempt = makeAttempt(index, address: address, socket: socket, now: now)
            if server.uri.isTURN { attempt.allocation = makeAllocation(server) }
            attempts.append(attempt)
            if server.uri.isTURN {
                attempt.allocation?.start(now: now)
                drain(attempt.id, now: now)
            } else {
                discover(attempt.id, now: now)
            }
        }
    }

    private func startStreamAttempt(_ index: Int, _ address: SocketAddress, now: Instant) {
        guard attempts.count < ICEAgent.attemptLimit else { return }
        let server = configuration.servers[index]
        var attempt = makeAttempt(index, address: address, socket: nil, now: now)
        guard server.uri.isTURN else {
            attempt.finish(.failed(reason: "a STUN server over a connection shows no UDP address; use stun:"), now: now)
            attempts.append(attempt)
            return
        }
        attempt.allocation = makeAllocation(server)
        attempts.append(attempt)
        openStream(attempt.id)
    }

    private func makeAllocation(_ server: ICEServer) -> TURNAllocation {
        TURNAllocation(
            username: server.username, credential: server.credential, isStream: server.uri.transport.isStream,
            random: random.split())
    }

    private func openStream(_ id: Int) {
        guard let index = attempts.firstIndex(where: { $0.id == id }) else { return }
        nextStreamID += 1
        let stream = ICEStreamID(nextStreamID)
        attempts[index].stream = stream
        attempts[index].framer = StreamFramer(.turn)
        attempts[index].report.status = .connecting
        let uri = attempts[index].report.server
        emit(
            .openStream(
                ICEStreamRequest(
                    id: stream, address: attempts[index].address, tlsServerName: uri.transport == .tls ? uri.host : nil)
            ))
    }

    // MARK: STUN servers

    private func discover(_ id: Int, now: Instant) {
        guard let index = attempts.firstIndex(where: { $0.id == id }), let socket = attempts[index].socket else {
            return
        }
        let transactionID = STUNTransactionID(random: &random)
        let packet = STUNMessage(.request, .binding, transactionID: transactionID).serialized(fingerprint: true)
        attempts[index].discovery = OutstandingCheck(
            transactionID: transactionID, packet: packet, schedule: STUNRetransmission(now: now, maximumCount: 5))
        emit(.transmit(Datagram(socket: socket, remote: attempts[index].address, payload: packet)))
    }

    private func noteDiscovery(_ message: STUNMessage, at index: Int, now: Instant) {
        attempts[index].discovery = nil
        guard message.messageClass == .success, let mapped = message.mappedAddress else {
            let reason =
                message.errorCode.map { "the STUN server answered \($0)" } ?? "the STUN server's answer has no address"
            attempts[index].finish(.failed(reason: reason), now: now)
            return
        }
        attempts[index].finish(.succeeded, now: now)
        attempts[index].report.mappedAddress = mapped
        addReflexive(mapped, of: attempts[index])
    }

    /// A server-reflexive candidate, unless it shows nothing new (RFC 8445, 5.1.3).
    private func addReflexive(_ mapped: SocketAddress, of attempt: ICEServerAttempt) {
        guard configuration.transportPolicy == .all, let socket = sockets.first(where: { $0.id == attempt.socket }),
            mapped != socket.address,
            !gathered.contains(where: { $0.candidate.socketAddress == mapped && $0.socket == socket.id }),
            gathered.count < ICEAgent.attemptLimit
        else { return }
        let candidate = ICECandidate(
            foundation: ICECandidate.foundation(
                type: .serverReflexive, base: socket.address.ip, server: "\(attempt.address.ip)"),
            priority: socket.candidate.priority & 0x00FF_FFFF | ICECandidateType.serverReflexive.preference << 24,
            address: .ip(mapped), type: .serverReflexive, relatedAddress: .ip(socket.address))
        gathered.append(GatheredCandidate(candidate: candidate, socket: socket.id))
        announce(candidate)
    }

    // MARK: What comes from servers

    /// Where a datagram came from a server that is in use there.
    func attemptIndex(socket: SocketID, remote: SocketAddress) -> Int? {
        attempts.firstIndex { $0.socket == socket && $0.address == remote }
    }

    /// The attempt whose relay a datagram of ChannelData came by.
    func relayIndex(socket: SocketID, remote: SocketAddress) -> Int? {
        attempts.firstIndex { $0.socket == socket && $0.address == remote && $0.allocation != nil }
    }

    /// True if the address is one of the servers in use: what comes from it goes to ``handle(_:now:)``.
    package func isServer(_ address: SocketAddress, on socket: SocketID) -> Bool {
        attemptIndex(socket: socket, remote: address) != nil
    }

    /// True if the message was a server's answer to this attempt, which then is dealt with.
    func handleServerMessage(_ message: STUNMessage, from remote: SocketAddress, on socket: SocketID, now: Instant) -> (
        handled: Bool, delivery: (Int, TURNAllocation.Delivery)?
    ) {
        for index in attempts.indices where attempts[index].socket == socket && attempts[index].address == remote {
            if attempts[index].discovery?.transactionID == message.transactionID {
                noteDiscovery(message, at: index, now: now)
                return (true, nil)
            }
            guard let allocation = attempts[index].allocation,
                allocation.isExpecting(message) || message.messageClass == .indication && message.method == .data
            else { continue }
            let id = attempts[index].id
            let delivery = allocation.receive(message, now: now)
            drain(id, now: now)
            return (true, delivery.map { (id, $0) })
        }
        return (false, nil)
    }

    /// Carries out what an allocation wants.
    func drain(_ id: Int, now: Instant) {
        while let index = attempts.firstIndex(where: { $0.id == id }), let output = attempts[index].allocation?.poll() {
            switch output {
            case .send(let packet): sendToServer(packet, attempts[index])
            case .allocated(let relayed, let mapped): noteAllocated(index, relayed, mapped, now: now)
            case .ended(let reason): noteEnded(id, reason, now: now)
            case .redirected(let address): redirect(id, to: address, now: now)
            case .permissionRefused(let ip, _):
                for pair in checklist.pairs where pair.path == .relay(id) && pair.remoteAddress.ip == ip {
                    checklist.update(pair.id) {
                        $0.state = .failed
                        $0.check = nil
                    }
                    if nominatingID == pair.id { nominatingID = nil }
                }
            }
        }
    }

    func sendToServer(_ packet: [UInt8], _ attempt: ICEServerAttempt) {
        if let socket = attempt.socket {
            emit(.transmit(Datagram(socket: socket, remote: attempt.address, payload: packet)))
        } else if let stream = attempt.stream {
            emit(.writeStream(stream, packet))
        }
    }

    private func noteAllocated(_ index: Int, _ relayed: SocketAddress, _ mapped: SocketAddress?, now: Instant) {
        attempts[index].retries = 0
        attempts[index].retryAt = nil
        attempts[index].finish(.succeeded, now: now)
        attempts[index].report.relayedAddress = relayed
        attempts[index].report.mappedAddress = mapped
        let hidden = SocketAddress(relayed.ip.isV4 ? .anyV4 : .anyV6, port: 0)
        let related = configuration.transportPolicy == .all ? mapped ?? hidden : hidden
        let rank = ICEAgent.rank(of: attempts[index].report.server.transport) + min(index, 99)
        let candidate = ICECandidate(
            foundation: ICECandidate.foundation(
                type: .relayed, base: relayed.ip,
                server: "\(attempts[index].address) \(attempts[index].report.server.transport)"),
            priority: ICECandidate.priority(type: .relayed, rank: rank), address: .ip(relayed), type: .relayed,
            relatedAddress: .ip(related))
        attempts[index].candidate = candidate
        if let mapped { addReflexive(mapped, of: attempts[index]) }
        announce(candidate)
        formPairs(now: now)
    }

    /// A relay reached over UDP is preferred to one over TCP, and that to one over TLS.
    private static func rank(of transport: ICEServerTransport) -> Int {
        switch transport {
        case .udp: 0
        case .tcp: 10_000
        case .tls: 20_000
        }
    }

    /// An attempt is over: before it brought anything, or after.
    func noteEnded(_ id: Int, _ reason: String, now: Instant) {
        guard let index = attempts.firstIndex(where: { $0.id == id }) else { return }
        let wasAllocated = attempts[index].candidate != nil
        if let stream = attempts[index].stream {
            attempts[index].stream = nil
            emit(.closeStream(stream))
        }
        attempts[index].candidate = nil
        attempts[index].report.relayedAddress = nil
        attempts[index].finish(.failed(reason: reason), now: now)
        if wasAllocated || attempts[index].retries > 0 {
            // ICE8: a relay that worked is asked for again.
            let delay = Duration.seconds(1 << Int64(min(attempts[index].retries, 5)))
            attempts[index].retries += 1
            attempts[index].retryAt = now + delay
            removePairs(now: now) { $0.path == .relay(id) }
            return
        }
        tryNextAddress(attempts[index], reason, now: now)
    }

    /// Names with several addresses: a connection that fails is tried at the next one.
    private func tryNextAddress(_ attempt: ICEServerAttempt, _ reason: String, now: Instant) {
        guard attempt.report.server.transport.isStream, let addresses = serverAddresses[attempt.serverIndex],
            let position = addresses.firstIndex(of: attempt.address.ip), position + 1 < addresses.count
        else { return }
        startStreamAttempt(
            attempt.serverIndex, SocketAddress(addresses[position + 1], port: attempt.report.server.port), now: now)
    }

    private func redirect(_ id: Int, to address: SocketAddress, now: Instant) {
        guard let index = attempts.firstIndex(where: { $0.id == id }) else { return }
        attempts[index].visited.insert(attempts[index].address)
        guard attempts[index].visited.count <= ICEAgent.redirectLimit, !attempts[index].visited.contains(address),
            address.ip.isV4 == attempts[index].address.ip.isV4, address.port != 0
        else {
            noteEnded(
                id, "the TURN server redirects (300) in circles, too often, or to another address family", now: now)
            return
        }
        attempts[index].address = address
        attempts[index].report.address = address
        restartAttempt(index, now: now)
    }

    private func restartAttempt(_ index: Int, now: Instant) {
        let id = attempts[index].id
        attempts[index].retryAt = nil
        attempts[index].report.endedAt = nil
        attempts[index].allocation = makeAllocation(configuration.servers[attempts[index].serverIndex])
        if attempts[index].report.server.transport.isStream {
            if let stream = attempts[index].stream { emit(.closeStream(stream)) }
            openStream(id)
        } else {
            attempts[index].report.status = .requesting
            attempts[index].allocation?.start(now: now)
            drain(id, now: now)
        }
    }

    // MARK: Time

    var nextServerTimeout: Instant? {
        if attempts.isEmpty, lookups.isEmpty { return nil }
        var earliest = lookups.values.map { $0.startedAt + ICEAgent.lookupTimeout }.min()
        for attempt in attempts {
            for time in [attempt.discovery?.schedule.next, attempt.allocation?.nextTimeout, attempt.retryAt] {
                if let time, earliest.map({ time < $0 }) ?? true { earliest = time }
            }
        }
        return earliest
    }

    func handleServerTimeouts(now: Instant) {
        for (token, lookup) in lookups where now >= lookup.startedAt + ICEAgent.lookupTimeout {
            _ = noteLookup(token, [], now: now)
        }
        for id in attempts.map(\.id) {
            guard let index = attempts.firstIndex(where: { $0.id == id }) else { continue }
            if var discovery = attempts[index].discovery, let event = discovery.schedule.handleTimeout(now: now) {
                switch event {
                case .retransmit:
                    attempts[index].discovery = discovery
                    sendToServer(discovery.packet, attempts[index])
                case .timeout:
                    attempts[index].discovery = nil
                    attempts[index].finish(.failed(reason: "no answer from the STUN server"), now: now)
                }
            }
            if let retryAt = attempts[index].retryAt, now >= retryAt {
                restartAttempt(index, now: now)
                continue
            }
            if let due = attempts[index].allocation?.nextTimeout, now >= due {
                attempts[index].allocation?.handleTimeout(now: now)
                drain(id, now: now)
            }
        }
    }

    // MARK: State

    var isGatheringFinished: Bool { lookups.isEmpty && !attempts.contains(where: \.isRunning) }

    /// Reports the end of gathering, and a relay-only agent's failure when no server is left (ICE12).
    func updateGathering(now: Instant) {
        guard isGathering, isGatheringFinished else { return }
        isGathering = false
        emit(.gatheringFinished)
    }

    /// Relays only, and none was to be had from any server. Later, when there was one, silence decides.
    var hasNoRelayLeft: Bool {
        guard configuration.mode == .full, configuration.transportPolicy == .relay, hasGathered, isGatheringFinished,
            !wasConnected
        else { return false }
        if !configuration.servers.contains(where: \.uri.isTURN) { return true }
        return !attempts.isEmpty && !attempts.contains { $0.candidate != nil || $0.retryAt != nil }
    }

    /// Why a failed agent failed, for users; nil while it has not.
    package var failureReason: String? {
        guard state == .failed else { return nil }
        if configuration.transportPolicy == .relay {
            let reasons = serverReports.compactMap { report -> String? in
                guard case .failed(let reason) = report.status else { return nil }
                return "\(report.server): \(reason)"
            }
            if configuration.servers.isEmpty { return "only relays may be used, and no TURN server is configured" }
            if !reasons.isEmpty, hasNoRelayLeft { return "no relay: " + reasons.joined(separator: "; ") }
        }
        return wasConnected ? "the peer has stopped answering" : "no pair of candidates works"
    }

    /// What became of each server, in the order of trying.
    package var serverReports: [ICEServerReport] {
        attempts.map(\.report)
            + lookups.values.map {
                ICEServerReport(
                    server: configuration.servers[$0.serverIndex].uri, status: .resolving, startedAt: $0.startedAt)
            }
    }

    /// Forgets what was gathered through a socket that is gone.
    func removeAttempts(of socket: SocketID) -> Set<Int> {
        let gone = Set(attempts.filter { $0.socket == socket }.map(\.id))
        attempts.removeAll { $0.socket == socket }
        gathered.removeAll { $0.socket == socket }
        return gone
    }

    /// Gives all allocations back.
    func releaseServers(now: Instant) {
        lookups = [:]
        for attempt in attempts {
            attempt.allocation?.release(now: now)
            drain(attempt.id, now: now)
            if let stream = attempt.stream { emit(.closeStream(stream)) }
        }
        attempts = []
    }
}
