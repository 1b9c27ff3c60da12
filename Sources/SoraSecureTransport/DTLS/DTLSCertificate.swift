import COpenSSL
import SoraCrypto

/// A certificate with its private key, and all that its DTLS associations share.
///
/// Immutable, so any number of endpoints on any threads may use one at a time. In WebRTC the
/// certificate names nobody: its fingerprint in the signed-for description does.
package final class DTLSCertificate: Sendable {
    package enum KeyType: Sendable {
        /// What RFC 8827 6.5 requires of everyone; made in well under a millisecond.
        case ecdsaP256
        /// For peers without elliptic curves; made in tens to hundreds of milliseconds.
        case rsa(bits: UInt32)
    }

    /// The SHA-256 fingerprint for our description.
    package let fingerprint: DTLSFingerprint
    /// The certificate in DER form.
    package let der: [UInt8]
    private let context: SharedContext

    /// Makes a new key and a certificate signed with it, valid from a day ago for a year.
    package static func selfSigned() throws(DTLSError) -> DTLSCertificate {
        try selfSigned(.ecdsaP256)
    }

    package static func selfSigned(_ keyType: KeyType) throws(DTLSError) -> DTLSCertificate {
        let key: OpaquePointer? =
            switch keyType {
            case .ecdsaP256: sora_EVP_EC_gen("P-256")
            case .rsa(let bits): sora_EVP_RSA_gen(bits)
            }
        guard let key else { throw .cryptography(operation: "making a key") }
        defer { EVP_PKEY_free(key) }
        guard let certificate = X509_new() else { throw .cryptography(operation: "making a certificate") }
        defer { X509_free(certificate) }
        guard fill(certificate, key: key) else { throw .cryptography(operation: "signing a certificate") }
        return try DTLSCertificate(certificate: certificate, key: key, chain: [])
    }

    /// Takes an existing certificate (`X509`), its key (`EVP_PKEY`), and the certificates above it;
    /// the caller keeps its own references.
    init(certificate: OpaquePointer, key: OpaquePointer, chain: [OpaquePointer]) throws(DTLSError) {
        guard let encoded = Self.der(of: certificate) else {
            throw .cryptography(operation: "encoding a certificate")
        }
        der = encoded
        fingerprint = DTLSFingerprint(algorithm: "sha-256", bytes: hash(.sha256, encoded))
        context = SharedContext(try makeSharedContext(certificate: certificate, key: key, chain: chain))
    }

    /// The fingerprint by another hash function.
    package func fingerprint(_ algorithm: HashAlgorithm) -> DTLSFingerprint {
        let name =
            switch algorithm {
            case .md5: "md5"
            case .sha1: "sha-1"
            case .sha256: "sha-256"
            case .sha384: "sha-384"
            case .sha512: "sha-512"
            }
        return DTLSFingerprint(algorithm: name, bytes: hash(algorithm, der))
    }

    /// A new `SSL` of this certificate, owned by the caller.
    func makeConnection() -> OpaquePointer? { SSL_new(context.pointer) }

    static func der(of certificate: OpaquePointer) -> [UInt8]? {
        var encoded: UnsafeMutablePointer<UInt8>?
        let length = i2d_X509(certificate, &encoded)
        guard length > 0, let encoded else { return nil }
        defer { CRYPTO_free(encoded, nil, 0) }
        return Array(UnsafeBufferPointer(start: encoded, count: Int(length)))
    }

    private static func fill(_ certificate: OpaquePointer, key: OpaquePointer) -> Bool {
        let day = 24 * 60 * 60
        var serial: UInt64 = 0
        guard withUnsafeMutableBytes(of: &serial, { RAND_bytes($0.baseAddress, 8) }) == 1,
            X509_set_version(certificate, 2) == 1,  // 2 stands for version 3
            ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial >> 1 | 1) == 1,
            X509_gmtime_adj(X509_getm_notBefore(certificate), -day) != nil,
            X509_gmtime_adj(X509_getm_notAfter(certificate), 365 * day) != nil,
            X509_set_pubkey(certificate, key) == 1,
            let name = X509_get_subject_name(certificate),
            X509_NAME_add_entry_by_txt(name, "CN", V_ASN1_UTF8STRING, "WebRTC", -1, -1, 0) == 1,
            X509_set_issuer_name(certificate, name) == 1,
            X509_sign(certificate, key, EVP_sha256()) > 0
        else { return false }
        return true
    }
}

/// A reference to an `SSL_CTX`. `@unchecked`: it is configured before this is made and only read
/// afterwards, by `SSL_new`, which OpenSSL allows from many threads; reference counts are atomic.
private final class SharedContext: @unchecked Sendable {
    let pointer: OpaquePointer
    init(_ pointer: OpaquePointer) { self.pointer = pointer }
    deinit { SSL_CTX_free(pointer) }
}

/// An `SSL_CTX` for both roles with what WebRTC asks of DTLS (RFC 8827 6.5).
private func makeSharedContext(
    certificate: OpaquePointer, key: OpaquePointer, chain: [OpaquePointer]
) throws(DTLSError) -> OpaquePointer {
    guard let context = SSL_CTX_new(DTLS_method()) else { throw .cryptography(operation: "making a DTLS context") }
    let options =
        sora_SSL_OP_NO_RENEGOTIATION | sora_SSL_OP_NO_TICKET | sora_SSL_OP_NO_COMPRESSION
        | sora_SSL_OP_CIPHER_SERVER_PREFERENCE | sora_SSL_OP_NO_QUERY_MTU
    SSL_CTX_set_options(context, options)
    _ = sora_SSL_CTX_set_session_cache_mode(context, Int(SSL_SESS_CACHE_OFF))
    SSL_CTX_set_quiet_shutdown(context, 0)
    // Chains are bounded: 32 KiB hold four RSA-4096 certificates with room to spare.
    sora_SSL_CTX_set_max_cert_list(context, 32 * 1024)
    let ciphers = [
        "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305",
        "ECDHE-RSA-CHACHA20-POLY1305", "ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384",
    ].joined(separator: ":")
    var isReady =
        sora_SSL_CTX_set_min_proto_version(context, DTLS1_2_VERSION) == 1
        && sora_SSL_CTX_set_max_proto_version(context, DTLS1_2_VERSION) == 1
        && SSL_CTX_set_cipher_list(context, ciphers) == 1
        && sora_SSL_CTX_set1_groups_list(context, "X25519:P-256:P-384") == 1
        && sora_SSL_CTX_set1_sigalgs_list(
            context, "ECDSA+SHA256:ECDSA+SHA384:ECDSA+SHA512:RSA-PSS+SHA256:RSA+SHA256:RSA+SHA384:RSA+SHA512") == 1
        && SSL_CTX_use_certificate(context, certificate) == 1
        && SSL_CTX_use_PrivateKey(context, key) == 1
    for above in chain { isReady = isReady && sora_SSL_CTX_add1_chain_cert(context, above) == 1 }
    guard isReady else {
        SSL_CTX_free(context)
        throw .cryptography(operation: "configuring a DTLS context")
    }
    // Both sides must show a certificate; what it has to be is decided by DTLSEndpoint alone.
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
    SSL_CTX_set_cert_verify_callback(context, { store, _ in DTLSEndpoint.verify(store) ? 1 : 0 }, nil)
    return context
}
