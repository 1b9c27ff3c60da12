import COpenSSL

@testable import SoraSecureTransport

/// A peer that does what we never would: OpenSSL alone, configured by the test.
final class RawDTLSPeer {
    private let ssl: OpaquePointer
    private let bio = DatagramBIO(maximumDatagramSize: 1200)
    private(set) var isConnected = false
    /// OpenSSL's reason after a failure.
    private(set) var failure: String?

    struct Options {
        var isClient = true
        var showsCertificate = true
        /// Names of SRTP profiles; empty for no extension.
        var srtpProfiles = "SRTP_AEAD_AES_128_GCM"
        var ciphers = "ALL:@SECLEVEL=0"
        var version = DTLS1_2_VERSION
        var maximumVersion = DTLS1_2_VERSION
    }

    /// The key and certificate of the peer are its own; what we expect of it is `fingerprint`.
    let fingerprint: DTLSFingerprint

    init?(_ options: Options) {
        guard let context = SSL_CTX_new(DTLS_method()), let key = sora_EVP_EC_gen("P-256"), let certificate = X509_new()
        else { return nil }
        defer {
            SSL_CTX_free(context)
            EVP_PKEY_free(key)
            X509_free(certificate)
        }
        X509_set_version(certificate, 2)
        X509_gmtime_adj(X509_getm_notBefore(certificate), -100)
        X509_gmtime_adj(X509_getm_notAfter(certificate), 100_000)
        X509_set_pubkey(certificate, key)
        guard X509_sign(certificate, key, EVP_sha256()) > 0, let der = DTLSCertificate.der(of: certificate),
            SSL_CTX_set_cipher_list(context, options.ciphers) == 1,
            sora_SSL_CTX_set_min_proto_version(context, options.version) == 1,
            sora_SSL_CTX_set_max_proto_version(context, options.maximumVersion) == 1
        else { return nil }
        fingerprint = DTLSFingerprint(algorithm: "sha-256", bytes: [UInt8](sha256: der))
        SSL_CTX_set_options(context, sora_SSL_OP_NO_QUERY_MTU)
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, { _, _ in 1 })
        if options.showsCertificate {
            SSL_CTX_use_certificate(context, certificate)
            SSL_CTX_use_PrivateKey(context, key)
        }
        guard let made = SSL_new(context), let channel = bio.makeBIO() else { return nil }
        ssl = made
        SSL_set_bio(ssl, channel, channel)
        sora_DTLS_set_link_mtu(ssl, 1200)
        if !options.srtpProfiles.isEmpty, SSL_set_tlsext_use_srtp(ssl, options.srtpProfiles) != 0 { return nil }
        if options.isClient { SSL_set_connect_state(ssl) } else { SSL_set_accept_state(ssl) }
    }

    deinit { SSL_free(ssl) }

    /// Goes on with the handshake, after `datagram` if there is one, and gives what is to be sent.
    func handle(_ datagram: [UInt8]?) -> [[UInt8]] {
        bio.inbound = datagram
        ERR_clear_error()
        if !isConnected {
            let status = SSL_do_handshake(ssl)
            if status == 1 {
                isConnected = true
            } else if SSL_get_error(ssl, status) == SSL_ERROR_SSL {
                failure = ERR_reason_error_string(ERR_peek_error()).map { String(cString: $0) } ?? "?"
            }
        } else {
            var buffer = [UInt8](repeating: 0, count: 2000)
            SSL_read(ssl, &buffer, 2000)
        }
        return flush()
    }

    /// Asks for a renegotiation, as DTLS 1.2 allows.
    func renegotiate() -> [[UInt8]] {
        SSL_renegotiate(ssl)
        SSL_do_handshake(ssl)
        return flush()
    }

    func send(_ bytes: [UInt8]) -> [[UInt8]] {
        SSL_write(ssl, bytes, Int32(bytes.count))
        return flush()
    }

    private func flush() -> [[UInt8]] {
        defer { bio.outbound = [] }
        return bio.outbound
    }
}

extension [UInt8] {
    fileprivate init(sha256 bytes: [UInt8]) {
        self.init(unsafeUninitializedCapacity: 32) { buffer, count in
            EVP_Digest(bytes, bytes.count, buffer.baseAddress, nil, EVP_sha256(), nil)
            count = 32
        }
    }
}
