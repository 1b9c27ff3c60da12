import COpenSSL

/// Protects and opens the bytes of one kind of packet under one set of session keys.
///
/// The memory is laid out by ``SRTPContext``, which has checked all lengths:
/// `header | text | tag` for RTP, and `header | text | trailer and tag in the profile's order` for RTCP.
protocol PacketCipher: AnyObject {
    /// Encrypts the text in place and writes the tag.
    func seal(_ packet: PacketLayout) throws(SRTPError)
    /// Checks the tag and decrypts the text in place.
    func open(_ packet: PacketLayout) throws(SRTPError)
}

/// Where the parts of a packet are.
struct PacketLayout {
    var base: UnsafeMutablePointer<UInt8>
    var headerLength: Int
    var textLength: Int
    /// Offset of the tag.
    var tagOffset: Int
    /// Offset of the four bytes of E flag and SRTCP index; nil for RTP.
    var trailerOffset: Int?
    var ssrc: UInt32
    /// 48-bit SRTP or 31-bit SRTCP index.
    var index: UInt64
}

/// AES-GCM (RFC 7714).
final class GCMPacketCipher: PacketCipher {
    private let cipher: CipherContext
    private let saltHigh: UInt64
    private let saltLow: UInt32

    init(profile: SRTPProfile, keys: SRTPSessionKeys.KeySet, isEncrypting: Bool) throws(SRTPError) {
        guard keys.salt.count == profile.saltLength else {
            throw .invalidKeyLength(key: keys.encryptionKey.count, salt: keys.salt.count)
        }
        cipher = try CipherContext(
            profile == .aeadAES256GCM ? .aes256GCM : .aes128GCM, key: keys.encryptionKey, isEncrypting: isEncrypting)
        saltHigh = keys.salt[0..<8].reduce(0) { $0 << 8 | UInt64($1) }
        saltLow = keys.salt[8..<12].reduce(0) { $0 << 8 | UInt32($1) }
    }

    func seal(_ packet: PacketLayout) throws(SRTPError) {
        try begin(packet)
        try cipher.transform(packet.base + packet.headerLength, count: packet.textLength)
        try cipher.writeTag(packet.base + packet.tagOffset)
    }

    func open(_ packet: PacketLayout) throws(SRTPError) {
        try begin(packet)
        try cipher.transform(packet.base + packet.headerLength, count: packet.textLength)
        guard cipher.isValidTag(packet.base + packet.tagOffset) else {
            throw .authenticationFailed(ssrc: packet.ssrc)
        }
    }

    /// RFC 7714 8.1 and 9.1: IV = (0 | SSRC | roll-over counter and sequence, or zero and SRTCP index) xor salt.
    private func begin(_ packet: PacketLayout) throws(SRTPError) {
        let high = saltHigh ^ (UInt64(packet.ssrc) << 16 | packet.index >> 32 & 0xFFFF)
        let low = saltLow ^ UInt32(truncatingIfNeeded: packet.index)
        try withInitializationVector(high, UInt64(low) << 32) { iv throws(SRTPError) in try cipher.setIV(iv) }
        try cipher.authenticate(packet.base, count: packet.headerLength)
        if let trailer = packet.trailerOffset { try cipher.authenticate(packet.base + trailer, count: 4) }
    }
}

/// AES in counter mode with HMAC-SHA1 cut to 80 bits (RFC 3711 4.1.1, 4.2.1).
final class CounterModePacketCipher: PacketCipher {
    private let cipher: CipherContext
    /// An `EVP_MAC_CTX`, keyed once and restarted for every packet.
    private let mac: OpaquePointer
    private let saltHigh: UInt64
    private let saltLow: UInt64
    private let tagLength: Int

    init(profile: SRTPProfile, keys: SRTPSessionKeys.KeySet) throws(SRTPError) {
        guard keys.salt.count == profile.saltLength else {
            throw .invalidKeyLength(key: keys.encryptionKey.count, salt: keys.salt.count)
        }
        // Counter mode encrypts and decrypts alike.
        cipher = try CipherContext(.aes128CTR, key: keys.encryptionKey, isEncrypting: true)
        saltHigh = keys.salt[0..<8].reduce(0) { $0 << 8 | UInt64($1) }
        saltLow = keys.salt[8..<14].reduce(0) { $0 << 8 | UInt64($1) } << 16
        tagLength = profile.tagLength
        guard let made = sora_hmac_new("SHA1", keys.authenticationKey, keys.authenticationKey.count) else {
            throw .cryptography(operation: "creating HMAC-SHA1")
        }
        mac = made
    }

    deinit { EVP_MAC_CTX_free(mac) }

    func seal(_ packet: PacketLayout) throws(SRTPError) {
        try crypt(packet)
        try withTag(of: packet) { tag in
            (packet.base + packet.tagOffset).update(from: tag, count: tagLength)
        }
    }

    func open(_ packet: PacketLayout) throws(SRTPError) {
        let isGenuine = try withTag(of: packet) { tag in
            CRYPTO_memcmp(tag, packet.base + packet.tagOffset, tagLength) == 0
        }
        guard isGenuine else { throw .authenticationFailed(ssrc: packet.ssrc) }
        try crypt(packet)
    }

    /// RFC 3711 4.1.1: IV = salt · 2^16 xor SSRC · 2^64 xor index · 2^16.
    private func crypt(_ packet: PacketLayout) throws(SRTPError) {
        let high = saltHigh ^ UInt64(packet.ssrc)
        let low = saltLow ^ packet.index << 16
        try withInitializationVector(high, low) { iv throws(SRTPError) in try cipher.setIV(iv) }
        try cipher.transform(packet.base + packet.headerLength, count: packet.textLength)
    }

    /// RFC 3711 4.2: the code covers the packet and the roll-over counter, or the packet with E flag and index.
    private func withTag<Result>(
        of packet: PacketLayout, _ body: (UnsafePointer<UInt8>) -> Result
    ) throws(SRTPError) -> Result {
        var isComputed = EVP_MAC_init(mac, nil, 0, nil) == 1
        if packet.trailerOffset != nil {
            isComputed = isComputed && EVP_MAC_update(mac, packet.base, packet.tagOffset) == 1
        } else {
            var rollOver = UInt32(truncatingIfNeeded: packet.index >> 16).bigEndian
            isComputed =
                isComputed && EVP_MAC_update(mac, packet.base, packet.headerLength + packet.textLength) == 1
                && withUnsafeBytes(of: &rollOver) {
                    EVP_MAC_update(mac, $0.baseAddress?.assumingMemoryBound(to: UInt8.self), 4) == 1
                }
        }
        var code: (UInt64, UInt64, UInt64) = (0, 0, 0)
        return try withUnsafeMutableBytes(of: &code) { bytes throws(SRTPError) in
            let pointer = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
            var length = 0
            guard isComputed, let pointer, EVP_MAC_final(mac, pointer, &length, bytes.count) == 1, length == 20 else {
                throw .cryptography(operation: "computing HMAC-SHA1")
            }
            return body(pointer)
        }
    }
}

/// Hands the 16 bytes of two words in network order to `body`.
@inline(__always)
private func withInitializationVector(
    _ high: UInt64, _ low: UInt64, _ body: (UnsafePointer<UInt8>) throws(SRTPError) -> Void
) throws(SRTPError) {
    let words = (high.bigEndian, low.bigEndian)
    try withUnsafeBytes(of: words) { bytes throws(SRTPError) in
        guard let base = bytes.baseAddress else { return }
        try body(base.assumingMemoryBound(to: UInt8.self))
    }
}
