import Foundation
import LocalSora
import SoraNetwork
import TestSupport
import Testing

@testable import Sora

/// Several servers, redirects, TLS, and failures that are told apart.
@Suite(.serialized, .enabled(if: Interop.isEnabled, Interop.reason))
struct FailoverTests {
    private func connect(
        _ urls: [String], _ change: (inout Configuration) -> Void = { _ in }
    ) async throws -> SwiftPeer {
        try await SwiftPeer.connect(url: urls[0], channel: "failover", role: .sendrecv) { configuration in
            configuration.urlCandidates = urls.compactMap { URL(string: $0) }
            configuration.audioEnabled = false
            configuration.videoEnabled = false
            configuration.dataChannelSignaling = true
            change(&configuration)
        }
    }

    private static func url(_ server: TestServer, _ scheme: String = "ws") -> String {
        "\(scheme)://\(Interop.host):\(server.port)/signaling"
    }

    /// The attempt ends with an error of this text, promptly, and the log says so too.
    private func fails(
        _ urls: [String], _ kind: String, _ reason: String, within limit: Duration = .seconds(12),
        location: SourceLocation = #_sourceLocation, _ change: (inout Configuration) -> Void = { _ in }
    ) async {
        let log = LogRecord()
        let clock = ContinuousClock()
        let start = clock.now
        do {
            _ = try await connect(urls, change)
            Issue.record("it connected", sourceLocation: location)
        } catch {
            let text = error.localizedDescription
            #expect(text.hasPrefix(kind) && text.contains(reason), "\(text)", sourceLocation: location)
            #expect(log.contains(reason), "\(log.all)", sourceLocation: location)
        }
        #expect(clock.now - start < limit, sourceLocation: location)
    }

    // MARK: Several servers

    /// LIF13: the first whole upgrade wins, however many others accept before.
    @Test func serversThatAcceptAndDoNotUpgradeLose() async throws {
        let server = try await Interop.startServer()
        let wrongAccept = try await TestServer.answering(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                + "Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n")
        let redirecting = try await TestServer.answering(
            "HTTP/1.1 302 Found\r\nLocation: http://\(Interop.host)/\r\nContent-Length: 0\r\n\r\n")
        let page = try await TestServer.answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
        let mute = try await TestServer.mute()
        let losers = [wrongAccept, redirecting, page, mute].map { Self.url($0) }
        let clock = ContinuousClock()
        let start = clock.now
        let peer = try await connect(losers + ["ws://\(Interop.host):1/", server.signalingURL])
        #expect(clock.now - start < .seconds(10))
        #expect(peer.channel.connectedUrl?.absoluteString == server.signalingURL)
        #expect(server.recordedEvents.count { $0.kind == .connectReceived } == 1)
        try await peer.leave()
        await server.stop()
    }

    /// One deadline spans all candidates, and the log says what each of them owed.
    @Test func silentServersAreGivenUpTogether() async throws {
        let servers = [try await TestServer.mute(), try await TestServer.mute()]
        let log = LogRecord()
        let clock = ContinuousClock()
        let start = clock.now
        do {
            _ = try await connect(servers.map { Self.url($0) }) { $0.connectionTimeout = 2 }
            Issue.record("it connected")
        } catch {
            #expect(error.localizedDescription == "Connection is timeout")
        }
        #expect(clock.now - start < .seconds(6))
        let owed = log.all.filter { $0.contains("given up while waiting for the answer to the WebSocket upgrade") }
        #expect(owed.count == 2, "\(log.all)")
    }

    // MARK: Redirects

    @Test func aChainOfRedirectsIsFollowed() async throws {
        let last = try await Interop.startServer()
        var servers = [last]
        for _ in 0..<4 {
            let next = servers[0].signalingURL
            servers.insert(try await Interop.startServer { $0.redirectLocation = next }, at: 0)
        }
        let peer = try await connect([servers[0].signalingURL])
        #expect(peer.channel.contactUrl?.absoluteString == servers[0].signalingURL)
        #expect(peer.channel.connectedUrl?.absoluteString == last.signalingURL)
        try await peer.leave()
        for server in servers { await server.stop() }
    }

    @Test func redirectsInACircleEnd() async throws {
        let other = try await Interop.startServer { $0.port = 47_001 }
        let target = "ws://\(Interop.host):47002/signaling"
        await other.stop()
        let one = try await Interop.startServer {
            $0.port = 47_001
            $0.redirectLocation = target
        }
        let two = try await Interop.startServer {
            $0.port = 47_002
            $0.redirectLocation = one.signalingURL
        }
        await fails([one.signalingURL], "SignalingChannel error (", "more than 16 redirects", within: .seconds(20))
        await one.stop()
        await two.stop()
    }

    @Test func aRedirectToNowhereIsTold() async throws {
        let server = try await Interop.startServer { $0.redirectLocation = "https://example.org/" }
        await fails([server.signalingURL], "SignalingChannel error (", "invalid message: https://example.org/")
        await server.stop()
        let closed = try await Interop.startServer { $0.redirectLocation = "ws://\(Interop.host):1/signaling" }
        await fails([closed.signalingURL], "WebSocket error (", "connection refused")
        await closed.stop()
    }

    // MARK: Failures told apart

    @Test func namesThatDoNotResolve() async {
        await fails(["ws://no-such-host.invalid/"], "WebSocket error (", "cannot resolve no-such-host.invalid")
    }

    @Test func portsThatAreClosed() async {
        await fails(
            ["ws://\(Interop.host):1/signaling"], "WebSocket error (", "connection refused by \(Interop.host):1")
    }

    @Test func answersThatAreNoUpgrade() async throws {
        for (answer, reason) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", "the server answered 200 OK instead of opening"),
            ("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "the server answered 404 Not Found"),
            ("HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", "(a redirect; use the URL"),
            ("+OK POP3 server ready\r\n", "the WebSocket handshake failed"),
        ] {
            let server = try await TestServer.answering(answer)
            await fails([Self.url(server)], "WebSocket error (", reason)
        }
    }

    @Test func policyIsTheServersWord() async throws {
        let server = try await Interop.startServer { $0.maximumConnectionsPerChannel = 0 }
        do {
            _ = try await connect([server.signalingURL])
            Issue.record("it connected")
        } catch {
            #expect(error.localizedDescription.hasPrefix("WebSocket is closed (4490 "), "\(error)")
        }
        await server.stop()
    }

    @Test func certificatesThatAreRefused() async throws {
        let server = try await Interop.startServer()
        let authority = try TestAuthority()
        for (identity, reason) in [
            (try authority.sign(["other.example.org"]), "not valid for \(Interop.host)"),
            (try authority.sign(validFrom: .seconds(-7200), lifetime: .seconds(3600)), "has expired"),
            (try authority.sign(validFrom: .seconds(3600)), "not valid yet"),
            (try TestAuthority("Another CA").sign(), "signed by an unknown authority"),
        ] {
            let tls = try TLSContext(server: TLSServerConfiguration(identity: identity))
            let front = try await TestServer.forwarding(to: server.port, tls: tls)
            await fails([Self.url(front, "wss")], "WebSocket error (", "TLS: the server's certificate") {
                $0.caCertificate = authority.pem
            }
            await fails([Self.url(front, "wss")], "WebSocket error (", reason) { $0.caCertificate = authority.pem }
            let peer = try await connect([Self.url(front, "wss")]) { $0.insecure = true }
            try await peer.leave()
        }
        // No TLS at all behind a wss URL.
        await fails(["wss://\(Interop.host):\(server.port)/signaling"], "WebSocket error (", "TLS: protocol error") {
            $0.caCertificate = authority.pem
        }
        await server.stop()
    }

    // MARK: TLS settings

    @Test func aClientCertificateIsShownWhenAskedFor() async throws {
        let server = try await Interop.startServer()
        let authority = try TestAuthority()
        let clients = try TestAuthority("Clients")
        let tls = try TLSContext(
            server: TLSServerConfiguration(
                identity: try authority.sign(), clientAuthorities: try CertificateBundle(pem: clients.pem)))
        let front = try await TestServer.forwarding(to: server.port, tls: tls)
        let url = Self.url(front, "wss")
        await fails([url], "WebSocket error (", "TLS: the peer refused the connection") {
            $0.caCertificate = authority.pem
        }
        let own = try clients.sign(["client-1"])
        let peer = try await connect([url]) {
            $0.caCertificate = authority.pem
            $0.transportSecurity.clientCertificate = .init(
                certificateChain: own.certificateChain, privateKey: own.privateKey)
        }
        try await peer.leave()
        let stranger = try authority.sign(["client-2"])
        await fails([url], "WebSocket error (", "TLS: the peer refused the connection") {
            $0.caCertificate = authority.pem
            $0.transportSecurity.clientCertificate = .init(
                certificateChain: stranger.certificateChain, privateKey: stranger.privateKey)
        }
        await #expect(throws: SoraError.self) {
            _ = try await connect([url]) {
                $0.transportSecurity.clientCertificate = .init(certificateChain: "none", privateKey: "none")
            }
        }
        await server.stop()
    }

    /// `openssl s_server` speaks TLS 1.2 and answers with a page: how far we come shows in the error.
    @Test func theLowestVersionIsKept() async throws {
        let folder = try TestFolder()
        let authority = try TestAuthority()
        let identity = try authority.sign()
        let old = try Companion(
            "openssl",
            [
                "s_server", "-www", "-tls1_2", "-accept", "\(Interop.host):47003", "-cert",
                try folder.write("cert.pem", identity.certificateChain), "-key",
                try folder.write("key.pem", identity.privateKey),
            ], ready: .output("ACCEPT"))
        let url = "wss://\(Interop.host):47003/signaling"
        await fails([url], "WebSocket error (", "instead of opening a WebSocket") {
            $0.caCertificate = authority.pem
        }
        await fails([url], "WebSocket error (", "TLS: ") {
            $0.caCertificate = authority.pem
            $0.transportSecurity.minimumVersion = .v1_3
        }
        old.end()
    }
}
