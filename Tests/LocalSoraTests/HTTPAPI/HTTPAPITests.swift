import LocalSora
import SoraHTTP
import SoraMessages
import TestSupport
import Testing

@Suite("HTTP API", .serialized, .leavesNoObjects) struct HTTPAPITests {
    /// A server with clients of one channel that are up.
    private func withMembers(
        _ connects: [ConnectMessage], _ configure: (inout ServerConfiguration) -> Void = { _ in },
        _ body: (SoraServer, [WireClient], [String]) async throws -> Void
    ) async throws {
        try await withServer(configure) { server in
            var clients: [WireClient] = []
            defer { for client in clients { client.close() } }
            var ids: [String] = []
            for connect in connects {
                let client = try WireClient()
                clients.append(client)
                try await client.join(server.signalingURL, connect)
                #expect(await client.isUp())
                ids.append(await client.message("offer")?["connection_id"]?.stringValue ?? "")
            }
            try await body(server, clients, ids)
        }
    }

    private static func messaging(_ clientID: String? = nil, _ role: ConnectionRole = .sendonly) -> ConnectMessage {
        ChannelHarness.messaging {
            $0.clientID = clientID
            $0.role = role
        }
    }

    // MARK: Form

    @Test func callsWithoutTargetOrChannelAreErrors() async throws {
        try await withServer { server in
            try await withClient { client in
                try await client.dial(port: server.port)
                var response = await client.request("POST", "/", body: Array("{}".utf8))
                #expect(response?.head.status == 400)
                #expect(
                    String(decoding: response?.body ?? [], as: UTF8.self) == #"{"error_type":"MISSING-X-SORA-TARGET"}"#)
                // The connection stays open for the next call.
                response = await client.request(
                    "POST", "/", headers: ["X-Sora-Target": "Sora_20201013.ListConnections"], body: Array("[".utf8))
                #expect(response?.head.status == 400)
                let text = String(decoding: response?.body ?? [], as: UTF8.self)
                #expect(text.contains("INVALID-JSON"))
            }
            let unknown = try await server.call("Sora_19990101.Nothing")
            #expect(unknown.status == 400)
            #expect(unknown.json.objectValue?["error_type"] == "UNKNOWN-TARGET")
            let noChannel = try await server.call("Sora_20151104.DisconnectChannel", ["channel_id": "nowhere"])
            #expect(noChannel.json.objectValue?["error_type"] == "CHANNEL-NOT-FOUND")
            let noParameter = try await server.call("Sora_20151104.DisconnectChannel")
            #expect(noParameter.json.objectValue?["error_type"] == "INVALID-PARAMETER")
            #expect(try await server.call("Sora_20201013.ListChannelConnections", ["channel_id": "nowhere"]).json == [])
        }
    }

    @Test func allowsOtherOriginsOnlyWhenAsked() async throws {
        for origin in [nil, "https://example.com"] {
            try await withServer {
                $0.apiAllowedOrigin = origin
            } _: { server in
                try await withClient { client in
                    try await client.dial(port: server.port)
                    let preflight = await client.request("OPTIONS", "/", headers: ["Origin": "https://example.com"])
                    #expect(preflight?.head.status == 204)
                    #expect(preflight?.head.headers["access-control-allow-origin"] == origin)
                    #expect(
                        preflight?.head.headers["access-control-allow-headers"]
                            == origin.map { _ in "Origin, X-Requested-With, Content-Type, Accept, x-sora-target" })
                    #expect(preflight?.head.headers["access-control-max-age"] == origin.map { _ in "1000" })
                }
            }
        }
    }

    @Test func pageUnderAForeignNameCannotCall() async throws {
        for (origin, allowed, status) in [
            ("http://evil.example:5000", nil, 400), ("null", nil, 400), ("http://127.0.0.1:8000", nil, 200),
            ("http://localhost", nil, 200), ("https://app.example", "https://app.example", 200),
            ("https://other.example", "https://app.example", 400), ("https://other.example", "*", 200),
        ] as [(String, String?, Int)] {
            try await withServer {
                $0.apiAllowedOrigin = allowed
            } _: { server in
                try await withClient { client in
                    try await client.dial(port: server.port)
                    let response = await client.request(
                        "POST", "/", headers: ["x-sora-target": "Sora_20201013.ListConnections", "Origin": origin])
                    #expect(response?.head.status == status, "\(origin)")
                }
            }
        }
    }

    @Test func clientThatEndsItsDirectionStillGetsTheAnswer() async throws {
        try await withServer { server in
            try await withClient { client in
                try await client.dial(port: server.port)
                await client.write("GET /stats HTTP/1.1\r\nHost: x\r\n\r\n")
                await client.endWriting()
                #expect(await client.wait { String(decoding: $0.received, as: UTF8.self).hasSuffix("}") })
            }
        }
    }

    /// The second port stays open for whoever looks why the first one is full.
    @Test func socketsThatWaitAtTheMainPortLeaveTheSecondOpen() async throws {
        try await withServer {
            $0.apiPort = 0
            $0.maximumWaitingSocketsPerAddress = 1
        } _: { server in
            let port = try #require(server.apiPort)
            try await withClient { waiting in
                try await waiting.open(server.signalingURL)
                try await withClient { second in
                    _ = await #expect(throws: (any Error).self) { try await second.open(server.signalingURL) }
                }
                try await withClient { caller in
                    try await caller.dial(port: port)
                    let answer = await caller.request("GET", "/stats")
                    #expect(answer?.head.status == 200)
                    // The second port has the limit, too.
                    try await withClient { another in
                        do {
                            try await another.dial(port: port)
                            #expect(await another.wait { $0.isGone })
                        } catch WireClient.Failure.dial {
                            // It was refused before it knew that it had been connected.
                        }
                    }
                }
            }
        }
    }

    @Test func secondPortServesTheAPIAlone() async throws {
        try await withServer {
            $0.apiPort = 0
        } _: { server in
            let port = try #require(server.apiPort)
            #expect(port != server.port)
            #expect(try await server.call("Sora_20201013.ListConnections", port: port).json == [])
            try await withClient { client in
                _ = await #expect(throws: (any Error).self) {
                    try await client.open("ws://127.0.0.1:\(port)/signaling")
                }
            }
        }
    }

    @Test func pipelinedRequestsAreAnsweredInOrder() async throws {
        try await withServer { server in
            try await withClient { client in
                try await client.dial(port: server.port)
                let slow = "GET /stats HTTP/1.1\r\nHost: x\r\n\r\n"
                let quick = "GET /nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
                await client.write(slow + quick)
                #expect(await client.wait { $0.isGone })
                let text = String(decoding: await client.received, as: UTF8.self)
                let first = try #require(text.firstRange(of: "HTTP/1.1 200"))
                let second = try #require(text.firstRange(of: "HTTP/1.1 404"))
                #expect(first.lowerBound < second.lowerBound)
            }
        }
    }

    // MARK: Calls

    @Test func listsConnectionsAndChannels() async throws {
        try await withMembers([Self.messaging("alice"), Self.messaging("bob", .recvonly)]) { server, _, ids in
            let list = try await server.call("Sora_20201013.ListChannelConnections", ["channel_id": "sora"]).json
            let objects = (list.arrayValue ?? []).compactMap(\.objectValue)
            #expect(objects.map { $0["connection_id"]?.stringValue } == ids)
            #expect(objects.map { $0["client_id"]?.stringValue } == ["alice", "bob"])
            #expect(objects.first?["role"] == "sendonly")
            #expect(objects.first?["audio"] == false)
            #expect((objects.first?["created_time"]?.intValue ?? 0) > 1_700_000_000)
            #expect(try await server.call("Sora_20201013.ListConnections").json.arrayValue?.count == 2)
            #expect(
                try await server.call("Sora_20201013.ListChannels").json
                    == [["channel_id": "sora", "multistream": true, "spotlight": false]])
            let session = try await server.call("Sora_20231220.GetSession", ["channel_id": "sora"]).json.objectValue
            #expect(session?["connections"]?.arrayValue?.count == 2)
            #expect(session?["session_id"]?.stringValue?.count == 26)
        }
    }

    @Test func disconnectsOneConnectionWithTheAPIsReason() async throws {
        try await withMembers([Self.messaging("alice"), Self.messaging("bob")]) { server, clients, ids in
            let body: JSONObject = ["channel_id": "sora", "connection_id": .string(ids[0])]
            #expect(try await server.call("Sora_20151104.DisconnectConnection", body).json == .object(body))
            let closure = await clients[0].closed()
            #expect(closure?.code == 1000)
            #expect(closure?.reason == "DISCONNECTED-API")
            #expect(await clients[1].wait { $0.peer?.notifications("connection.destroyed").count == 1 })
            let again = try await server.call(
                "Sora_20151104.DisconnectConnection", ["channel_id": "sora", "connection_id": "X"])
            #expect(again.json.objectValue?["error_type"] == "CONNECTION-NOT-FOUND")
        }
    }

    @Test func disconnectsByClientRoleAndChannel() async throws {
        let members = [Self.messaging("alice"), Self.messaging("bob", .recvonly), Self.messaging("carol")]
        try await withMembers(members) { server, clients, _ in
            _ = try await server.call("Sora_20151104.DisconnectClient", ["channel_id": "sora", "client_id": "alice"])
            #expect(await clients[0].closed()?.code == 1000)
            _ = try await server.call(
                "Sora_20201120.DisconnectChannelByRole", ["channel_id": "sora", "role": "recvonly"])
            #expect(await clients[1].closed()?.code == 1000)
            _ = try await server.call("Sora_20151104.DisconnectChannel", ["channel_id": "sora"])
            #expect(await clients[2].closed()?.code == 1000)
        }
    }

    @Test func pushesToChannelClientConnectionAndRole() async throws {
        try await withMembers([Self.messaging("alice"), Self.messaging("bob", .recvonly)]) { server, clients, ids in
            func push(_ target: String, _ extra: JSONObject, _ number: Int) async throws {
                var body: JSONObject = ["channel_id": "sora", "data": ["number": number.json]]
                body.append(missingFrom: extra)
                #expect(try await server.call(target, body).status == 200)
            }
            try await push("Sora_20160711.PushChannel", [:], 1)
            try await push("Sora_20160711.PushClient", ["client_id": "alice"], 2)
            try await push("Sora_20160711.PushConnection", ["connection_id": .string(ids[1])], 3)
            try await push("Sora_20201120.PushChannelByRole", ["role": "recvonly"], 4)
            let numbers: @Sendable (isolated WireClient) -> [Int] = { client in
                client.peer?.messages("push").compactMap { $0["data"]?.objectValue?["number"]?.intValue } ?? []
            }
            #expect(await clients[0].wait { numbers($0) == [1, 2] })
            #expect(await clients[1].wait { numbers($0) == [1, 3, 4] })
            let noObject = try await server.call("Sora_20160711.PushChannel", ["channel_id": "sora", "data": 7])
            #expect(noObject.json.objectValue?["error_type"] == "INVALID-PARAMETER")
        }
    }

    @Test func putsNotifyMetadata() async throws {
        try await withMembers([Self.messaging("alice"), Self.messaging("bob")]) { server, clients, ids in
            let result = try await server.call(
                "Sora_20201124.PutSignalingNotifyMetadata",
                ["channel_id": "sora", "connection_id": .string(ids[0]), "metadata": ["a": 1], "push": true])
            #expect(result.json == ["a": 1])
            #expect(await clients[1].wait { $0.peer?.messages("push").count == 1 })
            let item = try await server.call(
                "Sora_20201124.PutSignalingNotifyMetadataItem",
                ["channel_id": "sora", "connection_id": .string(ids[0]), "key": "b", "value": [2]])
            #expect(item.json == ["a": 1, "b": [2]])
        }
    }

    @Test func keepsForwardingFilters() async throws {
        try await withMembers([Self.messaging("alice", .recvonly)]) { server, _, ids in
            let filter: JSONObject = [
                "channel_id": "sora", "name": "no-video", "priority": 1, "version": "1",
                "rules": [[["field": "kind", "operator": "is_in", "values": ["video"]]]],
            ]
            #expect(try await server.call("Sora_20230628.CreateChannelForwardingFilter", filter).status == 200)
            #expect(
                try await server.call("Sora_20230628.CreateChannelForwardingFilter", filter).json
                    .objectValue?["error_type"] == "DUPLICATE-FORWARDING-FILTER-NAME")
            var own = filter
            own["connection_id"] = .string(ids[0])
            #expect(try await server.call("Sora_20230628.CreateConnectionForwardingFilter", own).status == 200)
            let list = try await server.call("Sora_20230628.ListForwardingFilters", ["channel_id": "sora"]).json
            #expect(list.arrayValue?.first?.objectValue?["name"] == "no-video")
            var changed = filter
            changed["expected_version"] = "9"
            #expect(
                try await server.call("Sora_20230628.UpdateChannelForwardingFilter", changed).json
                    .objectValue?["error_type"] == "FORWARDING-FILTER-VERSION-CONFLICT")
            let name: JSONObject = ["channel_id": "sora", "name": "no-video"]
            #expect(try await server.call("Sora_20230628.DeleteChannelForwardingFilter", name).status == 200)
            #expect(try await server.call("Sora_20230628.ListForwardingFilters", ["channel_id": "sora"]).json == [])
        }
    }

    @Test func mediaCallsReachTheirMembers() async throws {
        let sender = ChannelHarness.connect(.sendonly) { $0.simulcast = true }
        let receiver = ChannelHarness.connect(.recvonly) { $0.simulcast = true }
        try await withMembers([sender, receiver]) { server, _, ids in
            let pair: JSONObject = [
                "channel_id": "sora", "recv_connection_id": .string(ids[1]), "send_connection_id": .string(ids[0]),
            ]
            #expect(
                try await server.call(
                    "Sora_20241218.RequestKeyFrame", ["channel_id": "sora", "connection_id": .string(ids[0])]
                ).status == 200)
            #expect(
                try await server.call(
                    "Sora_20251217.RequestSimulcastRid",
                    ["channel_id": "sora", "receiver_connection_id": .string(ids[1]), "rid": "auto"]
                ).json == ["channel_id": "sora", "receiver_connection_id": .string(ids[1]), "rid": "auto"])
            #expect(try await server.call("Sora_20200401.PauseRtpStream", pair).json == .object(pair))
            #expect(try await server.call("Sora_20200401.ResumeRtpStream", pair).status == 200)
            let spotlight = try await server.call(
                "Sora_20200807.FocusSpotlight", ["channel_id": "sora", "connection_id": .string(ids[0])])
            #expect(spotlight.json.objectValue?["error_type"] == "NOT-SPOTLIGHT-CHANNEL")
        }
    }

    @Test func everyDocumentedCallExists() async throws {
        try await withServer { server in
            for name in [
                "Sora_20201013.ListConnections", "Sora_20201013.ListChannelConnections", "Sora_20201013.ListChannels",
                "Sora_20151104.DisconnectChannel", "Sora_20151104.DisconnectClient",
                "Sora_20151104.DisconnectConnection", "Sora_20201120.DisconnectChannelByRole",
                "Sora_20160711.PushChannel", "Sora_20160711.PushClient", "Sora_20160711.PushConnection",
                "Sora_20201120.PushChannelByRole", "Sora_20241218.RequestKeyFrame", "Sora_20251217.RequestSimulcastRid",
                "Sora_20201005.RequestRtpStream", "Sora_20200401.PauseRtpStream", "Sora_20200401.ResumeRtpStream",
                "Sora_20211215.RequestSpotlightRid", "Sora_20211215.ResetSpotlightRid",
                "Sora_20211215.BatchRequestSpotlightRid", "Sora_20200807.FocusSpotlight",
                "Sora_20200807.FocusSpotlightFixed", "Sora_20200807.UnfocusSpotlight",
                "Sora_20200807.ChangeSpotlightNumber", "Sora_20201124.PutSignalingNotifyMetadata",
                "Sora_20201124.PutSignalingNotifyMetadataItem", "Sora_20230628.ListForwardingFilters",
                "Sora_20230628.CreateChannelForwardingFilter", "Sora_20230628.UpdateConnectionForwardingFilter",
                "Sora_20230628.DeleteChannelForwardingFilter", "Sora_20230628.TerminateSession",
                "Sora_20231220.GetSession", "Sora_20231220.ListSessions", "Sora_20170529.GetStatsConnection",
                "Sora_20170529.GetStatsClient", "Sora_20171101.GetStatsAllConnections", "Sora_20211215.GetRtcStats",
                "Sora_20211215.ListRtcStats", "Sora_20211215.ListChannelRtcStats", "Sora_20171010.GetStatsReport",
            ] {
                let answer = try await server.call(name)
                #expect(answer.json.objectValue?["error_type"] != "UNKNOWN-TARGET", "\(name)")
            }
        }
    }

    @Test func callsThatMakeNoSenseHereSaySo() async throws {
        try await withServer { server in
            for name in [
                "Sora_20221221.StartAudioStreaming", "Sora_20221221.StopAudioStreaming",
                "Sora_20221221.SubscribeAudioStreamingResultPush", "Sora_20171218.GetLicense",
                "Sora_20171218.UpdateLicense", "Sora_20211215.ListClusterNodes", "Sora_20221221.InitCluster",
            ] {
                let answer = try await server.call(name)
                #expect(answer.status == 400)
                #expect(answer.json.objectValue?["error_type"] == "NOT-SUPPORTED", "\(name)")
            }
        }
    }

    // MARK: Statistics

    @Test func reportCountsConnectionsByClient() async throws {
        var connect = Self.messaging("alice")
        connect.soraClient = "Sora Python SDK 2025.4.0"
        try await withMembers([connect, Self.messaging("bob")]) { server, clients, ids in
            var report = try await server.call("Sora_20171010.GetStatsReport").json.objectValue
            #expect(report?["total_connection_created"] == 2)
            #expect(report?["total_ongoing_connections"] == 2)
            #expect(report?["total_session_created"] == 1)
            #expect(report?["total_received_sctp"]?.intValue ?? 0 > 10)
            #expect(report?["total_sent_sctp_byte_size"]?.intValue ?? 0 > 1000)
            #expect(report?["total_received_srtp"] == 0)
            let types = report?["sora_client"]?.objectValue?["total_successful_sora_client_type"]?.objectValue
            #expect(types?["sora_python_sdk"] == 1)
            #expect(types?["unknown"] == 1)
            let one = try await server.call(
                "Sora_20170529.GetStatsConnection", ["channel_id": "sora", "connection_id": .string(ids[0])]
            ).json.objectValue
            #expect(one?["client_id"] == "alice")
            #expect(one?["data_channels"]?.arrayValue?.isEmpty == false)
            _ = try await server.call("Sora_20151104.DisconnectChannel", ["channel_id": "sora"])
            _ = await clients[0].closed()
            _ = await clients[1].closed()
            #expect(await server.waitForEvent(.left, count: 2) != nil)
            report = try await server.call("Sora_20171010.GetStatsReport").json.objectValue
            #expect(report?["total_connection_destroyed"] == 2)
            #expect(report?["total_ongoing_connections"] == 0)
            #expect(report?["total_session_destroyed"] == 1)
        }
    }

    @Test func metricsArePrometheusText() async throws {
        try await withMembers([Self.messaging("alice")]) { server, _, _ in
            try await withClient { client in
                try await client.dial(port: server.port)
                let response = await client.request("GET", "/metrics")
                #expect(response?.head.headers["content-type"]?.hasPrefix("text/plain; version=0.0.4") == true)
                let lines = String(decoding: response?.body ?? [], as: UTF8.self).split(separator: "\n").map(
                    String.init)
                #expect(lines.contains("sora_connections{role=\"sendonly\"} 1"))
                #expect(lines.contains("sora_connections_created_total 1"))
                #expect(lines.contains("# TYPE sora_udp_received_packets_total counter"))
                for line in lines where !line.hasPrefix("#") {
                    let parts = line.split(separator: " ")
                    #expect(parts.count == 2 && Double(parts[1]) != nil, "\(line)")
                }
                let stats = await client.request("GET", "/stats")
                let json = try JSONValue(parsing: stats?.body ?? [])
                #expect(json.objectValue?["connections"]?.arrayValue?.count == 1)
            }
        }
    }

    @Test func tracksHaveCountersOfTheirOwn() async throws {
        let sender = ChannelHarness.connect(.sendonly)
        let receiver = ChannelHarness.connect(.recvonly)
        try await withMembers([sender, receiver]) { server, _, ids in
            let all = try JSONValue(parsing: await server.statistics()).objectValue?["connections"]?.arrayValue ?? []
            let first = all.first?.objectValue
            #expect(first?["sent_tracks"]?.arrayValue?.count == 2)
            let received = all.last?.objectValue?["received_tracks"]?.arrayValue ?? []
            #expect(received.map { $0.objectValue?["sender_connection_id"]?.stringValue } == [ids[0], ids[0]])
        }
    }
}
