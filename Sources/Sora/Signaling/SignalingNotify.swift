import Foundation

/// Something happened in the channel.
public struct SignalingNotify: Codable {
    public var eventType: String
    public var timestamp: String?
    public var role: SignalingRole?
    public var sessionId: String?
    public var clientId: String?
    public var bundleId: String?
    public var connectionId: String?
    public var spotlightNumber: Int?
    public var audioEnabled: Bool?
    public var videoEnabled: Bool?
    /// As `JSONSerialization` made it, like the other two.
    public var metadata: Any?
    public var authnMetadata: Any?
    public var authzMetadata: Any?
    /// The members that were there before; nil if the message has no list of objects.
    public var data: [SignalingNotifyMetadata]?
    /// Minutes since the connection began.
    public var connectionTime: Int?
    public var connectionCount: Int?
    public var channelSendonlyConnections: Int?
    public var channelRecvonlyConnections: Int?
    public var channelSendrecvConnections: Int?
    public var spotlightId: String?
    public var isFixed: Bool?
    public var unstableLevel: Int?
    public var turnTransportType: String?
    public var kind: String?
    public var destinationConnectionId: String?
    public var sourceConnectionId: String?
    public var recvConnectionId: String?
    public var sendConnectionId: String?
    public var streamId: String?
    public var failedConnectionId: String?
    public var currentState: String?
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
    public var clientId: String?
    public var bundleId: String?
    public var connectionId: String?
    public var authnMetadata: Any?
    public var authzMetadata: Any?
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
