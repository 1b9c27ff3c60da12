import Foundation
import LocalSora
import SoraNetwork
import TestSupport
import Testing

@testable import Sora

/// Through HTTP proxies: one with any habit that a test wants, and Debian's tinyproxy.
@Suite(.serialized, .enabled(if: Interop.isEnabled, Interop.reason))
struct ProxyTests {
    /// A server whose signaling is `wss:`.
    private final class Site: Sendable {
        let server: SoraServer
        let authority: TestAuthority
        init() async throws {
            let authority = try TestAuthority()
            let identity = try authority.sign()
            self.authority = authority
            server = try await Interop.startServer {
                $0.transportSecurity = .pem(certificate: identity.certificateChain, key: identity.privateKey)
            }
        }

        func connect(
            _ proxy: Proxy?, _ change: (inout Configuration) -> Void = { _ in }
        ) async throws -> SwiftPeer {
            try await SwiftPeer.connect(server, channel: "proxy", role: .sendrecv) { configuration in
                configuration.audioEnabled = false
                configuration.videoEnabled = false
                configuration.caCertificate = authority.pem
                configuration.dataChannelSignaling = true
                configuration.dataChannels = [["label": "#plain", "direction": "sendrecv"]]
                configuration.proxy = proxy
                change(&configuration)
            }
        }

        var target: String { "\(Interop.host):\(server.port)" }
    }

    private static func proxy(_ proxy: TestProxy, user: String? = nil, password: String? = nil) -> Proxy {
        Proxy(host: Interop.host, port: Int(proxy.port), username: user, password: password)
    }

    // MARK: Signaling

    @Test func theOfficeLetsUsOut() async throws {
        let site = try await Site()
        #expect(site.server.signalingURL.hasPrefix("wss://"))
        let proxy = try await TestProxy.start(.open)
        let peer = try await site.connect(Self.proxy(proxy))
        try await peer.opened("#plain")
        #expect(proxy.targets == [site.target])
        try await peer.leave()
        await site.server.stop()
    }

    @Test func credentialsAreGivenWhenAsked() async throws {
        let site = try await Site()
        for habit in [TestProxy.Habit.basic(user: "u", password: "p@ss"), .digest(user: "u", password: "p@ss")] {
            let proxy = try await TestProxy.start(habit)
            let peer = try await site.connect(Self.proxy(proxy, user: "u", password: "p@ss"))
            #expect(proxy.targets == [site.target, site.target], "\(habit)")
            try await peer.leave()
            await fails(site, Self.proxy(proxy, user: "u", password: "no"), "refused the user name or password (407)")
            await fails(site, Self.proxy(proxy), "wants a user name and password (407)")
        }
        await site.server.stop()
    }

    @Test func refusalsAreTold() async throws {
        let site = try await Site()
        let forbidding = try await TestProxy.start(
            .answers("HTTP/1.1 403 Forbidden\r\nContent-Length: 5\r\n\r\nnope\n"))
        await fails(site, Self.proxy(forbidding), "the proxy answered 403 Forbidden")
        // LIF14
        let broken = try await TestProxy.start(
            .answers("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 5\r\n\r\nnope\n"))
        await fails(site, Self.proxy(broken), "the proxy answered 502 Bad Gateway")
        let babbling = try await TestProxy.start(
            .answers("HTTP/1.1 200 OK\r\nX: " + String(repeating: "x", count: 20_000) + "\r\n\r\n"))
        await fails(site, Self.proxy(babbling), "the proxy's answer is not usable")
        let foreign = try await TestProxy.start(.answers("SSH-2.0-OpenSSH_9.2\r\n\r\n"))
        await fails(site, Self.proxy(foreign), "the proxy's answer is not usable")
        await fails(site, Proxy(host: Interop.host, port: 1), "connection refused")
        await fails(site, Proxy(host: "no-such-proxy.invalid", port: 3128), "cannot resolve no-such-proxy.invalid")
        await site.server.stop()
    }

    /// LIF14: what the proxy says into the tunnel never reaches TLS.
    @Test func bytesBehindTheReplyEndTheAttempt() async throws {
        let site = try await Site()
        let proxy = try await TestProxy.start(.surplus)
        await fails(site, Self.proxy(proxy), "the proxy sent 3 bytes of its own into the tunnel")
        await site.server.stop()
    }

    /// LIF14
    @Test func aReplyInSingleBytesIsUnderstood() async throws {
        let site = try await Site()
        let proxy = try await TestProxy.start(.inSingleBytes)
        let peer = try await site.connect(Self.proxy(proxy))
        try await peer.opened("#plain")
        try await peer.leave()
        await site.server.stop()
    }

    @Test func aMuteProxyIsGivenUpInTimeAndNamed() async throws {
        let site = try await Site()
        let proxy = try await TestProxy.start(.mute)
        let log = LogRecord()
        let clock = ContinuousClock()
        let start = clock.now
        do {
            _ = try await site.connect(Self.proxy(proxy)) { $0.connectionTimeout = 2 }
            Issue.record("it connected")
        } catch {
            #expect(error.localizedDescription == "Connection is timeout")
        }
        #expect(clock.now - start < .seconds(6))
        #expect(log.contains("given up while waiting for the proxy's way to \(site.target)"), "\(log.all)")
        await site.server.stop()
    }

    /// The certificate behind a proxy is checked like any other.
    @Test func certificatesAreCheckedBehindTheProxy() async throws {
        let site = try await Site()
        let proxy = try await TestProxy.start(.open)
        do {
            _ = try await site.connect(Self.proxy(proxy)) { $0.caCertificate = nil }
            Issue.record("it connected")
        } catch {
            let text = error.localizedDescription
            #expect(text.hasPrefix("WebSocket error (") && text.contains("unknown authority"), "\(text)")
        }
        await site.server.stop()
    }

    // MARK: TURN

    /// Signaling and relay both leave through the proxy; the relay by TCP and by TLS.
    @Test(arguments: [RelayTests.Transport.tcp, .tls])
    func relaysAreReachedThroughTheProxy(_ transport: RelayTests.Transport) async throws {
        try await RelayTests.Site.with(transport) { site in
            let relay = "\(Interop.host):\(transport == .tcp ? 3478 : 5349)"
            for habit in [TestProxy.Habit.open, .digest(user: "u", password: "p"), .inSingleBytes] {
                let proxy = try await TestProxy.start(habit)
                let one = try await site.connect { $0.proxy = Self.proxy(proxy, user: "u", password: "p") }
                let other = try await site.connect()
                try await one.opened("#plain")
                try await other.opened("#plain")
                let bytes = SwiftPeer.bytes(100_000)
                #expect(one.channel.sendMessage(label: "#plain", data: bytes) == nil)
                #expect(try await other.message("#plain") == bytes)
                #expect(proxy.targets.contains(relay) && proxy.targets.contains("\(Interop.host):\(site.server.port)"))
                try await one.leave()
                try await other.leave()
            }
        }
    }

    /// A proxy that lets signaling pass and not the relay: the reason is the proxy's.
    @Test func aProxyThatRefusesTheRelayIsNamed() async throws {
        try await RelayTests.Site.with(.tcp) { site in
            let proxy = try await TestProxy.start(.openOnly(port: site.server.port))
            do {
                _ = try await site.connect { $0.proxy = Self.proxy(proxy) }
                Issue.record("it connected")
            } catch {
                let text = error.localizedDescription
                #expect(text.contains("turn:") && text.contains("the proxy answered 403"), "\(text)")
            }
        }
    }

    // MARK: A real proxy

    @Test func tinyproxyWithBasicCredentials() async throws {
        try await RelayTests.Site.with(.tls) { site in
            let folder = try TestFolder()
            let configuration = try folder.write(
                "tinyproxy.conf",
                """
                Port 8888
                Listen \(Interop.host)
                Timeout 600
                MaxClients 100
                Allow \(Interop.host)
                BasicAuth office secret
                PidFile "\(folder.path)/pid"
                ConnectPort \(site.server.port)
                ConnectPort 5349

                """)
            let tinyproxy = try Companion("tinyproxy", ["-d", "-c", configuration], ready: .output("Accepting"))
            let proxy = Proxy(host: Interop.host, port: 8888, username: "office", password: "secret")
            let one = try await site.connect { $0.proxy = proxy }
            let other = try await site.connect { $0.proxy = proxy }
            try await one.opened("#plain")
            try await other.opened("#plain")
            let bytes = SwiftPeer.bytes(200_000)
            #expect(one.channel.sendMessage(label: "#plain", data: bytes) == nil)
            #expect(try await other.message("#plain") == bytes)
            try await one.leave()
            try await other.leave()
            do {
                _ = try await site.connect {
                    $0.proxy = Proxy(host: Interop.host, port: 8888, username: "office", password: "wrong")
                }
                Issue.record("it connected")
            } catch {
                #expect(error.localizedDescription.hasPrefix("SignalingChannel error ("), "\(error)")
            }
            tinyproxy.end()
        }
    }

    /// The attempt ends as a proxy's failure, with this reason, promptly, and the log says so too.
    private func fails(
        _ site: Site, _ proxy: Proxy, _ reason: String, location: SourceLocation = #_sourceLocation
    ) async {
        let log = LogRecord()
        let clock = ContinuousClock()
        let start = clock.now
        do {
            _ = try await site.connect(proxy)
            Issue.record("it connected", sourceLocation: location)
        } catch {
            let text = error.localizedDescription
            #expect(
                text.hasPrefix("SignalingChannel error (") && text.contains(reason), "\(text)", sourceLocation: location
            )
            #expect(log.contains(reason), "\(log.all)", sourceLocation: location)
            #expect(!log.contains("p@ss"), sourceLocation: location)
        }
        #expect(clock.now - start < .seconds(15), sourceLocation: location)
    }
}
