/// The Castagnoli checksum of RFC 9260, appendix A, sixteen bytes a step.
package enum CRC32C {
    /// Table `k` holds the effect of a byte followed by `k` zero bytes, at `k * 256`.
    private static let tables: [UInt32] = {
        var tables = [UInt32](repeating: 0, count: 16 * 256)
        for byte in 0..<256 {
            var value = UInt32(byte)
            for _ in 0..<8 { value = value & 1 == 1 ? value >> 1 ^ 0x82F6_3B78 : value >> 1 }
            tables[byte] = value
        }
        for index in 256..<(16 * 256) {
            let previous = tables[index - 256]
            tables[index] = previous >> 8 ^ tables[Int(previous & 0xFF)]
        }
        return tables
    }()

    /// Checksum of `bytes`.
    package static func checksum(_ bytes: [UInt8]) -> UInt32 {
        tables.withUnsafeBufferPointer { table in
            bytes.withUnsafeBytes { ~update(~0, $0, table) }
        }
    }

    /// Checksum of an SCTP packet, its own checksum field (bytes 8 to 11) taken as zero.
    /// Nil if there is no complete common header.
    package static func checksum(ofPacket packet: [UInt8]) -> UInt32? {
        guard packet.count >= 12 else { return nil }
        return tables.withUnsafeBufferPointer { table in
            packet.withUnsafeBytes { bytes in
                var crc = update(~0, UnsafeRawBufferPointer(rebasing: bytes[0..<8]), table)
                for _ in 0..<4 { crc = crc >> 8 ^ table[Int(crc & 0xFF)] }
                return ~update(crc, UnsafeRawBufferPointer(rebasing: bytes[12...]), table)
            }
        }
    }

    /// Indices into the tables are a byte plus a multiple of 256 below 4,096, and loads stay below
    /// `bytes.count`, so nothing is read out of bounds.
    private static func update(
        _ start: UInt32, _ bytes: UnsafeRawBufferPointer, _ t: UnsafeBufferPointer<UInt32>
    ) -> UInt32 {
        var crc = start
        var offset = 0
        while offset + 16 <= bytes.count {
            let a = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)) ^ UInt64(crc)
            let b = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset + 8, as: UInt64.self))
            let high =
                t[0xF00 + Int(a & 0xFF)] ^ t[0xE00 + Int(a >> 8 & 0xFF)] ^ t[0xD00 + Int(a >> 16 & 0xFF)]
                ^ t[0xC00 + Int(a >> 24 & 0xFF)]
            let upper =
                t[0xB00 + Int(a >> 32 & 0xFF)] ^ t[0xA00 + Int(a >> 40 & 0xFF)] ^ t[0x900 + Int(a >> 48 & 0xFF)]
                ^ t[0x800 + Int(a >> 56)]
            let lower =
                t[0x700 + Int(b & 0xFF)] ^ t[0x600 + Int(b >> 8 & 0xFF)] ^ t[0x500 + Int(b >> 16 & 0xFF)]
                ^ t[0x400 + Int(b >> 24 & 0xFF)]
            let low =
                t[0x300 + Int(b >> 32 & 0xFF)] ^ t[0x200 + Int(b >> 40 & 0xFF)] ^ t[0x100 + Int(b >> 48 & 0xFF)]
                ^ t[Int(b >> 56)]
            crc = high ^ upper ^ lower ^ low
            offset += 16
        }
        while offset < bytes.count {
            crc = crc >> 8 ^ t[Int((crc ^ UInt32(bytes[offset])) & 0xFF)]
            offset += 1
        }
        return crc
    }
}
