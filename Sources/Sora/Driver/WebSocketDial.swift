internal import SoraClient
internal import SoraHTTP
internal import SoraLocking
internal import SoraNetwork
internal import SoraWire

/// One signaling WebSocket from the first look-up of its host to its end. Confined to its loop, which keeps it while
/// it lives.
final class WebSocketDial {
    enum Event {
        case opened
        case text(String)
        case binary([UInt8])
        /// A close frame came; 1005 stands for an empty one.
        case closed(code: UInt16, reason: String?)
        /// Could not be opened, or ended without a close frame.
        case failed(WebSocketFailure)
    }

    private let loop: EventLoop
    private var onEvent: ((Event) -> Void)?
    private var opener: StreamOpener?
    private var stream: (any ByteStream)?
    private var handshake: WebSocketClientHandshake?
    private var socket: WebSocketConnection?
    private var timer: LoopTimer?
    private var random = RandomSource.system
    /// Why the connection under an open WebSocket was lost, if the network said so.
    private var lossReason: String?
    /// Address of the other end, once connected.
    private(set) var remoteAddress: SocketAddress?

    /// What is being waited for until the WebSocket is open; nil afterwards.
    var stage: String? {
        if let opener { return opener.stage }
        return handshake == nil ? nil : "the answer to the WebSocket upgrade"
    }

    /// - Parameter onEvent: never called before this initializer has returned, nor after ``abandon()``. `closed` and
    ///   `failed` are the last.
    init(
        _ url: String, on loop: EventLoop, tls: TLSContext?, proxy: Proxy?, deadline: Instant,
        onEvent: @escaping (Event) -> Void
    ) {
        self.loop = loop
        self.onEvent = onEvent
        guard let location = HTTPLocation(url), location.scheme == .ws || location.scheme == .wss else {
            let failing = Transfer(self)
            loop.execute { failing.value.end(.failed(WebSocketFailure("not a usable ws or wss URL"))) }
            return
        }
        let target = StreamTarget(host: location.host, port: location.port, tls: location.isSecure ? tls : nil)
        opener = StreamOpener(target, proxy: proxy, on: loop, deadline: deadline) { result in
            self.opener = nil
            switch result {
            case .failure(let failure):
                self.end(.failed(WebSocketFailure(failure.text, isProxy: failure.isProxy)))
            case .success(let stream): self.upgrade(stream, to: location, by: deadline)
            }
        }
    }

    func send(text: String) {
        try? socket?.send(text: text)
        drain()
    }

    /// Sends a close frame behind what was sent before.
    func close(code: UInt16, reason: String) {
        try? socket?.close(code: code, reason: reason, now: loop.now)
        drain()
    }

    /// Closes without a word; no event follows.
    func abandon() {
        onEvent = nil
        release()
    }

    // MARK: Upgrade

    private func upgrade(_ stream: any ByteStream, to location: HTTPLocation, by deadline: Instant) {
        self.stream = stream
        remoteAddress = stream.remoteAddress
        let handshake = WebSocketClientHandshake(
            to: location, headers: ["User-Agent": SDKInfo.product], random: &random)
        self.handshake = handshake
        stream.onEvent = { self.handle($0) }
        stream.write(handshake.request)
        timer = loop.scheduleTimer(at: deadline) { [weak self] in
            self?.end(.failed(WebSocketFailure("timed out: no answer to the WebSocket upgrade")))
        }
    }

    private func handle(_ event: StreamEvent) {
        switch event {
        case .data(let bytes):
            if handshake != nil {
                continueHandshake(bytes)
            } else {
                socket?.handle(bytes, now: loop.now)
                drain()
            }
        case .closed(let error?):
            // TLS 1.3 refuses a client's certificate only here, when the handshake is long over.
            lossReason = "\(error)"
            if handshake != nil {
                end(.failed(WebSocketFailure("the connection was lost before the WebSocket was open: \(error)")))
            } else {
                socket?.handleEnd(now: loop.now)
                drain()
            }
        case .ended, .closed(nil):
            if handshake != nil {
                let reason = handshake?.receiveEnd()
                end(.failed(WebSocketFailure(reason.map { "\($0)" } ?? "the connection ended")))
            } else {
                socket?.handleEnd(now: loop.now)
                drain()
            }
        case .opened, .writable: break
        }
    }

    private func continueHandshake(_ bytes: [UInt8]) {
        do throws(WebSocketHandshakeError) {
            guard let rest = try handshake?.receive(bytes) else { return }
            handshake = nil
            timer?.cancel()
            socket = WebSocketConnection(role: .client, random: random.split())
            timer = LoopTimer(on: loop) { [weak self] in
                guard let self else { return }
                socket?.handleTimeout(now: loop.now)
                drain()
            }
            onEvent?(.opened)
            if !rest.isEmpty {
                socket?.handle(rest, now: loop.now)
                drain()
            }
        } catch {
            end(.failed(WebSocketFailure("\(error)")))
        }
    }

    // MARK: Open

    private func drain() {
        while let output = socket?.poll() {
            switch output {
            case .transmit(let bytes): stream?.write(bytes)
            case .text(let text): onEvent?(.text(text))
            case .binary(let bytes): onEvent?(.binary(bytes))
            case .ping, .pong: break
            case .closed(let closure): report(closure)
            case .closeStream:
                stream?.onEvent = nil
                stream?.finishAndClose(by: loop.now + .seconds(3))
                stream = nil
                release()
            }
        }
        timer?.schedule(at: socket?.nextTimeout)
    }

    private func report(_ closure: WebSocketClosure) {
        let event: Event =
            if let error = closure.error {
                .failed(WebSocketFailure("\(error)"))
            } else if closure.code == 1006 {
                .failed(WebSocketFailure("the WebSocket was lost" + (lossReason.map { ": \($0)" } ?? "")))
            } else {
                .closed(code: closure.code, reason: closure.reason.isEmpty ? nil : closure.reason)
            }
        let onEvent = onEvent
        self.onEvent = nil
        onEvent?(event)
    }

    private func end(_ event: Event) {
        let onEvent = onEvent
        self.onEvent = nil
        release()
        onEvent?(event)
    }

    private func release() {
        opener?.cancel()
        opener = nil
        timer?.cancel()
        timer = nil
        handshake = nil
        socket = nil
        stream?.onEvent = nil
        stream?.close()
        stream = nil
    }
}
