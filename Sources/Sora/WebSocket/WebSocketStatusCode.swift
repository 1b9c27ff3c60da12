import Foundation

/// Status code of a WebSocket close frame (RFC 6455, 7.4).
public enum WebSocketStatusCode: Sendable {
    case normal
    case goingAway
    case protocolError
    case unhandledType
    case noStatusReceived
    case abnormal
    case invalidUTF8
    case policyViolated
    case messageTooBig
    case missingExtension
    case internalError
    case serviceRestart
    case tryAgainLater
    case tlsHandshake
    /// Any other number, for instance 4490.
    case other(Int)

    private static let named: [(WebSocketStatusCode, Int)] = [
        (.normal, 1000), (.goingAway, 1001), (.protocolError, 1002), (.unhandledType, 1003),
        (.noStatusReceived, 1005), (.abnormal, 1006), (.invalidUTF8, 1007), (.policyViolated, 1008),
        (.messageTooBig, 1009), (.missingExtension, 1010), (.internalError, 1011), (.serviceRestart, 1012),
        (.tryAgainLater, 1013), (.tlsHandshake, 1015),
    ]

    /// The named case for `rawValue`, or `.other`.
    public init(rawValue: Int) {
        self = Self.named.first { $0.1 == rawValue }?.0 ?? .other(rawValue)
    }

    /// The number on the wire.
    public func intValue() -> Int {
        switch self {
        case .normal: 1000
        case .goingAway: 1001
        case .protocolError: 1002
        case .unhandledType: 1003
        case .noStatusReceived: 1005
        case .abnormal: 1006
        case .invalidUTF8: 1007
        case .policyViolated: 1008
        case .messageTooBig: 1009
        case .missingExtension: 1010
        case .internalError: 1011
        case .serviceRestart: 1012
        case .tryAgainLater: 1013
        case .tlsHandshake: 1015
        case .other(let value): value
        }
    }
}
