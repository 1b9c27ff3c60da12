import SoraHTTP
import SoraNetwork
import SoraWire
import Testing

/// An HTTP proxy for tests, on plain sockets: takes CONNECT to any address, wants Basic credentials if so
/// told, and can add bytes of its own behind its 200.
private func startProxy(
    on loop: EventLoop, authorization: String? = nil, closesAfter407: Bool = false, surplus: [UInt8] = []
) throws -> SocketAddress {
    let listener = try TCPListener(on: loop, address: loopback)
    listener.onConnection = { near in
        let parser = Confined(HTTPCollector(.request))
        near.onEvent = { [unowned near] event in
            guard case .data(let data) = event else { return }
            parser.value.receive(data)
            guard let message = try? parser.value.next(), case .request(let request) = message else { return }
            guard authorization == nil || request.head.headers["Proxy-Authorization"] == authorization else {
                var reply = HTTPResponse(
                    status: 407, headers: ["Proxy-Authenticate": "Basic realm=\"test\""], body: bytes("no"))
                if closesAfter407 { reply.head.headers["Connection"] = "close" }
                near.write(reply.serialized())
                if closesAfter407 { near.finish() }
                return
            }
            let port = UInt16(request.head.target.split(separator: ":").last ?? "") ?? 0
            guard request.head.method == "CONNECT",
                let far = try? TCPConnection(on: loop, to: SocketAddress(.loopbackV4, port: port))
            else { return near.close() }
            far.onEvent = { [unowned far] event in
                switch event {
                case .opened:
                    near.write(HTTPResponseHead(status: 200, reason: "Connection established").serialized() + surplus)
                    near.onEvent = { event in
                        switch event {
                        case .data(let data): far.write(data)
                        case .ended: far.finish()
                        case .closed: far.close()
                        case .opened, .writable: break
                        }
                    }
                case .data(let data): near.write(data)
                case .ended: near.finish()
                case .closed: near.close()
                case .writable: break
                }
            }
        }
    }
    return listener.localAddress
}

/// Ties the tunnel's machine to streams, as a driver does.
private final class TunnelDial {
    private var tunnel: ProxyTunnel
    private let proxy: SocketAddress
    private let loop: EventLoop
    private let completion: (Result<any ByteStream, ProxyError>) -> Void
    private var stream: TCPConnection?

    init(
        _ tunnel: ProxyTunnel, through proxy: SocketAddress, on loop: EventLoop,
        completion: @escaping (Result<any ByteStream, ProxyError>) -> Void
    ) throws {
        self.tunnel = tunnel
        self.proxy = proxy
        self.loop = loop
        self.completion = completion
        try connect()
    }

    private func connect() throws {
        let stream = try TCPConnection(on: loop, to: proxy)
        self.stream = stream
        stream.onEvent = { event in
            switch event {
            case .opened: self.tunnel.start()
            case .data(let data): self.tunnel.handle(data)
            case .ended, .closed: self.tunnel.handleEnd()
            case .writable: break
            }
            self.drain()
        }
    }

    private func drain() {
        while let output = tunnel.poll() {
            switch output {
            case .transmit(let data): stream?.write(data)
            case .reconnect:
                stream?.close()
                try? connect()
            case .established:
                guard let stream else { return }
                stream.onEvent = nil
                completion(.success(stream))
            case .failed(let error):
                stream?.close()
                completion(.failure(error))
            }
        }
    }
}

@Suite struct ProxyTests {
    private func dial(
        credentials: HTTPCredentials? = nil, wanted: HTTPCredentials? = nil, closesAfter407: Bool = false,
        surplus: [UInt8] = []
    ) async throws -> String {
        let lab = try LoopActor()
        defer { lab.stop() }
        let inbox = Inbox<String>()
        let server = try TLSContext(server: .init(identity: Authority.server(["sora.example.com"])))
        let client = try Authority.trusting(Authority.root)
        try await lab.run { loop in
            let target = try startTLSEcho(on: loop, server)
            let proxy = try startProxy(
                on: loop, authorization: wanted?.basicAuthorization, closesAfter407: closesAfter407, surplus: surplus)
            let tunnel = ProxyTunnel(
                host: "sora.example.com", port: target.port, credentials: credentials, userAgent: "test",
                random: RandomSource(seed: 1))
            _ = try TunnelDial(tunnel, through: proxy, on: loop) { result in
                switch result {
                case .failure(let error): inbox.put("\(error)")
                case .success(let stream):
                    guard let secure = try? TLSConnection(client: client, serverName: "sora.example.com", over: stream)
                    else { return }
                    secure.onEvent = { event in
                        switch event {
                        case .data(let data): inbox.put(String(decoding: data, as: UTF8.self))
                        case .closed(let error): inbox.put("closed \(String(describing: error))")
                        case .opened, .writable, .ended: break
                        }
                    }
                    secure.write(bytes("through the tunnel"))
                }
            }
        }
        return try await inbox.next()
    }

    @Test func tlsRunsThroughATunnel() async throws {
        #expect(try await dial() == "through the tunnel")
    }

    @Test(arguments: [false, true]) func credentialsAreSentWhenAskedFor(_ closes: Bool) async throws {
        let user = HTTPCredentials(username: "u", password: "p")
        #expect(try await dial(credentials: user, wanted: user, closesAfter407: closes) == "through the tunnel")
    }

    @Test func missingAndWrongCredentialsAreTold() async throws {
        let user = HTTPCredentials(username: "u", password: "p")
        #expect(try await dial(wanted: user) == "\(ProxyError.credentialsRequired)")
        let wrong = HTTPCredentials(username: "u", password: "x")
        #expect(try await dial(credentials: wrong, wanted: user) == "\(ProxyError.credentialsRefused)")
    }

    // LIF14: what the proxy adds never reaches TLS.
    @Test func bytesOfTheProxyEndTheAttempt() async throws {
        let alert: [UInt8] = [0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x28]
        #expect(try await dial(surplus: alert) == "\(ProxyError.surplusBytes(count: 7))")
    }
}
