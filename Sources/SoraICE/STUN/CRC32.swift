/// CRC-32 of ISO/IEC 13239, which STUN's FINGERPRINT is made of (RFC 8489, 14.7). Not CRC-32C.
package enum CRC32 {
    private static let table: [UInt32] = (0..<256).map { index in
        var value = UInt32(index)
        for _ in 0..<8 { value = value & 1 == 1 ? value >> 1 ^ 0xEDB8_8320 : value >> 1 }
        return value
    }

    /// The checksum of `bytes`.
    package static func checksum(of bytes: some Sequence<UInt8>) -> UInt32 {
        var state: UInt32 = 0xFFFF_FFFF
        for byte in bytes { state = state >> 8 ^ table[Int((state ^ UInt32(byte)) & 0xFF)] }
        return ~state
    }
}
