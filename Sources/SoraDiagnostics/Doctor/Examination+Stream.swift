import SoraHTTP
import SoraNetwork
import SoraWire

/// What the steps towards a stream wait for.
struct Dialing {
    struct Attempt {
        var address: SocketAddress
        var connection: TCPConnection?
        var error: NetworkError?
        var openedAt: Instant?
        var isPending: Bool { error == nil && openedAt == nil }
    }
    var resolved: Result<[IPAddress], NetworkError>?
    var attempts: [Attempt] = []
    var tunnelFailure: Tunnel.Failure?
    /// Nil inside: the connection ended in order.
    var tlsFailure: NetworkError??
    var handshake: WebSocketClientHandshake?
    var handshakeError: WebSocketHandshakeError?
    /// What a probe for TLS found.
    var takesTLS: Bool?
    /// The first bytes of the answer to the handshake.
    var beginning: [UInt8] = []

    var hasOpened: Bool { attempts.contains { $0.openedAt != nil } }
    var isPending: Bool { attempts.contains { $0.isPending } }
}

// From the URL to a stream that speaks to the server: DNS, TCP, proxy, TLS.
extension Examination {
    func reach(_ location: HTTPLocation) async throws(Stop) {
        if let proxy = configuration.proxy {
            try await openTunnel(proxy, location)
        } else {
            let addresses = try await resolve(location.host)
            try await connect(addresses, port: location.port)
        }
        if location.isSecure { try await secure(location) }
    }

    // MARK: DNS

    private func resolve(_ host: String) async throws(Stop) -> [IPAddress] {
        let start = now
        dialing = Dialing()
        let resolution = configuration.resolver.resolve(host, on: loop, deadline: limit) { answer in
            self.dialing.resolved = answer
            self.changed()
        }
        _ = await until(limit + .milliseconds(100)) { self.dialing.resolved != nil }
        resolution.cancel()
        switch dialing.resolved {
        case .success(let addresses):
            let list = addresses.map(\.description).joined(separator: ", ")
            report(.dns, .passed, since: start, IPAddress(host) == nil ? "\(host) is \(list)" : "\(host) is an address")
            return addresses
        case .failure(.timedOut), nil:
            throw fail(
                .dns, since: start, "no answer for \(host) within \(limitText)",
                advice: "check this machine's DNS servers (/etc/resolv.conf) and that they can be reached",
                failure: .timedOut)
        case .failure(let error):
            throw fail(
                .dns, since: start, "\(error)",
                advice: "check the spelling of the host name and whether it is registered in the DNS that this machine "
                    + "uses; an entry in /etc/hosts would do, too")
        }
    }

    // MARK: TCP

    private func connect(_ addresses: [IPAddress], port: UInt16) async throws(Stop) {
        let start = now
        dialing = Dialing()
        dialing.attempts = addresses.prefix(16).map { Dialing.Attempt(address: SocketAddress($0, port: port)) }
        for index in dialing.attempts.indices {
            do throws(NetworkError) {
                let connection = try TCPConnection(on: loop, to: dialing.attempts[index].address, deadline: limit)
                dialing.attempts[index].connection = connection
                connection.onEvent = { event in
                    switch event {
                    case .opened: self.dialing.attempts[index].openedAt = self.now
                    case .closed(let error): self.dialing.attempts[index].error = error ?? .reset
                    case .data, .writable, .ended: break
                    }
                    self.changed()
                }
            } catch {
                dialing.attempts[index].error = error
            }
        }
        let deadline = limit + .milliseconds(100)
        _ = await until(deadline) { self.dialing.hasOpened || !self.dialing.isPending }
        // Also learn about the others, without waiting long.
        if dialing.isPending, dialing.hasOpened {
            _ = await until(now + .milliseconds(300)) { !self.dialing.isPending }
        }
        let attempts = dialing.attempts
        dialing = Dialing()
        let chosen = attempts.first { $0.openedAt != nil }?.connection
        let details = attempts.map { attempt in
            if let opened = attempt.openedAt { return "\(attempt.address): open after \((opened - start).shortText)" }
            return "\(attempt.address): \(attempt.error.map { "\($0)" } ?? "no answer yet")"
        }
        for attempt in attempts {
            attempt.connection?.onEvent = nil
            if attempt.connection !== chosen { attempt.connection?.close() }
        }
        guard let chosen else {
            let error = attempts.compactMap(\.error).first
            throw fail(
                .tcp, since: start, error.map { "\($0)" } ?? "no connection within \(limitText)", details: details,
                advice: Examination.advice(forTCP: error), failure: error.isTimeout ? .timedOut : .other)
        }
        stream = chosen
        let failed = attempts.filter { $0.error != nil }
        report(
            .tcp, failed.isEmpty ? .passed : .warning, since: start, "connected to \(chosen.remoteAddress)",
            details: details,
            advice: failed.isEmpty
                ? ""
                : "not all addresses of the name answer: clients that try these first lose time; check the DNS records")
    }

    static func advice(forTCP error: NetworkError?) -> String {
        switch error {
        case .refused: "nothing listens there: check the port in the URL and whether the server is running"
        case .unreachable: "there is no route to it: check the network, VPN and firewall of this machine"
        case .timedOut, nil:
            "packets are dropped on the way: a firewall blocks the port, or the address is wrong; in an office, "
                + "use its proxy"
        default: "check the server's log for why it dropped the connection"
        }
    }

    // MARK: Proxy

    private func openTunnel(_ proxy: DoctorConfiguration.Proxy, _ location: HTTPLocation) async throws(Stop) {
        let start = now
        dialing = Dialing()
        let tunnel = Tunnel(
            to: location.host, port: location.port, proxy: proxy, agent: configuration.agent, on: loop, deadline: limit
        ) { result in
            switch result {
            case .success(let stream): self.stream = stream
            case .failure(let error): self.dialing.tunnelFailure = error
            }
            self.changed()
        }
        _ = await until(limit + .milliseconds(200)) { self.stream != nil || self.dialing.tunnelFailure != nil }
        let name = "\(proxy.host):\(proxy.port)"
        guard stream == nil else {
            return report(.proxy, .passed, since: start, "\(name) opened a tunnel to \(location.host):\(location.port)")
        }
        tunnel.cancel()
        switch dialing.tunnelFailure {
        case .dial(let error):
            throw fail(
                .proxy, since: start, "the proxy cannot be reached: \(error)",
                advice: error.stage == .dns
                    ? "check the host name of the proxy"
                    : "check host and port of the proxy: "
                        + Examination.advice(forTCP: error.error),
                failure: Optional(error.error).isTimeout ? .timedOut : .other)
        case .proxy(let error):
            throw fail(
                .proxy, since: start, "\(error)", advice: Examination.advice(for: error),
                failure: Examination.isRefusal(error) ? .refused : .malformed)
        case .timedOut, nil:
            throw fail(
                .proxy, since: start, "\(name) did not open a tunnel within \(limitText)",
                advice: "it may be no HTTP proxy, or may itself fail to reach \(location.host):\(location.port)",
                failure: .timedOut)
        }
    }

    private static func isRefusal(_ error: ProxyError) -> Bool {
        switch error {
        case .refused, .credentialsRequired, .credentialsRefused, .unsupportedAuthentication: true
        case .surplusBytes, .http: false
        }
    }

    private static func advice(for error: ProxyError) -> String {
        switch error {
        case .refused(403, _): "the proxy forbids this destination: ask its operator to allow CONNECT to host and port"
        case .refused(502, _), .refused(503, _), .refused(504, _): "the proxy itself cannot reach the server"
        case .refused: "ask the operator of the proxy whether CONNECT to this host and port is allowed"
        case .credentialsRequired: "give the user name and password of the proxy"
        case .credentialsRefused: "check the user name and password of the proxy"
        case .unsupportedAuthentication: "only Basic and Digest are supported: use a proxy or account that offers one"
        case .surplusBytes: "it writes into the tunnel, as intercepting proxies do: use another proxy or an exception"
        case .http: "whatever listens there is no HTTP proxy: check its port"
        }
    }

    // MARK: TLS

    private func secure(_ location: HTTPLocation) async throws(Stop) {
        let start = now
        guard let base = stream else { throw Stop() }
        stream = nil
        let connection: TLSConnection
        do {
            let context = try configuration.tlsContext()
            connection = try TLSConnection(client: context, serverName: location.host, over: base, deadline: limit)
        } catch {
            base.close()
            throw fail(
                .tls, since: start, "\(error)",
                advice: "check the CA certificates and the client certificate that were given",
                failure: .malformed)
        }
        dialing = Dialing()
        connection.onEvent = { event in
            switch event {
            case .opened: self.stream = connection
            case .closed(let error): self.dialing.tlsFailure = .some(error)
            case .data, .writable, .ended: break
            }
            self.changed()
        }
        _ = await until(limit + .milliseconds(200)) { self.stream != nil || self.dialing.tlsFailure != nil }
        connection.onEvent = nil
        let chain = connection.peerCertificates.compactMap { CertificateSummary(der: $0) }
        let details = chain.enumerated().map { "certificate \($0.offset): \($0.element)" }
        guard stream != nil else {
            connection.close()
            throw tlsFailure(dialing.tlsFailure ?? nil, location, chain: chain, details: details, since: start)
        }
        let parameters = [connection.protocolVersion, connection.cipherName].compactMap { $0 }.joined(separator: ", ")
        if let leaf = chain.first, leaf.daysLeft < 14 {
            report(
                .tls, .warning, since: start, "\(parameters); the certificate expires in \(leaf.daysLeft) days",
                details: details, advice: "renew the certificate")
        } else if configuration.ignoresCertificates {
            report(
                .tls, .warning, since: start, "\(parameters); certificates were not checked", details: details,
                advice: "run again with checks: other clients will check")
        } else {
            report(.tls, .passed, since: start, parameters, details: details)
        }
    }

    private func tlsFailure(
        _ error: NetworkError?, _ location: HTTPLocation, chain: [CertificateSummary], details: [String],
        since start: Instant
    ) -> Stop {
        var kind = StageReport.Failure.other
        let advice: String
        switch error {
        case .tls(.unknownAuthority):
            advice =
                chain.count == 1 && chain[0].isSelfSigned
                ? "the certificate is self-signed: give it as CA certificate, or use one of a known authority"
                : chain.count == 1
                    ? "the server sends no intermediate certificate, or its CA is private: install the full chain "
                        + "on the "
                        + "server, or give the CA certificate"
                    : "its CA is not known here: give the CA certificate, or install it in the system's store"
        case .tls(.wrongName):
            advice =
                "the certificate is for \(chain.first?.names ?? "other names"), not for \(location.host): use a "
                + "name from "
                + "that list in the URL, or a certificate with this name"
        case .tls(.expired):
            advice = "renew the certificate on the server; it expired on \(chain.first?.notAfter ?? "?")"
        case .tls(.notYetValid):
            advice = "check this machine's clock; the certificate is valid from \(chain.first?.notBefore ?? "?")"
        case .tls(.refusedByPeer):
            (advice, kind) = ("the server may require a client certificate, or a newer version of TLS", .refused)
        case .tls(.protocolError), .reset, nil:
            (advice, kind) = (
                "the port may not speak TLS: use ws:// instead of wss://, or the port of the TLS front", .malformed
            )
        case .timedOut:
            (advice, kind) = (
                "the server took the connection and is silent: the port may not speak TLS, or the server hangs",
                .timedOut
            )
        default: advice = "check the certificate on the server"
        }
        return fail(
            .tls, since: start, error.map { "\($0)" } ?? "the connection ended in the TLS handshake", details: details,
            advice: advice, failure: kind)
    }
}

extension DoctorConfiguration {
    func tlsContext() throws -> TLSContext {
        var client = TLSClientConfiguration(identity: identity)
        if ignoresCertificates {
            client.trust = .anything
        } else if let pem = certificateAuthorities {
            client.trust = .authorities(try CertificateBundle(pem: pem))
        }
        return try TLSContext(client: client)
    }
}

extension Optional<NetworkError> {
    var isTimeout: Bool { if case .timedOut? = self { true } else { false } }
}

extension Duration {
    /// Milliseconds with one decimal.
    var shortText: String {
        let parts = components
        let tenths = parts.seconds * 10_000 + parts.attoseconds / 100_000_000_000_000
        return "\(tenths / 10).\(abs(tenths % 10)) ms"
    }
}
