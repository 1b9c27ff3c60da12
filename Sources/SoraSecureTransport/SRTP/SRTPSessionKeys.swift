import COpenSSL

/// The six session keys that one master key and salt yield (RFC 3711 4.3; RFC 7714 11 for GCM).
/// The key derivation rate is zero, as in all of WebRTC: they are derived once.
package struct SRTPSessionKeys: Sendable, Equatable {
    /// Keys of one kind of packet.
    package struct KeySet: Sendable, Equatable {
        package var encryptionKey: [UInt8]
        package var authenticationKey: [UInt8]
        package var salt: [UInt8]

        package init(encryptionKey: [UInt8], authenticationKey: [UInt8], salt: [UInt8]) {
            self.encryptionKey = encryptionKey
            self.authenticationKey = authenticationKey
            self.salt = salt
        }
    }

    package var rtp: KeySet
    package var rtcp: KeySet

    package init(rtp: KeySet, rtcp: KeySet) {
        self.rtp = rtp
        self.rtcp = rtcp
    }

    /// Derives all keys of `profile`.
    package init(profile: SRTPProfile, masterKey: [UInt8], masterSalt: [UInt8]) throws(SRTPError) {
        guard masterKey.count == profile.keyLength, masterSalt.count == profile.saltLength else {
            throw .invalidKeyLength(key: masterKey.count, salt: masterSalt.count)
        }
        let function = try PseudoRandomFunction(key: masterKey, salt: masterSalt)
        func set(_ labels: (encryption: UInt8, authentication: UInt8, salt: UInt8)) throws(SRTPError) -> KeySet {
            KeySet(
                encryptionKey: try function.bytes(profile.keyLength, label: labels.encryption),
                authenticationKey: try function.bytes(profile.authenticationKeyLength, label: labels.authentication),
                salt: try function.bytes(profile.saltLength, label: labels.salt))
        }
        rtp = try set((0, 1, 2))
        rtcp = try set((3, 4, 5))
    }
}

/// AES in counter mode as a pseudo-random function (RFC 3711 4.3.3; RFC 6188 for 256-bit keys).
struct PseudoRandomFunction {
    private let cipher: CipherContext
    private let salt: [UInt8]

    init(key: [UInt8], salt: [UInt8]) throws(SRTPError) {
        cipher = try CipherContext(key.count == 32 ? .aes256CTR : .aes128CTR, key: key, isEncrypting: true)
        self.salt = salt
    }

    /// The first `count` bytes of the key stream for `label`.
    func bytes(_ count: Int, label: UInt8) throws(SRTPError) -> [UInt8] {
        guard count > 0 else { return [] }
        // A salt shorter than 112 bits stands at the left, the rest is zero (RFC 7714 11).
        var block = [UInt8](repeating: 0, count: 16)
        for (index, byte) in salt.prefix(14).enumerated() { block[index] = byte }
        block[7] ^= label
        var output = [UInt8](repeating: 0, count: count)
        try cipher.setIV(block)
        try output.withUnsafeMutableBufferPointer { buffer throws(SRTPError) in
            guard let base = buffer.baseAddress else { return }
            try cipher.transform(base, count: count)
        }
        return output
    }
}
