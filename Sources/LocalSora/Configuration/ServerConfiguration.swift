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
    public var spotlightNumber = 5
    public var maximumConnectionsPerChannel = 1000

    /// Time for `answer`, `re-answer` and the media path each, before 4490 TIMEOUT.
    public var answerTimeout: Duration = .seconds(30)
    public var pingInterval: Duration = .seconds(5)
    /// A WebSocket that has not sent `connect` by then is closed.
    public var connectTimeout: Duration = .seconds(5)
    /// Open sockets at one time.
    public var maximumSockets = 10_000

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

    /// One TURN server with its credentials.
    public struct TURNServer: Sendable {
        /// `turn:` and `turns:` URIs.
        public var urls: [String]
        public var username: String
        public var credential: String
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

    public var description: String {
        switch self {
        case .invalidAddress(let text): "'\(text)' is not an IP address of this machine"
        case .cannotListen(let reason): "cannot listen: \(reason)"
        case .certificate(let reason): "certificate: \(reason)"
        }
    }
}
