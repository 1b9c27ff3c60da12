import SoraWire

// The peer's checks (RFC 8445, 7.3).
extension ICEAgent {
    /// Answers an authentic check and learns from it. Everything else meets silence (ICE13, SAF3).
    func handleRequest(_ message: STUNMessage, on path: ICEPath, from remote: SocketAddress, now: Instant) {
        guard state != .failed, let username = message.username, let sender = sender(of: username),
            message.isAuthentic(.sha1(localKey)), localCandidate(of: path) != nil
        else { return }
        // ICE16
        let unknown = message.unknownRequired
        guard unknown.isEmpty else {
            refuse(message, .unknownAttribute, on: path, to: remote, extra: [.unknownAttributes(unknown)])
            return
        }
        guard resolveRoles(message) else {
            refuse(message, .roleConflict, on: path, to: remote)
            return
        }
        let priority = message.priority ?? ICECandidate.priority(type: .peerReflexive, rank: 0)
        guard let id = pair(of: path, from: remote, priority: priority), let index = checklist.index(of: id) else {
            return
        }
        if remoteCredentials == nil { earlyFragments[id] = sender }
        checklist.pairs[index].lastRequest = now
        checklist.pairs[index].statistics.requestsReceived &+= 1
        checklist.pairs[index].statistics.responsesSent &+= 1
        let answer = STUNMessage(
            .success, .binding, transactionID: message.transactionID, attributes: [.xorMappedAddress(remote)])
        send(answer.serialized(integrity: .sha1(localKey), fingerprint: true), by: path, to: remote)
        if configuration.mode == .lite {
            noteCheckAsLite(id, nominates: message.nominates, now: now)
        } else {
            noteCheck(id, nominates: message.nominates && role == .controlled, now: now)
        }
    }

    /// The fragment of the sender if USERNAME is exactly ours, a colon and theirs (ICE15). Before
    /// their credentials are known any will do, and is remembered.
    private func sender(of username: [UInt8]) -> String? {
        if remoteCredentials != nil { return username == incomingUsername ? remoteCredentials?.usernameFragment : nil }
        guard username.starts(with: incomingUsername), username.count > incomingUsername.count else { return nil }
        return String(decoding: username.dropFirst(incomingUsername.count), as: UTF8.self)
    }

    private func refuse(
        _ message: STUNMessage, _ error: STUNErrorCode, on path: ICEPath, to remote: SocketAddress,
        extra: [STUNAttribute] = []
    ) {
        let answer = STUNMessage(
            .error, .binding, transactionID: message.transactionID, attributes: [.errorCode(error)] + extra)
        send(answer.serialized(integrity: .sha1(localKey), fingerprint: true), by: path, to: remote)
    }

    /// RFC 8445, 7.3.1.1. False if the peer is to change its role.
    private func resolveRoles(_ message: STUNMessage) -> Bool {
        let fixed = configuration.mode == .lite || remoteIsLite
        switch role {
        case .controlling:
            guard let theirs = message.iceControlling else { return true }
            if fixed || tieBreaker >= theirs { return false }
        case .controlled:
            guard let theirs = message.iceControlled else { return true }
            if fixed || tieBreaker < theirs { return false }
        }
        switchRole(newTieBreaker: false)
        return true
    }

    /// A full agent checks back at once (RFC 8445, 7.3.1.4) and notes a nomination (7.3.1.5).
    private func noteCheck(_ id: Int, nominates: Bool, now: Instant) {
        guard let index = checklist.index(of: id) else { return }
        if nominates, checklist.pairs[index].nominationReceived == nil {
            checklist.pairs[index].nominationReceived = now
        }
        switch checklist.pairs[index].state {
        case .succeeded:
            if nominates { adoptNomination(id, now: now) }
            // The peer came back on a way that gave no answers lately: ask again now.
            if checklist.pairs[index].isInTrouble { checklist.pairs[index].nextConsentCheck = now }
        case .waiting, .failed, .paused:
            checklist.pairs[index].state = .waiting
            checklist.trigger(id)
        case .inProgress:
            // The one under way may have met a closed filter that the peer's own check has opened.
            checklist.trigger(id)
        }
    }
}
