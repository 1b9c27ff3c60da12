import Foundation

// The messages with one or two members. Each encodes without its `type`, which ``Signaling`` writes.

/// The client's answer to an offer.
public struct SignalingAnswer: Codable, Sendable {
    /// The session description.
    public let sdp: String

    init(sdp: String) { self.sdp = sdp }
    /// Always fails: the message is only ever sent.
    public init(from decoder: any Decoder) throws { throw SoraError.invalidSignalingMessage }
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: SignalingKey.self)
        try container.encode(sdp, forKey: "sdp")
    }
}

/// An obsolete form of renegotiation, in both directions.
public struct SignalingUpdate: Codable, Sendable {
    /// The session description.
    public let sdp: String

    init(sdp: String) { self.sdp = sdp }
}

/// The server's wish to renegotiate.
public struct SignalingReOffer: Codable, Sendable {
    /// The session description.
    public let sdp: String

    init(sdp: String) { self.sdp = sdp }
}

/// The client's answer to a re-offer.
public struct SignalingReAnswer: Codable, Sendable {
    /// The session description.
    public let sdp: String

    init(sdp: String) { self.sdp = sdp }
}

/// A local ICE candidate.
public struct SignalingCandidate: Codable {
    /// The candidate.
    public let candidate: ICECandidate

    init(candidate: ICECandidate) { self.candidate = candidate }
    /// Always fails: the message is only ever sent.
    public init(from decoder: any Decoder) throws { throw SoraError.invalidSignalingMessage }
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: SignalingKey.self)
        try container.encode(candidate, forKey: "candidate")
    }
}

/// The server's sign of life.
public struct SignalingPing: Codable, Sendable {
    /// True if the pong shall carry statistics.
    public var statisticsEnabled: Bool?

    init(statisticsEnabled: Bool?) { self.statisticsEnabled = statisticsEnabled }

    private enum CodingKeys: String, CodingKey {
        case statisticsEnabled = "stats"
    }
}

/// The client's answer to a ping.
public struct SignalingPong: Codable, Sendable {
    init() {}
    /// Always fails: the message is only ever sent.
    public init(from decoder: any Decoder) throws { throw SoraError.invalidSignalingMessage }
    public func encode(to encoder: any Encoder) throws {
        _ = encoder.container(keyedBy: SignalingKey.self)
    }
}

/// The client's farewell.
public struct SignalingDisconnect: Codable, Sendable {
    /// Why, for instance `NO-ERROR`.
    public var reason: String?

    init(reason: String?) { self.reason = reason }
    /// Always fails: the message is only ever sent.
    public init(from decoder: any Decoder) throws { throw SoraError.invalidSignalingMessage }
    /// `reason` is written as null when it is nil.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: SignalingKey.self)
        try container.encode(reason, forKey: "reason")
    }
}

/// Data that the application's server pushed.
public struct SignalingPush: Codable {
    /// As `JSONSerialization` made it.
    public var data: Any?

    init(data: Any?) { self.data = data }
    public init(from decoder: any Decoder) throws { data = try SignalingObject(from: decoder).any("data") }
    /// Always fails: the message is only ever received.
    public func encode(to encoder: any Encoder) throws { throw SoraError.invalidSignalingMessage }
}

/// Signaling moved to data channels.
public struct SignalingSwitched: Decodable, Sendable {
    /// Whether the connection lives on without its WebSocket.
    public var ignoreDisconnectWebSocket: Bool?

    init(ignoreDisconnectWebSocket: Bool?) { self.ignoreDisconnectWebSocket = ignoreDisconnectWebSocket }

    private enum CodingKeys: String, CodingKey {
        case ignoreDisconnectWebSocket = "ignore_disconnect_websocket"
    }
}

/// The client shall connect to another server.
public struct SignalingRedirect: Decodable, Sendable {
    /// The signaling URL to go to.
    public var location: String

    init(location: String) { self.location = location }
}

/// The server is about to close the data channels.
public struct SignalingClose: Decodable, Sendable {
    /// As in a WebSocket's close frame.
    public var code: Int
    /// Why.
    public var reason: String

    init(code: Int, reason: String) {
        self.code = code
        self.reason = reason
    }

    init(_ object: SignalingObject) throws {
        code = try object.required(object.int("code"))
        reason = try object.required(object.string("reason"))
    }

    public init(from decoder: any Decoder) throws { try self.init(SignalingObject(from: decoder)) }
}
