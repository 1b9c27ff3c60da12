import Dispatch
import LocalSora
import SoraMessages
import SoraNetwork
import SoraWire
import TestSupport
import Testing

@testable import SoraDiagnostics

/// Set-ups that are broken on the way to the server: DNS, TCP, proxy, TLS, upgrade (issue 5, what must hold 5).
@Suite(.serialized, .leavesNoObjects) struct DoctorReachTests {
    private static func identity(
        _ names: [String] = ["127.0.0.1"], issuer: TLSIdentity? = nil, from: Duration = .seconds(-3600),
        for lifetime: Duration = .seconds(90 * 86_400)
    ) throws -> TLSIdentity {
        try TLSIdentity.generate(names: names, issuer: issuer, validFrom: from, lifetime: lifetime)
    }

    // MARK: DNS and TCP

    @Test func namesAHostWithoutAddress() async throws {
        let diagnosis = try await examine("ws://sora.invalid/signaling", timeout: .seconds(8))
        // Where no DNS server answers at all, the stage is the same.
        expect(diagnosis, failsAt: .dns, summary: "sora.invalid", advice: "check")
    }

    @Test func namesADNSThatDoesNotAnswer() async throws {
        // The look-up goes on until it is let go, as one without an answer does.
        let gate = DispatchSemaphore(value: 0)
        let diagnosis = try await examine("ws://sora.example.com/signaling", timeout: .milliseconds(300)) {
            $0.resolver = Resolver { name throws(NetworkError) in
                gate.wait()
                throw .nameNotFound(name: name, reason: "too late")
            }
        }
        gate.signal()
        expect(diagnosis, failsAt: .dns, summary: "no answer for sora.example.com", advice: "DNS", failure: .timedOut)
    }

    @Test func warnsOfAddressesThatDoNotAnswer() async throws {
        let server = try await SoraServer.start()
        let diagnosis = try await examine("ws://sora.example.com:\(server.port)/signaling", timeout: .seconds(10)) {
            $0.resolver = Resolver { _ throws(NetworkError) in
                [IPAddress("127.0.0.77"), IPAddress("127.0.0.1")].compactMap { $0 }
            }
        }
        await server.stop()
        #expect(diagnosis.isHealthy, "\(diagnosis.allText)")
        let tcp = try #require(diagnosis.report(.tcp))
        #expect(tcp.verdict == .warning && tcp.advice.contains("DNS records"), "\(tcp)")
        #expect(tcp.details.count == 2 && tcp.details[0].contains("refused"), "\(tcp)")
    }

    @Test func namesAURLThatIsNone() async throws {
        for url in ["http://127.0.0.1/signaling", "wss://user:hunter2@h.example/signaling", "nonsense"] {
            let diagnosis = try await examine(url)
            expect(diagnosis, failsAt: .url, summary: "not a usable signaling URL", advice: "wss://HOST/signaling")
            #expect(!diagnosis.allText.contains("hunter2"))
        }
    }

    @Test func namesAClosedPort() async throws {
        let server = try await BrokenServer.start(.silent)
        let port = await server.port
        await server.stop()
        let diagnosis = try await examine("ws://127.0.0.1:\(port)/signaling")
        expect(diagnosis, failsAt: .tcp, summary: "refused", advice: "nothing listens there")
        #expect(diagnosis.report(.dns)?.verdict == .passed)
    }

    @Test func namesAServerThatIsSilentBehindTCP() async throws {
        let server = try await BrokenServer.start(.silent)
        let diagnosis = try await examine("ws://127.0.0.1:\(await server.port)/signaling", timeout: .milliseconds(500))
        await server.stop()
        expect(
            diagnosis, failsAt: .upgrade, summary: "did not answer the upgrade", advice: "silent", failure: .timedOut)
        #expect(diagnosis.report(.tcp)?.verdict == .passed)
        // Bounded by the limit that was given.
        let failure = try #require(diagnosis.failure)
        #expect(failure.duration >= .milliseconds(500) && failure.duration < .seconds(5))
    }

    // MARK: TLS

    @Test func namesAPortThatDoesNotSpeakTLS() async throws {
        let server = try await SoraServer.start()
        let url = server.signalingURL.replacing("ws://", with: "wss://")
        let diagnosis = try await examine(url)
        await server.stop()
        expect(diagnosis, failsAt: .tls, summary: "", advice: "use ws:// instead of wss://", failure: .malformed)
    }

    @Test func namesAPortThatSpeaksTLS() async throws {
        let server = try await BrokenServer.start(.silent, identity: try Self.identity())
        let diagnosis = try await examine("ws://127.0.0.1:\(await server.port)/signaling")
        await server.stop()
        expect(diagnosis, failsAt: .upgrade, summary: "the port speaks TLS", advice: "use wss://")
    }

    @Test func namesASilentServerInTheTLSHandshake() async throws {
        let server = try await BrokenServer.start(.silent)
        let diagnosis = try await examine("wss://127.0.0.1:\(await server.port)/", timeout: .milliseconds(500))
        await server.stop()
        expect(diagnosis, failsAt: .tls, summary: "timed out", advice: "may not speak TLS", failure: .timedOut)
    }

    @Test func namesAnExpiredCertificateWithItsDates() async throws {
        let authority = try TLSIdentity.generate(names: ["Test CA"], isAuthority: true)
        let identity = try Self.identity(issuer: authority, from: .seconds(-10 * 86_400), for: .seconds(86_400))
        let server = try await BrokenServer.start(.silent, identity: identity)
        let diagnosis = try await examine("wss://127.0.0.1:\(await server.port)/") {
            $0.certificateAuthorities = authority.certificateChain
        }
        await server.stop()
        expect(diagnosis, failsAt: .tls, summary: "expired", advice: "renew the certificate")
        let certificate = try #require(diagnosis.failure?.details.first)
        #expect(certificate.contains("CN=127.0.0.1"))
        #expect(certificate.contains("issued by CN=Test CA"))
        #expect(certificate.contains("IP Address:127.0.0.1"))
        #expect(certificate.contains("GMT"))
    }

    @Test func namesAnUnknownAuthorityAndASelfSignedCertificate() async throws {
        let authority = try TLSIdentity.generate(names: ["Private CA"], isAuthority: true)
        let signed = try await BrokenServer.start(.silent, identity: try Self.identity(issuer: authority))
        let unknown = try await examine("wss://127.0.0.1:\(await signed.port)/")
        await signed.stop()
        expect(unknown, failsAt: .tls, summary: "unknown authority", advice: "CA certificate")
        #expect(unknown.failure?.details.first?.contains("issued by CN=Private CA") == true)

        let selfSigned = try await BrokenServer.start(.silent, identity: try Self.identity())
        let url = "wss://127.0.0.1:\(await selfSigned.port)/"
        let refused = try await examine(url)
        expect(refused, failsAt: .tls, summary: "unknown authority", advice: "self-signed")
        // Without checks TLS passes, and says so.
        let ignored = try await examine(url, timeout: .milliseconds(500)) { $0.ignoresCertificates = true }
        await selfSigned.stop()
        #expect(ignored.report(.tls)?.verdict == .warning)
        #expect(ignored.report(.tls)?.summary.contains("not checked") == true)
        #expect(ignored.failure?.stage == .upgrade)
    }

    @Test func namesACertificateForAnotherHost() async throws {
        let authority = try TLSIdentity.generate(names: ["Test CA"], isAuthority: true)
        let identity = try Self.identity(["sora.example.com", "node-1.example.com"], issuer: authority)
        let server = try await BrokenServer.start(.silent, identity: identity)
        let diagnosis = try await examine("wss://127.0.0.1:\(await server.port)/") {
            $0.certificateAuthorities = authority.certificateChain
        }
        await server.stop()
        expect(diagnosis, failsAt: .tls, summary: "not valid for 127.0.0.1", advice: "DNS:node-1.example.com")
    }

    @Test func reportsVersionCipherAndChainOfGoodTLS() async throws {
        let authority = try TLSIdentity.generate(names: ["Test CA"], isAuthority: true)
        let identity = try Self.identity(issuer: authority)
        let server = try await BrokenServer.start(.webSocket([.close(4490, "BUSY")]), identity: identity)
        let diagnosis = try await examine("wss://127.0.0.1:\(await server.port)/signaling") {
            $0.certificateAuthorities = authority.certificateChain
        }
        await server.stop()
        let tls = try #require(diagnosis.report(.tls))
        #expect(tls.verdict == .passed && tls.summary.hasPrefix("TLSv1.3, TLS_"), "\(tls)")
        #expect(tls.details.count == 1)
        expect(diagnosis, failsAt: .connect, summary: "BUSY", advice: "metadata", failure: .refused)
    }

    @Test func warnsOfACertificateThatExpiresSoon() async throws {
        let authority = try TLSIdentity.generate(names: ["Test CA"], isAuthority: true)
        let identity = try Self.identity(issuer: authority, for: .seconds(5 * 86_400))
        let server = try await BrokenServer.start(.webSocket([.close(4490, "X")]), identity: identity)
        let diagnosis = try await examine("wss://127.0.0.1:\(await server.port)/signaling") {
            $0.certificateAuthorities = authority.certificateChain
        }
        await server.stop()
        #expect(diagnosis.report(.tls)?.verdict == .warning)
        #expect(diagnosis.report(.tls)?.summary.contains("expires in 4 days") == true, "\(diagnosis.allText)")
    }

    // MARK: Proxy

    private func diagnose(proxyAnswering text: String, password: String? = nil) async throws -> Diagnosis {
        let proxy = try await BrokenServer.start(.answer(text))
        let port = await proxy.port
        let diagnosis = try await examine("ws://sora.example.com/signaling") {
            $0.proxy = .init(
                host: "127.0.0.1", port: port, username: password == nil ? nil : "office", password: password)
        }
        await proxy.stop()
        return diagnosis
    }

    @Test func namesAProxyThatRefuses() async throws {
        let diagnosis = try await diagnose(proxyAnswering: "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
        expect(
            diagnosis, failsAt: .proxy, summary: "403 Forbidden",
            advice: "forbids this "
                + "destination", failure: .refused)
    }

    @Test func namesAProxyThatWantsCredentials() async throws {
        let challenge =
            "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"office\"\r\n"
            + "Connection: close\r\nContent-Length: 0\r\n\r\n"
        let without = try await diagnose(proxyAnswering: challenge)
        expect(without, failsAt: .proxy, summary: "407", advice: "give the user name and password", failure: .refused)
        let wrong = try await diagnose(proxyAnswering: challenge, password: "hunter2hunter2")
        expect(wrong, failsAt: .proxy, summary: "refused the user name or password", advice: "check the user name")
        #expect(!wrong.allText.contains("hunter2"))
    }

    @Test func namesAProxyThatIsNoneAndOneThatIsNotThere() async throws {
        let none = try await diagnose(proxyAnswering: "SSH-2.0-OpenSSH\r\n")
        expect(none, failsAt: .proxy, summary: "not usable", advice: "no HTTP proxy", failure: .malformed)
        let closed = try await BrokenServer.start(.silent)
        let port = await closed.port
        await closed.stop()
        let absent = try await examine("ws://sora.example.com/signaling") {
            $0.proxy = .init(host: "127.0.0.1", port: port)
        }
        expect(absent, failsAt: .proxy, summary: "cannot be reached", advice: "check host and port of the proxy")
    }

    @Test func goesThroughAProxyThatWorks() async throws {
        let server = try await SoraServer.start()
        let proxy = try await BrokenServer.start(.proxy(to: server.port))
        let port = await proxy.port
        let diagnosis = try await examine(server.signalingURL, timeout: .seconds(10)) {
            $0.proxy = .init(host: "127.0.0.1", port: port)
        }
        await proxy.stop()
        await server.stop()
        #expect(diagnosis.isHealthy, "\(diagnosis.allText)")
        #expect(diagnosis.report(.proxy)?.summary.contains("opened a tunnel") == true)
    }

    // MARK: Upgrade

    @Test(arguments: [
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", "200 OK", "not Sora's signaling"),
        (
            "HTTP/1.1 302 Found\r\nLocation: "
                + "https://h.example/signaling?t=secret\r\n\r\n", "302", "h.example/signaling?t=•••"
        ),
        ("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", "403", "forbids"),
        ("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "404", "/signaling"),
        ("HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n", "503", "load balancer"),
        ("220 mail.example ESMTP\r\n", "", "does not speak HTTP"),
    ])
    func namesAnAnswerThatOpensNoWebSocket(answer: String, summary: String, advice: String) async throws {
        let server = try await BrokenServer.start(.answer(answer))
        let diagnosis = try await examine("ws://127.0.0.1:\(await server.port)/sig")
        await server.stop()
        expect(diagnosis, failsAt: .upgrade, summary: summary, advice: advice)
        #expect(!diagnosis.allText.contains("secret"))
    }

    @Test func namesAWrongAcceptValue() async throws {
        let head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        let server = try await BrokenServer.start(.handshake(head + "Sec-WebSocket-Accept: d3Jvbmc=\r\n\r\n"))
        let diagnosis = try await examine("ws://127.0.0.1:\(await server.port)/signaling")
        await server.stop()
        expect(diagnosis, failsAt: .upgrade, summary: "wrong accept value", advice: "cache", failure: .malformed)
        let bare = try await BrokenServer.start(
            .handshake("HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"))
        let dropped = try await examine("ws://127.0.0.1:\(await bare.port)/signaling")
        await bare.stop()
        expect(dropped, failsAt: .upgrade, summary: "Upgrade header", advice: "configure it for WebSockets")
    }
}
