/// What a connection does with media.
public enum Role: Sendable, Codable, CustomStringConvertible {
    /// Sends and does not receive.
    case sendonly
    /// Receives and does not send.
    case recvonly
    /// Sends and receives.
    case sendrecv

    static let names = NamedCases<Role>([(.sendonly, "sendonly"), (.recvonly, "recvonly"), (.sendrecv, "sendrecv")])

    public var description: String { Self.names.text(for: self) }
    public init(from decoder: any Decoder) throws { self = try Self.names.decode(from: decoder) }
    public func encode(to encoder: any Encoder) throws { try Self.names.encode(self, to: encoder) }

    /// True if the local side sends media.
    var isSender: Bool { self != .recvonly }
    /// True if the local side receives media.
    var isReceiver: Bool { self != .sendonly }
}
