import SoraWire

// The lite side (RFC 8445, 2.5 and 8.2): answers checks and sends none. It learns that the peer is gone from silence.
extension ICEAgent {
    /// An authentic check came by the pair. It is used at once, until the peer nominates one.
    func noteCheckAsLite(_ id: Int, nominates: Bool, now: Instant) {
        lastHeard = now
        checklist.update(id) {
            $0.state = .succeeded
            if nominates && $0.nominationReceived == nil { $0.nominationReceived = now }
        }
        if nominates {
            adoptNomination(id, now: now)
        } else if selectedID == nil {
            select(id, now: now)
        }
    }

    func updateStateAsLite(now: Instant) {
        guard let lastHeard else { return }
        guard let selectedID, let index = checklist.index(of: selectedID) else {
            // Its socket is gone.
            setState(.disconnected)
            return
        }
        if now >= lastHeard + configuration.liteDisconnectedTimeout {
            setState(.disconnected)
        } else {
            setState(checklist.pairs[index].isNominated ? .completed : .connected)
        }
    }
}
