/// Goes back to the layers that were set on connect.
public enum ResetSpotlightRid: SendableRPCMethodProtocol {
    public typealias Params = ResetSpotlightRidParams
    public typealias Result = ResetSpotlightRidResult
    public static let name = "2025.2.0/ResetSpotlightRid"
}

/// Parameters of ``ResetSpotlightRid``.
public struct ResetSpotlightRidParams: Encodable, Sendable {
    /// Nil means all senders.
    public let sendConnectionId: String?

    public init(sendConnectionId: String? = nil) { self.sendConnectionId = sendConnectionId }

    private enum CodingKeys: String, CodingKey {
        case sendConnectionId = "send_connection_id"
    }
}

/// What ``ResetSpotlightRid`` returns.
public struct ResetSpotlightRidResult: Codable, Sendable {
    public let channelId: String
    public let recvConnectionId: String

    public init(channelId: String, recvConnectionId: String) {
        self.channelId = channelId
        self.recvConnectionId = recvConnectionId
    }

    private enum CodingKeys: String, CodingKey {
        case channelId = "channel_id"
        case recvConnectionId = "recv_connection_id"
    }
}
