/// A notification (signaling specification 3.8). Which members are set depends on ``eventType``;
/// unknown events have their keys in ``extra``.
package struct NotifyMessage: Sendable, Equatable {
    package static let type = "notify"

    /// Names of the known events.
    package enum Event {
        package static let connectionCreated = "connection.created"
        package static let connectionUpdated = "connection.updated"
        package static let connectionDestroyed = "connection.destroyed"
        package static let simulcastSwitched = "simulcast.switched"
        package static let spotlightFocused = "spotlight.focused"
        package static let spotlightUnfocused = "spotlight.unfocused"
        package static let spotlightChanged = "spotlight.changed"
        package static let networkStatus = "network.status"
        package static let recordingStarted = "recording.started"
        package static let recordingStopped = "recording.stopped"
    }

    package var eventType: String
    /// RFC 3339, UTC, microseconds.
    package var timestamp: String?
    package var role: ConnectionRole?
    package var sessionID: String?
    package var clientID: String?
    package var bundleID: String?
    package var connectionID: String?
    package var audio: Bool?
    package var video: Bool?
    package var minutes: Int?
    package var channelConnections: Int?
    package var channelSendrecvConnections: Int?
    package var channelSendonlyConnections: Int?
    package var channelRecvonlyConnections: Int?
    /// `udp` or `tcp`.
    package var turnTransportType: String?
    package var authnMetadata: JSONValue?
    package var authzMetadata: JSONValue?
    package var metadata: JSONValue?
    /// Only in the own `connection.created`: who is there already.
    package var data: [NotifyPeer]?
    // Layer switching.
    package var senderConnectionID: String?
    package var priority: String?
    package var trigger: String?
    package var rpcRIDs: [String]?
    package var autoRIDs: [String]?
    package var requestRID: String?
    package var currentRID: String?
    package var previousRID: String?
    // Spotlight.
    package var spotlightID: String?
    package var spotlightNumber: Int?
    package var fixed: Bool?
    /// 0...3; 0 is good.
    package var unstableLevel: Int?
    // Members of events whose names are not established.
    package var kind: String?
    package var destinationConnectionID: String?
    package var sourceConnectionID: String?
    package var recvConnectionID: String?
    package var sendConnectionID: String?
    package var streamID: String?
    package var failedConnectionID: String?
    package var currentState: String?
    package var previousState: String?
    package var extra = JSONObject()

    package init(eventType: String) { self.eventType = eventType }

    init(_ object: JSONObject) throws(MessageError) {
        var fields = FieldReader(object)
        fields.drop("type")
        eventType = try fields.require("event_type", in: Self.type)
        timestamp = fields.read("timestamp")
        role = fields.read("role")
        sessionID = fields.read("session_id")
        clientID = fields.read("client_id")
        bundleID = fields.read("bundle_id")
        connectionID = fields.read("connection_id")
        audio = fields.read("audio")
        video = fields.read("video")
        minutes = fields.read("minutes")
        channelConnections = fields.read("channel_connections")
        channelSendrecvConnections = fields.read("channel_sendrecv_connections")
        channelSendonlyConnections = fields.read("channel_sendonly_connections")
        channelRecvonlyConnections = fields.read("channel_recvonly_connections")
        turnTransportType = fields.read("turn_transport_type")
        authnMetadata = fields.read("authn_metadata")
        authzMetadata = fields.read("authz_metadata")
        metadata = fields.read("metadata")
        // Anything but an array of objects counts as absent, without spoiling the message.
        if let peers = object["data"].flatMap({ [NotifyPeer](json: $0) }) {
            data = peers
            fields.drop("data")
        }
        senderConnectionID = fields.read("sender_connection_id")
        priority = fields.read("priority")
        trigger = fields.read("trigger")
        rpcRIDs = fields.read("rpc_rids")
        autoRIDs = fields.read("auto_rids")
        requestRID = fields.read("request_rid")
        currentRID = fields.read("current_rid")
        previousRID = fields.read("previous_rid")
        spotlightID = fields.read("spotlight_id")
        spotlightNumber = fields.read("spotlight_number")
        fixed = fields.read("fixed")
        unstableLevel = fields.read("unstable_level")
        kind = fields.read("kind")
        destinationConnectionID = fields.read("destination_connection_id")
        sourceConnectionID = fields.read("source_connection_id")
        recvConnectionID = fields.read("recv_connection_id")
        sendConnectionID = fields.read("send_connection_id")
        streamID = fields.read("stream_id")
        failedConnectionID = fields.read("failed_connection_id")
        currentState = fields.read("current_state")
        previousState = fields.read("previous_state")
        try fields.check(Self.type)
        extra = fields.rest
    }

    package var json: JSONObject {
        var object: JSONObject = ["type": .string(Self.type), "event_type": .string(eventType)]
        object.set("timestamp", timestamp)
        object.set("role", role)
        object.set("session_id", sessionID)
        object.set("client_id", clientID)
        object.set("bundle_id", bundleID)
        object.set("connection_id", connectionID)
        object.set("audio", audio)
        object.set("video", video)
        object.set("minutes", minutes)
        object.set("channel_connections", channelConnections)
        object.set("channel_sendrecv_connections", channelSendrecvConnections)
        object.set("channel_sendonly_connections", channelSendonlyConnections)
        object.set("channel_recvonly_connections", channelRecvonlyConnections)
        object.set("turn_transport_type", turnTransportType)
        object.set("authn_metadata", authnMetadata)
        object.set("authz_metadata", authzMetadata)
        object.set("metadata", metadata)
        object.set("data", data)
        object.set("sender_connection_id", senderConnectionID)
        object.set("priority", priority)
        object.set("trigger", trigger)
        object.set("rpc_rids", rpcRIDs)
        object.set("auto_rids", autoRIDs)
        object.set("request_rid", requestRID)
        object.set("current_rid", currentRID)
        object.set("previous_rid", previousRID)
        object.set("spotlight_id", spotlightID)
        object.set("spotlight_number", spotlightNumber)
        object.set("fixed", fixed)
        object.set("unstable_level", unstableLevel)
        object.set("kind", kind)
        object.set("destination_connection_id", destinationConnectionID)
        object.set("source_connection_id", sourceConnectionID)
        object.set("recv_connection_id", recvConnectionID)
        object.set("send_connection_id", sendConnectionID)
        object.set("stream_id", streamID)
        object.set("failed_connection_id", failedConnectionID)
        object.set("current_state", currentState)
        object.set("previous_state", previousState)
        object.append(missingFrom: extra)
        return object
    }
}

/// A connection that was in the channel already.
package struct NotifyPeer: Sendable, Equatable, JSONConvertible {
    package var clientID: String?
    package var bundleID: String?
    package var connectionID: String?
    package var authnMetadata: JSONValue?
    package var authzMetadata: JSONValue?
    package var metadata: JSONValue?
    package var extra = JSONObject()

    package init() {}

    package init?(json: JSONValue) {
        guard let object = json.objectValue else { return nil }
        var fields = FieldReader(object)
        clientID = fields.read("client_id")
        bundleID = fields.read("bundle_id")
        connectionID = fields.read("connection_id")
        authnMetadata = fields.read("authn_metadata")
        authzMetadata = fields.read("authz_metadata")
        metadata = fields.read("metadata")
        guard fields.mistyped.isEmpty else { return nil }
        extra = fields.rest
    }

    package var json: JSONValue {
        var object = JSONObject()
        object.set("client_id", clientID)
        object.set("bundle_id", bundleID)
        object.set("connection_id", connectionID)
        object.set("authn_metadata", authnMetadata)
        object.set("authz_metadata", authzMetadata)
        object.set("metadata", metadata)
        object.append(missingFrom: extra)
        return .object(object)
    }
}
