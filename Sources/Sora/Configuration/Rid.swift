/// A simulcast layer as RPC names it.
public enum Rid: Equatable, Sendable, Codable {
    /// No video.
    case none
    /// The smallest layer.
    case r0
    /// The middle layer.
    case r1
    /// The largest layer.
    case r2

    static let names = NamedCases<Rid>([(.none, "none"), (.r0, "r0"), (.r1, "r1"), (.r2, "r2")])

    /// An unknown text is ``SoraError/invalidSignalingMessage``.
    public init(from decoder: any Decoder) throws {
        let text = try decoder.singleValueContainer().decode(String.self)
        guard let value = Self.names.value(for: text) else { throw SoraError.invalidSignalingMessage }
        self = value
    }
    public func encode(to encoder: any Encoder) throws { try Self.names.encode(self, to: encoder) }
}
