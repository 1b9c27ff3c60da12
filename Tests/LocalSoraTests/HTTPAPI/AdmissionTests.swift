import LocalSora
import SoraCrypto
import SoraHTTP
import SoraMessages
import SoraWire
import Testing

@Suite("Access tokens and webhooks") struct AdmissionTests {
    private static let secret = "a secret of the tests"

    private static func token(_ claims: JSONObject, secret: String = secret, algorithm: String = "HS256") -> String {
        let header: JSONObject = ["alg": .string(algorithm), "typ": "JWT"]
        let parts = [header, claims].map { Base64.encodeURLSafe(JSONValue.object($0).utf8) }
        let signed = parts.joined(separator: ".")
        let code = HMACKey(.sha256, key: Array(secret.utf8)).authenticate(Array(signed.utf8))
        return signed + "." + Base64.encodeURLSafe(code)
    }

    private static func connect(_ token: String?) -> ConnectMessage {
        ChannelHarness.messaging { $0.metadata = token.map { ["access_token": .string($0)] } }
    }

    private func outcome(_ connect: ConnectMessage, _ configure: @escaping (inout ServerConfiguration) -> Void)
        async throws -> (
            offer: JSONObject?, reason: String?
        )
    {
        try await withServer(configure) { server in
            try await withClient { client in
                try await client.join(server.signalingURL, connect)
                _ = await client.wait { client in
                    client.closure != nil || client.texts.contains { $0.contains(#""type":"offer""#) }
                }
                if let closure = await client.closure { return (nil, closure.reason) }
                return (await client.message("offer"), nil)
            }
        }
    }

    // MARK: Access tokens

    @Test func goodTokensAreLetIn() async throws {
        let token = Self.token(["channel_id": "sora", "exp": 4_000_000_000])
        let result = try await outcome(Self.connect(token)) { $0.tokenSecret = Self.secret }
        #expect(result.offer != nil)
    }

    @Test(arguments: [
        (nil, "ACCESS-TOKEN-REQUIRED"),
        ("rubbish", "INVALID-ACCESS-TOKEN"),
        ("a.b.c", "INVALID-ACCESS-TOKEN"),
        (token(["channel_id": "sora"], secret: "another"), "ACCESS-TOKEN-SIGNATURE-IS-WRONG"),
        (token(["channel_id": "sora"], algorithm: "none"), "ACCESS-TOKEN-ALGORITHM-IS-NOT-HS256"),
        (token(["channel_id": "other"]), "ACCESS-TOKEN-FOR-ANOTHER-CHANNEL"),
        (token(["exp": 1000]), "ACCESS-TOKEN-EXPIRED"),
        (token(["exp": "soon"]), "INVALID-ACCESS-TOKEN"),
        (token(["nbf": 4_000_000_000]), "ACCESS-TOKEN-NOT-YET-VALID"),
        (token(["video_bit_rate": "much"]), "INVALID-AUTH-RESULT-VIDEO-BIT-RATE"),
        (token(["video": true, "video_codec_type": "MPEG1"]), "INVALID-VIDEO-CODEC-TYPE"),
    ])
    func badTokensAreRefused(token: String?, reason: String) async throws {
        let result = try await outcome(Self.connect(token)) { $0.tokenSecret = Self.secret }
        #expect(result.offer == nil)
        #expect(result.reason == reason)
    }

    @Test func tokensStayOutOfTheLog() async throws {
        let token = Self.token(["channel_id": "other", "marker": "needle"])
        try await withServer {
            $0.tokenSecret = Self.secret
        } _: { server in
            try await withClient { client in
                try await client.join(server.signalingURL, Self.connect(token))
                _ = await client.closed()
                #expect(
                    !server.recordedEvents.contains {
                        $0.description.contains(token) || $0.description.contains("needle")
                    })
            }
        }
    }

    @Test func claimsOverrideTheWishes() async throws {
        let claims: JSONObject = [
            "client_id": "from-token", "bundle_id": "bundle", "audio": true, "video": true, "video_codec_type": "AV1",
            "video_bit_rate": 777, "audio_bit_rate": 48, "simulcast": true,
            "simulcast_encodings": [["rid": "r0", "active": true, "scaleResolutionDownBy": 8]],
            "rpc_methods": ["2025.2.0/RequestSimulcastRid"], "metadata": ["hello": "you"],
            "ignore_disconnect_websocket": true, "connection_lifetime": 60, "audio_opus_params": ["usedtx": true],
            "data_channels": [["label": "#given", "direction": "sendrecv"]],
        ]
        let result = try await outcome(Self.connect(Self.token(claims))) { $0.acceptsUncheckedTokens = true }
        let offer = try #require(result.offer)
        #expect(offer["client_id"] == "from-token")
        #expect(offer["bundle_id"] == "bundle")
        #expect(offer["video_codec_type"] == "AV1")
        #expect(offer["video_bit_rate"] == 777)
        #expect(offer["audio_bit_rate"] == 48)
        #expect(offer["simulcast"] == true)
        #expect(offer["encodings"]?.arrayValue?.count == 1)
        #expect(offer["rpc_methods"] == ["2025.2.0/RequestSimulcastRid"])
        #expect(offer["metadata"] == ["hello": "you"])
        #expect(offer["ignore_disconnect_websocket"] == true)
        #expect(offer["data_channels"]?.arrayValue?.contains { $0.objectValue?["label"] == "#given" } == true)
        #expect(offer["sdp"]?.stringValue?.contains("usedtx=1") == true)
    }

    @Test func lifetimeEndsTheConnection() async throws {
        try await withServer {
            $0.acceptsUncheckedTokens = true
        } _: { server in
            try await withClient { client in
                try await client.join(server.signalingURL, Self.connect(Self.token(["connection_lifetime": 1])))
                let closure = await client.closed()
                #expect(closure?.code == 1000)
                #expect(closure?.reason == "LIFETIME-EXPIRED")
            }
        }
    }

    // MARK: Auth webhook

    @Test func webhookSeesTheRequestAndDecides() async throws {
        let hook = try await HookServer.start { _, body in
            let metadata = body["auth_metadata"]?.objectValue
            return metadata?["password"] == "sesame"
                ? ["allowed": true, "client_id": "named-by-hook", "signaling_notify_metadata": ["tier": "gold"]]
                : ["allowed": false, "reason": "WRONG-PASSWORD"]
        }
        defer { hook.stop() }
        try await withServer {
            $0.authWebhook = hook.url
        } _: { server in
            try await withClient { client in
                try await client.join(server.signalingURL, ChannelHarness.messaging { $0.metadata = ["password": "x"] })
                let closure = await client.closed()
                #expect(closure?.code == 4490)
                #expect(closure?.reason == "WRONG-PASSWORD")
            }
            try await withClient { client in
                try await client.join(
                    server.signalingURL,
                    ChannelHarness.messaging {
                        $0.metadata = ["password": "sesame"]
                        $0.soraClient = "Sora iOS SDK 2025.2.0"
                    })
                #expect(await client.isUp())
                #expect(await client.message("offer")?["client_id"] == "named-by-hook")
                let created = await client.withPeer { peer, _ in peer.notifications("connection.created").first }
                #expect(created??["authz_metadata"] == ["tier": "gold"])
            }
            let request = try #require(hook.bodies.last)
            #expect(request["role"] == "sendonly")
            #expect(request["channel_id"] == "sora")
            #expect(request["client_id"] == .null)
            #expect(request["channel_connections"] == 0)
            #expect(request["sora_client"]?.objectValue?["type"] == "sora_ios_sdk")
            #expect(request["sora_client"]?.objectValue?["version"] == "2025.2.0")
            #expect(hook.heads.last?.headers["sora-connection-id"] == request["connection_id"]?.stringValue)
            let report = try await server.call("Sora_20171010.GetStatsReport").json.objectValue
            #expect(report?["total_auth_webhook_allowed"] == 1)
            #expect(report?["total_auth_webhook_denied"] == 1)
            #expect(report?["total_successful_auth_webhook"] == 2)
        }
    }

    @Test func uselessWebhooksRefuseInBoundedTime() async throws {
        let silent = try await HookServer.start { _, _ in nil }
        defer { silent.stop() }
        for url in [silent.url, "http://127.0.0.1:1/", silent.url + "?status=500"] {
            try await withServer {
                $0.authWebhook = url
                $0.webhookTimeout = .milliseconds(300)
            } _: { server in
                try await withClient { client in
                    try await client.join(server.signalingURL, ChannelHarness.messaging())
                    let closure = await client.closed()
                    #expect(closure?.code == 4490)
                    #expect(closure?.reason == "INTERNAL-ERROR")
                }
            }
        }
    }

    @Test func clientThatLeavesWhileItIsJudgedLeavesNothing() async throws {
        let silent = try await HookServer.start { _, _ in nil }
        defer { silent.stop() }
        try await withServer {
            $0.authWebhook = silent.url
            $0.webhookTimeout = .milliseconds(300)
        } _: { server in
            try await withClient { client in
                try await client.join(server.signalingURL, ChannelHarness.messaging())
                await client.hangUp()
            }
            #expect(await silent.wait { !$0.isEmpty })
            #expect(try await server.call("Sora_20201013.ListConnections").json == [])
            #expect(!server.recordedEvents.contains { $0.kind == .connectReceived })
        }
    }

    // MARK: Session and event webhooks

    @Test func sessionAndEventHooksTellTheWholeLife() async throws {
        let hook = try await HookServer.start { _, body in
            body["type"] == "session.created" ? ["session_metadata": ["room": 7]] : [:]
        }
        defer { hook.stop() }
        try await withServer {
            $0.sessionWebhook = hook.url + "session"
            $0.eventWebhook = hook.url + "event"
        } _: { server in
            try await withClient { client in
                try await client.join(server.signalingURL, ChannelHarness.messaging { $0.clientID = "alice" })
                #expect(await client.isUp())
                let id = await client.message("offer")?["connection_id"] ?? .null
                _ = try await server.call(
                    "Sora_20151104.DisconnectConnection",
                    ["channel_id": "sora", "connection_id": id, "reason": ["why": "test"]])
                _ = await client.closed()
            }
            #expect(await hook.wait { bodies in bodies.contains { $0["type"] == "session.destroyed" } })
            #expect(await hook.wait { bodies in bodies.contains { $0["type"] == "connection.destroyed" } })
            func body(_ type: String) -> JSONObject? { hook.bodies.first { $0["type"]?.stringValue == type } }
            let session = hook.bodies.compactMap { $0["type"]?.stringValue }.filter { $0.hasPrefix("session.") }
            #expect(session == ["session.created", "session.destroyed"])
            #expect(body("session.destroyed")?["max_connections"] == 1)
            #expect(body("session.destroyed")?["connections"]?.arrayValue?.count == 1)
            #expect(body("session.destroyed")?["session_metadata"] == ["room": 7])
            let created = try #require(body("connection.created"))
            #expect(created["client_id"] == "alice")
            #expect(created["data"]?.objectValue?["channel_connections"] == 1)
            let destroyed = try #require(body("connection.destroyed")?["data"]?.objectValue)
            #expect(destroyed["reason"] == "DISCONNECTED-API")
            #expect(destroyed["disconnect_api_reason"] == ["why": "test"])
            #expect(hook.heads.contains { $0.target == "/session" })
            #expect(hook.heads.contains { $0.target == "/event" })
        }
    }
}
