import SoraCrypto
import SoraHTTP
import SoraWire
import Testing

private func ascii(_ text: String) -> [UInt8] { Array(text.utf8) }

private let user = HTTPCredentials(username: "Mufasa", password: "Circle of Life")

private func tunnel(_ credentials: HTTPCredentials? = nil, host: String = "turn.example.com") -> ProxyTunnel {
    ProxyTunnel(host: host, port: 443, credentials: credentials, userAgent: "Sora Swift", random: RandomSource(seed: 1))
}

private func drain(_ tunnel: inout ProxyTunnel) -> [ProxyTunnel.Output] {
    var result: [ProxyTunnel.Output] = []
    while let output = tunnel.poll() { result.append(output) }
    return result
}

private func heads(_ outputs: [ProxyTunnel.Output]) throws -> [HTTPRequestHead] {
    try outputs.compactMap { output in
        guard case .transmit(let bytes) = output else { return nil }
        var parser = HTTPParser(.request)
        parser.receive(bytes)
        guard case .requestHead(let head)? = try parser.next() else { return nil }
        return head
    }
}

@Suite struct ProxyTunnelTests {
    @Test func asksWithoutCredentialsFirst() throws {
        var machine = tunnel(user)
        machine.start()
        let head = try #require(try heads(drain(&machine)).first)
        #expect(head.method == "CONNECT")
        #expect(head.target == "turn.example.com:443")
        #expect(head.headers["Host"] == "turn.example.com:443")
        #expect(head.headers["User-Agent"] == "Sora Swift")
        #expect(head.headers["Proxy-Authorization"] == nil)
        #expect(tunnel(host: "2001:db8::1").target == "[2001:db8::1]:443")
    }

    // LIF14: the head may come in any pieces, also cut between CR and LF; a body length in it is ignored.
    @Test func establishesInAnyPieces() {
        let reply = ascii("HTTP/1.1 200 Connection established\r\nContent-Length: 999\r\nVia: x\r\n\r\n")
        for cut in 0..<reply.count {
            var machine = tunnel()
            machine.start()
            _ = drain(&machine)
            machine.handle(Array(reply[..<cut]))
            #expect(drain(&machine).isEmpty)
            machine.handle(Array(reply[cut...]))
            #expect(drain(&machine) == [.established])
        }
    }

    // LIF14: a TLS alert that the proxy appends never reaches TLS.
    @Test func surplusBytesEndTheAttempt() {
        var machine = tunnel()
        machine.start()
        _ = drain(&machine)
        machine.handle(ascii("HTTP/1.1 200 OK\r\n\r\n") + [0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x28])
        #expect(drain(&machine) == [.failed(.surplusBytes(count: 7))])
        machine.handle([1])
        machine.handleEnd()
        #expect(drain(&machine).isEmpty)
    }

    // LIF14: 20 kB of headers.
    @Test func anOversizedHeadEndsTheAttempt() {
        let line = ascii("X-Filler: " + String(repeating: "x", count: 990) + "\r\n")
        var machine = tunnel()
        machine.start()
        _ = drain(&machine)
        machine.handle(ascii("HTTP/1.1 200 OK\r\n"))
        for _ in 0..<20 { machine.handle(line) }
        #expect(drain(&machine) == [.failed(.http(.headTooLarge(limit: 16384)))])
    }

    // LIF14: 502 with a body.
    @Test func aRefusalIsToldWithItsStatus() {
        var machine = tunnel()
        machine.start()
        _ = drain(&machine)
        machine.handle(ascii("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 4\r\n\r\noops"))
        #expect(drain(&machine) == [.failed(.refused(status: 502, reason: "Bad Gateway"))])
    }

    @Test func anEndBeforeTheReplyIsTold() {
        for text in ["", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\nA: b\r\n"] {
            var machine = tunnel()
            machine.start()
            _ = drain(&machine)
            machine.handle(ascii(text))
            machine.handleEnd()
            #expect(drain(&machine) == [.failed(.http(.truncated))])
        }
    }

    @Test func withoutCredentialsA407Fails() {
        var machine = tunnel()
        machine.start()
        _ = drain(&machine)
        machine.handle(ascii("HTTP/1.1 407 X\r\nProxy-Authenticate: Basic realm=\"a\"\r\nContent-Length: 0\r\n\r\n"))
        #expect(drain(&machine) == [.failed(.credentialsRequired)])
    }

    @Test func answersBasicOnTheSameConnection() throws {
        var machine = tunnel(HTTPCredentials(username: "Aladdin", password: "open sesame"))
        machine.start()
        _ = drain(&machine)
        machine.handle(ascii("HTTP/1.1 407 X\r\nProxy-Authenticate: Basic realm=\"a\"\r\nContent-Length: 3\r\n\r\nab"))
        #expect(drain(&machine).isEmpty)  // the body is not complete
        machine.handle(ascii("c"))
        let head = try #require(try heads(drain(&machine)).first)
        // RFC 7617, 2.
        #expect(head.headers["Proxy-Authorization"] == "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")
        machine.handle(ascii("HTTP/1.1 200 OK\r\n\r\n"))
        #expect(drain(&machine) == [.established])
    }

    @Test(arguments: ["Connection: close\r\nContent-Length: 0\r\n", ""]) func answersOnANewConnectionIfThisOneEnds(
        _ headers: String
    ) throws {
        var machine = tunnel(user)
        machine.start()
        _ = drain(&machine)
        machine.handle(ascii("HTTP/1.1 407 X\r\nProxy-Authenticate: Basic realm=\"a\"\r\n\(headers)\r\n"))
        if headers.isEmpty { machine.handleEnd() }
        #expect(drain(&machine) == [.reconnect])
        machine.start()
        #expect(try heads(drain(&machine)).first?.headers["Proxy-Authorization"] != nil)
    }

    @Test func refusedCredentialsAreNotRepeated() {
        var machine = tunnel(user)
        machine.start()
        let reply = ascii("HTTP/1.1 407 X\r\nProxy-Authenticate: Basic realm=\"a\"\r\nContent-Length: 0\r\n\r\n")
        machine.handle(reply)
        machine.handle(reply)
        #expect(drain(&machine).last == .failed(.credentialsRefused))
    }

    @Test func aStaleNonceIsAnsweredOnceMore() throws {
        var machine = tunnel(user)
        machine.start()
        func challenge(_ nonce: String, stale: Bool) -> [UInt8] {
            ascii(
                "HTTP/1.1 407 X\r\nProxy-Authenticate: Digest realm=\"r\", nonce=\"\(nonce)\", qop=\"auth\", stale=\(stale)\r\nContent-Length: 0\r\n\r\n"
            )
        }
        machine.handle(challenge("one", stale: false))
        machine.handle(challenge("two", stale: true))
        let sent = try heads(drain(&machine))
        #expect(sent.count == 3)
        #expect(sent[2].headers["Proxy-Authorization"]?.contains("nonce=\"two\"") == true)
        machine.handle(challenge("three", stale: true))
        #expect(drain(&machine) == [.failed(.credentialsRefused)])
    }

    @Test func theStrongestChallengeIsAnswered() throws {
        var machine = tunnel(user)
        machine.start()
        _ = drain(&machine)
        machine.handle(
            ascii(
                "HTTP/1.1 407 X\r\nProxy-Authenticate: Basic realm=\"a\", Digest realm=\"a\", nonce=\"n\", qop=\"auth\"\r\nProxy-Authenticate: Digest realm=\"a, b\", nonce=\"n\", algorithm=SHA-256, qop=\"auth-int,auth\", opaque=\"o\\\"p\"\r\nContent-Length: 0\r\n\r\n"
            ))
        let value = try #require(try heads(drain(&machine)).first?.headers["Proxy-Authorization"])
        #expect(value.hasPrefix("Digest username=\"Mufasa\", realm=\"a, b\""))
        #expect(value.contains("algorithm=SHA-256"))
        #expect(value.contains("opaque=\"o\\\"p\""))
        #expect(value.contains("uri=\"turn.example.com:443\""))
    }

    @Test func unknownSchemesAreNamed() {
        var machine = tunnel(user)
        machine.start()
        _ = drain(&machine)
        machine.handle(
            ascii("HTTP/1.1 407 X\r\nProxy-Authenticate: Negotiate YQ==, NTLM\r\nContent-Length: 0\r\n\r\n"))
        #expect(drain(&machine) == [.failed(.unsupportedAuthentication(["negotiate", "ntlm"]))])
    }

    // RFC 7616, 3.9.1: the same request under both algorithms.
    @Test(arguments: [
        ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
        ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
    ])
    func digestOfTheStandardsExample(_ algorithm: String, _ response: String) throws {
        let challenge = try #require(
            HTTPChallenge.parse([
                "Digest realm=\"http-auth@example.org\", qop=\"auth, auth-int\", algorithm=\(algorithm), nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\""
            ]).first)
        var digest = try #require(DigestAuthorization(challenge))
        let value = digest.authorization(
            for: user, method: "GET", uri: "/dir/index.html", cnonce: "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ")
        #expect(value.contains("response=\"\(response)\""))
        #expect(value.contains("nc=00000001"))
    }

    // RFC 2617's and RFC 2069's form without qop, against the formula.
    @Test func digestWithoutQopUsesTheOldFormula() throws {
        let challenge = try #require(HTTPChallenge.parse(["Digest realm=\"r\", nonce=\"n\""]).first)
        var digest = try #require(DigestAuthorization(challenge))
        func md5(_ text: String) -> String { Hexadecimal.encode(hash(.md5, ascii(text))) }
        let expected = md5("\(md5("Mufasa:r:Circle of Life")):n:\(md5("CONNECT:h:1"))")
        let value = digest.authorization(for: user, method: "CONNECT", uri: "h:1", cnonce: "c")
        #expect(value.contains("response=\"\(expected)\""))
        #expect(!value.contains("cnonce"))
        #expect(!value.contains("algorithm"))
    }

    @Test(arguments: [
        "Basic realm=\"x\"", "Digest nonce=\"n\"", "Digest realm=\"r\"",
        "Digest realm=\"r\", nonce=\"n\", algorithm=SHA-512-256",
        "Digest realm=\"r\", nonce=\"n\", qop=\"auth-int\"", "Digest realm=\"r\", nonce=\"n\", algorithm=MD5-sess",
    ])
    func whatWeCannotAnswerIsNoDigest(_ text: String) throws {
        let challenge = try #require(HTTPChallenge.parse([text]).first)
        #expect(DigestAuthorization(challenge) == nil)
    }

    @Test func aNameOutsideASCIIIsSentExtended() throws {
        let challenge = try #require(
            HTTPChallenge.parse(["Digest realm=\"r\", nonce=\"n\", qop=\"auth\", userhash=false"]).first)
        var digest = try #require(DigestAuthorization(challenge))
        let name = HTTPCredentials(username: "Jäsøn Doe", password: "Secret, or not?")
        let value = digest.authorization(for: name, method: "GET", uri: "/", cnonce: "c")
        // RFC 7616, 3.9.2 spells this name so.
        #expect(value.contains("username*=UTF-8''J%C3%A4s%C3%B8n%20Doe"))
    }

    @Test func userhashHidesTheName() throws {
        let challenge = try #require(
            HTTPChallenge.parse(["Digest realm=\"r\", nonce=\"n\", qop=\"auth\", userhash=true"]).first)
        var digest = try #require(DigestAuthorization(challenge))
        let value = digest.authorization(for: user, method: "GET", uri: "/", cnonce: "c")
        #expect(value.contains("username=\"\(Hexadecimal.encode(hash(.md5, ascii("Mufasa:r"))))\""))
        #expect(value.contains("userhash=true"))
    }

    // SAF4.
    @Test func credentialsDoNotPrint() {
        #expect(!"\(user)".contains("Circle"))
        #expect(!"\(user)".contains("Mufasa"))
    }

    @Test func mutatedChallengesAndRepliesNeverTrap() {
        let text =
            "HTTP/1.1 407 X\r\nProxy-Authenticate: Digest realm=\"r\\\"\", nonce=\"n\", qop=\"auth\", Basic realm=\"a\"\r\nContent-Length: 2\r\n\r\nok"
        var random = RandomSource(seed: 8)
        let alphabet = ascii("=\",\\ \r\n:;aDigest0\t")
        for _ in 0..<4000 {
            var bytes = ascii(text)
            for _ in 0..<4 {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] =
                    alphabet[Int.random(in: 0..<alphabet.count, using: &random)]
            }
            var machine = tunnel(user)
            machine.start()
            machine.handle(bytes)
            machine.handleEnd()
            #expect(drain(&machine).count <= 3)
            let header = String(decoding: bytes.dropFirst(36).prefix(70), as: UTF8.self)
            for challenge in HTTPChallenge.parse([header]) { _ = DigestAuthorization(challenge) }
        }
    }
}
