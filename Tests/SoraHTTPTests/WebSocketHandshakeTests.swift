import SoraHTTP
import SoraWire
import Testing

private func ascii(_ text: String) -> [UInt8] { Array(text.utf8) }

@Suite struct WebSocketHandshakeTests {
    private func client(_ headers: HTTPHeaders = [:]) throws -> WebSocketClientHandshake {
        var random = RandomSource(seed: 1)
        let location = try #require(HTTPLocation("ws://h:5000/signaling?x=1"))
        return WebSocketClientHandshake(to: location, headers: headers, random: &random)
    }

    private func head(of request: [UInt8]) throws -> HTTPRequestHead {
        var parser = HTTPParser(.request)
        parser.receive(request)
        guard case .requestHead(let head)? = try parser.next() else { throw HTTPError.truncated }
        return head
    }

    /// A valid reply to `handshake`, changed by `edit`.
    private func reply(
        to handshake: WebSocketClientHandshake, _ edit: (inout HTTPResponseHead) -> Void = { _ in }
    ) throws -> [UInt8] {
        var response = try WebSocketHandshake.respond(to: head(of: handshake.request))
        edit(&response)
        return response.serialized()
    }

    // RFC 6455, 1.3.
    @Test func acceptValueOfTheStandardsExample() {
        #expect(WebSocketHandshake.acceptValue(for: "dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    }

    @Test func theRequestIsComplete() throws {
        let head = try head(of: client(["User-Agent": "Sora Swift"]).request)
        #expect(head.method == "GET")
        #expect(head.target == "/signaling?x=1")
        #expect(head.headers["Host"] == "h:5000")
        #expect(head.headers["Sec-WebSocket-Version"] == "13")
        #expect(head.headers["User-Agent"] == "Sora Swift")
        #expect(head.headers["Sec-WebSocket-Protocol"] == nil)
        #expect(head.headers["Sec-WebSocket-Extensions"] == nil)
    }

    @Test func opensInAnyPiecesAndHandsOverWhatFollows() throws {
        let whole = try reply(to: client()) + [0x81, 0x01, 0x41]
        for cut in 0...whole.count {
            var handshake = try client()
            var rest = try handshake.receive(Array(whole[..<cut]))
            if rest == nil { rest = try handshake.receive(Array(whole[cut...])) } else { rest! += whole[cut...] }
            #expect(rest == [0x81, 0x01, 0x41])
        }
        var handshake = try client()
        for byte in whole.dropLast(4) { #expect(try handshake.receive([byte]) == nil) }
        #expect(try handshake.receive([whole[whole.count - 4]]) == [])
    }

    @Test func interimAnswersAreSteppedOver() throws {
        var handshake = try client()
        #expect(try handshake.receive(ascii("HTTP/1.1 103 Early Hints\r\n\r\n")) == nil)
        #expect(try handshake.receive(reply(to: client())) == [])
    }

    // LIF13: only a complete and valid 101 opens.
    @Test func everyWrongAnswerIsRefusedForItsReason() throws {
        let cases: [((inout HTTPResponseHead) -> Void, WebSocketHandshakeError)] = [
            (
                {
                    $0.status = 302
                    $0.reason = "Found"
                    $0.headers.add("Location", "ws://other/")
                }, .notUpgraded(status: 302, reason: "Found", location: "ws://other/")
            ),
            (
                {
                    $0.status = 401
                    $0.reason = "No"
                }, .notUpgraded(status: 401, reason: "No", location: nil)
            ),
            ({ $0.headers["Upgrade"] = "h2c" }, .wrongUpgrade("h2c")),
            ({ $0.headers["Upgrade"] = nil }, .wrongUpgrade("")),
            ({ $0.headers["Connection"] = "close" }, .wrongConnection("close")),
            ({ $0.headers["Sec-WebSocket-Accept"] = "AAAA" }, .wrongAccept("AAAA")),
            ({ $0.headers["Sec-WebSocket-Accept"] = nil }, .wrongAccept("")),
            (
                { $0.headers.add("Sec-WebSocket-Extensions", "permessage-deflate") },
                .notOffered(header: "Sec-WebSocket-Extensions", value: "permessage-deflate")
            ),
            (
                { $0.headers.add("Sec-WebSocket-Protocol", "chat") },
                .notOffered(header: "Sec-WebSocket-Protocol", value: "chat")
            ),
        ]
        for (edit, error) in cases {
            var handshake = try client()
            let bytes = try reply(to: handshake, edit)
            #expect(throws: error) { try handshake.receive(bytes) }
        }
        var accepted = try client()
        let tolerant = try reply(to: accepted) {
            $0.headers["Upgrade"] = "WebSocket"
            $0.headers["Connection"] = "keep-alive, upgrade"
        }
        #expect(try accepted.receive(tolerant) == [])
    }

    @Test func whatIsNoHTTPIsRefused() throws {
        var handshake = try client()
        #expect(throws: WebSocketHandshakeError.http(.malformedStartLine("SSH-2.0-x"))) {
            try handshake.receive(ascii("SSH-2.0-x\r\n\r\n"))
        }
        var long = try client()
        #expect(throws: WebSocketHandshakeError.http(.headTooLarge(limit: 16384))) {
            try long.receive([UInt8](repeating: 0x41, count: 20_000))
        }
    }

    @Test func theServerTakesAnyOriginAndDeclinesExtensionsAndProtocols() throws {
        var request = try head(of: client().request)
        request.headers.add("Origin", "https://anywhere.example")
        request.headers.add("Sec-WebSocket-Extensions", "permessage-deflate; client_max_window_bits")
        request.headers.add("Sec-WebSocket-Protocol", "chat")
        request.headers["Connection"] = "keep-alive, Upgrade"
        request.headers["Host"] = "h"  // without its port, as some SDKs send it (sig 1.2)
        let response = try WebSocketHandshake.respond(to: request, headers: ["Server": "sora"])
        #expect(response.status == 101)
        #expect(response.headers.fields.map(\.name) == ["Upgrade", "Connection", "Sec-WebSocket-Accept", "Server"])
    }

    @Test func theServerRefusesWithTheRightStatus() throws {
        let cases: [((inout HTTPRequestHead) -> Void, Int)] = [
            ({ $0.method = "POST" }, 405), ({ $0.version = .http10 }, 405), ({ $0.headers["Upgrade"] = nil }, 400),
            ({ $0.headers["Connection"] = "close" }, 400), ({ $0.headers["Sec-WebSocket-Version"] = "8" }, 426),
            ({ $0.headers["Sec-WebSocket-Version"] = nil }, 426), ({ $0.headers["Sec-WebSocket-Key"] = nil }, 400),
            ({ $0.headers["Sec-WebSocket-Key"] = "c2hvcnQ=" }, 400),
            ({ $0.headers.add("Sec-WebSocket-Key", $0.headers["Sec-WebSocket-Key"] ?? "") }, 400),
        ]
        for (edit, status) in cases {
            var request = try head(of: client().request)
            edit(&request)
            do throws(WebSocketHandshakeError) {
                _ = try WebSocketHandshake.respond(to: request)
                Issue.record("accepted what should be \(status)")
            } catch {
                let refusal = WebSocketHandshake.refusal(of: error)
                #expect(refusal.head.status == status)
                #expect(!refusal.head.keepsAlive)
                if status == 426 { #expect(refusal.head.headers["Sec-WebSocket-Version"] == "13") }
            }
        }
    }

    @Test func mutatedRepliesNeverTrap() throws {
        let valid = try reply(to: client())
        var random = RandomSource(seed: 5)
        for _ in 0..<2000 {
            var bytes = valid
            for _ in 0..<3 {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            var handshake = try client()
            _ = try? handshake.receive(bytes)
        }
    }
}
