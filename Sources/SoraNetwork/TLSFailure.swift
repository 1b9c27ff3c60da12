/// Why TLS failed, told apart as far as a user can act on it.
package enum TLSFailure: Error, Equatable, Sendable, CustomStringConvertible {
    /// The chain does not end in a CA that is trusted. `reason` is OpenSSL's.
    case unknownAuthority(reason: String)
    /// The certificate is for other names than the one dialled.
    case wrongName(expected: String)
    /// The certificate has expired.
    case expired
    /// The certificate is not valid yet: often the local clock is wrong.
    case notYetValid
    /// Any other fault of the certificate or chain.
    case badCertificate(reason: String)
    /// The peer refused us with an alert, for example for want of a client certificate.
    case refusedByPeer(alert: String)
    /// Not TLS at all, no common version or cipher, or a broken record.
    case protocolError(reason: String)
    /// A certificate, key or CA bundle handed to us cannot be used.
    case badConfiguration(reason: String)

    package var description: String {
        switch self {
        case .unknownAuthority(let reason):
            "TLS: the server's certificate is signed by an unknown authority (\(reason)); add its CA certificate"
        case .wrongName(let expected): "TLS: the server's certificate is not valid for \(expected)"
        case .expired: "TLS: the server's certificate has expired"
        case .notYetValid: "TLS: the server's certificate is not valid yet; check this machine's clock"
        case .badCertificate(let reason): "TLS: the server's certificate is not acceptable: \(reason)"
        case .refusedByPeer(let alert): "TLS: the peer refused the connection: \(alert)"
        case .protocolError(let reason): "TLS: protocol error: \(reason)"
        case .badConfiguration(let reason): "TLS: unusable configuration: \(reason)"
        }
    }
}
