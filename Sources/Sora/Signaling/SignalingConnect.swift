import Foundation

/// The client's first message.
public struct SignalingConnect: Codable {
    public var role: SignalingRole
    public var channelId: String
    public var clientId: String?
    public var bundleId: String?
    public var metadata: (any Encodable)?
    public var notifyMetadata: (any Encodable)?
    /// A capability offer; only of sending roles.
    public var sdp: String?
    public var multistreamEnabled: Bool?
    public var videoEnabled: Bool
    public var videoCodec: VideoCodec
    /// kbit/s
    public var videoBitRate: Int?
    public var audioEnabled: Bool
    public var audioCodec: AudioCodec
    /// kbit/s
    public var audioBitRate: Int?
    public var opusParams: (any Encodable)?
    public var spotlightEnabled: Configuration.Spotlight
    public var spotlightNumber: Int?
    public var spotlightFocusRid: SpotlightRid
    public var spotlightUnfocusRid: SpotlightRid
    public var simulcastEnabled: Bool
    public var simulcastRid: SimulcastRid?
    public var simulcastRequestRid: SimulcastRequestRid
    public var soraClient: String?
    public var webRTCVersion: String?
    public var environment: String?
    public var dataChannelSignaling: Bool?
    public var ignoreDisconnectWebSocket: Bool?
    public var audioStreamingLanguageCode: String?
    public var redirect: Bool?
    public var forwardingFilter: ForwardingFilter?
    public var forwardingFilters: [ForwardingFilter]?
    public var vp9Params: (any Encodable)?
    public var av1Params: (any Encodable)?
    public var h264Params: (any Encodable)?
    public var h265Params: (any Encodable)?
    var dataChannels: JSONValue?

    /// The message for `configuration`.
    init(_ configuration: Configuration, sdp: String?, redirect: Bool) {
        role = SignalingRole(configuration.role)
        channelId = configuration.channelId
        clientId = configuration.clientId
        bundleId = configuration.bundleId
        metadata = configuration.signalingConnectMetadata
        notifyMetadata = configuration.signalingConnectNotifyMetadata
        self.sdp = sdp
        multistreamEnabled = configuration.multistreamEnabled
        videoEnabled = configuration.videoEnabled
        videoCodec = configuration.videoCodec
        videoBitRate = configuration.videoBitRate
        audioEnabled = configuration.audioEnabled
        audioCodec = configuration.audioCodec
        audioBitRate = configuration.audioBitRate
        opusParams = configuration.audioOpusParams
        spotlightEnabled = configuration.isSpotlightEnabled ? .enabled : .disabled
        spotlightNumber = configuration.spotlightNumber
        spotlightFocusRid = configuration.spotlightFocusRid
        spotlightUnfocusRid = configuration.spotlightUnfocusRid
        simulcastEnabled = configuration.simulcastEnabled
        simulcastRid = configuration.simulcastRid
        simulcastRequestRid = configuration.simulcastRequestRid
        soraClient = SDKInfo.product
        webRTCVersion = WebRTCInfo.engine
        environment = DeviceInfo.current.description
        dataChannelSignaling = configuration.dataChannelSignaling
        ignoreDisconnectWebSocket = configuration.ignoreDisconnectWebSocket
        audioStreamingLanguageCode = configuration.audioStreamingLanguageCode
        self.redirect = redirect ? true : nil
        forwardingFilter = configuration.forwardingFilter
        forwardingFilters = configuration.forwardingFilters
        vp9Params = configuration.videoVp9Params
        av1Params = configuration.videoAv1Params
        h264Params = configuration.videoH264Params
        h265Params = configuration.videoH265Params
        dataChannels = configuration.dataChannels.flatMap { JSONValue(foundationObject: $0) }
    }

    /// Always fails: the message is only ever sent.
    public init(from decoder: any Decoder) throws { throw SoraError.invalidSignalingMessage }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: SignalingKey.self)
        try container.encode("connect", forKey: "type")
        try container.encode(role, forKey: "role")
        try container.encode(channelId, forKey: "channel_id")
        try container.encodeIfPresent(clientId, forKey: "client_id")
        try container.encodeIfPresent(bundleId, forKey: "bundle_id")
        try container.encodeIfPresent(sdp, forKey: "sdp")
        try container.encodeAny(metadata, forKey: "metadata")
        try container.encodeAny(notifyMetadata, forKey: "signaling_notify_metadata")
        try container.encodeIfPresent(multistreamEnabled, forKey: "multistream")
        try container.encodeIfPresent(soraClient, forKey: "sora_client")
        try container.encodeIfPresent(webRTCVersion, forKey: "libwebrtc")
        try container.encodeIfPresent(environment, forKey: "environment")
        try container.encodeIfPresent(dataChannelSignaling, forKey: "data_channel_signaling")
        try container.encodeIfPresent(ignoreDisconnectWebSocket, forKey: "ignore_disconnect_websocket")
        try container.encodeIfPresent(dataChannels, forKey: "data_channels")
        try container.encodeIfPresent(audioStreamingLanguageCode, forKey: "audio_streaming_language_code")
        try container.encodeIfPresent(redirect, forKey: "redirect")
        try container.encodeIfPresent(forwardingFilter, forKey: "forwarding_filter")
        try container.encodeIfPresent(forwardingFilters, forKey: "forwarding_filters")
        try encodeVideo(into: &container)
        try encodeAudio(into: &container)
        try encodeSimulcast(into: &container)
        try encodeSpotlight(into: &container)
    }

    private typealias Container = KeyedEncodingContainer<SignalingKey>

    private func encodeVideo(into container: inout Container) throws {
        guard videoEnabled else { return try container.encode(false, forKey: "video") }
        let parameters: (key: SignalingKey, value: (any Encodable)?)? =
            switch videoCodec {
            case .vp9: ("vp9_params", vp9Params)
            case .av1: ("av1_params", av1Params)
            case .h264: ("h264_params", h264Params)
            case .h265: ("h265_params", h265Params)
            case .default, .vp8: nil
            }
        guard videoCodec != .default || videoBitRate != nil else { return }
        var video = container.nestedContainer(keyedBy: SignalingKey.self, forKey: "video")
        if videoCodec != .default { try video.encode(videoCodec, forKey: "codec_type") }
        try video.encodeIfPresent(videoBitRate, forKey: "bit_rate")
        if let parameters { try video.encodeAny(parameters.value, forKey: parameters.key) }
    }

    private func encodeAudio(into container: inout Container) throws {
        guard audioEnabled else { return try container.encode(false, forKey: "audio") }
        guard audioCodec != .default || audioBitRate != nil else { return }
        var audio = container.nestedContainer(keyedBy: SignalingKey.self, forKey: "audio")
        if audioCodec != .default { try audio.encode(audioCodec, forKey: "codec_type") }
        try audio.encodeIfPresent(audioBitRate, forKey: "bit_rate")
        if audioCodec == .opus { try audio.encodeAny(opusParams, forKey: "opus_params") }
    }

    private func encodeSimulcast(into container: inout Container) throws {
        guard simulcastEnabled else { return }
        try container.encode(true, forKey: "simulcast")
        guard role != .sendonly else { return }
        try container.encodeIfPresent(simulcastRid, forKey: "simulcast_rid")
        if simulcastRequestRid != .unspecified {
            try container.encode(simulcastRequestRid, forKey: "simulcast_request_rid")
        }
    }

    private func encodeSpotlight(into container: inout Container) throws {
        guard spotlightEnabled == .enabled else { return }
        try container.encode(true, forKey: "spotlight")
        try container.encodeIfPresent(spotlightNumber, forKey: "spotlight_number")
        if spotlightFocusRid != .unspecified { try container.encode(spotlightFocusRid, forKey: "spotlight_focus_rid") }
        if spotlightUnfocusRid != .unspecified {
            try container.encode(spotlightUnfocusRid, forKey: "spotlight_unfocus_rid")
        }
    }
}
