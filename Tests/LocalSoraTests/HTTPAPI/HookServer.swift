import SoraHTTP
import SoraLocking
import SoraMessages
import SoraNetwork
import SoraWire

/// An HTTP server for webhooks: keeps what it is told, and answers JSON, a status, or nothing.
final class HookServer: Sendable {
    typealias Answer = @Sendable (HTTPRequestHead, JSONObject) -> JSONObject?

    private struct State {
        var heads: [HTTPRequestHead] = []
        var bodies: [JSONObject] = []
        var watchers: [AsyncStream<Void>.Continuation] = []
    }

    private let loop: EventLoop
    private let state = Locked(State())
    private let answer: Answer
    private let port = Locked<UInt16>(0)

    private init(_ answer: @escaping Answer) throws {
        loop = try EventLoop(name: "hooks")
        self.answer = answer
    }

    /// - Parameter answer: nil never answers.
    static func start(_ answer: @escaping Answer) async throws -> HookServer {
        let server = try HookServer(answer)
        await withCheckedContinuation { continuation in
            server.loop.execute {
                server.listen()
                continuation.resume()
            }
        }
        return server
    }

    var url: String { "http://127.0.0.1:\(port.withLock { $0 })/" }
    var heads: [HTTPRequestHead] { state.withLock { $0.heads } }
    var bodies: [JSONObject] { state.withLock { $0.bodies } }
    func stop() { loop.stop() }

    /// Waits until what it was told satisfies `condition`, with a bound.
    func wait(_ condition: @escaping @Sendable ([JSONObject]) -> Bool) async -> Bool {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self)
        state.withLock { $0.watchers.append(continuation) }
        if condition(bodies) { return true }
        return await withTaskGroup(of: Bool.self) { group in
            group.addTask {
                for await _ in stream where condition(self.bodies) { return true }
                return false
            }
            group.addTask {
                try? await Task.sleep(for: .seconds(30))
                return false
            }
            let first = await group.next() ?? false
            group.cancelAll()
            return first
        }
    }

    private func listen() {
        guard let listener = try? TCPListener(on: loop, address: SocketAddress(.loopbackV4, port: 0)) else { return }
        port.withLock { $0 = listener.localAddress.port }
        listener.onConnection = { [weak self] stream in
            var collector = HTTPCollector(.request)
            stream.onEvent = { event in
                switch event {
                case .data(let bytes): collector.receive(bytes)
                case .ended, .closed: stream.close()
                case .opened, .writable: break
                }
                guard case .request(let request)? = try? collector.next() else { return }
                self?.handle(request, stream)
            }
        }
    }

    private func handle(_ request: HTTPRequest, _ stream: TCPConnection) {
        let body = (try? JSONValue(parsing: request.body))?.objectValue ?? JSONObject()
        let watchers = state.withLock { state in
            state.heads.append(request.head)
            state.bodies.append(body)
            return state.watchers
        }
        for watcher in watchers { watcher.yield() }
        if request.head.query == "status=500" {
            stream.write(HTTPResponse(status: 500).serialized())
        } else if let answer = answer(request.head, body) {
            stream.write(
                HTTPResponse(status: 200, type: "application/json", body: JSONValue.object(answer).utf8).serialized())
        }
    }
}
