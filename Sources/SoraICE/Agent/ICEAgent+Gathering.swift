import SoraWire

// Servers: all tried side by side, in the background, each with its own schedule and end (ICE10).
extension ICEAgent {
    static let attemptLimit = 32
    /// How long the first address of a server is waited for before the next is tried beside it.
    static let addressDelay = Duration.milliseconds(700)
    static let lookupTimeout = Duration.seconds(10)

    /// Starts what has not been started: look-ups of servers' names, requests from each local socket, and connections.
    /// Called by itself whenever a socket is added; to be called by drivers that have no UDP socket at all.
    package func gather(now: Instant) {
        guard configuration.mode == .full, state != .closed, state != .failed else { return }
        defer { finish(now) }
        isGathering = true
        for index in configuration.servers.indices {
            if serverAddresses[index] == nil { lookUp(index, now: now) }
            startAttempts(index, now: now)
        }
    }

    private func lookUp(_ index: Int, now: Instant) {
        let host = configuration.servers[index].uri.host
        if let ip = IPAddress(host) {
            serverAddresses[index] = [ip]
        } else if !lookups.values.contains(where: { $0.serverIndex == index }) {
            nextNameToken += 1
            lookups[nextNameToken] = ICEServerLookup(serverIndex: index, startedAt: now)
            emit(.resolve(name: host, token: nextNameToken))
        }
    }

    /// True if the token belonged to a server's name.
    func noteLookup(_ token: Int, _ addresses: [IPAddress], now: Instant) -> Bool {
        guard let lookup = lookups.removeValue(forKey: token) else { return false }
        serverAddresses[lookup.serverIndex] = Array(addresses.prefix(8))
        if addresses.isEmpty {
            var attempt = makeAttempt(lookup.serverIndex, address: nil, socket: nil, now: lookup.startedAt)
            attempt.finish(.failed(reason: "the name has no address"), now: now)
            attempts.append(attempt)
            serverAddresses[lookup.serverIndex] = nil
        } else {
            attempts.removeAll { $0.serverIndex == lookup.serverIndex && $0.report.address == nil }
            startAttempts(lookup.serverIndex, now: now)
        }
        return true
    }

    private func makeAttempt(_ index: Int, address: SocketAddress?, socket: LocalSocket?, now: Instant)
        -> ICEServerAttempt
    {
        nextAttemptID += 1
        let uri = configuration.servers[index].uri
        let report = ICEServerReport(
            server: uri, address: address, localAddress: socket?.address,
            status: uri.transport.isStream ? .connecting : .requesting, startedAt: now)
        return ICEServerAttempt(
            id: nextAttemptID, serverIndex: index, address: address ?? SocketAddress(.anyV4, port: 0),
            socket: socket?.id,
            report: report)
    }

    private func startAttempts(_ index: Int, now: Instant) {
        let server = configuration.servers[index]
        guard let addresses = serverAddresses[index], server.uri.isTURN || configuration.transportPolicy == .all else {
            return
        }
        if server.uri.transport.isStream {
            guard
                !attempts.contains(where: {
                    $0.serverIndex == index && ($0.isRunning || $0.report.status == .succeeded)
                })
            else { return }
            // The network has changed: what was lost is tried again at once.
            for lost in attempts.indices where attempts[lost].serverIndex == index && attempts[lost].retryAt != nil {
                attempts[lost].retryAt = now
            }
            attempts.removeAll { $0.serverIndex == index && $0.retryAt == nil }
            guard !attempts.contains(where: { $0.serverIndex == index }), let first = addresses.first else { return }
            startStreamAttempt(index, SocketAddress(first, port: server.uri.port), now: now)
            return
        }
        for socket in sockets {
            guard attempts.count < ICEAgent.attemptLimit,
                let ip = addresses.first(where: { ICEAgent.canPair(socket.address.ip, $0) })
            else { continue }
            let address = SocketAddress(ip, port: server.uri.port)
            let isKnown = attempts.contains {
                $0.socket == socket.id
                    && ($0.serverIndex == index || $0.address == address && $0.allocation != nil && server.uri.isTURN)
            }
            if isKnown { continue }
            startDatagramAttempt(index, address, socket, now: now)
        }
    }

    private func startDatagramAttempt(_ index: Int, _ address: SocketAddress, _ socket: LocalSocket, now: Instant) {
        guard attempts.count < ICEAgent.attemptLimit else { return }
        let server = configuration.servers[index]
        var attempt = makeAttempt(index, address: address, socket: socket, now: now)
        attempt.nextAddressAt = nextAddress(after: attempt) == nil ? nil : now + ICEAgent.addressDelay
        if server.uri.isTURN { attempt.allocation = makeAllocation(server) }
        attempts.append(attempt)
        if server.uri.isTURN {
            attempt.allocation?.start(now: now)
            drain(attempt.id, now: now)
        } else {
            discover(attempt.id, now: now)
        }
    }

    private func startStreamAttempt(_ index: Int, _ address: SocketAddress, now: Instant) {
        guard attempts.count < ICEAgent.attemptLimit else { return }
        let server = configuration.servers[index]
        var attempt = makeAttempt(index, address: address, socket: nil, now: now)
        guard server.uri.isTURN else {
            attempt.finish(.failed(reason: "a STUN server over a connection shows no UDP address; use stun:"), now: now)
            attempts.append(attempt)
            return
        }
        attempt.nextAddressAt = nextAddress(after: attempt) == nil ? nil : now + ICEAgent.addressDelay
        attempt.allocation = makeAllocation(server)
        attempts.append(attempt)
        openStream(attempt.id)
    }

    /// The address of the same server that comes after the attempt's and can be reached from the same place.
    private func nextAddress(after attempt: ICEServerAttempt) -> SocketAddress? {
        guard let addresses = serverAddresses[attempt.serverIndex],
            let position = addresses.firstIndex(of: attempt.address.ip)
        else { return nil }
        let own = sockets.first { $0.id == attempt.socket }?.address.ip
        return addresses[(position + 1)...].first { ip in own.map { ICEAgent.canPair($0, ip) } ?? true }
            .map { SocketAddress($0, port: attempt.report.server.port) }
    }

    /// A name with several addresses: the next is tried when one failed, and beside one that is slow (ICE10).
    func tryNextAddress(after id: Int, now: Instant) {
        guard let index = attempts.firstIndex(where: { $0.id == id }), attempts[index].nextAddressAt != nil else {
            return
        }
        attempts[index].nextAddressAt = nil
        let attempt = attempts[index]
        guard let address = nextAddress(after: attempt) else { return }
        if attempt.report.server.transport.isStream {
            startStreamAttempt(attempt.serverIndex, address, now: now)
        } else if let socket = sockets.first(where: { $0.id == attempt.socket }) {
            startDatagramAttempt(attempt.serverIndex, address, socket, now: now)
        }
    }

    func makeAllocation(_ server: ICEServer) -> TURNAllocation {
        TURNAllocation(
            username: server.username, credential: server.credential, isStream: server.uri.transport.isStream,
            random: random.split())
    }

    func openStream(_ id: Int) {
        guard let index = attempts.firstIndex(where: { $0.id == id }) else { return }
        nextStreamID += 1
        let stream = ICEStreamID(nextStreamID)
        attempts[index].stream = stream
        attempts[index].framer = StreamFramer(.turn)
        attempts[index].report.status = .connecting
        let uri = attempts[index].report.server
        emit(
            .openStream(
                ICEStreamRequest(
                    id: stream, address: attempts[index].address, tlsServerName: uri.transport == .tls ? uri.host : nil)
            ))
    }
}
