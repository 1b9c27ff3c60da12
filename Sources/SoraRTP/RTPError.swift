import SoraWire

/// Why an RTP or RTCP packet, or a codec payload in it, was refused. The packet is dropped; the stream lives on.
package enum RTPError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The packet ends inside `field`.
    case truncated(field: String, needed: Int, available: Int)
    /// RFC 3550 knows only version 2.
    case unsupportedVersion(UInt8)
    /// The padding count is zero or larger than what it may cover, or padding stands where it may not.
    case invalidPadding(count: Int, available: Int)
    /// A header extension element reaches beyond the extension block.
    case extensionOverrun(id: UInt8, length: Int, available: Int)
    /// An RTCP packet of this packet type is malformed.
    case malformedRTCP(packetType: UInt8, reason: WireError)
    /// A codec payload breaks its payload format.
    case malformedPayload(format: String, reason: String)
    /// A legal payload kind that this implementation does not carry; drop the packet.
    case unsupportedPayload(format: String, kind: Int)

    package var description: String {
        switch self {
        case .truncated(let field, let needed, let available):
            "RTP packet ends inside its \(field): \(needed) bytes needed, \(available) there; drop it"
        case .unsupportedVersion(let version):
            "RTP version \(version) instead of 2: not RTP, or not decrypted; drop it"
        case .invalidPadding(let count, let available):
            "padding count \(count) where 1...\(available) is possible; drop the packet"
        case .extensionOverrun(let id, let length, let available):
            "header extension \(id) of \(length) bytes with \(available) left in its block; drop the packet"
        case .malformedRTCP(let type, let reason):
            "malformed RTCP packet of type \(type): \(reason); drop the compound"
        case .malformedPayload(let format, let reason):
            "malformed \(format) payload: \(reason); drop the packet"
        case .unsupportedPayload(let format, let kind):
            "\(format) payload kind \(kind) is not supported; drop the packet"
        }
    }
}
