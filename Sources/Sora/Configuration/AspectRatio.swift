import Foundation

/// A ratio of width to height.
public enum AspectRatio: Sendable, Codable {
    /// 4:3
    case standard
    /// 16:9
    case wide

    static let names = NamedCases<AspectRatio>([(.standard, "standard"), (.wide, "wide")])

    public init(from decoder: any Decoder) throws { self = try Self.names.decode(from: decoder) }
    public func encode(to encoder: any Encoder) throws { try Self.names.encode(self, to: encoder) }

    /// The height that goes with `width`.
    public func height(forWidth width: CGFloat) -> CGFloat {
        switch self {
        case .standard: width / 4 * 3
        case .wide: width / 16 * 9
        }
    }

    /// The size with the given width.
    public func size(forWidth width: CGFloat) -> CGSize {
        CGSize(width: width, height: height(forWidth: width))
    }

    /// `size` with its height replaced by the one that fits its width.
    public func scale(size: CGSize) -> CGSize { self.size(forWidth: size.width) }
}
