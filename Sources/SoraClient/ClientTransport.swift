import SoraMessages
import SoraWire

/// What exists once per epoch: the WebSocket, the offer, the peer connection and its channels. A redirect
/// replaces the whole value, so that nothing of the old transport can leak into the new one.
struct ClientTransport {
    /// `none` → `open` → `closing` (we sent a close frame) → `gone`; a loss goes straight to `gone`.
    enum WebSocket: Equatable {
        case none
        case open(DialID)
        case closing(DialID)
        case gone
    }

    /// On which way a message came, and its answer goes.
    enum Path: Equatable {
        case webSocket
        case channel(StreamID)
    }

    struct Channel {
        var label: String
        var framing: DataChannelFraming
    }

    /// A description of the server that wants an answer.
    struct Description {
        enum Kind { case offer, reOffer, update }
        var kind: Kind
        var sdp: String
        var path: Path
    }

    struct PendingCall {
        var token: RPCCallToken
        var deadline: Instant
    }

    struct PendingStatistics {
        enum Reply { case pong, stats }
        var reply: Reply
        var path: Path
    }

    var dials: [DialID: String] = [:]
    var lastDialError: ClientError?
    var webSocket = WebSocket.none
    var url: String?

    var offer: OfferMessage?
    var peer: (any ClientPeer)?
    var peerHasConnected = false
    /// When a peer connection that is `disconnected` ends the connection.
    var disconnectedDeadline: Instant?

    /// Descriptions that wait for the one in work.
    var waiting: [Description] = []
    /// The description whose answer is being made.
    var negotiating: Description?
    var firstAnswerSent = false
    /// Candidates found before the first answer left.
    var heldCandidates: [String] = []

    var streams: [RemoteStream] = []

    var channels: [StreamID: Channel] = [:]
    /// The channel that messages of a label go to: the first that opened.
    var channelOfLabel: [String: StreamID] = [:]
    var closedLabels: Set<String> = []
    var openedLabels: Set<String> = []
    var reportedAllOpen = false

    var switched = false
    var ignoresWebSocket = false
    var sawSignalingMessage = false
    /// When the WebSocket may be closed after a switch; it waits for answers that are owed on it.
    var shutdownDeadline: Instant?
    /// Code and reason of the server's `close` message.
    var announcedClose: CloseMessage?
    var closeDeadline: Instant?

    var calls: [Int: PendingCall] = [:]
    var nextCallID = 1
    var statistics: [StatisticsToken: PendingStatistics] = [:]

    /// The open WebSocket, unless we are closing it.
    var openWebSocket: DialID? {
        if case .open(let dial) = webSocket { dial } else { nil }
    }

    func isCurrentWebSocket(_ dial: DialID) -> Bool { webSocket == .open(dial) || webSocket == .closing(dial) }

    /// Whether an answer is owed on the WebSocket: being made, or waiting for its turn.
    var owesAnswerOnWebSocket: Bool {
        negotiating?.path == .webSocket || waiting.contains { $0.path == .webSocket }
    }

    /// Where signaling of ours goes when nothing says otherwise: the `signaling` channel once the server
    /// switched and the channel is open, else the WebSocket. A function of facts, not of their order.
    var signalingPath: Path? {
        if switched, let channel = channelOfLabel[SystemLabel.signaling] { return .channel(channel) }
        if openWebSocket != nil { return .webSocket }
        return channelOfLabel[SystemLabel.signaling].map { .channel($0) }
    }
}
