import Glibc
import SoraWire

/// Why a socket, stream or dial failed.
package enum NetworkError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Nobody listens there (ECONNREFUSED).
    case refused(SocketAddress)
    /// No way to the network or host, or forbidden by a firewall.
    case unreachable(SocketAddress, code: Int32)
    /// The peer ended the connection without closing it properly (ECONNRESET, EPIPE), or cut a TLS
    /// stream off without close_notify.
    case reset
    /// The time for `stage` ran out. Also reported when the kernel gave up on a silent peer.
    case timedOut(stage: String)
    /// The name does not resolve. `reason` is the resolver's.
    case nameNotFound(name: String, reason: String)
    /// TLS failed; see ``TLSFailure``.
    case tls(TLSFailure)
    /// The address is in use or not ours (EADDRINUSE, EADDRNOTAVAIL, EACCES).
    case addressUnavailable(SocketAddress, code: Int32)
    /// Any other system call that failed.
    case system(call: String, code: Int32)

    package var description: String {
        switch self {
        case .refused(let address): "connection refused by \(address): is the server running on that port?"
        case .unreachable(let address, let code):
            "\(address) cannot be reached: \(errorText(code)); check network and firewall"
        case .reset: "the peer reset the connection"
        case .timedOut(let stage): "timed out: \(stage)"
        case .nameNotFound(let name, let reason): "cannot resolve \(name): \(reason); check the host name and DNS"
        case .tls(let failure): failure.description
        case .addressUnavailable(let address, let code): "cannot use local address \(address): \(errorText(code))"
        case .system(let call, let code): "\(call) failed: \(errorText(code))"
        }
    }

    /// Sorts the errno of a connection attempt or of an established connection to `address`.
    init(connection address: SocketAddress, code: Int32, call: String) {
        self =
            switch code {
            case ECONNREFUSED: .refused(address)
            case ENETUNREACH, EHOSTUNREACH, ENETDOWN, EHOSTDOWN, EACCES, EPERM, EADDRNOTAVAIL:
                .unreachable(address, code: code)
            case ECONNRESET, EPIPE, ECONNABORTED: .reset
            case ETIMEDOUT: .timedOut(stage: "no answer from \(address)")
            default: .system(call: call, code: code)
            }
    }

    /// Sorts the errno of binding to `address`.
    init(binding address: SocketAddress, code: Int32) {
        self =
            switch code {
            case EADDRINUSE, EADDRNOTAVAIL, EACCES: .addressUnavailable(address, code: code)
            default: .system(call: "bind", code: code)
            }
    }
}

/// The system's text for an errno.
func errorText(_ code: Int32) -> String {
    var buffer = [CChar](repeating: 0, count: 128)
    _ = strerror_r(code, &buffer, buffer.count - 1)
    let bytes = buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
    return bytes.isEmpty ? "error \(code)" : "\(String(decoding: bytes, as: UTF8.self)) (\(code))"
}

/// Turns the "minus errno" of CLinux into an error.
@discardableResult
func system(_ call: String, _ result: Int32) throws(NetworkError) -> Int32 {
    guard result >= 0 else { throw .system(call: call, code: -result) }
    return result
}
