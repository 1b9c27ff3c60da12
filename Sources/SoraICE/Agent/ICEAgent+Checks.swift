import SoraWire

/// A check that was sent and whose answer would still count.
struct SentCheck: Sendable {
    var pairID: Int
    var sentAt: Instant
    /// False once it was sent again: its answer says nothing about the round trip any more (RFC 6298, 3).
    var measuresRoundTrip = true
    var nominates: Bool
    var asControlling: Bool
}

// Our checks and their answers (RFC 8445, 7.2).
extension ICEAgent {
    /// First interval of repetition while there is no pair left.
    private static let cutOffInterval = Duration.milliseconds(200)
    private static let confirmationDelay = Duration.milliseconds(2_050)

    /// Sends what may be sent now: triggered checks at once, as each answers a packet of the peer; ordinary ones at
    /// their pace.
    func pumpChecks(now: Instant) {
        guard configuration.mode == .full, remoteKey != nil, state != .failed, state != .closed else { return }
        while let id = checklist.popTriggered() {
            guard let index = checklist.index(of: id) else { continue }
            // A nomination under way is repeated as such.
            let nominating = nominatingID == id
            if checklist.pairs[index].state != .succeeded || nominating {
                sendCheck(id, nominating: nominating, now: now)
            }
        }
        while checklist.hasWaiting, checklist.takeOpportunity(now: now),
            let id = checklist.nextWaiting(isControlling: role == .controlling)
        {
            sendCheck(id, nominating: false, now: now)
        }
    }

    /// Sends a new check. Consent checks are never sent again as they are (RFC 7675, 5.1).
    func sendCheck(_ id: Int, nominating: Bool, isConsent: Bool = false, now: Instant) {
        guard let remoteKey, let index = checklist.index(of: id) else { return }
        let pair = checklist.pairs[index]
        let isControlling = role == .controlling
        let transactionID = STUNTransactionID(random: &random)
        // The priority that a peer-reflexive candidate learnt from this check shall have (RFC 8445, 7.1.1).
        let priority = pair.local.priority & 0x00FF_FFFF | ICECandidateType.peerReflexive.preference << 24
        var message = STUNMessage(
            .request, .binding, transactionID: transactionID,
            attributes: [
                .username(outgoingUsername), .priority(priority),
                isControlling ? .iceControlling(tieBreaker: tieBreaker) : .iceControlled(tieBreaker: tieBreaker),
            ])
        let nominates = isControlling && (nominating || isConsent && pair.isNominated)
        if nominates { message.attributes.append(.useCandidate) }
        let packet = message.serialized(integrity: .sha1(remoteKey), fingerprint: true)
        trimTransactions()
        transactions[transactionID] = SentCheck(
            pairID: id, sentAt: now, nominates: nominates, asControlling: isControlling)
        checklist.pairs[index].statistics.requestsSent &+= 1
        if isConsent {
            checklist.pairs[index].statistics.consentRequestsSent &+= 1
        } else {
            let active = checklist.pairs.count { $0.state == .waiting || $0.state == .inProgress }
            // A machine that changes its network often has the address before the route: ask again soon.
            let isCutOff = wasConnected && selectedID == nil
            let interval = max(
                isCutOff ? ICEAgent.cutOffInterval : STUNRetransmission.initialInterval,
                configuration.checkInterval * active)
            checklist.pairs[index].check = OutstandingCheck(
                transactionID: transactionID, packet: packet,
                schedule: STUNRetransmission(now: now, isReliable: pair.path.isReliable, initialInterval: interval))
            if !nominating { checklist.pairs[index].state = .inProgress }
        }
        if nominating { nominatingID = id }
        send(packet, by: pair.path, to: pair.remoteAddress)
    }

    private func trimTransactions() {
        guard transactions.count >= 512, let oldest = transactions.min(by: { $0.value.sentAt < $1.value.sentAt }) else {
            return
        }
        transactions[oldest.key] = nil
    }

    /// Sends checks again whose time has come, and gives up others.
    func retransmitChecks(now: Instant) {
        for pair in checklist.pairs {
            guard var check = pair.check, let event = check.schedule.handleTimeout(now: now),
                let index = checklist.index(of: pair.id)
            else { continue }
            switch event {
            case .retransmit:
                checklist.pairs[index].check = check
                checklist.pairs[index].statistics.requestsSent &+= 1
                transactions[check.transactionID]?.measuresRoundTrip = false
                send(check.packet, by: pair.path, to: pair.remoteAddress)
            case .timeout:
                checklist.pairs[index].check = nil
                checklist.pairs[index].state = .failed
                transactions[check.transactionID] = nil
                if nominatingID == pair.id { nominatingID = nil }
            }
        }
    }

    /// A success or error answer to a check.
    func handleAnswer(_ message: STUNMessage, on path: ICEPath, from remote: SocketAddress, now: Instant) {
        guard let sent = transactions[message.transactionID], let remoteKey,
            let index = checklist.index(of: sent.pairID),
            // ICE13: from the address that was asked, by the way that was taken, and signed.
            checklist.pairs[index].path == path, checklist.pairs[index].remoteAddress == remote,
            message.isAuthentic(.sha1(remoteKey)), message.unknownRequired.isEmpty
        else { return }
        transactions[message.transactionID] = nil
        let wasOutstanding = checklist.pairs[index].check?.transactionID == message.transactionID
        if wasOutstanding { checklist.pairs[index].check = nil }
        if message.messageClass == .error {
            handleErrorAnswer(message.errorCode, to: sent, wasOutstanding: wasOutstanding)
            return
        }
        guard let mapped = message.mappedAddress else {
            if wasOutstanding { checklist.pairs[index].state = .failed }
            return
        }
        noteAnswer(to: sent, at: index, mapped: mapped, now: now)
    }

    private func noteAnswer(to sent: SentCheck, at index: Int, mapped: SocketAddress, now: Instant) {
        let roundTrip = now - sent.sentAt
        let interval = consentInterval()
        var pair = checklist.pairs[index]
        pair.statistics.responsesReceived &+= 1
        if sent.measuresRoundTrip {
            pair.statistics.currentRoundTripTime = roundTrip
            pair.statistics.totalRoundTripTime += roundTrip
        }
        pair.state = .succeeded
        pair.lastAnswer = now
        pair.unanswered = 0
        // ICE5: counted from the start of the last check.
        pair.nextConsentCheck = max(sent.sentAt + interval, now)
        if nominatingID != pair.id { pair.check = nil }
        if sent.nominates, role == .controlling {
            defer { hasNominated = true }
            // A peer that was nominated another pair less than two seconds ago may take this for an aggressive
            // agent's second choice. Said again after that, it means that we moved.
            if !pair.isNominated, hasNominated {
                pair.nextConsentCheck = sent.sentAt + ICEAgent.confirmationDelay
            }
            pair.isNominated = true
            pair.check = nil
            if nominatingID == pair.id { nominatingID = nil }
        }
        if pair.local.socketAddress != mapped { pair.local = learnt(mapped, by: pair) }
        checklist.pairs[index] = pair
        if firstValidAt == nil { firstValidAt = now }
        if role == .controlled, pair.nominationReceived != nil, !pair.isNominated { adoptNomination(pair.id, now: now) }
    }

    /// The local candidate that the peer saw us at: one of ours, or a peer-reflexive one (RFC 8445, 7.2.5.3.1).
    private func learnt(_ mapped: SocketAddress, by pair: ICECandidatePair) -> ICECandidate {
        guard case .socket(let id) = pair.path, let socket = sockets.first(where: { $0.id == id }) else {
            return pair.local
        }
        if let own = sockets.first(where: { $0.id == id && $0.address.withoutScope == mapped }) { return own.candidate }
        if let known = gathered.first(where: { $0.candidate.socketAddress == mapped && $0.socket == id }) {
            return known.candidate
        }
        return ICECandidate(
            foundation: ICECandidate.foundation(type: .peerReflexive, base: socket.address.ip),
            priority: socket.candidate.priority & 0x00FF_FFFF | ICECandidateType.peerReflexive.preference << 24,
            address: .ip(mapped), type: .peerReflexive, relatedAddress: .ip(socket.address))
    }

    private func handleErrorAnswer(_ error: STUNErrorCode?, to sent: SentCheck, wasOutstanding: Bool) {
        if error?.code == STUNErrorCode.roleConflict.code {
            if nominatingID == sent.pairID { nominatingID = nil }
            // ICE1: switch unless that has happened meanwhile, and repeat the check.
            if sent.asControlling == (role == .controlling) { switchRole() }
            checklist.update(sent.pairID) {
                $0.check = nil
                $0.state = .waiting
            }
            checklist.trigger(sent.pairID)
            return
        }
        guard wasOutstanding else { return }
        if nominatingID == sent.pairID { nominatingID = nil }
        checklist.update(sent.pairID) { $0.state = .failed }
    }

    /// RFC 8445, 7.2.5.1: the other role, with a new tie-breaker. A lite agent, and one whose peer is lite, keep
    /// theirs.
    func switchRole(newTieBreaker: Bool = true) {
        guard configuration.mode == .full, !remoteIsLite else { return }
        role = role == .controlling ? .controlled : .controlling
        if newTieBreaker { tieBreaker = random.next() }
        nominatingID = nil
        // Nominations were made by the wrong side.
        for pair in checklist.pairs where pair.isNominated { checklist.update(pair.id) { $0.isNominated = false } }
    }
}

extension ICEPath {
    /// True where the transport repeats what is lost, so that STUN must not.
    var isReliable: Bool {
        if case .stream = self { true } else { false }
    }
}
