import Foundation

/// Any JSON value.
public enum JSONValue: Sendable, Equatable, Codable {
    /// `null`
    case null
    /// `true` or `false`
    case bool(Bool)
    /// Every number that fits, exactly.
    case decimal(Decimal)
    /// Numbers beyond the range of `Decimal`.
    case double(Double)
    /// A text.
    case string(String)
    /// Values in order.
    case array([JSONValue])
    /// Values by name.
    case object([String: JSONValue])

    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Decimal.self), !value.isNaN {
            self = .decimal(value)
        } else if let value = try? container.decode(Double.self) {
            self = .double(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode([JSONValue].self) {
            self = .array(value)
        } else {
            self = .object(try container.decode([String: JSONValue].self))
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        switch self {
        case .null: try container.encodeNil()
        case .bool(let value): try container.encode(value)
        case .decimal(let value): try container.encode(value)
        case .double(let value): try container.encode(value)
        case .string(let value): try container.encode(value)
        case .array(let value): try container.encode(value)
        case .object(let value): try container.encode(value)
        }
    }
}

extension JSONValue {
    /// The value for an object made by `JSONSerialization` or by hand from `NSNumber`, `NSString`, `NSNull`, arrays and
    /// dictionaries. Nil for anything else, also for numbers that are not finite.
    init?(foundationObject object: Any) {
        switch object {
        case is NSNull: self = .null
        case let value as NSNumber:
            if value.isBoolean {
                self = .bool(value.boolValue)
            } else {
                guard let number = JSONValue(number: value) else { return nil }
                self = number
            }
        case let value as String: self = .string(value)
        case let value as NSString: self = .string(value as String)
        case let value as Bool: self = .bool(value)
        case let value as Int: self = .decimal(Decimal(value))
        case let value as Double:
            guard value.isFinite else { return nil }
            self = .decimal(Decimal(value))
        case let values as [Any]:
            var list: [JSONValue] = []
            list.reserveCapacity(values.count)
            for element in values {
                guard let value = JSONValue(foundationObject: element) else { return nil }
                list.append(value)
            }
            self = .array(list)
        case let values as [String: Any]:
            var members: [String: JSONValue] = [:]
            for (key, element) in values {
                guard let value = JSONValue(foundationObject: element) else { return nil }
                members[key] = value
            }
            self = .object(members)
        default: return nil
        }
    }

    /// A number, exactly where `Decimal` can hold it. Nil for numbers that are not finite.
    private init?(number: NSNumber) {
        let type = UInt8(bitPattern: number.objCType.pointee)
        if type == UInt8(ascii: "d") || type == UInt8(ascii: "f") {
            let double = number.doubleValue
            guard double.isFinite else { return nil }
            if let decimal = Decimal(string: "\(double)"), !decimal.isNaN, decimal != 0 || double == 0 {
                self = .decimal(decimal)
            } else {
                self = .double(double)
            }
        } else if type == UInt8(ascii: "Q") {
            self = .decimal(Decimal(number.uint64Value))
        } else {
            self = .decimal(Decimal(number.int64Value))
        }
    }

    /// The value as `JSONSerialization` would have made it: `NSNumber`, `String`, `NSNull`, `[Any]`, `[String: Any]`.
    var foundationObject: Any {
        switch self {
        case .null: return NSNull()
        case .bool(let value): return NSNumber(value: value)
        case .decimal(let value):
            // By the digits: every other way leads through a double.
            let digits = value.description
            if let integer = Int64(digits) { return NSNumber(value: integer) }
            return NSNumber(value: Double(digits) ?? .nan)
        case .double(let value): return NSNumber(value: value)
        case .string(let value): return value
        case .array(let value): return value.map(\.foundationObject)
        case .object(let value): return value.mapValues(\.foundationObject)
        }
    }
}

extension NSNumber {
    /// True for JSON's `true` and `false`, which Foundation keeps as numbers.
    var isBoolean: Bool {
        let type = UInt8(bitPattern: objCType.pointee)
        return type == UInt8(ascii: "c") || type == UInt8(ascii: "B")
    }
}
