import Foundation
import SoraHTTP
import SoraNetwork
import SoraWire
import Testing

/// A Python with the `websockets` package, named by SORA_TEST_PYTHON (`make test` sets it).
private let python = ProcessInfo.processInfo.environment["SORA_TEST_PYTHON"]

/// A Python script of Tests/Fixtures/python under way.
private final class Script {
    private let process = Process()
    private let input = Pipe()
    private let output = Pipe()

    init(_ python: String, _ name: String, _ arguments: [String]) throws {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        process.executableURL = URL(fileURLWithPath: python)
        process.arguments = [folder.appendingPathComponent("Fixtures/python/\(name)").path] + arguments
        process.standardInput = input
        process.standardOutput = output
        try process.run()
    }

    /// Lines as they come, on a thread of their own: reading blocks.
    func lines() -> Inbox<String> {
        let inbox = Inbox<String>()
        let handle = output.fileHandleForReading
        Foundation.Thread.detachNewThread {
            var buffer = Data()
            while true {
                let piece = handle.availableData
                if piece.isEmpty { break }
                buffer += piece
                while let newline = buffer.firstIndex(of: 0x0A) {
                    inbox.put(String(decoding: buffer[..<newline], as: UTF8.self))
                    buffer = Data(buffer[(newline + 1)...])
                }
            }
            inbox.put("end of output")
        }
        return inbox
    }

    /// Ends a server: its input ends.
    func stop() {
        try? input.fileHandleForWriting.close()
        process.waitUntilExit()
    }
}

/// Ties handshake and connection of a client to a stream, as a driver does.
private final class Client {
    private var handshake: WebSocketClientHandshake
    private var machine = WebSocketConnection(role: .client, random: .system)
    private var isUp = false
    private let stream: any ByteStream
    private let inbox: Inbox<String>

    init(_ location: HTTPLocation, over stream: any ByteStream, _ inbox: Inbox<String>) {
        var random = RandomSource.system
        handshake = WebSocketClientHandshake(to: location, random: &random)
        self.stream = stream
        self.inbox = inbox
        stream.onEvent = { self.handle($0) }
        stream.write(handshake.request)
    }

    func act(_ body: (inout WebSocketConnection) throws -> Void) {
        do { try body(&machine) } catch { inbox.put("\(error)") }
        drain()
    }

    private func handle(_ event: StreamEvent) {
        switch event {
        case .data(let data):
            do {
                if isUp {
                    machine.handle(data, now: stream.loop.now)
                } else if let rest = try handshake.receive(data) {
                    isUp = true
                    inbox.put("up")
                    machine.handle(rest, now: stream.loop.now)
                }
            } catch {
                inbox.put("\(error)")
            }
        case .ended, .closed: machine.handleEnd(now: stream.loop.now)
        case .opened, .writable: break
        }
        drain()
    }

    private func drain() {
        while let output = machine.poll() {
            switch output {
            case .transmit(let data): stream.write(data)
            case .text(let text): inbox.put("text \(text)")
            case .binary(let data): inbox.put("binary \(data.count) \(data.reduce(0) { $0 &+ Int($1) })")
            case .ping, .pong: break
            case .closed(let closure): inbox.put("closed \(closure.code) \(closure.reason) \(closure.error == nil)")
            case .closeStream: stream.finishAndClose(by: stream.loop.now + .seconds(1))
            }
        }
    }
}

/// The server's side of the same.
private func serve(_ stream: any ByteStream) {
    final class Server {
        var head: HTTPCollector? = HTTPCollector(.request)
        var machine = WebSocketConnection(role: .server, random: .system)
    }
    let server = Server()
    func drain() {
        while let output = server.machine.poll() {
            switch output {
            case .transmit(let data): stream.write(data)
            case .text(let text):
                let words = text.split(separator: " ", maxSplits: 2)
                if words.first == "close", words.count == 3, let code = UInt16(words[1]) {
                    try? server.machine.close(code: code, reason: String(words[2]), now: stream.loop.now)
                } else {
                    try? server.machine.send(text: text)
                }
            case .binary(let data): try? server.machine.send(binary: data)
            case .ping, .pong, .closed: break
            case .closeStream: stream.finishAndClose(by: stream.loop.now + .seconds(1))
            }
        }
    }
    stream.onEvent = { event in
        switch event {
        case .data(let data):
            guard server.head != nil else {
                server.machine.handle(data, now: stream.loop.now)
                break
            }
            server.head?.receive(data)
            guard let message = try? server.head?.next(), case .request(let request) = message else { break }
            do throws(WebSocketHandshakeError) {
                stream.write(try WebSocketHandshake.respond(to: request.head).serialized())
            } catch {
                stream.write(WebSocketHandshake.refusal(of: error).serialized())
                stream.finishAndClose(by: stream.loop.now + .seconds(1))
                return
            }
            let rest = server.head?.takeRest() ?? []
            server.head = nil
            server.machine.handle(rest, now: stream.loop.now)
        case .ended, .closed: server.machine.handleEnd(now: stream.loop.now)
        case .opened, .writable: break
        }
        drain()
    }
}

@Suite(.enabled(if: python != nil, "set SORA_TEST_PYTHON to a Python with the websockets package"))
struct WebSocketInteropTests {
    /// Certificate and key for 127.0.0.1 in files that Python can read.
    private func files(_ body: (_ certificate: String, _ key: String, TLSIdentity) async throws -> Void) async throws {
        let identity = try Authority.server(["127.0.0.1"])
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("sora-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let (certificate, key) = (folder.appendingPathComponent("c.pem"), folder.appendingPathComponent("k.pem"))
        try (identity.certificateChain + Authority.root.get().certificateChain)
            .write(to: certificate, atomically: true, encoding: .utf8)
        try identity.privateKey.write(to: key, atomically: true, encoding: .utf8)
        try await body(certificate.path, key.path, identity)
    }

    @Test(arguments: [false, true]) func ourClientTalksToPythonsServer(_ isSecure: Bool) async throws {
        try await files { certificate, key, _ in
            let script = try Script(
                try #require(python), "websocket_echo_server.py", isSecure ? [certificate, key] : [])
            defer { script.stop() }
            let port = try #require(UInt16(try await script.lines().next(within: .seconds(20), "port")))
            let lab = try LoopActor()
            defer { lab.stop() }
            let inbox = Inbox<String>()
            let client = Confined<Client?>(nil)
            let versions = Inbox<String>()
            let tls = isSecure ? try Authority.trusting(Authority.root) : nil
            await lab.run { loop in
                let location = HTTPLocation("\(isSecure ? "wss" : "ws")://127.0.0.1:\(port)/signaling")
                _ = StreamDialer(
                    .init(host: "127.0.0.1", port: port, tls: tls), on: loop, deadline: loop.now + .seconds(10)
                ) { result in
                    guard case .success(let stream) = result, let location else { return inbox.put("\(result)") }
                    versions.put((stream as? TLSConnection)?.protocolVersion ?? "plain")
                    client.value = Client(location, over: stream, inbox)
                }
            }
            #expect(try await inbox.next() == "up")
            #expect(try await versions.next() == (isSecure ? "TLSv1.2" : "plain"))
            let large = [UInt8](repeating: 3, count: 3_000_000)
            await lab.run { _ in
                client.value?.act { try $0.send(text: "žluťoučký 🐴 kůň") }
                client.value?.act { try $0.send(binary: large) }
                client.value?.act { try $0.send(text: "fragments") }
                client.value?.act { try $0.send(text: "ping") }
                client.value?.act { try $0.send(text: "close 4401 TOKEN EXPIRED") }
            }
            let seen = try await inbox.collect { $0.last?.hasPrefix("closed") == true }
            #expect(
                seen == [
                    "text žluťoučký 🐴 kůň", "binary 3000000 9000000", "text žluťoučký kůň", "text ponged",
                    "closed 4401 TOKEN EXPIRED true",
                ])
        }
    }

    @Test(arguments: [false, true]) func pythonsClientTalksToOurServer(_ isSecure: Bool) async throws {
        try await files { certificate, _, identity in
            let lab = try LoopActor()
            defer { lab.stop() }
            let context = try TLSContext(server: .init(identity: identity))
            let port = try await lab.run { loop in
                let listener = try TCPListener(on: loop, address: loopback)
                listener.onConnection = { connection in
                    if !isSecure { return serve(connection) }
                    guard let stream = try? TLSConnection(server: context, over: connection) else { return }
                    serve(stream)
                }
                return listener.localAddress.port
            }
            let url = "\(isSecure ? "wss" : "ws")://127.0.0.1:\(port)/signaling"
            let script = try Script(
                try #require(python), "websocket_client.py", [url] + (isSecure ? [certificate] : []))
            defer { script.stop() }
            let lines = script.lines()
            var seen: [String] = []
            while seen.last != "done", seen.last != "end of output" {
                seen.append(try await lines.next(within: .seconds(30)))
            }
            #expect(
                seen == [
                    "extensions 0", "echo True", "echo True", "echo True", "echo True", "echo True",
                    "fragments fragmented text", "pong", "closed 4490 TEST-REJECT", "own close 1000", "done",
                ])
        }
    }
}
