import SoraWire

// Remote candidates and the pairs that they make (RFC 8445, 6.1.2).
extension ICEAgent {
    /// Stores a candidate that was signalled, and pairs it.
    func addRemote(_ candidate: ICECandidate, at address: SocketAddress, now: Instant) {
        guard candidate.transport == .udp || configuration.usesTCPCandidates && candidate.tcpType == .passive,
            ICEAgent.isReachable(address)
        else { return }
        if let known = remoteCandidates.firstIndex(where: {
            $0.socketAddress == address && $0.transport == candidate.transport
        }) {
            guard remoteCandidates[known].type == .peerReflexive, candidate.type != .peerReflexive else { return }
            // ICE17: what was peer-reflexive turns out to be a known candidate. Pairs, nomination and consent stay.
            remoteCandidates[known] = candidate
            for pair in checklist.pairs
            where pair.remoteAddress == address && pair.remote.transport == candidate.transport {
                checklist.update(pair.id) { $0.remote = candidate }
            }
            // Its own check showed it to one of our candidates only; now it is paired with all.
            formPairs(now: now)
            return
        }
        guard remoteCandidates.count < configuration.remoteCandidateLimit else { return }
        remoteCandidates.append(candidate)
        if candidate.transport == .tcp { connect(to: candidate, at: address) }
        formPairs(now: now)
    }

    /// Asks for the address of a candidate that is a name, and waits for nothing.
    func resolve(_ name: String, _ candidate: ICECandidate) {
        guard configuration.mode == .full, names.count < 16,
            remoteCandidates.count < configuration.remoteCandidateLimit,
            configuration.resolvesAllNames || name.lowercased().hasSuffix(".local")
        else { return }
        nextNameToken += 1
        names[nextNameToken] = candidate
        emit(.resolve(name: name, token: nextNameToken))
    }

    private static func isReachable(_ address: SocketAddress) -> Bool {
        guard address.port != 0, !address.ip.isUnspecified else { return false }
        switch address.ip {
        case .v4(let value): return value >> 28 != 0xE && value != 0xFFFF_FFFF && value >> 24 != 0
        case .v6(let high, _, _): return high >> 56 != 0xFF
        }
    }

    /// Makes the pairs that do not exist yet. A lite agent makes pairs from the peer's checks only.
    func formPairs(now: Instant) {
        guard configuration.mode == .full, remoteCredentials != nil else { return }
        for candidate in remoteCandidates {
            guard let address = candidate.socketAddress else { continue }
            if configuration.transportPolicy == .all, candidate.transport == .udp {
                for socket in sockets where ICEAgent.canPair(socket.address.ip, address.ip) {
                    addPair(
                        path: .socket(socket.id), local: socket.candidate, remote: candidate,
                        address: address.scoped(like: socket.address.ip))
                }
            }
            guard candidate.transport == .udp else { continue }
            for attempt in attempts {
                guard let local = attempt.candidate, let relayed = local.socketAddress,
                    relayed.ip.isV4 == address.ip.isV4, !address.ip.isLoopback || relayed.ip.isLoopback
                else { continue }
                attempt.allocation?.permit(address.ip, now: now)
                addPair(path: .relay(attempt.id), local: local, remote: candidate, address: address)
                drain(attempt.id, now: now)
            }
        }
        trimPermissions()
    }

    /// Lets permissions lapse that no pair needs any more.
    private func trimPermissions() {
        for attempt in attempts where attempt.candidate != nil {
            let ips = checklist.pairs.compactMap { $0.path == .relay(attempt.id) ? $0.remoteAddress.ip : nil }
            attempt.allocation?.keepPermissions(only: Set(ips))
        }
    }

    @discardableResult
    func addPair(path: ICEPath, local: ICECandidate, remote: ICECandidate, address: SocketAddress) -> Int? {
        if let index = checklist.index(path: path, remote: address) { return checklist.pairs[index].id }
        let id = checklist.add(
            path: path, local: local, remote: remote, remoteAddress: address, isControlling: role == .controlling,
            keep: selectedID)
        transactions = transactions.filter { checklist.index(of: $0.value.pairID) != nil }
        return id
    }

    /// Equal families; loopback sends to loopback only, link-local to link-local only.
    static func canPair(_ local: IPAddress, _ remote: IPAddress) -> Bool {
        guard local.isV4 == remote.isV4 else { return false }
        if local.isLoopback, !remote.isLoopback { return false }
        return local.isV4 || local.isLinkLocal == remote.isLinkLocal
    }

    /// The local candidate that a path starts from.
    func localCandidate(of path: ICEPath) -> ICECandidate? {
        switch path {
        case .socket(let id):
            guard configuration.transportPolicy == .all else { return nil }
            return sockets.first { $0.id == id }?.candidate
        case .relay(let id): return attempts.first { $0.id == id }?.candidate
        case .stream(let id): return connections[ICEStreamID(id)]?.local
        }
    }

    /// The pair that an authentic request of the peer came by, made if it is new (RFC 8445, 7.3.1.3 and 7.3.1.4).
    func pair(of path: ICEPath, from remote: SocketAddress, priority: UInt32) -> Int? {
        if let index = checklist.index(path: path, remote: remote) { return checklist.pairs[index].id }
        guard let local = localCandidate(of: path) else { return nil }
        let candidate: ICECandidate
        if let known = remoteCandidates.first(where: { $0.socketAddress == remote && $0.transport == local.transport })
        {
            candidate = known
        } else {
            candidate = ICECandidate(
                foundation: ICECandidate.foundation(type: .peerReflexive, base: remote.ip, server: "\(remote.port)"),
                transport: local.transport, priority: priority, address: .ip(remote), type: .peerReflexive,
                tcpType: local.transport == .tcp ? .active : nil)
            makeRoomForPeerReflexive()
            remoteCandidates.append(candidate)
        }
        return addPair(path: path, local: local, remote: candidate, address: remote)
    }

    /// A peer that moves for hours must always get in: its oldest unused peer-reflexive address goes.
    private func makeRoomForPeerReflexive() {
        guard remoteCandidates.count >= configuration.remoteCandidateLimit else { return }
        let used = selectedID.flatMap { checklist.index(of: $0) }.map { checklist.pairs[$0].remoteAddress }
        let victim =
            remoteCandidates.firstIndex { $0.type == .peerReflexive && $0.socketAddress != used }
            ?? remoteCandidates.firstIndex { $0.socketAddress != used }
        guard let victim else { return }
        let address = remoteCandidates.remove(at: victim).socketAddress
        checklist.remove { $0.remoteAddress == address }
    }

    /// Removes pairs whose local end is gone.
    func removePairs(now: Instant, where matches: (ICECandidatePair) -> Bool) {
        let lost = selectedID.flatMap { checklist.index(of: $0) }.map { checklist.pairs[$0] }.flatMap {
            matches($0) ? $0 : nil
        }
        checklist.remove(where: matches)
        transactions = transactions.filter { checklist.index(of: $0.value.pairID) != nil }
        if let nominatingID, checklist.index(of: nominatingID) == nil { self.nominatingID = nil }
        guard let lost else { return }
        select(nil, now: now)
        failAt = (lost.lastAnswer ?? now) + configuration.consentTimeout
        recover(now: now)
    }

    /// A restart: only the pair in use stays, without consent or nomination of the new generation.
    func forgetPeer() {
        remoteCandidates = []
        names = [:]
        transactions = [:]
        nominatingID = nil
        firstValidAt = nil
        recoveryAt = nil
        if selectedID == nil {
            // Nothing goes on: this is a beginning.
            wasConnected = false
            lastHeard = nil
            failAt = nil
        }
        checklist.remove { $0.id != selectedID }
        for pair in checklist.pairs {
            checklist.update(pair.id) {
                // To be checked with the new credentials like any other.
                $0.state = .waiting
                $0.check = nil
                $0.isNominated = false
                $0.nominationReceived = nil
                $0.nextConsentCheck = nil
                $0.unanswered = 0
            }
        }
    }

    /// Pairs made by checks that came before the peer's credentials, and named another peer.
    func dropEarlyPairs() {
        guard let fragment = remoteCredentials?.usernameFragment else { return }
        let wrong = earlyFragments.filter { $0.value != fragment }.map(\.key)
        earlyFragments = [:]
        guard !wrong.isEmpty else { return }
        if let selectedID, wrong.contains(selectedID) { select(nil, now: .zero) }
        checklist.remove { wrong.contains($0.id) }
    }
}

extension SocketAddress {
    /// Without the interface of a link-local address, which means nothing to others.
    var withoutScope: SocketAddress {
        guard case .v6(let high, let low, _) = ip else { return self }
        return SocketAddress(.v6(high: high, low: low, scope: 0), port: port)
    }

    /// A link-local address of the peer is on the link of our own.
    func scoped(like local: IPAddress) -> SocketAddress {
        guard ip.isLinkLocal, case .v6(let high, let low, 0) = ip, case .v6(_, _, let scope) = local else {
            return self
        }
        return SocketAddress(.v6(high: high, low: low, scope: scope), port: port)
    }
}

/// A server-reflexive candidate and the socket that it belongs to.
struct GatheredCandidate: Sendable {
    var candidate: ICECandidate
    var socket: SocketID
}
