/// Why a text is not JSON that signaling accepts.
package enum JSONError: Error, Equatable, Sendable, CustomStringConvertible {
    case tooLarge(bytes: Int, limit: Int)
    case tooDeep(limit: Int, offset: Int)
    case invalidUTF8
    /// At byte `offset` stands something else than `expected`.
    case syntax(offset: Int, expected: String)

    package var description: String {
        switch self {
        case .tooLarge(let bytes, let limit): "JSON text has \(bytes) bytes, more than the limit of \(limit)"
        case .tooDeep(let limit, let offset): "JSON text nests deeper than \(limit) levels at byte \(offset)"
        case .invalidUTF8: "JSON text is not valid UTF-8"
        case .syntax(let offset, let expected): "malformed JSON at byte \(offset): expected \(expected)"
        }
    }
}

extension JSONValue {
    /// Levels of arrays and objects that a text may nest: far more than any message has, few enough
    /// for the smallest thread stack.
    package static let maximumDepth = 256
    /// Bytes that a text may have unless the caller says otherwise.
    package static let maximumSize = 8 << 20

    /// Reads one JSON value and nothing behind it.
    package init(parsing text: String, maximumSize: Int = JSONValue.maximumSize) throws(JSONError) {
        guard text.utf8.count <= maximumSize else {
            throw .tooLarge(bytes: text.utf8.count, limit: maximumSize)
        }
        var parser = JSONParser(bytes: Array(text.utf8))
        self = try parser.parseDocument()
    }

    /// Reads one JSON value from UTF-8 bytes.
    package init(parsing bytes: [UInt8], maximumSize: Int = JSONValue.maximumSize) throws(JSONError) {
        guard bytes.count <= maximumSize else { throw .tooLarge(bytes: bytes.count, limit: maximumSize) }
        guard String(validating: bytes, as: UTF8.self) != nil else { throw .invalidUTF8 }
        var parser = JSONParser(bytes: bytes)
        self = try parser.parseDocument()
    }
}

/// A strict RFC 8259 reader over valid UTF-8. Total and linear; recursion is bounded by
/// ``JSONValue/maximumDepth``. A lone surrogate escape becomes U+FFFD, since no Swift string holds it.
struct JSONParser {
    let bytes: [UInt8]
    private var position = 0
    private var depth = 0

    init(bytes: [UInt8]) { self.bytes = bytes }

    mutating func parseDocument() throws(JSONError) -> JSONValue {
        let value = try parseValue()
        skipSpace()
        guard position == bytes.count else { throw syntax("the end of the text") }
        return value
    }

    private func syntax(_ expected: String) -> JSONError { .syntax(offset: position, expected: expected) }

    private var current: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func skipSpace() {
        while let byte = current, byte == 32 || byte == 10 || byte == 13 || byte == 9 { position += 1 }
    }

    private mutating func parseValue() throws(JSONError) -> JSONValue {
        skipSpace()
        switch current {
        case UInt8(ascii: "{"): return .object(try parseObject())
        case UInt8(ascii: "["): return .array(try parseArray())
        case UInt8(ascii: "\""): return .string(try parseString())
        case UInt8(ascii: "t"):
            try expect("true")
            return .bool(true)
        case UInt8(ascii: "f"):
            try expect("false")
            return .bool(false)
        case UInt8(ascii: "n"):
            try expect("null")
            return .null
        case .some(let byte) where byte == UInt8(ascii: "-") || (48...57).contains(byte): return try parseNumber()
        default: throw syntax("a JSON value")
        }
    }

    private mutating func expect(_ word: StaticString) throws(JSONError) {
        let count = word.utf8CodeUnitCount
        let matches =
            bytes.count - position >= count
            && word.withUTF8Buffer { buffer in (0..<count).allSatisfy { bytes[position + $0] == buffer[$0] } }
        guard matches else { throw syntax("\(word)") }
        position += count
    }

    private mutating func enter() throws(JSONError) {
        guard depth < JSONValue.maximumDepth else { throw .tooDeep(limit: JSONValue.maximumDepth, offset: position) }
        depth += 1
        position += 1
        skipSpace()
    }

    private mutating func parseArray() throws(JSONError) -> [JSONValue] {
        try enter()
        defer { depth -= 1 }
        var items: [JSONValue] = []
        if current == UInt8(ascii: "]") {
            position += 1
            return items
        }
        while true {
            items.append(try parseValue())
            skipSpace()
            switch current {
            case UInt8(ascii: ","): position += 1
            case UInt8(ascii: "]"):
                position += 1
                return items
            default: throw syntax("\",\" or \"]\"")
            }
        }
    }

    private mutating func parseObject() throws(JSONError) -> JSONObject {
        try enter()
        defer { depth -= 1 }
        var members: [JSONObject.Member] = []
        var places: [String: Int] = [:]
        if current == UInt8(ascii: "}") {
            position += 1
            return JSONObject()
        }
        while true {
            skipSpace()
            guard current == UInt8(ascii: "\"") else { throw syntax("a key in quotation marks") }
            let key = try parseString()
            skipSpace()
            guard current == UInt8(ascii: ":") else { throw syntax("\":\"") }
            position += 1
            let value = try parseValue()
            if let place = places[key] {
                members[place].value = value
            } else {
                places[key] = members.count
                members.append(.init(key: key, value: value))
            }
            skipSpace()
            switch current {
            case UInt8(ascii: ","): position += 1
            case UInt8(ascii: "}"):
                position += 1
                return JSONObject(distinct: members)
            default: throw syntax("\",\" or \"}\"")
            }
        }
    }

    private mutating func parseString() throws(JSONError) -> String {
        position += 1
        let start = position
        while let byte = current, byte != UInt8(ascii: "\""), byte != UInt8(ascii: "\\") {
            guard byte >= 32 else { throw syntax("an escape instead of a control character") }
            position += 1
        }
        if current == UInt8(ascii: "\"") {
            let text = String(decoding: bytes[start..<position], as: UTF8.self)
            position += 1
            return text
        }
        var content = Array(bytes[start..<position])
        while let byte = current {
            switch byte {
            case UInt8(ascii: "\""):
                position += 1
                return String(decoding: content, as: UTF8.self)
            case UInt8(ascii: "\\"):
                position += 1
                try parseEscape(into: &content)
            default:
                guard byte >= 32 else { throw syntax("an escape instead of a control character") }
                content.append(byte)
                position += 1
            }
        }
        throw syntax("the end of the string")
    }

    private mutating func parseEscape(into content: inout [UInt8]) throws(JSONError) {
        guard let byte = current else { throw syntax("an escape") }
        position += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): content.append(byte)
        case UInt8(ascii: "b"): content.append(8)
        case UInt8(ascii: "f"): content.append(12)
        case UInt8(ascii: "n"): content.append(10)
        case UInt8(ascii: "r"): content.append(13)
        case UInt8(ascii: "t"): content.append(9)
        case UInt8(ascii: "u"):
            var code = try parseHexadecimal()
            if (0xD800..<0xDC00).contains(code), current == UInt8(ascii: "\\"), position + 1 < bytes.count,
                bytes[position + 1] == UInt8(ascii: "u")
            {
                let bookmark = position
                position += 2
                let low = try parseHexadecimal()
                if (0xDC00..<0xE000).contains(low) {
                    code = 0x10000 + (code - 0xD800) << 10 + (low - 0xDC00)
                } else {
                    position = bookmark
                }
            }
            let scalar = Unicode.Scalar(code) ?? "\u{FFFD}"
            content.append(contentsOf: Array(String(Character(scalar)).utf8))
        default: throw syntax("an escape of JSON")
        }
    }

    private mutating func parseHexadecimal() throws(JSONError) -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<4 {
            guard let byte = current else { throw syntax("four hexadecimal digits") }
            switch byte {
            case 48...57: value = value << 4 | UInt32(byte - 48)
            case 65...70: value = value << 4 | UInt32(byte - 55)
            case 97...102: value = value << 4 | UInt32(byte - 87)
            default: throw syntax("four hexadecimal digits")
            }
            position += 1
        }
        return value
    }

    private mutating func skipDigits() throws(JSONError) {
        let start = position
        while let byte = current, (48...57).contains(byte) { position += 1 }
        guard position > start else { throw syntax("a digit") }
    }

    private mutating func parseNumber() throws(JSONError) -> JSONValue {
        let start = position
        var isInteger = true
        if current == UInt8(ascii: "-") { position += 1 }
        if current == UInt8(ascii: "0") { position += 1 } else { try skipDigits() }
        if current == UInt8(ascii: ".") {
            isInteger = false
            position += 1
            try skipDigits()
        }
        if current == UInt8(ascii: "e") || current == UInt8(ascii: "E") {
            isInteger = false
            position += 1
            if current == UInt8(ascii: "+") || current == UInt8(ascii: "-") { position += 1 }
            try skipDigits()
        }
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        if isInteger, text != "-0", let value = Int64(text) { return .integer(value) }
        guard let value = Double(text) else { throw syntax("a number") }
        // Out of range is clamped: infinity could not be written again.
        if value.isInfinite { return .double(value < 0 ? -.greatestFiniteMagnitude : .greatestFiniteMagnitude) }
        return .double(value)
    }
}
