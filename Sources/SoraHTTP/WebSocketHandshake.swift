import SoraCrypto
import SoraWire

/// Why a WebSocket was not opened (RFC 6455, section 4).
package enum WebSocketHandshakeError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The server answered with another status than 101. Redirects are not followed; `location` is theirs.
    case notUpgraded(status: Int, reason: String, location: String?)
    /// `Upgrade` is not `websocket`.
    case wrongUpgrade(String)
    /// `Connection` does not hold `Upgrade`.
    case wrongConnection(String)
    /// `Sec-WebSocket-Accept` does not answer our key: whatever replied is no WebSocket server, or a cache.
    case wrongAccept(String)
    /// The server chose an extension or a subprotocol that was not offered.
    case notOffered(header: String, value: String)
    /// The reply is no HTTP, too long, or ended early.
    case http(HTTPError)
    /// Server side: the request is no GET of HTTP/1.1.
    case wrongMethod(String)
    /// Server side: `Sec-WebSocket-Version` is not 13.
    case wrongVersion(String)
    /// Server side: `Sec-WebSocket-Key` is not the Base64 of 16 bytes.
    case wrongKey(String)

    package var description: String {
        switch self {
        case .notUpgraded(let status, let reason, let location):
            "the server answered \(status) \(reason) instead of opening a WebSocket"
                + (location.map { _ in " (a redirect; use the URL of the WebSocket itself)" } ?? "")
        case .wrongUpgrade(let value): "the WebSocket handshake's Upgrade header is \"\(value)\", not \"websocket\""
        case .wrongConnection(let value): "the WebSocket handshake's Connection header is \"\(value)\", not \"Upgrade\""
        case .wrongAccept(let value): "the WebSocket handshake was answered with a wrong accept value \"\(value)\""
        case .notOffered(let header, let value): "the server chose \(header) \"\(value)\", which was not offered"
        case .http(let error): "the WebSocket handshake failed: \(error)"
        case .wrongMethod(let method): "a WebSocket is opened with GET over HTTP/1.1, not \(method)"
        case .wrongVersion(let version): "WebSocket version \"\(version)\" is not supported; use 13"
        case .wrongKey(let key): "Sec-WebSocket-Key \"\(key)\" is not the Base64 of 16 bytes"
        }
    }
}

/// What both sides of the handshake share.
package enum WebSocketHandshake {
    /// The value of Sec-WebSocket-Accept for a key (RFC 6455, 4.2.2).
    package static func acceptValue(for key: String) -> String {
        Base64.encode(hash(.sha1, Array((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").utf8)))
    }

    /// Whether a request asks for a WebSocket at all; what is wrong with it ``respond(to:headers:)`` tells.
    package static func isRequested(by head: HTTPRequestHead) -> Bool {
        head.headers.contains("Upgrade", token: "websocket")
    }

    /// The server's 101 to an upgrade request. Any Origin is taken, offered extensions are declined, and no
    /// subprotocol is chosen.
    /// - Parameter headers: Additional ones, such as `Server`.
    package static func respond(
        to head: HTTPRequestHead, headers: HTTPHeaders = [:]
    ) throws(WebSocketHandshakeError) -> HTTPResponseHead {
        guard head.method == "GET", head.version == .http11 else {
            throw .wrongMethod("\(head.method) \(head.version.rawValue)")
        }
        guard head.headers.contains("Upgrade", token: "websocket") else {
            throw .wrongUpgrade(excerpt(head.headers["Upgrade"] ?? ""))
        }
        guard head.headers.contains("Connection", token: "upgrade") else {
            throw .wrongConnection(excerpt(head.headers["Connection"] ?? ""))
        }
        guard head.headers.values("Sec-WebSocket-Version") == ["13"] else {
            throw .wrongVersion(excerpt(head.headers["Sec-WebSocket-Version"] ?? ""))
        }
        let keys = head.headers.values("Sec-WebSocket-Key")
        guard keys.count == 1, keys[0].utf8.count == 24, Base64.decode(keys[0])?.count == 16 else {
            throw .wrongKey(excerpt(keys.first ?? ""))
        }
        var reply: HTTPHeaders = ["Upgrade": "websocket", "Connection": "Upgrade"]
        reply.add("Sec-WebSocket-Accept", acceptValue(for: keys[0]))
        for field in headers.fields { reply.add(field.name, field.value) }
        return HTTPResponseHead(status: 101, headers: reply)
    }

    /// The answer to a request that ``respond(to:headers:)`` refused. The connection ends behind it.
    package static func refusal(of error: WebSocketHandshakeError) -> HTTPResponse {
        var headers: HTTPHeaders = ["Connection": "close"]
        let status: Int
        switch error {
        case .wrongVersion:
            status = 426
            headers.add("Sec-WebSocket-Version", "13")
            headers.add("Upgrade", "websocket")
        case .wrongMethod:
            status = 405
            headers.add("Allow", "GET")
        case .http(let error): status = error.status
        default: status = 400
        }
        return HTTPResponse(
            status: status, type: "text/plain; charset=utf-8", headers: headers, body: Array("\(error)\n".utf8))
    }
}

/// The client's side of the handshake: one request, one reply, in any pieces.
package struct WebSocketClientHandshake: Sendable {
    /// The bytes to send.
    package let request: [UInt8]
    private let accept: String
    private var parser = HTTPParser(.response)

    /// - Parameters:
    ///   - headers: Additional ones, such as `User-Agent`. They come behind the handshake's own.
    ///   - random: Source of the key.
    package init(to location: HTTPLocation, headers: HTTPHeaders = [:], random: inout RandomSource) {
        let key = Base64.encode(random.bytes(16))
        accept = WebSocketHandshake.acceptValue(for: key)
        var all: HTTPHeaders = [
            "Host": location.authority, "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": key,
            "Sec-WebSocket-Version": "13",
        ]
        for field in headers.fields { all.add(field.name, field.value) }
        request = HTTPRequestHead(method: "GET", target: location.target, headers: all).serialized()
    }

    /// Takes bytes of the reply. Nil: more are needed. Otherwise the WebSocket is open, and the result is what
    /// already belongs to it (often nothing).
    package mutating func receive(_ bytes: [UInt8]) throws(WebSocketHandshakeError) -> [UInt8]? {
        parser.receive(bytes)
        return try advance()
    }

    /// The stream ended before the handshake was complete.
    package mutating func receiveEnd() -> WebSocketHandshakeError { .http(.truncated) }

    private mutating func advance() throws(WebSocketHandshakeError) -> [UInt8]? {
        while let event = try nextEvent() {
            guard case .responseHead(let head) = event else { continue }
            // Interim answers such as 100 and 103 are stepped over.
            if head.status < 200, head.status != 101 { continue }
            if let refusal = problem(with: head) { throw refusal }
            _ = try nextEvent()  // the end of the head's message
            return parser.takeRest()
        }
        return nil
    }

    private mutating func nextEvent() throws(WebSocketHandshakeError) -> HTTPParser.Event? {
        do throws(HTTPError) {
            return try parser.next()
        } catch {
            throw .http(error)
        }
    }

    private func problem(with head: HTTPResponseHead) -> WebSocketHandshakeError? {
        guard head.status == 101 else {
            return .notUpgraded(
                status: head.status, reason: excerpt(head.reason), location: head.headers["Location"].map(excerpt))
        }
        guard head.headers.contains("Upgrade", token: "websocket") else {
            return .wrongUpgrade(excerpt(head.headers["Upgrade"] ?? ""))
        }
        guard head.headers.contains("Connection", token: "upgrade") else {
            return .wrongConnection(excerpt(head.headers["Connection"] ?? ""))
        }
        guard head.headers.values("Sec-WebSocket-Accept") == [accept] else {
            return .wrongAccept(excerpt(head.headers["Sec-WebSocket-Accept"] ?? ""))
        }
        for header in ["Sec-WebSocket-Extensions", "Sec-WebSocket-Protocol"] {
            if let value = head.headers[header], !value.isEmpty {
                return .notOffered(header: header, value: excerpt(value))
            }
        }
        return nil
    }
}
