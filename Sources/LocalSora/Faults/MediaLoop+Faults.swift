import SoraMessages
import SoraNetwork
import SoraPeer
import SoraWire

// Faults of connections that have been admitted.

extension MediaLoop {
    /// Takes note of faults that met a connection: a new one before it gets its offer, or one that is there.
    func prepare(_ active: [ActiveFault], for id: ConnectionID) {
        guard !active.isEmpty else { return }
        connectionFaults[id, default: []] += active
        faults.addMessageFaults(active.filter(\.kind.isOfMessages), of: id.rawValue)
        if active.contains(where: \.kind.isOfNetwork) { updateNetwork(of: id) }
    }

    /// Puts a fault into force for the connections that are there. Returns how many it met.
    func apply(_ fault: Fault, number: Int) -> Int {
        let active = ActiveFault(number: number, kind: fault.kind)
        var count = 0
        for (id, watch) in watches.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            guard count < fault.times ?? .max,
                FaultBoard.matches(
                    fault, channelID: watch.channelID, clientID: watch.clientID, connectionID: id.rawValue)
            else { continue }
            count += 1
            prepare([active], for: id)
            if let channel = channelOf[id] {
                if fault.kind.isOfMessages { watchMessages(of: channel) }
                if watch.isAnnounced { begin(active, for: id) }
            }
        }
        return count
    }

    /// The network that all faults of a connection make together: of each direction the last word counts.
    private func updateNetwork(of id: ConnectionID) {
        let good = Fault.NetworkConditions()
        var (up, down) = (good, good)
        for fault in connectionFaults[id] ?? [] {
            switch fault.kind {
            case .network(good, good): (up, down) = (good, good)
            case .network(let upload, let download):
                if upload != good { up = upload }
                if download != good { down = download }
            case .silence(.media): (up, down) = (.dead, .dead)
            default: break
            }
        }
        if impairments[id] != nil {
            impairments[id]?.change(upload: up, download: down)
        } else if up != good || down != good {
            impairments[id] = Impairment(upload: up, download: down, random: random.split())
        }
    }

    /// Takes one fault of all present connections back, or all of them: networks, messages and what is yet to come.
    func endFaults(_ number: Int?) {
        for id in Array(connectionFaults.keys) {
            connectionFaults[id]?.removeAll { number == nil || $0.number == number }
            if impairments[id] != nil { updateNetwork(of: id) }
        }
    }

    func forgetFaults(of id: ConnectionID) {
        impairments.removeValue(forKey: id)
        if connectionFaults.removeValue(forKey: id) != nil { faults.forget(id.rawValue) }
    }

    /// Whether a fault makes the server ignore what this client says.
    func isDeaf(to id: ConnectionID) -> Bool {
        connectionFaults[id]?.contains { $0.kind == .silence(.answer) } ?? false
    }

    /// The answer is in: faults of that stage happen.
    func answered(_ id: ConnectionID) {
        for fault in connectionFaults[id] ?? [] {
            guard case .refuse(.answer, let code, let reason) = fault.kind else { continue }
            later(.zero, id, fault.number) { $0.disconnect(id, code: code, reason: reason, now: $1) }
        }
    }

    /// The connection is up: its timed faults begin.
    func beginFaults(of id: ConnectionID) {
        for fault in connectionFaults[id] ?? [] { begin(fault, for: id) }
    }

    private func begin(_ fault: ActiveFault, for id: ConnectionID) {
        let number = fault.number
        switch fault.kind {
        case .refuse(.media, let code, let reason):
            later(.zero, id, number) { $0.disconnect(id, code: code, reason: reason, now: $1) }
        case .close(let after, let code, let reason):
            later(after, id, number) { $0.disconnect(id, code: code, reason: reason, now: $1) }
        case .reset(let after):
            later(after, id, number) { channel, _ in channel.emit(.resetWebSocket(id)) }
        case .vanish(let after):
            loop.scheduleTimer(at: loop.now + after) { [weak self] in
                self?.assumeIsolated { media in
                    guard media.isInForce(number, for: id) else { return }
                    media.prepare([ActiveFault(number: number, kind: .silence(.media))], for: id)
                }
            }
        case .closeDataChannel(let label, let after):
            later(after, id, number) { channel, now in
                guard let member = channel.members[id], let open = member.openChannel(label) else { return }
                member.peer.closeDataChannel(open.stream, now: now)
                channel.drain(member, now: now)
            }
        case .refuse, .silence, .late, .redirect, .network, .delayMessages, .dropMessages: break
        }
    }

    private func isInForce(_ number: Int, for id: ConnectionID) -> Bool {
        connectionFaults[id]?.contains { $0.number == number } ?? false
    }

    private func later(
        _ delay: Duration, _ id: ConnectionID, _ number: Int, _ body: @escaping @Sendable (Channel, Instant) -> Void
    ) {
        loop.scheduleTimer(at: loop.now + delay) { [weak self] in
            self?.assumeIsolated { media in
                guard let channel = media.channelOf[id], media.isInForce(number, for: id) else { return }
                body(channel, media.loop.now)
                media.flush(channel)
            }
        }
    }

    /// Takes out of the bad networks what has arrived.
    func deliverImpaired(now: Instant) {
        for id in Array(impairments.keys) {
            guard let channel = channelOf[id] else { continue }
            while let datagram = impairments[id]?.receiveDown(now: now) { send(datagram) }
            while let datagram = impairments[id]?.receiveUp(now: now) {
                deliver(datagram, to: id, in: channel, now: now)
            }
            flush(channel)
        }
        scheduleImpaired()
    }
}
