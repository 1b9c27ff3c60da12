import Foundation

/// Settings of one connection.
///
/// `Sora.connect` copies every setting when it is called. The two handler objects are shared: they can be changed
/// on a `let` value and while the connection lives.
public struct Configuration {
    /// The older form of ``isSpotlightEnabled``.
    public enum Spotlight: Equatable, Sendable {
        case enabled
        case disabled
    }

    // MARK: Where to

    /// Signaling URLs (`ws`, `wss`). All are dialled in parallel; the first that opens wins.
    public var urlCandidates: [URL]
    public var channelId: String
    public var clientId: String?
    public var bundleId: String?
    public var role: Role
    /// Sent as `multistream` when not nil.
    public var multistreamEnabled: Bool?
    /// Seconds for the whole attempt.
    public var connectionTimeout = 30

    // MARK: Video

    /// False: neither track nor camera.
    public var videoEnabled = true
    public var videoCodec = VideoCodec.default
    /// kbit/s
    public var videoBitRate: Int?
    public var videoVp9Params: (any Encodable)?
    public var videoAv1Params: (any Encodable)?
    public var videoH264Params: (any Encodable)?
    public var videoH265Params: (any Encodable)?
    /// The camera that is opened on connect.
    public var cameraSettings = CameraSettings.default
    /// False: the camera is opened only by `setVideoHardMute(false)`.
    public var initialCameraEnabled = true

    // MARK: Audio

    /// False: no track and no microphone.
    public var audioEnabled = true
    public var audioCodec = AudioCodec.default
    /// kbit/s
    public var audioBitRate: Int?
    public var audioOpusParams: (any Encodable)?
    /// Plays received audio in stereo, without voice processing.
    public var audioStereoOutputEnabled = false
    /// False: the microphone starts hard-muted.
    public var initialMicrophoneEnabled = true
    /// True: no echo cancellation, gain control and noise suppression.
    public var bypassVoiceProcessing = false
    public var audioStreamingLanguageCode: String?

    // MARK: Simulcast and spotlight

    /// The `simulcast` value of the offer overrides it.
    public var simulcastEnabled = false
    /// Deprecated in favour of ``simulcastRequestRid``.
    public var simulcastRid: SimulcastRid?
    public var simulcastRequestRid = SimulcastRequestRid.unspecified
    public var isSpotlightEnabled = false
    /// Deprecated in favour of ``isSpotlightEnabled``.
    public var spotlightEnabled: Spotlight {
        get { isSpotlightEnabled ? .enabled : .disabled }
        set { isSpotlightEnabled = newValue == .enabled }
    }
    public var spotlightNumber: Int?
    public var spotlightFocusRid = SpotlightRid.unspecified
    public var spotlightUnfocusRid = SpotlightRid.unspecified

    // MARK: Connection

    public var webRTCConfiguration = WebRTCConfiguration()
    public var signalingConnectMetadata: (any Encodable)?
    public var signalingConnectNotifyMetadata: (any Encodable)?
    public var dataChannelSignaling: Bool?
    /// Any value that `JSONSerialization` accepts, normally `[[String: Any]]`.
    public var dataChannels: Any?
    public var ignoreDisconnectWebSocket: Bool?
    /// Nil means none: neither system settings nor environment variables are consulted.
    public var proxy: Proxy?
    /// PEM text with the only certificate authorities to trust.
    public var caCertificate: String?
    /// True: server certificates are not checked at all. For tests.
    public var insecure = false
    /// The older form with one filter.
    public var forwardingFilter: ForwardingFilter?
    public var forwardingFilters: [ForwardingFilter]?

    // MARK: Callbacks

    public var webSocketChannelHandlers = WebSocketChannelHandlers()
    /// Becomes `MediaChannel.handlers`.
    public var mediaChannelHandlers = MediaChannelHandlers()

    // MARK: Local stream

    public var publisherStreamId = "mainStream"
    public var publisherVideoTrackId = "mainVideo"
    public var publisherAudioTrackId = "mainAudio"

    public init(url: URL, channelId: String, role: Role, multistreamEnabled: Bool? = nil) {
        self.init(urlCandidates: [url], channelId: channelId, role: role, multistreamEnabled: multistreamEnabled)
    }

    public init(urlCandidates: [URL], channelId: String, role: Role, multistreamEnabled: Bool? = nil) {
        self.urlCandidates = urlCandidates
        self.channelId = channelId
        self.role = role
        self.multistreamEnabled = multistreamEnabled
    }
}
