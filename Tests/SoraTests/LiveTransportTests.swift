import Foundation
import LocalSora
import SoraHTTP
import SoraLocking
import SoraNetwork
import SoraWire
import TestSupport
import Testing

@testable import Sora

/// TLS, proxies and back-pressure, on the real engine.
@Suite(.serialized, .leavesNoObjects) struct LiveTransportTests {
    /// Relays between a client's stream and a server, in front of it.
    private actor Front {
        nonisolated let loop: EventLoop
        nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
        private var listener: TCPListener?

        init() throws { loop = try EventLoop(name: "front") }

        /// A TLS server that passes everything on to `port`.
        func startTLS(_ identity: TLSIdentity, to port: UInt16) throws -> UInt16 {
            let context = try TLSContext(server: TLSServerConfiguration(identity: identity))
            let listener = try TCPListener(on: loop, address: SocketAddress(.loopbackV4, port: 0))
            let loop = loop
            listener.onConnection = { connection in
                guard
                    let near = try? TLSConnection(server: context, over: connection, deadline: loop.now + .seconds(5)),
                    let far = try? TCPConnection(on: loop, to: SocketAddress(.loopbackV4, port: port))
                else { return connection.close() }
                Self.join(near, far)
            }
            self.listener = listener
            return listener.localAddress.port
        }

        /// An HTTP proxy that knows one user and leads every tunnel to `port`.
        func startProxy(user: String, password: String, to port: UInt16) throws -> UInt16 {
            let wanted = HTTPCredentials(username: user, password: password).basicAuthorization
            let listener = try TCPListener(on: loop, address: SocketAddress(.loopbackV4, port: 0))
            let loop = loop
            listener.onConnection = { near in
                var collector = HTTPCollector(.request)
                near.onEvent = { [unowned near] event in
                    guard case .data(let data) = event else { return }
                    collector.receive(data)
                    guard let message = try? collector.next(), case .request(let request) = message else { return }
                    guard request.head.headers["Proxy-Authorization"] == wanted else {
                        let reply = HTTPResponse(
                            status: 407, headers: ["Proxy-Authenticate": "Basic realm=\"test\""], body: [])
                        return near.write(reply.serialized())
                    }
                    guard let far = try? TCPConnection(on: loop, to: SocketAddress(.loopbackV4, port: port)) else {
                        return near.close()
                    }
                    near.write(HTTPResponseHead(status: 200, reason: "Connection established").serialized())
                    Self.join(near, far)
                }
            }
            self.listener = listener
            return listener.localAddress.port
        }

        private static func join(_ near: any ByteStream, _ far: any ByteStream) {
            func pass(_ from: any ByteStream, _ to: any ByteStream) {
                from.onEvent = { [unowned to] event in
                    switch event {
                    case .data(let bytes): to.write(bytes)
                    case .ended: to.finish()
                    case .closed: to.close()
                    case .opened, .writable: break
                    }
                }
            }
            pass(near, far)
            pass(far, near)
        }

        nonisolated func stop() { loop.stop() }
    }

    private func client(_ url: String, _ change: (inout Configuration) -> Void) -> LiveClient {
        var configuration = Configuration(url: URL(string: url)!, channelId: "room", role: .recvonly)
        configuration.videoEnabled = false
        configuration.audioEnabled = false
        configuration.dataChannelSignaling = true
        change(&configuration)
        return LiveClient(configuration)
    }

    private func end(_ client: LiveClient) async -> String {
        let ended = await client.journal.wait(seconds: 15) { $0.contains { $0.hasPrefix("disconnect") } }
        return ended ? client.journal.entries.last ?? "" : "no end"
    }

    @Test func certificatesAreCheckedAsTheSettingsSay() async throws {
        let authority = try TLSIdentity.generate(names: ["Test Root"], isAuthority: true)
        let other = try TLSIdentity.generate(names: ["Other Root"], isAuthority: true)
        let identity = try TLSIdentity.generate(names: ["localhost"], issuer: authority)
        try await withServer { server in
            let front = try Front()
            defer { front.stop() }
            let port = try await front.startTLS(identity, to: server.port)
            let url = "wss://localhost:\(port)/signaling"

            let trusting = client(url) { $0.caCertificate = authority.certificateChain }
            #expect(await trusting.connected())
            await trusting.leave()
            let careless = client(url) { $0.insecure = true }
            #expect(await careless.connected())
            await careless.leave()
            // insecure wins over authorities that would refuse.
            let both = client(url) {
                $0.insecure = true
                $0.caCertificate = other.certificateChain
            }
            #expect(await both.connected())
            await both.leave()

            #expect(await end(client(url) { _ in }).hasPrefix("disconnect error WebSocket error ("))
            let wrong = client(url) { $0.caCertificate = other.certificateChain }
            #expect(await end(wrong).hasPrefix("disconnect error WebSocket error ("))
            let misnamed = client("wss://127.0.0.1:\(port)/signaling") { $0.caCertificate = authority.certificateChain }
            #expect(await end(misnamed).hasPrefix("disconnect error WebSocket error ("))
        }
    }

    // api 5.31
    @Test func signalingGoesThroughAProxy() async throws {
        try await withServer { server in
            let front = try Front()
            defer { front.stop() }
            let port = Int(try await front.startProxy(user: "u", password: "p", to: server.port))
            // Only the proxy knows that name.
            let url = "ws://behind.invalid/signaling"
            let through = client(url) { $0.proxy = Proxy(host: "127.0.0.1", port: port, username: "u", password: "p") }
            #expect(await through.connected())
            await through.leave()
            let refused = client(url) { $0.proxy = Proxy(host: "127.0.0.1", port: port, username: "u", password: "x") }
            #expect(await end(refused).hasPrefix("disconnect error SignalingChannel error (the proxy refused"))
            let unknown = client(url) { $0.proxy = Proxy(host: "127.0.0.1", port: port) }
            #expect(await end(unknown).hasPrefix("disconnect error SignalingChannel error (the proxy wants"))
        }
    }

    // SAF4
    @Test func theProxysPasswordNeverReachesTheLog() async throws {
        let password = "S3CRETMARK"
        try await withWholeLog { lines in
            try await withServer { server in
                let front = try Front()
                defer { front.stop() }
                let port = Int(try await front.startProxy(user: "u", password: password, to: server.port))
                let client = client("ws://behind.invalid/signaling") {
                    $0.proxy = Proxy(host: "127.0.0.1", port: port, username: "u", password: password)
                }
                #expect(await client.connected())
                await client.leave()
            }
            let encoded = Data("u:\(password)".utf8).base64EncodedString()
            #expect(!lines.entries.isEmpty)
            #expect(!lines.entries.contains { $0.contains(password) || $0.contains(encoded) })
        }
    }

    // api 5.35
    @Test func aRelayWithAnUntrustedCertificateEndsTheConnectionAndItsPeer() async throws {
        let front = try Front()
        defer { front.stop() }
        // Signed by nobody that the client knows.
        let identity = try TLSIdentity.generate(names: ["localhost"])
        let port = try await front.startTLS(identity, to: 9)
        try await withServer({
            $0.forcesRelay = true
            $0.turnServers = [
                .init(urls: ["turns:localhost:\(port)?transport=tcp"], username: "u", credential: "p")
            ]
        }) { server in
            let client = client(server.signalingURL) { $0.role = .sendrecv }
            let text = await end(client)
            #expect(text.hasPrefix("disconnect error PeerChannel error (peer connection state: failed"), "\(text)")
            #expect(client.channel.native?.connectionState == .closed)
            #expect(client.journal.entries.contains { $0.hasPrefix("completion nil PeerChannel error") })
        }
    }

    // SCT13: a handler that blocks slows the sender down; afterwards all that was accepted arrives.
    @Test func aBlockedReceiverSlowsTheSenderDown() async throws {
        try await withServer { server in
            let receiver = LiveClient(LiveClient.messaging(server))
            #expect(await receiver.isReadyForMessages())
            let sender = LiveClient(LiveClient.messaging(server))
            #expect(await sender.isReadyForMessages())
            let gate = DispatchSemaphore(value: 0)
            let counted = Journal()
            let isBlocking = Locked(true)
            receiver.channel.handlers.onDataChannelMessage = { _, label, data in
                guard label == "#spam" else { return }
                if isBlocking.read() { gate.wait() }
                counted.add("\(data.count)")
            }
            let message = Data(repeating: 7, count: 64 * 1024)
            var accepted = 0
            for _ in 0..<32 {
                let error = sender.channel.sendMessage(label: "#spam", data: message)
                #expect(error == nil, "\(String(describing: error))")
                if error == nil { accepted += 1 }
            }
            #expect(accepted == 32)
            // The receiver's calls still work while its handler blocks.
            _ = try await receiver.channel.getStatsSnapshot()
            #expect(counted.entries.isEmpty)
            isBlocking.write(false)
            for _ in 0..<accepted { gate.signal() }
            let count = accepted
            #expect(await counted.wait(seconds: 30) { $0.count == count })
            await sender.leave()
            await receiver.leave()
        }
    }
}
