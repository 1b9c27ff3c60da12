import SoraHTTP
import SoraMessages
import SoraNetwork
import SoraWire

/// The server's TCP side: accepts connections, speaks HTTP and WebSocket, and passes signaling to the
/// event loop where the channel lives.
///
/// An actor pinned to its loop.
actor SignalingFront {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    private let configuration: ServerConfiguration
    private let settings: ChannelSettings
    private let report: @Sendable (ServerEvent) -> Void
    private var random: RandomSource
    private var mediaLoops: [MediaLoop] = []
    private var listener: TCPListener?
    private var connections: [ObjectIdentifier: FrontConnection] = [:]
    private var sessions: [ConnectionID: FrontConnection] = [:]
    private var isStopped = false

    init(
        loop: EventLoop, configuration: ServerConfiguration, settings: ChannelSettings, random: RandomSource,
        report: @escaping @Sendable (ServerEvent) -> Void
    ) {
        self.loop = loop
        self.configuration = configuration
        self.settings = settings
        self.random = random
        self.report = report
    }

    /// Listens. Returns the port.
    func start(address: SocketAddress, mediaLoops: [MediaLoop]) throws(NetworkError) -> UInt16 {
        self.mediaLoops = mediaLoops
        let listener = try TCPListener(on: loop, address: address)
        // Isolated to this actor; `stop()` breaks the circle.
        listener.onConnection = { stream in self.accept(stream) }
        self.listener = listener
        return listener.localAddress.port
    }

    func stop() {
        isStopped = true
        listener?.onConnection = nil
        listener?.close()
        listener = nil
        for connection in Array(connections.values) { connection.close() }
        connections.removeAll()
        sessions.removeAll()
    }

    // MARK: TCP

    private func accept(_ stream: TCPConnection) {
        guard !isStopped, connections.count < configuration.maximumSockets else {
            stream.close()
            return
        }
        let connection = FrontConnection(stream: stream, random: random.split(), loop: loop, limits: configuration)
        connections[ObjectIdentifier(connection)] = connection
        // Isolated to this actor; the connection drops the closure when it ends.
        connection.onEvent = { [weak connection] event in
            guard let connection else { return }
            self.handle(event, of: connection)
        }
        connection.start()
    }

    private func handle(_ event: FrontConnection.Event, of connection: FrontConnection) {
        switch event {
        case .request(let request):
            report(
                ServerEvent(
                    kind: .httpRequest, at: loop.now, channelID: "", connectionID: "",
                    detail: "\(request.head.method) \(request.head.path)"))
            connection.respond(to: request, with: answer(request))
        case .text(let text): handle(text: text, of: connection)
        case .closed(let code):
            connections.removeValue(forKey: ObjectIdentifier(connection))
            if let id = connection.connectionID {
                sessions.removeValue(forKey: id)
                toMedia(connection.mediaLoop) { $0.webSocketClosed(id, code: code) }
            }
        }
    }

    private func answer(_ request: HTTPRequest) -> HTTPResponse {
        switch (request.head.method, request.head.path) {
        case ("GET", "/"), ("HEAD", "/"):
            HTTPResponse(
                status: 200, type: "text/plain; charset=utf-8",
                body: Array("A local Sora server. Signaling is at /signaling.\n".utf8))
        default:
            HTTPResponse(status: 404, type: "text/plain; charset=utf-8", body: Array("not found\n".utf8))
        }
    }

    // MARK: Signaling

    private func handle(text: String, of connection: FrontConnection) {
        if let id = connection.connectionID {
            toMedia(connection.mediaLoop) { $0.receive(text: text, from: id) }
        } else {
            handleConnect(text, of: connection)
        }
    }

    private func handleConnect(_ text: String, of connection: FrontConnection) {
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
        if let location = configuration.redirectLocation {
            report(
                ServerEvent(
                    kind: .redirected, at: loop.now, channelID: connect.channelID, connectionID: "", detail: ""))
            // Native clients open the next socket only when this one ends (1.5).
            connection.send(RedirectMessage(location: location).json.text)
            connection.closeWebSocket(code: SignalingCloseCode.normal, reason: "")
            return
        }
        let id = ConnectionID(SignalingID.generate(using: &random))
        let grant = ConnectionGrant(connect, connectionID: id, settings: settings)
        admit(connection, id: id, connect: connect, grant: grant)
    }

    private func admit(
        _ connection: FrontConnection, id: ConnectionID, connect: ConnectMessage, grant: ConnectionGrant
    ) {
        // The same channel always lives on the same loop.
        let index = Int(stableHash(connect.channelID) % UInt64(max(mediaLoops.count, 1)))
        guard index < mediaLoops.count else { return }
        connection.connectionID = id
        connection.mediaLoop = mediaLoops[index]
        connection.connectArrived()
        sessions[id] = connection
        toMedia(connection.mediaLoop) { $0.join(id, connect: connect, grant: grant) }
    }

    private func refuse(_ connection: FrontConnection, reason: String, channel: String) {
        report(ServerEvent(kind: .refused, at: loop.now, channelID: channel, connectionID: "", detail: reason))
        connection.closeWebSocket(code: SignalingCloseCode.signalingError, reason: reason)
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
