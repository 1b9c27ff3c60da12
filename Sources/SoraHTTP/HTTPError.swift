/// Why bytes are not an acceptable HTTP/1.1 message (RFC 9112).
package enum HTTPError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The start line and headers (or a trailer section) are longer than `limit` bytes.
    case headTooLarge(limit: Int)
    case tooManyHeaders(limit: Int)
    case bodyTooLarge(limit: Int)
    /// The request or status line cannot be read; its beginning is attached.
    case malformedStartLine(String)
    /// A header line cannot be read; its beginning is attached.
    case malformedHeader(String)
    /// Neither HTTP/1.1 nor HTTP/1.0.
    case unsupportedVersion(String)
    /// Content-Length is no number, contradicts itself, or stands beside Transfer-Encoding.
    case invalidLength(String)
    /// A transfer coding other than `chunked`.
    case unsupportedTransferCoding(String)
    case malformedChunk(String)
    /// The connection ended within a message.
    case truncated

    /// The status with which a server answers such a request.
    package var status: Int {
        switch self {
        case .headTooLarge, .tooManyHeaders: 431
        case .bodyTooLarge: 413
        case .unsupportedVersion: 505
        case .unsupportedTransferCoding: 501
        case .malformedStartLine, .malformedHeader, .invalidLength, .malformedChunk, .truncated: 400
        }
    }

    package var description: String {
        switch self {
        case .headTooLarge(let limit): "HTTP head is longer than \(limit) bytes"
        case .tooManyHeaders(let limit): "HTTP message has more than \(limit) headers"
        case .bodyTooLarge(let limit): "HTTP body is longer than \(limit) bytes"
        case .malformedStartLine(let line): "not an HTTP start line: \(line)"
        case .malformedHeader(let line): "malformed HTTP header: \(line)"
        case .unsupportedVersion(let version): "HTTP version \(version) is not supported; use HTTP/1.1"
        case .invalidLength(let value): "invalid HTTP content length: \(value)"
        case .unsupportedTransferCoding(let value): "HTTP transfer coding \(value) is not supported; use chunked"
        case .malformedChunk(let line): "malformed HTTP chunk: \(line)"
        case .truncated: "the connection ended within an HTTP message"
        }
    }
}
