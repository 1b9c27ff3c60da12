import SoraWire

/// Opens a stream to a named host: resolves the name, tries its addresses, and speaks TLS if asked.
///
/// Addresses are tried in the resolver's order with the families alternating; the next attempt starts when
/// one failed or 250 ms after the last (RFC 8305), and the first to connect wins. One deadline spans it
/// all. Confined to its loop, which keeps it until it ends.
package final class StreamDialer {
    /// Where a dial failed.
    package enum Stage: String, Sendable { case dns, tcp, tls }

    package struct Failure: Error, Equatable, Sendable, CustomStringConvertible {
        package var stage: Stage
        package var host: String
        package var port: UInt16
        package var error: NetworkError
        package var description: String { "\(host):\(port): \(error)" }
    }

    /// What to open.
    package struct Target {
        package var host: String
        package var port: UInt16
        /// Nil: plain TCP.
        package var tls: TLSContext?
        /// What the certificate must be valid for, if it is not `host`.
        package var serverName: String?
        package var options = TCPOptions()

        package init(host: String, port: UInt16, tls: TLSContext? = nil, serverName: String? = nil) {
            self.host = host
            self.port = port
            self.tls = tls
            self.serverName = serverName
        }
    }

    package static let stagger: Duration = .milliseconds(250)

    private let loop: EventLoop
    private let target: Target
    private let deadline: Instant
    private var completion: ((Result<any ByteStream, Failure>) -> Void)?
    private var resolution: Resolution?
    private var addresses: ArraySlice<SocketAddress> = []
    private var attempts: [TCPConnection] = []
    private var firstError: NetworkError?
    private var staggerTimer: LoopTimer?
    private var deadlineTimer: LoopTimer?
    private var tlsStream: TLSConnection?

    /// Starts to dial.
    /// - Parameter completion: Called once, never before this initializer has returned, and not after
    ///   ``cancel()``. The stream is open and reads nothing until its `onEvent` is set.
    @discardableResult
    package init(
        _ target: Target, on loop: EventLoop, resolver: Resolver = .shared, deadline: Instant,
        completion: @escaping (Result<any ByteStream, Failure>) -> Void
    ) {
        loop.assertOnLoop()
        self.loop = loop
        self.target = target
        self.deadline = deadline
        self.completion = completion
        resolution = resolver.resolve(target.host, on: loop, deadline: deadline) { result in
            self.resolution = nil
            switch result {
            case .success(let addresses): self.connect(addresses)
            case .failure(let error): self.fail(.dns, error)
            }
        }
    }

    /// Stops and closes whatever was opened; the completion will not be called.
    package func cancel() {
        loop.assertOnLoop()
        completion = nil
        end(keeping: nil)
        tlsStream?.close()
        tlsStream = nil
    }

    private func connect(_ found: [IPAddress]) {
        addresses = StreamDialer.alternating(found).map { SocketAddress($0, port: target.port) }[...]
        deadlineTimer = loop.scheduleTimer(at: deadline) { [weak self] in
            guard let self else { return }
            self.fail(.tcp, .timedOut(stage: "connecting to \(self.target.host):\(self.target.port)"))
        }
        staggerTimer = LoopTimer(on: loop) { [weak self] in self?.tryNext() }
        tryNext()
    }

    /// The families in turn, each in its order, beginning with that of the first address.
    static func alternating(_ addresses: [IPAddress]) -> [IPAddress] {
        guard let first = addresses.first else { return [] }
        var own = addresses.filter { $0.isV4 == first.isV4 }[...]
        var other = addresses.filter { $0.isV4 != first.isV4 }[...]
        var result: [IPAddress] = []
        while !own.isEmpty || !other.isEmpty {
            if let next = own.popFirst() { result.append(next) }
            if let next = other.popFirst() { result.append(next) }
        }
        return result
    }

    private func tryNext() {
        guard completion != nil else { return }
        guard let address = addresses.popFirst() else {
            if attempts.isEmpty { fail(.tcp, firstError ?? .nameNotFound(name: target.host, reason: "no address")) }
            return
        }
        do throws(NetworkError) {
            let attempt = try TCPConnection(on: loop, to: address, options: target.options)
            attempts.append(attempt)
            attempt.onEvent = { [unowned attempt] event in
                switch event {
                case .opened: self.win(attempt)
                case .closed(let error): self.lose(attempt, error ?? .reset)
                case .data, .writable, .ended: break
                }
            }
            if !addresses.isEmpty { staggerTimer?.schedule(at: loop.now + StreamDialer.stagger) }
        } catch {
            firstError = firstError ?? error
            tryNext()
        }
    }

    private func lose(_ attempt: TCPConnection, _ error: NetworkError) {
        attempts.removeAll { $0 === attempt }
        firstError = firstError ?? error
        tryNext()
    }

    private func win(_ attempt: TCPConnection) {
        attempt.onEvent = nil
        end(keeping: attempt)
        guard let context = target.tls else { return succeed(attempt) }
        do throws(TLSFailure) {
            let stream = try TLSConnection(
                client: context, serverName: target.serverName ?? target.host, over: attempt, deadline: deadline)
            tlsStream = stream
            stream.onEvent = { event in
                switch event {
                case .opened:
                    stream.onEvent = nil
                    self.succeed(stream)
                case .closed(let error): self.fail(.tls, error ?? .reset)
                case .data, .writable, .ended: break
                }
            }
        } catch {
            attempt.close()
            fail(.tls, .tls(error))
        }
    }

    private func succeed(_ stream: any ByteStream) {
        let completion = completion
        self.completion = nil
        tlsStream = nil
        if let completion { completion(.success(stream)) } else { stream.close() }
    }

    private func fail(_ stage: Stage, _ error: NetworkError) {
        let completion = completion
        self.completion = nil
        end(keeping: nil)
        tlsStream?.onEvent = nil
        tlsStream = nil
        completion?(.failure(Failure(stage: stage, host: target.host, port: target.port, error: error)))
    }

    private func end(keeping winner: TCPConnection?) {
        resolution?.cancel()
        resolution = nil
        staggerTimer?.cancel()
        staggerTimer = nil
        deadlineTimer?.cancel()
        deadlineTimer = nil
        addresses = []
        for attempt in attempts where attempt !== winner { attempt.close() }
        attempts = []
    }
}
