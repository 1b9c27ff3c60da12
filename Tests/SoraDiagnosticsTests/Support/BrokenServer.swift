import SoraHTTP
import SoraNetwork
import SoraWire

/// A server on the loopback interface that does one thing wrong.
actor BrokenServer {
    enum Behaviour: Sendable {
        /// Takes connections and says nothing.
        case silent
        /// Sends this as soon as a connection has sent anything, and ends it.
        case answer(String)
        /// The same, with the key of a WebSocket request answered rightly in place of `{accept}`; stays open.
        case handshake(String)
        /// A WebSocket; does this at the first message.
        case webSocket([WebSocketAction])
        /// An HTTP proxy that lets everything through, to this port.
        case proxy(to: UInt16)
    }
    enum WebSocketAction: Sendable {
        /// `{port}` stands for the server's own port.
        case text(String)
        case close(UInt16, String)
    }

    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private let behaviour: Behaviour
    private let tls: TLSServerConfiguration?
    private var listener: TCPListener?
    private var streams: [any ByteStream] = []
    /// What the connections sent, in pieces as they came.
    private(set) var received: [[UInt8]] = []
    private(set) var port: UInt16 = 0

    static func start(_ behaviour: Behaviour, identity: TLSIdentity? = nil) async throws -> BrokenServer {
        let server = BrokenServer(
            loop: try EventLoop(name: "broken-server"), behaviour,
            tls: identity.map { TLSServerConfiguration(identity: $0) })
        try await server.listen()
        return server
    }

    private init(loop: EventLoop, _ behaviour: Behaviour, tls: TLSServerConfiguration?) {
        self.loop = loop
        self.behaviour = behaviour
        self.tls = tls
    }

    private func listen() throws {
        let listener = try TCPListener(on: loop, address: SocketAddress(.loopbackV4, port: 0))
        port = listener.localAddress.port
        listener.onConnection = { self.accept($0) }
        self.listener = listener
    }

    func stop() {
        listener?.close()
        listener = nil
        for stream in streams {
            stream.onEvent = nil
            stream.close()
        }
        streams = []
        loop.stop()
    }

    private func accept(_ connection: TCPConnection) {
        guard let tls else { return serve(connection) }
        guard let context = try? TLSContext(server: tls),
            let stream = try? TLSConnection(server: context, over: connection)
        else { return connection.close() }
        serve(stream)
    }

    private func serve(_ stream: any ByteStream) {
        streams.append(stream)
        switch behaviour {
        case .silent: stream.onEvent = { _ in }
        case .answer(let text): serve(stream, text, closes: true)
        case .handshake(let text): serve(stream, text, closes: false)
        case .webSocket(let actions):
            let session = WebSocketSession(stream, actions: actions, port: port)
            stream.onEvent = { session.handle($0) }
        case .proxy(let port): serveProxy(stream, to: port)
        }
    }

    private func serve(_ stream: any ByteStream, _ text: String, closes: Bool) {
        stream.onEvent = { event in
            guard case .data(let bytes) = event else { return }
            self.received.append(bytes)
            let request = String(decoding: bytes, as: UTF8.self)
            let key = request.split(separator: "\r\n").first { $0.hasPrefix("Sec-WebSocket-Key: ") }?.dropFirst(19)
            let accept = WebSocketHandshake.acceptValue(for: String(key ?? ""))
            stream.write(Array(text.replacing("{accept}", with: accept).utf8))
            if closes { stream.finish() }
        }
    }

    private func serveProxy(_ stream: any ByteStream, to port: UInt16) {
        stream.onEvent = { event in
            guard case .data(let bytes) = event else { return }
            self.received.append(bytes)
            stream.onEvent = nil
            self.connect(stream, to: port)
        }
    }

    private func connect(_ stream: any ByteStream, to port: UInt16) {
        guard let far = try? TCPConnection(on: loop, to: SocketAddress(.loopbackV4, port: port)) else { return }
        streams.append(far)
        far.onEvent = { event in
            switch event {
            case .opened:
                stream.write(Array("HTTP/1.1 200 Connection established\r\n\r\n".utf8))
                stream.onEvent = { if case .data(let bytes) = $0 { far.write(bytes) } else { far.finish() } }
            case .data(let bytes): stream.write(bytes)
            case .ended, .closed: stream.finish()
            case .writable: break
            }
        }
    }
}

/// The server's end of one WebSocket.
private final class WebSocketSession {
    private let stream: any ByteStream
    private let actions: [BrokenServer.WebSocketAction]
    private let port: UInt16
    private var collector = HTTPCollector(.request)
    private var socket: WebSocketConnection?

    init(_ stream: any ByteStream, actions: [BrokenServer.WebSocketAction], port: UInt16) {
        self.stream = stream
        self.actions = actions
        self.port = port
    }

    func handle(_ event: StreamEvent) {
        guard case .data(let bytes) = event else { return }
        guard socket == nil else {
            socket?.handle(bytes, now: stream.loop.now)
            return drain()
        }
        collector.receive(bytes)
        guard case .request(let request)? = try? collector.next(),
            let response = try? WebSocketHandshake.respond(to: request.head)
        else { return }
        stream.write(response.serialized())
        socket = WebSocketConnection(role: .server, random: .system)
        socket?.handle(collector.takeRest(), now: stream.loop.now)
        drain()
    }

    private func drain() {
        while let output = socket?.poll() {
            switch output {
            case .transmit(let bytes): stream.write(bytes)
            case .text: act()
            case .closeStream: stream.finish()
            case .binary, .ping, .pong, .closed: break
            }
        }
    }

    private func act() {
        for action in actions {
            switch action {
            case .text(let text): try? socket?.send(text: text.replacing("{port}", with: String(port)))
            case .close(let code, let reason): try? socket?.close(code: code, reason: reason, now: stream.loop.now)
            }
        }
    }
}

/// A UDP port that takes everything and answers with what `respond` makes of it; nil: nothing.
actor DatagramSink {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private var socket: UDPSocket?
    private let respond: @Sendable ([UInt8]) -> [UInt8]?
    private(set) var port: UInt16 = 0

    static func start(respond: @escaping @Sendable ([UInt8]) -> [UInt8]? = { _ in nil }) async throws -> DatagramSink {
        let sink = DatagramSink(loop: try EventLoop(name: "datagram-sink"), respond)
        try await sink.open()
        return sink
    }

    private init(loop: EventLoop, _ respond: @escaping @Sendable ([UInt8]) -> [UInt8]?) {
        self.loop = loop
        self.respond = respond
    }

    private func open() throws {
        let socket = try UDPSocket(on: loop, id: SocketID(0), address: SocketAddress(.loopbackV4, port: 0))
        port = socket.localAddress.port
        socket.onDatagrams = { batch in
            for datagram in batch {
                guard let answer = self.respond(datagram.payload) else { continue }
                self.socket?.send(Datagram(socket: SocketID(0), remote: datagram.remote, payload: answer))
            }
        }
        self.socket = socket
    }

    func stop() {
        socket?.close()
        socket = nil
        loop.stop()
    }
}
