/// Asks for other layers of a sender in and out of focus.
public enum RequestSpotlightRid: SendableRPCMethodProtocol {
    public typealias Params = RequestSpotlightRidParams
    public typealias Result = RequestSpotlightRidResult
    public static let name = "2025.2.0/RequestSpotlightRid"
}

/// Parameters of ``RequestSpotlightRid``.
public struct RequestSpotlightRidParams: Codable, Sendable {
    /// Nil means all senders.
    public let sendConnectionId: String?
    /// The wanted layer of members in focus.
    public let spotlightFocusRid: Rid
    /// The wanted layer of members out of focus.
    public let spotlightUnfocusRid: Rid

    public init(sendConnectionId: String? = nil, spotlightFocusRid: Rid, spotlightUnfocusRid: Rid) {
        self.sendConnectionId = sendConnectionId
        self.spotlightFocusRid = spotlightFocusRid
        self.spotlightUnfocusRid = spotlightUnfocusRid
    }

    private enum CodingKeys: String, CodingKey {
        case sendConnectionId = "send_connection_id"
        case spotlightFocusRid = "spotlight_focus_rid"
        case spotlightUnfocusRid = "spotlight_unfocus_rid"
    }
}

/// What ``RequestSpotlightRid`` returns: the layers that are sent from now on.
public struct RequestSpotlightRidResult: Codable, Sendable {
    public let channelId: String
    public let recvConnectionId: String
    public let spotlightFocusRid: Rid
    public let spotlightUnfocusRid: Rid

    public init(channelId: String, recvConnectionId: String, spotlightFocusRid: Rid, spotlightUnfocusRid: Rid) {
        self.channelId = channelId
        self.recvConnectionId = recvConnectionId
        self.spotlightFocusRid = spotlightFocusRid
        self.spotlightUnfocusRid = spotlightUnfocusRid
    }

    private enum CodingKeys: String, CodingKey {
        case channelId = "channel_id"
        case recvConnectionId = "recv_connection_id"
        case spotlightFocusRid = "spotlight_focus_rid"
        case spotlightUnfocusRid = "spotlight_unfocus_rid"
    }
}
