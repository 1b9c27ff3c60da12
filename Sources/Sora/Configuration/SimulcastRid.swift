/// The simulcast layer to receive, in the older form of the setting.
public enum SimulcastRid: Sendable, Codable {
    /// The smallest layer.
    case r0
    /// The middle layer.
    case r1
    /// The largest layer.
    case r2

    static let names = NamedCases<SimulcastRid>([(.r0, "r0"), (.r1, "r1"), (.r2, "r2")])

    /// Always fails: the value is only ever sent.
    public init(from decoder: any Decoder) throws { throw SoraError.invalidSignalingMessage }
    public func encode(to encoder: any Encoder) throws { try Self.names.encode(self, to: encoder) }
}

/// The simulcast layer to receive first.
public enum SimulcastRequestRid: Sendable, Codable {
    /// Lets the server choose; never sent.
    case unspecified
    /// No video.
    case none
    /// The smallest layer.
    case r0
    /// The middle layer.
    case r1
    /// The largest layer.
    case r2

    static let names = NamedCases<SimulcastRequestRid>([(.none, "none"), (.r0, "r0"), (.r1, "r1"), (.r2, "r2")])

    /// Always fails: the value is only ever sent.
    public init(from decoder: any Decoder) throws { throw SoraError.invalidSignalingMessage }
    /// `.unspecified` fails with `EncodingError.invalidValue`.
    public func encode(to encoder: any Encoder) throws { try Self.names.encode(self, to: encoder) }
}
