import SoraMessages
import SoraWire
import Testing

@Suite struct JSONValueTests {
    private func fails(_ text: String) -> Bool { (try? JSONValue(parsing: text)) == nil }

    @Test func numbersKeepTheirKind() throws {
        #expect(try JSONValue(parsing: "1") == .integer(1))
        #expect(try JSONValue(parsing: "1.0") == .double(1))
        #expect(try JSONValue(parsing: "9223372036854775807") == .integer(.max))
        #expect(try JSONValue(parsing: "-9223372036854775808") == .integer(.min))
        #expect(try JSONValue(parsing: "9223372036854775808") == .double(0x1p63))
        #expect(try JSONValue(parsing: "1e400").doubleValue == .greatestFiniteMagnitude)
        #expect(try JSONValue(parsing: "-0").doubleValue?.sign == .minus)
        #expect(try JSONValue(parsing: "1700000000000000").text == "1700000000000000")
        for text in ["9.5e5", "14.985", "2e0", "-0.25", "1E-7"] {
            let value = try JSONValue(parsing: text)
            #expect(try JSONValue(parsing: value.text) == value)
        }
    }

    // LIF18
    @Test func anyNotationIsANumberAndOutOfRangeIsClamped() throws {
        #expect(try JSONValue(parsing: "9.5e5").intValue == 950_000)
        #expect(try JSONValue(parsing: "2e0").intValue == 2)
        #expect(try JSONValue(parsing: "1e300").intValue == .max)
        #expect(try JSONValue(parsing: "-1e300").intValue == .min)
        #expect(try JSONValue(parsing: "14.985").doubleValue == 14.985)
        #expect(try JSONValue(parsing: "1.5").exactIntValue == nil)
        #expect(try JSONValue(parsing: "2.0").exactIntValue == 2)
    }

    @Test func malformedTextIsRefused() {
        for text in [
            "", " ", "{", "[", "\"", "{\"a\"}", "{\"a\":}", "{a:1}", "[1,]", "{\"a\":1,}", "01", "1.", ".5", "+1", "1e",
            "--1", "nul", "truex", "[1] 2", "{} x", "\"\\x\"", "\"\\u12\"", "\"\u{1}\"", "\"\n\"", "NaN", "Infinity",
            "'a'",
        ] { #expect(fails(text), "\(text)") }
    }

    @Test func stringsAndEscapes() throws {
        #expect(
            try JSONValue(parsing: #""a\"\\\/\b\f\n\r\tA\u00e9\ud83d\ude00""#)
                == .string("a\"\\/\u{8}\u{C}\n\r\tAé😀"))
        // A lone surrogate cannot be kept.
        #expect(try JSONValue(parsing: #""\ud800x""#) == .string("\u{FFFD}x"))
        #expect(try JSONValue(parsing: #""\ud800A""#) == .string("\u{FFFD}A"))
        let odd = "\u{0}\u{1f}\u{7f}\"\\/日本語🎉"
        #expect(try JSONValue(parsing: JSONValue.string(odd).text) == .string(odd))
    }

    // LIF28
    @Test func lastOfRepeatedKeysCounts() throws {
        let value = try JSONValue(parsing: #"{"a":1,"b":2,"a":3}"#)
        #expect(value.text == #"{"a":3,"b":2}"#)
    }

    // LIF16
    @Test func absentNullAndEmptyAreThreeThings() throws {
        let object = try JSONValue(parsing: #"{"b":null,"c":{}}"#).objectValue
        #expect(object?["a"] == nil)
        #expect(object?["b"] == .some(.null))
        #expect(object?["c"] == .object([:]))
        #expect(try JSONValue(parsing: #"{"a":null,"b":[null]}"#).text == #"{"a":null,"b":[null]}"#)
    }

    // LIF28
    @Test func nestingIsLimited() throws {
        let limit = JSONValue.maximumDepth
        let good = String(repeating: "[", count: limit) + String(repeating: "]", count: limit)
        #expect(try JSONValue(parsing: good).text == good)
        #expect(throws: JSONError.tooDeep(limit: limit, offset: limit)) { try JSONValue(parsing: "[" + good + "]") }
        #expect(fails(String(repeating: "{\"a\":", count: 200_000)))
        #expect(fails(String(repeating: "[", count: 1_000_000)))
    }

    // LIF28
    @Test func sizeAndEncodingAreChecked() {
        #expect(throws: JSONError.tooLarge(bytes: 3, limit: 2)) { try JSONValue(parsing: "[1]", maximumSize: 2) }
        #expect(throws: JSONError.invalidUTF8) { try JSONValue(parsing: [0x22, 0xED, 0xA0, 0x80, 0x22]) }
        #expect(throws: JSONError.invalidUTF8) { try JSONValue(parsing: [0x22, 0xFF, 0x22]) }
    }

    @Test func objectsAreEqualInAnyOrder() throws {
        #expect(try JSONValue(parsing: #"{"a":1,"b":[2]}"#) == JSONValue(parsing: #"{"b":[2],"a":1}"#))
        #expect(try JSONValue(parsing: #"{"a":1,"b":2}"#) != JSONValue(parsing: #"{"b":1,"a":2}"#))
    }

    @Test func everyPrefixAndChangedByteGivesValueOrError() throws {
        for name in ["connect-python-filters.json", "disconnect-js.json", "pong-js.json"] {
            let bytes = Array(try MessageFixtures.text(name).utf8)
            for length in 0..<bytes.count { _ = try? JSONValue(parsing: Array(bytes[..<length])) }
            for index in bytes.indices {
                var copy = bytes
                copy[index] = bytes[index] ^ 0x15
                if let value = try? JSONValue(parsing: copy) {
                    #expect(try JSONValue(parsing: value.text) == value)
                }
            }
        }
    }

    @Test func randomTextNeverTraps() {
        var random = RandomSource(seed: 4)
        let alphabet = Array("{}[]\",:\\u0123456789.-+eEtrufalsn \n\u{0}é".utf8)
        for _ in 0..<20_000 {
            let count = Int.random(in: 0..<24, using: &random)
            let bytes = (0..<count).map { _ in alphabet[Int.random(in: 0..<alphabet.count, using: &random)] }
            guard let value = try? JSONValue(parsing: bytes) else { continue }
            #expect((try? JSONValue(parsing: value.text)) == value)
        }
    }

    @Test func workIsLinear() {
        func seconds(_ count: Int) -> Double {
            let text = "{" + (0..<count).map { "\"k\($0)\":{\"a\":[1,2.5,\"x\"]}" }.joined(separator: ",") + "}"
            return (0..<3).map { _ in
                let clock = ContinuousClock()
                let start = clock.now
                _ = try? JSONValue(parsing: text)
                return (clock.now - start).inSeconds
            }.min() ?? 0
        }
        #expect(seconds(16_000) < 30 * seconds(2_000) + 0.05)
    }
}
