import SoraHTTP
import SoraMessages
import SoraWire
import TestSupport
import Testing

@testable import LocalSora

@Suite("Fault injection", .serialized, .leavesNoObjects) struct FaultTests {
    private static let chat = DataChannelDefinition(label: "#chat", direction: .sendrecv)

    // MARK: Stages

    @Test func refusesAtEachStageTheGivenNumberOfTimes() async throws {
        for stage in Fault.Stage.allCases {
            try await withServer {
                $0.faults = [Fault(.refuse(stage, code: 4490, reason: "BUSY"), times: 1)]
            } _: { server in
                try await withClient { client in
                    switch stage {
                    case .tcp, .http:
                        _ = await #expect(throws: (any Error).self, "\(stage)") {
                            try await client.open(server.signalingURL)
                        }
                    case .connect, .answer, .media:
                        try await client.join(server.signalingURL, ChannelHarness.messaging())
                        let closure = await client.closed()
                        #expect(closure?.code == 4490, "\(stage)")
                        #expect(closure?.reason == "BUSY", "\(stage)")
                        #expect(await client.texts.contains { $0.contains("\"offer\"") } == (stage != .connect))
                    }
                }
                // The next attempt succeeds: what a reconnecting client must find.
                try await withClient { client in
                    try await client.join(server.signalingURL, ChannelHarness.messaging())
                    #expect(await client.isUp(), "\(stage)")
                }
            }
        }
    }

    @Test func refusedUpgradeHasTheGivenStatus() async throws {
        try await withServer {
            $0.faults = [Fault(.refuse(.http, code: 429, reason: ""))]
        } _: { server in
            try await withClient { client in
                _ = await #expect(throws: (any Error).self) { try await client.open(server.signalingURL) }
                #expect(String(decoding: await client.received, as: UTF8.self).hasPrefix("HTTP/1.1 429 "))
            }
        }
    }

    @Test func silentServerKeepsTheSocketAndSaysNothing() async throws {
        for stage in [Fault.Stage.tcp, .http, .connect, .answer, .media] {
            try await withServer {
                $0.connectTimeout = .seconds(1)
                $0.faults = [Fault(.silence(stage))]
            } _: { server in
                try await withClient { client in
                    switch stage {
                    case .tcp, .http:
                        try await client.dial(port: server.port)
                        let answer = await client.request(
                            "GET", "/signaling", headers: Self.upgrade, within: .milliseconds(1500))
                        #expect(answer == nil)
                    default:
                        try await client.join(server.signalingURL, ChannelHarness.messaging())
                        #expect(await client.isUp(within: .milliseconds(500)) == false)
                        #expect(await client.texts.isEmpty == (stage == .connect))
                    }
                    #expect(await client.isGone == false, "\(stage)")
                }
            }
        }
    }

    private static let upgrade: HTTPHeaders = [
        "Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    ]

    @Test func redirectLoopPointsToItself() async throws {
        try await withServer {
            $0.faults = [Fault(.redirect(to: nil))]
        } _: { server in
            for _ in 0..<3 {
                try await withClient { client in
                    try await client.join(server.signalingURL, ChannelHarness.messaging { $0.redirect = true })
                    #expect(await client.message("redirect")?["location"]?.stringValue == server.signalingURL)
                    #expect(await client.closed()?.code == 1000)
                }
            }
        }
    }

    // MARK: Messages

    @Test func lateSwitchedComesLate() async throws {
        try await withServer {
            $0.faults = [Fault(.delayMessages(types: ["switched"], by: .seconds(1)))]
        } _: { server in
            try await withClient { client in
                try await client.join(server.signalingURL, ChannelHarness.messaging())
                #expect(await client.isUp())
                #expect(await client.message("switched") != nil)
                // Without the fault it is the other way round.
                let types = await client.withPeer { peer, _ in
                    peer.log.compactMap { if case .message(let type, _, _) = $0 { type } else { nil } }
                }
                #expect(types?.filter { $0 == "notify" || $0 == "switched" } == ["notify", "switched"])
            }
        }
    }

    @Test func droppedMessagesNeverCome() async throws {
        try await withServer {
            $0.faults = [Fault(.dropMessages(types: ["switched"]))]
        } _: { server in
            try await withClient { client in
                try await client.join(server.signalingURL, ChannelHarness.messaging())
                #expect(await client.isUp())
                #expect(await client.message("switched", within: .milliseconds(100)) == nil)
            }
        }
    }

    // MARK: Ends

    @Test func closesWithAnyCodeAfterBeingUp() async throws {
        try await withServer {
            $0.faults = [Fault(.close(after: .milliseconds(50), code: 4321, reason: "TESTED"))]
        } _: { server in
            try await withClient { client in
                try await client.join(server.signalingURL, ChannelHarness.messaging())
                #expect(await client.isUp())
                let closure = await client.closed()
                #expect(closure?.code == 4321)
                #expect(closure?.reason == "TESTED")
            }
        }
    }

    @Test func resetCutsTheSocketWithoutACloseFrame() async throws {
        try await withServer {
            $0.faults = [Fault(.reset(after: .zero))]
        } _: { server in
            try await withClient { client in
                try await client.join(server.signalingURL, ChannelHarness.messaging())
                #expect(await client.wait { $0.isGone })
                #expect(await client.closure?.code == 1006)
            }
        }
    }

    @Test func oneDataChannelIsClosed() async throws {
        try await withServer {
            $0.faults = [Fault(.closeDataChannel(label: "push", after: .zero))]
        } _: { server in
            try await withClient { client in
                try await client.join(server.signalingURL, ChannelHarness.messaging())
                #expect(
                    await client.wait { client in
                        client.peer?.log.contains { if case .channelClosed("push") = $0 { true } else { false } }
                            ?? false
                    })
                #expect(await client.closure == nil)
            }
        }
    }

    // MARK: Network

    /// Two members with `#chat`, both up; the second one's client id is `second`.
    private func withTwoMembers<Result>(
        of server: SoraServer, _ body: (_ first: WireClient, _ second: WireClient) async throws -> Result
    ) async throws -> Result {
        try await withClient { first in
            try await withClient { second in
                try await first.join(server.signalingURL, ChannelHarness.messaging([Self.chat]))
                try #require(await first.isUp())
                try await second.join(
                    server.signalingURL, ChannelHarness.messaging([Self.chat]) { $0.clientID = "second" })
                try #require(await second.isUp())
                return try await body(first, second)
            }
        }
    }

    /// How long a message takes to a member on such a network.
    private func timeOfMessage(_ conditions: Fault.NetworkConditions) async throws -> Duration {
        try await withServer {
            $0.faults = [Fault(.network(upload: conditions, download: conditions), clientID: "second")]
        } _: { server in
            try await withTwoMembers(of: server) { first, second in
                let clock = ContinuousClock()
                let start = clock.now
                _ = await first.withPeer { $0.send(data: [1], label: "#chat", now: $1) }
                try #require(await second.wait { $0.peer?.data("#chat") == [[1]] })
                return clock.now - start
            }
        }
    }

    @Test func delayHoldsPacketsBack() async throws {
        var conditions = Fault.NetworkConditions()
        conditions.delay = .milliseconds(150)
        #expect(try await timeOfMessage(conditions) >= .milliseconds(150))
    }

    @Test func lossDuplicationAndReorderingAreSurvived() async throws {
        var conditions = Fault.NetworkConditions()
        conditions.loss = 0.1
        conditions.duplication = 0.2
        conditions.reordering = 0.2
        conditions.jitter = .milliseconds(5)
        _ = try await timeOfMessage(conditions)
    }

    /// Once DTLS is up: before, a handshake message that was altered is an attack to DTLS, and ends it.
    @Test func corruptPacketsAreDroppedAndSentAgain() async throws {
        try await withServer { server in
            try await withTwoMembers(of: server) { first, second in
                let id = await second.message("offer")?["connection_id"]?.stringValue
                var conditions = Fault.NetworkConditions()
                conditions.corruption = 0.3
                let fault = Fault(.network(upload: conditions, download: conditions), connectionID: id)
                #expect(await server.inject(fault) == 1)
                let sent = (0..<20).map { [UInt8($0)] }
                _ = await first.withPeer { peer, now in
                    for message in sent { peer.send(data: message, label: "#chat", now: now) }
                }
                #expect(await second.wait { $0.peer?.data("#chat") == sent })
            }
        }
    }

    @Test func rateHoldsLargeMessagesBack() async throws {
        var conditions = Fault.NetworkConditions()
        conditions.kilobitsPerSecond = 400
        try await withServer {
            $0.faults = [Fault(.network(upload: .init(), download: conditions), clientID: "second")]
        } _: { server in
            try await withTwoMembers(of: server) { first, second in
                let clock = ContinuousClock()
                let start = clock.now
                // 25,000 bytes at 400 kbit/s take half a second.
                let message = [UInt8](repeating: 7, count: 25_000)
                _ = await first.withPeer { $0.send(data: message, label: "#chat", now: $1) }
                #expect(await second.wait { $0.peer?.data("#chat").first?.count == 25_000 })
                #expect(clock.now - start >= .milliseconds(400))
            }
        }
    }

    @Test func faultsReachConnectionsThatAreThereAndAreTakenBack() async throws {
        try await withServer { server in
            try await withTwoMembers(of: server) { first, second in
                let id = await second.message("offer")?["connection_id"]?.stringValue
                var dead = Fault.NetworkConditions()
                dead.loss = 1
                #expect(await server.inject(Fault(.network(upload: dead, download: dead), connectionID: id)) == 1)
                _ = await first.withPeer { $0.send(data: [1], label: "#chat", now: $1) }
                #expect(await second.wait(.milliseconds(200)) { $0.peer?.data("#chat").isEmpty == false } == false)
                await server.removeFaults()
                #expect(await second.wait { $0.peer?.data("#chat") == [[1]] })
            }
        }
    }

    @Test func removingANumberThatIsNoneRemovesNothing() async throws {
        try await withServer { server in
            for _ in 0..<2 { _ = try await server.call("LocalSora.InjectFault", ["fault": "drop", "types": ["ping"]]) }
            for wrong: JSONValue in ["1", 1.5, [1], true] {
                let answer = try await server.call("LocalSora.RemoveFaults", ["fault_id": wrong])
                #expect(answer.status == 400)
                #expect(answer.json.objectValue?["error_type"] == "INVALID-PARAMETER")
            }
            #expect(try await server.call("LocalSora.ListFaults").json.arrayValue?.count == 2)
            #expect(try await server.call("LocalSora.RemoveFaults", ["fault_id": 1]).json == ["removed": 1])
        }
    }

    /// A server that lives through a thousand tests takes the next fault, too.
    @Test func faultsThatAreUsedUpMakeRoom() async throws {
        let once = try Fault(parsing: "fault=redirect,times=1")
        let board = FaultBoard(Array(repeating: once, count: 1000))
        #expect(board.add(once) == nil)
        #expect(board.atConnect(channelID: "c", clientID: nil) == .redirect(to: nil))
        #expect(board.add(once) == 1001)
        #expect(board.entries.count == 1000)
        #expect(board.add(once) == nil)
    }

    @Test(arguments: ["code=65536", "code=1.5", "code=-1", "code=x", "times=0.5", "times=1e11"])
    func numbersThatCannotBeMeantAreRefused(word: String) {
        #expect(throws: Fault.ParseError.self) { try Fault(parsing: "fault=close,\(word)") }
        #expect(throws: Fault.ParseError.self) { try Fault(parsing: "fault=refuse,\(word)") }
    }

    @Test func apiInjectsListsAndRemovesFaults() async throws {
        try await withServer { server in
            let body: JSONObject = ["fault": "refuse", "stage": "connect", "reason": "BUSY", "times": 1]
            let injected = try await server.call("LocalSora.InjectFault", body).json.objectValue
            #expect(injected?["connections"] == 0)
            let list = try await server.call("LocalSora.ListFaults").json.arrayValue
            #expect(list?.first?.objectValue?["reason"] == "BUSY")
            #expect(try await server.call("LocalSora.RemoveFaults").json == ["removed": 1])
            try await withClient { client in
                try await client.join(server.signalingURL, ChannelHarness.messaging())
                #expect(await client.isUp())
            }
            let wrong = try await server.call("LocalSora.InjectFault", ["fault": "flood"])
            #expect(wrong.json.objectValue?["error_type"] == "INVALID-PARAMETER")
        }
    }

    // MARK: Descriptions

    @Test func flagsDescribeFaults() throws {
        var conditions = Fault.NetworkConditions()
        conditions.loss = 0.1
        conditions.delay = .milliseconds(50)
        conditions.kilobitsPerSecond = 300
        #expect(
            try Fault(parsing: "fault=network,loss=0.1,delay_ms=50,rate_kbps=300,direction=down,client_id=7")
                == Fault(.network(upload: .init(), download: conditions), clientID: "7"))
        #expect(
            try Fault(parsing: "fault=drop,types=ping+notify,times=3")
                == Fault(.dropMessages(types: ["ping", "notify"]), times: 3))
        #expect(
            try Fault(parsing: "fault=refuse,stage=http,code=503")
                == Fault(.refuse(.http, code: 503, reason: "INTERNAL-ERROR")))
    }

    @Test(arguments: [
        ("", "key 'fault' is missing"), ("loss", "is not key=value"), ("fault=flood", "there is no fault 'flood'"),
        ("fault=network,loss=2", "key 'loss' is not between 0 and 1"),
        ("fault=network,los=0.5", "key 'los' does not belong to this fault"),
        ("fault=refuse,stage=moon", "stage 'moon'"), ("fault=delay", "key 'delay_ms' is missing"),
        ("fault=network,direction=sideways", "direction 'sideways'"),
        ("fault=network,delay_ms=-1", "key 'delay_ms' is not a number"),
    ])
    func wrongDescriptionsSayWhatIsWrong(text: String, complaint: String) {
        #expect(throws: Fault.ParseError.self) { try Fault(parsing: text) }
        do {
            _ = try Fault(parsing: text)
        } catch {
            #expect(error.description.contains(complaint), "\(error)")
        }
    }
}
