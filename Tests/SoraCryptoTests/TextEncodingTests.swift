import SoraCrypto
import SoraWire
import Testing

@Suite struct Base64Tests {
    /// RFC 4648 10.
    @Test(arguments: [
        ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
        ("foobar", "Zm9vYmFy"),
    ])
    func matchesRFC4648(_ plain: String, _ encoded: String) {
        #expect(Base64.encode(Array(plain.utf8)) == encoded)
        #expect(Base64.decode(encoded) == Array(plain.utf8))
        let bare = encoded.filter { $0 != "=" }
        #expect(Base64.encodeURLSafe(Array(plain.utf8)) == bare)
        #expect(Base64.decodeURLSafe(bare) == Array(plain.utf8))
        #expect(Base64.decodeURLSafe(encoded) == Array(plain.utf8))
    }

    @Test func alphabetsDifferInTwoDigits() {
        #expect(Base64.encode([0xFB, 0xFF, 0xBF]) == "+/+/")
        #expect(Base64.encodeURLSafe([0xFB, 0xFF, 0xBF]) == "-_-_")
        #expect(Base64.decode("-_-_") == nil)
        #expect(Base64.decodeURLSafe("+/+/") == nil)
    }

    @Test(arguments: [
        "Z", "Zg", "Zg=", "Zg===", "=", "====", "Z===", "Zh==", "Zm9=", "Zm 9v", "Zm9v\n", "Zg==Zg==", "Zé==",
    ])
    func refusesMalformedText(_ text: String) {
        #expect(Base64.decode(text) == nil)
    }

    @Test func everyLengthSurvivesBothForms() {
        var random = RandomSource(seed: 1)
        for length in 0..<200 {
            let value = (0..<length).map { _ in UInt8.random(in: 0...255, using: &random) }
            #expect(Base64.decode(Base64.encode(value)) == value)
            #expect(Base64.decodeURLSafe(Base64.encodeURLSafe(value)) == value)
        }
    }
}

@Suite struct HexadecimalTests {
    @Test func readsBothCasesAndWritesLower() {
        #expect(Hexadecimal.decode("00ffAb") == [0x00, 0xFF, 0xAB])
        #expect(Hexadecimal.encode([0x00, 0xFF, 0xAB]) == "00ffab")
        #expect(Hexadecimal.decode("") == [])
    }

    @Test(arguments: ["0", "0g", "+1", "0x", " 1", "1:", "é"])
    func refusesMalformedText(_ text: String) {
        #expect(Hexadecimal.decode(text) == nil)
    }
}
