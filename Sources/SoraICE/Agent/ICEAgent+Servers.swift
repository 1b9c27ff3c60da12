import SoraWire

// What STUN and TURN servers answer, and what follows.
extension ICEAgent {
    private static let redirectLimit = 3

    // MARK: STUN servers

    func discover(_ id: Int, now: Instant) {
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
        tryNextAddress(after: id, now: now)
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
            for time in [
                attempt.discovery?.schedule.next, attempt.allocation?.nextTimeout, attempt.retryAt,
                attempt.nextAddressAt,
            ] {
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
                    tryNextAddress(after: id, now: now)
                }
            }
            if let next = attempts[index].nextAddressAt, now >= next {
                if attempts[index].isRunning {
                    tryNextAddress(after: id, now: now)
                } else {
                    attempts[index].nextAddressAt = nil
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
    package var hasNoRelayLeft: Bool {
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
