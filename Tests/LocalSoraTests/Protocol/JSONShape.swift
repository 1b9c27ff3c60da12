import SoraMessages

/// What a JSON value must look like: a small schema language for the tables of spec/signaling.md 3.
indirect enum JSONShape: Sendable {
    case any, string, bool, integer, number
    /// An object with whatever keys.
    case anyObject
    /// One of these texts.
    case word([String])
    case integerIn(ClosedRange<Int>)
    /// A string that satisfies the condition; the name says what it is.
    case text(String, @Sendable (String) -> Bool)
    case array(JSONShape)
    case nullable(JSONShape)
    case object([Key])

    struct Key: Sendable {
        var name: String
        var shape: JSONShape
        var isRequired: Bool
    }

    static func required(_ name: String, _ shape: JSONShape) -> Key {
        Key(name: name, shape: shape, isRequired: true)
    }
    static func optional(_ name: String, _ shape: JSONShape) -> Key {
        Key(name: name, shape: shape, isRequired: false)
    }

    /// What of `value` does not fit, each with its path. Keys that the shape does not name do not fit.
    func faults(_ value: JSONValue, at path: String) -> [String] {
        func fault(_ expected: String) -> [String] { ["\(path): \(value.text.prefix(80)) is no \(expected)"] }
        switch self {
        case .any: return []
        case .anyObject: return value.objectValue == nil ? fault("object") : []
        case .string: return value.stringValue == nil ? fault("string") : []
        case .bool: return value.boolValue == nil ? fault("boolean") : []
        case .integer:
            if case .integer = value { return [] }
            return fault("integer")
        case .number: return value.doubleValue == nil ? fault("number") : []
        case .word(let words):
            return value.stringValue.map(words.contains) == true
                ? [] : fault("word of \(words.joined(separator: ", "))")
        case .integerIn(let range):
            if case .integer(let number) = value, range.contains(Int(number)) { return [] }
            return fault("integer in \(range)")
        case .text(let name, let isValid): return value.stringValue.map(isValid) == true ? [] : fault(name)
        case .array(let element):
            guard let items = value.arrayValue else { return fault("array") }
            return items.enumerated().flatMap { element.faults($0.element, at: "\(path)[\($0.offset)]") }
        case .nullable(let shape): return value.isNull ? [] : shape.faults(value, at: path)
        case .object(let keys):
            guard let object = value.objectValue else { return fault("object") }
            var faults: [String] = []
            for key in keys {
                if let member = object[key.name] {
                    faults += key.shape.faults(member, at: "\(path).\(key.name)")
                } else if key.isRequired {
                    faults.append("\(path).\(key.name) is missing")
                }
            }
            let known = Set(keys.map(\.name))
            faults += object.keys.filter { !known.contains($0) }.map { "\(path).\($0) is unknown" }
            return faults
        }
    }
}
