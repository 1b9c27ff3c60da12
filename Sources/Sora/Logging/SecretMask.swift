import Foundation

/// Hides secrets in text that leaves the SDK as log output.
///
/// By place: values of JSON-like pairs with a secret key, user information and query of URLs, ICE passwords in SDP,
/// credentials of an `Authorization` header, and whatever looks like a JSON Web Token.
/// By value: every text in ``SecretRegistry``.
enum SecretMask {
    static let replacement = "***"

    /// Keys whose string value is replaced so that the text reads `"key": "***"`.
    private static let secretKeys: Set<String> = [
        "access_token", "token", "secret", "authorization", "credential", "password", "ice_pwd",
    ]
    /// Keys whose whole value, also an object or array, is replaced.
    private static let opaqueKeys: Set<String> = [
        "metadata", "signaling_notify_metadata", "authn_metadata", "authz_metadata",
    ]

    static func apply(to text: String) -> String {
        var bytes = Array(text.utf8)
        var changed = false
        for step in [maskPairs, maskLines, maskURLs, maskTokens] {
            if let masked = step(bytes) {
                bytes = masked
                changed = true
            }
        }
        var result = changed ? String(decoding: bytes, as: UTF8.self) : text
        for secret in SecretRegistry.shared.variants where result.contains(secret) {
            result = result.replacingOccurrences(of: secret, with: replacement)
        }
        return result
    }

    // MARK: JSON-like pairs

    /// Finds `"key" : value`, also with escaped quotes (`\"key\"`), and replaces the value.
    private static func maskPairs(_ bytes: [UInt8]) -> [UInt8]? {
        guard bytes.contains(quote) else { return nil }
        var output: [UInt8] = []
        output.reserveCapacity(bytes.count)
        var changed = false
        var index = 0
        while index < bytes.count {
            guard bytes[index] == quote, let pair = pair(in: bytes, at: index) else {
                output.append(bytes[index])
                index += 1
                continue
            }
            // The opening quote's backslashes are already written.
            output.append(quote)
            output += pair.key
            output += pair.closing
            output += Array(": ".utf8)
            output += pair.closing
            output += Array(replacement.utf8)
            output += pair.closing
            changed = true
            index = pair.end
        }
        return changed ? output : nil
    }

    private struct Pair {
        var key: ArraySlice<UInt8>
        /// The closing quote of the key with its backslashes; the value gets the same.
        var closing: ArraySlice<UInt8>
        var end: Int
    }

    private static func pair(in bytes: [UInt8], at start: Int) -> Pair? {
        var cursor = start + 1
        let keyStart = cursor
        while cursor < bytes.count, cursor - keyStart <= 40, isKeyByte(bytes[cursor]) { cursor += 1 }
        let key = bytes[keyStart..<cursor]
        guard !key.isEmpty else { return nil }
        let name = String(decoding: key, as: UTF8.self).lowercased()
        let isOpaque = opaqueKeys.contains(name)
        guard isOpaque || secretKeys.contains(name) else { return nil }
        let closingStart = cursor
        while cursor < bytes.count, bytes[cursor] == backslash { cursor += 1 }
        guard cursor < bytes.count, bytes[cursor] == quote else { return nil }
        cursor += 1
        let closing = bytes[closingStart..<cursor]
        cursor = skipSpace(bytes, cursor)
        guard cursor < bytes.count, bytes[cursor] == UInt8(ascii: ":") else { return nil }
        cursor = skipSpace(bytes, cursor + 1)
        let depth = closing.count - 1
        if let end = stringEnd(bytes, cursor, escapes: depth) {
            return Pair(key: key, closing: closing, end: end)
        }
        guard isOpaque, cursor < bytes.count else { return nil }
        return Pair(key: key, closing: closing, end: valueEnd(bytes, cursor, escapes: depth))
    }

    /// Index behind the string that starts at `start` with `escapes` backslashes before its quotes, or nil if there is
    /// none. A string that never ends reaches to the end of the text.
    private static func stringEnd(_ bytes: [UInt8], _ start: Int, escapes: Int) -> Int? {
        var cursor = start
        while cursor < bytes.count, bytes[cursor] == backslash { cursor += 1 }
        guard cursor - start == escapes, cursor < bytes.count, bytes[cursor] == quote else { return nil }
        cursor += 1
        var run = 0
        while cursor < bytes.count {
            if bytes[cursor] == backslash {
                run += 1
            } else {
                if bytes[cursor] == quote {
                    // At nesting level n quotes of content carry more backslashes than the string's own.
                    if escapes == 0 ? run % 2 == 0 : run <= escapes { return cursor + 1 }
                }
                run = 0
            }
            cursor += 1
        }
        return bytes.count
    }

    /// Index behind any other JSON value. Brackets inside strings do not count.
    private static func valueEnd(_ bytes: [UInt8], _ start: Int, escapes: Int) -> Int {
        var cursor = start
        var depth = 0
        while cursor < bytes.count {
            if let end = stringEnd(bytes, cursor, escapes: escapes) {
                cursor = end
                if depth == 0 { return cursor }
                continue
            }
            switch bytes[cursor] {
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                if depth == 0 { return cursor }
                depth -= 1
                if depth == 0 { return cursor + 1 }
            case UInt8(ascii: ","):
                if depth == 0 { return cursor }
            default: break
            }
            cursor += 1
        }
        return bytes.count
    }

    // MARK: Lines

    /// Values of SDP's ICE passwords and of authorization headers, to the end of the line.
    private static func maskLines(_ bytes: [UInt8]) -> [UInt8]? {
        var result: [UInt8]?
        for prefix in ["ice-pwd:", "authorization:"] {
            result = mask(after: Array(prefix.utf8), in: result ?? bytes) ?? result
        }
        return result
    }

    private static func mask(after prefix: [UInt8], in bytes: [UInt8]) -> [UInt8]? {
        guard bytes.count > prefix.count else { return nil }
        var output: [UInt8] = []
        var changed = false
        var index = 0
        while index < bytes.count {
            let end = index + prefix.count
            let hit =
                end <= bytes.count
                && zip(bytes[index..<end], prefix).allSatisfy { lowercased($0) == $1 }
            guard hit else {
                output.append(bytes[index])
                index += 1
                continue
            }
            output += bytes[index..<end]
            output += Array(replacement.utf8)
            index = end
            while index < bytes.count, !isLineEnd(bytes, index) { index += 1 }
            changed = true
        }
        return changed ? output : nil
    }

    // MARK: URLs

    /// User information (`scheme://user:password@host`) and query of every URL.
    private static func maskURLs(_ bytes: [UInt8]) -> [UInt8]? {
        let marker = Array("://".utf8)
        guard bytes.count > marker.count else { return nil }
        var output: [UInt8] = []
        var changed = false
        var index = 0
        while index < bytes.count {
            let end = index + marker.count
            guard end <= bytes.count, bytes[index..<end].elementsEqual(marker) else {
                output.append(bytes[index])
                index += 1
                continue
            }
            output += marker
            index = end
            let urlEnd = bytes[end...].firstIndex(where: isURLEnd) ?? bytes.count
            let authorityEnd =
                bytes[end..<urlEnd].firstIndex {
                    $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#")
                } ?? urlEnd
            if let at = bytes[end..<authorityEnd].lastIndex(of: UInt8(ascii: "@")) {
                output += Array("\(replacement)@".utf8)
                index = at + 1
                changed = true
            }
            if let question = bytes[index..<urlEnd].firstIndex(of: UInt8(ascii: "?")) {
                output += bytes[index...question]
                output += Array(replacement.utf8)
                changed = true
            } else {
                output += bytes[index..<urlEnd]
            }
            index = urlEnd
        }
        return changed ? output : nil
    }

    // MARK: JSON Web Tokens

    /// Three runs of base64url letters joined by dots, the first of which starts like `{"` in base64.
    private static func maskTokens(_ bytes: [UInt8]) -> [UInt8]? {
        let start = Array("eyJ".utf8)
        guard bytes.count > start.count else { return nil }
        var output: [UInt8] = []
        var changed = false
        var index = 0
        while index < bytes.count {
            let fits = index + start.count <= bytes.count && bytes[index..<(index + start.count)].elementsEqual(start)
            let isFirst = index == 0 || !isTokenByte(bytes[index - 1])
            guard fits, isFirst else {
                output.append(bytes[index])
                index += 1
                continue
            }
            var end = index
            var dots = 0
            while end < bytes.count, isTokenByte(bytes[end]) || (bytes[end] == UInt8(ascii: ".") && dots < 2) {
                if bytes[end] == UInt8(ascii: ".") { dots += 1 }
                end += 1
            }
            if dots >= 1 {
                output += Array(replacement.utf8)
                changed = true
            } else {
                output += bytes[index..<end]
            }
            index = end
        }
        return changed ? output : nil
    }

    // MARK: Bytes

    private static let quote = UInt8(ascii: "\"")
    private static let backslash = UInt8(ascii: "\\")

    private static func isKeyByte(_ byte: UInt8) -> Bool {
        isLetterOrDigit(byte) || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "-")
    }
    private static func isTokenByte(_ byte: UInt8) -> Bool {
        isLetterOrDigit(byte) || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "-")
    }
    private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: false
        }
    }
    private static func lowercased(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte + 32 : byte
    }
    private static func isURLEnd(_ byte: UInt8) -> Bool {
        byte <= 0x20 || byte == quote || byte == backslash || byte == UInt8(ascii: "'") || byte == UInt8(ascii: "<")
            || byte == UInt8(ascii: ">") || byte == UInt8(ascii: ")") || byte == UInt8(ascii: "]")
            || byte == UInt8(ascii: "}")
    }
    /// A line ends at its end, or at an escaped one (`\r\n` inside JSON text).
    private static func isLineEnd(_ bytes: [UInt8], _ index: Int) -> Bool {
        let byte = bytes[index]
        return byte == 10 || byte == 13 || byte == backslash || byte == quote
    }
    private static func skipSpace(_ bytes: [UInt8], _ start: Int) -> Int {
        var cursor = start
        while cursor < bytes.count,
            bytes[cursor] == 0x20 || bytes[cursor] == 9 || bytes[cursor] == 10 || bytes[cursor] == 13
        {
            cursor += 1
        }
        return cursor
    }
}
