import SoraHTTP
import SoraMessages
import SoraNetwork

/// What the doctor connects to, and how.
package struct DoctorConfiguration: Sendable {
    /// An HTTP proxy for signaling and for TURN over TCP and TLS.
    package struct Proxy: Sendable {
        package var host: String
        package var port: UInt16
        package var credentials: HTTPCredentials?
        package init(host: String, port: UInt16, username: String? = nil, password: String? = nil) {
            self.host = host
            self.port = port
            credentials = username.map { HTTPCredentials(username: $0, password: password ?? "") }
        }
    }

    /// Signaling URLs; each is diagnosed by itself.
    package var urls: [String]
    package var channelID: String
    package var role: ConnectionRole = .recvonly
    /// JSON text of `metadata`; nil leaves it out.
    package var metadata: JSONValue?
    package var audio = true
    package var video = true
    /// `VP8`, `VP9`, `AV1`, `H264` or `H265`; nil lets the server choose.
    package var videoCodec: String?
    /// Nil lets the server decide.
    package var dataChannelSignaling: Bool?
    /// Uses nothing but TURN, whatever the server says.
    package var relayOnly = false
    package var proxy: Proxy?
    /// CA certificates (PEM) in place of the system's.
    package var certificateAuthorities: String?
    /// A client certificate and its key.
    package var identity: TLSIdentity?
    /// Accepts any certificate; the report says what is wrong with it all the same.
    package var ignoresCertificates = false
    /// Limit for each stage.
    package var timeout: Duration = .seconds(10)
    /// Redirects that are followed.
    package var redirectLimit = 10
    /// Replaces the system's name resolution, for tests.
    package var resolver = Resolver.shared
    /// Sent as `User-Agent` and `sora_client`.
    package var agent = "Sora for Swift doctor"

    package init(urls: [String], channelID: String) {
        self.urls = urls
        self.channelID = channelID
    }

    /// Sets ``metadata`` from JSON text.
    /// - Throws: where the text stops to be JSON.
    package mutating func setMetadata(json: String) throws(JSONError) {
        metadata = try JSONValue(parsing: json)
    }

    /// Sets ``role`` by its name; false if there is none of this name.
    package mutating func setRole(_ name: String) -> Bool {
        guard let role = ConnectionRole(rawValue: name) else { return false }
        self.role = role
        return true
    }

    /// What no report may show.
    var secrets: [String] {
        var found = [proxy?.credentials?.password, proxy?.credentials?.username, identity?.privateKey].compactMap { $0 }
        func collect(_ value: JSONValue, _ depth: Int) {
            guard depth < 64 else { return }
            switch value {
            case .string(let text): found.append(text)
            case .array(let elements): for element in elements { collect(element, depth + 1) }
            case .object(let object): for member in object.members { collect(member.value, depth + 1) }
            default: break
            }
        }
        if let metadata { collect(metadata, 0) }
        return found
    }
}
