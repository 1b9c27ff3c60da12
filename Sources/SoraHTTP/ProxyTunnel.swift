import SoraWire

/// Why an HTTP proxy gave us no tunnel.
package enum ProxyError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Another status than 2xx or 407.
    case refused(status: Int, reason: String)
    /// 407, and we have no credentials.
    case credentialsRequired
    /// 407 although we sent our credentials.
    case credentialsRefused
    /// 407 with nothing that we can answer; the schemes offered.
    case unsupportedAuthentication([String])
    /// Bytes behind the reply's head, which would be taken for the peer's.
    case surplusBytes(count: Int)
    case http(HTTPError)

    package var description: String {
        switch self {
        case .refused(let status, let reason): "the proxy answered \(status) \(reason)"
        case .credentialsRequired: "the proxy wants a user name and password (407)"
        case .credentialsRefused: "the proxy refused the user name or password (407)"
        case .unsupportedAuthentication(let schemes):
            "the proxy wants an authentication that is not supported: \(schemes.joined(separator: ", "))"
        case .surplusBytes(let count): "the proxy sent \(count) bytes of its own into the tunnel"
        case .http(let error): "the proxy's answer is not usable: \(error)"
        }
    }
}

/// Opens a tunnel through an HTTP proxy with CONNECT (RFC 9110, 9.3.6), as a state machine.
///
/// The first request carries no credentials; a 407 is answered with the strongest of Digest SHA-256,
/// Digest MD5 and Basic that it offers. Bytes behind the head of a 2xx reply end the attempt: only the far
/// end of the tunnel may speak from there on, and it waits for us.
package struct ProxyTunnel: Sendable {
    package enum Output: Sendable, Equatable {
        case transmit([UInt8])
        /// The proxy will not take the next request on this connection: close it, dial the proxy again, and
        /// call ``ProxyTunnel/start()``.
        case reconnect
        /// From now on the stream belongs to the far end.
        case established
        case failed(ProxyError)
    }

    private enum State {
        /// → awaiting
        case idle
        /// → established, failed, idle (reconnect)
        case awaiting
        case established
        case failed
    }

    /// `host:port`, with brackets around an IPv6 address.
    package let target: String
    private let credentials: HTTPCredentials?
    private let userAgent: String
    private let limits: HTTPParser.Limits
    private var random: RandomSource
    private var state = State.idle
    private var parser: HTTPParser
    private var outputs: [Output] = []
    private var reply: HTTPResponseHead?
    private var authorization: String?
    /// Answers to challenges so far; a stale nonce allows one more.
    private var attempts = 0

    /// - Parameters:
    ///   - host: Name or address of the far end, without brackets.
    ///   - userAgent: Sent to the proxy only.
    ///   - random: Source of Digest's client nonces.
    package init(
        host: String, port: UInt16, credentials: HTTPCredentials? = nil, userAgent: String, random: RandomSource,
        limits: HTTPParser.Limits = HTTPParser.Limits(head: 16 * 1024, headers: 100, body: 64 * 1024)
    ) {
        target = (host.contains(":") ? "[\(host)]" : host) + ":\(port)"
        self.credentials = credentials
        self.userAgent = userAgent
        self.random = random
        self.limits = limits
        parser = HTTPParser(.response, limits: limits)
    }

    package mutating func poll() -> Output? { outputs.isEmpty ? nil : outputs.removeFirst() }

    /// The proxy is connected.
    package mutating func start() {
        guard case .idle = state else { return }
        parser = HTTPParser(.response, limits: limits)
        parser.requestMethod = "CONNECT"
        state = .awaiting
        request()
    }

    package mutating func handle(_ bytes: [UInt8]) {
        guard case .awaiting = state else { return }
        parser.receive(bytes)
        advance()
    }

    package mutating func handleEnd() {
        guard case .awaiting = state else { return }
        // A 407 that ends with the connection can still be answered on another one.
        if let reply, reply.status == 407 { return answerChallenge(reply, isEnded: true) }
        parser.receiveEnd()
        advance()
        if case .awaiting = state { fail(.http(.truncated)) }
    }

    private mutating func request() {
        var headers: HTTPHeaders = ["Host": target, "User-Agent": userAgent, "Proxy-Connection": "keep-alive"]
        if let authorization { headers.add("Proxy-Authorization", authorization) }
        outputs.append(.transmit(HTTPRequestHead(method: "CONNECT", target: target, headers: headers).serialized()))
    }

    private mutating func fail(_ error: ProxyError) {
        state = .failed
        outputs.append(.failed(error))
    }

    private mutating func advance() {
        do throws(HTTPError) {
            while case .awaiting = state, let event = try parser.next() {
                switch event {
                case .responseHead(let head): handleHead(head)
                case .end:
                    guard let head = reply else { continue }
                    reply = nil
                    answerChallenge(head, isEnded: !head.keepsAlive)
                case .body, .requestHead: break  // the text of a refusal
                }
            }
        } catch {
            if reply?.status == 407, case .awaiting = state, let head = reply {
                // Its body is too long or broken, but it is known what it wants.
                reply = nil
                return answerChallenge(head, isEnded: true)
            }
            fail(.http(error))
        }
    }

    private mutating func handleHead(_ head: HTTPResponseHead) {
        switch head.status {
        case 100...199 where head.status != 101: break  // interim
        case 200...299:
            if parser.buffered > 0 {
                fail(.surplusBytes(count: parser.buffered))
            } else {
                state = .established
                outputs.append(.established)
            }
        case 407: reply = head
        default: fail(.refused(status: head.status, reason: excerpt(head.reason)))
        }
    }

    /// The 407 is read to its end, or its connection is.
    private mutating func answerChallenge(_ head: HTTPResponseHead, isEnded: Bool) {
        reply = nil
        guard let credentials else { return fail(.credentialsRequired) }
        let challenges = HTTPChallenge.parse(head.headers.values("Proxy-Authenticate"))
        let isStale = challenges.contains { $0.parameters["stale"]?.lowercased() == "true" }
        guard attempts == 0 || attempts == 1 && isStale else { return fail(.credentialsRefused) }
        attempts += 1
        let digests = challenges.compactMap { DigestAuthorization($0) }
        if var digest = digests.max(by: { $0.strength < $1.strength }) {
            let cnonce = random.string(24, from: Array("abcdefghijklmnopqrstuvwxyz0123456789"))
            authorization = digest.authorization(for: credentials, method: "CONNECT", uri: target, cnonce: cnonce)
        } else if challenges.isEmpty || challenges.contains(where: { $0.scheme == "basic" }) {
            // Some proxies send 407 without saying what they want: it is Basic.
            authorization = credentials.basicAuthorization
        } else {
            return fail(.unsupportedAuthentication(challenges.map(\.scheme)))
        }
        if isEnded {
            state = .idle
            outputs.append(.reconnect)
        } else {
            request()
        }
    }
}
