import SoraWire

// Words of the signaling protocol.

/// What a connection does with media.
package enum ConnectionRole: String, Sendable, Equatable, CaseIterable, JSONConvertible {
    case sendrecv, sendonly, recvonly
    package var sends: Bool { self != .recvonly }
    package var receives: Bool { self != .sendonly }
}

/// A simulcast layer, or none.
package enum LayerRID: String, Sendable, Equatable, CaseIterable, JSONConvertible {
    case none, r0, r1, r2
}

/// Which way messages go on a data channel, seen from the client.
package enum DataChannelDirection: String, Sendable, Equatable, JSONConvertible {
    case sendonly, recvonly, sendrecv
    package var sends: Bool { self != .recvonly }
    package var receives: Bool { self != .sendonly }
}

/// Labels of the channels that carry signaling.
package enum SystemLabel {
    package static let signaling = "signaling"
    package static let notify = "notify"
    package static let push = "push"
    package static let stats = "stats"
    package static let rpc = "rpc"
    package static let all = [signaling, notify, push, stats, rpc]

    /// Labels of applications begin with `#`; all others belong to Sora.
    package static func isApplication(_ label: String) -> Bool { label.utf8.first == UInt8(ascii: "#") }
}

/// Close codes of the signaling WebSocket and of the `close` message.
package enum SignalingCloseCode {
    package static let normal: UInt16 = 1000
    /// Everything that is the client's or the server's fault.
    package static let signalingError: UInt16 = 4490
}

/// Reasons beside close codes, and of the client's `disconnect` message.
package enum SignalingReason {
    package static let typeDisconnect = "TYPE-DISCONNECT"
    package static let disconnectedAPI = "DISCONNECTED-API"
    package static let lifetimeExpired = "LIFETIME-EXPIRED"
    package static let timeout = "TIMEOUT"
    package static let internalError = "INTERNAL-ERROR"
    package static let noError = "NO-ERROR"
    package static let webSocketClosed = "WEBSOCKET-ONCLOSE"
    package static let webSocketError = "WEBSOCKET-ONERROR"
}

/// Connection and session ids: a random UUID (version 4) in Base32 after Crockford, 26 characters of
/// upper-case letters and digits without I, L, O and U.
package enum SignalingID {
    /// Characters of an id, which is also the length of the sender header of messages.
    package static let length = 26
    private static let alphabet = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ".utf8)

    package static func generate(using random: inout RandomSource) -> String {
        let high = random.next() & ~0xF000 | 0x4000
        let low = random.next() & ~(0b11 << 62) | 0b10 << 62
        var characters = [UInt8](repeating: 0, count: length)
        var (upper, lower) = (high, low)
        for index in characters.indices.reversed() {
            characters[index] = alphabet[Int(lower & 31)]
            lower = lower >> 5 | upper << 59
            upper >>= 5
        }
        return String(decoding: characters, as: UTF8.self)
    }

    /// Whether `text` has the form of an id.
    package static func isValid(_ text: String) -> Bool {
        text.utf8.count == length && text.utf8.allSatisfy { alphabet.contains($0) }
    }
}
