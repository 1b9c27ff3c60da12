import SoraWire

/// How a TURN or STUN server is reached.
package enum ICEServerTransport: String, Sendable, Equatable, CaseIterable {
    case udp
    case tcp
    case tls
    package var isStream: Bool { self != .udp }
}

/// One `stun:`, `stuns:`, `turn:` or `turns:` URI (RFC 7064, RFC 7065).
///
/// Parsed here, because URL types treat such URIs as opaque and percent-escape them.
package struct ICEServerURI: Hashable, Sendable, CustomStringConvertible {
    package var isTURN: Bool
    /// A name, or an address without brackets.
    package var host: String
    package var port: UInt16
    package var transport: ICEServerTransport

    package init(isTURN: Bool, host: String, port: UInt16, transport: ICEServerTransport) {
        self.isTURN = isTURN
        self.host = host
        self.port = port
        self.transport = transport
    }

    /// Default ports: 3478, over TLS 5349. `turns` means TLS over TCP; `turns` over UDP (DTLS) is refused.
    package init(parsing uri: String) throws(ICEError) {
        func refuse(_ reason: String) -> ICEError { .malformedServerURI(uri: String(uri.prefix(300)), reason: reason) }
        guard uri.utf8.count <= 300 else { throw refuse("it is too long") }
        guard let colon = uri.firstIndex(of: ":") else { throw refuse("it has no scheme") }
        let isSecure: Bool
        switch uri[..<colon].lowercased() {
        case "stun": (isTURN, isSecure) = (false, false)
        case "stuns": (isTURN, isSecure) = (false, true)
        case "turn": (isTURN, isSecure) = (true, false)
        case "turns": (isTURN, isSecure) = (true, true)
        default: throw refuse("the scheme is none of stun, stuns, turn and turns")
        }
        var rest = uri[uri.index(after: colon)...]
        transport = isSecure ? .tls : .udp
        if let mark = rest.firstIndex(of: "?") {
            guard isTURN else { throw refuse("a STUN URI has no query") }
            switch rest[rest.index(after: mark)...].lowercased() {
            case "transport=udp":
                guard !isSecure else { throw refuse("TURN over DTLS is not supported; use transport=tcp") }
                transport = .udp
            case "transport=tcp": transport = isSecure ? .tls : .tcp
            default: throw refuse("its query is neither transport=udp nor transport=tcp")
            }
            rest = rest[..<mark]
        }
        var portText: Substring?
        if rest.hasPrefix("[") {
            guard let bracket = rest.firstIndex(of: "]") else { throw refuse("the bracket is not closed") }
            let inner = rest[rest.index(after: rest.startIndex)..<bracket]
            guard let address = IPAddress(inner), !address.isV4 else {
                throw refuse("the brackets hold no IPv6 address")
            }
            host = String(inner)
            let tail = rest[rest.index(after: bracket)...]
            if let first = tail.first {
                guard first == ":" else { throw refuse("text follows the bracket") }
                portText = tail.dropFirst()
            }
        } else {
            let parts = rest.split(separator: ":", omittingEmptySubsequences: false)
            guard parts.count <= 2 else { throw refuse("an IPv6 address needs brackets") }
            host = String(parts[0])
            portText = parts.count == 2 ? parts[1] : nil
        }
        guard !host.isEmpty else { throw refuse("the host is missing") }
        guard ICEServerURI.isHost(host) else { throw refuse("the host has characters that no host has") }
        guard let portText else {
            port = isSecure ? 5349 : 3478
            return
        }
        guard (1...5).contains(portText.utf8.count), portText.utf8.allSatisfy({ (48...57).contains($0) }),
            let value = UInt16(portText), value > 0
        else { throw refuse("the port is not a number from 1 to 65535") }
        port = value
    }

    private static func isHost(_ host: String) -> Bool {
        host.utf8.allSatisfy {
            (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0)
                || [45, 46, 95, 126, 58, 37].contains($0)
        }
    }

    /// The URI in its shortest unambiguous form.
    package var description: String {
        let shown = host.contains(":") ? "[\(host)]" : host
        let scheme = (isTURN ? "turn" : "stun") + (transport == .tls ? "s" : "")
        let query = isTURN ? "?transport=\(transport == .udp ? "udp" : "tcp")" : ""
        return "\(scheme):\(shown):\(port)\(query)"
    }
}

/// A STUN or TURN server with what it takes to use it.
package struct ICEServer: Equatable, Sendable {
    package var uri: ICEServerURI
    package var username: String
    package var credential: String

    package init(uri: ICEServerURI, username: String = "", credential: String = "") {
        self.uri = uri
        self.username = username
        self.credential = credential
    }

    /// Parses one entry of `iceServers`. TURN URIs need both a user name and a credential.
    package init(url: String, username: String?, credential: String?) throws(ICEError) {
        let uri = try ICEServerURI(parsing: url)
        if uri.isTURN, (username ?? "").isEmpty || credential == nil {
            throw .missingTURNCredentials(uri: uri.description)
        }
        self.init(uri: uri, username: username ?? "", credential: credential ?? "")
    }
}
