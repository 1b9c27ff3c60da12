import Foundation

/// A JSON value as text that was checked once: the form in which settings made by the application are kept, so that
/// later changes to their objects do not matter.
struct JSONText: Sendable, Equatable {
    let text: String

    var data: Data { Data(text.utf8) }

    /// Encodes any `Encodable`.
    ///
    /// Fails for whatever is not JSON in the end: a value that throws, non-finite numbers (Foundation writes
    /// `NaN` for `Decimal.nan` without an error, hence the second look) and nesting deeper than JSON readers accept.
    init(encoding value: any Encodable) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.withoutEscapingSlashes]
        let data = try encoder.encode(value)
        guard (try? JSONSerialization.jsonObject(with: data, options: [.fragmentsAllowed])) != nil else {
            throw NotJSON()
        }
        text = String(decoding: data, as: UTF8.self)
    }

    /// What an encoder wrote is not JSON.
    struct NotJSON: Error {}

    /// True for a number that JSON cannot hold.
    static func isNonFinite(_ value: Any) -> Bool {
        switch value {
        case let number as Double: !number.isFinite
        case let number as Float: !number.isFinite
        case let number as Decimal: number.isNaN
        default: false
        }
    }

    /// Writes any value that `JSONSerialization` accepts as a top-level object, or nil.
    init?(object: Any) {
        guard JSONSerialization.isValidJSONObject(object),
            let data = try? JSONSerialization.data(withJSONObject: object, options: [.withoutEscapingSlashes])
        else { return nil }
        text = String(decoding: data, as: UTF8.self)
    }
}
