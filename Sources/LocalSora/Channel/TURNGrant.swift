import SoraMessages
import SoraWire

/// What an authorization says about the TURN servers of one client (spec/signaling.md 9.3): other names and addresses
/// in their URLs, and which of them it is told of.
package struct TURNGrant: Sendable, Equatable {
    /// In place of an IPv4 or IPv6 address in a `turn:` URL.
    package var ipv4Address: String?
    package var ipv6Address: String?
    /// In place of whatever host a `turn:` URL names.
    package var domainName: String?
    /// In place of the host of a `turns:` URL.
    package var tlsDomainName: String?
    /// Only TURN over TCP or TLS.
    package var allowsOnlyTCP = false
    /// Only TURN over TLS.
    package var allowsOnlyTLS = false

    package init() {}

    /// The servers with the URLs that remain; servers without any are left out.
    package func apply(to servers: [OfferICEConfiguration.Server]) -> [OfferICEConfiguration.Server] {
        guard self != TURNGrant() else { return servers }
        return servers.compactMap { server in
            var altered = server
            altered.urls = server.urls.compactMap(url)
            return altered.urls.isEmpty ? nil : altered
        }
    }

    /// RFC 7065: `turn:HOST[:PORT][?transport=udp|tcp]`. What is no TURN URL passes as it is.
    private func url(_ text: String) -> String? {
        let isTLS = text.hasPrefix("turns:")
        guard isTLS || text.hasPrefix("turn:") else { return text }
        if allowsOnlyTLS, !isTLS { return nil }
        if allowsOnlyTCP, !isTLS, !text.hasSuffix("?transport=tcp") { return nil }
        let scheme = isTLS ? "turns:" : "turn:"
        let rest = text.dropFirst(scheme.count)
        let end: String.Index
        if rest.first == "[" {
            end = rest.firstIndex(of: "]").map { rest.index(after: $0) } ?? rest.endIndex
        } else {
            end = rest.firstIndex { $0 == ":" || $0 == "?" } ?? rest.endIndex
        }
        let host = String(rest[..<end])
        var replacement = isTLS ? tlsDomainName : domainName
        if !isTLS, replacement == nil, let address = IPAddress(host.filter { $0 != "[" && $0 != "]" }) {
            if case .v4 = address { replacement = ipv4Address } else { replacement = ipv6Address.map { "[\($0)]" } }
        }
        return scheme + (replacement ?? host) + rest[end...]
    }
}
