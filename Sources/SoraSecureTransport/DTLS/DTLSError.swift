/// Why a DTLS association was refused, failed, or could not take data.
package enum DTLSError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The peer's description has no fingerprint of a hash function that we accept.
    case noUsableFingerprint([DTLSFingerprint])
    /// The limit for datagrams is not in the range that a handshake can live with.
    case invalidDatagramSize(Int, allowed: ClosedRange<Int>)
    /// The peer's certificate is not the one that its description named.
    case fingerprintMismatch(received: DTLSFingerprint)
    /// The peer offered no SRTP protection profile that we accept.
    case noCommonSRTPProfile(offered: [SRTPProfile])
    /// The peer ended the handshake or the association with a fatal alert (RFC 5246 7.2).
    case peerAlert(code: UInt8, name: String)
    /// The peer did not answer within all retransmissions.
    case timedOut
    /// The handshake failed for OpenSSL's reason.
    case handshakeFailed(reason: String)
    /// The established association failed for OpenSSL's reason.
    case connectionFailed(reason: String)
    /// Data was to be sent before the handshake ended or after the association did.
    case notConnected
    /// Data that does not fit into one record within the datagram limit.
    case messageTooLarge(size: Int, maximum: Int)
    /// OpenSSL refused an operation that cannot fail by its input.
    case cryptography(operation: String)

    package var description: String {
        switch self {
        case .noUsableFingerprint(let given):
            given.isEmpty
                ? "the remote description has no fingerprint: DTLS cannot tell its peer"
                : "no usable fingerprint among \(given.map(\.algorithm)): use sha-256"
        case .invalidDatagramSize(let size, let allowed):
            "datagram limit of \(size) bytes is outside \(allowed)"
        case .fingerprintMismatch(let received):
            "the peer's certificate (\(received)) is not the one in its description: "
                + "someone is in between, or the description is of another session"
        case .noCommonSRTPProfile(let offered):
            "the peer accepts none of the SRTP profiles \(offered)"
        case .peerAlert(let code, let name):
            "the peer ended DTLS with alert \(code) (\(name))"
        case .timedOut:
            "the peer stopped answering the DTLS handshake"
        case .handshakeFailed(let reason):
            "DTLS handshake failed: \(reason)"
        case .connectionFailed(let reason):
            "DTLS failed: \(reason)"
        case .notConnected:
            "DTLS is not connected: wait for the handshake before sending"
        case .messageTooLarge(let size, let maximum):
            "\(size) bytes do not fit into one DTLS record: send at most \(maximum)"
        case .cryptography(let operation):
            "OpenSSL failed in \(operation): is its default provider enabled and memory left?"
        }
    }
}
