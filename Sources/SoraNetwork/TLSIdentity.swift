import COpenSSL
import SoraWire

/// A certificate with the certificates that lead to its root, and its private key, as PEM text.
package struct TLSIdentity: Sendable, Equatable, CustomStringConvertible {
    /// The leaf first, then intermediates.
    package var certificateChain: String
    /// Unencrypted.
    package var privateKey: String

    package init(certificateChain: String, privateKey: String) {
        self.certificateChain = certificateChain
        self.privateKey = privateKey
    }

    /// Does not print the key.
    package var description: String { "a certificate and its private key" }

    /// Makes a P-256 key and a certificate for it. A key generation takes less than a millisecond.
    /// - Parameters:
    ///   - names: DNS names and IP addresses for the subject's alternative names; the first is the common name
    ///     too. An authority's first name may be any text, and is all it has.
    ///   - isAuthority: A CA certificate, which can sign others.
    ///   - issuer: The CA that signs; nil signs it with its own key.
    ///   - validFrom: Begin of validity, relative to the wall clock. The default forgives clocks an hour slow.
    ///   - lifetime: From then on.
    package static func generate(
        names: [String], isAuthority: Bool = false, issuer: TLSIdentity? = nil, validFrom: Duration = .seconds(-3600),
        lifetime: Duration = .seconds(365 * 86_400)
    ) throws(TLSFailure) -> TLSIdentity {
        guard let key = sora_EVP_EC_gen("P-256"), let certificate = X509_new() else {
            throw .badConfiguration(reason: "cannot make a key: \(openSSLErrors())")
        }
        defer {
            EVP_PKEY_free(key)
            X509_free(certificate)
        }
        let signer = try issuer.map { issuer throws(TLSFailure) in try PEM.identity(issuer) }
        defer { signer?.free() }
        try fill(certificate, names: names, validFrom: validFrom, lifetime: lifetime)
        let issuerCertificate = signer?.leaf ?? certificate
        X509_set_issuer_name(certificate, X509_get_subject_name(issuerCertificate))
        X509_set_pubkey(certificate, key)
        try extend(certificate, by: issuerCertificate, names: names, isAuthority: isAuthority)
        guard X509_sign(certificate, signer?.key ?? key, EVP_sha256()) > 0 else {
            throw .badConfiguration(reason: "cannot sign: \(openSSLErrors())")
        }
        var chain = PEM.text { PEM_write_bio_X509($0, certificate) }
        // A root is known to those who trust it; an intermediate has to be sent.
        if let issuer, let signer, X509_check_issued(signer.leaf, signer.leaf) != X509_V_OK {
            chain += issuer.certificateChain
        }
        return TLSIdentity(
            certificateChain: chain,
            privateKey: PEM.text { PEM_write_bio_PrivateKey($0, key, nil, nil, 0, nil, nil) })
    }

    private static func fill(
        _ certificate: OpaquePointer, names: [String], validFrom: Duration, lifetime: Duration
    ) throws(TLSFailure) {
        X509_set_version(certificate, 2)
        var random = RandomSource.system
        ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), random.next() >> 1)
        X509_gmtime_adj(X509_getm_notBefore(certificate), Int(validFrom.inSeconds))
        X509_gmtime_adj(X509_getm_notAfter(certificate), Int((validFrom + lifetime).inSeconds))
        let commonName = Array((names.first ?? "").utf8.prefix(64))
        guard
            X509_NAME_add_entry_by_txt(
                X509_get_subject_name(certificate), "CN", MBSTRING_UTF8, commonName, Int32(commonName.count), -1, 0)
                == 1
        else { throw .badConfiguration(reason: "a certificate needs a name: \(openSSLErrors())") }
    }

    private static func extend(
        _ certificate: OpaquePointer, by issuer: OpaquePointer, names: [String], isAuthority: Bool
    ) throws(TLSFailure) {
        var entries: [String] = []
        for name in names where !isAuthority {
            if IPAddress(name) != nil {
                entries.append("IP:\(name)")
            } else if !name.isEmpty, name.utf8.allSatisfy(isNameCharacter) {
                entries.append("DNS:\(name)")
            } else {
                throw .badConfiguration(reason: "\(name) is neither a DNS name nor an IP address")
            }
        }
        var extensions: [(Int32, String)] = [
            (NID_basic_constraints, isAuthority ? "critical,CA:TRUE" : "critical,CA:FALSE"),
            (
                NID_key_usage,
                isAuthority ? "critical,keyCertSign,cRLSign,digitalSignature" : "critical,digitalSignature"
            ),
            (NID_subject_key_identifier, "hash"), (NID_authority_key_identifier, "keyid"),
        ]
        if !isAuthority {
            extensions.append((NID_ext_key_usage, "serverAuth,clientAuth"))
            extensions.append((NID_subject_alt_name, entries.joined(separator: ",")))
        }
        var context = X509V3_CTX()
        X509V3_set_ctx(&context, issuer, certificate, nil, nil, 0)
        for (nid, value) in extensions {
            guard let item = X509V3_EXT_conf_nid(nil, &context, nid, value) else {
                throw .badConfiguration(reason: "cannot make certificate extension \(value): \(openSSLErrors())")
            }
            defer { X509_EXTENSION_free(item) }
            guard X509_add_ext(certificate, item, -1) == 1 else {
                throw .badConfiguration(reason: "cannot add certificate extension \(value): \(openSSLErrors())")
            }
        }
    }

    private static func isNameCharacter(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "*"),
            UInt8(ascii: "_"):
            true
        default: false
        }
    }
}

/// PEM text in and out of OpenSSL.
enum PEM {
    /// Parsed parts; to be freed once.
    struct Identity {
        var leaf: OpaquePointer
        var intermediates: [OpaquePointer]
        var key: OpaquePointer

        func free() {
            X509_free(leaf)
            for certificate in intermediates { X509_free(certificate) }
            EVP_PKEY_free(key)
        }
    }

    static func identity(_ identity: TLSIdentity) throws(TLSFailure) -> Identity {
        var certificates: [OpaquePointer] = []
        reading(identity.certificateChain) { bio in
            while let certificate = PEM_read_bio_X509(bio, nil, nil, nil) { certificates.append(certificate) }
        }
        ERR_clear_error()  // reading past the last block is reported as an error
        guard let leaf = certificates.first else {
            throw .badConfiguration(reason: "the certificate text holds no PEM certificate")
        }
        var key: OpaquePointer?
        // Without a password callback OpenSSL would ask on the terminal.
        reading(identity.privateKey) { bio in key = PEM_read_bio_PrivateKey(bio, nil, { _, _, _, _ in 0 }, nil) }
        guard let key else {
            for certificate in certificates { X509_free(certificate) }
            throw .badConfiguration(reason: "the private key text holds no unencrypted PEM key: \(openSSLErrors())")
        }
        let result = Identity(leaf: leaf, intermediates: Array(certificates.dropFirst()), key: key)
        guard X509_check_private_key(leaf, key) == 1 else {
            ERR_clear_error()
            result.free()
            throw .badConfiguration(reason: "the private key does not belong to the certificate")
        }
        return result
    }

    /// A BIO that owns a copy of the text: OpenSSL would otherwise keep a pointer into a Swift string.
    private static func reading(_ text: String, _ body: (OpaquePointer) -> Void) {
        guard let bio = BIO_new(BIO_s_mem()) else { return }
        defer { BIO_free(bio) }
        let bytes = Array(text.utf8)
        _ = BIO_write(bio, bytes, Int32(clamping: bytes.count))
        body(bio)
    }

    static func text(_ write: (OpaquePointer) -> Int32) -> String {
        guard let bio = BIO_new(BIO_s_mem()) else { return "" }
        defer { BIO_free(bio) }
        guard write(bio) == 1 else { return "" }
        return String(decoding: drain(bio), as: UTF8.self)
    }

    /// Everything that a memory BIO holds.
    static func drain(_ bio: OpaquePointer) -> [UInt8] {
        let count = BIO_ctrl_pending(bio)
        guard count > 0 else { return [] }
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            filled = max(0, Int(BIO_read(bio, buffer.baseAddress, Int32(clamping: count))))
        }
    }
}

/// Takes the thread's queue of OpenSSL errors as text.
func openSSLErrors() -> String {
    var texts: [String] = []
    while true {
        let code = ERR_get_error()
        if code == 0 { break }
        texts.append(ERR_reason_error_string(code).map { String(cString: $0) } ?? "error \(code)")
    }
    return texts.isEmpty ? "unknown error" : texts.joined(separator: "; ")
}
