import SoraCrypto
import SoraMessages

/// A JSON Web Token (RFC 7519) signed with HS256, as clients put it into `metadata.access_token`.
struct AccessToken: Sendable {
    /// The reason that the client gets.
    enum Failure: String, Error {
        case malformed = "INVALID-ACCESS-TOKEN"
        case wrongAlgorithm = "ACCESS-TOKEN-ALGORITHM-IS-NOT-HS256"
        case wrongSignature = "ACCESS-TOKEN-SIGNATURE-IS-WRONG"
        case expired = "ACCESS-TOKEN-EXPIRED"
        case notYetValid = "ACCESS-TOKEN-NOT-YET-VALID"
    }

    let claims: JSONObject

    private static let maximumSize = 64 << 10

    /// - Parameters:
    ///   - secret: nil takes any signature and any time.
    ///   - wallClock: seconds since 1970.
    init(_ text: String, secret: String?, wallClock: Double) throws(Failure) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard text.utf8.count <= Self.maximumSize, parts.count == 3, let header = Self.object(parts[0]),
            let claims = Self.object(parts[1])
        else { throw .malformed }
        self.claims = claims
        guard let secret else { return }
        guard header["alg"]?.stringValue == "HS256" else { throw .wrongAlgorithm }
        guard let signature = Base64.decodeURLSafe(String(parts[2])) else { throw .malformed }
        let signed = Array("\(parts[0]).\(parts[1])".utf8)
        let key = HMACKey(.sha256, key: Array(secret.utf8))
        guard equalInConstantTime(signature, key.authenticate(signed)) else { throw .wrongSignature }
        if let expiry = claims["exp"] {
            guard let seconds = expiry.doubleValue else { throw .malformed }
            if seconds <= wallClock { throw .expired }
        }
        if let begin = claims["nbf"] {
            guard let seconds = begin.doubleValue else { throw .malformed }
            if seconds > wallClock { throw .notYetValid }
        }
    }

    private static func object(_ part: Substring) -> JSONObject? {
        guard let bytes = Base64.decodeURLSafe(String(part)), let json = try? JSONValue(parsing: bytes) else {
            return nil
        }
        return json.objectValue
    }
}
