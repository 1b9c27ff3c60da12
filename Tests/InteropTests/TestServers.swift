import Foundation
import SoraCrypto
import SoraLocking
import SoraNetwork
import SoraWire
import Testing

@testable import Sora

/// A TCP or TLS server whose behaviour a test writes down. Connections are served on a loop of its own.
final class TestServer: Sendable {
    typealias Serve = @Sendable (any ByteStream) -> Void
    let port: UInt16
    private let loop: EventLoop

    private init(loop: EventLoop, port: UInt16) {
        self.loop = loop
        self.port = port
    }

    deinit { loop.stop() }

    static func start(
        host: String = Interop.host, tls: TLSContext? = nil, _ serve: @escaping Serve
    ) async throws -> TestServer {
        let loop = try EventLoop(name: "test-server")
        let address = SocketAddress(try #require(IPAddress(host)), port: 0)
        let port: UInt16 = try await withCheckedThrowingContinuation { continuation in
            loop.execute {
                do throws(NetworkError) {
                    let listener = try TCPListener(on: loop, address: address)
                    listener.onConnection = { connection in
                        guard let tls else { return serve(connection) }
                        do throws(TLSFailure) {
                            serve(try TLSConnection(server: tls, over: connection))
                        } catch {
                            connection.close()
                        }
                    }
                    continuation.resume(returning: listener.localAddress.port)
                } catch {
                    continuation.resume(throwing: error)
                }
            }
        }
        return TestServer(loop: loop, port: port)
    }

    /// Answers the first bytes with fixed ones and leaves the connection open.
    static func answering(_ text: String) async throws -> TestServer {
        try await start { stream in
            stream.onEvent = { event in
                switch event {
                case .data: stream.write(Array(text.utf8))
                case .ended, .closed:
                    stream.onEvent = nil
                    stream.close()
                case .opened, .writable: break
                }
            }
        }
    }

    /// Accepts and never says a word.
    static func mute() async throws -> TestServer {
        try await start { stream in
            stream.onEvent = { event in
                guard case .closed = event else { return }
                stream.onEvent = nil
                stream.close()
            }
        }
    }

    /// Hands every byte on to a port of this machine, and back: a load balancer that ends TLS.
    static func forwarding(to port: UInt16, tls: TLSContext? = nil) async throws -> TestServer {
        try await start(tls: tls) { stream in
            guard let ip = IPAddress(Interop.host),
                let onward = try? TCPConnection(on: stream.loop, to: SocketAddress(ip, port: port))
            else { return stream.close() }
            splice(stream, onward)
        }
    }

    /// What comes on one stream goes out on the other, until either ends.
    static func splice(_ one: any ByteStream, _ other: any ByteStream) {
        func connect(_ from: any ByteStream, _ to: any ByteStream) {
            from.onEvent = { event in
                switch event {
                case .data(let bytes): to.write(bytes)
                case .ended, .closed:
                    from.onEvent = nil
                    to.onEvent = nil
                    to.finishAndClose(by: to.loop.now + .seconds(1))
                    from.close()
                case .opened, .writable: break
                }
            }
        }
        connect(one, other)
        connect(other, one)
    }
}

/// An HTTP proxy for CONNECT with one chosen habit.
final class TestProxy: Sendable {
    enum Habit: Sendable {
        case open
        /// Opens tunnels to one port only.
        case openOnly(port: UInt16)
        /// Wants Basic credentials; closes the connection with its 407.
        case basic(user: String, password: String)
        /// Wants Digest credentials (MD5, RFC 7616), on the same connection.
        case digest(user: String, password: String)
        /// Answers this instead of opening a tunnel.
        case answers(String)
        /// Takes the request and is silent.
        case mute
        /// Sends bytes of its own behind the head of its reply.
        case surplus
        /// Sends its reply byte by byte.
        case inSingleBytes
    }

    /// Targets of the CONNECT requests, in order.
    var targets: [String] { seen.withLock { $0 } }
    let port: UInt16
    private let server: TestServer
    private let seen: Seen

    private final class Seen: Sendable {
        private let list = Locked<[String]>([])
        func withLock<T: Sendable>(_ body: (inout sending [String]) -> sending T) -> T { list.withLock(body) }
        func add(_ target: String) { list.withLock { $0.append(target) } }
    }

    private init(server: TestServer, seen: Seen) {
        self.server = server
        self.seen = seen
        port = server.port
    }

    static func start(_ habit: Habit) async throws -> TestProxy {
        let seen = Seen()
        let server = try await TestServer.start { stream in
            var head = ""
            stream.onEvent = { event in
                switch event {
                case .data(let bytes):
                    head += String(decoding: bytes, as: UTF8.self)
                    guard head.hasSuffix("\r\n\r\n") else { return }
                    let request = head
                    head = ""
                    answer(request, on: stream, habit, seen)
                case .ended, .closed:
                    stream.onEvent = nil
                    stream.close()
                case .opened, .writable: break
                }
            }
        }
        return TestProxy(server: server, seen: seen)
    }

    private static func answer(_ request: String, on stream: any ByteStream, _ habit: Habit, _ seen: Seen) {
        let lines = request.components(separatedBy: "\r\n")
        let words = lines[0].split(separator: " ").map(String.init)
        guard words.count == 3, words[0] == "CONNECT" else {
            return stream.write(Array("HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n".utf8))
        }
        let target = words[1]
        seen.add(target)
        let authorization = lines.first { $0.lowercased().hasPrefix("proxy-authorization:") }.map {
            String($0.drop { $0 != " " }.dropFirst())
        }
        let established = "HTTP/1.1 200 Connection established\r\nX-Proxy: test\r\n\r\n"
        switch habit {
        case .open: open(target, on: stream, reply: established)
        case .openOnly(let port):
            guard !target.hasSuffix(":\(port)") else { return open(target, on: stream, reply: established) }
            stream.write(Array("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n".utf8))
        case .basic(let user, let password):
            let right = "Basic " + Base64.encode(Array("\(user):\(password)".utf8))
            guard authorization != right else { return open(target, on: stream, reply: established) }
            stream.write(
                Array(
                    ("HTTP/1.1 407 Who are you\r\nProxy-Authenticate: Basic realm=\"test\"\r\n"
                        + "Connection: close\r\nContent-Length: 4\r\n\r\nno!\n").utf8))
            stream.finishAndClose(by: stream.loop.now + .seconds(1))
        case .digest(let user, let password):
            if let authorization, isRight(authorization, user: user, password: password, target: target) {
                return open(target, on: stream, reply: established)
            }
            let challenge = "Digest realm=\"test\", nonce=\"0a1b2c\", qop=\"auth\", algorithm=MD5"
            stream.write(
                Array(
                    ("HTTP/1.1 407 Who are you\r\nProxy-Authenticate: \(challenge)\r\n"
                        + "Content-Length: 4\r\n\r\nno!\n").utf8))
        case .answers(let text): stream.write(Array(text.utf8))
        case .mute: break
        case .surplus: open(target, on: stream, reply: established + "\u{15}\u{03}\u{03}")
        case .inSingleBytes: open(target, on: stream, reply: established, isSlow: true)
        }
    }

    /// RFC 7616, 3.4, computed from the passwords and the parameters that the client sent.
    private static func isRight(_ authorization: String, user: String, password: String, target: String) -> Bool {
        func parameter(_ name: String) -> String? {
            guard let range = authorization.range(of: "[ ,]\(name)=\"?([^\",]*)", options: .regularExpression)
            else { return nil }
            return authorization[range].split(separator: "=", maxSplits: 1).last.map {
                $0.trimmingCharacters(in: CharacterSet(charactersIn: "\""))
            }
        }
        func md5(_ text: String) -> String {
            hash(.md5, Array(text.utf8)).map { String(format: "%02x", $0) }.joined()
        }
        guard parameter("username") == user, parameter("uri") == target, parameter("nonce") == "0a1b2c",
            let count = parameter("nc"), let cnonce = parameter("cnonce")
        else { return false }
        let expected = md5(
            "\(md5("\(user):test:\(password)")):0a1b2c:\(count):\(cnonce):auth:\(md5("CONNECT:\(target)"))")
        return parameter("response") == expected
    }

    private static func open(_ target: String, on stream: any ByteStream, reply: String, isSlow: Bool = false) {
        let parts = target.split(separator: ":")
        guard parts.count == 2, let ip = IPAddress(String(parts[0])), let port = UInt16(parts[1]),
            let onward = try? TCPConnection(on: stream.loop, to: SocketAddress(ip, port: port))
        else { return stream.write(Array("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n".utf8)) }
        guard isSlow else {
            stream.write(Array(reply.utf8))
            return TestServer.splice(stream, onward)
        }
        // One byte a turn: each leaves in a segment of its own.
        var rest = Array(reply.utf8)[...]
        var timer: LoopTimer?
        timer = LoopTimer(on: stream.loop) {
            if let byte = rest.popFirst() { stream.write([byte]) }
            if rest.isEmpty {
                timer = nil
                TestServer.splice(stream, onward)
            } else {
                timer?.schedule(at: stream.loop.now + .milliseconds(1))
            }
        }
        timer?.schedule(at: stream.loop.now)
    }
}

/// Certificates of a test: an authority of its own, and what it signs.
struct TestAuthority {
    let identity: TLSIdentity
    var pem: String { identity.certificateChain }

    init(_ name: String = "Test CA") throws { identity = try TLSIdentity.generate(names: [name], isAuthority: true) }

    func sign(
        _ names: [String] = [Interop.host], validFrom: Duration = .seconds(-3600),
        lifetime: Duration = .seconds(86_400)
    ) throws -> TLSIdentity {
        try TLSIdentity.generate(names: names, issuer: identity, validFrom: validFrom, lifetime: lifetime)
    }
}

/// A folder with files that goes away with this object.
final class TestFolder: Sendable {
    let path: String
    init() throws {
        path = FileManager.default.temporaryDirectory.appending(path: "sora-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }
    deinit { try? FileManager.default.removeItem(atPath: path) }

    func write(_ name: String, _ text: String) throws -> String {
        try text.write(toFile: "\(path)/\(name)", atomically: true, encoding: .utf8)
        return "\(path)/\(name)"
    }
}

/// What the SDK logs while this object lives.
final class LogRecord: Sendable {
    private let lines = Locked<[String]>([])

    init() {
        let lines = WeakLines(self)
        Logger.shared.onOutputHandler = { lines.add($0.message) }
    }
    deinit { Logger.shared.onOutputHandler = nil }

    private final class WeakLines: @unchecked Sendable {
        // Set once, before the handler is installed; weak references are safe to read from any thread.
        private weak let owner: LogRecord?
        init(_ owner: LogRecord) { self.owner = owner }
        func add(_ line: String) { owner?.lines.withLock { $0.append(line) } }
    }

    func contains(_ text: String) -> Bool { lines.withLock { $0.contains { $0.contains(text) } } }
    var all: [String] { lines.withLock { $0 } }
}
