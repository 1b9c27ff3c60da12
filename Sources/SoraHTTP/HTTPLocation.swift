import SoraWire

/// An `http`, `https`, `ws` or `wss` URL, split as far as dialling and the request line need. Path and
/// query are kept byte for byte: signaling URLs are used exactly as given.
package struct HTTPLocation: Sendable, Equatable, CustomStringConvertible {
    package enum Scheme: String, Sendable { case http, https, ws, wss }

    package let scheme: Scheme
    /// A name, or an address without brackets.
    package let host: String
    package let port: UInt16
    /// Path and query, at least `/`.
    package let target: String

    /// Nil if the scheme is another, host or port are missing or malformed, or a character has no place in a
    /// URL. User information is refused, since it would end up in logs; a fragment is cut off.
    package init?(_ text: String) {
        guard let separator = text.firstRange(of: "://"),
            let scheme = Scheme(rawValue: text[..<separator.lowerBound].lowercased())
        else { return nil }
        let rest = text[separator.upperBound...].prefix { $0 != "#" }
        guard rest.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else { return nil }
        let authority = rest.prefix { $0 != "/" && $0 != "?" }
        let path = rest[authority.endIndex...]
        guard !authority.contains("@") else { return nil }
        var host = authority
        var portText: Substring?
        if authority.hasPrefix("[") {
            guard let bracket = authority.firstIndex(of: "]") else { return nil }
            host = authority[authority.index(after: authority.startIndex)..<bracket]
            guard let address = IPAddress(host), !address.isV4 else { return nil }
            let tail = authority[authority.index(after: bracket)...]
            guard tail.isEmpty || tail.hasPrefix(":") else { return nil }
            portText = tail.isEmpty ? nil : tail.dropFirst()
        } else if let colon = authority.firstIndex(of: ":") {
            host = authority[..<colon]
            portText = authority[authority.index(after: colon)...]
        }
        guard !host.isEmpty, host.utf8.count <= 255, !host.hasPrefix("["), !host.contains("]") else { return nil }
        self.scheme = scheme
        self.host = String(host)
        if let portText, !portText.isEmpty {
            guard portText.utf8.allSatisfy({ (48...57).contains($0) }), let port = UInt16(portText), port > 0 else {
                return nil
            }
            self.port = port
        } else {
            port = scheme == .https || scheme == .wss ? 443 : 80
        }
        let encoded = path.utf8.allSatisfy { $0 < 0x80 } ? String(path) : HTTPLocation.percentEncoded(path)
        target = encoded.hasPrefix("/") ? encoded : "/" + encoded
    }

    /// Whether TLS is spoken.
    package var isSecure: Bool { scheme == .https || scheme == .wss }

    /// The value of the Host header: without the port where it is the scheme's own.
    package var authority: String {
        let name = host.contains(":") ? "[\(host)]" : host
        return port == (isSecure ? 443 : 80) ? name : "\(name):\(port)"
    }

    /// Without the query, which may hold a secret.
    package var description: String {
        let path = target.prefix { $0 != "?" }
        return "\(scheme.rawValue)://\(authority)\(path)\(path.endIndex == target.endIndex ? "" : "?…")"
    }

    private static func percentEncoded(_ text: Substring) -> String {
        var result = ""
        for byte in text.utf8 {
            if byte < 0x80 {
                result.unicodeScalars.append(Unicode.Scalar(byte))
            } else {
                result += "%" + String(byte, radix: 16, uppercase: true)
            }
        }
        return result
    }
}
