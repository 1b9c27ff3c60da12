import LocalSora
import SoraCrypto
import SoraHTTP
import SoraICE
import SoraMessages
import SoraNetwork
import SoraPeer
import SoraWire
import Testing

/// SRV1 (pitfalls 11): each abuse alone, while an ordinary client is served.
@Suite("Server: limits", .serialized, .leavesNoObjects) struct LimitTests {
    // MARK: HTTP

    @Test func requestsAheadWithoutReadingAreCutOff() async throws {
        try await withServer {
            $0.maximumBufferedSignalingBytes = 100_000
        } _: { server in
            try await withClient { client in
                try await client.dial(port: server.port)
                await client.stopReading()
                // Far more than the kernel's buffers hold.
                let request = String(repeating: "GET /page.js HTTP/1.1\r\nHost: x\r\n\r\n", count: 2000)
                await client.write(request)
                // The reset comes through although nothing is read.
                #expect(await client.wait { $0.isGone })
                #expect(await server.liveObjects()["sockets"] == 0)
            }
            #expect(try await server.stillServes())
        }
    }

    @Test func sizesOfRequestsAreLimited() async throws {
        try await withServer {
            $0.maximumRequestHeadSize = 1000
            $0.maximumRequestBodySize = 1000
        } _: { server in
            for (request, status) in [
                ("GET / HTTP/1.1\r\nX: " + String(repeating: "a", count: 2000), 431),
                ("GET / HTTP/1.1\r\n" + String(repeating: "A: b\r\n", count: 101) + "\r\n", 431),
                ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1001\r\n\r\n", 413),
            ] {
                try await withClient { client in
                    try await client.dial(port: server.port)
                    await client.write(request)
                    #expect(await client.wait { $0.isGone })
                    let answer = String(decoding: await client.received, as: UTF8.self)
                    #expect(answer.hasPrefix("HTTP/1.1 \(status) "), "\(answer.prefix(80))")
                }
            }
            #expect(try await server.stillServes())
        }
    }

    @Test func slowBodyIsCutOff() async throws {
        try await withServer {
            $0.connectTimeout = .milliseconds(500)
        } _: { server in
            try await withClient { client in
                try await client.dial(port: server.port)
                await client.write("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{")
                for _ in 0..<100 {
                    await client.write(" ")
                    if await client.wait(.milliseconds(20), until: { $0.isGone }) { break }
                }
                #expect(await client.isGone)
            }
        }
    }

    @Test func socketsAreLimitedAltogether() async throws {
        try await withServer {
            $0.maximumSockets = 2
        } _: { server in
            let (first, second) = (try WireClient(), try WireClient())
            defer {
                first.close()
                second.close()
            }
            for client in [first, second] {
                try await client.join(server.signalingURL, ChannelHarness.messaging())
                #expect(await client.isUp())
            }
            try await expectRefusal(
                of: server.port, "2 sockets are open, which is the limit (maximumSockets)")
            try await withClient { third in
                _ = await #expect(throws: (any Error).self) { try await third.open(server.signalingURL) }
            }
            await first.hangUp()
            #expect(await server.waitForEvent(.left) != nil)
            #expect(try await server.stillServes())
        }
    }

    /// What a socket beyond a limit gets before it says anything: the whole answer and the end.
    private func expectRefusal(
        of port: UInt16, _ text: String, location: SourceLocation = #_sourceLocation
    ) async throws {
        try await withClient { client in
            try await client.dial(port: port)
            #expect(await client.wait { $0.isGone }, sourceLocation: location)
            let answer = String(decoding: await client.received, as: UTF8.self)
            #expect(answer.hasPrefix("HTTP/1.1 503 "), "\(answer)", sourceLocation: location)
            #expect(answer.hasSuffix("\r\n\r\n\(text)\n"), "\(answer)", sourceLocation: location)
        }
    }

    @Test func waitingSocketsOfAnAddressAreLimited() async throws {
        try await withServer {
            $0.maximumWaitingSocketsPerAddress = 1
        } _: { server in
            try await withClient { waiting in
                try await waiting.open(server.signalingURL)
                for _ in 0..<20 {
                    try await expectRefusal(
                        of: server.port,
                        "1 sockets of your address have not sent connect, which is the limit "
                            + "(maximumWaitingSocketsPerAddress)")
                }
                // Those that were refused left nothing.
                #expect(await server.liveObjects()["sockets"] == 1)
                await waiting.send(ChannelHarness.messaging().json.text)
                #expect(await waiting.message("offer") != nil)
                #expect(try await server.stillServes())
            }
        }
    }

    /// A TLS client cannot read plain words.
    @Test func socketsBeyondALimitAreResetWithTLS() async throws {
        try await withServer {
            $0.transportSecurity = .selfSigned()
            $0.maximumWaitingSocketsPerAddress = 1
        } _: { server in
            try await withClient { waiting in
                try await waiting.dial(port: server.port, certificate: server.certificate)
                try await withClient { client in
                    // The reset may come before the client knows that it was connected.
                    do { try await client.dial(port: server.port) } catch { return }
                    #expect(await client.wait { $0.isGone })
                    #expect(await client.received == [])
                }
            }
        }
    }

    @Test(arguments: [true, false]) func portsAreFilledApart(fillsMain: Bool) async throws {
        try await withServer {
            $0.apiPort = 0
            $0.maximumSockets = 2
        } _: { server in
            let api = try #require(server.apiPort)
            let (full, other) = fillsMain ? (server.port, api) : (api, server.port)
            let clients = [try WireClient(), try WireClient()]
            defer { for client in clients { client.close() } }
            for client in clients {
                // Answered: the server has taken the socket.
                try await client.dial(port: full)
                #expect(await client.request("GET", "/")?.head.status == 200)
            }
            try await expectRefusal(of: full, "2 sockets are open, which is the limit (maximumSockets)")
            try await withClient { client in
                try await client.dial(port: other)
                #expect(await client.request("GET", "/")?.head.status == 200)
            }
            // Places come back, once the server has heard of the end.
            await clients[0].write("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            #expect(await clients[0].wait { $0.isGone })
            try await withClient { client in
                try await client.dial(port: full)
                #expect(await client.request("GET", "/")?.head.status == 200)
            }
        }
    }

    @Test func unfinishedTLSHandshakesAreCutOff() async throws {
        try await withServer {
            $0.transportSecurity = .selfSigned()
            $0.connectTimeout = .milliseconds(300)
        } _: { server in
            try await withClient { client in
                try await client.dial(port: server.port)
                // The beginning of a TLS record that never ends.
                await client.write(bytes: [0x16, 0x03, 0x01, 0x40, 0x00, 0x01])
                #expect(await client.wait(.seconds(10)) { $0.isGone })
            }
        }
    }

    // MARK: WebSocket

    @Test func pingFloodEndsItsSender() async throws {
        try await withServer {
            $0.maximumMessagesPerSecond = 2
        } _: { server in
            try await withClient { client in
                try await client.open(server.signalingURL)
                await client.send(ChannelHarness.messaging().json.text)
                #expect(await client.message("offer") != nil)
                let ping = WebSocketFrameHeader.frame(.ping, mask: 1, payload: [1])
                await client.write(bytes: Array(repeating: ping, count: 100).flatMap { $0 })
                #expect(await client.closed()?.reason == "TOO-MANY-MESSAGES")
                #expect(try await server.stillServes())
            }
        }
    }

    @Test(
        arguments: [
            // Fragments that never grow, a frame without mask, a frame in the middle of a message, a reserved bit.
            (1008, [], 70_000), (1002, [0x81, 0x00], 0), (1002, [0x01, 0x80, 0, 0, 0, 0, 0x81, 0x80, 0, 0, 0, 0], 0),
            (1002, [0xC1, 0x80, 0, 0, 0, 0], 0),
        ] as [(UInt16, [UInt8], Int)])
    func abuseOfFramesEndsTheConnection(code: UInt16, bytes: [UInt8], fragments: Int) async throws {
        try await withServer { server in
            try await withClient { client in
                try await client.open(server.signalingURL)
                await client.write(bytes: bytes)
                if fragments > 0 {
                    let first = WebSocketFrameHeader.frame(isFinal: false, .text, mask: 1, payload: [])
                    let next = WebSocketFrameHeader.frame(isFinal: false, .continuation, mask: 1, payload: [])
                    await client.write(bytes: first + Array(repeating: next, count: fragments).flatMap { $0 })
                }
                #expect(await client.closed()?.code == code)
                #expect(try await server.stillServes())
            }
        }
    }

    @Test func sizeOfSignalingMessagesIsConfigured() async throws {
        try await withServer {
            $0.maximumSignalingMessageSize = 2000
        } _: { server in
            try await withClient { client in
                try await client.open(server.signalingURL)
                await client.send(String(repeating: " ", count: 2001))
                let closure = await client.closed()
                #expect(closure?.code == 1009)
                #expect(closure?.reason == "WebSocket message is longer than 2000 bytes")
            }
        }
    }

    @Test func silenceOfASignalingClientEndsIt() async throws {
        try await withServer {
            $0.silenceTimeout = .milliseconds(300)
        } _: { server in
            try await withClient { client in
                try await client.join(
                    server.signalingURL, ChannelHarness.connect(.recvonly) { $0.dataChannelSignaling = false })
                #expect(await client.isUp())
                let closure = await client.closed()
                #expect(closure?.code == 4490)
                #expect(closure?.reason == "TIMEOUT")
            }
        }
    }

    // MARK: Data channels

    private static let chat = ChannelHarness.messaging([DataChannelDefinition(label: "#chat", direction: .sendrecv)])

    @Test func sizeOfDataMessagesIsToldInTheOffer() async throws {
        try await withServer {
            $0.maximumMessageSize = 20_000
        } _: { server in
            try await withClient { client in
                try await client.join(server.signalingURL, Self.chat)
                let sdp = await client.message("offer")?["sdp"]?.stringValue
                #expect(sdp?.contains("a=max-message-size:20000\r\n") == true)
            }
        }
    }

    @Test func floodOfDataMessagesEndsItsSender() async throws {
        try await withServer {
            $0.maximumDataMessagesPerSecond = 20
        } _: { server in
            try await withClient { client in
                try await client.join(server.signalingURL, Self.chat)
                #expect(await client.isUp())
                for _ in 0..<200 { _ = await client.withPeer { $0.send(data: [1], label: "#chat", now: $1) } }
                let closure = await client.closed()
                #expect(closure?.code == 4490)
                #expect(closure?.reason == "TOO-MANY-MESSAGES")
                #expect(try await server.stillServes())
            }
        }
    }

    // MARK: Media port

    /// SAF1 to SAF3 (pitfalls 13) at the socket: floods of strangers and of one who has seen the ICE user names.
    @Test func floodsOfTheMediaPortGetNoAnswerAndDisturbNobody() async throws {
        try await withServer { server in
            try await withClient { client in
                try await client.join(server.signalingURL, Self.chat)
                #expect(await client.isUp())
                let sdp = await client.message("offer")?["sdp"]?.stringValue ?? ""
                let names = try await userNames(client, offer: sdp)
                let port = try #require(mediaPort(sdp))
                let addresses = await server.liveObjects()["addresses"]
                let loop = try EventLoop(name: "flood")
                defer { loop.stop() }
                let flood = try await Flood(loop, to: SocketAddress(.loopbackV4, port: port), names: names)
                try await flood.run()
                // Behind the flood on the same server loop: an ordinary message and an ordinary client.
                _ = await client.withPeer { $0.send(data: [1], label: "#chat", now: $1) }
                #expect(await server.waitForEvent(.messageRelayed, within: .seconds(30)) != nil)
                #expect(try await server.stillServes())
                #expect(await flood.answers == 0)
                #expect(await server.liveObjects()["addresses"] == addresses)
            }
        }
    }

    private func userNames(_ client: WireClient, offer: String) async throws -> String {
        func fragment(_ sdp: String) -> String? {
            sdp.split(whereSeparator: \.isNewline).first { $0.hasPrefix("a=ice-ufrag:") }.map {
                String($0.dropFirst(12))
            }
        }
        let own = await client.withPeer { peer, _ in peer.peer.localUsernameFragment }
        return "\(try #require(fragment(offer))):\(try #require(own))"
    }

    private func mediaPort(_ sdp: String) -> UInt16? {
        let candidate = sdp.split(whereSeparator: \.isNewline).first { $0.hasPrefix("a=candidate:") }
        return candidate.flatMap { line in
            let words = line.split(separator: " ")
            return words.count > 5 ? UInt16(words[5]) : nil
        }
    }
}

/// Sends all kinds of unauthenticated packets from many ports, and counts what comes back.
private actor Flood {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private(set) var answers = 0
    private var sockets: [UDPSocket] = []
    private let target: SocketAddress
    private let names: String

    init(_ loop: EventLoop, to target: SocketAddress, names: String) async throws {
        self.loop = loop
        self.target = target
        self.names = names
    }

    func run() throws {
        var random = RandomSource(seed: 5)
        let wrongKey = HMACKey(.sha1, key: Array("not the password".utf8))
        func check(_ name: String, signed: Bool) -> [UInt8] {
            STUNMessage(
                .request, .binding, transactionID: STUNTransactionID(random: &random),
                attributes: [.username(Array(name.utf8)), .priority(1), .useCandidate]
            ).serialized(integrity: signed ? .sha1(wrongKey) : nil, fingerprint: true)
        }
        for number in 0..<24 {
            let socket = try UDPSocket(
                on: loop, id: SocketID(number), address: SocketAddress(.loopbackV4, port: 0))
            socket.onDatagrams = { batch in self.answers += batch.count }
            sockets.append(socket)
            for round in 0..<40 {
                var packets = [
                    check(names, signed: true), check(names, signed: false), check("nobody:nobody", signed: true),
                ]
                // DTLS ClientHello and alert, RTP, RTCP, channel data, nonsense.
                for first in [22, 21, 0x80, 0x81, 0x40, 0xFF] as [UInt8] {
                    var packet = random.bytes(40 + round * 20)
                    packet[0] = first
                    packets.append(packet)
                }
                for packet in packets {
                    socket.send(Datagram(socket: socket.id, remote: target, payload: packet))
                }
            }
        }
    }
}
