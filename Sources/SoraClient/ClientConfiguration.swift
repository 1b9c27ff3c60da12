import SoraMessages
import SoraWire

/// What one connection attempt needs. A value, complete before dialling begins: nothing of it is
/// computed between the opening of a socket and the `connect` message.
package struct ClientConfiguration: Sendable {
    /// Signaling URLs (`ws` or `wss`), tried side by side. Repeated ones are dialled once.
    package var urls: [String]
    /// The first message, complete with capability offer and metadata. After a redirect it is sent
    /// again with `redirect: true`.
    package var connect: ConnectMessage
    /// From ``ClientConnection/start(now:)`` until the peer connection is connected.
    package var connectionTimeout = Duration.seconds(30)
    /// Stream id under which own media is announced.
    package var publisherStreamID = "mainStream"
    package var audioTrackID = "mainAudio"
    package var videoTrackID = "mainVideo"
    /// Tracks of ours are attached (sending roles only).
    package var sendsAudio: Bool
    package var sendsVideo: Bool
    package var limits = ClientLimits()
    /// True: a message is acted upon only after ``ClientConnection/signalingTextDelivered(now:)`` said that the
    /// application was told of its text. Messages that must not wait (ping, statistics, `switched`, `redirect`,
    /// `close`) are acted upon at once all the same.
    package var waitsForDelivery = false

    package init(urls: [String], connect: ConnectMessage) {
        self.urls = urls
        self.connect = connect
        sendsAudio = connect.role.sends && connect.wantsAudio
        sendsVideo = connect.role.sends && connect.wantsVideo
    }
}

/// Times and sizes that the protocol or prudence fix.
package struct ClientLimits: Sendable {
    /// How long a peer connection may stay `disconnected` before that ends the connection.
    package var disconnectedGrace = Duration.seconds(5)
    /// From the first message on label `signaling` until the WebSocket is closed, after a switch that
    /// lets it go.
    package var webSocketShutdownDelay = Duration.seconds(10)
    /// How long an own disconnect waits for the server to let go of channels and WebSocket.
    package var disconnectWait = Duration.seconds(3)
    /// How long the channels may take to close after the server's `close` message.
    package var closeWait = Duration.seconds(5)
    /// Redirects in a row.
    package var redirects = 16
    /// Descriptions that may wait for the one being answered.
    package var waitingOffers = 64
    /// Candidates kept while the answer is being made.
    package var waitingCandidates = 256
    /// Bytes of a message after inflation.
    package var inflatedMessage = Compression.defaultLimit
    /// Bytes of a message that we send, as the application gives it.
    package var outgoingMessage = 262_144

    package init() {}
}
