import SoraICE
import SoraMessages
import SoraPeer
import SoraRTP
import SoraWire

/// One connection of a channel: its signaling, its peer connection, and what it sends and receives.
///
/// Owned by its ``Channel``.
final class Member {
    enum Phase {
        /// The offer is out. → connecting, ending
        case awaitingAnswer
        /// The answer is in, the media path is being made. → connected, ending
        case connecting
        /// Announced to the channel. → ending
        case connected
        /// Channels are being closed; nothing is sent to it any more but that. → gone
        case ending
        /// Final.
        case gone
    }

    let id: ConnectionID
    let connect: ConnectMessage
    let grant: ConnectionGrant
    let peer: PeerConnection
    let joinedAt: Instant
    var phase = Phase.awaitingAnswer
    /// When the present phase is given up.
    var deadline: Instant?
    /// When an unanswered re-offer is given up.
    var reofferDeadline: Instant?
    var connectedAt: Instant?
    var isAnnounced = false

    // Signaling.
    var webSocketIsOpen = true
    var isSwitched = false
    var lastHeard: Instant
    var nextPing: Instant
    var nextStats: Instant
    var nextUpdate: Instant
    var reofferIsOutstanding = false
    var needsReoffer = false
    /// Set once the connection is being ended: how its WebSocket is closed at last.
    var ending: Ending?
    var notifyMetadata: JSONValue?
    var latestStats: JSONValue?
    /// Reasons of its end: of the HTTP API's caller, of the client's `disconnect`, of ours.
    var apiReason: JSONValue?
    var clientReason: String?
    var endReason: (code: UInt16, reason: String)?
    var rate = MessageRate()
    var iceTimes = ICETimes()
    var messagesReceived: UInt64 = 0
    var messagesSent: UInt64 = 0
    var messageBytesReceived: UInt64 = 0
    var messageBytesSent: UInt64 = 0
    /// Messages shown to a script so far, by type.
    var scriptCounts: [String: Int] = [:]

    // Timers.
    /// When its ``Channel`` looks at it next, and its place in the queue of those times.
    var scheduledAt = Instant.distantFuture
    var timeoutIndex: Int?
    var isTouched = false

    // Media: what it sends.
    var ownAudio: Transceiver?
    var ownVideo: Transceiver?
    /// Exist once the sections are agreed.
    var audioTrack: SenderTrack?
    var videoTrack: SenderTrack?
    var clock = SenderClock()
    // Spotlight: whether it is in focus, since when, by command or by speaking.
    var isFocused = false
    var focusIsFixed = false
    var focusedAt: Instant?
    var lastSpokeAt: Instant?

    // Media: what it receives, by sender and kind.
    var subscriptions: [SubscriptionKey: Subscription] = [:]
    var filters: [ForwardingFilter]
    /// Layer wishes by sender, and the one for all others.
    var layerWishes: [ConnectionID: LayerWish] = [:]
    var defaultWish: LayerWish
    var spotlightRIDs: [ConnectionID: SpotlightRIDs] = [:]
    var defaultSpotlightRIDs: SpotlightRIDs
    /// Bits per second that the way to it is estimated to carry; nil before the first estimate.
    var availableBitrate: Int?
    /// Quality of the way to it as last told by `network.status`, 0 (good) to 3.
    var unstableLevel = 0
    /// Since when it gets more than that.
    var exceedingSince: Instant?
    /// Some of its subscriptions are below their wish for lack of bandwidth.
    var isBandwidthLimited = false
    var nextImprovement = Instant.zero
    var lastImprovement: Instant?
    var improvementInterval: Duration = .seconds(5)

    // Data channels, by label.
    var dataChannels: [String: MemberDataChannel] = [:]
    var labelsByStream: [StreamID: String] = [:]

    struct Ending {
        var code: UInt16
        var reason: String
        /// Close the data channels at this time.
        var closesChannelsAt: Instant?
        var removesAt: Instant
        /// The WebSocket is closed behind the channels, not before them (a client's own `disconnect`).
        var closesWebSocketLast: Bool
    }

    init(
        id: ConnectionID, connect: ConnectMessage, grant: ConnectionGrant, peer: PeerConnection,
        settings: ChannelSettings, now: Instant
    ) {
        self.id = id
        self.connect = connect
        self.grant = grant
        self.peer = peer
        joinedAt = now
        lastHeard = now
        nextPing = now + settings.pingInterval
        nextStats = now + settings.statsInterval
        nextUpdate = now + settings.updateInterval
        deadline = now + settings.answerTimeout
        notifyMetadata = connect.signalingNotifyMetadata
        filters = grant.forwardingFilters
        defaultWish = grant.simulcastRequestRID.map { .rid($0) } ?? settings.layerWish
        defaultSpotlightRIDs = grant.spotlightRIDs
    }

    /// The track that arrives on a transceiver.
    func track(of transceiver: TransceiverID) -> SenderTrack? {
        if let track = audioTrack, track.transceiver.id == transceiver { return track }
        if let track = videoTrack, track.transceiver.id == transceiver { return track }
        return nil
    }

    /// Breaks the circles between senders, tracks and receivers.
    func forgetMedia() {
        for subscription in subscriptions.values {
            subscription.forwarder = nil
            subscription.track.subscriptions.removeAll { $0 === subscription }
        }
        subscriptions.removeAll()
        audioTrack?.archive = nil
        videoTrack?.archive = nil
        audioTrack?.subscriptions.removeAll()
        videoTrack?.subscriptions.removeAll()
        audioTrack = nil
        videoTrack = nil
    }

    var role: ConnectionRole { grant.role }
    var clientID: String { grant.clientID }
    var bundleID: String { grant.bundleID }
    var isActive: Bool {
        switch phase {
        case .awaitingAnswer, .connecting, .connected: true
        case .ending, .gone: false
        }
    }

    /// Whether this member may receive what `sender` sends.
    func receives(from sender: Member) -> Bool {
        role.receives && sender.role.sends && sender.id != id && sender.bundleID != bundleID
    }

    /// The system or application channel that is open under this label.
    func openChannel(_ label: String) -> MemberDataChannel? {
        guard let channel = dataChannels[label], channel.isOpen else { return nil }
        return channel
    }
}

/// Identifies a connection in its channel, in messages, and as media stream.
package struct ConnectionID: Hashable, Sendable, CustomStringConvertible {
    package var rawValue: String
    package init(_ rawValue: String) { self.rawValue = rawValue }
    package var description: String { rawValue }
}

/// Messages of one client in the present second.
struct MessageRate {
    private var secondBegan = Instant.zero
    private var messages = 0
    private var bytes = 0

    /// Counts a message. False if it is one too many.
    mutating func allows(_ size: Int, settings: ChannelSettings, now: Instant) -> Bool {
        if now - secondBegan >= .seconds(1) {
            secondBegan = now
            messages = 0
            bytes = 0
        }
        messages += 1
        bytes += size
        return messages <= settings.maximumMessagesPerSecond && bytes <= settings.maximumBytesPerSecond
    }
}

/// How long a connection has been in the two bad states of ICE, for event webhooks (spec/signaling.md 9.4).
struct ICETimes {
    private var state = ICEState.new
    private var since = Instant.zero
    private var sums: [ICEState: Duration] = [:]

    mutating func enter(_ next: ICEState, now: Instant) {
        sums[state, default: .zero] += now - since
        (state, since) = (next, now)
    }

    /// In this state until now, over all times that it was entered.
    func total(_ wanted: ICEState, now: Instant) -> Duration {
        sums[wanted, default: .zero] + (state == wanted ? now - since : .zero)
    }
}

/// One data channel of one member.
struct MemberDataChannel {
    var definition: DataChannelDefinition
    var stream: StreamID
    var isOpen = false
    var isClosed = false
}
