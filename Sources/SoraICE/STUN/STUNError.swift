import SoraWire

/// Why bytes are not a STUN message, or not one that may be used.
package enum STUNError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Fewer than 20 bytes, leading bits set, or no magic cookie: something else arrived.
    case notSTUN
    /// The header's length is not a multiple of four, or not the rest of the packet.
    case lengthMismatch(header: Int, actual: Int)
    /// The attribute reaches beyond the message.
    case attributeOverrun(type: UInt16, length: Int, available: Int)
    /// The attribute's value does not fit its type.
    case malformedAttribute(type: UInt16, length: Int)
    /// FINGERPRINT is wrong.
    case fingerprintMismatch
    /// Attributes stand behind FINGERPRINT.
    case fingerprintNotLast
    /// More attributes than any real message has.
    case tooManyAttributes(limit: Int)

    package var description: String {
        switch self {
        case .notSTUN: "not a STUN message"
        case .lengthMismatch(let header, let actual):
            "STUN length field says \(header), the message has \(actual) bytes behind its header"
        case .attributeOverrun(let type, let length, let available):
            "STUN attribute 0x\(String(type, radix: 16)) claims \(length) bytes, \(available) are there"
        case .malformedAttribute(let type, let length):
            "STUN attribute 0x\(String(type, radix: 16)) of \(length) bytes is malformed"
        case .fingerprintMismatch: "STUN FINGERPRINT does not match the message"
        case .fingerprintNotLast: "STUN FINGERPRINT is not the last attribute"
        case .tooManyAttributes(let limit): "STUN message has more than \(limit) attributes"
        }
    }
}
