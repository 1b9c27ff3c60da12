import SoraMessages

/// The tables of spec/signaling.md 2.1 and 3 for what a server sends. Whatever the tables call "always" or what a
/// client needs (10.1) is required here; any key that they do not have is a fault.
enum ServerMessageShapes {
    typealias Shape = JSONShape

    static let id = Shape.text("connection or session id") { SignalingID.isValid($0) }
    static let rid = Shape.word(LayerRID.allCases.map(\.rawValue))
    /// RFC 3339 in UTC with microseconds.
    static let timestamp = Shape.text("timestamp") { text in
        text.wholeMatch(of: /\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z/) != nil
    }
    private static let count = Shape.integerIn(0...100_000)
    private static let name = Shape.text("id of 1 to 255 bytes") { (1...255).contains($0.utf8.count) }
    private static let description = Shape.text("session description") { $0.hasPrefix("v=0\r\n") }
    private static func type(_ name: String) -> Shape.Key { Shape.required("type", .word([name])) }

    /// - Parameter omitsConfiguration: for the iOS SDK (2.3).
    static func offer(omitsConfiguration: Bool) -> Shape {
        var keys: [Shape.Key] = [
            type("offer"), Shape.required("sdp", description), Shape.required("version", .string),
            Shape.required("channel_id", name), Shape.required("session_id", id),
            Shape.required("connection_id", id), Shape.required("client_id", name),
            Shape.required("bundle_id", name), Shape.required("simulcast", .bool),
            Shape.required("simulcast_multicodec", .bool), Shape.required("spotlight", .bool),
            Shape.optional("multistream", .bool), Shape.optional("metadata", .any),
            Shape.optional("encodings", .array(encoding)),
            Shape.optional(
                "mid", .object([Shape.optional("audio", .string), Shape.optional("video", .string)])),
            Shape.required("data_channel_signaling", .bool), Shape.required("ignore_disconnect_websocket", .bool),
            Shape.optional("data_channels", .array(dataChannel)), Shape.optional("rpc_methods", .array(.string)),
            Shape.required("audio", .bool), Shape.required("video", .bool),
            Shape.optional("audio_codec_type", .word(["OPUS"])),
            Shape.optional("video_codec_type", .word(["VP8", "VP9", "AV1", "H264", "H265"])),
            Shape.optional("audio_bit_rate", .integerIn(6...510)),
            Shape.optional("video_bit_rate", .integerIn(1...50_000)),
        ]
        if !omitsConfiguration { keys.append(Shape.required("config", configuration)) }
        return .object(keys)
    }

    private static let configuration = Shape.object([
        Shape.required(
            "iceServers",
            .array(
                .object([
                    Shape.required("urls", .array(.string)), Shape.required("username", .string),
                    Shape.required("credential", .string),
                ]))),
        Shape.required("iceTransportPolicy", .word(["all", "relay"])),
    ])

    private static let encoding = Shape.object([
        Shape.required("rid", .word(["r0", "r1", "r2"])), Shape.optional("active", .bool),
        Shape.optional("maxBitrate", .integer), Shape.optional("minBitrate", .integer),
        Shape.optional("maxFramerate", .number), Shape.optional("scaleResolutionDownBy", .number),
        Shape.optional(
            "scaleResolutionDownTo",
            .object([Shape.required("maxWidth", .integer), Shape.required("maxHeight", .integer)])),
        Shape.optional("scalabilityMode", .string), Shape.optional("adaptivePtime", .bool),
        Shape.optional("priority", .string), Shape.optional("networkPriority", .string),
    ])

    private static let dataChannel = Shape.object([
        Shape.required("label", name), Shape.required("direction", .word(["sendonly", "recvonly", "sendrecv"])),
        Shape.required("compress", .bool), Shape.optional("ordered", .bool),
        Shape.optional("max_packet_life_time", .integerIn(0...65_535)),
        Shape.optional("max_retransmits", .integerIn(0...65_535)), Shape.optional("protocol", .string),
        Shape.optional(
            "header",
            .array(
                .object([
                    Shape.required("type", .word(["sender_connection_id"])),
                    Shape.required("length", .integerIn(26...26)),
                ]))),
    ])

    /// All but `offer` and `notify`, by type.
    static let small: [String: Shape] = [
        "redirect": .object([
            type("redirect"), Shape.required("location", .text("WebSocket URL") { $0.hasPrefix("ws") }),
        ]),
        "re-offer": .object([type("re-offer"), Shape.required("sdp", description)]),
        "ping": .object([type("ping"), Shape.optional("stats", .bool)]),
        "req-stats": .object([type("req-stats")]),
        "push": .object([type("push"), Shape.required("data", .anyObject)]),
        "switched": .object([type("switched"), Shape.required("ignore_disconnect_websocket", .bool)]),
        "close": .object([
            type("close"), Shape.required("code", .integerIn(1000...4999)),
            Shape.required("reason", .text("reason") { !$0.isEmpty && $0.utf8.count <= 123 }),
        ]),
    ]

    /// Notifications by `event_type`.
    static func notification(_ event: String) -> Shape? {
        guard let keys = notifications[event] else { return nil }
        return .object(
            [
                type("notify"), Shape.required("event_type", .word([event])), Shape.required("timestamp", timestamp),
            ] + keys)
    }

    private static let connectionKeys: [Shape.Key] = [
        Shape.required("role", .word(ConnectionRole.allCases.map(\.rawValue))),
        Shape.required("session_id", id), Shape.required("client_id", name), Shape.required("bundle_id", name),
        Shape.required("connection_id", id), Shape.required("audio", .bool), Shape.required("video", .bool),
        Shape.required("minutes", count), Shape.required("channel_connections", count),
        Shape.required("channel_sendrecv_connections", count),
        Shape.required("channel_sendonly_connections", count),
        Shape.required("channel_recvonly_connections", count),
        Shape.required("turn_transport_type", .word(["udp", "tcp"])), Shape.optional("authn_metadata", .any),
        Shape.optional("authz_metadata", .any), Shape.optional("metadata", .any),
    ]

    private static let peer = Shape.object([
        Shape.required("client_id", name), Shape.required("bundle_id", name), Shape.required("connection_id", id),
        Shape.optional("authn_metadata", .any), Shape.optional("authz_metadata", .any),
        Shape.optional("metadata", .any),
    ])

    private static let spotlightKeys: [Shape.Key] = [
        Shape.required("client_id", .nullable(name)), Shape.required("connection_id", id),
        Shape.required("audio", .bool), Shape.required("video", .bool), Shape.required("fixed", .bool),
        Shape.optional("spotlight_number", .integerIn(1...8)),
    ]

    private static let notifications: [String: [Shape.Key]] = [
        "connection.created": connectionKeys + [Shape.optional("data", .array(peer))],
        "connection.updated": connectionKeys,
        "connection.destroyed": connectionKeys,
        "simulcast.switched": [
            Shape.required("sender_connection_id", .nullable(id)),
            Shape.required("priority", .word(["higher", "lower"])),
            Shape.required("trigger", .word(["sender", "receiver"])), Shape.required("rpc_rids", .array(rid)),
            Shape.required("auto_rids", .array(rid)),
            // `auto` is what the HTTP API may ask for (9.2).
            Shape.required("request_rid", .word(LayerRID.allCases.map(\.rawValue) + ["auto"])),
            Shape.required("current_rid", rid), Shape.required("previous_rid", rid),
        ],
        "spotlight.focused": spotlightKeys,
        "spotlight.unfocused": spotlightKeys,
        // Names and keys are ours: the specification only says that there are such notifications.
        "recording.started": [JSONShape.required("session_id", id), JSONShape.required("recording_id", id)],
        "recording.stopped": [JSONShape.required("session_id", id), JSONShape.required("recording_id", id)],
        "network.status": [Shape.required("unstable_level", .integerIn(0...3))],
    ]

    private static let rpcKeys: [Shape.Key] = [
        Shape.required("jsonrpc", .word(["2.0"])), Shape.required("id", .any),
    ]
    static let rpcResult = Shape.object(rpcKeys + [Shape.required("result", .any)])
    static let rpcError = Shape.object(
        rpcKeys + [
            Shape.required(
                "error",
                .object([
                    Shape.required("code", .integerIn(-32_768 ... -32_000)), Shape.required("message", .string),
                    Shape.optional("data", .any),
                ]))
        ])
}
