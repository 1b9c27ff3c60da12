import SoraHTTP
import SoraNetwork
import SoraWire

/// Opens a plain stream to a host, through an HTTP proxy if there is one, and tells the steps apart. Confined to its
/// loop; kept by what it waits for.
final class Tunnel {
    enum Failure: Error {
        /// Of the proxy itself where there is one.
        case dial(StreamDialer.Failure)
        case proxy(ProxyError)
        case timedOut
    }

    private let loop: EventLoop
    private let proxy: DoctorConfiguration.Proxy?
    private let deadline: Instant
    private var completion: ((Result<any ByteStream, Failure>) -> Void)?
    private var machine: ProxyTunnel?
    private var dialer: StreamDialer?
    private var stream: (any ByteStream)?
    private var timer: LoopTimer?

    /// - Parameter completion: called once, not before this initializer has returned, and not after ``cancel()``.
    init(
        to host: String, port: UInt16, proxy: DoctorConfiguration.Proxy?, agent: String, on loop: EventLoop,
        deadline: Instant, completion: @escaping (Result<any ByteStream, Failure>) -> Void
    ) {
        self.loop = loop
        self.proxy = proxy
        self.deadline = deadline
        self.completion = completion
        machine = proxy.map {
            ProxyTunnel(host: host, port: port, credentials: $0.credentials, userAgent: agent, random: .system)
        }
        dial(proxy?.host ?? host, proxy?.port ?? port)
        timer = loop.scheduleTimer(at: deadline + .milliseconds(50)) { [weak self] in
            self?.finish(.failure(.timedOut))
        }
    }

    /// Stops and closes; the completion will not be called.
    func cancel() {
        completion = nil
        finish(.failure(.timedOut))
    }

    private func dial(_ host: String, _ port: UInt16) {
        dialer = StreamDialer(StreamDialer.Target(host: host, port: port), on: loop, deadline: deadline) { result in
            self.dialer = nil
            switch result {
            case .failure(let failure): self.finish(.failure(.dial(failure)))
            case .success(let stream):
                self.stream = stream
                if self.machine == nil { return self.finish(.success(stream)) }
                self.openTunnel(over: stream)
            }
        }
    }

    private func openTunnel(over stream: any ByteStream) {
        stream.onEvent = { event in
            switch event {
            case .data(let bytes): self.machine?.handle(bytes)
            case .ended, .closed: self.machine?.handleEnd()
            case .opened, .writable: break
            }
            self.drain()
        }
        machine?.start()
        drain()
    }

    private func drain() {
        while completion != nil, let output = machine?.poll() {
            switch output {
            case .transmit(let bytes): stream?.write(bytes)
            case .reconnect:
                stream?.onEvent = nil
                stream?.close()
                stream = nil
                if let proxy { dial(proxy.host, proxy.port) }
            case .established:
                if let stream { finish(.success(stream)) }
            case .failed(let error): finish(.failure(.proxy(error)))
            }
        }
    }

    private func finish(_ result: Result<any ByteStream, Failure>) {
        let completion = completion
        self.completion = nil
        timer?.cancel()
        timer = nil
        dialer?.cancel()
        dialer = nil
        stream?.onEvent = nil
        switch result {
        case .success where completion != nil: break
        default: stream?.close()
        }
        stream = nil
        completion?(result)
    }
}
