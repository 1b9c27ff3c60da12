import Foundation

/// Settings of one connection.
///
/// `Sora.connect` copies every setting when it is called. The two handler objects are shared: they can be changed
/// on a `let` value and while the connection lives.
public struct Configuration {
    /// The older form of ``isSpotlightEnabled``.
    public enum Spotlight: Equatable, Sendable {
        /// With spotlight.
        case enabled
        /// Without spotlight.
        case disabled
    }

    // MARK: Where to

    /// Signaling URLs (`ws`, `wss`). All are dialled in parallel; the first that opens wins.
    public var urlCandidates: [URL]
    /// The channel to join.
    public var channelId: String
    /// Identifies this client to the server; the server makes one when nil.
    public var clientId: String?
    /// Connections with the same bundle id do not receive each other's media and messages, if the server
    /// honours it.
    public var bundleId: String?
    /// What the connection does with media.
    public var role: Role
    /// Sent as `multistream` when not nil.
    public var multistreamEnabled: Bool?
    /// Seconds for the whole attempt.
    public var connectionTimeout = 30

    // MARK: Video

    /// False: neither track nor camera.
    public var videoEnabled = true
    /// The codec of sent video; `.default` leaves the choice to the server.
    public var videoCodec = VideoCodec.default
    /// kbit/s
    public var videoBitRate: Int?
    /// Parameters for VP9; sent when ``videoCodec`` is `.vp9`.
    public var videoVp9Params: (any Encodable)?
    /// Parameters for AV1; sent when ``videoCodec`` is `.av1`.
    public var videoAv1Params: (any Encodable)?
    /// Parameters for H.264; sent when ``videoCodec`` is `.h264`.
    public var videoH264Params: (any Encodable)?
    /// Parameters for H.265; sent when ``videoCodec`` is `.h265`.
    public var videoH265Params: (any Encodable)?
    /// The camera that is opened on connect.
    public var cameraSettings = CameraSettings.default
    /// False: the camera is opened only by `setVideoHardMute(false)`.
    public var initialCameraEnabled = true

    // MARK: Audio

    /// False: no track and no microphone.
    public var audioEnabled = true
    /// The codec of sent audio; `.default` leaves the choice to the server.
    public var audioCodec = AudioCodec.default
    /// kbit/s
    public var audioBitRate: Int?
    /// Parameters for Opus; sent when ``audioCodec`` is `.opus`.
    public var audioOpusParams: (any Encodable)?
    /// Plays received audio in stereo, without voice processing.
    public var audioStereoOutputEnabled = false
    /// False: the microphone starts hard-muted.
    public var initialMicrophoneEnabled = true
    /// True: the microphone's sound is sent as it comes, without echo cancellation, gain control and noise suppression.
    /// They need GStreamer's `webrtcdsp` (Debian: gstreamer1.0-plugins-bad) and are left out, with a line in the log,
    /// where it is missing; echo is that of what this process plays.
    public var bypassVoiceProcessing = false
    /// The language of the audio, for the server's speech services, for instance `ja-JP`.
    public var audioStreamingLanguageCode: String?

    // MARK: Simulcast and spotlight

    /// The `simulcast` value of the offer overrides it.
    public var simulcastEnabled = false
    /// Deprecated in favour of ``simulcastRequestRid``.
    public var simulcastRid: SimulcastRid?
    /// The layer to receive at first; needs simulcast and a receiving role.
    public var simulcastRequestRid = SimulcastRequestRid.unspecified
    /// Joins with spotlight: the server forwards those who speak.
    public var isSpotlightEnabled = false
    /// Deprecated in favour of ``isSpotlightEnabled``.
    public var spotlightEnabled: Spotlight {
        get { isSpotlightEnabled ? .enabled : .disabled }
        set { isSpotlightEnabled = newValue == .enabled }
    }
    /// How many members are in focus at a time.
    public var spotlightNumber: Int?
    /// The layer to receive of members in focus.
    public var spotlightFocusRid = SpotlightRid.unspecified
    /// The layer to receive of members out of focus.
    public var spotlightUnfocusRid = SpotlightRid.unspecified

    // MARK: Connection

    /// Settings of the peer connection.
    public var webRTCConfiguration = WebRTCConfiguration()
    /// Metadata for the server's authentication. Must encode to JSON.
    public var signalingConnectMetadata: (any Encodable)?
    /// Metadata that the others get in notifications. Must encode to JSON.
    public var signalingConnectNotifyMetadata: (any Encodable)?
    /// Moves signaling to data channels, which messaging and RPC need. Nil: the server decides.
    public var dataChannelSignaling: Bool?
    /// Any value that `JSONSerialization` accepts, normally `[[String: Any]]`.
    public var dataChannels: Any?
    /// Lets the connection live on without its WebSocket. Nil: the server decides.
    public var ignoreDisconnectWebSocket: Bool?
    /// Nil means none: neither system settings nor environment variables are consulted.
    public var proxy: Proxy?
    /// PEM text with the only certificate authorities to trust.
    public var caCertificate: String?
    /// True: server certificates are not checked at all. For tests.
    public var insecure = false
    /// An addition to the iOS SDK: the lowest TLS version, and a certificate of the client's own.
    public var transportSecurity = TransportSecurity()
    /// The older form with one filter.
    public var forwardingFilter: ForwardingFilter?
    /// Which members' audio and video are forwarded to this connection.
    public var forwardingFilters: [ForwardingFilter]?

    // MARK: Callbacks

    /// Callbacks for WebSocket messages as they come.
    public var webSocketChannelHandlers = WebSocketChannelHandlers()
    /// Becomes `MediaChannel.handlers`.
    public var mediaChannelHandlers = MediaChannelHandlers()

    // MARK: Local stream

    /// Id of the local stream.
    public var publisherStreamId = "mainStream"
    /// Id of the video track of the local stream.
    public var publisherVideoTrackId = "mainVideo"
    /// Id of the audio track of the local stream.
    public var publisherAudioTrackId = "mainAudio"

    /// Settings for one signaling URL.
    public init(url: URL, channelId: String, role: Role, multistreamEnabled: Bool? = nil) {
        self.init(urlCandidates: [url], channelId: channelId, role: role, multistreamEnabled: multistreamEnabled)
    }

    /// Settings for several signaling URLs of one cluster.
    public init(urlCandidates: [URL], channelId: String, role: Role, multistreamEnabled: Bool? = nil) {
        self.urlCandidates = urlCandidates
        self.channelId = channelId
        self.role = role
        self.multistreamEnabled = multistreamEnabled
    }
}
