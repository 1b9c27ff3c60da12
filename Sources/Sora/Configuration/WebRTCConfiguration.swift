/// Settings of the peer connection.
public struct WebRTCConfiguration: Codable {
    public var constraints = MediaConstraints()
    /// Replaced by the servers of the offer when it names any.
    public var iceServerInfos: [ICEServerInfo] = []
    /// Replaced by the policy of the offer when it names one.
    public var iceTransportPolicy = ICETransportPolicy.relay
    public var sdpSemantics = SDPSemantics.unifiedPlan
    /// Applied to the local video track when set. Not coded.
    public var degradationPreference: DegradationPreference?

    public init() {}

    private enum CodingKeys: String, CodingKey {
        case constraints, iceServerInfos, iceTransportPolicy, sdpSemantics
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        constraints = try container.decode(MediaConstraints.self, forKey: .constraints)
        iceServerInfos = try container.decode([ICEServerInfo].self, forKey: .iceServerInfos)
        iceTransportPolicy = try container.decode(ICETransportPolicy.self, forKey: .iceTransportPolicy)
        sdpSemantics = try container.decode(SDPSemantics.self, forKey: .sdpSemantics)
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(constraints, forKey: .constraints)
        try container.encode(iceServerInfos, forKey: .iceServerInfos)
        try container.encode(iceTransportPolicy, forKey: .iceTransportPolicy)
        try container.encode(sdpSemantics, forKey: .sdpSemantics)
    }
}

/// Constraints in the old key-value form. Kept for compatibility; nothing of the engine depends on them.
public struct MediaConstraints: Codable, Sendable {
    public var mandatory: [String: String] = [:]
    public var optional: [String: String] = [:]

    public init() {}
}

/// The form of session descriptions.
public enum SDPSemantics: Sendable, Codable {
    case unifiedPlan

    static let names = NamedCases<SDPSemantics>([(.unifiedPlan, "unifiedPlan")])

    public init(from decoder: any Decoder) throws { self = try Self.names.decode(from: decoder) }
    public func encode(to encoder: any Encoder) throws { try Self.names.encode(self, to: encoder) }
}

/// Which candidates ICE may use.
public enum ICETransportPolicy: Sendable, Codable, CustomStringConvertible {
    /// Only relayed ones.
    case relay
    /// All.
    case all

    static let names = NamedCases<ICETransportPolicy>([(.relay, "relay"), (.all, "all")])

    public var description: String { Self.names.text(for: self) }
    public init(from decoder: any Decoder) throws { self = try Self.names.decode(from: decoder) }
    public func encode(to encoder: any Encoder) throws { try Self.names.encode(self, to: encoder) }
}
