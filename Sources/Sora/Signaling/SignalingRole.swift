/// The role of a connection in signaling messages.
public enum SignalingRole: String, Sendable, Codable {
    case sendonly
    case recvonly
    case sendrecv

    init(_ role: Role) {
        switch role {
        case .sendonly: self = .sendonly
        case .recvonly: self = .recvonly
        case .sendrecv: self = .sendrecv
        }
    }
}
