import SoraHTTP
import SoraMessages
import SoraNetwork
import SoraSecureTransport
import SoraWire

/// A member of a channel on our server: WebSocket signaling, and data channel signaling where that is asked for.
actor SoraMember {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    nonisolated let node: LoadNode

    private var stream: (any ByteStream)?
    private var handshake: WebSocketClientHandshake?
    private var webSocket: WebSocketConnection?
    private var random = RandomSource.system
    private var connect = JSONObject()
    private var sendingMid: String?
    private var definitions: [String: DataChannelDefinition] = [:]
    /// Why signaling ended, if it did.
    private(set) var end: String?
    private var joined: CheckedContinuation<Void, any Error>?
    /// Offers are answered one after the other.
    private var offers: [(sdp: String, type: String, label: String?)] = []
    private var isAnswering = false

    init(loop: EventLoop, certificate: DTLSCertificate) {
        self.loop = loop
        node = LoadNode(loop: loop, certificate: certificate)
    }

    /// Joins; returns when media flows or could.
    func join(host: String, port: UInt16, address: IPAddress, _ connect: ConnectMessage, bufferSize: Int = 1 << 20)
        async throws
    {
        self.connect = connect.json
        try await node.open(at: address, bufferSize: bufferSize)
        await node.setOnMessage { [weak self] label, message, isBinary in
            self?.assumeIsolated { $0.receive(message, isBinary: isBinary, label: label) }
        }
        let authority = "ws://\(host):\(port)/signaling"
        guard let location = HTTPLocation(authority) else {
            throw ServerProcess.Failure(description: "not a URL: \(authority)")
        }
        let _: Void = try await withCheckedThrowingContinuation { continuation in
            joined = continuation
            StreamDialer(.init(host: host, port: port), on: loop, deadline: loop.now + .seconds(10)) { result in
                self.dialed(result, location)
            }
        }
        guard await node.connected() else {
            throw ServerProcess.Failure(description: "a member did not connect; \(end ?? "signaling is up")")
        }
    }

    func leave() async {
        try? webSocket?.send(text: #"{"type":"disconnect","reason":"NO-ERROR"}"#)
        try? webSocket?.close(now: loop.now)
        drain()
        stream?.close()
        await node.close()
    }

    private func dialed(_ result: Result<any ByteStream, StreamDialer.Failure>, _ location: HTTPLocation) {
        switch result {
        case .failure(let failure): finish("\(failure)")
        case .success(let stream):
            self.stream = stream
            let handshake = WebSocketClientHandshake(to: location, random: &random)
            self.handshake = handshake
            stream.onEvent = { [weak self] event in self?.assumeIsolated { $0.handle(event) } }
            stream.write(handshake.request)
        }
    }

    private func finish(_ reason: String) {
        if end == nil { end = reason }
        joined.take()?.resume(throwing: ServerProcess.Failure(description: reason))
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
        case .offer(let offer):
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

    private func answerNext() {
        guard !isAnswering, !offers.isEmpty else { return }
        isAnswering = true
        let (sdp, type, label) = offers.removeFirst()
        Task {
            do {
                let answer = try await self.node.answer(sdp, sendingOn: self.sendingMid)
                self.send(["type": .string(type), "sdp": .string(answer)], label: label)
                self.joined.take()?.resume()
            } catch {
                self.finish("\(error)")
            }
            self.isAnswering = false
            self.answerNext()
        }
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
        Task { await self.node.send(frame.payload, isBinary: frame.isBinary, label: label) }
    }
}
