import SoraMessages
import SoraSecureTransport
import SoraWire

/// What a channel needs to know of its server: defaults, limits and times. A value.
package struct ChannelSettings: Sendable {
    package var version = "2025.2.0"
    /// What `data_channel_signaling` means when `connect` leaves it out.
    package var dataChannelSignaling = true
    /// What `ignore_disconnect_websocket` means when `connect` leaves it out.
    package var ignoreDisconnectWebSocket = false
    package var audioCodec = "OPUS"
    package var videoCodec = "VP9"
    /// kbit/s, for senders that ask for nothing.
    package var videoBitRate = 1000
    /// Sent in `offer.config`; empty without TURN.
    package var iceServers: [OfferICEConfiguration.Server] = []
    package var iceTransportPolicy = "all"
    package var compressesSystemChannels = true
    package var rpcMethods = RPCMethodName.all
    package var spotlightNumber = 5
    /// For spotlight connections that ask for nothing.
    package var spotlightRIDs = SpotlightRIDs()
    /// Which simulcast layer a receiver gets that asks for nothing.
    package var layerWish = LayerWish.rid(.r0)
    /// Whether somebody keeps the files of recordings.
    package var records = false
    package var maximumMembers = 1000
    /// Bytes of one message (spec/signaling.md 4.2).
    package var maximumMessageSize = 262_144
    /// Bytes that may wait on one data channel before its connection is ended (pitfall SRV2).
    package var maximumBufferedMessages = 8 << 20
    /// Signaling and application messages of one client in one second, and their bytes, before it is
    /// ended (pitfall SRV1).
    package var maximumMessagesPerSecond = 50_000
    package var maximumBytesPerSecond = 256 << 20

    /// `answer`, `re-answer` and the media path each have this long (3.2).
    package var answerTimeout: Duration = .seconds(30)
    package var pingInterval: Duration = .seconds(5)
    /// Without any message of the client on WebSocket signaling (8.1).
    package var silenceTimeout: Duration = .seconds(60)
    package var statsInterval: Duration = .seconds(30)
    package var updateInterval: Duration = .seconds(60)
    /// How long closing data channels may take before the transport goes.
    package var closeTimeout: Duration = .seconds(3)
    /// Between the `close` message and the closing of the channels (4.6).
    package var closeDelay: Duration = .milliseconds(100)
    /// At most one key frame request per stream in this time, but for short runs; see ``KeyFrameRequester``.
    package var keyFrameInterval: Duration = .milliseconds(250)

    package var certificate: DTLSCertificate
    /// Wall clock (seconds since 1970) at the loop's time zero, for timestamps.
    package var wallClockOrigin: Double

    package init(certificate: DTLSCertificate, wallClockOrigin: Double) {
        self.certificate = certificate
        self.wallClockOrigin = wallClockOrigin
    }
}
