/// Reads whole messages: heads with their bodies, for servers and clients whose bodies are small.
package struct HTTPCollector: Sendable {
    package enum Message: Sendable, Equatable {
        case request(HTTPRequest)
        case response(HTTPResponse)
    }

    private var parser: HTTPParser
    private var pending: Message?

    package init(_ kind: HTTPParser.Kind, limits: HTTPParser.Limits = HTTPParser.Limits()) {
        parser = HTTPParser(kind, limits: limits)
    }

    /// See ``HTTPParser/requestMethod``.
    package var requestMethod: String {
        get { parser.requestMethod }
        set { parser.requestMethod = newValue }
    }

    /// Whether nothing of a message has been received yet.
    package var isIdle: Bool { pending == nil && parser.isIdle }

    package mutating func receive(_ bytes: [UInt8]) { parser.receive(bytes) }
    package mutating func receiveEnd() { parser.receiveEnd() }
    /// See ``HTTPParser/takeRest()``.
    package mutating func takeRest() -> [UInt8] { parser.takeRest() }

    /// The next whole message, or nil if more bytes are needed. Interim responses (1xx but 101) are left
    /// out.
    package mutating func next() throws(HTTPError) -> Message? {
        while let event = try parser.next() {
            switch event {
            case .requestHead(let head): pending = .request(HTTPRequest(head: head))
            case .responseHead(let head): pending = .response(HTTPResponse(head: head))
            case .body(let bytes):
                // Taken out while it grows, so that it grows in place.
                switch pending.take() {
                case .request(var request):
                    request.body += bytes
                    pending = .request(request)
                case .response(var response):
                    response.body += bytes
                    pending = .response(response)
                case nil: break
                }
            case .end:
                let message = pending.take()
                if case .response(let response) = message, response.head.status < 200, response.head.status != 101 {
                    continue
                }
                return message
            }
        }
        return nil
    }
}
