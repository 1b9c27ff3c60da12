import SoraCrypto
import SoraWire

/// A user name and password for an HTTP proxy or server. Its text hides both.
package struct HTTPCredentials: Sendable, Equatable, CustomStringConvertible {
    package var username: String
    package var password: String

    package init(username: String, password: String) {
        self.username = username
        self.password = password
    }

    package var description: String { "credentials of a user" }

    /// `Basic …` (RFC 7617), in UTF-8.
    package var basicAuthorization: String { "Basic " + Base64.encode(Array("\(username):\(password)".utf8)) }
}

/// Answers Digest challenges (RFC 7616) with MD5 or SHA-256, plain or `-sess`, with qop `auth` or none.
package struct DigestAuthorization: Sendable {
    private let algorithm: HashAlgorithm
    /// As the challenge spelled it; nil if it named none.
    private let algorithmName: String?
    private let isSession: Bool
    private let realm: String
    private let nonce: String
    private let opaque: String?
    private let usesQop: Bool
    private let hashesUsername: Bool
    private var count: UInt32 = 0

    /// Nil if the challenge is no Digest, lacks a part, or asks for what we do not do.
    package init?(_ challenge: HTTPChallenge) {
        guard challenge.scheme == "digest", let realm = challenge.parameters["realm"],
            let nonce = challenge.parameters["nonce"]
        else { return nil }
        let name = challenge.parameters["algorithm"]
        switch (name ?? "MD5").lowercased() {
        case "md5": (algorithm, isSession) = (.md5, false)
        case "md5-sess": (algorithm, isSession) = (.md5, true)
        case "sha-256": (algorithm, isSession) = (.sha256, false)
        case "sha-256-sess": (algorithm, isSession) = (.sha256, true)
        default: return nil
        }
        let offered = challenge.parameters["qop"].map { $0.split(separator: ",").map { trimmed($0).lowercased() } }
        if let offered, !offered.contains("auth") { return nil }
        usesQop = offered != nil
        // Without qop there is no cnonce, which the session form needs.
        guard usesQop || !isSession else { return nil }
        algorithmName = name
        self.realm = realm
        self.nonce = nonce
        opaque = challenge.parameters["opaque"]
        hashesUsername = challenge.parameters["userhash"]?.lowercased() == "true"
    }

    /// 2 for SHA-256, 1 for MD5: the stronger challenge is to be preferred.
    package var strength: Int { algorithm == .sha256 ? 2 : 1 }

    /// The header's value for the next request.
    /// - Parameter cnonce: Fresh random text; letters and digits only.
    package mutating func authorization(
        for credentials: HTTPCredentials, method: String, uri: String, cnonce: String
    ) -> String {
        count &+= 1
        let digits = String(count, radix: 16)
        let nonceCount = String(repeating: "0", count: 8 - digits.count) + digits
        var first = digest("\(credentials.username):\(realm):\(credentials.password)")
        if isSession { first = digest("\(first):\(nonce):\(cnonce)") }
        let second = digest("\(method):\(uri)")
        let response =
            usesQop
            ? digest("\(first):\(nonce):\(nonceCount):\(cnonce):auth:\(second)")
            : digest("\(first):\(nonce):\(second)")
        let username = hashesUsername ? digest("\(credentials.username):\(realm)") : credentials.username
        let isPlain = username.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F }
        var parts = [
            isPlain ? "username=\(quoted(username))" : "username*=UTF-8''\(percentEncoded(username))",
            "realm=\(quoted(realm))", "nonce=\(quoted(nonce))", "uri=\(quoted(uri))", "response=\"\(response)\"",
        ]
        if let algorithmName { parts.append("algorithm=\(algorithmName)") }
        if usesQop { parts += ["qop=auth", "nc=\(nonceCount)", "cnonce=\(quoted(cnonce))"] }
        if let opaque { parts.append("opaque=\(quoted(opaque))") }
        if hashesUsername { parts.append("userhash=true") }
        return "Digest " + parts.joined(separator: ", ")
    }

    private func digest(_ text: String) -> String { Hexadecimal.encode(hash(algorithm, Array(text.utf8))) }

    private func quoted(_ text: String) -> String {
        var result = "\""
        for character in text.unicodeScalars {
            if character == "\"" || character == "\\" { result.unicodeScalars.append("\\") }
            result.unicodeScalars.append(character)
        }
        return result + "\""
    }

    /// RFC 8187, 3.2.1.
    private func percentEncoded(_ text: String) -> String {
        var result = ""
        for byte in text.utf8 {
            let isPlain = isTokenCharacter(byte) && byte != 0x25 && byte != 0x27 && byte != 0x2A
            let digits = String(byte, radix: 16, uppercase: true)
            result += isPlain ? String(UnicodeScalar(byte)) : "%" + (digits.utf8.count == 1 ? "0" : "") + digits
        }
        return result
    }
}
