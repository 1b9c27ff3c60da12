/// A JSON value (RFC 8259) as signaling needs it.
///
/// Signaling has its own reader and writer instead of Foundation's because Foundation cannot give
/// what the protocol needs: the difference between `1` and `1.0`, a nesting limit of our choice (deep
/// input must not overflow the stack), the order of keys for readable logs, and the difference
/// between an absent key, `null` and `{}`. It also keeps Foundation out of the server's message path.
package enum JSONValue: Sendable, Equatable {
    case null
    case bool(Bool)
    /// A number written without fraction and exponent that fits 64 bits: kept exactly.
    case integer(Int64)
    /// Any other number. Never infinite or NaN when it came from text.
    case double(Double)
    case string(String)
    case array([JSONValue])
    case object(JSONObject)
}

/// The members of a JSON object in their order. Each key is there once: of repeated keys in a text
/// the last counts, as in the browsers. Two objects are equal when their members are, in any order.
package struct JSONObject: Sendable, Equatable, ExpressibleByDictionaryLiteral {
    package struct Member: Sendable, Equatable {
        package var key: String
        package var value: JSONValue
    }
    package private(set) var members: [Member] = []

    package init() {}

    package init(dictionaryLiteral elements: (String, JSONValue)...) {
        for (key, value) in elements { self[key] = value }
    }

    /// Takes members whose keys are known to be different.
    init(distinct members: [Member]) { self.members = members }

    package var isEmpty: Bool { members.isEmpty }
    package var count: Int { members.count }
    package var keys: [String] { members.map(\.key) }

    /// The value of `key`; nil if the key is absent (JSON null is ``JSONValue/null``). Setting nil
    /// removes the key.
    package subscript(key: String) -> JSONValue? {
        get { members.first { $0.key == key }?.value }
        set {
            let index = members.firstIndex { $0.key == key }
            switch (index, newValue) {
            case (let index?, let value?): members[index].value = value
            case (let index?, nil): members.remove(at: index)
            case (nil, let value?): members.append(Member(key: key, value: value))
            case (nil, nil): break
            }
        }
    }

    /// Adds the members of `other` whose keys are not here.
    package mutating func append(missingFrom other: JSONObject) {
        let known = Set(members.map(\.key))
        for member in other.members where !known.contains(member.key) { members.append(member) }
    }

    package static func == (a: JSONObject, b: JSONObject) -> Bool {
        guard a.members.count == b.members.count else { return false }
        if a.members == b.members { return true }
        let other = Dictionary(b.members.map { ($0.key, $0.value) }, uniquingKeysWith: { _, last in last })
        return a.members.allSatisfy { other[$0.key] == $0.value }
    }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
    ExpressibleByBooleanLiteral, ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral, ExpressibleByNilLiteral
{
    package init(stringLiteral value: String) { self = .string(value) }
    package init(integerLiteral value: Int64) { self = .integer(value) }
    package init(floatLiteral value: Double) { self = .double(value) }
    package init(booleanLiteral value: Bool) { self = .bool(value) }
    package init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
    package init(dictionaryLiteral elements: (String, JSONValue)...) {
        var object = JSONObject()
        for (key, value) in elements { object[key] = value }
        self = .object(object)
    }
    package init(nilLiteral: ()) { self = .null }
}

extension JSONValue {
    package var stringValue: String? { if case .string(let value) = self { value } else { nil } }
    package var boolValue: Bool? { if case .bool(let value) = self { value } else { nil } }
    package var arrayValue: [JSONValue]? { if case .array(let value) = self { value } else { nil } }
    package var objectValue: JSONObject? { if case .object(let value) = self { value } else { nil } }
    package var isNull: Bool { if case .null = self { true } else { false } }

    /// Any JSON number as `Double`.
    package var doubleValue: Double? {
        switch self {
        case .integer(let value): Double(value)
        case .double(let value): value
        default: nil
        }
    }

    /// Any JSON number as `Int`: a fraction is cut off, what is out of range is clamped.
    package var intValue: Int? {
        switch self {
        case .integer(let value): return Int(value)
        case .double(let value):
            if value.isNaN { return nil }
            if value >= 0x1p63 { return .max }
            if value < -0x1p63 { return .min }
            return Int(value)
        default: return nil
        }
    }

    /// A number without fraction, in whatever notation; nil for anything else.
    package var exactIntValue: Int? {
        switch self {
        case .integer(let value): Int(value)
        case .double(let value): Int(exactly: value)
        default: nil
        }
    }
}
