import Foundation

/// Typed access to the members of one JSON object, as `JSONSerialization` made it.
///
/// JSON null counts as absent for typed members. A member of another type than asked for is
/// ``SoraError/invalidSignalingMessage``. Numbers may be written in any notation (`2e0` is an integer); what does not
/// fit is clamped.
struct SignalingObject {
    let members: [String: Any]

    init(_ members: [String: Any]) { self.members = members }

    /// Parses a message. Anything but a JSON object is an error.
    init(parsing data: Data) throws {
        guard let members = try JSONSerialization.jsonObject(with: data) as? [String: Any] else {
            throw SoraError.invalidSignalingMessage
        }
        self.members = members
    }

    /// Reads the object from any decoder, so that the signaling types work with every `Codable` coder.
    init(from decoder: any Decoder) throws {
        guard case .object(let object) = try JSONValue(from: decoder) else { throw SoraError.invalidSignalingMessage }
        members = object.mapValues(\.foundationObject)
    }

    /// The value as it is; JSON null is `NSNull`.
    func any(_ key: String) -> Any? { members[key] }

    func string(_ key: String) throws -> String? { try optional(key) { $0 as? String } }
    func bool(_ key: String) throws -> Bool? {
        try optional(key) { ($0 as? NSNumber).flatMap { $0.isBoolean ? $0.boolValue : nil } }
    }
    func double(_ key: String) throws -> Double? {
        try optional(key) { ($0 as? NSNumber).flatMap { $0.isBoolean ? nil : $0.doubleValue } }
    }
    func int(_ key: String) throws -> Int? {
        try optional(key) { value in
            guard let number = value as? NSNumber, !number.isBoolean else { return nil }
            let double = number.doubleValue
            if double.magnitude < 9e15 { return Int(double) }
            // Big integers lose digits as a double; what is beyond Int is clamped.
            if let exact = Int(number.stringValue) { return exact }
            return double < 0 ? Int.min : Int.max
        }
    }
    func object(_ key: String) throws -> SignalingObject? {
        try optional(key) { ($0 as? [String: Any]).map(SignalingObject.init) }
    }
    func objects(_ key: String) throws -> [SignalingObject]? {
        try optional(key) { ($0 as? [[String: Any]])?.map(SignalingObject.init) }
    }
    func strings(_ key: String) throws -> [String]? { try optional(key) { $0 as? [String] } }

    func required<Value>(_ value: Value?) throws -> Value {
        guard let value else { throw SoraError.invalidSignalingMessage }
        return value
    }

    private func optional<Value>(_ key: String, _ convert: (Any) -> Value?) throws -> Value? {
        guard let value = members[key], !(value is NSNull) else { return nil }
        guard let converted = convert(value) else { throw SoraError.invalidSignalingMessage }
        return converted
    }
}

/// A coding key with any text.
struct SignalingKey: CodingKey, ExpressibleByStringLiteral {
    var stringValue: String
    var intValue: Int? { nil }
    init(stringLiteral value: String) { stringValue = value }
    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { return nil }
}

extension KeyedEncodingContainer where Key == SignalingKey {
    /// Writes any `Encodable` if there is one; nil leaves the key out.
    mutating func encodeAny(_ value: (any Encodable)?, forKey key: SignalingKey) throws {
        guard let value else { return }
        try value.encode(to: superEncoder(forKey: key))
    }
}
