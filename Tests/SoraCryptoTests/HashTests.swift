import SoraCrypto
import Testing

private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

@Suite struct HashTests {
    /// RFC 1321 A.5, RFC 3174 7.3, FIPS 180-4 examples.
    @Test(arguments: [
        (HashAlgorithm.md5, "", "d41d8cd98f00b204e9800998ecf8427e"),
        (.md5, "abc", "900150983cd24fb0d6963f7d28e17f72"),
        (.sha1, "", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
        (.sha1, "abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
        (.sha256, "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
        (.sha256, "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        (
            .sha384, "abc",
            "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7"
        ),
        (
            .sha512, "abc",
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
                + "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
        ),
    ])
    func matchesPublishedVectors(_ algorithm: HashAlgorithm, _ message: String, _ expected: String) {
        let result = hash(algorithm, bytes(message))
        #expect(Hexadecimal.encode(result) == expected)
        #expect(result.count == algorithm.length)
    }

    @Test func acceptValueOfWebSocketExample() {
        // RFC 6455 1.3
        let key = "dGhlIHNhbXBsZSBub25jZQ==" + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        #expect(Base64.encode(hash(.sha1, bytes(key))) == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
    }
}

@Suite struct HMACTests {
    static let longKey = [UInt8](repeating: 0xAA, count: 80)

    @Test func matchesRFC2202() {
        func code(_ algorithm: HashAlgorithm, _ key: [UInt8], _ message: [UInt8]) -> String {
            Hexadecimal.encode(HMACKey(algorithm, key: key).authenticate(message))
        }
        #expect(
            code(.sha1, [UInt8](repeating: 0x0B, count: 20), bytes("Hi There"))
                == "b617318655057264e28bc0b6fb378c8ef146be00")
        #expect(
            code(.sha1, bytes("Jefe"), bytes("what do ya want for nothing?"))
                == "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79")
        #expect(
            code(.sha1, [UInt8](repeating: 0xAA, count: 20), [UInt8](repeating: 0xDD, count: 50))
                == "125d7342b9ac11cd91a39af48aa17b4f63f175d3")
        #expect(
            code(.sha1, Self.longKey, bytes("Test Using Larger Than Block-Size Key - Hash Key First"))
                == "aa4ae5e15272d00e95705637ce8a3b55ed402112")
        #expect(
            code(.md5, bytes("Jefe"), bytes("what do ya want for nothing?")) == "750c783e6ab0b503eaa86e310a5db738")
    }

    @Test func matchesRFC4231() {
        let message = bytes("what do ya want for nothing?")
        #expect(
            Hexadecimal.encode(hmac(.sha256, key: bytes("Jefe"), message))
                == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
        #expect(
            Hexadecimal.encode(hmac(.sha512, key: bytes("Jefe"), message))
                == "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554"
                + "9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737")
    }

    @Test func emptyKeyAndMessageAreAllowed() {
        #expect(
            Hexadecimal.encode(hmac(.sha256, key: [], []))
                == "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad")
    }

    @Test func keyIsReusableFromManyTasks() async {
        let key = HMACKey(.sha1, key: bytes("Jefe"))
        let expected = key.authenticate(bytes("message"))
        let allEqual = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<8 {
                group.addTask { (0..<500).allSatisfy { _ in key.authenticate(bytes("message")) == expected } }
            }
            return await group.reduce(true) { $0 && $1 }
        }
        #expect(allEqual)
        #expect(key.isValid(expected, for: bytes("message")))
        #expect(!key.isValid(expected, for: bytes("massage")))
        #expect(!key.isValid([], for: bytes("message")))
    }

    @Test func constantTimeComparisonSeesEveryByteAndTheLength() {
        let value: [UInt8] = Array(0..<40)
        #expect(equalInConstantTime(value, value))
        #expect(equalInConstantTime([], []))
        #expect(!equalInConstantTime(value, Array(value.dropLast())))
        for index in value.indices {
            var other = value
            other[index] ^= 1
            #expect(!equalInConstantTime(value, other))
        }
    }
}
