/// Swift source without its comments and without what its string literals say. Interpolations are code.
struct SourceCode {
    private(set) var bytes: [UInt8] = []
    private let source: [UInt8]
    private var index = 0

    init(_ text: String) {
        source = Array(text.utf8)
        copyCode()
    }

    /// The words of a text: names and numbers.
    static func words(of text: some Collection<UInt8>) -> Set<String> {
        let words = text.split { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
                false
            default: true
            }
        }
        return Set(words.map { String(decoding: $0, as: UTF8.self) })
    }

    private func sees(_ text: StaticString, at offset: Int = 0) -> Bool {
        let wanted = UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
        return source.dropFirst(index + offset).starts(with: wanted)
    }

    private func hashes(at offset: Int = 0) -> Int {
        source.dropFirst(index + offset).prefix { $0 == UInt8(ascii: "#") }.count
    }

    /// Up to the end, or to the parenthesis that closes an interpolation.
    private mutating func copyCode(isInterpolation: Bool = false) {
        var depth = 0
        while index < source.count {
            if sees("//") {
                while index < source.count, source[index] != UInt8(ascii: "\n") { index += 1 }
            } else if sees("/*") {
                skipComment()
            } else if sees("\"", at: hashes()) {
                skipString(hashes: hashes())
            } else {
                switch source[index] {
                case UInt8(ascii: "("): depth += 1
                case UInt8(ascii: ")"): depth -= 1
                default: break
                }
                bytes.append(source[index])
                index += 1
                if isInterpolation, depth < 0 { return }
            }
        }
    }

    /// Comments nest.
    private mutating func skipComment() {
        var depth = 0
        repeat {
            if sees("/*") {
                depth += 1
                index += 2
            } else if sees("*/") {
                depth -= 1
                index += 2
            } else {
                index += 1
            }
        } while depth > 0 && index < source.count
        bytes.append(UInt8(ascii: " "))
    }

    private mutating func skipString(hashes count: Int) {
        index += count
        let isBlock = sees("\"\"\"")
        let quotes = isBlock ? 3 : 1
        index += quotes
        while index < source.count {
            if sees("\\"), hashes(at: 1) >= count {
                index += 1 + count
                let isInterpolation = sees("(")
                index += 1
                bytes.append(UInt8(ascii: " "))
                if isInterpolation { copyCode(isInterpolation: true) }
            } else if isBlock ? sees("\"\"\"") : sees("\""), hashes(at: quotes) >= count {
                index += quotes + count
                break
            } else if !isBlock, sees("\n") {
                // No string after all; a quotation mark in a regular expression.
                break
            } else {
                index += 1
            }
        }
        bytes.append(UInt8(ascii: " "))
    }
}
