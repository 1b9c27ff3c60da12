import SoraWire
import Testing

@testable import SoraSCTP

@Suite struct ChecksumTests {
    @Test(
        arguments: [
            ("123456789", 0xE306_9283), ("", 0), ("a", 0xC1D0_4330),
        ] as [(String, UInt32)])
    func knownValues(text: String, expected: UInt32) {
        #expect(CRC32C.checksum(Array(text.utf8)) == expected)
    }

    @Test func valuesOfRFC3720() {
        #expect(CRC32C.checksum([UInt8](repeating: 0, count: 32)) == 0x8A91_36AA)
        #expect(CRC32C.checksum([UInt8](repeating: 0xFF, count: 32)) == 0x62A8_AB43)
        #expect(CRC32C.checksum(Array(0...0x1F)) == 0x46DD_794E)
        #expect(CRC32C.checksum((0...0x1F).reversed()) == 0x113F_DB5C)
    }

    @Test func everyLengthAgreesWithTheBitwiseDefinition() {
        var random = RandomSource(seed: 9)
        let bytes = random.bytes(100)
        for length in 0...100 {
            var crc: UInt32 = ~0
            for byte in bytes[0..<length] {
                crc ^= UInt32(byte)
                for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0x82F6_3B78 : crc >> 1 }
            }
            #expect(CRC32C.checksum(Array(bytes[0..<length])) == ~crc)
        }
    }

    @Test func packetChecksumIgnoresItsOwnField() {
        var packet = hex("177117727a3c91e500000000fe00000861626364")
        #expect(CRC32C.checksum(ofPacket: packet) == 0x39B3_DAB1)
        for index in 8..<12 { packet[index] = 0x77 }
        #expect(CRC32C.checksum(ofPacket: packet) == 0x39B3_DAB1)
        #expect(CRC32C.checksum(ofPacket: Array(packet[0..<11])) == nil)
    }

    /// Vector of the SipHash paper: key 00…0f, message 00…0e.
    @Test func sipHashVector() {
        let hash = SipHash(key0: 0x0706_0504_0302_0100, key1: 0x0F0E_0D0C_0B0A_0908)
        #expect(hash.tag(Array(0...14), in: 0..<15) == 0xA129_CA61_49BE_45E5)
    }
}
