internal import SoraHTTP
internal import SoraLocking
internal import SoraNetwork
internal import SoraWire

/// Where and how to open a stream.
struct StreamTarget {
    /// A name, or an address without brackets.
    var host: String
    var port: UInt16
    /// Nil: plain TCP.
    var tls: TLSContext?
    /// What the certificate must be valid for, if it is not `host`.
    var serverName: String?
}

/// Why a stream could not be opened.
struct StreamFailure: Error {
    var text: String
    /// The HTTP proxy was the cause.
    var isProxy: Bool
}

/// Opens a stream to a host, directly or through an HTTP proxy. Confined to its loop, and kept by what it waits for.
final class StreamOpener {
    private let target: StreamTarget
    private let proxy: Proxy?
    private let loop: EventLoop
    private let deadline: Instant
    private var completion: ((Result<any ByteStream, StreamFailure>) -> Void)?
    private var dialer: StreamDialer?
    private var tunnel: ProxyTunnel?
    private var stream: (any ByteStream)?
    private var tunnelTimer: LoopTimer?

    /// What is being waited for, for the log.
    var stage: String {
        guard let tunnel else { return "a connection to \(target.host):\(target.port)" }
        return stream == nil ? "a connection to the proxy" : "the proxy's way to \(tunnel.target)"
    }

    /// - Parameter completion: called once, not before this initializer has returned, and not after ``cancel()``.
    ///   The stream is open; set its `onEvent` at once.
    init(
        _ target: StreamTarget, proxy: Proxy?, on loop: EventLoop, deadline: Instant,
        completion: @escaping (Result<any ByteStream, StreamFailure>) -> Void
    ) {
        self.target = target
        self.proxy = proxy
        self.loop = loop
        self.deadline = deadline
        self.completion = completion
        if let proxy {
            let credentials = proxy.username.map { HTTPCredentials(username: $0, password: proxy.password ?? "") }
            tunnel = ProxyTunnel(
                host: target.host, port: target.port, credentials: credentials, userAgent: proxy.agent,
                random: .system)
            dialProxy(proxy)
        } else {
            let direct = StreamDialer.Target(
                host: target.host, port: target.port, tls: target.tls, serverName: target.serverName)
            dialer = StreamDialer(direct, on: loop, deadline: deadline) { result in
                self.finish(result.mapError { StreamFailure(text: $0.description, isProxy: false) })
            }
        }
    }

    /// Stops; the completion will not be called.
    func cancel() {
        completion = nil
        dialer?.cancel()
        dialer = nil
        tunnelTimer?.cancel()
        tunnelTimer = nil
        stream?.onEvent = nil
        stream?.close()
        stream = nil
    }

    private func finish(_ result: Result<any ByteStream, StreamFailure>) {
        let completion = completion
        self.completion = nil
        dialer = nil
        tunnelTimer?.cancel()
        tunnelTimer = nil
        stream = nil
        completion?(result)
    }

    private func fail(_ text: String, isProxy: Bool) {
        stream?.onEvent = nil
        stream?.close()
        finish(.failure(StreamFailure(text: text, isProxy: isProxy)))
    }

    // MARK: Through a proxy

    private func dialProxy(_ proxy: Proxy) {
        guard let port = UInt16(exactly: proxy.port), port > 0 else {
            // Not before the initializer has returned.
            let failing = Transfer(self)
            loop.execute { failing.value.fail("proxy port \(proxy.port) is not a port", isProxy: true) }
            return
        }
        let target = StreamDialer.Target(host: proxy.host, port: port)
        dialer = StreamDialer(target, on: loop, deadline: deadline) { result in
            self.dialer = nil
            switch result {
            case .failure(let failure): self.fail("proxy \(failure.description)", isProxy: true)
            case .success(let stream): self.openTunnel(over: stream)
            }
        }
    }

    private func openTunnel(over stream: any ByteStream) {
        self.stream = stream
        // A proxy that accepts and says nothing must not hold a stream for ever.
        if tunnelTimer == nil {
            tunnelTimer = loop.scheduleTimer(at: deadline) { [weak self] in
                self?.fail("timed out: no answer from the proxy", isProxy: true)
            }
        }
        stream.onEvent = { event in
            switch event {
            case .data(let bytes): self.tunnel?.handle(bytes)
            case .ended, .closed: self.tunnel?.handleEnd()
            case .opened, .writable: break
            }
            self.drainTunnel()
        }
        tunnel?.start()
        drainTunnel()
    }

    private func drainTunnel() {
        while completion != nil, let output = tunnel?.poll() {
            switch output {
            case .transmit(let bytes): stream?.write(bytes)
            case .reconnect:
                stream?.onEvent = nil
                stream?.close()
                stream = nil
                if let proxy { dialProxy(proxy) }
            case .established: secure()
            case .failed(let error): fail("\(error)", isProxy: true)
            }
        }
    }

    private func secure() {
        guard let base = stream else { return }
        base.onEvent = nil
        tunnelTimer?.cancel()
        tunnelTimer = nil
        guard let context = target.tls else { return finish(.success(base)) }
        do throws(TLSFailure) {
            let secure = try TLSConnection(
                client: context, serverName: target.serverName ?? target.host, over: base, deadline: deadline)
            stream = secure
            secure.onEvent = { [unowned secure] event in
                switch event {
                case .opened:
                    secure.onEvent = nil
                    self.finish(.success(secure))
                case .closed(let error):
                    self.stream = nil
                    self.fail(error.map { "\($0)" } ?? "closed during the TLS handshake", isProxy: false)
                case .data, .writable, .ended: break
                }
            }
        } catch {
            fail("\(error)", isProxy: false)
        }
    }
}
