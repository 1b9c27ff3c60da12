import SoraHTTP
import SoraWire
import Testing

/// Feeds `pieces`, then the stream's end if asked, and collects everything.
private func events(
    _ kind: HTTPParser.Kind, _ pieces: [[UInt8]], limits: HTTPParser.Limits = HTTPParser.Limits(), ends: Bool = false,
    method: String = "GET"
) throws(HTTPError) -> [HTTPParser.Event] {
    var parser = HTTPParser(kind, limits: limits)
    parser.requestMethod = method
    var result: [HTTPParser.Event] = []
    for piece in pieces {
        parser.receive(piece)
        while let event = try parser.next() { result.append(event) }
    }
    if ends {
        parser.receiveEnd()
        while let event = try parser.next() { result.append(event) }
    }
    return result
}

private func ascii(_ text: String) -> [UInt8] { Array(text.utf8) }

private func singly(_ bytes: [UInt8]) -> [[UInt8]] { bytes.map { [$0] } }

/// Joins neighbouring body pieces, so that cuts do not show.
private func joined(_ events: [HTTPParser.Event]) -> [HTTPParser.Event] {
    var result: [HTTPParser.Event] = []
    for event in events {
        if case .body(let next) = event, case .body(let last) = result.last {
            result[result.count - 1] = .body(last + next)
        } else {
            result.append(event)
        }
    }
    return result
}

private let samples: [(HTTPParser.Kind, String)] = [
    (.request, "GET /signaling?a=b HTTP/1.1\r\nHost: example.com:5000\r\nUpgrade: websocket\r\n\r\n"),
    (.request, "POST /api HTTP/1.1\r\nContent-Length: 5\r\nX-Empty:\r\n\r\nhelloGET / HTTP/1.0\r\n\r\n"),
    (
        .request,
        "PUT /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4;x=\"y\"\r\nWiki\r\n6\r\npedia \r\n1A\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\nTrailer: t\r\n\r\n"
    ),
    (
        .response,
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 304 \r\nContent-Length: 9\r\n\r\n"
    ),
    (.response, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\ntransfer-encoding: CHUNKED\r\n\r\n0\r\n\r\n"),
    (.response, "HTTP/1.0 200\r\nServer: s\r\n\r\nuntil the end"),
    (.response, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"),
]

@Suite struct HTTPParserTests {
    @Test func readsARequestWithItsHeaders() throws {
        let head = HTTPRequestHead(
            method: "GET", target: "/signaling?a=b",
            headers: ["Host": "example.com:5000", "Upgrade": "websocket"])
        #expect(try events(.request, [ascii(samples[0].1)]) == [.requestHead(head), .end])
        #expect(head.path == "/signaling")
        #expect(head.query == "a=b")
    }

    @Test func readsPipelinedRequests() throws {
        let seen = try events(.request, [ascii(samples[1].1)])
        #expect(seen.count == 5)
        #expect(seen[1] == .body(ascii("hello")))
        #expect(seen[3] == .requestHead(HTTPRequestHead(method: "GET", target: "/", version: .http10)))
    }

    @Test func joinsChunksAndDropsTrailers() throws {
        let seen = joined(try events(.request, [ascii(samples[2].1)]))
        #expect(seen.count == 3)
        #expect(seen[1] == .body(ascii("Wikipedia abcdefghijklmnopqrstuvwxyz")))
    }

    @Test func readsResponsesWithoutBodyByStatusAndMethod() throws {
        let seen = try events(.response, [ascii(samples[3].1)])
        #expect(seen.count == 7)
        let toHead = try events(.response, [ascii("HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n")], method: "HEAD")
        #expect(toHead.last == .end)
    }

    @Test func aResponseWithoutLengthLastsUntilTheEnd() throws {
        #expect(try events(.response, [ascii(samples[5].1)]).count == 2)
        #expect(try events(.response, [ascii(samples[5].1)], ends: true).last == .end)
    }

    @Test func nothingIsReadBehindASwitchOfProtocols() throws {
        for (method, text) in [("GET", samples[6].1), ("CONNECT", "HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n")] {
            var parser = HTTPParser(.response)
            parser.requestMethod = method
            parser.receive(ascii(text + "HTTP/1.1 200 OK\r\n\r\n"))
            _ = try parser.next()
            #expect(try parser.next() == .end)
            #expect(try parser.next() == nil)
            #expect(parser.takeRest() == ascii("HTTP/1.1 200 OK\r\n\r\n"))
            #expect(parser.buffered == 0)
        }
    }

    @Test(arguments: samples.indices) func anyPiecesGiveTheSameEvents(_ index: Int) throws {
        let (kind, text) = samples[index]
        let whole = joined(try events(kind, [ascii(text)], ends: true))
        #expect(joined(try events(kind, singly(ascii(text)), ends: true)) == whole)
        var random = RandomSource(seed: UInt64(index))
        for _ in 0..<50 {
            var pieces: [[UInt8]] = []
            var rest = ascii(text)[...]
            while !rest.isEmpty {
                let count = Int.random(in: 1...min(30, rest.count), using: &random)
                pieces.append(Array(rest.prefix(count)))
                rest = rest.dropFirst(count)
            }
            #expect(joined(try events(kind, pieces, ends: true)) == whole)
        }
    }

    @Test(arguments: samples.indices) func aCutStreamIsIncompleteOrTruncatedNeverWrong(_ index: Int) throws {
        let (kind, text) = samples[index]
        let bytes = ascii(text)
        let whole = joined(try events(kind, [bytes]))
        for length in 0..<bytes.count {
            let open = joined(try events(kind, [Array(bytes[..<length])]))
            // What was told so far is the beginning of what the whole tells.
            for (a, b) in zip(open, whole) {
                if case .body(let part) = a, case .body(let full) = b {
                    #expect(full.starts(with: part))
                } else {
                    #expect(a == b)
                }
            }
            do {
                let closed = try events(kind, [Array(bytes[..<length])], ends: true)
                #expect(closed.isEmpty || closed.last == .end)
            } catch {
                #expect(error == .truncated)
            }
        }
    }

    @Test(arguments: samples.indices) func changedBytesNeverTrap(_ index: Int) {
        let (kind, text) = samples[index]
        let bytes = ascii(text)
        for position in bytes.indices {
            for value: UInt8 in [0, 0x0A, 0x0D, 0x20, 0x3A, 0x7F, 0xFF, bytes[position] ^ 1, bytes[position] ^ 0x20] {
                var changed = bytes
                changed[position] = value
                _ = try? events(kind, [changed], ends: true)
                _ = try? events(kind, singly(changed), ends: true)
            }
        }
    }

    @Test func randomMutationsNeverTrapAndAgreeInAnyPieces() {
        var random = RandomSource(seed: 2024)
        let alphabet = ascii("GETHP/1.0\r\n\r\n: chunkedContent-Length0123456789abcdef;,\t\u{0}é")
        for round in 0..<4000 {
            let (kind, text) = samples[round % samples.count]
            var bytes = ascii(text)
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                let position = Int.random(in: 0..<bytes.count, using: &random)
                let byte = alphabet[Int.random(in: 0..<alphabet.count, using: &random)]
                switch Int.random(in: 0..<3, using: &random) {
                case 0: bytes[position] = byte
                case 1: bytes.insert(byte, at: position)
                default: bytes.remove(at: position)
                }
            }
            let whole = Result { joined(try events(kind, [bytes], ends: true)) }
            let pieces = Result { joined(try events(kind, singly(bytes), ends: true)) }
            switch (whole, pieces) {
            case (.success(let a), .success(let b)): #expect(a == b)
            case (.failure(let a), .failure(let b)): #expect(a as? HTTPError == b as? HTTPError)
            default: Issue.record("pieces change the outcome of \(text.debugDescription)")
            }
        }
    }

    @Test(arguments: [
        ("GET /\r\n\r\n", HTTPError.malformedStartLine("GET /")),
        ("GET  / HTTP/1.1\r\n\r\n", .malformedStartLine("GET  / HTTP/1.1")),
        ("G@T / HTTP/1.1\r\n\r\n", .malformedStartLine("G@T / HTTP/1.1")),
        ("GET / HTTP/2.0\r\n\r\n", .unsupportedVersion("HTTP/2.0")),
        ("GET / HTTPS/1.1\r\n\r\n", .malformedStartLine("GET / HTTPS/1.1")),
        ("GET / HTTP/1.1\r\nA : b\r\n\r\n", .malformedHeader("A : b")),
        ("GET / HTTP/1.1\r\nA: b\r\n folded\r\n\r\n", .malformedHeader(" folded")),
        ("GET / HTTP/1.1\r\n: b\r\n\r\n", .malformedHeader(": b")),
        ("GET / HTTP/1.1\r\nno colon\r\n\r\n", .malformedHeader("no colon")),
        ("GET / HTTP/1.1\r\nA: b\rc\r\n\r\n", .malformedHeader("A: b\rc")),
        ("GET / HTTP/1.1\r\nContent-Length: 5, 6\r\n\r\n", .invalidLength("5, 6")),
        ("GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", .invalidLength("-1")),
        ("GET / HTTP/1.1\r\nContent-Length: +1\r\n\r\n", .invalidLength("+1")),
        ("GET / HTTP/1.1\r\nContent-Length:\r\n\r\n", .invalidLength("")),
        ("GET / HTTP/1.1\r\nContent-Length: 1048577\r\n\r\n", .bodyTooLarge(limit: 1 << 20)),
        ("GET / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", .bodyTooLarge(limit: 1 << 20)),
        ("GET / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", .unsupportedTransferCoding("gzip, chunked")),
        (
            "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
            .invalidLength("Content-Length beside Transfer-Encoding")
        ),
        ("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", .malformedChunk("x")),
        ("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n\r\n", .malformedChunk("")),
        ("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", .headTooLarge(limit: 2)),
        ("GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", .bodyTooLarge(limit: 1 << 20)),
    ])
    func refuses(_ text: String, _ error: HTTPError) {
        #expect(throws: error) { try events(.request, [ascii(text)]) }
        #expect(throws: error) { try events(.request, singly(ascii(text))) }
    }

    /// A server of another protocol says its line and waits; nobody waits with it.
    @Test func anAnswerOfAnotherProtocolIsRefusedAfterItsFirstLine() {
        var parser = HTTPParser(.response)
        parser.receive(ascii("220 mail.example.org ESMTP\r"))
        #expect(throws: Never.self) { try parser.next() }
        parser.receive(ascii("\n"))
        #expect(throws: HTTPError.malformedStartLine("220 mail.example.org ESMTP")) { try parser.next() }
    }

    @Test func staysFailed() {
        var parser = HTTPParser(.request)
        parser.receive(ascii("nonsense\r\n\r\n"))
        #expect(throws: HTTPError.malformedStartLine("nonsense")) { try parser.next() }
        parser.receive(ascii(samples[0].1))
        #expect(throws: HTTPError.malformedStartLine("nonsense")) { try parser.next() }
    }

    // SRV1: heads are bounded before they are complete, whatever the pieces.
    @Test func anEndlessHeadIsRefusedAtTheLimit() throws {
        let limits = HTTPParser.Limits(head: 200, headers: 5, body: 10)
        for start in ["", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nA: "] {
            var parser = HTTPParser(.request, limits: limits)
            parser.receive(ascii(start))
            var fed = start.utf8.count
            #expect(throws: HTTPError.headTooLarge(limit: 200)) {
                while fed < 1000 {
                    _ = try parser.next()
                    parser.receive([UInt8(ascii: "x")])
                    fed += 1
                }
            }
            #expect(fed <= 201)
        }
        #expect(throws: HTTPError.headTooLarge(limit: 200)) {
            try events(.request, [ascii(String(repeating: "\r\n", count: 200))], limits: limits)
        }
        let many = "GET / HTTP/1.1\r\n" + String(repeating: "a: b\r\n", count: 6) + "\r\n"
        #expect(throws: HTTPError.tooManyHeaders(limit: 5)) { try events(.request, [ascii(many)], limits: limits) }
    }

    @Test func bodiesAreBoundedInEveryFraming() {
        let limits = HTTPParser.Limits(head: 1000, headers: 5, body: 10)
        let error = HTTPError.bodyTooLarge(limit: 10)
        #expect(throws: error) {
            try events(.response, [ascii("HTTP/1.1 200 OK\r\n\r\n01234567890")], limits: limits)
        }
        #expect(throws: error) {
            let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n012345\r\n5\r\n"
            return try events(.response, [ascii(chunks)], limits: limits)
        }
    }

    @Test func bareLineFeedsEndLines() throws {
        let seen = try events(.request, [ascii("GET / HTTP/1.1\nA: b\n\n")])
        #expect(seen == [.requestHead(HTTPRequestHead(method: "GET", target: "/", headers: ["A": "b"])), .end])
    }

    @Test func writesWhatItReads() throws {
        for (kind, text) in samples {
            for event in try events(kind, [ascii(text)]) {
                switch event {
                case .requestHead(let head):
                    #expect(try events(.request, [head.serialized()]).first == event)
                case .responseHead(let head):
                    #expect(try events(.response, [head.serialized()]).first == event)
                case .body, .end: break
                }
            }
        }
    }

    @Test func noHeaderValueCanAddALine() throws {
        var head = HTTPRequestHead(method: "GET", target: "/", headers: ["A": "b\r\nEvil: 1\u{0}\nEvil: 2"])
        head.headers.add("Bad Name", "x")
        head.headers.add("Bad\r\nName", "x")
        let seen = try events(.request, [head.serialized()])
        guard case .requestHead(let read) = seen.first else {
            Issue.record("no head")
            return
        }
        #expect(read.headers.fields.map(\.name) == ["A"])
    }

    @Test func wholeMessagesAreCollected() throws {
        var collector = HTTPCollector(.response)
        for byte in ascii("HTTP/1.1 100 Continue\r\n\r\n")
            + HTTPResponse(status: 200, type: "text/plain", body: ascii("hi")).serialized()
        {
            collector.receive([byte])
            if let message = try collector.next() {
                guard case .response(let response) = message else {
                    Issue.record("not a response")
                    return
                }
                #expect(response.head.status == 200)
                #expect(response.head.headers["content-type"] == "text/plain")
                #expect(response.body == ascii("hi"))
                #expect(collector.isIdle)
                return
            }
        }
        Issue.record("no message")
    }

    @Test func chunksAreWrittenAsRead() throws {
        let head = HTTPResponseHead(status: 200, headers: ["Transfer-Encoding": "chunked"]).serialized()
        let body = HTTPChunk.serialized(ascii("seventeen letters")) + HTTPChunk.serialized([]) + HTTPChunk.last
        let seen = try events(.response, [head + body])
        #expect(Array(seen.dropFirst()) == [.body(ascii("seventeen letters")), .end])
    }

    @Test func keepAliveFollowsVersionAndHeader() {
        func head(_ version: HTTPVersion, _ value: String?) -> HTTPRequestHead {
            var head = HTTPRequestHead(method: "GET", target: "/", version: version)
            head.headers["Connection"] = value
            return head
        }
        #expect(head(.http11, nil).keepsAlive)
        #expect(!head(.http11, "Foo, CLOSE").keepsAlive)
        #expect(!head(.http10, nil).keepsAlive)
        #expect(head(.http10, "Keep-Alive").keepsAlive)
    }

    @Test func headersCompareWithoutCase() {
        var headers: HTTPHeaders = ["Content-Type": "a", "X": "1"]
        headers.add("x", "2, 3")
        #expect(headers["CONTENT-TYPE"] == "a")
        #expect(headers.values("X") == ["1", "2, 3"])
        #expect(headers.list("X") == ["1", "2", "3"])
        #expect(headers.contains("x", token: "3"))
        headers["x"] = "4"
        #expect(headers.fields.map(\.value) == ["a", "4"])
        headers["X"] = nil
        #expect(headers.count == 1)
    }

    @Test(arguments: [
        ("wss://sora.example.com/signaling", "sora.example.com", 443, "/signaling", "sora.example.com"),
        ("ws://127.0.0.1:5000/signaling?a=b&c", "127.0.0.1", 5000, "/signaling?a=b&c", "127.0.0.1:5000"),
        ("WS://h?q", "h", 80, "/?q", "h"),
        ("https://[2001:db8::1]:8443", "2001:db8::1", 8443, "/", "[2001:db8::1]:8443"),
        ("http://h:/x#fragment", "h", 80, "/x", "h"), ("ws://h/%E3%81%82?é", "h", 80, "/%E3%81%82?%C3%A9", "h"),
    ])
    func splitsURLs(_ text: String, _ host: String, _ port: UInt16, _ target: String, _ authority: String) throws {
        let location = try #require(HTTPLocation(text))
        #expect(location.host == host)
        #expect(location.port == port)
        #expect(location.target == target)
        #expect(location.authority == authority)
    }

    @Test(arguments: [
        "", "ws:/h", "ftp://h/", "ws://", "ws:///p", "ws://h:0/", "ws://h:65536/", "ws://h:1:2/", "ws://h:x/",
        "ws://[::1/",
        "ws://[h]/", "ws://[::1]x/", "ws://user:secret@h/", "ws://h /", "ws://h/a b", "ws://h/\r\nEvil: 1",
    ])
    func refusesURLs(_ text: String) {
        #expect(HTTPLocation(text) == nil)
    }

    // SAF4: queries may hold tokens.
    @Test func aLocationsTextHidesTheQuery() {
        #expect(HTTPLocation("ws://h/p?token=secret").map { "\($0)" } == "ws://h/p?…")
    }
}
