/// Base64 of RFC 4648 4, and its URL-safe form of section 5.
package enum Base64 {
    /// `bytes` in the standard alphabet, padded.
    package static func encode(_ bytes: [UInt8]) -> String {
        encode(bytes, alphabet: standardAlphabet, padded: true)
    }

    /// `bytes` in the URL- and file-name-safe alphabet, without padding (the form of JWT, RFC 7515 2).
    package static func encodeURLSafe(_ bytes: [UInt8]) -> String {
        encode(bytes, alphabet: urlSafeAlphabet, padded: false)
    }

    /// The bytes of a padded text in the standard alphabet; nil for any other text: white space,
    /// missing or misplaced padding, and bits set behind the last byte are refused.
    package static func decode(_ text: String) -> [UInt8]? {
        decode(text, sixtyTwo: UInt8(ascii: "+"), sixtyThree: UInt8(ascii: "/"), paddingRequired: true)
    }

    /// The bytes of a text in the URL-safe alphabet, with or without padding; nil for any other text.
    package static func decodeURLSafe(_ text: String) -> [UInt8]? {
        decode(text, sixtyTwo: UInt8(ascii: "-"), sixtyThree: UInt8(ascii: "_"), paddingRequired: false)
    }

    private static let standardAlphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
    private static let urlSafeAlphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
    private static let pad = UInt8(ascii: "=")

    private static func encode(_ bytes: [UInt8], alphabet: [UInt8], padded: Bool) -> String {
        var out: [UInt8] = []
        out.reserveCapacity((bytes.count + 2) / 3 * 4)
        var index = 0
        while index < bytes.count {
            let taken = min(3, bytes.count - index)
            var group = UInt32(bytes[index]) << 16
            if taken > 1 { group |= UInt32(bytes[index + 1]) << 8 }
            if taken > 2 { group |= UInt32(bytes[index + 2]) }
            for digit in 0...taken {
                out.append(alphabet[Int(group >> UInt32(18 - 6 * digit) & 0x3F)])
            }
            if padded { for _ in taken..<3 { out.append(pad) } }
            index += taken
        }
        return String(decoding: out, as: UTF8.self)
    }

    private static func decode(
        _ text: String, sixtyTwo: UInt8, sixtyThree: UInt8, paddingRequired: Bool
    ) -> [UInt8]? {
        var digits = Array(text.utf8)
        let total = digits.count
        while digits.last == pad, total - digits.count < 2 { digits.removeLast() }
        let isPadded = digits.count < total
        if (paddingRequired || isPadded) && total % 4 != 0 { return nil }
        if digits.count % 4 == 1 { return nil }

        var out: [UInt8] = []
        out.reserveCapacity(digits.count / 4 * 3 + 2)
        var buffer: UInt32 = 0
        var bits: UInt32 = 0
        for digit in digits {
            let value: UInt8
            switch digit {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): value = digit - UInt8(ascii: "A")
            case UInt8(ascii: "a")...UInt8(ascii: "z"): value = digit - UInt8(ascii: "a") + 26
            case UInt8(ascii: "0")...UInt8(ascii: "9"): value = digit - UInt8(ascii: "0") + 52
            case sixtyTwo: value = 62
            case sixtyThree: value = 63
            default: return nil
            }
            buffer = buffer << 6 | UInt32(value)
            bits += 6
            if bits >= 8 {
                bits -= 8
                out.append(UInt8(truncatingIfNeeded: buffer >> bits))
                buffer &= (1 << bits) - 1
            }
        }
        return buffer == 0 ? out : nil
    }
}
