import SoraWire

// Time: consent (RFC 7675), the end of hope, and the agent's state.
extension ICEAgent {
    private static let recoveryInterval = Duration.seconds(5)

    /// 80 to 120 percent of the configured interval (RFC 7675, 5.1).
    func consentInterval() -> Duration {
        configuration.consentInterval * Double.random(in: 0.8...1.2, using: &random)
    }

    /// The next time at which ``handleTimeout(now:)`` has something to do.
    package var nextTimeout: Instant? {
        if !isTimeoutCached {
            cachedTimeout = earliestTimeout()
            isTimeoutCached = true
        }
        return cachedTimeout
    }

    private func earliestTimeout() -> Instant? {
        guard state != .closed, state != .failed else { return nil }
        var earliest = Instant.distantFuture
        func consider(_ time: Instant?) { if let time, time < earliest { earliest = time } }
        if selectedID == nil { consider(failAt) }
        consider(nextServerTimeout)
        if configuration.mode == .lite {
            if let lastHeard {
                consider(lastHeard + configuration.liteFailedTimeout)
                if state != .disconnected, selectedID != nil {
                    consider(lastHeard + configuration.liteDisconnectedTimeout)
                }
            }
            return earliest == .distantFuture ? nil : earliest
        }
        for pair in checklist.pairs { consider(pair.check?.schedule.next) }
        if remoteKey != nil, checklist.hasWaiting { consider(checklist.nextOpportunity) }
        consider(nominationDeadline)
        if let selectedID, let index = checklist.index(of: selectedID) {
            let pair = checklist.pairs[index]
            if remoteKey != nil { consider(pair.nextConsentCheck) }
            if let lastAnswer = pair.lastAnswer {
                consider(lastAnswer + configuration.consentTimeout)
                if pair.isInTrouble, state != .disconnected { consider(lastAnswer + configuration.disconnectedTimeout) }
            }
            if pair.isInTrouble { consider(recoveryAt.map { $0 + ICEAgent.recoveryInterval }) }
        } else if wasConnected {
            consider(recoveryAt.map { $0 + ICEAgent.recoveryInterval })
        }
        return earliest == .distantFuture ? nil : earliest
    }

    /// Does what is due at `now`.
    package func handleTimeout(now: Instant) {
        guard state != .closed, state != .failed else { return }
        defer { finish(now) }
        if selectedID == nil, let failAt, now >= failAt {
            fail(now: now)
            return
        }
        if configuration.mode == .lite {
            if let lastHeard, now >= lastHeard + configuration.liteFailedTimeout { fail(now: now) }
            return
        }
        handleServerTimeouts(now: now)
        retransmitChecks(now: now)
        keepConsent(now: now)
    }

    /// Asks the peer whether it still wants our packets; stops after 30 s without a yes.
    private func keepConsent(now: Instant) {
        guard let id = selectedID, let index = checklist.index(of: id) else {
            if wasConnected, let recoveryAt, now >= recoveryAt + ICEAgent.recoveryInterval { recover(now: now) }
            return
        }
        let pair = checklist.pairs[index]
        if let lastAnswer = pair.lastAnswer, now >= lastAnswer + configuration.consentTimeout {
            checklist.pairs[index].state = .failed
            checklist.pairs[index].check = nil
            checklist.pairs[index].isNominated = false
            if nominatingID == id { nominatingID = nil }
            return
        }
        if remoteKey != nil, let due = pair.nextConsentCheck, now >= due {
            // ICE5: one loss means nothing, but is followed up, so that a dead way is noticed early.
            let next = [Duration.seconds(1), .seconds(1), .milliseconds(2_500)]
            checklist.pairs[index].nextConsentCheck =
                now + (pair.unanswered < next.count ? next[pair.unanswered] : consentInterval())
            checklist.pairs[index].unanswered += 1
            sendCheck(id, nominating: false, isConsent: true, now: now)
            if checklist.pairs[index].isInTrouble, recoveryAt == nil { recover(now: now) }
        }
        if pair.isInTrouble, let recoveryAt, now >= recoveryAt + ICEAgent.recoveryInterval { recover(now: now) }
    }

    /// Ends what every input leaves to do.
    func finish(_ now: Instant) {
        isTimeoutCached = false
        guard state != .closed, state != .failed else { return }
        updateGathering(now: now)
        if hasNoRelayLeft, remoteCredentials != nil {
            fail(now: now)
            return
        }
        pumpChecks(now: now)
        updateSelection(now: now)
        startConsent(now: now)
        updateState(now: now)
        if transactions.count > 64 {
            transactions = transactions.filter { now - $0.value.sentAt < configuration.consentTimeout + .seconds(10) }
        }
    }

    /// A pair that came into use by another way than a check of ours gets its first consent check.
    private func startConsent(now: Instant) {
        guard configuration.mode == .full, let selectedID, let index = checklist.index(of: selectedID),
            checklist.pairs[index].nextConsentCheck == nil
        else { return }
        checklist.pairs[index].nextConsentCheck = now + consentInterval()
    }

    private func updateState(now: Instant) {
        if configuration.mode == .lite {
            updateStateAsLite(now: now)
            return
        }
        guard let selectedID, let index = checklist.index(of: selectedID) else {
            if wasConnected { setState(.disconnected) }
            return
        }
        let pair = checklist.pairs[index]
        if !pair.isInTrouble, pair.state == .succeeded { recoveryAt = nil }
        if pair.isInTrouble, let lastAnswer = pair.lastAnswer, now >= lastAnswer + configuration.disconnectedTimeout {
            setState(.disconnected)
        } else if pair.isInTrouble, state == .disconnected {
            return
        } else {
            let isBusy = checklist.pairs.contains { $0.state == .waiting || $0.state == .inProgress }
            // Once completed it stays so while a nominated pair works, whatever else is checked meanwhile.
            let isComplete = pair.isNominated && (state == .completed || !isBusy && isGatheringFinished)
            setState(isComplete ? .completed : .connected)
        }
    }

    func fail(now: Instant) {
        select(nil, now: now)
        transactions = [:]
        for pair in checklist.pairs {
            checklist.update(pair.id) {
                $0.check = nil
                $0.state = .failed
            }
        }
        setState(.failed)
    }
}
