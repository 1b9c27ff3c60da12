/// Why a packet was not protected or not accepted. After an error the packet's bytes are of no use:
/// drop it. Nothing but the failure may be counted from a packet that was not accepted.
package enum SRTPError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Shorter than its own header, extension, tag and index ask for.
    case truncated(length: Int, minimum: Int)
    /// The two top bits of the first byte are not version 2.
    case unsupportedVersion(UInt8)
    /// The tag does not belong to the bytes: forged, damaged, or made with another key.
    case authenticationFailed(ssrc: UInt32)
    /// A packet with this index was already accepted (or, for a sender, already protected: a
    /// second packet under one index would give away the key stream).
    case replayed(ssrc: UInt32, index: UInt64)
    /// Older than the replay window reaches back.
    case tooOld(ssrc: UInt32, index: UInt64)
    /// SRTCP without encryption (E flag zero), which WebRTC forbids (RFC 8827 6.5).
    case unencryptedRTCP(ssrc: UInt32)
    /// All indices of a stream are used up (2^48 RTP or 2^31 RTCP packets): new keys are needed.
    case keyExhausted(ssrc: UInt32)
    /// A sender used more SSRCs under one key than are kept. Their counters must not be forgotten,
    /// so a further SSRC is refused.
    case tooManyStreams(limit: Int)
    /// Master key or salt do not have the profile's lengths.
    case invalidKeyLength(key: Int, salt: Int)
    /// OpenSSL refused an operation that cannot fail by its input.
    case cryptography(operation: String)

    package var description: String {
        switch self {
        case .truncated(let length, let minimum):
            "packet of \(length) bytes is cut short: it needs at least \(minimum)"
        case .unsupportedVersion(let version):
            "packet has RTP version \(version), not 2"
        case .authenticationFailed(let ssrc):
            "packet of SSRC \(ssrc) fails authentication: damaged, forged, or keys differ"
        case .replayed(let ssrc, let index):
            "packet \(index) of SSRC \(ssrc) was seen before"
        case .tooOld(let ssrc, let index):
            "packet \(index) of SSRC \(ssrc) is older than the replay window"
        case .unencryptedRTCP(let ssrc):
            "RTCP packet of SSRC \(ssrc) is not encrypted"
        case .keyExhausted(let ssrc):
            "SSRC \(ssrc) has used all packet indices of its key: start a new session"
        case .tooManyStreams(let limit):
            "more than \(limit) SSRCs under one key: start a new session"
        case .invalidKeyLength(let key, let salt):
            "master key of \(key) and salt of \(salt) bytes do not fit the SRTP profile"
        case .cryptography(let operation):
            "OpenSSL failed in \(operation): is its default provider enabled and memory left?"
        }
    }
}
