import Foundation
import LocalSora
import SoraHTTP
import SoraNetwork
import SoraWire

/// Stands between one client and the server and writes down what the server gets to hear from it, in order: on the
/// WebSocket byte by byte, over data channels by the server's events.
final class SignalingTap: Sendable {
    /// One line for each message and each end: `ws connect`, `ws disconnect NO-ERROR`, `ws ended 1005`,
    /// `dc:signaling disconnect NO-ERROR`. 1005 is a close frame without a code, 1006 none at all.
    let lines: Watched<[String]>
    /// The messages on the WebSocket as they came.
    let texts: Watched<[String]>
    private let front: TestServer
    private let open: Watched<[Line]>

    var url: String { "ws://\(Interop.host):\(front.port)/signaling" }

    private init(front: TestServer, lines: Watched<[String]>, texts: Watched<[String]>, open: Watched<[Line]>) {
        (self.front, self.lines, self.texts, self.open) = (front, lines, texts, open)
    }

    /// A server of its own, and the tap in front of it.
    /// - Parameter withholdsClose: The client does not get to know that the server closes the WebSocket: it is up to
    ///   the client to do so.
    static func start(
        withholdsClose: Bool = false, _ change: (inout ServerConfiguration) -> Void = { _ in }
    ) async throws -> (tap: SignalingTap, server: SoraServer) {
        let lines = Watched<[String]>([])
        let texts = Watched<[String]>([])
        let open = Watched<[Line]>([])
        let server = try await Interop.startServer { configuration in
            change(&configuration)
            configuration.onEvent = { event in
                guard event.kind == .disconnected, event.detail.hasPrefix("client: ") else { return }
                let reason = event.detail.dropFirst("client: ".count)
                // What came on the WebSocket is written down already.
                guard !lines.value.contains(where: { $0.hasPrefix("ws disconnect") }) else { return }
                lines.change { $0.append("dc:signaling disconnect \(reason)") }
            }
        }
        let port = server.port
        let front = try await TestServer.start { stream in
            guard let ip = IPAddress(Interop.host),
                let onward = try? TCPConnection(on: stream.loop, to: SocketAddress(ip, port: port))
            else { return stream.close() }
            let line = Line(stream, onward, lines: lines, texts: texts, withholdsClose: withholdsClose)
            open.change { $0.append(line) }
            line.start()
        }
        return (SignalingTap(front: front, lines: lines, texts: texts, open: open), server)
    }

    /// Cuts the client's TCP connections without a close frame. The server's side of them stays open, so that what
    /// the client still says elsewhere is heard.
    func cut() {
        for line in open.value { line.cut() }
    }

    /// The head of HTTP's that a WebSocket begins with.
    private struct Head {
        private var bytes: [UInt8]? = []

        /// What of these bytes belongs to it, and what comes after it.
        mutating func strip(_ new: [UInt8]) -> (head: [UInt8], rest: [UInt8]) {
            guard let old = bytes else { return ([], new) }
            let all = old + new
            guard let end = all.firstRange(of: Array("\r\n\r\n".utf8))?.upperBound else {
                bytes = all
                return (new, [])
            }
            bytes = nil
            return (Array(all[old.count..<end]), Array(all[end...]))
        }
    }

    /// One connection of the client's and its continuation to the server.
    // All but `loop` is used on the loop of the two streams only: their events come there, and `cut` goes there.
    private final class Line: @unchecked Sendable {
        private let client: any ByteStream
        private let server: any ByteStream
        private let loop: EventLoop
        private let lines: Watched<[String]>
        private let texts: Watched<[String]>
        private var head = Head()
        private var socket = WebSocketConnection(role: .server, random: RandomSource(seed: 1))
        private var answersHead = Head()
        /// Reads what the server says where its close is withheld: the texts alone go on.
        private var answers: WebSocketConnection?
        private var hasEnded = false

        init(
            _ client: any ByteStream, _ server: any ByteStream, lines: Watched<[String]>, texts: Watched<[String]>,
            withholdsClose: Bool
        ) {
            (self.client, self.server, self.loop, self.lines, self.texts) = (client, server, client.loop, lines, texts)
            answers = withholdsClose ? WebSocketConnection(role: .client, random: RandomSource(seed: 2)) : nil
        }

        func start() {
            client.onEvent = { [self] event in
                switch event {
                case .data(let bytes):
                    hear(bytes)
                    server.write(bytes)
                case .ended, .closed: end(1006)
                case .opened, .writable: break
                }
            }
            server.onEvent = { [self] event in
                switch event {
                case .data(let bytes): pass(bytes)
                case .ended, .closed:
                    // The client's own end follows, and is written down.
                    server.onEvent = nil
                    server.close()
                    if answers == nil { client.finish() }
                case .opened, .writable: break
                }
            }
        }

        func cut() {
            loop.execute { [self] in
                client.onEvent = nil
                client.close()
                write(end: 1006)
            }
        }

        private func end(_ code: UInt16) {
            write(end: code)
            for stream in [client, server] { stream.onEvent = nil }
            client.close()
            server.finishAndClose(by: loop.now + .seconds(1))
        }

        private func write(end code: UInt16) {
            if hasEnded { return }
            hasEnded = true
            lines.change { $0.append("ws ended \(code)") }
        }

        private func hear(_ bytes: [UInt8]) {
            socket.handle(head.strip(bytes).rest, now: loop.now)
            while let output = socket.poll() {
                switch output {
                case .text(let text):
                    texts.change { $0.append(text) }
                    let message = (try? JSONSerialization.jsonObject(with: Data(text.utf8))) as? [String: Any]
                    let words = ["ws", message?["type"] as? String ?? "?", message?["reason"] as? String]
                    lines.change { $0.append(words.compactMap(\.self).joined(separator: " ")) }
                case .closed(let closure): write(end: closure.code)
                case .binary: lines.change { $0.append("ws binary") }
                // The answer to the client's close, which the server's own one may have replaced.
                case .transmit(let bytes): if answers != nil { client.write(bytes) }
                case .closeStream: if answers != nil { client.finish() }
                case .ping, .pong: break
                }
            }
        }

        private func pass(_ bytes: [UInt8]) {
            guard answers != nil else { return client.write(bytes) }
            let parts = answersHead.strip(bytes)
            client.write(parts.head)
            answers?.handle(parts.rest, now: loop.now)
            while let output = answers?.poll() {
                guard case .text(let text) = output else { continue }
                client.write(WebSocketFrameHeader.frame(.text, mask: nil, payload: Array(text.utf8)))
            }
        }
    }
}
