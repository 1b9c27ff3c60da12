import LocalSora
import SoraCrypto
import SoraHTTP
import SoraMessages
import SoraWire
import TestSupport
import Testing

@Suite("Access tokens and webhooks", .serialized, .leavesNoObjects) struct AdmissionTests {
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
        (token(["audio": true, "audio_codec_type": "MP3"]), "INVALID-AUDIO-CODEC-TYPE"),
        (token(["audio": true, "audio_bit_rate": 1000]), "INVALID-AUDIO-BIT-RATE"),
        (token(["client_id": ""]), "INVALID-CLIENT-ID"),
        (token(["data_channels": [["label": "x", "direction": "sendrecv"]]]), "INVALID-DATA-CHANNEL-LABEL"),
        (token(["data_channel_signaling": false]), "NOTHING-TO-NEGOTIATE"),
        (token(["spotlight": true, "spotlight_number": 9]), "INVALID-SPOTLIGHT-NUMBER"),
        (token(["simulcast_encodings": [["rid": "r9"]]]), "INVALID-AUTH-RESULT-SIMULCAST-ENCODINGS"),
        (token(["simulcast_encodings": [["rid": "r0"], ["rid": "r0"]]]), "INVALID-AUTH-RESULT-SIMULCAST-ENCODINGS"),
        (token(["connection_lifetime": -1]), "INVALID-AUTH-RESULT-CONNECTION-LIFETIME"),
        (token(["connection_lifetime": 1e300]), "INVALID-AUTH-RESULT-CONNECTION-LIFETIME"),
        (token(["simulcast_rpc_rids": ["r7"]]), "INVALID-AUTH-RESULT-SIMULCAST-RPC-RIDS"),
        (token(["turn_fqdn": "evil.example\r\na=x"]), "INVALID-AUTH-RESULT-TURN-FQDN"),
        (token(["turn_tls_fqdn": ""]), "INVALID-AUTH-RESULT-TURN-TLS-FQDN"),
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

    /// What is granted, seen in the offer. Each key of spec section 9.3 that an offer shows is set here or above.
    @Test(
        arguments: [
            (
                ["audio": true, "audio_codec_type": "OPUS", "audio_bit_rate": 32],
                ["audio": true, "audio_bit_rate": 32]
            ),
            (["audio": true, "audio_codec_type": "PCMU"], ["audio_codec_type": "OPUS"]),
            (["video": true, "video_codec_type": "VP8"], ["video": true, "video_codec_type": "VP8"]),
            (["spotlight": true, "spotlight_number": 2, "spotlight_focus_rid": "r2"], ["spotlight": true]),
            (["simulcast": true, "video": true, "simulcast_request_rid": "none"], ["simulcast": true]),
            (["ignore_disconnect_websocket": true], ["ignore_disconnect_websocket": true]),
            (["audio": true, "data_channel_signaling": false], ["data_channel_signaling": false]),
            (["rpc_methods": ["2025.2.0/ResetSpotlightRid"]], ["rpc_methods": ["2025.2.0/ResetSpotlightRid"]]),
            (["turn_fqdn": "turn.example.com"] as JSONObject, Self.turn("turn:turn.example.com:3478?transport=udp")),
            (["ipv4_address": "198.51.100.9"] as JSONObject, Self.turn("turn:198.51.100.9:3478?transport=udp")),
            (["turn_tls_only": true], ["config": ["iceServers": [], "iceTransportPolicy": "all"]]),
            (["signaling_notify_metadata_ext": 1, "audio_streaming_language_code": "ja-JP", "future": nil], [:]),
        ] as [(JSONObject, JSONObject)])
    func claimsStandInTheOffer(claims: JSONObject, expected: JSONObject) async throws {
        let result = try await outcome(Self.connect(Self.token(claims))) {
            $0.tokenSecret = Self.secret
            $0.turnServers = [.init(urls: ["turn:192.0.2.1:3478?transport=udp"], username: "u", credential: "p")]
        }
        let offer = try #require(result.offer, "\(result.reason ?? "")")
        for member in expected.members { #expect(offer[member.key] == member.value, "\(member.key)") }
    }

    /// What an authorization says of TURN servers goes into URLs: nothing but a host may get in.
    @Test func hostsOfTURNServersAreHosts() {
        let bad = [
            "", " ", ".", "a..b", "a\r\nb", "a\nb", "a b", "a:1", "a/b", "a?transport=tcp", "a@b", "[::1]",
            "\u{E9}.example",
            "a\0", String(repeating: "a", count: 64), String(repeating: "a.", count: 128),
        ]
        for text in bad {
            #expect(!TURNGrant.isDomainName(text), "\(text.debugDescription)")
            #expect(!TURNGrant.isIPv4Address(text) && !TURNGrant.isIPv6Address(text), "\(text.debugDescription)")
        }
        for text in [
            "localhost", "turn.example.com", "turn.example.com.", "TURN-1.example", "a_b.example", "192.0.2.1",
        ] {
            #expect(TURNGrant.isDomainName(text), "\(text)")
        }
        #expect(TURNGrant.isIPv4Address("192.0.2.1") && TURNGrant.isIPv6Address("2001:db8::1"))
        #expect(!TURNGrant.isIPv4Address("2001:db8::1") && !TURNGrant.isIPv6Address("192.0.2.1"))
        #expect(!TURNGrant.isIPv4Address("192.0.2.1\r\n") && !TURNGrant.isIPv6Address("fe80::1%eth0\r\n"))
    }

    @Test(arguments: [
        ("turn_fqdn", ""), ("turn_fqdn", "a\r\nb"), ("turn_tls_fqdn", "a b"), ("ipv4_address", ""),
        ("ipv4_address", "192.0.2.1\r\nx"), ("ipv6_address", "]"),
    ])
    func webhookAnswersWithoutAHostAreRefused(key: String, value: String) async throws {
        let hook = try await HookServer.start { _, _ in ["allowed": true, key: .string(value)] }
        defer { hook.stop() }
        let result = try await outcome(ChannelHarness.messaging()) {
            $0.authWebhook = hook.url
            $0.turnServers = [.init(urls: ["turn:192.0.2.1:3478?transport=udp"], username: "u", credential: "p")]
        }
        #expect(result.offer == nil)
        #expect(result.reason == "INVALID-AUTH-RESULT-" + key.uppercased().replacing("_", with: "-"))
    }

    private static func turn(_ url: String) -> JSONObject {
        [
            "config": [
                "iceServers": [["urls": [.string(url)], "username": "u", "credential": "p"]],
                "iceTransportPolicy": "all",
            ]
        ]
    }

    /// Authorization that turns data channel signaling on gives what the client asked for with it.
    @Test func dataChannelsComeBackWhenSignalingIsTurnedOn() async throws {
        var connect = ChannelHarness.connect(.sendonly) {
            $0.dataChannelSignaling = false
            $0.dataChannels = [DataChannelDefinition(label: "#wish", direction: .sendrecv)]
        }
        connect.metadata = ["access_token": .string(Self.token(["data_channel_signaling": true]))]
        let offer = try await outcome(connect) { $0.tokenSecret = Self.secret }.offer
        let labels = offer?["data_channels"]?.arrayValue?.compactMap { $0.objectValue?["label"]?.stringValue }
        #expect(labels == ["signaling", "notify", "push", "stats", "rpc", "#wish"])
        #expect(offer?["rpc_methods"]?.arrayValue?.count == 5)
    }

    @Test func codecParametersOfClaimsStandInTheDescription() async throws {
        for (codec, claims, expected) in [
            ("VP9", ["video_vp9_params": ["profile_id": 2]], "profile-id=2"),
            ("AV1", ["video_av1_params": ["profile": 1]], "profile=1"),
            ("H264", ["video_h264_params": ["profile_level_id": "640c1f"]], "profile-level-id=640c1f"),
            ("H265", ["video_h265_params": ["level_id": 120]], "level-id=120"),
        ] as [(String, JSONObject, String)] {
            var claims = claims
            claims["video"] = true
            claims["video_codec_type"] = .string(codec)
            claims["video_bit_rate"] = 345
            let offer = try await outcome(Self.connect(Self.token(claims))) { $0.tokenSecret = Self.secret }.offer
            let sdp = offer?["sdp"]?.stringValue ?? ""
            #expect(sdp.contains(expected), "\(codec)")
            #expect(sdp.contains("b=AS:345"), "\(codec)")
        }
    }

    /// `user_agent_stats` false: the client is never asked.
    @Test func statisticsOfTheClientMayBeForbidden() throws {
        for dataChannels in [true, false] {
            let harness = try ChannelHarness()
            let connect = ChannelHarness.connect { $0.dataChannelSignaling = dataChannels }
            let asked = try harness.joined(connect)
            let spared = try harness.joined(connect, grant: { $0.collectsClientStats = false })
            harness.run(for: .seconds(65))
            func questions(_ client: SimulatedClient) -> Int {
                client.messages("req-stats").count + client.messages("ping").count { $0["stats"] == true }
            }
            #expect(questions(asked) == 2)
            #expect(questions(spared) == 0)
            #expect(harness.channel.hasMember(spared.id))
        }
    }

    @Test func authorizationAltersTheTURNServers() {
        let server = OfferICEConfiguration.Server(
            urls: [
                "turn:192.0.2.1:3478?transport=udp", "turn:[2001:db8::1]:3478?transport=tcp", "turns:192.0.2.1:5349",
                "turn:turn.example:3478", "stun:192.0.2.1",
            ], username: "u", credential: "p")
        func urls(_ change: (inout TURNGrant) -> Void) -> [String] {
            var grant = TURNGrant()
            change(&grant)
            return grant.apply(to: [server]).flatMap(\.urls)
        }
        #expect(urls { _ in } == server.urls)
        #expect(
            urls {
                $0.ipv4Address = "198.51.100.1"
                $0.ipv6Address = "2001:db8::9"
            } == [
                "turn:198.51.100.1:3478?transport=udp", "turn:[2001:db8::9]:3478?transport=tcp",
                "turns:192.0.2.1:5349", "turn:turn.example:3478", "stun:192.0.2.1",
            ])
        #expect(
            urls {
                $0.domainName = "a.example"
                $0.tlsDomainName = "b.example"
            } == [
                "turn:a.example:3478?transport=udp", "turn:a.example:3478?transport=tcp", "turns:b.example:5349",
                "turn:a.example:3478", "stun:192.0.2.1",
            ])
        #expect(
            urls { $0.allowsOnlyTCP = true } == [
                "turn:[2001:db8::1]:3478?transport=tcp", "turns:192.0.2.1:5349", "stun:192.0.2.1",
            ])
        #expect(urls { $0.allowsOnlyTLS = true } == ["turns:192.0.2.1:5349", "stun:192.0.2.1"])
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
                        $0.soraClient = "Sora C++ SDK 2025.2.0 (af01b2c3)"
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
            #expect(request["sora_client"]?.objectValue?["type"] == "sora_cpp_sdk")
            #expect(request["sora_client"]?.objectValue?["commit_short"] == "af01b2c3")
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

    @Test func eventHookIsToldThatAConnectionLasts() async throws {
        let hook = try await HookServer.start { _, _ in [:] }
        defer { hook.stop() }
        try await withServer {
            $0.eventWebhook = hook.url
            $0.updateInterval = .milliseconds(100)
        } _: { server in
            try await withClient { client in
                try await client.join(server.signalingURL, ChannelHarness.messaging { $0.clientID = "alice" })
                #expect(await client.isUp())
                #expect(await hook.wait { bodies in bodies.count { $0["type"] == "connection.updated" } >= 2 })
                let updated = try #require(hook.bodies.first { $0["type"] == "connection.updated" })
                #expect(updated["client_id"] == "alice")
                #expect(updated["channel_id"] == "sora")
                let id = await client.message("offer")?["connection_id"]
                #expect(updated["connection_id"] == id)
                let data = try #require(updated["data"]?.objectValue)
                #expect(data["minutes"] == 0)
                #expect(data["channel_connections"] == 1)
                #expect(data["turn_transport_type"] == "udp")
                #expect(data["total_received_bytes"]?.intValue != nil)
                #expect(data["reason"] == nil)
                let report = try await server.call("Sora_20171010.GetStatsReport").json.objectValue
                #expect(report?["total_connection_updated"]?.intValue ?? 0 >= 2)
            }
        }
    }

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
            let ice = destroyed["ice_connection_state"]?.objectValue
            #expect(ice?["total_checking_duration_ms"]?.intValue ?? 10_000 < 10_000)
            #expect(ice?["total_disconnected_duration_ms"] == 0)
            #expect(hook.heads.contains { $0.target == "/session" })
            #expect(hook.heads.contains { $0.target == "/event" })
        }
    }
}
