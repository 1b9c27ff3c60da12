import SoraWire

/// Reads a stream of HTTP/1.1 messages (RFC 9112) in any pieces.
///
/// Feed ``receive(_:)``, then call ``next()`` until it returns nil. Memory is bounded by the limits and
/// by what is fed at once; each byte is looked at a constant number of times, also when bytes come one by
/// one. After an error the parser stays failed: the rest of the stream has no meaning any more.
///
/// It is strict where leniency would let two readers see different messages (Content-Length beside
/// Transfer-Encoding, folded lines, blanks before the colon), and takes a bare LF for a line's end.
package struct HTTPParser: Sendable {
    package enum Kind: Sendable { case request, response }

    package struct Limits: Sendable, Equatable {
        /// Bytes of the start line and headers together, and of a chunked body's trailers. Default 16 KiB.
        package var head = 16 * 1024
        /// Default 100.
        package var headers = 100
        /// Bytes of one message's body. Default 1 MiB.
        package var body = 1 << 20
        package init() {}
        package init(head: Int = 16 * 1024, headers: Int = 100, body: Int = 1 << 20) {
            self.head = head
            self.headers = headers
            self.body = body
        }
    }

    package enum Event: Sendable, Equatable {
        case requestHead(HTTPRequestHead)
        case responseHead(HTTPResponseHead)
        /// A piece of the body, never empty.
        case body([UInt8])
        /// The message is complete. Behind a head that switches protocols (101, or 2xx to CONNECT) nothing
        /// more is read: see ``takeRest()``.
        case end
    }

    private enum State {
        case startLine
        /// → body states, end
        case headers
        case fixedBody(left: Int)
        case chunkSize
        case chunkData(left: Int)
        case chunkEnd
        case trailers
        /// A response without a length.
        case bodyUntilEnd
        /// The message's end is to be told.
        case ending
        /// The stream belongs to another protocol now.
        case switched
        case failed(HTTPError)
    }

    private let kind: Kind
    private let limits: Limits
    private var state = State.startLine
    private var buffer: [UInt8] = []
    private var position = 0
    /// Where to go on looking for a line's end.
    private var searched = 0
    private var isEnded = false
    /// Bytes of the current head or trailer section already consumed.
    private var headBytes = 0
    private var bodyBytes = 0
    private var startLine = ""
    private var headers = HTTPHeaders()
    private var switches = false

    /// For responses: the method of the request that the next response answers. HEAD has no body, and a 2xx
    /// to CONNECT switches protocols.
    package var requestMethod = "GET"

    package init(_ kind: Kind, limits: Limits = Limits()) {
        self.kind = kind
        self.limits = limits
    }

    /// Bytes received and not yet used.
    package var buffered: Int { buffer.count - position }

    /// Whether the parser stands between two messages with nothing begun.
    package var isIdle: Bool {
        if case .startLine = state { return buffered == 0 && headBytes == 0 }
        return false
    }

    package mutating func receive(_ bytes: [UInt8]) {
        if position == buffer.count {
            buffer = bytes
            position = 0
            searched = 0
        } else {
            if position > 4096, position > buffer.count / 2 { compact() }
            buffer += bytes
        }
    }

    /// The peer sends no more. A response without a length is complete now.
    package mutating func receiveEnd() { isEnded = true }

    /// The bytes behind a head that switched protocols (or whatever is unread).
    package mutating func takeRest() -> [UInt8] {
        defer {
            buffer = []
            position = 0
            searched = 0
        }
        return Array(buffer[position...])
    }

    /// The next event, or nil if more bytes are needed.
    package mutating func next() throws(HTTPError) -> Event? {
        do throws(HTTPError) {
            return try step()
        } catch {
            state = .failed(error)
            throw error
        }
    }

    private mutating func step() throws(HTTPError) -> Event? {
        while true {
            switch state {
            case .startLine:
                guard let line = try readLine(limit: limits.head) else {
                    if isEnded, buffered > 0 || headBytes > 0 { throw .truncated }
                    return nil
                }
                if line.isEmpty { continue }  // stray line ends before a message (2.2); counted as head
                // A server of another protocol says what it has to say and waits: no head will come.
                if case .response = kind, !line.hasPrefix("HTTP/") { throw .malformedStartLine(excerpt(line)) }
                startLine = line
                headers = HTTPHeaders()
                state = .headers
            case .headers:
                guard let line = try readLine(limit: limits.head) else { return try needMore() }
                if !line.isEmpty {
                    try addHeader(line)
                    continue
                }
                headBytes = 0
                return try finishHead()
            case .fixedBody(let left):
                if left == 0 {
                    state = .ending
                    continue
                }
                guard let piece = take(left) else { return try needMore() }
                state = .fixedBody(left: left - piece.count)
                return .body(piece)
            case .chunkSize:
                guard let line = try readLine(limit: 1024) else { return try needMore() }
                headBytes = 0
                let size = try chunkSize(line)
                state = size == 0 ? .trailers : .chunkData(left: size)
            case .chunkData(let left):
                if left == 0 {
                    state = .chunkEnd
                    continue
                }
                guard let piece = take(left) else { return try needMore() }
                state = .chunkData(left: left - piece.count)
                return .body(piece)
            case .chunkEnd:
                guard let line = try readLine(limit: 2) else { return try needMore() }
                guard line.isEmpty else { throw .malformedChunk(excerpt(line)) }
                headBytes = 0
                state = .chunkSize
            case .trailers:
                guard let line = try readLine(limit: limits.head) else { return try needMore() }
                if line.isEmpty { state = .ending }
            case .bodyUntilEnd:
                if let piece = take(.max) {
                    bodyBytes += piece.count
                    if bodyBytes > limits.body { throw .bodyTooLarge(limit: limits.body) }
                    return .body(piece)
                }
                guard isEnded else { return nil }
                state = .ending
            case .ending:
                headBytes = 0
                bodyBytes = 0
                state = switches ? .switched : .startLine
                return .end
            case .switched: return nil
            case .failed(let error): throw error
            }
        }
    }

    private func needMore() throws(HTTPError) -> Event? {
        if isEnded { throw .truncated }
        return nil
    }

    // MARK: Bytes

    private mutating func compact() {
        buffer.removeFirst(position)
        searched = max(0, searched - position)
        position = 0
    }

    /// Up to `count` of the bytes at hand; nil if there are none.
    private mutating func take(_ count: Int) -> [UInt8]? {
        let size = min(count, buffered)
        guard size > 0 else { return nil }
        if position == 0, size == buffer.count {
            defer {
                buffer = []
                searched = 0
            }
            return buffer
        }
        defer { position += size }
        return Array(buffer[position..<(position + size)])
    }

    /// The next line without its end, counted against `limit` together with what `headBytes` holds.
    private mutating func readLine(limit: Int) throws(HTTPError) -> String? {
        let start = max(searched, position)
        guard let newline = buffer[start...].firstIndex(of: 0x0A) else {
            searched = buffer.count
            if headBytes + buffered > limit { throw .headTooLarge(limit: limit) }
            return nil
        }
        let length = newline + 1 - position
        guard headBytes + length <= limit else { throw .headTooLarge(limit: limit) }
        var line = buffer[position..<newline]
        if line.last == 0x0D { line.removeLast() }
        headBytes += length
        position = newline + 1
        searched = position
        let text = String(decoding: line, as: UTF8.self)
        // CR, NUL and other control characters have no place in any line of a message.
        guard !line.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }) else {
            throw .malformedHeader(excerpt(text))
        }
        return text
    }

    // MARK: Head

    private mutating func addHeader(_ line: String) throws(HTTPError) {
        guard headers.count < limits.headers else { throw .tooManyHeaders(limit: limits.headers) }
        guard let colon = line.utf8.firstIndex(of: UInt8(ascii: ":")), colon != line.utf8.startIndex,
            line.utf8[..<colon].allSatisfy(isTokenCharacter)
        else { throw .malformedHeader(excerpt(line)) }
        headers.add(String(line[..<colon]), trimmed(line[line.utf8.index(after: colon)...]))
    }

    private mutating func finishHead() throws(HTTPError) -> Event {
        bodyBytes = 0
        switches = false
        switch kind {
        case .request:
            let head = try requestHead()
            state = try framing() ?? .ending
            return .requestHead(head)
        case .response:
            let head = try responseHead()
            switches = head.status == 101 || requestMethod == "CONNECT" && head.status / 100 == 2
            if switches || head.status < 200 || head.status == 204 || head.status == 304 || requestMethod == "HEAD" {
                state = .ending
            } else {
                state = try framing() ?? .bodyUntilEnd
            }
            return .responseHead(head)
        }
    }

    private func requestHead() throws(HTTPError) -> HTTPRequestHead {
        let parts = startLine.split(separator: " ", omittingEmptySubsequences: false)
        guard parts.count == 3, !parts[0].isEmpty, parts[0].utf8.allSatisfy(isTokenCharacter), !parts[1].isEmpty,
            parts[1].utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else { throw .malformedStartLine(excerpt(startLine)) }
        return HTTPRequestHead(
            method: String(parts[0]), target: String(parts[1]), version: try version(parts[2]), headers: headers)
    }

    private func responseHead() throws(HTTPError) -> HTTPResponseHead {
        let parts = startLine.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count >= 2 else { throw .malformedStartLine(excerpt(startLine)) }
        let version = try version(parts[0])
        guard parts[1].utf8.count == 3, parts[1].utf8.allSatisfy({ (48...57).contains($0) }),
            let status = Int(parts[1]),
            status >= 100
        else { throw .malformedStartLine(excerpt(startLine)) }
        return HTTPResponseHead(
            status: status, reason: parts.count > 2 ? String(parts[2]) : "", version: version, headers: headers)
    }

    private func version(_ text: Substring) throws(HTTPError) -> HTTPVersion {
        if let version = HTTPVersion(rawValue: String(text)) { return version }
        let bytes = Array(text.utf8)
        guard bytes.count == 8, text.hasPrefix("HTTP/"), (48...57).contains(bytes[5]), bytes[6] == UInt8(ascii: "."),
            (48...57).contains(bytes[7])
        else { throw .malformedStartLine(excerpt(startLine)) }
        // A later minor version promises to be readable as 1.1.
        if bytes[5] == UInt8(ascii: "1") { return .http11 }
        throw .unsupportedVersion(String(text))
    }

    /// How the body's end is found; nil if the headers say nothing of it (RFC 9112, 6.3).
    private func framing() throws(HTTPError) -> State? {
        let codings = headers.list("Transfer-Encoding")
        let lengths = headers.list("Content-Length")
        if !headers.values("Transfer-Encoding").isEmpty {
            guard codings.count == 1, HTTPHeaders.isSame(codings[0], "chunked") else {
                throw .unsupportedTransferCoding(excerpt(codings.joined(separator: ", ")))
            }
            guard headers.values("Content-Length").isEmpty else {
                throw .invalidLength("Content-Length beside Transfer-Encoding")
            }
            return .chunkSize
        }
        guard !headers.values("Content-Length").isEmpty else { return nil }
        guard let first = lengths.first, lengths.allSatisfy({ $0 == first }), !first.isEmpty,
            first.utf8.allSatisfy({ (48...57).contains($0) })
        else { throw .invalidLength(excerpt(lengths.joined(separator: ", "))) }
        guard let length = Int(first), length <= limits.body else { throw .bodyTooLarge(limit: limits.body) }
        return .fixedBody(left: length)
    }

    private mutating func chunkSize(_ line: String) throws(HTTPError) -> Int {
        let digits = trimmed(line.prefix { $0 != ";" })
        guard !digits.isEmpty,
            digits.utf8.allSatisfy({
                (48...57).contains($0) || (65...70).contains($0) || (97...102).contains($0)
            })
        else { throw .malformedChunk(excerpt(line)) }
        guard let size = Int(digits, radix: 16), size <= limits.body - bodyBytes else {
            throw .bodyTooLarge(limit: limits.body)
        }
        bodyBytes += size
        return size
    }
}

/// The beginning of untrusted text, for error messages.
func excerpt(_ text: String) -> String {
    let start = text.prefix(60)
    return start.endIndex == text.endIndex ? text : start + "…"
}
