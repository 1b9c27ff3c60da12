import Foundation
internal import SoraMessages

extension JSONValue {
    /// The public value for a value of signaling; nil for numbers that JSON cannot hold.
    init?(wire value: SoraMessages.JSONValue) {
        switch value {
        case .null: self = .null
        case .bool(let flag): self = .bool(flag)
        case .integer(let number): self = .decimal(Decimal(number))
        case .double(let number):
            guard let value = JSONValue(foundationObject: NSNumber(value: number)) else { return nil }
            self = value
        case .string(let text): self = .string(text)
        case .array(let elements): self = .array(elements.compactMap { JSONValue(wire: $0) })
        case .object(let object):
            var members: [String: JSONValue] = [:]
            for member in object.members { members[member.key] = JSONValue(wire: member.value) }
            self = .object(members)
        }
    }

    /// The value as signaling writes it.
    var wire: SoraMessages.JSONValue {
        switch self {
        case .null: return .null
        case .bool(let flag): return .bool(flag)
        case .decimal(let number):
            let digits = number.description
            if let integer = Int64(digits) { return .integer(integer) }
            return .double(Double(digits) ?? 0)
        case .double(let number): return .double(number)
        case .string(let text): return .string(text)
        case .array(let elements): return .array(elements.map(\.wire))
        case .object(let members):
            var object = SoraMessages.JSONObject()
            for key in members.keys.sorted() { object[key] = members[key]?.wire }
            return .object(object)
        }
    }
}

extension StatisticsRecord {
    /// The record as signaling sends it: the fixed keys win over values of the same name.
    var wire: SoraMessages.JSONValue {
        var object = SoraMessages.JSONObject()
        for key in values.keys.sorted() { object[key] = values[key]?.wire }
        object["id"] = .string(id)
        object["type"] = .string(type)
        object["timestamp"] = .double(timestamp)
        return .object(object)
    }
}
