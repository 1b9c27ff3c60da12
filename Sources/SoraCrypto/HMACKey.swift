import COpenSSL

/// A key for HMAC (RFC 2104), prepared once and used for any number of messages from any thread.
package struct HMACKey: Sendable {
    /// The hash function under the HMAC.
    package let algorithm: HashAlgorithm
    private let template: Template

    /// Prepares `key`, which may have any length.
    package init(_ algorithm: HashAlgorithm, key: [UInt8]) {
        self.algorithm = algorithm
        template = Template(algorithm, key: key)
    }

    /// The authentication code of `bytes`, as long as the hash.
    package func authenticate(_ bytes: [UInt8]) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: Int(EVP_MAX_MD_SIZE)) { buffer, count in
            let context = EVP_MAC_CTX_dup(template.context)
            defer { EVP_MAC_CTX_free(context) }
            let done =
                context != nil && EVP_MAC_update(context, bytes, bytes.count) == 1
                && EVP_MAC_final(context, buffer.baseAddress, &count, buffer.count) == 1
            // Fails only when memory is exhausted; no code must be returned that was not computed.
            precondition(done, "OpenSSL cannot compute HMAC-\(algorithm.name)")
        }
    }

    /// Whether `code` is the authentication code of `bytes`, compared in constant time.
    package func isValid(_ code: [UInt8], for bytes: [UInt8]) -> Bool {
        equalInConstantTime(authenticate(bytes), code)
    }
}

extension HMACKey {
    /// The keyed context that every message starts from a copy of.
    ///
    /// `@unchecked`: it is written in `init` only; afterwards `EVP_MAC_CTX_dup`, which takes it as
    /// const and touches atomic reference counts only, is the sole user until `deinit`.
    private final class Template: @unchecked Sendable {
        let context: OpaquePointer

        init(_ algorithm: HashAlgorithm, key: [UInt8]) {
            guard let made = sora_hmac_new(algorithm.name, key, key.count) else {
                preconditionFailure("OpenSSL offers no HMAC with \(algorithm.name): enable its default provider")
            }
            context = made
        }

        deinit { EVP_MAC_CTX_free(context) }
    }
}

/// The HMAC of one message with a key that is used once.
package func hmac(_ algorithm: HashAlgorithm, key: [UInt8], _ bytes: [UInt8]) -> [UInt8] {
    HMACKey(algorithm, key: key).authenticate(bytes)
}

/// Whether the two runs are equal, in a time that depends on their lengths only, so that a guess at
/// a secret value learns nothing from how long its refusal takes.
package func equalInConstantTime(_ a: [UInt8], _ b: [UInt8]) -> Bool {
    guard a.count == b.count else { return false }
    return CRYPTO_memcmp(a, b, a.count) == 0
}
