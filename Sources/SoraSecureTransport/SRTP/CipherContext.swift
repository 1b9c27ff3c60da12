import COpenSSL

/// An OpenSSL cipher, keyed once and started anew for every packet by its IV alone.
///
/// One owner uses it at a time; it works in place on memory that the caller has checked.
final class CipherContext {
    enum Algorithm {
        case aes128CTR, aes256CTR, aes128GCM, aes256GCM

        fileprivate var implementation: OpaquePointer? {
            switch self {
            case .aes128CTR: FetchedCipher.aes128CTR.pointer
            case .aes256CTR: FetchedCipher.aes256CTR.pointer
            case .aes128GCM: FetchedCipher.aes128GCM.pointer
            case .aes256GCM: FetchedCipher.aes256GCM.pointer
            }
        }
    }

    private let context: OpaquePointer
    private let isEncrypting: Bool

    init(_ algorithm: Algorithm, key: [UInt8], isEncrypting: Bool) throws(SRTPError) {
        guard let implementation = algorithm.implementation, let made = EVP_CIPHER_CTX_new() else {
            throw .cryptography(operation: "creating a cipher")
        }
        let isKeyed =
            EVP_CIPHER_get_key_length(implementation) == key.count
            && EVP_CipherInit_ex2(made, implementation, key, nil, isEncrypting ? 1 : 0, nil) == 1
        guard isKeyed else {
            EVP_CIPHER_CTX_free(made)
            throw .cryptography(operation: "keying a cipher")
        }
        context = made
        self.isEncrypting = isEncrypting
    }

    deinit { EVP_CIPHER_CTX_free(context) }  // also wipes the key

    /// Starts a packet. `iv` has 16 bytes for counter mode, 12 for GCM (more are not read).
    func setIV(_ iv: UnsafePointer<UInt8>) throws(SRTPError) {
        guard EVP_CipherInit_ex2(context, nil, nil, iv, isEncrypting ? 1 : 0, nil) == 1 else {
            throw .cryptography(operation: "setting an IV")
        }
    }

    /// Adds associated data, before any text.
    func authenticate(_ bytes: UnsafePointer<UInt8>, count: Int) throws(SRTPError) {
        var length: Int32 = 0
        guard EVP_CipherUpdate(context, nil, &length, bytes, Int32(truncatingIfNeeded: count)) == 1 else {
            throw .cryptography(operation: "adding associated data")
        }
    }

    /// Encrypts or decrypts in place.
    func transform(_ bytes: UnsafeMutablePointer<UInt8>, count: Int) throws(SRTPError) {
        guard count > 0 else { return }
        var length: Int32 = 0
        guard EVP_CipherUpdate(context, bytes, &length, bytes, Int32(truncatingIfNeeded: count)) == 1,
            Int(length) == count
        else { throw .cryptography(operation: "encrypting") }
    }

    /// Ends an encrypted packet and writes its 16-byte tag.
    func writeTag(_ tag: UnsafeMutablePointer<UInt8>) throws(SRTPError) {
        var length: Int32 = 0
        guard EVP_CipherFinal_ex(context, tag, &length) == 1,
            EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, tag) == 1
        else { throw .cryptography(operation: "computing a tag") }
    }

    /// Ends a decrypted packet: whether `tag` (16 bytes) belongs to it. The comparison takes constant time.
    func isValidTag(_ tag: UnsafeMutablePointer<UInt8>) -> Bool {
        var length: Int32 = 0
        return EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, 16, tag) == 1
            && EVP_CipherFinal_ex(context, tag, &length) == 1
    }
}

/// A fetched `EVP_CIPHER`. `@unchecked`: immutable after the fetch, reference count atomic, never freed.
private struct FetchedCipher: @unchecked Sendable {
    let pointer: OpaquePointer?

    static let aes128CTR = FetchedCipher(pointer: EVP_CIPHER_fetch(nil, "AES-128-CTR", nil))
    static let aes256CTR = FetchedCipher(pointer: EVP_CIPHER_fetch(nil, "AES-256-CTR", nil))
    static let aes128GCM = FetchedCipher(pointer: EVP_CIPHER_fetch(nil, "AES-128-GCM", nil))
    static let aes256GCM = FetchedCipher(pointer: EVP_CIPHER_fetch(nil, "AES-256-GCM", nil))
}
