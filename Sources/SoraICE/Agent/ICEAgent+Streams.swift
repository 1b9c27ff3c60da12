import SoraWire

/// A TCP connection to a passive candidate of the peer (RFC 6544).
struct ICETCPConnection {
    var remote: ICECandidate
    var address: SocketAddress
    var framer = StreamFramer(.lengthPrefixed)
    var local: ICECandidate?
}

// Connections: to TURN servers, and to TCP candidates of the peer.
extension ICEAgent {
    private static let connectionLimit = 8

    /// What happened to a connection that ``Output/openStream(_:)`` asked for. Returns application data, unwrapped.
    package func handleStream(_ id: ICEStreamID, _ event: ICEStreamEvent, now: Instant) -> [[UInt8]] {
        guard state != .closed else { return [] }
        if let attempt = attempts.first(where: { $0.stream == id }) { return handle(event, of: attempt.id, now: now) }
        guard connections[id] != nil else { return [] }
        return handle(event, ofConnection: id, now: now)
    }

    private func handle(_ event: ICEStreamEvent, of id: Int, now: Instant) -> [[UInt8]] {
        guard let index = attempts.firstIndex(where: { $0.id == id }) else { return [] }
        switch event {
        case .connected(let local):
            attempts[index].report.localAddress = local
            attempts[index].report.status = .requesting
            attempts[index].allocation?.start(now: now)
            drain(id, now: now)
            finish(now)
            return []
        case .closed(let reason):
            attempts[index].stream = nil
            endAttempt(id, reason, now: now)
            return []
        case .data(let bytes):
            attempts[index].framer.append(bytes)
            return receiveFrames(of: id, now: now)
        }
    }

    private func receiveFrames(of id: Int, now: Instant) -> [[UInt8]] {
        var data: [[UInt8]] = []
        while let index = attempts.firstIndex(where: { $0.id == id }), attempts[index].stream != nil {
            let packet: [UInt8]?
            do throws(StreamFramer.OutOfStep) {
                packet = try attempts[index].framer.next()
            } catch {
                // ICE18
                endAttempt(id, "the connection to the TURN server is out of step", now: now)
                return data
            }
            guard let packet else { break }
            let isChannelData = TURNChannelData.isChannelData(packet)
            let delivery = attempts[index].allocation?.receive(packet, now: now)
            if !isChannelData {
                drain(id, now: now)
                finish(now)
            }
            if let delivery, let payload = receive(delivery.payload, on: .relay(id), from: delivery.peer, now: now) {
                data.append(payload)
            }
        }
        return data
    }

    private func endAttempt(_ id: Int, _ reason: String, now: Instant) {
        attempts.first { $0.id == id }?.allocation?.abandon()
        noteEnded(id, reason, now: now)
        finish(now)
    }

    // MARK: TCP candidates

    /// Opens a connection to a passive candidate.
    func connect(to candidate: ICECandidate, at address: SocketAddress) {
        guard configuration.usesTCPCandidates, configuration.mode == .full, configuration.transportPolicy == .all,
            candidate.tcpType == .passive, connections.count < ICEAgent.connectionLimit,
            !connections.values.contains(where: { $0.address == address }),
            sockets.contains(where: { ICEAgent.canPair($0.address.ip, address.ip) })
        else { return }
        nextStreamID += 1
        connections[ICEStreamID(nextStreamID)] = ICETCPConnection(remote: candidate, address: address)
        emit(.openStream(ICEStreamRequest(id: ICEStreamID(nextStreamID), address: address)))
    }

    private func handle(_ event: ICEStreamEvent, ofConnection id: ICEStreamID, now: Instant) -> [[UInt8]] {
        defer { finish(now) }
        switch event {
        case .connected(let local):
            guard let connection = connections[id] else { return [] }
            let candidate = tcpCandidate(at: local.ip)
            connections[id]?.local = candidate
            addPair(
                path: .stream(id.rawValue), local: candidate, remote: connection.remote, address: connection.address)
            return []
        case .closed:
            dropConnection(id, now: now)
            return []
        case .data(let bytes):
            connections[id]?.framer.append(bytes)
            var data: [[UInt8]] = []
            while let address = connections[id]?.address, let packet = try? connections[id]?.framer.next() {
                if let payload = receive(packet, on: .stream(id.rawValue), from: address, now: now) {
                    data.append(payload)
                }
            }
            return data
        }
    }

    private func dropConnection(_ id: ICEStreamID, now: Instant) {
        connections[id] = nil
        removePairs(now: now) { $0.path == .stream(id.rawValue) }
    }

    /// The active candidate of an address: port 9 stands for any (RFC 6544, 4.1).
    func tcpCandidate(at ip: IPAddress) -> ICECandidate {
        let rank = sockets.firstIndex { $0.address.ip == ip } ?? 0
        return ICECandidate(
            foundation: ICECandidate.foundation(type: .host, base: ip, transport: .tcp), transport: .tcp,
            priority: ICECandidate.priority(type: .host, rank: rank * 4, transport: .tcp),
            address: .ip(SocketAddress(ip, port: 9)), type: .host, tcpType: .active)
    }

    func closeConnections() {
        for id in connections.keys.sorted(by: { $0.rawValue < $1.rawValue }) { emit(.closeStream(id)) }
        connections = [:]
    }
}
