import Foundation
import LocalSora
import SoraEmulator
import SoraMessages
import SoraSDP
import SoraWire
import TestSupport
import Testing

/// Signaling that goes wrong, scripts, RPC, and the recorded clients.
@Suite(.serialized, .leavesNoObjects) struct SignalingTests {
    static let fixtures = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "Fixtures/signaling")

    static func names(_ prefix: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: fixtures.path)
            .filter { $0.hasPrefix(prefix) && $0.hasSuffix(".json") }.sorted()
    }

    /// Every recorded `connect` is admitted and comes up: those that stand alone, and those that begin a conversation.
    @Test func recordedConnectsAreAccepted() throws {
        var recorded: [(name: String, json: JSONValue)] = []
        for name in try Self.names("connect-") + Self.names("flow-") {
            let json = try JSONValue(parsing: String(contentsOf: Self.fixtures.appending(path: name), encoding: .utf8))
            if let flow = json.arrayValue {
                let messages = flow.compactMap { $0.objectValue?["message"]?.objectValue }
                recorded += messages.filter { $0["type"] == "connect" }.map { (name, .object($0)) }
            } else {
                recorded.append((name, json))
            }
        }
        #expect(recorded.count { $0.name.hasPrefix("connect-") } > 25)
        #expect(recorded.count { $0.name.hasPrefix("flow-") } == 22)
        for (name, json) in recorded {
            let connect = try ConnectMessage(validating: json)
            let harness = try ChannelHarness()
            let client = try harness.joined(connect, videoCodecs: ["VP8", "VP9", "AV1", "H264", "H265"])
            let offer = try #require(client.offer, "\(name)")
            #expect(offer.simulcast == (connect.simulcast ?? false), "\(name)")
            #expect(offer.spotlight == (connect.spotlight ?? false), "\(name)")
            #expect(offer.dataChannelSignaling == (connect.dataChannelSignaling ?? true), "\(name)")
            #expect(
                (offer.dataChannels ?? []).map(\.label).filter { $0.hasPrefix("#") }
                    == (connect.dataChannels ?? []).map(\.label), "\(name)")
            #expect(client.notifications("connection.created").count == 1, "\(name)")
            #expect(client.closeFrames.isEmpty, "\(name)")
        }
    }

    /// iOS cannot decode a configuration without relay (2.3).
    @Test func configurationIsLeftOutForIOS() throws {
        let harness = try ChannelHarness()
        let ios = try harness.joined(ChannelHarness.messaging { $0.soraClient = "Sora iOS SDK 2025.3.0" })
        let android = try harness.joined(ChannelHarness.messaging { $0.soraClient = "Sora Android SDK 2025.3.0" })
        #expect(ios.offer?.config == nil)
        #expect(android.offer?.config?.iceServers.isEmpty == true)
    }

    // MARK: What a server must not stumble over

    @Test func invalidMessageEndsTheConnection() throws {
        for text in [
            "", "{", "[]", "\"x\"", #"{"type":null}"#, #"{"type":"answer"}"#, #"{"type":"candidate","candidate":7}"#,
        ] {
            let harness = try ChannelHarness()
            let client = try harness.joined(ChannelHarness.connect { $0.dataChannelSignaling = false })
            harness.perform { $0.receive(text: text, from: client.id, now: $1) }
            #expect(client.closeFrames.map(\.code) == [4490], "\(text)")
            #expect(client.closeFrames.map(\.reason) == ["INVALID-MESSAGE"], "\(text)")
        }
    }

    @Test func secondConnectEndsTheConnection() throws {
        let harness = try ChannelHarness()
        let client = try harness.joined(ChannelHarness.messaging())
        client.send(["type": "connect", "role": "sendrecv", "channel_id": "sora"], now: harness.now)
        harness.run(for: .milliseconds(10))
        #expect(client.closeFrames.map(\.reason) == ["DUPLICATE-CONNECT"])
    }

    @Test func unknownAndMisplacedMessagesAreIgnored() throws {
        let harness = try ChannelHarness()
        let client = try harness.joined(ChannelHarness.messaging())
        let messages: [JSONValue] = [
            ["type": "future", "x": 1], ["type": "pong"], ["type": "ping"], ["type": "switched"],
            ["type": "re-answer", "sdp": "v=0"],
            ["type": "answer", "sdp": "nonsense"], ["type": "candidate", "candidate": ""],
            ["type": "candidate", "candidate": "candidate:1 1 udp 1 0a1b2c.local 9 typ host"],
            ["type": "notify", "event_type": "x"], ["type": "pong", "stats": [["type": "x"]]],
        ]
        for message in messages {
            client.send(message, now: harness.now)
            harness.run(for: .milliseconds(20))
        }
        #expect(client.closeFrames.isEmpty)
        #expect(harness.channel.hasMember(client.id))
        let record = try harness.channel.connectionRecord(client.id.rawValue, now: harness.now)
        #expect(record.clientStats == [["type": "x"]])
    }

    /// LIF24: messages before the connection is up are no error.
    @Test func messagesBeforeTheConnectionIsUpAreTaken() throws {
        let harness = try ChannelHarness()
        let client = try harness.join(ChannelHarness.messaging(), prepare: { $0.answersAutomatically = false })
        client.send(["type": "pong"], now: harness.now)
        client.send(
            ["type": "candidate", "candidate": "candidate:1 1 udp 2122260223 10.9.9.9 9 typ host"], now: harness.now)
        harness.run(for: .milliseconds(20))
        harness.perform { client.answerOldest(now: $1) }
        let isUp = harness.run(for: .seconds(3)) { client.isSwitched }
        #expect(isUp)
    }

    @Test func disconnectBeforeTheAnswerEndsCleanly() throws {
        let harness = try ChannelHarness()
        let watcher = try harness.joined(ChannelHarness.messaging())
        let client = try harness.join(ChannelHarness.messaging(), prepare: { $0.answersAutomatically = false })
        client.send(["type": "disconnect", "reason": "NO-ERROR"], now: harness.now)
        harness.run(for: .seconds(1))
        #expect(client.closeFrames.map(\.reason) == ["TYPE-DISCONNECT"])
        #expect(watcher.notifications("connection.destroyed").isEmpty)
        #expect(harness.connectionEvents.map(\.kind) == [.created, .failed])
        #expect(harness.connectionEvents.last?.clientReason == "NO-ERROR")
    }

    @Test func membersAreLimited() throws {
        let harness = try ChannelHarness { $0.maximumMembers = 2 }
        try harness.joined(ChannelHarness.messaging())
        try harness.joined(ChannelHarness.messaging())
        #expect(throws: ConnectRejection(reason: "TOO-MANY-CONNECTIONS")) {
            try harness.join(ChannelHarness.messaging())
        }
    }

    // MARK: RPC

    static func request(_ name: String, _ params: String, id: Int = 1) -> String {
        #"{"jsonrpc":"2.0","id":\#(id),"method":"2025.2.0/\#(name)","params":\#(params)}"#
    }

    static func answer(_ text: String, _ client: SimulatedClient, _ harness: ChannelHarness) -> JSONObject? {
        let before = client.messages("rpc").count
        harness.perform { client.send(data: Array(text.utf8), label: "rpc", now: $1) }
        harness.run(for: .milliseconds(100))
        let after = client.messages("rpc")
        return after.count > before ? after.last : nil
    }

    @Test func everyRequestIsAnswered() throws {
        let harness = try ChannelHarness()
        let client = try harness.joined(ChannelHarness.messaging())
        func code(_ text: String) -> Int? {
            Self.answer(text, client, harness)?["error"]?.objectValue?["code"]?.intValue
        }
        #expect(code("{") == -32_700)
        #expect(code("[]") == -32_600)
        #expect(code(#"{"jsonrpc":"1.0","id":1,"method":"x"}"#) == -32_600)
        #expect(code(#"{"jsonrpc":"2.0","id":1,"method":"x"}"#) == -32_601)
        #expect(
            code(Self.request("RequestSimulcastRid", #"{"rid":"r9"}"#)) == -32_602)
        #expect(
            code(Self.request("RequestSimulcastRid", #"{"rid":"r1","x":1}"#))
                == -32_602)
        #expect(
            code(
                Self.request("RequestSimulcastRid", #"{"rid":"r1","sender_connection_id":"X"}"#)
            )
                == -32_602)
        #expect(code(Self.request("ResetSpotlightRid", #"{}"#)) == -32_602)
        let good = Self.answer(
            #"{"jsonrpc":"2.0","id":"a","method":"2025.2.0/RequestSimulcastRid","params":{"rid":"r1"}}"#, client,
            harness)
        #expect(good?["id"]?.stringValue == "a")
        #expect(good?["result"] != nil)
        // A notification is never answered, not even a wrong one.
        #expect(
            Self.answer(
                #"{"jsonrpc":"2.0","method":"2025.2.0/RequestSimulcastRid","params":{"rid":"r1"}}"#, client, harness)
                == nil)
        #expect(Self.answer(#"{"jsonrpc":"2.0","method":"x"}"#, client, harness) == nil)
        #expect(harness.channel.hasMember(client.id))
    }

    @Test func methodsMayBeForbidden() throws {
        let harness = try ChannelHarness()
        let some = try harness.joined(
            ChannelHarness.messaging(), grant: { $0.rpcMethods = [RPCMethodName.putSignalingNotifyMetadata] })
        #expect(some.offer?.rpcMethods == [RPCMethodName.putSignalingNotifyMetadata])
        let error = Self.answer(
            Self.request("RequestSimulcastRid", #"{"rid":"r1"}"#), some, harness)
        #expect(error?["error"]?.objectValue?["code"]?.intValue == -32_601)
        let none = try harness.joined(ChannelHarness.messaging(), grant: { $0.rpcMethods = [] })
        #expect(none.definitions["rpc"] == nil)
        #expect(none.offer?.rpcMethods == nil)
        let limited = try harness.joined(ChannelHarness.messaging(), grant: { $0.simulcastRPCRids = [.r0] })
        let refused = Self.answer(
            Self.request("RequestSimulcastRid", #"{"rid":"r1"}"#), limited, harness
        )
        #expect(refused?["error"]?.objectValue?["code"]?.intValue == -32_602)
    }

    /// LIF16: null, absent and empty stay three things.
    @Test func notifyMetadataIsChangedAndPushed() throws {
        let harness = try ChannelHarness()
        let a = try harness.joined(ChannelHarness.messaging { $0.signalingNotifyMetadata = ["a": nil, "b": [nil]] })
        let b = try harness.joined(ChannelHarness.messaging())
        #expect(
            b.notifications("connection.created").first?["data"]?.arrayValue?.first?.objectValue?["authn_metadata"] == [
                "a": nil, "b": [nil],
            ])
        let put = Self.answer(
            Self.request("PutSignalingNotifyMetadata", #"{"metadata":{"x":1},"push":true}"#),
            a, harness)
        #expect(put?["result"] == ["x": 1])
        let pushed = try #require(b.messages("push").first?["data"]?.objectValue)
        #expect(pushed["metadata"] == ["x": 1])
        #expect(pushed["connection_id"]?.stringValue == a.id.rawValue)
        #expect(a.messages("push").isEmpty)
        let item = Self.answer(
            Self.request("PutSignalingNotifyMetadataItem", #"{"key":"y","value":null}"#, id: 2),
            a, harness)
        #expect(item?["result"] == ["x": 1, "y": nil])
        #expect(b.messages("push").count == 1)
        let c = try harness.joined(ChannelHarness.messaging())
        let seen = c.notifications("connection.created").first?["data"]?.arrayValue?.first?.objectValue
        #expect(seen?["authn_metadata"] == ["x": 1, "y": nil])
    }

    // MARK: Scripts

    @Test func scriptHoldsReleasesAndReplaces() throws {
        let harness = try ChannelHarness()
        harness.channel.script = { message in
            switch (message.type, message.index) {
            case ("offer", _): [.hold("offer")]
            case ("notify", 0): [.drop]
            case ("switched", _): [.send(#"{"type":"custom"}"#), .pass]
            default: [.pass]
            }
        }
        let client = try harness.join(ChannelHarness.messaging(), prepare: { $0.isStrict = false })
        harness.run(for: .seconds(1))
        #expect(client.offer == nil)
        harness.perform { $0.release("offer", now: $1) }
        harness.run(for: .seconds(1))
        #expect(client.offer != nil)
        #expect(client.isSwitched)
        #expect(client.messages("custom").count == 1)
        #expect(client.messages("notify").isEmpty)
    }

    @Test func scriptDelays() throws {
        let harness = try ChannelHarness()
        harness.channel.script = { $0.type == "switched" ? [.delay(.seconds(3))] : [.pass] }
        let client = try harness.join(ChannelHarness.messaging(), prepare: { $0.isStrict = false })
        harness.run(for: .milliseconds(2900))
        #expect(!client.isSwitched)
        harness.run(for: .milliseconds(300))
        #expect(client.isSwitched)
    }

    @Test(arguments: ["offer", "switched", "notify"]) func scriptClosesOrCutsTheSocket(type: String) throws {
        for cuts in [true, false] {
            let harness = try ChannelHarness()
            harness.channel.script = {
                $0.type == type ? [cuts ? .resetWebSocket : .closeWebSocket(code: 4123, reason: "SCRIPT")] : [.pass]
            }
            let client = try harness.join(ChannelHarness.messaging(), prepare: { $0.isStrict = false })
            harness.run(for: .seconds(2))
            #expect(client.closeFrames.map(\.code) == (cuts ? [] : [4123]))
            #expect(!client.webSocketIsOpen)
            #expect(harness.channel.isEmpty)
        }
    }

    // MARK: Operations of the HTTP API

    @Test func recipientsAreChosen() throws {
        let harness = try ChannelHarness()
        let a = try harness.joined(ChannelHarness.messaging { $0.clientID = "x" })
        let b = try harness.joined(ChannelHarness.messaging { $0.clientID = "x" })
        let c = try harness.joined(ChannelHarness.connect(.recvonly))
        func pushes() -> [Int] { [a, b, c].map { $0.messages("push").count } }
        for recipients in [Recipients.everyone, .client("x"), .connection(b.id.rawValue), .role(.recvonly)] {
            try harness.perform { try $0.push(["n": 1], to: recipients, now: $1) }
            harness.run(for: .milliseconds(50))
        }
        #expect(pushes() == [2, 3, 2])
        #expect(throws: OperationError.unknownClient("z")) {
            try harness.perform { try $0.push([:], to: .client("z"), now: $1) }
        }
        let objects = harness.channel.connectionRecords(now: harness.now).map(\.object)
        #expect(objects.map(\.connectionID) == [a, b, c].map(\.id.rawValue))
        #expect(objects.map(\.clientID) == ["x", "x", c.id.rawValue])
        let ended = try harness.perform { try $0.disconnect(.client("x"), reason: ["why": 1], now: $1) }
        #expect(ended == [a.id.rawValue, b.id.rawValue])
        harness.run(for: .seconds(4))
        #expect(a.closeFrames.map(\.reason) == ["DISCONNECTED-API"])
        #expect(c.closeFrames.isEmpty)
        let event = try #require(harness.connectionEvents.last)
        #expect(event.kind == .destroyed)
        #expect(event.reason == "DISCONNECTED-API")
        #expect(event.apiReason == ["why": 1])
        #expect(event.record.counts.connections == 1)
        let session = harness.channel.sessionRecord(now: harness.now)
        #expect(session.maximumConnections == 3)
        #expect(session.totalConnections == 3)
        #expect(throws: OperationError.unknownSession("S")) {
            try harness.perform { try $0.terminateSession("S", now: $1) }
        }
        let id = try harness.perform { try $0.terminateSession(nil, now: $1) }
        #expect(id == harness.channel.sessionID)
        harness.run(for: .seconds(4))
        #expect(harness.channel.isEmpty)
    }

    @Test func mediaOperationsHold() throws {
        let harness = try ChannelHarness()
        let sender = try harness.joined(ChannelHarness.connect(.sendonly) { $0.simulcast = true })
        let viewer = try harness.joined(ChannelHarness.connect(.recvonly) { $0.simulcastRequestRID = .r0 })
        let source = MediaSource(sender)
        harness.play([source], for: .seconds(1))
        func last() -> Int? { StreamCheck(viewer.packets(from: sender.id, .video)).layers.last }
        try harness.perform { try $0.requestLayer(.auto, receiver: viewer.id.rawValue, sender: nil, now: $1) }
        harness.play([source], for: .seconds(1))
        #expect(last() == 2)
        let statistics = try harness.channel.statistics(of: viewer.id.rawValue, now: harness.now)
        #expect(statistics.received.map(\.rid) == ["r0", "r2"])  // sound has one layer
        #expect(statistics.received.allSatisfy { $0.packets > 30 })
        try harness.perform {
            try $0.setPaused(true, receiver: viewer.id.rawValue, sender: sender.id.rawValue, now: $1)
        }
        harness.play([source], for: .milliseconds(300))
        viewer.clearReceived()
        harness.play([source], for: .seconds(1))
        #expect(last() == nil)
        #expect(viewer.packets(from: sender.id, .audio).count > 20)
        try harness.perform {
            try $0.setPaused(false, receiver: viewer.id.rawValue, sender: sender.id.rawValue, now: $1)
        }
        harness.play([source], for: .seconds(1))
        #expect(last() == 2)
        sender.clearKeyFrameRequests()
        try harness.perform { try $0.requestKeyFrame(of: sender.id.rawValue, now: $1) }
        harness.play([source], for: .milliseconds(200))
        #expect(sender.keyFrameRequests == [0: 1, 1: 1, 2: 1])
        #expect(throws: OperationError.notASender(viewer.id.rawValue)) {
            try harness.perform { try $0.requestKeyFrame(of: viewer.id.rawValue, now: $1) }
        }
        #expect(throws: OperationError.notAReceiver(sender.id.rawValue)) {
            try harness.perform { try $0.requestLayer(.auto, receiver: sender.id.rawValue, sender: nil, now: $1) }
        }
    }
}
