/// One challenge of a Proxy-Authenticate or WWW-Authenticate header (RFC 9110, 11.3).
package struct HTTPChallenge: Sendable, Equatable {
    /// Lower case.
    package var scheme: String
    /// Names in lower case; of repeated ones the first.
    package var parameters: [String: String]

    package init(scheme: String, parameters: [String: String] = [:]) {
        self.scheme = scheme
        self.parameters = parameters
    }

    /// All challenges of the header's lines. What cannot be read is stepped over up to the next comma.
    package static func parse(_ values: [String]) -> [HTTPChallenge] {
        values.flatMap { value in
            var scanner = Scanner(bytes: Array(value.utf8))
            return scanner.challenges()
        }
    }

    private struct Scanner {
        let bytes: [UInt8]
        var position = 0

        mutating func challenges() -> [HTTPChallenge] {
            var result: [HTTPChallenge] = []
            while position < bytes.count {
                skip { $0 == 0x20 || $0 == 0x09 || $0 == UInt8(ascii: ",") }
                let word = token()
                if word.isEmpty {
                    skip { $0 != UInt8(ascii: ",") }
                    continue
                }
                let gap = position
                skip { $0 == 0x20 || $0 == 0x09 }
                if peek == UInt8(ascii: "="), !result.isEmpty, let value = parameterValue() {
                    let name = word.lowercased()
                    if result[result.count - 1].parameters[name] == nil {
                        result[result.count - 1].parameters[name] = value
                    }
                } else if peek == nil || peek == UInt8(ascii: ",") || position > gap {
                    result.append(HTTPChallenge(scheme: word.lowercased()))
                } else {
                    skip { $0 != UInt8(ascii: ",") }
                }
            }
            return result
        }

        var peek: UInt8? { position < bytes.count ? bytes[position] : nil }

        mutating func skip(while condition: (UInt8) -> Bool) {
            while let byte = peek, condition(byte) { position += 1 }
        }

        mutating func token() -> String {
            let start = position
            skip(while: isTokenCharacter)
            return String(decoding: bytes[start..<position], as: UTF8.self)
        }

        /// Behind `=`: a token or a quoted string.
        mutating func parameterValue() -> String? {
            position += 1
            skip { $0 == 0x20 || $0 == 0x09 }
            guard peek == UInt8(ascii: "\"") else { return token() }
            position += 1
            var text: [UInt8] = []
            while let byte = peek {
                position += 1
                if byte == UInt8(ascii: "\"") { return String(decoding: text, as: UTF8.self) }
                if byte == UInt8(ascii: "\\"), let escaped = peek {
                    text.append(escaped)
                    position += 1
                } else {
                    text.append(byte)
                }
            }
            return nil
        }
    }
}
