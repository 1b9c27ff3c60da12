import SoraWire

/// What a STUN message is for (RFC 8489, 5).
package enum STUNClass: UInt8, Sendable, Equatable {
    case request = 0
    case indication = 1
    case success = 2
    case error = 3
}

/// STUN and TURN methods (RFC 8489, 18.2; RFC 8656, 17).
package struct STUNMethod: Hashable, Sendable, CustomStringConvertible {
    package var rawValue: UInt16
    /// Keeps the low twelve bits.
    package init(_ rawValue: UInt16) { self.rawValue = rawValue & 0xFFF }

    package static let binding = STUNMethod(1)
    package static let allocate = STUNMethod(3)
    package static let refresh = STUNMethod(4)
    package static let send = STUNMethod(6)
    package static let data = STUNMethod(7)
    package static let createPermission = STUNMethod(8)
    package static let channelBind = STUNMethod(9)

    package var description: String {
        switch self {
        case .binding: "Binding"
        case .allocate: "Allocate"
        case .refresh: "Refresh"
        case .send: "Send"
        case .data: "Data"
        case .createPermission: "CreatePermission"
        case .channelBind: "ChannelBind"
        default: "method \(rawValue)"
        }
    }
}

/// The 96 bits that tie an answer to its request.
package struct STUNTransactionID: Hashable, Sendable, CustomStringConvertible {
    package var high: UInt32
    package var low: UInt64

    package init(high: UInt32, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// A fresh one.
    package init(random: inout RandomSource) {
        high = UInt32(truncatingIfNeeded: random.next())
        low = random.next()
    }

    package var description: String { "\(String(high, radix: 16))-\(String(low, radix: 16))" }
}

/// An error answer's code and phrase (RFC 8489, 14.8; RFC 8656, 19; RFC 8445, 16.1).
package struct STUNErrorCode: Equatable, Sendable, CustomStringConvertible {
    /// 300...699.
    package var code: Int
    package var reason: String

    package init(_ code: Int, _ reason: String) {
        self.code = code
        self.reason = reason
    }

    package static let badRequest = STUNErrorCode(400, "Bad Request")
    package static let unknownAttribute = STUNErrorCode(420, "Unknown Attribute")
    package static let roleConflict = STUNErrorCode(487, "Role Conflict")

    package var description: String { reason.isEmpty ? "\(code)" : "\(code) \(reason)" }
}

/// How a long-term key is made from user name, realm and password (RFC 8489, 14.11).
package enum STUNPasswordAlgorithm: UInt16, Sendable, Equatable {
    case md5 = 1
    case sha256 = 2
}

/// Address families of TURN's attributes (RFC 8656, 18.8).
package enum STUNAddressFamily: UInt8, Sendable, Equatable {
    case ipv4 = 1
    case ipv6 = 2
}
