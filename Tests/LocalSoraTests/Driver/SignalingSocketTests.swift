import LocalSora
import SoraHTTP
import SoraMessages
import SoraNetwork
import SoraWire
import TestSupport
import Testing

@Suite("Server: sockets", .serialized, .leavesNoObjects) struct SignalingSocketTests {
    private static let connectText = ChannelHarness.messaging().json.text

    // MARK: Refusals

    @Test func fullChannelRefuses() async throws {
        try await withServer {
            $0.maximumConnectionsPerChannel = 1
        } _: { server in
            let first = try WireClient()
            defer { first.close() }
            try await first.join(server.signalingURL, ChannelHarness.messaging())
            #expect(await first.isUp())
            try await withClient { second in
                try await second.join(server.signalingURL, ChannelHarness.messaging())
                let closure = await second.closed()
                #expect(closure?.code == 4490)
                #expect(closure?.reason == "TOO-MANY-CONNECTIONS")
            }
        }
    }

    @Test func tooManyChannelsAreRefused() async throws {
        try await withServer {
            $0.maximumChannels = 1
        } _: { server in
            let first = try WireClient()
            defer { first.close() }
            try await first.join(server.signalingURL, ChannelHarness.messaging())
            #expect(await first.isUp())
            try await withClient { second in
                try await second.join(server.signalingURL, ChannelHarness.messaging { $0.channelID = "other" })
                #expect(await second.closed()?.reason == "TOO-MANY-CHANNELS")
            }
        }
    }

    // MARK: Abuse (SRV1): an ordinary client is not disturbed

    @Test func silentSocketsAreClosed() async throws {
        try await withServer {
            $0.connectTimeout = .seconds(1)
        } _: { server in
            try await withClient { silent in
                try await silent.dial(port: server.port)
                try await withClient { half in
                    try await half.open(server.signalingURL)
                    #expect(try await server.stillServes())
                    let closure = await half.closed()
                    #expect(closure?.code == 4490)
                    #expect(closure?.reason == "TIMEOUT")
                    #expect(await silent.wait { $0.isGone })
                    #expect(await silent.received.isEmpty)
                    #expect(!server.recordedEvents.contains { $0.kind == .protocolError })
                }
            }
        }
    }

    @Test func socketsThatCloseWithoutAWordAreNoError() async throws {
        try await withServer { server in
            try await withClient { client in
                try await client.open(server.signalingURL)
                await client.closeWebSocket()
                #expect(await client.closed()?.code == 1000)
            }
            #expect(try await server.stillServes())
            #expect(!server.recordedEvents.contains { $0.kind == .refused || $0.kind == .protocolError })
        }
    }

    @Test func slowHeadIsCutOffByOneDeadline() async throws {
        try await withServer {
            $0.connectTimeout = .seconds(1)
        } _: { server in
            try await withClient { client in
                try await client.dial(port: server.port)
                // A byte now and then does not prolong the wait.
                let start = ContinuousClock().now
                for byte in ("GET /signaling HTTP/1.1\r\nX: " + String(repeating: "a", count: 400)).utf8 {
                    await client.write(bytes: [byte])
                    if await client.wait(.milliseconds(20), until: { $0.isGone }) { break }
                }
                #expect(await client.wait { $0.isGone })
                #expect(ContinuousClock().now - start < .seconds(5))
                #expect(try await server.stillServes())
            }
        }
    }

    @Test func oversizedHeadIsAnswered431() async throws {
        try await withServer { server in
            try await withClient { client in
                try await client.dial(port: server.port)
                await client.write("GET / HTTP/1.1\r\nX: " + String(repeating: "a", count: 40_000))
                #expect(await client.wait { $0.isGone })
                #expect(String(decoding: await client.received, as: UTF8.self).hasPrefix("HTTP/1.1 431 "))
                #expect(try await server.stillServes())
            }
        }
    }

    @Test func garbageIsAnswered400() async throws {
        try await withServer { server in
            try await withClient { client in
                try await client.dial(port: server.port)
                await client.write("\u{16}\u{03}\u{01} hello\r\n\r\n")
                #expect(await client.wait { $0.isGone })
                #expect(String(decoding: await client.received, as: UTF8.self).hasPrefix("HTTP/1.1 400 "))
            }
        }
    }

    @Test func tooManySocketsOfOneAddressAreCutOff() async throws {
        try await withServer {
            $0.maximumWaitingSocketsPerAddress = 3
        } _: { server in
            var clients: [WireClient] = []
            defer { for client in clients { client.close() } }
            for _ in 0..<3 {
                let client = try WireClient()
                clients.append(client)
                try await client.open(server.signalingURL)
            }
            try await withClient { fourth in
                _ = await #expect(throws: (any Error).self) { try await fourth.open(server.signalingURL) }
            }
            // Those that have said `connect` do not count.
            await clients[0].send(Self.connectText)
            #expect(await clients[0].message("offer") != nil)
            let fifth = try WireClient()
            clients.append(fifth)
            try await fifth.open(server.signalingURL)
        }
    }

    @Test func tooManyMessagesEndTheConnection() async throws {
        try await withServer {
            $0.maximumMessagesPerSecond = 2
        } _: { server in
            try await withClient { client in
                try await client.open(server.signalingURL)
                await client.send(Self.connectText)
                _ = await client.message("offer")
                for _ in 0..<30 { await client.send(#"{"type":"pong"}"#) }
                #expect(await client.closed()?.reason == "TOO-MANY-MESSAGES")
                #expect(try await server.stillServes())
            }
        }
    }

    @Test func hugeMessageEndsTheConnection() async throws {
        try await withServer { server in
            try await withClient { client in
                try await client.open(server.signalingURL)
                await client.send("{\"type\":\"" + String(repeating: "x", count: 2 << 20) + "\"}")
                #expect(await client.closed()?.code == 1009)
                #expect(try await server.stillServes())
            }
        }
    }

    @Test func deeplyNestedJSONIsRefused() async throws {
        try await withServer { server in
            try await withClient { client in
                try await client.open(server.signalingURL)
                await client.send(String(repeating: "[", count: 100_000))
                #expect(await client.closed()?.reason == "INVALID-JSON")
            }
        }
    }

    @Test func wrongPathAndVersionAreRefusedOverHTTP() async throws {
        try await withServer { server in
            try await withClient { client in
                await #expect(throws: (any Error).self) {
                    try await client.open("ws://127.0.0.1:\(server.port)/elsewhere")
                }
                #expect(String(decoding: await client.received, as: UTF8.self).hasPrefix("HTTP/1.1 404 "))
            }
            try await withClient { client in
                try await client.dial(port: server.port)
                let response = await client.request(
                    "GET", "/signaling",
                    headers: [
                        "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "8",
                        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
                    ])
                #expect(response?.head.status == 426)
            }
        }
    }

    /// SRV2 (pitfalls 11).
    @Test func webSocketClientThatDoesNotReadIsCutOff() async throws {
        try await withServer { server in
            try await withClient { client in
                try await client.join(
                    server.signalingURL, ChannelHarness.connect(.recvonly) { $0.dataChannelSignaling = false })
                #expect(await client.isUp())
                await client.stopReading()
                let data = String(repeating: "x", count: 200_000)
                var isCutOff = false
                for _ in 0..<300 where !isCutOff {
                    try await server.push(channelID: "sora", json: #"{"data":"\#(data)"}"#)
                    isCutOff = await server.connectionIDs(channelID: "sora").isEmpty
                }
                #expect(isCutOff)
                #expect(try await server.stillServes())
            }
        }
    }

    // MARK: TURN

    @Test func turnServersAreOffered() async throws {
        for forces in [false, true] {
            try await withServer {
                $0.turnServers = [.init(urls: ["turn:192.0.2.1:3478?transport=udp"], username: "u", credential: "p")]
                $0.forcesRelay = forces
            } _: { server in
                for name in ["Sora JavaScript SDK 2026.1.0", "Sora iOS SDK 2025.2.0"] {
                    try await withClient { client in
                        try await client.join(server.signalingURL, ChannelHarness.messaging { $0.soraClient = name })
                        let config = await client.message("offer")?["config"]
                        // iOS decodes nothing but `relay` (2.3).
                        let policy = forces || name.contains("iOS") ? "relay" : "all"
                        #expect(
                            config == [
                                "iceServers": [
                                    ["urls": ["turn:192.0.2.1:3478?transport=udp"], "username": "u", "credential": "p"]
                                ], "iceTransportPolicy": .string(policy),
                            ])
                    }
                }
            }
        }
    }

    // MARK: Redirects

    @Test func redirectTellsTheLocationAndCloses() async throws {
        try await withServer { target in
            try await withServer {
                $0.redirectLocation = target.signalingURL
            } _: { front in
                try await withClient { client in
                    try await client.open(front.signalingURL)
                    await client.send(Self.connectText)
                    let redirect = await client.message("redirect")
                    #expect(redirect?["location"]?.stringValue == target.signalingURL)
                    // Native clients wait for this (1.5).
                    #expect(await client.closed()?.code == 1000)
                    #expect(await client.texts.count == 1)
                }
                try await withClient { client in
                    try await client.join(target.signalingURL, ChannelHarness.messaging { $0.redirect = true })
                    #expect(await client.isUp())
                }
            }
        }
    }

    // MARK: Scripts

    @Test func scriptChangesMessagesOnARealSocket() async throws {
        try await withServer { configuration in
            configuration.script = { message in
                switch message.type {
                case "offer": [.send(#"{"type":"unheard-of"}"#), .pass]
                case "switched": [.hold("later")]
                default: [.pass]
                }
            }
        } _: { server in
            try await withClient(isStrict: false) { client in
                try await client.join(server.signalingURL, ChannelHarness.messaging())
                #expect(await client.isUp())
                #expect(await client.texts.first == #"{"type":"unheard-of"}"#)
                #expect(await client.texts.contains { $0.contains("switched") } == false)
                await server.release("later")
                #expect(await client.message("switched") != nil)
            }
        }
    }

    // MARK: Messaging over real sockets

    @Test func messagesTravelBetweenClientsWithHeaders() async throws {
        try await withServer { server in
            var definition = DataChannelDefinition(label: "#chat", direction: .sendrecv, compress: true)
            definition.header = [DataChannelHeaderField(type: DataChannelHeaderField.senderConnectionID)]
            let connect = ChannelHarness.messaging([definition])
            let first = try WireClient()
            let second = try WireClient()
            defer {
                first.close()
                second.close()
            }
            try await first.join(server.signalingURL, connect)
            #expect(await first.isUp())
            try await second.join(server.signalingURL, connect)
            #expect(await second.isUp())
            let id = await first.message("offer")?["connection_id"]?.stringValue ?? ""
            _ = await first.withPeer { $0.send(data: Array("hello".utf8), label: "#chat", now: $1) }
            #expect(await second.wait { $0.peer?.data("#chat") == [Array((id + "hello").utf8)] })
        }
    }
}
