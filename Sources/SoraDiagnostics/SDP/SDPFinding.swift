import SoraMessages

/// Something in a description that will fail, may fail, or is good to know.
package struct SDPFinding: Sendable, Equatable, CustomStringConvertible {
    package enum Severity: String, Sendable, Comparable {
        /// A connection with this description cannot work.
        case fault
        /// It will work in part, or with some clients only.
        case warning
        case note

        private var rank: Int { self == .fault ? 0 : self == .warning ? 1 : 2 }
        package static func < (a: Severity, b: Severity) -> Bool { a.rank < b.rank }
    }
    package var severity: Severity
    /// `session`, or the section by place and mid.
    package var place: String
    package var text: String
    package var advice: String

    package var description: String {
        "\(severity.rawValue) in \(place): \(text)" + (advice.isEmpty ? "" : "; \(advice)")
    }

    var json: JSONValue {
        [
            "severity": .string(severity.rawValue), "place": .string(place), "text": .string(text),
            "advice": .string(advice),
        ]
    }
}
