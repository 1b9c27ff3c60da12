/// The simulcast layer of a member in or out of focus.
public enum SpotlightRid: Sendable, Codable {
    /// Lets the server choose; left out of `connect`.
    case unspecified
    /// No video.
    case none
    /// The smallest layer.
    case r0
    /// The middle layer.
    case r1
    /// The largest layer.
    case r2

    static let names = NamedCases<SpotlightRid>([
        (.unspecified, "unspecified"), (.none, "none"), (.r0, "r0"), (.r1, "r1"), (.r2, "r2"),
    ])

    /// Always fails: the value is only ever sent.
    public init(from decoder: any Decoder) throws { throw SoraError.invalidSignalingMessage }
    public func encode(to encoder: any Encoder) throws { try Self.names.encode(self, to: encoder) }
}
