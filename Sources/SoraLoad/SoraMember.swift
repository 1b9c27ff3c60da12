import SoraHTTP
import SoraICE
import SoraMessages
import SoraNetwork
import SoraSecureTransport
import SoraWire

/// A member of a channel under load: WebSocket signaling, and data channel signaling where that is asked for.
package actor SoraMember {
    package struct Failure: Error, CustomStringConvertible {
        package var description: String
    }

    package nonisolated let loop: EventLoop
    package nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// Nil until the first offer.
    package private(set) var node: LoadNode?
    private let certificate: DTLSCertificate
    private let bufferSize: Int
    private let tls: TLSContext?
    private var stream: (any ByteStream)?
    private var handshake: WebSocketClientHandshake?
    private var webSocket: WebSocketConnection?
    private var random = RandomSource.system
    private var connect = JSONObject()
    private var sendingMid: String?
    private var definitions: [String: DataChannelDefinition] = [:]
    /// Why signaling ended, if it did.
    package private(set) var end: String?
    private var joined: CheckedContinuation<Void, any Error>?
    private var redirects = 0
    private var address: IPAddress?
    /// Offers are answered one after the other.
    private var offers: [(sdp: String, type: String, label: String?)] = []
    private var isAnswering = false

    /// - Parameters:
    ///   - tls: For `wss` URLs.
    ///   - bufferSize: Bytes of the kernel's buffers of the UDP socket.
    package init(
        loop: EventLoop, certificate: DTLSCertificate, tls: TLSContext? = nil, bufferSize: Int = 1 << 20
    ) {
        self.loop = loop
        self.certificate = certificate
        self.tls = tls
        self.bufferSize = bufferSize
    }

    /// Joins; returns when media flows or could.
    /// - Parameters:
    ///   - url: A `ws` or `wss` URL.
    ///   - address: For media; nil takes the one that the WebSocket has.
    package func join(
        _ url: String, _ connect: ConnectMessage, address: IPAddress? = nil, within limit: Duration = .seconds(30)
    ) async throws {
        self.connect = connect.json
        self.address = address
        let deadline = loop.now + limit
        let _: Void = try await withCheckedThrowingContinuation { continuation in
            joined = continuation
            loop.scheduleTimer(at: deadline) { [weak self] in
                self?.assumeIsolated { if $0.joined != nil { $0.finish("no offer in time") } }
            }
            dial(url, deadline: deadline)
        }
        guard let node, await node.connected(within: deadline - loop.now) else {
            throw Failure(description: end ?? "no path for media in time")
        }
    }

    package func leave() async {
        try? webSocket?.send(text: #"{"type":"disconnect","reason":"NO-ERROR"}"#)
        send(["type": "disconnect", "reason": "NO-ERROR"], label: definitions["signaling"] == nil ? nil : "signaling")
        try? webSocket?.close(now: loop.now)
        drain()
        stream?.close()
        await node?.close()
    }

    private func dial(_ url: String, deadline: Instant) {
        guard let location = HTTPLocation(url), [.ws, .wss].contains(location.scheme) else {
            return finish("not a ws or wss URL: \(url)")
        }
        var target = StreamDialer.Target(host: location.host, port: location.port)
        if location.scheme == .wss { target.tls = tls }
        StreamDialer(target, on: loop, deadline: deadline) { result in self.dialed(result, location) }
    }

    private func dialed(_ result: Result<any ByteStream, StreamDialer.Failure>, _ location: HTTPLocation) {
        switch result {
        case .failure(let failure): finish("\(failure)")
        case .success(let stream):
            self.stream = stream
            if address == nil { address = stream.localAddress.ip }
            let handshake = WebSocketClientHandshake(to: location, random: &random)
            self.handshake = handshake
            stream.onEvent = { [weak self] event in self?.assumeIsolated { $0.handle(event) } }
            stream.write(handshake.request)
        }
    }

    private func finish(_ reason: String) {
        if end == nil { end = reason }
        joined.take()?.resume(throwing: Failure(description: reason))
    }

    private func handle(_ event: StreamEvent) {
        switch event {
        case .opened, .writable: break
        case .data(let bytes): receive(bytes)
        case .ended, .closed: finish("the server closed the WebSocket")
        }
        drain()
    }

    private func receive(_ bytes: [UInt8]) {
        guard webSocket == nil else {
            webSocket?.handle(bytes, now: loop.now)
            return
        }
        do {
            guard let rest = try handshake?.receive(bytes) else { return }
            webSocket = WebSocketConnection(role: .client, random: random.split())
            try webSocket?.send(text: connect.text)
            if !rest.isEmpty { webSocket?.handle(rest, now: loop.now) }
        } catch {
            finish("\(error)")
        }
    }

    private func drain() {
        while let output = webSocket?.poll() {
            switch output {
            case .transmit(let bytes): stream?.write(bytes)
            case .text(let text): receive(signaling: Array(text.utf8), label: nil)
            case .closed(let closure): finish("closed with \(closure.code) \(closure.reason)")
            case .closeStream: stream?.close()
            case .binary, .ping, .pong: break
            }
        }
    }

    private func receive(_ message: [UInt8], isBinary: Bool, label: String) {
        guard let definition = definitions[label], !label.hasPrefix("#"),
            let text = try? DataChannelFraming(label: label, compress: definition.isCompressed)
                .message(in: .init(payload: message, isBinary: isBinary))
        else { return }
        receive(signaling: text, label: label)
    }

    private func receive(signaling bytes: [UInt8], label: String?) {
        guard let message = try? SignalingMessage(parsing: bytes) else { return }
        switch message {
        case .redirect(let redirect):
            redirects += 1
            guard redirects <= 10 else { return finish("more than ten redirects") }
            stream?.onEvent = nil
            stream?.close()
            webSocket = nil
            connect["redirect"] = true
            dial(redirect.location, deadline: loop.now + .seconds(10))
        case .offer(let offer):
            if node == nil { prepare(offer) }
            sendingMid = offer.mid?.video
            for definition in offer.dataChannels ?? [] { definitions[definition.label] = definition }
            offers.append((offer.sdp, "answer", label))
            answerNext()
        case .reOffer(let offer):
            offers.append((offer.sdp, "re-answer", label))
            answerNext()
        case .ping: send(["type": "pong"], label: label)
        default: break
        }
    }

    /// Opens the media side as the first offer wants it. Relays are reached over UDP alone.
    private func prepare(_ offer: OfferMessage) {
        var ice = ICEConfiguration()
        if let config = offer.config {
            ice.servers = config.iceServers.flatMap { server in
                server.urls.compactMap {
                    try? ICEServer(url: $0, username: server.username, credential: server.credential)
                }
            }.filter { $0.uri.transport == .udp }
            if config.allowsOnlyRelay, ice.servers.contains(where: \.uri.isTURN) { ice.transportPolicy = .relay }
        }
        let node = LoadNode(loop: loop, certificate: certificate, ice: ice)
        self.node = node
        node.assumeIsolated { node in
            node.setOnMessage { [weak self] label, message, isBinary in
                self?.assumeIsolated { $0.receive(message, isBinary: isBinary, label: label) }
            }
        }
    }

    private func answerNext() {
        guard !isAnswering, !offers.isEmpty, let node else { return }
        isAnswering = true
        let (sdp, type, label) = offers.removeFirst()
        Task {
            do {
                try await self.openOnce(node)
                let answer = try await node.answer(sdp, sendingOn: self.sendingMid)
                self.send(["type": .string(type), "sdp": .string(answer)], label: label)
                self.joined.take()?.resume()
            } catch {
                self.finish("\(error)")
            }
            self.isAnswering = false
            self.answerNext()
        }
    }

    private var isOpen = false
    private func openOnce(_ node: LoadNode) async throws {
        guard !isOpen else { return }
        isOpen = true
        try await node.open(at: address ?? .loopbackV4, bufferSize: bufferSize)
    }

    private func send(_ message: JSONValue, label: String?) {
        let text = (message.objectValue ?? JSONObject()).text
        guard let label else {
            try? webSocket?.send(text: text)
            drain()
            return
        }
        guard let definition = definitions[label],
            let frame = try? DataChannelFraming(label: label, compress: definition.isCompressed)
                .frame(Array(text.utf8))
        else { return }
        node?.assumeIsolated { $0.send(frame.payload, isBinary: frame.isBinary, label: label) }
    }
}
