import CSRTP
import SoraSecureTransport

/// libsrtp2, to compare with.
final class SRTPOracle {
    private let session: srtp_t
    /// The library wants to be initialized once for the process.
    private static let isInitialized = srtp_init() == srtp_err_status_ok

    init?(_ profile: SRTPProfile, key: [UInt8], salt: [UInt8], isSender: Bool) {
        guard Self.isInitialized else { return nil }
        var policy = srtp_policy_t()
        switch profile {
        case .aeadAES128GCM:
            srtp_crypto_policy_set_aes_gcm_128_16_auth(&policy.rtp)
            srtp_crypto_policy_set_aes_gcm_128_16_auth(&policy.rtcp)
        case .aeadAES256GCM:
            srtp_crypto_policy_set_aes_gcm_256_16_auth(&policy.rtp)
            srtp_crypto_policy_set_aes_gcm_256_16_auth(&policy.rtcp)
        case .aesCM128HMACSHA1_80:
            srtp_crypto_policy_set_rtp_default(&policy.rtp)
            srtp_crypto_policy_set_rtcp_default(&policy.rtcp)
        }
        policy.ssrc.type = isSender ? ssrc_any_outbound : ssrc_any_inbound
        policy.window_size = 1024
        var material = key + salt
        var made: srtp_t?
        let status = material.withUnsafeMutableBufferPointer { buffer in
            policy.key = buffer.baseAddress
            return srtp_create(&made, &policy)
        }
        guard status == srtp_err_status_ok, let made else { return nil }
        session = made
    }

    deinit { srtp_dealloc(session) }

    func protect(_ packet: [UInt8]) -> [UInt8]? { apply(packet, srtp_protect) }
    func unprotect(_ packet: [UInt8]) -> [UInt8]? { apply(packet, srtp_unprotect) }
    func protectRTCP(_ packet: [UInt8]) -> [UInt8]? { apply(packet, srtp_protect_rtcp) }
    func unprotectRTCP(_ packet: [UInt8]) -> [UInt8]? { apply(packet, srtp_unprotect_rtcp) }

    private typealias Operation = (
        srtp_t?, UnsafeMutableRawPointer?, UnsafeMutablePointer<Int32>?
    ) -> srtp_err_status_t

    private func apply(_ packet: [UInt8], _ operation: Operation) -> [UInt8]? {
        var bytes = packet + [UInt8](repeating: 0, count: 160)
        var length = Int32(packet.count)
        guard operation(session, &bytes, &length) == srtp_err_status_ok else { return nil }
        return Array(bytes.prefix(Int(length)))
    }
}
