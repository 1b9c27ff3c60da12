import LocalSora
import SoraHTTP
import SoraMessages
import SoraWire
import Testing

/// Each fault, put into force in each of the three ways, has the same effect.
@Suite("Fault injection: by flag, HTTP API and code", .serialized, .leavesNoObjects) struct FaultWaysTests {
    enum Way: String, CaseIterable, Sendable { case flag, api, code }

    struct Case: Sendable, CustomTestStringConvertible {
        var flag: String
        var json: String
        var fault: Fault
        /// What a client sees of it.
        var observe: @Sendable (SoraServer) async throws -> Void
        var testDescription: String { flag }

        init(
            _ flag: String, _ json: String, _ kind: Fault.Kind,
            _ observe: @escaping @Sendable (SoraServer) async throws -> Void
        ) {
            (self.flag, self.json, fault, self.observe) = (flag, json, Fault(kind), observe)
        }
    }

    private static let chat = ChannelHarness.messaging([DataChannelDefinition(label: "#chat", direction: .sendrecv)])
    private static let still = Fault.NetworkConditions()

    private static func conditions(_ change: (inout Fault.NetworkConditions) -> Void) -> Fault.NetworkConditions {
        var conditions = Fault.NetworkConditions()
        change(&conditions)
        return conditions
    }

    private static func network(_ conditions: Fault.NetworkConditions) -> Fault.Kind {
        .network(upload: conditions, download: conditions)
    }

    // MARK: Observations

    private static func cannotOpen(status: String?) -> @Sendable (SoraServer) async throws -> Void {
        { server in
            try await withClient { client in
                _ = await #expect(throws: (any Error).self) { try await client.open(server.signalingURL) }
                let answer = String(decoding: await client.received, as: UTF8.self)
                #expect(status.map { answer.hasPrefix("HTTP/1.1 \($0) ") } ?? answer.isEmpty)
            }
        }
    }

    private static func isClosed(
        _ code: UInt16, _ reason: String, afterOffer: Bool = true, afterBeingUp: Bool = false
    ) -> @Sendable (SoraServer) async throws -> Void {
        { server in
            try await withClient { client in
                try await client.join(server.signalingURL, chat)
                if afterBeingUp { #expect(await client.isUp()) }
                let closure = await client.closed()
                #expect(closure?.code == code)
                #expect(closure?.reason == reason)
                #expect(await client.texts.contains { $0.contains("\"offer\"") } == afterOffer)
            }
        }
    }

    private static let hearsNothing: @Sendable (SoraServer) async throws -> Void = { server in
        try await withClient { client in
            try await client.join(server.signalingURL, chat)
            #expect(await client.wait(.milliseconds(150)) { !$0.texts.isEmpty || $0.isGone } == false)
        }
    }

    private static let neverComesUp: @Sendable (SoraServer) async throws -> Void = { server in
        try await withClient { client in
            try await client.join(server.signalingURL, chat)
            #expect(await client.message("offer") != nil)
            #expect(await client.isUp(within: .milliseconds(300)) == false)
            #expect(await client.isGone == false)
        }
    }

    private static func isUp(notBefore least: Duration) -> @Sendable (SoraServer) async throws -> Void {
        { server in
            try await withClient { client in
                let clock = ContinuousClock()
                let start = clock.now
                try await client.join(server.signalingURL, chat)
                #expect(await client.isUp())
                #expect(clock.now - start >= least)
            }
        }
    }

    private static let switchedIsLate: @Sendable (SoraServer) async throws -> Void = { server in
        try await withClient { client in
            try await client.join(server.signalingURL, chat)
            #expect(await client.isUp())
            #expect(await client.message("switched") != nil)
            let types = await client.withPeer { peer, _ in
                peer.log.compactMap { if case .message(let type, _, _) = $0 { type } else { nil } }
            }
            #expect(types?.filter { $0 == "notify" || $0 == "switched" } == ["notify", "switched"])
        }
    }

    private static let cases: [Case] = [
        Case(
            "fault=refuse,stage=tcp", #"{"fault": "refuse", "stage": "tcp"}"#, .refuse(.tcp), cannotOpen(status: nil)),
        Case(
            "fault=refuse,stage=http,code=429", #"{"fault": "refuse", "stage": "http", "code": 429}"#,
            .refuse(.http, code: 429), cannotOpen(status: "429")),
        Case(
            "fault=refuse,stage=connect,reason=BUSY", #"{"fault": "refuse", "reason": "BUSY"}"#,
            .refuse(.connect, reason: "BUSY"), isClosed(4490, "BUSY", afterOffer: false)),
        Case(
            "fault=refuse,stage=answer,code=4001,reason=NO",
            #"{"fault":"refuse","stage":"answer","code":4001,"reason":"NO"}"#,
            .refuse(.answer, code: 4001, reason: "NO"), isClosed(4001, "NO")),
        Case(
            "fault=refuse,stage=media,reason=NO", #"{"fault": "refuse", "stage": "media", "reason": "NO"}"#,
            .refuse(.media, reason: "NO"), isClosed(4490, "NO")),
        Case("fault=silence", #"{"fault": "silence"}"#, .silence(.connect), hearsNothing),
        Case(
            "fault=silence,stage=answer", #"{"fault": "silence", "stage": "answer"}"#, .silence(.answer), neverComesUp),
        Case("fault=silence,stage=media", #"{"fault": "silence", "stage": "media"}"#, .silence(.media), neverComesUp),
        Case("fault=redirect", #"{"fault": "redirect"}"#, .redirect(to: nil)) { server in
            try await withClient { client in
                try await client.join(server.signalingURL, chat)
                #expect(await client.message("redirect")?["location"]?.stringValue == server.signalingURL)
                #expect(await client.closed()?.code == 1000)
            }
        },
        Case(
            "fault=network,loss=1", #"{"fault": "network", "loss": 1}"#, network(conditions { $0.loss = 1 }),
            neverComesUp),
        Case(
            "fault=network,delay_ms=60", #"{"fault": "network", "delay_ms": 60}"#,
            network(conditions { $0.delay = .milliseconds(60) }), isUp(notBefore: .milliseconds(240))),
        Case(
            "fault=network,rate_kbps=40,direction=down", #"{"fault":"network","rate_kbps":40,"direction":"down"}"#,
            .network(upload: still, download: conditions { $0.kilobitsPerSecond = 40 }),
            isUp(notBefore: .milliseconds(150))),
        Case(
            "fault=network,jitter_ms=20,reordering=0.2,duplication=0.2,loss=0.05",
            #"{"fault":"network","jitter_ms":20,"reordering":0.2,"duplication":0.2,"loss":0.05}"#,
            network(
                conditions {
                    ($0.jitter, $0.reordering, $0.duplication, $0.loss) = (.milliseconds(20), 0.2, 0.2, 0.05)
                }), isUp(notBefore: .zero)),
        Case(
            "fault=delay,types=switched,delay_ms=500", #"{"fault":"delay","types":["switched"],"delay_ms":500}"#,
            .delayMessages(types: ["switched"], by: .milliseconds(500)), switchedIsLate),
        Case(
            "fault=delay,stage=tcp,delay_ms=200", #"{"fault": "delay", "stage": "tcp", "delay_ms": 200}"#,
            .late(.tcp, by: .milliseconds(200)), isUp(notBefore: .milliseconds(200))),
        Case(
            "fault=delay,stage=http,delay_ms=200", #"{"fault": "delay", "stage": "http", "delay_ms": 200}"#,
            .late(.http, by: .milliseconds(200)), isUp(notBefore: .milliseconds(200))),
        Case(
            "fault=delay,stage=connect,delay_ms=200", #"{"fault": "delay", "stage": "connect", "delay_ms": 200}"#,
            .late(.connect, by: .milliseconds(200)), isUp(notBefore: .milliseconds(200))),
        Case("fault=drop,types=offer", #"{"fault": "drop", "types": ["offer"]}"#, .dropMessages(types: ["offer"])) {
            try await hearsNothing($0)
        },
        Case(
            "fault=close,code=4321,reason=TESTED", #"{"fault": "close", "code": 4321, "reason": "TESTED"}"#,
            .close(after: .zero, code: 4321, reason: "TESTED"), isClosed(4321, "TESTED", afterBeingUp: true)),
        Case(
            "fault=close,code=1006,reason=CUT", #"{"fault": "close", "code": 1006, "reason": "CUT"}"#,
            .close(after: .zero, code: 1006, reason: "CUT"), isClosed(1006, "")),
        Case("fault=reset", #"{"fault": "reset"}"#, .reset(after: .zero), isClosed(1006, "")),
        Case("fault=vanish", #"{"fault": "vanish"}"#, .vanish(after: .zero)) { server in
            try await withClient { client in
                try await client.join(server.signalingURL, chat)
                #expect(await client.isUp())
                _ = await client.withPeer { $0.send(data: [1], label: "#chat", now: $1) }
                #expect(await server.waitForEvent(.messageRelayed, within: .milliseconds(200)) == nil)
                #expect(await client.isGone == false)
            }
        },
        Case(
            "fault=close_data_channel,label=push", #"{"fault": "close_data_channel", "label": "push"}"#,
            .closeDataChannel(label: "push", after: .zero)
        ) { server in
            try await withClient { client in
                try await client.join(server.signalingURL, chat)
                #expect(
                    await client.wait { client in
                        client.peer?.log.contains { if case .channelClosed("push") = $0 { true } else { false } }
                            ?? false
                    })
                #expect(await client.closure == nil)
            }
        },
    ]

    @Test(arguments: cases, Way.allCases) func hasItsEffect(example: Case, way: Way) async throws {
        let flag = try Fault(parsing: example.flag)
        let json = try #require(try JSONValue(parsing: example.json).objectValue)
        #expect(flag == example.fault)
        #expect(try Fault(json: json) == example.fault)
        #expect(try Fault(json: example.fault.json) == example.fault)
        try await withServer {
            if way == .flag { $0.faults = [flag] }
        } _: { server in
            switch way {
            case .flag: break
            case .api: #expect(try await server.call("LocalSora.InjectFault", json).status == 200)
            case .code: await server.inject(example.fault)
            }
            try await example.observe(server)
        }
    }

    // MARK: Together and back

    /// A client with `#chat`, up, and its connection id.
    private func withMember(
        of server: SoraServer, _ body: (WireClient, String) async throws -> Void
    ) async throws {
        try await withClient { client in
            try await client.join(server.signalingURL, Self.chat)
            try #require(await client.isUp())
            let id = await client.message("offer")?["connection_id"]?.stringValue ?? ""
            try await body(client, id)
        }
    }

    @Test func directionsAreImpairedApartAndOneFaultIsTakenBack() async throws {
        try await withServer { server in
            try await withMember(of: server) { client, _ in
                let dead: JSONObject = ["fault": "network", "direction": "up", "loss": 1]
                let number = try await server.call("LocalSora.InjectFault", dead).json.objectValue?["fault_id"]
                // Another one of the other direction leaves the first alone.
                let slow: JSONObject = ["fault": "network", "direction": "down", "delay_ms": 1]
                #expect(try await server.call("LocalSora.InjectFault", slow).json.objectValue?["connections"] == 1)
                _ = await client.withPeer { $0.send(data: [1], label: "#chat", now: $1) }
                #expect(await server.waitForEvent(.messageRelayed, within: .milliseconds(200)) == nil)
                let removed = try await server.call("LocalSora.RemoveFaults", ["fault_id": try #require(number)])
                #expect(removed.json == ["removed": 1])
                #expect(await server.waitForEvent(.messageRelayed, within: .seconds(30)) != nil)
                let left = try await server.call("LocalSora.ListFaults").json.arrayValue
                #expect(left?.count == 1)
                #expect(left?.first?.objectValue?["download"]?.objectValue?["delay_ms"]?.doubleValue == 1)
            }
        }
    }

    @Test func whatWasTakenBackDoesNotHappenLater() async throws {
        try await withServer { server in
            try await withMember(of: server) { client, id in
                #expect(
                    await server.inject(
                        Fault(.close(after: .milliseconds(100), code: 4000, reason: "LATE"), connectionID: id)) == 1)
                await server.removeFaults()
                #expect(await client.wait(.milliseconds(300)) { $0.closure != nil } == false)
            }
        }
    }

    @Test func repeatedKeysAndWrongStagesAreRefused() {
        for (text, complaint) in [
            ("fault=drop,types=ping,types=notify", "key 'types' is given twice"),
            ("fault=delay,stage=media,delay_ms=1", "stage 'media' has no answer to delay"),
            ("fault=network,loss=lots", "key 'loss' is not a number"),
        ] {
            let error = #expect(throws: Fault.ParseError.self) { try Fault(parsing: text) }
            #expect(error?.description.contains(complaint) == true, "\(text)")
        }
        // An id keeps its zeros.
        #expect((try? Fault(parsing: "fault=silence,client_id=007"))?.clientID == "007")
    }
}
