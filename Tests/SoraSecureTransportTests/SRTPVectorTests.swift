import SoraCrypto
import Testing

@testable import SoraSecureTransport

private func bytes(_ text: String) -> [UInt8] {
    Hexadecimal.decode(text.filter { $0 != " " && $0 != "\n" }) ?? []
}

/// Published vectors. The longer runs of packets are compared with libsrtp2 elsewhere.
@Suite struct SRTPVectorTests {
    /// RFC 3711 B.3
    @Test func derivesSessionKeysOfRFC3711() throws {
        let keys = try SRTPSessionKeys(
            profile: .aesCM128HMACSHA1_80, masterKey: bytes("E1F97A0D3E018BE0D64FA32C06DE4139"),
            masterSalt: bytes("0EC675AD498AFEEBB6960B3AABE6"))
        #expect(keys.rtp.encryptionKey == bytes("C61E7A93744F39EE10734AFE3FF7A087"))
        #expect(keys.rtp.salt == bytes("30CBBC08863D8C85D49DB34A9AE1"))
        #expect(keys.rtp.authenticationKey == bytes("CEBE321F6FF7716B6FD4AB49AF256A156D38BAA4"))
        // The three RTCP labels differ from those, and from each other.
        #expect(keys.rtcp.encryptionKey != keys.rtp.encryptionKey)
        #expect(keys.rtcp.salt != keys.rtp.salt)
        #expect(keys.rtcp.authenticationKey != keys.rtp.authenticationKey)
    }

    /// RFC 3711 B.3: the authentication key of 94 bytes that the appendix prints in full.
    @Test func derivesTheLongAuthenticationKeyOfRFC3711() throws {
        let function = try PseudoRandomFunction(
            key: bytes("E1F97A0D3E018BE0D64FA32C06DE4139"), salt: bytes("0EC675AD498AFEEBB6960B3AABE6"))
        #expect(
            try function.bytes(94, label: 1)
                == bytes(
                    """
                    CEBE321F6FF7716B6FD4AB49AF256A15 6D38BAA48F0A0ACF3C34E2359E6CDBCE
                    E049646C43D9327AD175578EF7227098 6371C10C9A369AC2F94A8C5FBCDDDC25
                    6D6E919A48B610EF17C2041E47403576 6B68642C59BBFC2F34DB60DBDFB2
                    """))
    }

    /// RFC 3711 B.2: the key stream of session key and salt, which is what encrypts a packet of zeros.
    @Test func keyStreamMatchesRFC3711() throws {
        let cipher = try CipherContext(
            .aes128CTR, key: bytes("2B7E151628AED2A6ABF7158809CF4F3C"), isEncrypting: true)
        var text = [UInt8](repeating: 0, count: 48)
        try cipher.setIV(bytes("F0F1F2F3F4F5F6F7F8F9FAFBFCFD0000"))
        try text.withUnsafeMutableBufferPointer { try cipher.transform($0.baseAddress!, count: 48) }
        #expect(
            text
                == bytes(
                    """
                    E03EAD0935C95E80E166B16DD92B4EB4 D23513162B02D0F72A43A2FE4A5F97AB
                    41E95B3BB0A2E8DD477901E4FCA894C0
                    """))
    }

    /// RFC 6188 7.3 and 7.4: derivation with a 256-bit key.
    @Test func derivesSessionKeysOfRFC6188() throws {
        let function = try PseudoRandomFunction(
            key: bytes("f0f04914b513f2763a1b1fa130f10e2998f6f6e43e4309d1e622a0e332b9f1b6"),
            salt: bytes("3b04803de51ee7c96423ab5b78d2"))
        #expect(
            try function.bytes(32, label: 0)
                == bytes("5ba1064e30ec51613cad926c5a28ef731ec7fb397f70a960653caf06554cd8c4"))
        #expect(try function.bytes(14, label: 2) == bytes("fa31791685ca444a9e07c6c64e93"))
        #expect(try function.bytes(20, label: 1) == bytes("fd9c32d39ed5fbb5a9dc96b30818454d1313dc05"))
    }

    private static let salt = bytes("517569642070726f2071756f")
    private static let key128 = Array<UInt8>(0...15)
    private static let key256 = Array<UInt8>(0...31)
    private static let rtp = bytes(
        "8040f17b8041f8d35501a0b247616c6c696120657374206f6d6e69732064697669736120696e207061727465732074726573")
    private static let rtcp = bytes(
        "81c8000d4d6172734e5450314e545032525450200000042a0000e9304c756e61deadbeefdeadbeefdeadbeefdeadbeefdeadbeef")

    private static func context(_ profile: SRTPProfile) -> SRTPContext {
        let set = SRTPSessionKeys.KeySet(
            encryptionKey: profile == .aeadAES256GCM ? key256 : key128, authenticationKey: [], salt: salt)
        return SRTPContext(profile: profile, sessionKeys: SRTPSessionKeys(rtp: set, rtcp: set))
    }

    /// RFC 7714 16.1.1, 16.2.1
    @Test(arguments: [
        (
            SRTPProfile.aeadAES128GCM,
            "8040f17b8041f8d35501a0b2f24de3a3fb34de6cacba861c9d7e4bcabe633bd50d294e6f42a5f47a51c7d19b36de3adf8833"
                + "899d7f27beb16a9152cf765ee4390cce"
        ),
        (
            .aeadAES256GCM,
            "8040f17b8041f8d35501a0b232b1de78a822fe12ef9f78fa332e33aab18012389a58e2f3b50b2a0276ffae0f1ba63799b87b"
                + "7aa3db36dfffd6b0f9bb7878d7a76c13"
        ),
    ])
    func rtpMatchesRFC7714(_ profile: SRTPProfile, _ expected: String) throws {
        var packet = Self.rtp
        try Self.context(profile).protect(&packet)
        #expect(packet == bytes(expected))
        try Self.context(profile).unprotect(&packet)
        #expect(packet == Self.rtp)
    }

    /// RFC 7714 17.1, 17.2 (index 0x5d4).
    @Test(arguments: [
        (
            SRTPProfile.aeadAES128GCM,
            "81c8000d4d61727363e94885dcdab67ca727d7662f6b7e997ff5c0f76c06f32dc676a5f1730d6fda4ce09b4686303ded0bb9"
                + "275bc84aa45896cf4d2fc5abf87245d9eade800005d4"
        ),
        (
            .aeadAES256GCM,
            "81c8000d4d617273d50ae4d1f5ce5d304ba297e47d470c282c3ece5dbffe0a50a2eaa5c1110555be8415f658c61de0476f1b"
                + "6fad1d1eb30c4446839f57ff6f6cb26ac3be800005d4"
        ),
    ])
    func rtcpMatchesRFC7714(_ profile: SRTPProfile, _ expected: String) throws {
        var packet = bytes(expected)
        try Self.context(profile).unprotectRTCP(&packet)
        #expect(packet == Self.rtcp)

        let sender = Self.context(profile)
        for _ in 1...0x5D4 {
            packet = Self.rtcp
            try sender.protectRTCP(&packet)
        }
        #expect(packet == bytes(expected))
    }
}
