/// The texts of an enum that travels as one JSON string.
struct NamedCases<Value: Equatable & Sendable>: Sendable {
    private let pairs: [(Value, String)]

    init(_ pairs: [(Value, String)]) { self.pairs = pairs }

    /// The text of `value`; empty for a case that has none.
    func text(for value: Value) -> String { pairs.first { $0.0 == value }?.1 ?? "" }

    func value(for text: String) -> Value? { pairs.first { $0.1 == text }?.0 }

    /// Reads one JSON string. An unknown one is `DecodingError.dataCorrupted`.
    func decode(from decoder: any Decoder) throws -> Value {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        guard let value = value(for: text) else {
            throw DecodingError.dataCorruptedError(
                in: container, debugDescription: "\"\(text)\" is none of \(pairs.map(\.1).joined(separator: ", "))")
        }
        return value
    }

    /// Writes one JSON string. A case without text is `EncodingError.invalidValue`.
    func encode(_ value: Value, to encoder: any Encoder) throws {
        guard let text = pairs.first(where: { $0.0 == value })?.1 else {
            throw EncodingError.invalidValue(
                value,
                EncodingError.Context(
                    codingPath: encoder.codingPath, debugDescription: "\(value) has no representation in JSON"))
        }
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }
}
