import Foundation

/// The server's offer of a connection.
public struct SignalingOffer: Codable {
    /// The client id in force.
    public let clientId: String
    /// Identifies this connection in the channel.
    public let connectionId: String
    /// The session description of the server.
    public let sdp: String
    /// The bundle id in force.
    public let bundleId: String?
    /// The channel that was joined.
    public let channelId: String?
    /// The session of the channel.
    public let sessionId: String?
    /// The version of the server.
    public let version: String?
    /// ICE servers and policy.
    public let configuration: Configuration?
    /// As `JSONSerialization` made it.
    public var metadata: Any?
    /// Simulcast layers to send.
    public let encodings: [Encoding]?
    /// As `JSONSerialization` made it: numbers are `NSNumber`, readable as `Int` and as `Double`.
    public var dataChannels: [[String: Any]]?
    /// The sections of the session description by `audio` and `video`.
    public let mid: [String: String]?
    /// Whether simulcast is in force.
    public let simulcast: Bool?
    public let simulcastMulticodec: Bool?
    /// Whether spotlight is in force.
    public let spotlight: Bool?
    /// Names of the methods that `rpc` may call.
    public var rpcMethods: [String]?
    /// Whether audio is in force.
    public let audio: Bool?
    /// Whether video is in force.
    public let video: Bool?
    /// The audio codec in force.
    public let audioCodecType: String?
    /// The video codec in force.
    public let videoCodecType: String?
    /// kbit/s
    public let audioBitRate: Int?
    /// kbit/s
    public let videoBitRate: Int?

    init(_ object: SignalingObject) throws {
        clientId = try object.required(object.string("client_id"))
        connectionId = try object.required(object.string("connection_id"))
        sdp = try object.required(object.string("sdp"))
        bundleId = try object.string("bundle_id")
        channelId = try object.string("channel_id")
        sessionId = try object.string("session_id")
        version = try object.string("version")
        configuration = try object.object("config").map(Configuration.init)
        metadata = object.any("metadata")
        encodings = try object.objects("encodings")?.map(Encoding.init)
        dataChannels = try object.objects("data_channels")?.map(\.members)
        if let names = try object.object("mid") {
            mid = try names.members.mapValues { try object.required($0 as? String) }
        } else {
            mid = nil
        }
        simulcast = try object.bool("simulcast")
        simulcastMulticodec = try object.bool("simulcast_multicodec")
        spotlight = try object.bool("spotlight")
        rpcMethods = try object.strings("rpc_methods")
        audio = try object.bool("audio")
        video = try object.bool("video")
        audioCodecType = try object.string("audio_codec_type")
        videoCodecType = try object.string("video_codec_type")
        audioBitRate = try object.int("audio_bit_rate")
        videoBitRate = try object.int("video_bit_rate")
    }

    public init(from decoder: any Decoder) throws { try self.init(SignalingObject(from: decoder)) }
    /// Always fails: the message is only ever received.
    public func encode(to encoder: any Encoder) throws { throw SoraError.invalidSignalingMessage }

    /// The part of the offer about ICE.
    public struct Configuration: Codable {
        /// STUN and TURN servers.
        public let iceServerInfos: [ICEServerInfo]
        /// Whether only relays may be used.
        public let iceTransportPolicy: ICETransportPolicy

        init(_ object: SignalingObject) throws {
            iceServerInfos = try (object.objects("iceServers") ?? []).map { server in
                // One URI may come without a list around it.
                let urls: [String] =
                    if let single = server.any("urls") as? String { [single] } else {
                        try server.required(server.strings("urls"))
                    }
                return ICEServerInfo(
                    urls: urls, userName: try server.string("username"), credential: try server.string("credential"))
            }
            if let name = try object.string("iceTransportPolicy") {
                iceTransportPolicy = try object.required(ICETransportPolicy.names.value(for: name))
            } else {
                iceTransportPolicy = .all
            }
        }

        public init(from decoder: any Decoder) throws { try self.init(SignalingObject(from: decoder)) }

        private enum CodingKeys: String, CodingKey {
            case iceServerInfos = "iceServers"
            case iceTransportPolicy
        }
    }

    /// The settings of one simulcast layer, or of the only one.
    public struct Encoding: Codable {
        /// Absent means true.
        public let active: Bool
        /// The layer's name.
        public let rid: String?
        /// bit/s
        public let maxBitrate: Int?
        /// Frames a second.
        public let maxFramerate: Double?
        /// By how much width and height are divided.
        public let scaleResolutionDownBy: Double?
        /// The largest size.
        public let scaleResolutionDownTo: RTCResolutionRestriction?
        /// The mode of W3C's webrtc-svc, for instance `L1T2`.
        public let scalabilityMode: String?
        public let networkPriority: RTCPriority?

        init(_ object: SignalingObject) throws {
            active = try object.bool("active") ?? true
            rid = try object.string("rid")
            maxBitrate = try object.int("maxBitrate")
            maxFramerate = try object.double("maxFramerate")
            scaleResolutionDownBy = try object.double("scaleResolutionDownBy")
            scaleResolutionDownTo = try object.object("scaleResolutionDownTo").map { size in
                let restriction = RTCResolutionRestriction()
                restriction.maxWidth = try size.int("maxWidth").map { NSNumber(value: $0) }
                restriction.maxHeight = try size.int("maxHeight").map { NSNumber(value: $0) }
                return restriction
            }
            scalabilityMode = try object.string("scalabilityMode")
            if let name = try object.string("networkPriority") {
                networkPriority = RTCPriority(name: name)
                if networkPriority == nil {
                    Logger.warn(type: .signaling, message: "unknown networkPriority in offer: \(name)")
                }
            } else {
                networkPriority = nil
            }
        }

        public init(from decoder: any Decoder) throws { try self.init(SignalingObject(from: decoder)) }
        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: SignalingKey.self)
            try container.encode(active, forKey: "active")
            try container.encodeIfPresent(rid, forKey: "rid")
            try container.encodeIfPresent(maxBitrate, forKey: "maxBitrate")
            try container.encodeIfPresent(maxFramerate, forKey: "maxFramerate")
            try container.encodeIfPresent(scaleResolutionDownBy, forKey: "scaleResolutionDownBy")
            if let size = scaleResolutionDownTo {
                var inner = container.nestedContainer(keyedBy: SignalingKey.self, forKey: "scaleResolutionDownTo")
                try inner.encodeIfPresent(size.maxWidth?.intValue, forKey: "maxWidth")
                try inner.encodeIfPresent(size.maxHeight?.intValue, forKey: "maxHeight")
            }
            try container.encodeIfPresent(scalabilityMode, forKey: "scalabilityMode")
            try container.encodeIfPresent(networkPriority?.name, forKey: "networkPriority")
        }

        /// The settings as an object of the engine's vocabulary.
        public var rtpEncodingParameters: RTCRtpEncodingParameters {
            let parameters = RTCRtpEncodingParameters()
            parameters.isActive = active
            parameters.rid = rid
            parameters.maxBitrateBps = maxBitrate.map { NSNumber(value: $0) }
            parameters.maxFramerate = maxFramerate.map { NSNumber(value: $0) }
            parameters.scaleResolutionDownBy = scaleResolutionDownBy.map { NSNumber(value: $0) }
            parameters.scaleResolutionDownTo = scaleResolutionDownTo
            parameters.scalabilityMode = scalabilityMode
            if let networkPriority { parameters.networkPriority = networkPriority }
            return parameters
        }
    }
}
