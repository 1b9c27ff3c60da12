/// Which layer a datagram belongs to, told by its first bytes alone (RFC 7983, 7; RFC 5761, 4).
package enum DatagramKind: Sendable, Equatable {
    case stun
    case turnChannel
    case dtls
    case rtp
    case rtcp
    /// Nothing that belongs on this socket.
    case unknown

    package init(_ payload: [UInt8]) {
        guard let first = payload.first else {
            self = .unknown
            return
        }
        switch first {
        case 0...3: self = .stun
        case 20...63: self = .dtls
        case 64...79: self = .turnChannel
        case 128...191:
            guard payload.count >= 2 else {
                self = .unknown
                return
            }
            // Payload types 64 to 95 with the marker bit are RTCP packet types 192 to 223.
            self = (192...223).contains(payload[1]) ? .rtcp : .rtp
        default: self = .unknown
        }
    }
}
