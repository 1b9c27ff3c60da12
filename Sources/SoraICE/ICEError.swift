/// What was wrong with a value handed to this layer.
package enum ICEError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The candidate line breaks the grammar of RFC 8839, 5.1.
    case malformedCandidate(line: String, field: String)
    /// The line is well formed and means something that this layer cannot use.
    case unsupportedCandidate(line: String, reason: String)
    /// Not a `stun:`, `stuns:`, `turn:` or `turns:` URI of RFC 7064 or RFC 7065.
    case malformedServerURI(uri: String, reason: String)
    /// A `turn:` or `turns:` URI came without user name or credential.
    case missingTURNCredentials(uri: String)

    package var description: String {
        switch self {
        case .malformedCandidate(let line, let field): "malformed \(field) in ICE candidate \"\(line)\""
        case .unsupportedCandidate(let line, let reason): "ICE candidate \"\(line)\" is not usable: \(reason)"
        case .malformedServerURI(let uri, let reason): "ICE server URI \"\(uri)\" is not usable: \(reason)"
        case .missingTURNCredentials(let uri): "ICE server \"\(uri)\" needs a user name and a credential"
        }
    }
}
