/// HTTP/1.1 or HTTP/1.0.
package enum HTTPVersion: String, Sendable {
    case http10 = "HTTP/1.0"
    case http11 = "HTTP/1.1"
}

/// The request line and headers.
package struct HTTPRequestHead: Sendable, Equatable {
    /// As sent: methods are case-sensitive.
    package var method: String
    /// As sent: `/path?query`, an absolute URL, `host:port` for CONNECT, or `*`.
    package var target: String
    package var version: HTTPVersion
    package var headers: HTTPHeaders

    package init(method: String, target: String, version: HTTPVersion = .http11, headers: HTTPHeaders = [:]) {
        self.method = method
        self.target = target
        self.version = version
        self.headers = headers
    }

    /// The target up to `?`.
    package var path: String { String(target.prefix { $0 != "?" }) }
    /// The target behind `?`, if there is one.
    package var query: String? {
        target.firstIndex(of: "?").map { String(target[target.index(after: $0)...]) }
    }

    /// Whether the connection may carry another request behind this one.
    package var keepsAlive: Bool { keepAlive(version, headers) }

    package func serialized() -> [UInt8] {
        var bytes = Array("\(method) \(target) \(version.rawValue)\r\n".utf8)
        headers.write(into: &bytes)
        return bytes + [0x0D, 0x0A]
    }
}

/// The status line and headers.
package struct HTTPResponseHead: Sendable, Equatable {
    /// 100...999.
    package var status: Int
    /// The phrase behind the status; for people only.
    package var reason: String
    package var version: HTTPVersion
    package var headers: HTTPHeaders

    /// - Parameter reason: nil takes the registered phrase.
    package init(status: Int, reason: String? = nil, version: HTTPVersion = .http11, headers: HTTPHeaders = [:]) {
        self.status = status
        self.reason = reason ?? HTTPResponseHead.phrase(status)
        self.version = version
        self.headers = headers
    }

    package var keepsAlive: Bool { keepAlive(version, headers) }

    package func serialized() -> [UInt8] {
        let phrase = String(decoding: reason.utf8.map { $0 < 0x20 || $0 == 0x7F ? 0x20 : $0 }, as: UTF8.self)
        var bytes = Array("\(version.rawValue) \(status) \(phrase)\r\n".utf8)
        headers.write(into: &bytes)
        return bytes + [0x0D, 0x0A]
    }

    /// The registered phrase of the statuses that this project sends.
    package static func phrase(_ status: Int) -> String {
        switch status {
        case 100: "Continue"
        case 101: "Switching Protocols"
        case 200: "OK"
        case 201: "Created"
        case 204: "No Content"
        case 301: "Moved Permanently"
        case 302: "Found"
        case 304: "Not Modified"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 407: "Proxy Authentication Required"
        case 408: "Request Timeout"
        case 409: "Conflict"
        case 411: "Length Required"
        case 413: "Content Too Large"
        case 415: "Unsupported Media Type"
        case 426: "Upgrade Required"
        case 429: "Too Many Requests"
        case 431: "Request Header Fields Too Large"
        case 500: "Internal Server Error"
        case 501: "Not Implemented"
        case 502: "Bad Gateway"
        case 503: "Service Unavailable"
        case 505: "HTTP Version Not Supported"
        default: ""
        }
    }
}

private func keepAlive(_ version: HTTPVersion, _ headers: HTTPHeaders) -> Bool {
    if headers.contains("Connection", token: "close") { return false }
    return version == .http11 || headers.contains("Connection", token: "keep-alive")
}

/// A whole request with its body.
package struct HTTPRequest: Sendable, Equatable {
    package var head: HTTPRequestHead
    package var body: [UInt8]

    package init(head: HTTPRequestHead, body: [UInt8] = []) {
        self.head = head
        self.body = body
    }

    /// With Content-Length, if there is a body or the method usually has one.
    package func serialized() -> [UInt8] {
        var head = head
        if !body.isEmpty || ["POST", "PUT", "PATCH"].contains(head.method) {
            head.headers["Content-Length"] = String(body.count)
        }
        return head.serialized() + body
    }
}

/// A whole response with its body.
package struct HTTPResponse: Sendable, Equatable {
    package var head: HTTPResponseHead
    package var body: [UInt8]

    package init(head: HTTPResponseHead, body: [UInt8] = []) {
        self.head = head
        self.body = body
    }

    /// - Parameter type: Content-Type.
    package init(status: Int, type: String? = nil, headers: HTTPHeaders = [:], body: [UInt8] = []) {
        head = HTTPResponseHead(status: status, headers: headers)
        if let type { head.headers["Content-Type"] = type }
        self.body = body
    }

    /// With Content-Length where the status allows a body.
    /// - Parameter request: The method answered: HEAD gets the headers alone.
    package func serialized(answering request: String = "GET") -> [UInt8] {
        var head = head
        let hasNoBody = head.status < 200 || head.status == 204 || head.status == 304
        if hasNoBody { return head.serialized() }
        head.headers["Content-Length"] = String(body.count)
        return head.serialized() + (request == "HEAD" ? [] : body)
    }
}

/// Parts of a body of unknown length (RFC 9112, 7.1).
package enum HTTPChunk {
    /// One chunk. Empty input yields nothing, since an empty chunk would end the body.
    package static func serialized(_ bytes: [UInt8]) -> [UInt8] {
        bytes.isEmpty ? [] : Array(String(bytes.count, radix: 16).utf8) + [0x0D, 0x0A] + bytes + [0x0D, 0x0A]
    }
    /// The end of the body.
    package static let last: [UInt8] = Array("0\r\n\r\n".utf8)
}
