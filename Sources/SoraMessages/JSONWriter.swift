extension JSONValue {
    /// Compact JSON text.
    package var text: String { String(decoding: utf8, as: UTF8.self) }

    /// Compact JSON text as UTF-8 bytes.
    package var utf8: [UInt8] {
        var output: [UInt8] = []
        write(to: &output)
        return output
    }

    private func write(to output: inout [UInt8]) {
        switch self {
        case .null: output += Array("null".utf8)
        case .bool(let value): output += Array((value ? "true" : "false").utf8)
        case .integer(let value): output += Array(String(value).utf8)
        // JSON has no infinity and no NaN.
        case .double(let value): output += Array((value.isFinite ? value.description : "null").utf8)
        case .string(let value): JSONValue.write(value, to: &output)
        case .array(let items):
            output.append(UInt8(ascii: "["))
            for (index, item) in items.enumerated() {
                if index > 0 { output.append(UInt8(ascii: ",")) }
                item.write(to: &output)
            }
            output.append(UInt8(ascii: "]"))
        case .object(let object):
            output.append(UInt8(ascii: "{"))
            for (index, member) in object.members.enumerated() {
                if index > 0 { output.append(UInt8(ascii: ",")) }
                JSONValue.write(member.key, to: &output)
                output.append(UInt8(ascii: ":"))
                member.value.write(to: &output)
            }
            output.append(UInt8(ascii: "}"))
        }
    }

    private static func write(_ text: String, to output: inout [UInt8]) {
        output.append(UInt8(ascii: "\""))
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): output += [UInt8(ascii: "\\"), byte]
            case 10: output += [UInt8(ascii: "\\"), UInt8(ascii: "n")]
            case 13: output += [UInt8(ascii: "\\"), UInt8(ascii: "r")]
            case 9: output += [UInt8(ascii: "\\"), UInt8(ascii: "t")]
            case 0..<32, 127:
                let digits = String(byte, radix: 16)
                output += Array("\\u".utf8) + Array(String(repeating: "0", count: 4 - digits.count).utf8)
                output += Array(digits.utf8)
            default: output.append(byte)
            }
        }
        output.append(UInt8(ascii: "\""))
    }
}

extension JSONObject {
    /// Compact JSON text.
    package var text: String { JSONValue.object(self).text }
}
