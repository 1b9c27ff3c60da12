import SoraHTTP
import SoraMessages
import SoraNetwork
import SoraWire

/// The server's TCP side: accepts connections, speaks HTTP and WebSocket, decides who may connect, and
/// passes signaling to the event loop where the channel lives.
///
/// An actor pinned to its loop.
actor SignalingFront {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    let configuration: ServerConfiguration
    let settings: ChannelSettings
    let faults: FaultBoard
    private let tls: TLSContext?
    let report: @Sendable (ServerEvent) -> Void
    var random: RandomSource
    var mediaLoops: [MediaLoop] = []
    var counters = FrontCounters()
    let startedAt: Instant
    private var listeners: [TCPListener] = []
    private var connections: [ObjectIdentifier: FrontConnection] = [:]
    private var sessions: [ConnectionID: FrontConnection] = [:]
    private struct WaitingKey: Hashable {
        var address: IPAddress
        var isForAPI: Bool
    }
    /// Sockets that have not sent `connect`, by their address and port.
    private var waiting: [WaitingKey: Int] = [:]
    /// How many of ``connections`` came in at the HTTP API's own port. Both limits count the ports apart: whoever
    /// fills one port leaves the other open.
    private var apiSockets = 0
    /// What is said to sockets beyond a limit, written once.
    private let refusals: (full: [UInt8], waiting: [UInt8])
    private(set) var webhooks: Webhooks?
    private var signalingURL = ""
    private(set) var isStopped = false

    init(
        loop: EventLoop, configuration: ServerConfiguration, settings: ChannelSettings, tls: TLSContext?,
        faults: FaultBoard, random: RandomSource, report: @escaping @Sendable (ServerEvent) -> Void
    ) {
        self.loop = loop
        self.configuration = configuration
        self.settings = settings
        self.tls = tls
        self.faults = faults
        self.random = random
        self.report = report
        refusals = (
            Self.refusal("\(configuration.maximumSockets) sockets are open, which is the limit (maximumSockets)"),
            Self.refusal(
                "\(configuration.maximumWaitingSocketsPerAddress) sockets of your address have not sent connect, which "
                    + "is the limit (maximumWaitingSocketsPerAddress)")
        )
        startedAt = EventLoop.clock()
    }

    /// Starts the media loops, then listens. Returns the ports.
    ///
    /// One visit to this loop does it all when there is but one: a start takes milliseconds on a busy machine too.
    func start(
        host: IPAddress, mediaLoops: [MediaLoop], mediaAddresses: [IPAddress], webhooks locations: Webhooks.Locations
    ) async throws(NetworkError) -> (main: UInt16, api: UInt16?) {
        self.mediaLoops = mediaLoops
        for (index, media) in mediaLoops.enumerated() {
            let first = configuration.mediaPort
            let port = first == 0 ? 0 : first &+ UInt16(clamping: index)
            if media.loop === loop {
                try startHere(media, addresses: mediaAddresses, port: port)
            } else {
                try await media.start(addresses: mediaAddresses, port: port, front: self)
            }
        }
        webhooks = Webhooks(
            locations, on: loop, timeout: configuration.webhookTimeout, version: settings.version)
        let port = try listen(SocketAddress(host, port: configuration.port), isForAPI: false)
        signalingURL = configuration.signalingURL(port: port)
        var apiPort: UInt16?
        if let wanted = configuration.apiPort {
            apiPort = try listen(SocketAddress(host, port: wanted), isForAPI: true)
        }
        return (port, apiPort)
    }

    private func startHere(_ media: MediaLoop, addresses: [IPAddress], port: UInt16) throws(NetworkError) {
        let result = media.assumeIsolated { media -> Result<Void, NetworkError> in
            do throws(NetworkError) {
                return .success(try media.start(addresses: addresses, port: port, front: self))
            } catch {
                return .failure(error)
            }
        }
        try result.get()
    }

    private func listen(_ address: SocketAddress, isForAPI: Bool) throws(NetworkError) -> UInt16 {
        let listener = try TCPListener(on: loop, address: address)
        // Isolated to this actor; `stop()` breaks the circle.
        listener.onConnection = { stream in self.accept(stream, isForAPI: isForAPI) }
        listeners.append(listener)
        return listener.localAddress.port
    }

    func stop() {
        isStopped = true
        for listener in listeners { listener.close() }
        listeners.removeAll()
        for connection in Array(connections.values) { connection.close() }
        connections.removeAll()
        apiSockets = 0
        sessions.removeAll()
        waiting.removeAll()
        webhooks?.stop()
        webhooks = nil
    }

    // MARK: TCP

    private func accept(_ tcp: TCPConnection, isForAPI: Bool) {
        let key = WaitingKey(address: tcp.remoteAddress.ip, isForAPI: isForAPI)
        counters.acceptedSockets += 1
        guard !isStopped else { return tcp.abort() }
        let open = isForAPI ? apiSockets : connections.count - apiSockets
        guard open < configuration.maximumSockets else { return refuse(tcp, refusals.full) }
        guard waiting[key, default: 0] < configuration.maximumWaitingSocketsPerAddress else {
            return refuse(tcp, refusals.waiting)
        }
        let fault = faults.beforeConnect(.tcp)
        if case .refuse = fault {
            tcp.abort()
            return
        }
        var stream: any ByteStream = tcp
        if let tls {
            do {
                stream = try TLSConnection(server: tls, over: tcp, deadline: loop.now + configuration.connectTimeout)
            } catch {
                tcp.abort()
                return
            }
        }
        let connection = FrontConnection(
            stream: stream, tcp: tcp, isForAPI: isForAPI, random: random.split(), loop: loop,
            limits: .init(configuration))
        switch fault {
        case .silence: connection.fault = .silent
        case .late(_, let delay): connection.fault = .late(delay)
        default:
            switch faults.beforeConnect(.http) {
            case .refuse(_, let code, _):
                connection.fault = .refusedUpgrade(status: (400...599).contains(code) ? Int(code) : 503)
            case .silence: connection.fault = .silentUpgrade
            case .late(_, let delay): connection.fault = .lateUpgrade(delay)
            default: break
            }
        }
        connections[ObjectIdentifier(connection)] = connection
        if isForAPI { apiSockets += 1 }
        waiting[key, default: 0] += 1
        // Isolated to this actor; the connection drops the closure when it ends.
        connection.onEvent = { [weak connection] event in
            guard let connection else { return }
            self.handle(event, of: connection)
        }
        connection.start()
    }

    /// Says why, whatever was asked, and closes at once: nothing is read and nothing kept. A TLS client would need a
    /// handshake to hear it; it is reset.
    private func refuse(_ tcp: TCPConnection, _ words: [UInt8]) {
        counters.refusedSockets += 1
        guard tls == nil else { return tcp.abort() }
        tcp.write(words)
        tcp.close()
    }

    private static func refusal(_ text: String) -> [UInt8] {
        HTTPResponse.text(503, text, headers: ["Connection": "close"]).serialized()
    }

    private func handle(_ event: FrontConnection.Event, of connection: FrontConnection) {
        switch event {
        case .request(let request):
            counters.httpRequests += 1
            report(
                ServerEvent(
                    kind: .httpRequest, at: loop.now, channelID: "", connectionID: "",
                    detail: "\(request.head.method) \(request.head.path)"))
            if let response = answerAtOnce(request, isForAPI: connection.isForAPI) {
                connection.respond(to: request, with: response)
                return
            }
            let key = ObjectIdentifier(connection)
            Task {
                let response = await self.answer(request)
                self.connections[key]?.respond(to: request, with: response)
            }
        case .text(let text): handle(text: text, of: connection)
        case .closed(let code):
            if connections.removeValue(forKey: ObjectIdentifier(connection)) != nil, connection.isForAPI {
                apiSockets -= 1
            }
            if !connection.hasConnected { stopsWaiting(connection) }
            if let id = connection.connectionID {
                sessions.removeValue(forKey: id)
                toMedia(connection.mediaLoop) { $0.webSocketClosed(id, code: code) }
            }
        }
    }

    private func stopsWaiting(_ connection: FrontConnection) {
        let key = WaitingKey(address: connection.remoteAddress.ip, isForAPI: connection.isForAPI)
        let count = waiting[key, default: 0] - 1
        waiting[key] = count > 0 ? count : nil
    }

    var openSockets: Int { connections.count }

    /// Entries of each table; for tests of cleanliness.
    var liveObjects: [String: Int] {
        ["sockets": connections.count, "signaling": sessions.count, "waiting addresses": waiting.count]
    }

    // MARK: Signaling

    private func handle(text: String, of connection: FrontConnection) {
        if let id = connection.connectionID {
            toMedia(connection.mediaLoop) { $0.receive(text: text, from: id) }
        } else if !connection.hasConnected {
            handleConnect(text, of: connection)
        }
        // Else `connect` is being judged: nothing that a client says before the offer matters.
    }

    private func handleConnect(_ text: String, of connection: FrontConnection) {
        connection.connectArrived()
        stopsWaiting(connection)
        let connect: ConnectMessage
        do throws(ConnectRejection) {
            let json: JSONValue
            do {
                json = try JSONValue(parsing: text)
            } catch {
                throw ConnectRejection(reason: "INVALID-JSON")
            }
            connect = try ConnectMessage(
                validating: json, dataChannelSignalingDefault: settings.dataChannelSignaling)
        } catch {
            refuse(connection, reason: error.reason, channel: "")
            return
        }
        switch faults.atConnect(channelID: connect.channelID, clientID: connect.clientID) {
        case .refuse(_, let code, let reason):
            return refuse(connection, code: code, reason: reason, channel: connect.channelID)
        case .silence: return
        case .late(_, let delay):
            let key = ObjectIdentifier(connection)
            loop.scheduleTimer(at: loop.now + delay) { [weak self] in
                self?.assumeIsolated { front in
                    guard let connection = front.connections[key] else { return }
                    front.judge(connect, of: connection)
                }
            }
            return
        case .redirect(let location):
            return redirect(connection, to: location ?? signalingURL, channel: connect.channelID)
        default: break
        }
        judge(connect, of: connection)
    }

    /// Decides about a sound `connect`.
    private func judge(_ connect: ConnectMessage, of connection: FrontConnection) {
        if let location = configuration.redirectLocation {
            return redirect(connection, to: location, channel: connect.channelID)
        }
        let id = ConnectionID(SignalingID.generate(using: &random))
        var admission = Admission(connect: connect, id: id, settings: settings)
        do throws(ConnectRejection) {
            try admission.checkToken(configuration, wallClock: settings.wallClock(loop.now))
        } catch {
            return refuse(connection, reason: error.reason, channel: connect.channelID)
        }
        if let webhooks, webhooks.asksForPermission {
            askForPermission(admission, of: connection, webhooks)
        } else {
            admit(connection, admission)
        }
    }

    private func redirect(_ connection: FrontConnection, to location: String, channel: String) {
        report(ServerEvent(kind: .redirected, at: loop.now, channelID: channel, connectionID: "", detail: ""))
        // Native clients open the next socket only when this one ends (1.5).
        connection.send(RedirectMessage(location: location).json.text)
        connection.closeWebSocket(code: SignalingCloseCode.normal, reason: "")
    }

    private func askForPermission(_ admission: Admission, of connection: FrontConnection, _ webhooks: Webhooks) {
        let key = ObjectIdentifier(connection)
        Task {
            let media = self.mediaLoop(for: admission.connect.channelID)
            let counts = await media?.counts(channelID: admission.connect.channelID) ?? ChannelCounts()
            webhooks.askForPermission(admission, counts: counts, now: self.loop.now, settings: self.settings) {
                answer in
                // The client may have gone meanwhile.
                guard let connection = self.connections[key] else { return }
                var admission = admission
                do throws(ConnectRejection) {
                    try admission.apply(webhookAnswer: answer)
                } catch {
                    self.counters.webhookDenials += 1
                    self.refuse(connection, reason: error.reason, channel: admission.connect.channelID)
                    return
                }
                self.counters.webhookPermissions += 1
                self.admit(connection, admission)
            }
        }
    }

    /// The same channel always lives on the same loop.
    func mediaLoop(for channelID: String) -> MediaLoop? {
        guard !mediaLoops.isEmpty else { return nil }
        return mediaLoops[Int(stableHash(channelID) % UInt64(mediaLoops.count))]
    }

    private func admit(_ connection: FrontConnection, _ admission: Admission) {
        guard let media = mediaLoop(for: admission.connect.channelID) else { return }
        let id = admission.id
        connection.connectionID = id
        connection.mediaLoop = media
        sessions[id] = connection
        let active = faults.afterConnect(
            channelID: admission.connect.channelID, clientID: admission.grant.clientID, connectionID: id.rawValue)
        toMedia(media) { $0.join(admission, faults: active) }
    }

    private func refuse(
        _ connection: FrontConnection, code: UInt16 = SignalingCloseCode.signalingError, reason: String,
        channel: String
    ) {
        counters.refusedConnects += 1
        report(ServerEvent(kind: .refused, at: loop.now, channelID: channel, connectionID: "", detail: reason))
        connection.isOver = true
        connection.closeWebSocket(code: code, reason: reason)
    }

    // MARK: From the media loops

    func send(_ text: String, to id: ConnectionID) { sessions[id]?.send(text) }
    func close(_ id: ConnectionID, code: UInt16, reason: String) {
        sessions[id]?.closeWebSocket(code: code, reason: reason)
    }
    func reset(_ id: ConnectionID) { sessions[id]?.reset() }
    /// The connection is over. Its WebSocket, if it still is, has been told to close.
    func forget(_ id: ConnectionID) {
        guard let connection = sessions.removeValue(forKey: id) else { return }
        connection.connectionID = nil
        connection.isOver = true
        connection.closeWebSocket(code: SignalingCloseCode.normal, reason: "")
    }

    func deliver(_ notice: WebhookNotice) {
        webhooks?.deliver(notice, settings: settings, now: loop.now) { answer in
            // Isolated to this actor; `stop()` breaks the circle.
            guard notice.type == "session.created" else { return }
            self.sessionAnswered(answer, channelID: notice.channelID)
        }
    }

    /// A session webhook may set filters and metadata for the whole channel.
    private func sessionAnswered(_ answer: JSONObject, channelID: String) {
        toMedia(mediaLoop(for: channelID)) { $0.sessionAnswered(answer, channelID: channelID) }
    }

    private func toMedia(_ target: MediaLoop?, _ body: @escaping @Sendable (isolated MediaLoop) -> Void) {
        guard let target else { return }
        if target.loop === loop {
            target.assumeIsolated { body($0) }
        } else {
            target.loop.execute { target.assumeIsolated { body($0) } }
        }
    }
}

/// FNV-1a: the same in every run, unlike `Hasher`.
func stableHash(_ text: String) -> UInt64 {
    text.utf8.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x0000_0100_0000_01b3 }
}
