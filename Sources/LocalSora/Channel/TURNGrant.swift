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

    /// Whether a text may stand in a URL as an IPv4 address.
    package static func isIPv4Address(_ text: String) -> Bool { IPAddress(text)?.isV4 == true }

    /// Whether a text may stand between brackets in a URL as an IPv6 address; a zone may not (RFC 3986 3.2.2).
    package static func isIPv6Address(_ text: String) -> Bool {
        !text.utf8.contains(UInt8(ascii: "%")) && IPAddress(text)?.isV4 == false
    }

    /// Whether a text is a domain name: labels of 1 to 63 letters, digits, hyphens and underscores, 253 in all; a dot
    /// may end it (RFC 1034 3.1).
    package static func isDomainName(_ text: String) -> Bool {
        let name = text.utf8.last == UInt8(ascii: ".") ? text.utf8.dropLast() : text.utf8[...]
        return name.count <= 253
            && name.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false).allSatisfy { label in
                (1...63).contains(label.count)
                    && label.allSatisfy { byte in
                        switch byte {
                        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
                        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"): true
                        default: false
                        }
                    }
            }
    }

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
