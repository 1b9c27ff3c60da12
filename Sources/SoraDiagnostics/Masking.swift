/// What reports show in place of secrets.
package enum Masking {
    /// Says that there is a secret and how long it is.
    package static func secret(_ text: String) -> String {
        text.isEmpty ? "(empty)" : "••• (\(text.count) characters)"
    }

    /// The beginning of a name that is no secret alone but half of one.
    package static func name(_ text: String) -> String {
        text.count < 4 ? secret(text) : "\(text.prefix(2))… (\(text.count) characters)"
    }

    /// A URL without user, password and the values of its query, as tokens like to hide there.
    package static func url(_ text: String) -> String {
        var result = text
        if let scheme = result.firstRange(of: "://") {
            let rest = result[scheme.upperBound...]
            let authority = rest.prefix { !"/?#".contains($0) }
            if let at = authority.lastIndex(of: "@") {
                result.replaceSubrange(scheme.upperBound..<at, with: "•••")
            }
        }
        guard let mark = result.firstIndex(of: "?") else { return result }
        let pairs = result[result.index(after: mark)...].split(separator: "&", omittingEmptySubsequences: false)
        let masked = pairs.map { pair in pair.contains("=") ? "\(pair.prefix { $0 != "=" })=•••" : "•••" }
        return result[...mark] + masked.joined(separator: "&")
    }

    /// `text` with every occurrence of the secrets replaced. Very short ones are left: they would hit innocent words.
    package static func removing(_ secrets: [String], from text: String) -> String {
        var result = text
        for secret in secrets.sorted(by: { $0.count > $1.count }) where secret.count >= 4 {
            result = result.replacing(secret, with: "•••")
        }
        return result
    }

    /// Text from the network, made safe for a terminal: one line, no control characters, bounded.
    package static func line(_ text: String, limit: Int = 300) -> String {
        var scalars = String.UnicodeScalarView()
        for scalar in text.unicodeScalars.prefix(limit) {
            let isControl = scalar.properties.generalCategory == .control || scalar.properties.isBidiControl
            scalars.append(isControl ? " " : scalar)
        }
        return String(scalars) + (text.unicodeScalars.count > limit ? "…" : "")
    }
}
