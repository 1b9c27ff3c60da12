import SoraNetwork
import SoraWire
import Testing

/// A CA and what it signs. Made once: each key costs a little.
enum Authority {
    static let root = Result { try TLSIdentity.generate(names: ["Test Root"], isAuthority: true) }
    static let other = Result { try TLSIdentity.generate(names: ["Other Root"], isAuthority: true) }

    static func server(
        _ names: [String], validFrom: Duration = .seconds(-3600), lifetime: Duration = .seconds(7200)
    ) throws -> TLSIdentity {
        try .generate(names: names, issuer: root.get(), validFrom: validFrom, lifetime: lifetime)
    }

    static func trusting(_ identity: Result<TLSIdentity, any Error>) throws -> TLSContext {
        try TLSContext(
            client: TLSClientConfiguration(
                trust: .authorities(CertificateBundle(pem: identity.get().certificateChain))))
    }
}

/// A TLS echo server on `loop`.
func startTLSEcho(on loop: EventLoop, _ context: TLSContext, at address: SocketAddress = loopback) throws
    -> SocketAddress
{
    let listener = try TCPListener(on: loop, address: address)
    listener.onConnection = { connection in
        guard let stream = try? TLSConnection(server: context, over: connection, deadline: loop.now + .seconds(5))
        else { return connection.close() }
        stream.onEvent = { [unowned stream] event in
            switch event {
            case .data(let bytes): stream.write(bytes)
            case .ended: stream.finish()
            case .opened, .writable, .closed: break
            }
        }
    }
    return listener.localAddress
}

@Suite struct TLSTests {
    /// The first event of a client that dials a server with `identity`.
    private func firstEvent(
        _ identity: TLSIdentity, client: TLSContext, name: String, server: TLSServerConfiguration? = nil
    ) async throws -> StreamEvent {
        let lab = try LoopActor()
        defer { lab.stop() }
        let inbox = Inbox<StreamEvent>()
        let context = try TLSContext(server: server ?? TLSServerConfiguration(identity: identity))
        try await lab.run { loop in
            let target = try startTLSEcho(on: loop, context)
            let base = try TCPConnection(on: loop, to: target, deadline: loop.now + .seconds(5))
            let stream = try TLSConnection(
                client: client, serverName: name, over: base, deadline: loop.now + .seconds(5))
            stream.onEvent = { inbox.put($0) }
        }
        return try await inbox.next()
    }

    private func failure(
        _ identity: TLSIdentity, client: TLSContext, name: String, server: TLSServerConfiguration? = nil
    ) async throws -> TLSFailure? {
        guard
            case .closed(.tls(let failure)) = try await firstEvent(identity, client: client, name: name, server: server)
        else { return nil }
        return failure
    }

    @Test func echoesMegabytesAndEndsInOrder() async throws {
        let lab = try LoopActor()
        defer { lab.stop() }
        var random = RandomSource(seed: 11)
        let payload = random.bytes(2_000_000)
        let inbox = Inbox<StreamEvent>()
        let versions = Inbox<String>()
        let server = try TLSContext(server: .init(identity: Authority.server(["localhost"])))
        let client = try Authority.trusting(Authority.root)
        try await lab.run { loop in
            let target = try startTLSEcho(on: loop, server)
            let base = try TCPConnection(on: loop, to: target, deadline: loop.now + .seconds(5))
            let stream = try TLSConnection(client: client, serverName: "localhost", over: base)
            stream.onEvent = { [unowned stream] event in
                if case .opened = event { versions.put(stream.protocolVersion ?? "none") }
                inbox.put(event)
            }
            stream.write(payload)  // before the handshake
            stream.finish()
        }
        var seen: [UInt8] = []
        var order: [String] = []
        while order.last != "closed" {
            switch try await inbox.next() {
            case .opened: order.append("opened")
            case .data(let bytes): seen += bytes
            case .ended: order.append("ended")
            case .closed(let error):
                order.append("closed")
                #expect(error == nil)
            case .writable: break
            }
        }
        #expect(seen == payload)
        #expect(order == ["opened", "ended", "closed"])
        #expect(try await versions.next() == "TLSv1.3")
    }

    // ICE12: chain, name and time are checked, and told apart.
    @Test func anUnknownAuthorityIsTold() async throws {
        let found = try await failure(
            Authority.server(["localhost"]), client: Authority.trusting(Authority.other), name: "localhost")
        guard case .unknownAuthority = found else {
            Issue.record("\(String(describing: found))")
            return
        }
    }

    // ICE12.
    @Test func aSelfSignedCertificateIsNotTrusted() async throws {
        let identity = try TLSIdentity.generate(names: ["localhost"])
        let system = try TLSContext(client: TLSClientConfiguration())
        let found = try await failure(identity, client: system, name: "localhost")
        guard case .unknownAuthority = found else {
            Issue.record("\(String(describing: found))")
            return
        }
        // Unless it is itself given as the authority.
        let itself = try Authority.trusting(.success(identity))
        guard case .opened = try await firstEvent(identity, client: itself, name: "localhost") else {
            Issue.record("its own certificate as anchor was refused")
            return
        }
    }

    // ICE12: right CA but wrong name.
    @Test(arguments: ["other.example", "127.0.0.1", "::1"]) func aWrongNameIsTold(_ name: String) async throws {
        let found = try await failure(
            Authority.server(["localhost"]), client: Authority.trusting(Authority.root), name: name)
        #expect(found == .wrongName(expected: name))
    }

    // ICE12: an address in the SAN is accepted.
    @Test(arguments: [
        (["127.0.0.1"], "127.0.0.1"), (["::1"], "::1"), (["x", "*.example.com"], "sora.example.com"),
        (["localhost"], "LOCALHOST."),
    ])
    func namesAndAddressesInTheCertificateAreAccepted(_ names: [String], _ name: String) async throws {
        let event = try await firstEvent(
            Authority.server(names), client: Authority.trusting(Authority.root), name: name)
        guard case .opened = event else {
            Issue.record("\(event)")
            return
        }
    }

    // ICE12: expired.
    @Test func certificatesOutOfTheirTimeAreTold() async throws {
        let trusting = try Authority.trusting(Authority.root)
        let old = try Authority.server(["localhost"], validFrom: .seconds(-7200), lifetime: .seconds(3600))
        #expect(try await failure(old, client: trusting, name: "localhost") == .expired)
        let young = try Authority.server(["localhost"], validFrom: .seconds(3600), lifetime: .seconds(3600))
        #expect(try await failure(young, client: trusting, name: "localhost") == .notYetValid)
    }

    // ICE12: a leaf without its intermediate.
    @Test func intermediatesMustBeSent() async throws {
        let middle = try TLSIdentity.generate(names: ["Middle"], isAuthority: true, issuer: Authority.root.get())
        var leaf = try TLSIdentity.generate(names: ["localhost"], issuer: middle)
        let trusting = try Authority.trusting(Authority.root)
        guard case .opened = try await firstEvent(leaf, client: trusting, name: "localhost") else {
            Issue.record("the whole chain was refused")
            return
        }
        let end = "-----END CERTIFICATE-----\n"
        leaf.certificateChain = String(leaf.certificateChain[..<leaf.certificateChain.firstRange(of: end)!.upperBound])
        guard case .unknownAuthority = try await failure(leaf, client: trusting, name: "localhost") else {
            Issue.record("a leaf alone was accepted")
            return
        }
        // An intermediate among the CAs is no anchor, but completes the chain to the root.
        let both = try TLSContext(
            client: .init(
                trust: .authorities(
                    CertificateBundle(pem: Authority.root.get().certificateChain + "text\n" + middle.certificateChain)))
        )
        guard case .opened = try await firstEvent(leaf, client: both, name: "localhost") else {
            Issue.record("the given intermediate was not used")
            return
        }
        let middleOnly = try Authority.trusting(.success(middle))
        guard case .unknownAuthority = try await failure(leaf, client: middleOnly, name: "localhost") else {
            Issue.record("an intermediate alone was an anchor")
            return
        }
    }

    @Test func nothingIsCheckedIfSoAsked() async throws {
        let anything = try TLSContext(client: .init(trust: .anything))
        let old = try TLSIdentity.generate(names: ["elsewhere"], validFrom: .seconds(-7200), lifetime: .seconds(3600))
        guard case .opened = try await firstEvent(old, client: anything, name: "localhost") else {
            Issue.record("the insecure client checked")
            return
        }
    }

    @Test func aClientThatWantsTLS13GetsIt() async throws {
        let modern = try TLSContext(
            client: .init(trust: .anything, minimumVersion: .v13))
        let identity = try Authority.server(["localhost"])
        guard case .opened = try await firstEvent(identity, client: modern, name: "localhost") else {
            Issue.record("TLS 1.3 was refused")
            return
        }
    }

    @Test func clientCertificatesAreAskedForAndChecked() async throws {
        let server = TLSServerConfiguration(
            identity: try Authority.server(["localhost"]),
            clientAuthorities: try CertificateBundle(pem: Authority.root.get().certificateChain))
        for (issuer, isWelcome) in [(try Authority.root.get(), true), (try Authority.other.get(), false), (nil, false)]
        {
            let identity = try issuer.map { try TLSIdentity.generate(names: ["client"], issuer: $0) }
            let client = try TLSContext(
                client: .init(
                    trust: .authorities(CertificateBundle(pem: Authority.root.get().certificateChain)),
                    identity: identity))
            let lab = try LoopActor()
            defer { lab.stop() }
            let inbox = Inbox<StreamEvent>()
            let context = try TLSContext(server: server)
            try await lab.run { loop in
                let target = try startTLSEcho(on: loop, context)
                let base = try TCPConnection(on: loop, to: target)
                let stream = try TLSConnection(client: client, serverName: "localhost", over: base)
                stream.onEvent = { inbox.put($0) }
                stream.write([1])
            }
            // In TLS 1.3 the client hears of the refusal only after its own handshake is done.
            let events = try await inbox.collect { events in
                events.contains { if case .opened = $0 { false } else { true } }
            }
            switch events.last {
            case .data(let data): #expect(isWelcome && data == [1])
            case .closed(let error):
                #expect(!isWelcome)
                guard case .tls(.refusedByPeer) = error else {
                    Issue.record("\(String(describing: error))")
                    return
                }
            default: Issue.record("\(events)")
            }
        }
    }

    @Test func aServerThatSpeaksNoTLSIsAProtocolError() async throws {
        let lab = try LoopActor()
        defer { lab.stop() }
        let inbox = Inbox<StreamEvent>()
        let client = try TLSContext(client: .init(trust: .anything))
        try await lab.run { loop in
            let listener = try TCPListener(on: loop, address: loopback)
            listener.onConnection = { $0.write(bytes("HTTP/1.1 400 Bad Request\r\n\r\n")) }
            let base = try TCPConnection(on: loop, to: listener.localAddress)
            let stream = try TLSConnection(client: client, serverName: "localhost", over: base)
            stream.onEvent = { inbox.put($0) }
        }
        guard case .closed(.tls(.protocolError)) = try await inbox.next() else {
            Issue.record("expected a protocol error")
            return
        }
    }

    @Test func aSilentServerTimesOut() async throws {
        let lab = try LoopActor()
        defer { lab.stop() }
        let inbox = Inbox<StreamEvent>()
        let client = try TLSContext(client: .init(trust: .anything))
        try await lab.run { loop in
            let listener = try TCPListener(on: loop, address: loopback)
            listener.onConnection = { connection in connection.onEvent = { _ in } }
            let base = try TCPConnection(on: loop, to: listener.localAddress)
            let stream = try TLSConnection(
                client: client, serverName: "localhost", over: base, deadline: loop.now + .milliseconds(50))
            stream.onEvent = { inbox.put($0) }
        }
        guard case .closed(.timedOut?) = try await inbox.next() else {
            Issue.record("expected a timeout")
            return
        }
    }

    @Test func anEndWithoutCloseNotifyIsAReset() async throws {
        let lab = try LoopActor()
        defer { lab.stop() }
        let inbox = Inbox<StreamEvent>()
        let identity = try Authority.server(["localhost"])
        let server = try TLSContext(server: .init(identity: identity))
        let client = try TLSContext(client: .init(trust: .anything))
        try await lab.run { loop in
            let listener = try TCPListener(on: loop, address: loopback)
            listener.onConnection = { connection in
                guard let stream = try? TLSConnection(server: server, over: connection) else { return }
                stream.onEvent = { event in
                    if case .opened = event { connection.finish() }
                    withExtendedLifetime(stream) {}
                }
            }
            let base = try TCPConnection(on: loop, to: listener.localAddress)
            let stream = try TLSConnection(client: client, serverName: "localhost", over: base)
            stream.onEvent = { inbox.put($0) }
        }
        _ = try await inbox.next()
        guard case .closed(let error) = try await inbox.next() else {
            Issue.record("expected closed")
            return
        }
        #expect(error == .reset)
    }

    @Test func oneByteRecordsAndRandomCutsChangeNothing() async throws {
        let lab = try LoopActor()
        defer { lab.stop() }
        let inbox = Inbox<[UInt8]>()
        let server = try TLSContext(server: .init(identity: Authority.server(["localhost"])))
        let client = try Authority.trusting(Authority.root)
        try await lab.run { loop in
            let target = try startTLSEcho(on: loop, server)
            // A relay that hands on at most three bytes at a time.
            let relay = try TCPListener(on: loop, address: loopback)
            relay.onConnection = { near in
                guard let far = try? TCPConnection(on: loop, to: target) else { return }
                near.onEvent = { if case .data(let data) = $0 { dribble(data, to: far, loop) } }
                far.onEvent = { if case .data(let data) = $0 { dribble(data, to: near, loop) } }
            }
            let base = try TCPConnection(on: loop, to: relay.localAddress)
            let stream = try TLSConnection(client: client, serverName: "localhost", over: base)
            stream.onEvent = { if case .data(let data) = $0 { inbox.put(data) } }
            stream.write(bytes("slow but whole"))
        }
        let seen = try await inbox.collect { $0.joined().count == 14 }
        #expect(Array(seen.joined()) == bytes("slow but whole"))
    }

    @Test func badIdentitiesAreRefusedWithAReason() throws {
        let good = try Authority.server(["localhost"])
        let other = try Authority.server(["localhost"])
        for identity in [
            TLSIdentity(certificateChain: "", privateKey: good.privateKey),
            TLSIdentity(certificateChain: good.certificateChain, privateKey: "nonsense"),
            TLSIdentity(certificateChain: good.certificateChain, privateKey: other.privateKey),
        ] {
            #expect(throws: TLSFailure.self) { try TLSContext(server: .init(identity: identity)) }
        }
        #expect(throws: TLSFailure.self) { try TLSIdentity.generate(names: ["a,IP:1.2.3.4"]) }
        #expect(!"\(good)".contains("PRIVATE"))
    }

    // The texts that the public API promises for `caCertificate`.
    @Test func certificateBundlesAreFoundInAnyText() throws {
        let root = try Authority.root.get().certificateChain
        let other = try Authority.other.get().certificateChain
        #expect(try CertificateBundle(pem: "before\n\(root)between\(other)\nafter").certificates.count == 2)
        let indented = root.split(separator: "\n").map { $0.hasPrefix("-") ? $0 + "\n" : "  \($0) \t\r\n" }.joined()
        #expect(try CertificateBundle(pem: indented) == CertificateBundle(pem: root))
        #expect(throws: CertificateBundleError.noBlocks) { try CertificateBundle(pem: "no block at all") }
        #expect(throws: CertificateBundleError.noBlocks) {
            try CertificateBundle(pem: "-----BEGIN CERTIFICATE-----\nAAAA")
        }
        let mark = ("-----BEGIN CERTIFICATE-----\n", "\n-----END CERTIFICATE-----\n")
        #expect(throws: CertificateBundleError.invalidBase64) { try CertificateBundle(pem: mark.0 + "!!!!" + mark.1) }
        #expect(throws: CertificateBundleError.invalidCertificate) {
            try CertificateBundle(pem: mark.0 + "AAAA" + mark.1)
        }
        #expect(CertificateBundleError.noBlocks.description == "caCertificate contains no valid PEM blocks")
    }

    // MEM1, MEM4: everything of a connection goes with it.
    @Test func connectionsLeaveNothingBehind() async throws {
        let lab = try LoopActor()
        defer { lab.stop() }
        let server = try TLSContext(server: .init(identity: Authority.server(["localhost"])))
        let client = try Authority.trusting(Authority.root)
        let closed = Inbox<Int>()
        let weak = Confined<[WeakStream]>([])
        let target = try await lab.run { loop in try startTLSEcho(on: loop, server) }
        for _ in 0..<50 {
            try await lab.run { loop in
                let base = try TCPConnection(on: loop, to: target)
                let stream = try TLSConnection(
                    client: client, serverName: "localhost", over: base, deadline: loop.now + .seconds(5))
                weak.value.append(WeakStream(stream: stream))
                stream.onEvent = { [unowned stream] event in
                    switch event {
                    case .opened: stream.finish()
                    case .closed: closed.put(1)
                    case .data, .writable, .ended: break
                    }
                }
            }
            _ = try await closed.next()
        }
        let (live, timers) = await lab.run { loop in (weak.value.count { $0.stream != nil }, loop.pendingTimerCount) }
        #expect(live == 0)
        #expect(timers == 0)
    }
}

struct WeakStream { weak var stream: TLSConnection? }

private func dribble(_ data: [UInt8], to stream: TCPConnection, _ loop: EventLoop) {
    for start in stride(from: 0, to: data.count, by: 3) {
        let piece = Array(data[start..<min(start + 3, data.count)])
        loop.scheduleTimer(at: loop.now + .microseconds(start)) { stream.write(piece) }
    }
}
