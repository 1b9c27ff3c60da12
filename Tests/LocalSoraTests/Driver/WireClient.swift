import LocalSora
import SoraHTTP
import SoraMessages
import SoraNetwork
import SoraPeer
import SoraWire
import Testing

/// A client on real sockets: TCP or TLS, then HTTP or WebSocket, and for whole connections a
/// ``SimulatedClient`` with a UDP socket. Owns an event loop, which ``close()`` stops.
actor WireClient {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    enum Failure: Error { case dial(String), handshake(String) }

    private(set) var texts: [String] = []
    /// Code and reason of the server's close frame; 1006 without one.
    private(set) var closure: (code: UInt16, reason: String)?
    /// The stream is gone.
    private(set) var isGone = false
    private(set) var received: [UInt8] = []
    private(set) var peer: SimulatedClient?
    /// See ``SimulatedClient/isStrict``.
    private let isStrict: Bool
    private var validator = ServerMessageValidator()
    /// Where `redirect` messages pointed to.
    private(set) var redirects: [String] = []

    private var source: MediaSource?
    private var stream: (any ByteStream)?
    private var handshake: WebSocketClientHandshake?
    private var webSocket: WebSocketConnection?
    private var random = RandomSource.system
    private var udp: UDPSocket?
    private var timer: LoopTimer?
    private struct Waiter {
        var check: (isolated WireClient) -> Bool
        var timer: LoopTimer
        var continuation: CheckedContinuation<Bool, Never>
    }
    private var waiters: [Int: Waiter] = [:]
    private var waits = 0
    private var onHandshake: ((Result<Void, Failure>) -> Void)?

    init(isStrict: Bool = true) throws {
        self.isStrict = isStrict
        loop = try EventLoop(name: "wire-client")
    }

    nonisolated func close() { loop.stop() }

    // MARK: Opening

    /// Opens TCP, or TLS if `certificate` (PEM) is given, and takes raw bytes into ``received``.
    func dial(port: UInt16, host: String = "127.0.0.1", certificate: String? = nil) async throws {
        var target = StreamDialer.Target(host: host, port: port)
        if let certificate {
            let bundle = try CertificateBundle(pem: certificate)
            target.tls = try TLSContext(client: TLSClientConfiguration(trust: .authorities(bundle)))
        }
        let _: Void = try await withCheckedThrowingContinuation { continuation in
            StreamDialer(target, on: loop, deadline: loop.now + .seconds(30)) { result in
                switch result {
                case .success(let stream):
                    self.stream = stream
                    stream.onEvent = { event in self.handle(event) }
                    continuation.resume()
                case .failure(let failure): continuation.resume(throwing: Failure.dial("\(failure)"))
                }
            }
        }
    }

    func write(_ text: String) { stream?.write(Array(text.utf8)) }
    func write(bytes: [UInt8]) { stream?.write(bytes) }
    func endWriting() { stream?.finish() }
    func stopReading() { stream?.isReadingPaused = true }
    func hangUp() { stream?.close() }

    /// Opens a WebSocket at a `ws` or `wss` URL.
    func open(_ url: String, certificate: String? = nil) async throws {
        guard let location = HTTPLocation(url) else { throw Failure.dial("not a URL: \(url)") }
        try await dial(port: location.port, host: location.host, certificate: certificate)
        guard !isGone else { throw Failure.handshake("the server closed the connection") }
        let handshake = WebSocketClientHandshake(to: location, random: &random)
        self.handshake = handshake
        let _: Void = try await withCheckedThrowingContinuation { continuation in
            onHandshake = { continuation.resume(with: $0) }
            stream?.write(handshake.request)
        }
    }

    /// Opens a WebSocket, sends `connect`, and goes on by itself: answers offers, follows redirects.
    func join(_ url: String, _ connect: ConnectMessage, certificate: String? = nil, host: IPAddress = .loopbackV4)
        async throws
    {
        let socket = try UDPSocket(on: loop, id: SocketID(0), address: SocketAddress(host, port: 0))
        let seed = random.next()
        let client = SimulatedClient(
            id: ConnectionID("C\(seed)"), address: socket.localAddress, connect: connect, videoCodecs: ["VP8"],
            seed: seed, now: loop.now)
        client?.isStrict = isStrict
        client?.transportsAreOrdered = false
        udp = socket
        peer = client
        socket.onDatagrams = { batch in
            for datagram in batch { client?.peer.handle(datagram, now: self.loop.now) }
            self.drain()
        }
        // A timer that is not set keeps its handler, beyond the end of the loop too.
        timer = LoopTimer(on: loop) { [weak self] in
            self?.assumeIsolated { $0.handleTimeout() }
        }
        try await open(url, certificate: certificate)
        send(connect.json.text)
    }

    private func handleTimeout() {
        peer?.peer.handleTimeout(now: loop.now)
        drain()
    }

    func send(_ text: String) {
        try? webSocket?.send(text: text)
        drain()
    }

    /// Sends a close frame.
    func closeWebSocket(code: UInt16? = 1000) {
        try? webSocket?.close(code: code, now: loop.now)
        drain()
    }

    func withPeer<Result: Sendable>(_ body: (SimulatedClient, Instant) -> Result) -> Result? {
        guard let peer else { return nil }
        defer { drain() }
        return body(peer, loop.now)
    }

    /// Sends frames and sound, as many as wanted, at once.
    func play(_ frames: Int) {
        guard let peer else { return }
        let source = source ?? MediaSource(peer)
        self.source = source
        for _ in 0..<frames { source.tick(now: loop.now) }
        drain()
    }

    // MARK: Events

    private func handle(_ event: StreamEvent) {
        switch event {
        case .opened, .writable: break
        case .data(let bytes): receive(bytes)
        case .ended:
            webSocket?.handleEnd(now: loop.now)
            stream?.close()
            gone()
        case .closed:
            webSocket?.handleEnd(now: loop.now)
            gone()
        }
        drain()
    }

    private func gone() {
        isGone = true
        if var waiting = handshake {
            handshake = nil
            endHandshake(.failure(.handshake("\(waiting.receiveEnd())")))
        }
    }

    private func endHandshake(_ result: Result<Void, Failure>) {
        let done = onHandshake
        onHandshake = nil
        done?(result)
    }

    private func receive(_ bytes: [UInt8]) {
        if webSocket != nil {
            webSocket?.handle(bytes, now: loop.now)
            return
        }
        received += bytes
        guard handshake != nil else { return }
        do {
            guard let rest = try handshake?.receive(bytes) else { return }
            handshake = nil
            webSocket = WebSocketConnection(role: .client, random: random.split())
            endHandshake(.success(()))
            if !rest.isEmpty { webSocket?.handle(rest, now: loop.now) }
        } catch {
            handshake = nil
            endHandshake(.failure(.handshake("\(error)")))
        }
    }

    private func drain() {
        while let output = webSocket?.poll() {
            switch output {
            case .transmit(let bytes): stream?.write(bytes)
            case .text(let text):
                texts.append(text)
                if isStrict, peer == nil {
                    for fault in validator.faults(Array(text.utf8), label: nil) {
                        Issue.record("a client got what no server sends: \(fault)")
                    }
                }
                peer?.receive(text: text, now: loop.now)
            case .closed(let end):
                closure = (end.code, end.reason)
                peer?.webSocketClosed(code: end.code, reason: end.reason)
            case .closeStream: stream?.finishAndClose(by: loop.now + .seconds(1))
            case .binary, .ping, .pong: break
            }
        }
        if let peer {
            for datagram in peer.drain(now: loop.now) { udp?.send(datagram) }
            for text in peer.takeOutgoing() { try? webSocket?.send(text: text) }
            while case .transmit(let bytes)? = webSocket?.poll() { stream?.write(bytes) }
            timer?.schedule(at: peer.peer.nextTimeout)
        }
        for (number, waiter) in waiters where waiter.check(self) {
            waiters[number] = nil
            // One that stays set would hold the client.
            waiter.timer.cancel()
            waiter.continuation.resume(returning: true)
        }
    }

    // MARK: Waiting

    /// Waits until `condition` holds, looking after each event; false after `limit`.
    func wait(_ limit: Duration = .seconds(30), until condition: @escaping @Sendable (isolated WireClient) -> Bool)
        async -> Bool
    {
        if condition(self) { return true }
        waits += 1
        let number = waits
        return await withCheckedContinuation { continuation in
            let timer = loop.scheduleTimer(at: loop.now + limit) { [weak self] in
                self?.assumeIsolated { $0.endWait(number) }
            }
            waiters[number] = Waiter(check: condition, timer: timer, continuation: continuation)
        }
    }

    private func endWait(_ number: Int) {
        guard let waiter = waiters.removeValue(forKey: number) else { return }
        waiter.continuation.resume(returning: waiter.check(self))
    }

    /// The JSON of the first message of a type, when it has come.
    func message(_ type: String, within limit: Duration = .seconds(30)) async -> JSONObject? {
        _ = await wait(limit) { $0.firstMessage(type) != nil }
        return firstMessage(type)
    }

    private func firstMessage(_ type: String) -> JSONObject? {
        for text in texts {
            guard let object = (try? JSONValue(parsing: text))?.objectValue else { continue }
            if object["type"]?.stringValue == type { return object }
        }
        return nil
    }

    /// Code and reason with which the server closed, when it has.
    func closed(within limit: Duration = .seconds(30)) async -> (code: UInt16, reason: String)? {
        _ = await wait(limit) { $0.closure != nil }
        return closure
    }

    /// Whether the channel has announced this client.
    func isUp(within limit: Duration = .seconds(30)) async -> Bool {
        await wait(limit) { !($0.peer?.notifications("connection.created").isEmpty ?? true) }
    }

    // MARK: HTTP

    /// One request on this connection, and its response; nil if none comes.
    func request(
        _ method: String, _ path: String, headers: HTTPHeaders = [:], body: [UInt8] = [],
        within limit: Duration = .seconds(30)
    ) async -> HTTPResponse? {
        received = []
        var all: HTTPHeaders = ["Host": "localhost"]
        for field in headers.fields { all.add(field.name, field.value) }
        stream?.write(
            HTTPRequest(head: HTTPRequestHead(method: method, target: path, headers: all), body: body).serialized())
        _ = await wait(limit) { $0.response(to: method) != nil || $0.isGone }
        return response(to: method)
    }

    private func response(to method: String) -> HTTPResponse? {
        var collector = HTTPCollector(.response, limits: .init(body: 8 << 20))
        collector.requestMethod = method
        collector.receive(received)
        if isGone { collector.receiveEnd() }
        guard case .response(let response)? = try? collector.next() else { return nil }
        return response
    }
}

/// Runs `body` with a server on a free loopback port, and stops it.
func withServer<Result>(
    _ configure: (inout ServerConfiguration) -> Void = { _ in }, _ body: (SoraServer) async throws -> Result
) async throws -> Result {
    var configuration = ServerConfiguration()
    configure(&configuration)
    let server = try await SoraServer.start(configuration)
    do {
        let result = try await body(server)
        await server.stop()
        return result
    } catch {
        await server.stop()
        throw error
    }
}

/// Runs `body` with a client, and stops its loop.
func withClient<Result>(
    isStrict: Bool = true, _ body: (WireClient) async throws -> Result
) async throws -> Result {
    let client = try WireClient(isStrict: isStrict)
    defer { client.close() }
    return try await body(client)
}

extension SoraServer {
    /// Whether an ordinary client is served.
    func stillServes() async throws -> Bool {
        try await withClient { client in
            try await client.join(signalingURL, ChannelHarness.messaging { $0.channelID = "ordinary" })
            return await client.isUp()
        }
    }

    /// Calls the HTTP API over a socket.
    func call(_ target: String, _ body: JSONObject = [:], port other: UInt16? = nil) async throws -> (
        status: Int, json: JSONValue
    ) {
        try await withClient { client in
            try await client.dial(port: other ?? port, certificate: certificate)
            let response = await client.request(
                "POST", "/", headers: ["x-sora-target": target], body: JSONValue.object(body).utf8)
            guard let response else { throw WireClient.Failure.dial("no response") }
            return (response.head.status, (try? JSONValue(parsing: response.body)) ?? .null)
        }
    }
}
