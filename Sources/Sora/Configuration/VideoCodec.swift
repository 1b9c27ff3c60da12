/// Codec of sent video.
public enum VideoCodec: Sendable, Codable, CustomStringConvertible {
    /// Lets the server choose; never sent.
    case `default`
    /// VP8.
    case vp8
    /// VP9.
    case vp9
    /// H.264.
    case h264
    /// H.265. Forwarded and received; encoded only where the machine has an encoder.
    case h265
    /// AV1.
    case av1

    static let names = NamedCases<VideoCodec>([
        (.default, "default"), (.vp8, "VP8"), (.vp9, "VP9"), (.h264, "H264"), (.h265, "H265"), (.av1, "AV1"),
    ])

    public var description: String { Self.names.text(for: self) }
    public init(from decoder: any Decoder) throws { self = try Self.names.decode(from: decoder) }
    public func encode(to encoder: any Encoder) throws { try Self.names.encode(self, to: encoder) }
}
