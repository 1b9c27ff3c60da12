/// Header fields in the order of the message. Names compare without regard to case (RFC 9110, 5.1).
package struct HTTPHeaders: Sendable, Equatable, ExpressibleByDictionaryLiteral {
    package struct Field: Sendable, Equatable {
        package var name: String
        package var value: String
        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    package private(set) var fields: [Field] = []

    package init() {}
    package init(_ fields: [Field]) { self.fields = fields }
    package init(dictionaryLiteral elements: (String, String)...) {
        fields = elements.map { Field($0, $1) }
    }

    package var count: Int { fields.count }

    /// The first value of that name. Setting replaces all values by one, nil removes them.
    package subscript(name: String) -> String? {
        get { fields.first { HTTPHeaders.isSame($0.name, name) }?.value }
        set {
            let place = fields.firstIndex { HTTPHeaders.isSame($0.name, name) }
            fields.removeAll { HTTPHeaders.isSame($0.name, name) }
            if let newValue { fields.insert(Field(name, newValue), at: place ?? fields.count) }
        }
    }

    package mutating func add(_ name: String, _ value: String) { fields.append(Field(name, value)) }

    /// All values of that name, in order.
    package func values(_ name: String) -> [String] {
        fields.compactMap { HTTPHeaders.isSame($0.name, name) ? $0.value : nil }
    }

    /// The elements of a comma-separated list header, over all its lines. Not for values that hold
    /// quoted commas.
    package func list(_ name: String) -> [String] {
        values(name).flatMap { value in
            value.split(separator: ",").map { trimmed($0) }.filter { !$0.isEmpty }
        }
    }

    /// Whether a list header contains `token`, in any case.
    package func contains(_ name: String, token: String) -> Bool {
        list(name).contains { HTTPHeaders.isSame($0, token) }
    }

    /// Equality of ASCII text without regard to case.
    package static func isSame(_ a: some StringProtocol, _ b: some StringProtocol) -> Bool {
        a.utf8.count == b.utf8.count && zip(a.utf8, b.utf8).allSatisfy { lower($0) == lower($1) }
    }

    /// Appends the lines with their CRLFs. A field whose name is no token is left out, and control
    /// characters in values become spaces: no value can start a line of its own.
    func write(into bytes: inout [UInt8]) {
        for field in fields where !field.name.isEmpty && field.name.utf8.allSatisfy(isTokenCharacter) {
            bytes += field.name.utf8
            bytes += [0x3A, 0x20]
            bytes += field.value.utf8.map { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F ? 0x20 : $0 }
            bytes += [0x0D, 0x0A]
        }
    }
}

/// RFC 9110, 5.6.2.
func isTokenCharacter(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"):
        true
    case UInt8(ascii: "!"), UInt8(ascii: "#"), UInt8(ascii: "$"), UInt8(ascii: "%"), UInt8(ascii: "&"),
        UInt8(ascii: "'"), UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "-"), UInt8(ascii: "."),
        UInt8(ascii: "^"), UInt8(ascii: "_"), UInt8(ascii: "`"), UInt8(ascii: "|"), UInt8(ascii: "~"):
        true
    default: false
    }
}

func lower(_ byte: UInt8) -> UInt8 {
    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte + 32 : byte
}

/// Without spaces and tabs at the ends.
func trimmed(_ text: some StringProtocol) -> String {
    let isBlank: (UInt8) -> Bool = { $0 == 0x20 || $0 == 0x09 }
    let bytes = text.utf8.drop(while: isBlank)
    return String(decoding: Array(bytes).reversed().drop(while: isBlank).reversed(), as: UTF8.self)
}
