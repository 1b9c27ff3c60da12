import SoraMessages
import SoraNetwork
import SoraPeer
import SoraWire

// Faults of connections that have been admitted.

extension MediaLoop {
    /// Takes note of a new connection's faults, before it gets its offer.
    func prepare(_ kinds: [Fault.Kind], for id: ConnectionID) {
        guard !kinds.isEmpty else { return }
        connectionFaults[id] = kinds
        let messages = kinds.filter(\.isOfMessages)
        if !messages.isEmpty { faults.setMessageFaults(messages, of: id.rawValue) }
        for kind in kinds {
            switch kind {
            case .network(let upload, let download): impair(id, upload: upload, download: download)
            case .silence(.media): impair(id, upload: .dead, download: .dead)
            default: break
            }
        }
    }

    /// Puts a fault into force for the connections that are there. Returns how many it met.
    func apply(_ fault: Fault) -> Int {
        var count = 0
        for (id, watch) in watches.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            guard count < fault.times ?? .max,
                FaultBoard.matches(
                    fault, channelID: watch.channelID, clientID: watch.clientID, connectionID: id.rawValue)
            else { continue }
            count += 1
            prepare([fault.kind], for: id)
            if let channel = channelOf[id] {
                if fault.kind.isOfMessages { watchMessages(of: channel) }
                if watch.isAnnounced { begin(fault.kind, for: id, in: channel) }
            }
        }
        return count
    }

    private func impair(_ id: ConnectionID, upload: Fault.NetworkConditions, download: Fault.NetworkConditions) {
        if impairments[id] != nil {
            impairments[id]?.change(upload: upload, download: download)
        } else {
            impairments[id] = Impairment(upload: upload, download: download, random: random.split())
        }
    }

    /// Takes networks and delays of existing connections back.
    func endFaults() {
        for id in Array(impairments.keys) { impairments[id]?.change(upload: .init(), download: .init()) }
        connectionFaults.removeAll()
    }

    func forgetFaults(of id: ConnectionID) {
        impairments.removeValue(forKey: id)
        if connectionFaults.removeValue(forKey: id) != nil { faults.forget(id.rawValue) }
    }

    /// Whether a fault makes the server ignore this message.
    func isDeaf(_ id: ConnectionID, to text: String) -> Bool {
        connectionFaults[id]?.contains(.silence(.answer)) ?? false
    }

    /// The answer is in: faults of that stage happen.
    func answered(_ id: ConnectionID, in channel: Channel) {
        for case .refuse(.answer, let code, let reason) in connectionFaults[id] ?? [] {
            later(.zero, id) { $0.disconnect(id, code: code, reason: reason, now: $1) }
        }
    }

    /// The connection is up: its timed faults begin.
    func beginFaults(of id: ConnectionID, in channel: Channel) {
        for kind in connectionFaults[id] ?? [] { begin(kind, for: id, in: channel) }
    }

    private func begin(_ kind: Fault.Kind, for id: ConnectionID, in channel: Channel) {
        switch kind {
        case .refuse(.media, let code, let reason):
            later(.zero, id) { $0.disconnect(id, code: code, reason: reason, now: $1) }
        case .close(let after, let code, let reason):
            later(after, id) { $0.disconnect(id, code: code, reason: reason, now: $1) }
        case .reset(let after):
            later(after, id) { channel, _ in channel.emit(.resetWebSocket(id)) }
        case .vanish(let after):
            loop.scheduleTimer(at: loop.now + after) { [weak self] in
                self?.assumeIsolated { media in
                    guard media.watches[id] != nil else { return }
                    media.impair(id, upload: .dead, download: .dead)
                }
            }
        case .closeDataChannel(let label, let after):
            later(after, id) { channel, now in
                guard let member = channel.members[id], let open = member.openChannel(label) else { return }
                member.peer.closeDataChannel(open.stream, now: now)
                channel.drain(member, now: now)
            }
        case .refuse, .silence, .redirect, .network, .delayMessages, .dropMessages: break
        }
    }

    private func later(_ delay: Duration, _ id: ConnectionID, _ body: @escaping @Sendable (Channel, Instant) -> Void) {
        loop.scheduleTimer(at: loop.now + delay) { [weak self] in
            self?.assumeIsolated { media in
                guard let channel = media.channelOf[id] else { return }
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
                channel.handle(datagram, for: id, now: now)
            }
            flush(channel)
        }
        scheduleImpaired()
    }
}
