import SoraHTTP
import SoraNetwork
import SoraWire

/// One accepted TCP connection: HTTP requests, until one of them turns it into a WebSocket.
///
/// Confined to its loop; owned by ``SignalingFront``.
final class FrontConnection {
    enum Event {
        case request(HTTPRequest)
        /// A text frame.
        case text(String)
        /// The end, once. 1005: a close frame without a code; 1006: none at all.
        case closed(code: UInt16)
    }

    var onEvent: ((Event) -> Void)?
    /// Set once `connect` was accepted.
    var connectionID: ConnectionID?
    var mediaLoop: MediaLoop?
    /// The connection was ended from above; what still arrives is ignored.
    var isOver = false

    private let stream: any ByteStream
    private let loop: EventLoop
    private var random: RandomSource
    private var http = HTTPCollector(.request, limits: .init(head: 16 << 10, headers: 100, body: 1 << 20))
    private var webSocket: WebSocketConnection?
    private var isEnded = false
    private var timer: LoopTimer?
    /// A socket that has not said `connect` (or finished a request) by then is closed.
    private var patience: Instant?

    /// Text frames larger than any signaling message.
    private static let maximumMessageSize = 1 << 20

    init(stream: any ByteStream, random: RandomSource, loop: EventLoop, limits: ServerConfiguration) {
        self.stream = stream
        self.random = random
        self.loop = loop
        patience = loop.now + limits.connectTimeout
    }

    func start() {
        stream.onEvent = { [weak self] event in self?.handle(event) }
        timer = LoopTimer(on: loop) { [weak self] in self?.handleTimeout() }
        reschedule()
    }

    private func handle(_ event: StreamEvent) {
        switch event {
        case .opened: break
        case .data(let bytes): receive(bytes)
        case .writable: break
        case .ended:
            webSocket?.handleEnd(now: loop.now)
            drainWebSocket()
            if webSocket == nil { end(code: 1006) }
        case .closed:
            webSocket?.handleEnd(now: loop.now)
            drainWebSocket()
            end(code: 1006)
        }
    }

    private func receive(_ bytes: [UInt8]) {
        if webSocket != nil {
            webSocket?.handle(bytes, now: loop.now)
            drainWebSocket()
            return
        }
        http.receive(bytes)
        do {
            while webSocket == nil, !isEnded, let message = try http.next() {
                guard case .request(let request) = message else { continue }
                if WebSocketHandshake.isRequested(by: request.head) {
                    upgrade(request.head)
                } else {
                    onEvent?(.request(request))
                }
            }
        } catch {
            let response = HTTPResponse(
                status: error.status, type: "text/plain; charset=utf-8", headers: ["Connection": "close"],
                body: Array("\(error)\n".utf8))
            stream.write(response.serialized())
            stream.finishAndClose(by: loop.now + .seconds(2))
            end(code: 1006)
        }
    }

    func respond(to request: HTTPRequest, with response: HTTPResponse) {
        guard !isEnded else { return }
        stream.write(response.serialized(answering: request.head.method))
        patience = loop.now + .seconds(60)
        reschedule()
        if !request.head.keepsAlive {
            stream.finishAndClose(by: loop.now + .seconds(2))
            end(code: 1006)
        }
    }

    // MARK: WebSocket

    private func upgrade(_ head: HTTPRequestHead) {
        guard head.path == "/signaling" else {
            stream.write(
                HTTPResponse(
                    status: 404, type: "text/plain; charset=utf-8", headers: ["Connection": "close"],
                    body: Array("WebSocket signaling is at /signaling\n".utf8)
                ).serialized())
            stream.finishAndClose(by: loop.now + .seconds(2))
            end(code: 1006)
            return
        }
        do {
            let response = try WebSocketHandshake.respond(to: head)
            stream.write(response.serialized())
        } catch {
            stream.write(WebSocketHandshake.refusal(of: error).serialized())
            stream.finishAndClose(by: loop.now + .seconds(2))
            end(code: 1006)
            return
        }
        webSocket = WebSocketConnection(
            role: .server, configuration: .init(maximumMessageSize: Self.maximumMessageSize), random: random.split())
        let rest = http.takeRest()
        if !rest.isEmpty {
            webSocket?.handle(rest, now: loop.now)
            drainWebSocket()
        }
    }

    /// The first message was a good one; from now on the channel watches over silence.
    func connectArrived() {
        patience = nil
        reschedule()
    }

    func send(_ text: String) {
        guard webSocket?.isOpen == true else { return }
        try? webSocket?.send(text: text)
        drainWebSocket()
    }

    func closeWebSocket(code: UInt16, reason: String) {
        guard webSocket != nil else { return }
        try? webSocket?.close(code: code, reason: WebSocketCloseCode.fitting(reason), now: loop.now)
        drainWebSocket()
    }

    func reset() {
        (stream as? TCPConnection)?.abort()
        end(code: 1006)
    }

    /// Closes without ceremony, as when the server stops.
    func close() {
        if webSocket?.isOpen == true {
            try? webSocket?.close(code: 1001, reason: "", now: loop.now)
            drainWebSocket()
        }
        stream.close()
        end(code: 1006)
    }

    private func drainWebSocket() {
        while let output = webSocket?.poll() {
            switch output {
            case .transmit(let bytes): stream.write(bytes)
            case .text(let text): if !isOver { onEvent?(.text(text)) }
            case .binary, .ping, .pong: break  // signaling is text only
            case .closed(let closure): closeCode = closure.code
            case .closeStream:
                stream.finishAndClose(by: loop.now + .seconds(2))
                end(code: closeCode ?? 1006)
            }
        }
        reschedule()
    }
    private var closeCode: UInt16?

    private func handleTimeout() {
        let now = loop.now
        if let due = patience, due <= now {
            patience = nil
            if webSocket != nil {
                closeWebSocket(code: 4490, reason: "TIMEOUT")
            } else {
                stream.close()
                end(code: 1006)
            }
        }
        if let due = webSocket?.nextTimeout, due <= now {
            webSocket?.handleTimeout(now: now)
            drainWebSocket()
        }
        reschedule()
    }

    private func reschedule() {
        guard !isEnded else { return }
        timer?.schedule(at: [patience, webSocket?.nextTimeout].compactMap { $0 }.min())
    }

    private func end(code: UInt16) {
        guard !isEnded else { return }
        isEnded = true
        timer?.cancel()
        timer = nil
        onEvent?(.closed(code: code))
        onEvent = nil
    }
}
