import SoraHTTP
import SoraNetwork
import SoraWire

/// One accepted TCP connection: HTTP requests, until one of them turns it into a WebSocket.
///
/// Requests are answered one after the other, each before the next is read. Every wait has an end: for a
/// whole request, for `connect`, and for the next request on an idle connection.
///
/// Confined to its loop; owned by ``SignalingFront``.
final class FrontConnection {
    enum Event {
        /// To be answered with ``respond(to:with:)``.
        case request(HTTPRequest)
        /// A text frame.
        case text(String)
        /// The end, once. 1005: a close frame without a code; 1006: none at all.
        case closed(code: UInt16)
    }

    struct Limits {
        /// For a whole request, and for `connect`.
        var patience: Duration
        var messagesPerSecond: Int
        /// Bytes of one text frame; no signaling message is larger.
        var messageSize: Int
        /// Bytes that may wait for a client that does not read.
        var bufferedBytes: Int
        var headSize: Int
        var bodySize: Int

        init(_ configuration: ServerConfiguration) {
            patience = configuration.connectTimeout
            messagesPerSecond = configuration.maximumMessagesPerSecond
            messageSize = configuration.maximumSignalingMessageSize
            bufferedBytes = configuration.maximumBufferedSignalingBytes
            headSize = configuration.maximumRequestHeadSize
            bodySize = configuration.maximumRequestBodySize
        }
    }

    /// What faults make of this connection's beginning.
    enum Fault {
        /// Reads and says nothing.
        case silent
        /// Says nothing to an upgrade request.
        case silentUpgrade
        /// Answers an upgrade request with this status.
        case refusedUpgrade(status: Int)
        /// Reads nothing for a while.
        case late(Duration)
        /// Answers an upgrade request late.
        case lateUpgrade(Duration)
    }

    var onEvent: ((Event) -> Void)?
    let remoteAddress: SocketAddress
    /// The second port, for the HTTP API alone.
    let isForAPI: Bool
    var fault: Fault?
    /// Set once `connect` was accepted.
    var connectionID: ConnectionID?
    var mediaLoop: MediaLoop?
    /// `connect` has come; it is being judged or was accepted.
    private(set) var hasConnected = false
    /// The connection was ended from above; what still arrives is ignored.
    var isOver = false

    private let stream: any ByteStream
    private let tcp: TCPConnection
    private let loop: EventLoop
    private let limits: Limits
    private var random: RandomSource
    private var http: HTTPCollector
    private var webSocket: WebSocketConnection?
    private var closeCode: UInt16?
    private var isEnded = false
    private var isAnswering = false
    private var isReadingRequests = false
    private var timer: LoopTimer?
    private var patience: Instant?
    private var allowance: Double
    private var allowedAt: Instant

    /// How long a connection may wait for its next request.
    private static let idleTimeout: Duration = .seconds(15)
    private static let lingerTimeout: Duration = .seconds(2)

    /// - Parameter stream: `tcp` itself, or TLS over it.
    init(
        stream: any ByteStream, tcp: TCPConnection, isForAPI: Bool, random: RandomSource, loop: EventLoop,
        limits: Limits
    ) {
        self.stream = stream
        self.tcp = tcp
        self.isForAPI = isForAPI
        self.random = random
        self.loop = loop
        self.limits = limits
        http = HTTPCollector(.request, limits: .init(head: limits.headSize, headers: 100, body: limits.bodySize))
        remoteAddress = tcp.remoteAddress
        patience = loop.now + limits.patience
        allowance = Double(limits.messagesPerSecond * 5)
        allowedAt = loop.now
    }

    func start() {
        stream.onEvent = { [weak self] event in self?.handle(event) }
        timer = LoopTimer(on: loop) { [weak self] in self?.handleTimeout() }
        switch fault {
        case .silent: patience = loop.now + .seconds(600)
        case .late(let delay):
            fault = nil
            stream.isReadingPaused = true
            patience = loop.now + delay + limits.patience
            loop.scheduleTimer(at: loop.now + delay) { [weak self] in
                guard let self, !isEnded else { return }
                stream.isReadingPaused = false
            }
        default: break
        }
        reschedule()
    }

    private func handle(_ event: StreamEvent) {
        switch event {
        case .opened, .writable: break
        case .data(let bytes): receive(bytes)
        case .ended:
            webSocket?.handleEnd(now: loop.now)
            drainWebSocket()
            // A client may end its direction behind its request and still wait for the answer.
            if webSocket == nil { linger(code: 1006) }
        case .closed:
            webSocket?.handleEnd(now: loop.now)
            drainWebSocket()
            end(code: 1006)
        }
    }

    private func receive(_ bytes: [UInt8]) {
        if case .silent = fault { return }
        if webSocket != nil {
            webSocket?.handle(bytes, now: loop.now)
            drainWebSocket()
            return
        }
        http.receive(bytes)
        readRequests()
    }

    private func readRequests() {
        guard !isReadingRequests else { return }
        isReadingRequests = true
        defer { isReadingRequests = false }
        do {
            while webSocket == nil, !isEnded, !isAnswering, let message = try http.next() {
                guard case .request(let request) = message else { continue }
                if WebSocketHandshake.isRequested(by: request.head) {
                    upgrade(request.head)
                } else {
                    isAnswering = true
                    stream.isReadingPaused = true
                    patience = nil
                    reschedule()
                    onEvent?(.request(request))
                }
            }
        } catch {
            finish(with: .text(error.status, "\(error)"))
        }
    }

    func respond(to request: HTTPRequest, with response: HTTPResponse) {
        guard !isEnded, isAnswering else { return }
        isAnswering = false
        guard request.head.keepsAlive else {
            finish(with: response, answering: request.head.method)
            return
        }
        guard write(response.serialized(answering: request.head.method)) else { return }
        stream.isReadingPaused = false
        patience = loop.now + Self.idleTimeout
        reschedule()
        readRequests()
    }

    /// Sends a last answer and ends the connection.
    private func finish(with response: HTTPResponse, answering method: String = "GET") {
        var response = response
        response.head.headers["Connection"] = "close"
        stream.write(response.serialized(answering: method))
        linger(code: 1006)
    }

    private func linger(code: UInt16) {
        stream.finishAndClose(by: loop.now + Self.lingerTimeout)
        end(code: code)
    }

    // MARK: WebSocket

    private func upgrade(_ head: HTTPRequestHead) {
        switch fault {
        case .silentUpgrade:
            fault = .silent
            patience = loop.now + .seconds(600)
            reschedule()
            return
        case .refusedUpgrade(let status): return finish(with: .text(status, "refused by a fault"))
        case .lateUpgrade(let delay):
            fault = nil
            isAnswering = true
            patience = nil
            reschedule()
            loop.scheduleTimer(at: loop.now + delay) { [weak self] in
                guard let self, !isEnded else { return }
                isAnswering = false
                patience = loop.now + limits.patience
                upgrade(head)
                reschedule()
            }
            return
        case .silent, .late, nil: break
        }
        guard head.path == "/signaling", !isForAPI else {
            return finish(with: .text(404, "WebSocket signaling is at /signaling"))
        }
        do {
            let response = try WebSocketHandshake.respond(to: head)
            stream.write(response.serialized())
        } catch {
            return finish(with: WebSocketHandshake.refusal(of: error))
        }
        webSocket = WebSocketConnection(
            role: .server, configuration: .init(maximumMessageSize: limits.messageSize), random: random.split())
        let rest = http.takeRest()
        if !rest.isEmpty {
            webSocket?.handle(rest, now: loop.now)
            drainWebSocket()
        }
    }

    /// The first message was a good one; from now on the channel watches over silence.
    func connectArrived() {
        hasConnected = true
        patience = nil
        reschedule()
    }

    func send(_ text: String) {
        guard webSocket?.isOpen == true else { return }
        try? webSocket?.send(text: text)
        drainWebSocket()
    }

    /// A client that takes nothing must not fill our memory (SRV2), be it with messages, pongs or answers to requests
    /// that it sends ahead. False: it was cut off.
    private func write(_ bytes: [UInt8]) -> Bool {
        guard stream.bufferedAmount <= limits.bufferedBytes else {
            reset()
            return false
        }
        stream.write(bytes)
        return true
    }

    func closeWebSocket(code: UInt16, reason: String) {
        guard webSocket != nil else { return }
        // A code that no frame may carry is what a client sees of a cut connection (RFC 6455 7.1.5).
        guard code == 1005 || WebSocketCloseCode.isSendable(code) else { return reset() }
        try? webSocket?.close(
            code: code == 1005 ? nil : code, reason: WebSocketCloseCode.fitting(reason), now: loop.now)
        drainWebSocket()
    }

    /// Cuts the connection so that the client sees a failure.
    func reset() {
        stream.onEvent = nil
        tcp.abort()
        if stream !== tcp { stream.close() }
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
            case .transmit(let bytes): if !write(bytes) { return }
            case .text(let text): receive(text: text)
            case .ping, .pong: _ = isWithinRate()
            case .binary: break  // signaling is text only
            case .closed(let closure): closeCode = closure.code
            case .closeStream: linger(code: closeCode ?? 1006)
            }
        }
        reschedule()
    }

    private func receive(text: String) {
        guard !isOver, !isEnded, isWithinRate() else { return }
        onEvent?(.text(text))
    }

    private func isWithinRate() -> Bool {
        guard !isOver, !isEnded else { return false }
        // A bucket that fills at the allowed rate and holds five seconds' worth.
        let now = loop.now
        let rate = Double(limits.messagesPerSecond)
        allowance = min(rate * 5, allowance + (now - allowedAt).inSeconds * rate)
        allowedAt = now
        guard allowance >= 1 else {
            isOver = true
            closeWebSocket(code: 4490, reason: "TOO-MANY-MESSAGES")
            return false
        }
        allowance -= 1
        return true
    }

    // MARK: Time

    private func handleTimeout() {
        let now = loop.now
        if let due = patience, due <= now {
            patience = nil
            if webSocket != nil {
                // Clients that race several servers leave silent sockets behind: no error (1.3).
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

extension HTTPResponse {
    /// A line of text for people.
    static func text(_ status: Int, _ text: String, headers: HTTPHeaders = [:]) -> HTTPResponse {
        HTTPResponse(status: status, type: "text/plain; charset=utf-8", headers: headers, body: Array("\(text)\n".utf8))
    }
}
