import SoraWire

// Which pair is in use (RFC 8445, 8.1.1 and 8.1.2).
extension ICEAgent {
    /// An aggressive peer (RFC 5245, 8.1.1.2) nominates every pair within this time: the best of them counts.
    /// After it, a new nomination means that the peer moved.
    private static let aggressivePhase = Duration.seconds(2)

    /// Puts the pair into use that should be, and nominates it if that is for us to do.
    func updateSelection(now: Instant) {
        guard configuration.mode == .full, state != .closed, state != .failed else { return }
        let valid = checklist.pairs.filter { $0.state == .succeeded }
        let healthy = valid.filter { !$0.isInTrouble }
        let pool = healthy.isEmpty ? valid : healthy
        let isControlling = role == .controlling
        guard
            let best = pool.max(by: {
                $0.priority(isControlling: isControlling) < $1.priority(isControlling: isControlling)
            })
        else {
            if let selectedID, checklist.index(of: selectedID).map({ checklist.pairs[$0].state == .failed }) ?? true {
                loseSelection(now: now)
            }
            return
        }
        let nominated = pool.filter(\.isNominated)
        if !nominated.isEmpty {
            if !nominated.contains(where: { $0.id == selectedID }) {
                select(nominated.max { $0.lastAnswer ?? .zero < $1.lastAnswer ?? .zero }?.id, now: now)
            }
            pauseOthers()
            return
        }
        select(best.id, now: now)
        if isControlling, nominatingID == nil, mayNominate(best, now: now) {
            sendCheck(best.id, nominating: true, now: now)
        }
    }

    /// RFC 8445, 8.1.2: once a pair is nominated, the others are not checked any further, until it is in trouble.
    private func pauseOthers() {
        guard recoveryAt == nil else { return }
        for pair in checklist.pairs where pair.id != selectedID && (pair.state == .waiting || pair.state == .inProgress)
        {
            // One that the peer asks for is its business, too.
            if pair.nominationReceived != nil { continue }
            checklist.update(pair.id) {
                $0.state = .paused
                $0.check = nil
            }
        }
    }

    /// Nothing better is pending, or was waited for long enough, or a way that worked was lost.
    private func mayNominate(_ best: ICECandidatePair, now: Instant) -> Bool {
        if recoveryAt != nil { return true }
        if let deadline = nominationDeadline, now >= deadline { return true }
        let priority = best.priority(isControlling: true)
        return !checklist.pairs.contains {
            ($0.state == .waiting || $0.state == .inProgress) && $0.priority(isControlling: true) > priority
        }
    }

    /// When the best valid pair is nominated although better ones are still being checked.
    var nominationDeadline: Instant? {
        guard role == .controlling, configuration.mode == .full, nominatingID == nil, let firstValidAt,
            checklist.pairs.contains(where: { $0.state == .succeeded }),
            !checklist.pairs.contains(where: { $0.state == .succeeded && $0.isNominated })
        else { return nil }
        let isRelayed = !checklist.pairs.contains {
            $0.state == .succeeded && $0.local.type != .relayed && $0.remote.type != .relayed
        }
        return firstValidAt + (isRelayed ? configuration.relayedNominationDelay : configuration.nominationDelay)
    }

    /// The peer nominated a pair that works.
    func adoptNomination(_ id: Int, now: Instant) {
        guard let index = checklist.index(of: id) else { return }
        let isNew = !checklist.pairs[index].isNominated
        checklist.pairs[index].isNominated = true
        guard selectedID != id else { return }
        if let selectedID, let current = checklist.index(of: selectedID).map({ checklist.pairs[$0] }),
            current.isNominated
        {
            let silent = now - (current.lastRequest ?? current.lastAnswer ?? .zero) >= ICEAgent.aggressivePhase
            let isYoung = now - (current.nominationReceived ?? .zero) < ICEAgent.aggressivePhase
            let isBetter =
                current.priority(isControlling: role == .controlling)
                > checklist.pairs[index].priority(isControlling: role == .controlling)
            guard silent || isNew && !(isYoung && isBetter) else { return }
        }
        select(id, now: now)
    }

    /// Puts a pair into use, or none.
    func select(_ id: Int?, now: Instant) {
        guard id != selectedID else { return }
        if let old = selectedID { checklist.update(old) { $0.nextConsentCheck = nil } }
        guard let id, let index = checklist.index(of: id) else {
            selectedID = nil
            selectedRoute = nil
            return
        }
        let pair = checklist.pairs[index]
        selectedID = id
        selectedRoute = route(of: pair)
        wasConnected = true
        failAt = nil
        if case .relay(let relay) = pair.path {
            attempts.first { $0.id == relay }?.allocation?.bind(pair.remoteAddress, now: now)
            drain(relay, now: now)
        }
        emit(.selectedPairChanged(local: pair.local, remote: pair.remote))
    }

    private func route(of pair: ICECandidatePair) -> ICERoute? {
        switch pair.path {
        case .socket(let socket): return .direct(socket, pair.remoteAddress)
        case .stream(let stream): return .stream(ICEStreamID(stream))
        case .relay(let id):
            guard let attempt = attempts.first(where: { $0.id == id }), let allocation = attempt.allocation else {
                return nil
            }
            if let socket = attempt.socket {
                return .relay(allocation, socket, server: attempt.address, peer: pair.remoteAddress)
            }
            return attempt.stream.map { .relayStream(allocation, $0, peer: pair.remoteAddress) }
        }
    }

    /// The pair in use ended and there is no other.
    private func loseSelection(now: Instant) {
        let last = selectedID.flatMap { checklist.index(of: $0) }.flatMap { checklist.pairs[$0].lastAnswer }
        select(nil, now: now)
        failAt = (last ?? now) + configuration.consentTimeout
        recover(now: now)
    }

    /// Checks every other pair anew.
    func recover(now: Instant) {
        guard configuration.mode == .full else { return }
        recoveryAt = now
        for attempt in attempts { attempt.allocation?.probe(now: now) }
        for id in attempts.map(\.id) { drain(id, now: now) }
        for pair in checklist.pairs where pair.id != selectedID && pair.state != .inProgress {
            checklist.update(pair.id) {
                $0.state = .waiting
                $0.isNominated = false
            }
        }
    }
}
