import Foundation

/// Something happened in the channel.
public struct SignalingNotify: Codable {
    /// What happened, for instance `connection.created`.
    public var eventType: String
    /// When it happened, by the server's clock, in RFC 3339.
    public var timestamp: String?
    /// The member's role.
    public var role: SignalingRole?
    /// The session of the channel.
    public var sessionId: String?
    /// Client id of the member that it is about.
    public var clientId: String?
    /// Bundle id of the member that it is about.
    public var bundleId: String?
    /// Connection id of the member that it is about.
    public var connectionId: String?
    /// How many members are in focus at a time.
    public var spotlightNumber: Int?
    /// Whether the member sends audio.
    public var audioEnabled: Bool?
    /// Whether the member sends video.
    public var videoEnabled: Bool?
    /// As `JSONSerialization` made it, like the other two.
    public var metadata: Any?
    /// Metadata of the member's authentication.
    public var authnMetadata: Any?
    /// Metadata of the member's authorization.
    public var authzMetadata: Any?
    /// The members that were there before; nil if the message has no list of objects.
    public var data: [SignalingNotifyMetadata]?
    /// Minutes since the connection began.
    public var connectionTime: Int?
    /// Members of the channel.
    public var connectionCount: Int?
    /// Members that send only.
    public var channelSendonlyConnections: Int?
    /// Members that receive only.
    public var channelRecvonlyConnections: Int?
    /// Members that send and receive.
    public var channelSendrecvConnections: Int?
    /// The member in focus.
    public var spotlightId: String?
    /// Whether the focus was set by hand.
    public var isFixed: Bool?
    /// How bad the network is, from 0 (good) to 3.
    public var unstableLevel: Int?
    /// How the member reaches the TURN server: `udp` or `tcp`.
    public var turnTransportType: String?
    /// `audio` or `video`.
    public var kind: String?
    /// The member that receives.
    public var destinationConnectionId: String?
    /// The member that sends.
    public var sourceConnectionId: String?
    /// The member that receives.
    public var recvConnectionId: String?
    /// The member that sends.
    public var sendConnectionId: String?
    /// The stream that it is about.
    public var streamId: String?
    /// The connection that failed.
    public var failedConnectionId: String?
    /// The state from now on.
    public var currentState: String?
    /// The state of before.
    public var previousState: String?

    init(_ object: SignalingObject) throws {
        eventType = try object.required(object.string("event_type"))
        timestamp = try object.string("timestamp")
        if let name = try object.string("role") { role = try object.required(SignalingRole(rawValue: name)) }
        sessionId = try object.string("session_id")
        clientId = try object.string("client_id")
        bundleId = try object.string("bundle_id")
        connectionId = try object.string("connection_id")
        spotlightNumber = try object.int("spotlight_number")
        audioEnabled = try object.bool("audio")
        videoEnabled = try object.bool("video")
        metadata = object.any("metadata")
        authnMetadata = object.any("authn_metadata")
        authzMetadata = object.any("authz_metadata")
        data = try (object.any("data") as? [[String: Any]])?.map {
            try SignalingNotifyMetadata(SignalingObject($0))
        }
        connectionTime = try object.int("minutes")
        connectionCount = try object.int("channel_connections")
        channelSendonlyConnections = try object.int("channel_sendonly_connections")
        channelRecvonlyConnections = try object.int("channel_recvonly_connections")
        channelSendrecvConnections = try object.int("channel_sendrecv_connections")
        spotlightId = try object.string("spotlight_id")
        isFixed = try object.bool("fixed")
        unstableLevel = try object.int("unstable_level")
        turnTransportType = try object.string("turn_transport_type")
        kind = try object.string("kind")
        destinationConnectionId = try object.string("destination_connection_id")
        sourceConnectionId = try object.string("source_connection_id")
        recvConnectionId = try object.string("recv_connection_id")
        sendConnectionId = try object.string("send_connection_id")
        streamId = try object.string("stream_id")
        failedConnectionId = try object.string("failed_connection_id")
        currentState = try object.string("current_state")
        previousState = try object.string("previous_state")
    }

    public init(from decoder: any Decoder) throws { try self.init(SignalingObject(from: decoder)) }
    /// Always fails: the message is only ever received.
    public func encode(to encoder: any Encoder) throws { throw SoraError.invalidSignalingMessage }
}

/// One member in the list of a notification.
public struct SignalingNotifyMetadata {
    /// Client id of the member that it is about.
    public var clientId: String?
    /// Bundle id of the member that it is about.
    public var bundleId: String?
    /// Connection id of the member that it is about.
    public var connectionId: String?
    /// Metadata of the member's authentication.
    public var authnMetadata: Any?
    /// Metadata of the member's authorization.
    public var authzMetadata: Any?
    /// The metadata that the member gave for notifications.
    public var metadata: Any?

    init(_ object: SignalingObject) throws {
        clientId = try object.string("client_id")
        bundleId = try object.string("bundle_id")
        connectionId = try object.string("connection_id")
        authnMetadata = object.any("authn_metadata")
        authzMetadata = object.any("authz_metadata")
        metadata = object.any("metadata")
    }
}
