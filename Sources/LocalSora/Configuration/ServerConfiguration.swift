import SoraWire

/// How a ``SoraServer`` runs. A value with useful defaults: `ServerConfiguration()` is a server for
/// tests on a free port of the loopback interface.
public struct ServerConfiguration: Sendable {
    /// Address to listen on, as text: `127.0.0.1`, `::1`, `0.0.0.0` or another address of this machine.
    public var host = "127.0.0.1"
    /// Port of signaling, page and HTTP API; 0 lets the system choose (see ``SoraServer/port``).
    public var port: UInt16 = 0
    /// Addresses for media, as text. Empty: `host`, or all of this machine's if that is `0.0.0.0` or `::`.
    public var mediaAddresses: [String] = []
    /// UDP port for media of the first event loop; the others use the ports behind it. 0: the system chooses.
    public var mediaPort: UInt16 = 0
    /// Event loops, each a thread. A channel lives on one of them.
    public var eventLoops = 1
    /// TLS on ``port`` and ``apiPort``: then page and API are https and signaling is wss.
    public var transportSecurity = TransportSecurity.none

    /// Another port for the HTTP API and metrics alone; 0 lets the system choose (see
    /// ``SoraServer/apiPort``), nil opens none. The API is always on ``port`` too.
    public var apiPort: UInt16?
    /// Value of `access-control-allow-origin` for the HTTP API; nil sends no CORS headers.
    public var apiAllowedOrigin: String?
    /// Serves the web page at `/`.
    public var servesPage = true

    /// What `data_channel_signaling` means when a client leaves it out.
    public var dataChannelSignaling = true
    /// What `ignore_disconnect_websocket` means when a client leaves it out.
    public var ignoreDisconnectWebSocket = false
    /// Compresses the system's data channels (zlib).
    public var compressesDataChannels = true
    /// `VP8`, `VP9`, `AV1`, `H264` or `H265`, for clients that name none.
    public var videoCodec = "VP9"
    /// kbit/s for clients that ask for nothing.
    public var videoBitRate = 1000
    /// Names of the RPC methods that clients may call; empty turns RPC off.
    public var rpcMethods: [String]?
    /// How many members of a spotlight channel are in focus at a time, for clients that ask for nothing.
    public var spotlightNumber = 5
    /// Connections of one channel, before 4490 TOO-MANY-CONNECTIONS.
    public var maximumConnectionsPerChannel = 1000

    /// Time for `answer`, `re-answer` and the media path each, before 4490 TIMEOUT.
    public var answerTimeout: Duration = .seconds(30)
    /// Between two `ping` messages on the WebSocket.
    public var pingInterval: Duration = .seconds(5)
    /// How often a client is asked for its statistics.
    package var statsInterval: Duration = .seconds(30)
    /// Between two `connection.updated` about one connection.
    package var updateInterval: Duration = .seconds(60)
    /// A socket that has not sent a whole request, or `connect` on its WebSocket, by then is closed.
    public var connectTimeout: Duration = .seconds(5)
    /// Open sockets at one time, before 503; those of ``apiPort`` count apart.
    public var maximumSockets = 10_000
    /// Sockets of one address that have not sent `connect` yet, before 503; those of ``apiPort`` count apart.
    public var maximumWaitingSocketsPerAddress = 1000
    /// Signaling messages that one client may send in a second, after a burst of five times as many.
    public var maximumMessagesPerSecond = 100
    /// Channels on one event loop.
    public var maximumChannels = 10_000
    /// Bytes of one signaling message on the WebSocket.
    public var maximumSignalingMessageSize = 1 << 20
    /// Bytes that may wait for a client on TCP before it is cut off.
    public var maximumBufferedSignalingBytes = 4 << 20
    /// Bytes of an HTTP request's head, before 431.
    public var maximumRequestHeadSize = 16 << 10
    /// Bytes of an HTTP request's body, before 413.
    public var maximumRequestBodySize = 1 << 20
    /// Bytes of one data channel message: what the offer says (`a=max-message-size`).
    public var maximumMessageSize = 262_144
    /// Bytes that may wait on one data channel before its connection is ended with TOO-SLOW.
    public var maximumBufferedMessageBytes = 8 << 20
    /// Messages on data channels that one client may send in a second, before 4490 TOO-MANY-MESSAGES.
    public var maximumDataMessagesPerSecond = 50_000
    /// Bytes on data channels that one client may send in a second, before 4490 TOO-MANY-MESSAGES.
    public var maximumDataBytesPerSecond = 256 << 20
    /// Without any message of a client on WebSocket signaling, before 4490 TIMEOUT.
    public var silenceTimeout: Duration = .seconds(60)

    /// Secret of access tokens (JWT, HS256) in `metadata.access_token`. Nil takes everybody.
    public var tokenSecret: String?
    /// Honours the claims of access tokens without checking signature and lifetime, if ``tokenSecret`` is nil.
    public var acceptsUncheckedTokens = false
    /// URL (`http` or `https`) that is asked about each `connect` by a POST request (spec/signaling.md 9.3).
    public var authWebhook: String?
    /// URL that is told of sessions (spec/signaling.md 9.4).
    public var sessionWebhook: String?
    /// URL that is told of connections and recordings (spec/signaling.md 9.4).
    public var eventWebhook: String?
    /// For connecting, asking and answering together.
    public var webhookTimeout: Duration = .seconds(5)

    /// Directory for the files of recordings; it must exist. Nil: `StartRecording` is refused.
    public var recordingDirectory: String?

    /// Faults from the start; more can be added with ``SoraServer/inject(_:)``.
    public var faults: [Fault] = []

    /// TURN servers that clients are told to use.
    public var turnServers: [TURNServer] = []
    /// Tells clients to use nothing but TURN.
    public var forcesRelay = false

    /// Sends every client elsewhere: the `location` of the `redirect` message.
    public var redirectLocation: String?
    /// Makes identifiers repeatable, for tests; nil draws them from the system.
    public var seed: UInt64?
    /// Sees each signaling message before it leaves and decides what becomes of it. Called on the
    /// server's event loop: it must not block.
    public var script: (@Sendable (ScriptedMessage) -> [ScriptAction])?
    /// Gets each event as it happens, on the server's event loop: it must not block.
    public var onEvent: (@Sendable (ServerEvent) -> Void)?

    public init() {}

    /// Where the certificate for https and wss comes from.
    public enum TransportSecurity: Sendable, Equatable {
        case none
        /// Paths of PEM files: the certificate with its chain, and the private key without a password.
        case files(certificate: String, key: String)
        /// The same as text.
        case pem(certificate: String, key: String)
        /// Made at the start, for these names and addresses, localhost and the host; see
        /// ``SoraServer/certificate``.
        case selfSigned(names: [String] = [])
    }

    /// One TURN server with its credentials.
    public struct TURNServer: Sendable {
        /// `turn:` and `turns:` URIs.
        public var urls: [String]
        /// Told to clients as it is, with ``credential``.
        public var username: String
        /// The password.
        public var credential: String
        /// One server for all of `urls`.
        public init(urls: [String], username: String, credential: String) {
            self.urls = urls
            self.username = username
            self.credential = credential
        }
    }
}

/// Why a server could not start.
public enum ServerError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Not an IP address.
    case invalidAddress(String)
    /// The address or port cannot be bound; the reason names what to do.
    case cannotListen(String)
    case certificate(String)
    /// A URL of the configuration that is no http or https URL.
    case invalidURL(String)

    public var description: String {
        switch self {
        case .invalidAddress(let text): "'\(text)' is not an IP address of this machine"
        case .cannotListen(let reason): "cannot listen: \(reason)"
        case .certificate(let reason): "certificate: \(reason)"
        case .invalidURL(let text): "'\(text)' is not an http or https URL"
        }
    }
}
