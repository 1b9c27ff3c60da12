/// Asks for another simulcast layer of one sender or of all.
public enum RequestSimulcastRid: SendableRPCMethodProtocol {
    public typealias Params = RequestSimulcastRidParams
    public typealias Result = RequestSimulcastRidResult
    public static let name = "2025.2.0/RequestSimulcastRid"
}

/// Parameters of ``RequestSimulcastRid``.
public struct RequestSimulcastRidParams: Codable, Sendable {
    /// The wanted layer.
    public let rid: Rid
    /// Nil means all senders.
    public let senderConnectionId: String?

    public init(rid: Rid, senderConnectionId: String? = nil) {
        self.rid = rid
        self.senderConnectionId = senderConnectionId
    }

    private enum CodingKeys: String, CodingKey {
        case rid
        case senderConnectionId = "sender_connection_id"
    }
}

/// What ``RequestSimulcastRid`` returns: the layer that is sent from now on.
public struct RequestSimulcastRidResult: Codable, Sendable {
    public let channelId: String
    public let receiverConnectionId: String
    public let rid: Rid
    public let senderConnectionId: String?

    public init(channelId: String, receiverConnectionId: String, rid: Rid, senderConnectionId: String? = nil) {
        self.channelId = channelId
        self.receiverConnectionId = receiverConnectionId
        self.rid = rid
        self.senderConnectionId = senderConnectionId
    }

    private enum CodingKeys: String, CodingKey {
        case channelId = "channel_id"
        case receiverConnectionId = "receiver_connection_id"
        case rid
        case senderConnectionId = "sender_connection_id"
    }
}
