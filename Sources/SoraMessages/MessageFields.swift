// How message structs read and write their members.

/// A value that stands in JSON. `init?(json:)` is nil for a value of another type.
package protocol JSONConvertible {
    init?(json: JSONValue)
    var json: JSONValue { get }
}

extension JSONValue: JSONConvertible {
    package init?(json: JSONValue) { self = json }
    package var json: JSONValue { self }
}

extension JSONObject: JSONConvertible {
    package init?(json: JSONValue) {
        guard let object = json.objectValue else { return nil }
        self = object
    }
    package var json: JSONValue { .object(self) }
}

extension String: JSONConvertible {
    package init?(json: JSONValue) {
        guard let text = json.stringValue else { return nil }
        self = text
    }
    package var json: JSONValue { .string(self) }
}

extension Bool: JSONConvertible {
    package init?(json: JSONValue) {
        guard let value = json.boolValue else { return nil }
        self = value
    }
    package var json: JSONValue { .bool(self) }
}

extension Int: JSONConvertible {
    /// Any JSON number; clamped when out of range.
    package init?(json: JSONValue) {
        guard let value = json.intValue else { return nil }
        self = value
    }
    package var json: JSONValue { .integer(Int64(self)) }
}

extension Double: JSONConvertible {
    package init?(json: JSONValue) {
        guard let value = json.doubleValue else { return nil }
        self = value
    }
    package var json: JSONValue { .double(self) }
}

extension Array: JSONConvertible where Element: JSONConvertible {
    /// Nil if one element does not fit.
    package init?(json: JSONValue) {
        guard let items = json.arrayValue else { return nil }
        self = []
        reserveCapacity(items.count)
        for item in items {
            guard let element = Element(json: item) else { return nil }
            append(element)
        }
    }
    package var json: JSONValue { .array(map(\.json)) }
}

extension JSONConvertible where Self: RawRepresentable, RawValue == String {
    package init?(json: JSONValue) {
        guard let text = json.stringValue, let value = Self(rawValue: text) else { return nil }
        self = value
    }
    package var json: JSONValue { .string(rawValue) }
}

/// Takes members out of an object one after the other. What nobody took stays in ``rest``, which the
/// message keeps, so that decoding and encoding again loses nothing.
struct FieldReader {
    private(set) var rest: JSONObject
    /// Keys that were there with a value of the wrong type. Their values stay in ``rest``.
    private(set) var mistyped: [String] = []

    init(_ object: JSONObject) { rest = object }

    /// The value of `key`. Null counts as absent, except for a `JSONValue`, which may be null.
    mutating func read<Value: JSONConvertible>(_ key: String, as type: Value.Type = Value.self) -> Value? {
        guard let json = rest[key] else { return nil }
        if json.isNull, !(type is JSONValue.Type) { return nil }
        guard let value = Value(json: json) else {
            mistyped.append(key)
            return nil
        }
        rest[key] = nil
        return value
    }

    /// Removes a key whose value the caller knows.
    mutating func drop(_ key: String) { rest[key] = nil }
}

extension JSONObject {
    /// Sets `key`; a nil value leaves the key out.
    package mutating func set(_ key: String, _ value: (some JSONConvertible)?) {
        guard let value else { return }
        self[key] = value.json
    }
}

/// Why a signaling message cannot be used.
package enum MessageError: Error, Equatable, Sendable, CustomStringConvertible {
    case json(JSONError)
    case notAnObject
    /// There is no `type`, or it is not a string.
    case missingType
    /// `key` of a message of type `type` is missing or has the wrong type.
    case invalid(type: String, key: String)

    package var description: String {
        switch self {
        case .json(let error): error.description
        case .notAnObject: "signaling message is not a JSON object"
        case .missingType: "signaling message has no \"type\" string"
        case .invalid(let type, let key):
            "signaling message \"\(type)\": key \"\(key)\" is missing or has the wrong type"
        }
    }
}

extension FieldReader {
    /// Fails if a key that was read had the wrong type.
    func check(_ type: String) throws(MessageError) {
        if let key = mistyped.first { throw .invalid(type: type, key: key) }
    }

    mutating func require<Value: JSONConvertible>(_ key: String, in type: String) throws(MessageError) -> Value {
        guard let value: Value = read(key) else { throw .invalid(type: type, key: key) }
        return value
    }
}
