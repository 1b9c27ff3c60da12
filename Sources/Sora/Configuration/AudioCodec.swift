/// Codec of sent audio.
public enum AudioCodec: Sendable, Codable, CustomStringConvertible {
    /// Lets the server choose; never sent.
    case `default`
    /// Opus.
    case opus
    /// G.711 mu-law.
    case pcmu

    static let names = NamedCases<AudioCodec>([(.default, "default"), (.opus, "OPUS"), (.pcmu, "PCMU")])

    public var description: String { Self.names.text(for: self) }
    public init(from decoder: any Decoder) throws { self = try Self.names.decode(from: decoder) }
    public func encode(to encoder: any Encoder) throws { try Self.names.encode(self, to: encoder) }
}
