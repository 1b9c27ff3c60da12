/// The server's offer (signaling specification 2.1). Only `sdp` and `connection_id` are required.
package struct OfferMessage: Sendable, Equatable {
    package static let type = "offer"
    package var sdp: String
    package var connectionID: String
    package var clientID: String?
    package var bundleID: String?
    package var channelID: String?
    package var sessionID: String?
    package var version: String?
    package var simulcast: Bool?
    package var simulcastMulticodec: Bool?
    package var spotlight: Bool?
    package var multistream: Bool?
    package var metadata: JSONValue?
    package var config: OfferICEConfiguration?
    package var encodings: [SimulcastEncoding]?
    /// Mids of the sections that the client may send on, by kind.
    package var mid: OfferMids?
    package var dataChannelSignaling: Bool?
    package var ignoreDisconnectWebSocket: Bool?
    package var dataChannels: [DataChannelDefinition]?
    package var rpcMethods: [String]?
    package var audio: Bool?
    package var video: Bool?
    package var audioCodecType: String?
    package var videoCodecType: String?
    /// kbit/s.
    package var audioBitRate: Int?
    /// kbit/s.
    package var videoBitRate: Int?
    package var extra = JSONObject()

    package init(sdp: String, connectionID: String) {
        self.sdp = sdp
        self.connectionID = connectionID
    }

    init(_ object: JSONObject) throws(MessageError) {
        var fields = FieldReader(object)
        fields.drop("type")
        sdp = try fields.require("sdp", in: Self.type)
        connectionID = try fields.require("connection_id", in: Self.type)
        clientID = fields.read("client_id")
        bundleID = fields.read("bundle_id")
        channelID = fields.read("channel_id")
        sessionID = fields.read("session_id")
        version = fields.read("version")
        simulcast = fields.read("simulcast")
        simulcastMulticodec = fields.read("simulcast_multicodec")
        spotlight = fields.read("spotlight")
        multistream = fields.read("multistream")
        metadata = fields.read("metadata")
        config = fields.read("config")
        encodings = fields.read("encodings")
        mid = fields.read("mid")
        dataChannelSignaling = fields.read("data_channel_signaling")
        ignoreDisconnectWebSocket = fields.read("ignore_disconnect_websocket")
        dataChannels = fields.read("data_channels")
        rpcMethods = fields.read("rpc_methods")
        audio = fields.read("audio")
        video = fields.read("video")
        audioCodecType = fields.read("audio_codec_type")
        videoCodecType = fields.read("video_codec_type")
        audioBitRate = fields.read("audio_bit_rate")
        videoBitRate = fields.read("video_bit_rate")
        try fields.check(Self.type)
        extra = fields.rest
    }

    package var json: JSONObject {
        var object: JSONObject = ["type": .string(Self.type)]
        object.set("sdp", sdp)
        object.set("version", version)
        object.set("simulcast", simulcast)
        object.set("simulcast_multicodec", simulcastMulticodec)
        object.set("spotlight", spotlight)
        object.set("multistream", multistream)
        object.set("channel_id", channelID)
        object.set("session_id", sessionID)
        object.set("client_id", clientID)
        object.set("bundle_id", bundleID)
        object.set("connection_id", connectionID)
        object.set("config", config)
        object.set("mid", mid)
        object.set("metadata", metadata)
        object.set("encodings", encodings)
        object.set("data_channel_signaling", dataChannelSignaling)
        object.set("ignore_disconnect_websocket", ignoreDisconnectWebSocket)
        object.set("data_channels", dataChannels)
        object.set("rpc_methods", rpcMethods)
        object.set("audio", audio)
        object.set("video", video)
        object.set("audio_codec_type", audioCodecType)
        object.set("video_codec_type", videoCodecType)
        object.set("audio_bit_rate", audioBitRate)
        object.set("video_bit_rate", videoBitRate)
        object.append(missingFrom: extra)
        return object
    }

    /// Whether the server opens data channels for signaling: it says so, or lists channels.
    package var usesDataChannelSignaling: Bool { dataChannelSignaling ?? !(dataChannels ?? []).isEmpty }
}

/// `offer.mid`.
package struct OfferMids: Sendable, Equatable, JSONConvertible {
    package var audio: String?
    package var video: String?
    package var extra = JSONObject()

    package init(audio: String? = nil, video: String? = nil) {
        self.audio = audio
        self.video = video
    }

    package init?(json: JSONValue) {
        guard let object = json.objectValue else { return nil }
        var fields = FieldReader(object)
        audio = fields.read("audio")
        video = fields.read("video")
        guard fields.mistyped.isEmpty else { return nil }
        extra = fields.rest
    }

    package var json: JSONValue {
        var object = JSONObject()
        object.set("audio", audio)
        object.set("video", video)
        object.append(missingFrom: extra)
        return .object(object)
    }
}

/// `offer.config`: how the client reaches the server.
package struct OfferICEConfiguration: Sendable, Equatable, JSONConvertible {
    package struct Server: Sendable, Equatable, JSONConvertible {
        package var urls: [String]
        package var username: String?
        package var credential: String?
        package var extra = JSONObject()

        package init(urls: [String], username: String? = nil, credential: String? = nil) {
            self.urls = urls
            self.username = username
            self.credential = credential
        }

        package init?(json: JSONValue) {
            guard let object = json.objectValue else { return nil }
            var fields = FieldReader(object)
            // The W3C form allows a single string.
            if let url = object["urls"]?.stringValue {
                urls = [url]
                fields.drop("urls")
            } else {
                urls = fields.read("urls") ?? []
            }
            username = fields.read("username")
            credential = fields.read("credential")
            guard fields.mistyped.isEmpty else { return nil }
            extra = fields.rest
        }

        package var json: JSONValue {
            var object = JSONObject()
            object.set("urls", urls)
            object.set("username", username)
            object.set("credential", credential)
            object.append(missingFrom: extra)
            return .object(object)
        }
    }

    package var iceServers: [Server]
    /// `relay` or `all`; any other value counts as `all`.
    package var iceTransportPolicy: String?
    package var extra = JSONObject()

    package init(iceServers: [Server], iceTransportPolicy: String? = nil) {
        self.iceServers = iceServers
        self.iceTransportPolicy = iceTransportPolicy
    }

    package init?(json: JSONValue) {
        guard let object = json.objectValue else { return nil }
        var fields = FieldReader(object)
        iceServers = fields.read("iceServers") ?? []
        iceTransportPolicy = fields.read("iceTransportPolicy")
        guard fields.mistyped.isEmpty else { return nil }
        extra = fields.rest
    }

    package var json: JSONValue {
        var object = JSONObject()
        object.set("iceServers", iceServers)
        object.set("iceTransportPolicy", iceTransportPolicy)
        object.append(missingFrom: extra)
        return .object(object)
    }

    package var allowsOnlyRelay: Bool { iceTransportPolicy == "relay" }
}

/// One entry of `offer.encodings`: parameters of one simulcast layer.
package struct SimulcastEncoding: Sendable, Equatable, JSONConvertible {
    package struct Size: Sendable, Equatable, JSONConvertible {
        package var maxWidth: Int
        package var maxHeight: Int
        package init(maxWidth: Int, maxHeight: Int) {
            self.maxWidth = maxWidth
            self.maxHeight = maxHeight
        }
        package init?(json: JSONValue) {
            guard let object = json.objectValue, let width = object["maxWidth"]?.intValue,
                let height = object["maxHeight"]?.intValue
            else { return nil }
            self.init(maxWidth: width, maxHeight: height)
        }
        package var json: JSONValue { ["maxWidth": maxWidth.json, "maxHeight": maxHeight.json] }
    }

    package var rid: String?
    /// Absent means true.
    package var active: Bool?
    /// bit/s.
    package var maxBitrate: Int?
    /// bit/s.
    package var minBitrate: Int?
    package var maxFramerate: Double?
    package var scaleResolutionDownBy: Double?
    package var scaleResolutionDownTo: Size?
    package var scalabilityMode: String?
    package var adaptivePtime: Bool?
    package var networkPriority: String?
    package var extra = JSONObject()

    package init(rid: String?) { self.rid = rid }

    package init?(json: JSONValue) {
        guard let object = json.objectValue else { return nil }
        var fields = FieldReader(object)
        rid = fields.read("rid")
        active = fields.read("active")
        maxBitrate = fields.read("maxBitrate")
        minBitrate = fields.read("minBitrate")
        maxFramerate = fields.read("maxFramerate")
        scaleResolutionDownBy = fields.read("scaleResolutionDownBy")
        scaleResolutionDownTo = fields.read("scaleResolutionDownTo")
        scalabilityMode = fields.read("scalabilityMode")
        adaptivePtime = fields.read("adaptivePtime")
        networkPriority = fields.read("networkPriority")
        guard fields.mistyped.isEmpty else { return nil }
        extra = fields.rest
    }

    package var json: JSONValue {
        var object = JSONObject()
        object.set("rid", rid)
        object.set("active", active)
        object.set("maxBitrate", maxBitrate)
        object.set("minBitrate", minBitrate)
        object.set("maxFramerate", maxFramerate)
        object.set("scaleResolutionDownBy", scaleResolutionDownBy)
        object.set("scaleResolutionDownTo", scaleResolutionDownTo)
        object.set("scalabilityMode", scalabilityMode)
        object.set("adaptivePtime", adaptivePtime)
        object.set("networkPriority", networkPriority)
        object.append(missingFrom: extra)
        return .object(object)
    }

    package var isActive: Bool { active ?? true }
}
