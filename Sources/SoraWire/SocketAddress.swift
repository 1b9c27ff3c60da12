/// An IPv4 or IPv6 address.
@frozen
public enum IPAddress: Hashable, Sendable, CustomStringConvertible {
    /// Host order: 127.0.0.1 is 0x7F000001.
    case v4(UInt32)
    /// The 128 bits in two halves, most significant first, and the interface index that a
    /// link-local address needs (0 elsewhere).
    case v6(high: UInt64, low: UInt64, scope: UInt32)

    /// Parses dotted-quad IPv4 or RFC 4291 IPv6 text (with `::`, an IPv4 tail, or a numeric `%zone`).
    /// Nil if it is anything else, such as a host name.
    public init?(_ text: some StringProtocol) {
        if let v4 = IPAddress.parseV4(text) {
            self = .v4(v4)
        } else if let v6 = IPAddress.parseV6(text) {
            self = v6
        } else {
            return nil
        }
    }

    /// From 4 or 16 bytes in network order; nil for other lengths.
    public init?(bytes: [UInt8]) {
        switch bytes.count {
        case 4:
            self = .v4(bytes.reduce(0) { $0 << 8 | UInt32($1) })
        case 16:
            self = .v6(
                high: bytes[0..<8].reduce(0) { $0 << 8 | UInt64($1) },
                low: bytes[8..<16].reduce(0) { $0 << 8 | UInt64($1) }, scope: 0)
        default: return nil
        }
    }

    /// 4 or 16 bytes in network order.
    public var bytes: [UInt8] {
        var writer = ByteWriter(capacity: 16)
        switch self {
        case .v4(let value): writer.write(value)
        case .v6(let high, let low, _):
            writer.write(high)
            writer.write(low)
        }
        return writer.bytes
    }

    public static let loopbackV4 = IPAddress.v4(0x7F00_0001)
    public static let loopbackV6 = IPAddress.v6(high: 0, low: 1, scope: 0)
    public static let anyV4 = IPAddress.v4(0)
    public static let anyV6 = IPAddress.v6(high: 0, low: 0, scope: 0)

    public var isV4: Bool { if case .v4 = self { true } else { false } }

    public var isLoopback: Bool {
        switch self {
        case .v4(let value): value >> 24 == 127
        case .v6(let high, let low, _): high == 0 && low == 1
        }
    }

    public var isUnspecified: Bool {
        switch self {
        case .v4(let value): value == 0
        case .v6(let high, let low, _): high == 0 && low == 0
        }
    }

    /// 169.254/16 or fe80::/10.
    public var isLinkLocal: Bool {
        switch self {
        case .v4(let value): value >> 16 == 0xA9FE
        case .v6(let high, _, _): high >> 54 == 0x3FA
        }
    }

    public var description: String {
        switch self {
        case .v4(let value):
            return "\(value >> 24).\(value >> 16 & 255).\(value >> 8 & 255).\(value & 255)"
        case .v6(let high, let low, let scope):
            return IPAddress.formatV6(high: high, low: low) + (scope == 0 ? "" : "%\(scope)")
        }
    }

    private static func parseV4(_ text: some StringProtocol) -> UInt32? {
        let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        var value: UInt32 = 0
        for part in parts {
            guard (1...3).contains(part.count) else { return nil }
            var octet: UInt32 = 0
            for digit in part {
                guard (48...57).contains(digit) else { return nil }
                octet = octet * 10 + UInt32(digit - 48)
            }
            guard octet <= 255, part.count == 1 || part.first != 48 else { return nil }
            value = value << 8 | octet
        }
        return value
    }

    private static func parseV6(_ text: some StringProtocol) -> IPAddress? {
        var body = Substring(text)
        var scope: UInt32 = 0
        if let percent = body.firstIndex(of: "%") {
            guard let zone = UInt32(body[body.index(after: percent)...]) else { return nil }
            scope = zone
            body = body[..<percent]
        }
        guard body.utf8.count >= 2, body.utf8.count <= 45 else { return nil }

        /// Groups of one side of `::`; nil if a group is malformed.
        func groups(_ side: Substring, allowsV4Tail: Bool) -> [UInt16]? {
            if side.isEmpty { return [] }
            var result: [UInt16] = []
            let parts = side.split(separator: ":", omittingEmptySubsequences: false)
            for (index, part) in parts.enumerated() {
                if allowsV4Tail, index == parts.count - 1, part.contains("."), let v4 = parseV4(part) {
                    result.append(UInt16(v4 >> 16))
                    result.append(UInt16(v4 & 0xFFFF))
                } else {
                    guard (1...4).contains(part.utf8.count),
                        part.utf8.allSatisfy({
                            (48...57).contains($0) || (97...102).contains($0) || (65...70).contains($0)
                        }), let value = UInt16(part, radix: 16)
                    else { return nil }
                    result.append(value)
                }
            }
            return result
        }

        var all: [UInt16]
        let utf8 = Array(body.utf8)
        let gap = utf8.indices.dropLast().first { utf8[$0] == 58 && utf8[$0 + 1] == 58 }
        if let gap {
            let start = body.utf8.index(body.startIndex, offsetBy: gap)
            let head = body[..<start]
            let tail = body[body.utf8.index(start, offsetBy: 2)...]
            guard let left = groups(head, allowsV4Tail: false),
                let right = groups(tail, allowsV4Tail: true),
                left.count + right.count < 8
            else { return nil }
            all = left + Array(repeating: 0, count: 8 - left.count - right.count) + right
        } else {
            guard let whole = groups(body, allowsV4Tail: true), whole.count == 8 else { return nil }
            all = whole
        }
        return .v6(
            high: all[0..<4].reduce(0) { $0 << 16 | UInt64($1) },
            low: all[4..<8].reduce(0) { $0 << 16 | UInt64($1) }, scope: scope)
    }

    /// RFC 5952 text: lower case, the longest run of zero groups compressed.
    private static func formatV6(high: UInt64, low: UInt64) -> String {
        let groups = (0..<8).map { index -> UInt16 in
            let half = index < 4 ? high : low
            return UInt16(truncatingIfNeeded: half >> UInt64(48 - 16 * (index % 4)))
        }
        var best = 0..<0
        var index = 0
        while index < 8 {
            guard groups[index] == 0 else {
                index += 1
                continue
            }
            var stop = index
            while stop < 8, groups[stop] == 0 { stop += 1 }
            if stop - index > best.count, stop - index > 1 { best = index..<stop }
            index = stop
        }
        func join(_ range: Range<Int>) -> String {
            groups[range].map { String($0, radix: 16) }.joined(separator: ":")
        }
        return best.isEmpty ? join(0..<8) : join(0..<best.lowerBound) + "::" + join(best.upperBound..<8)
    }
}

/// An IP address and a port.
@frozen
public struct SocketAddress: Hashable, Sendable, CustomStringConvertible {
    public var ip: IPAddress
    public var port: UInt16

    @inlinable public init(_ ip: IPAddress, port: UInt16) {
        self.ip = ip
        self.port = port
    }

    /// Parses `ip` as ``IPAddress/init(_:)``; nil for host names.
    public init?(_ ip: String, port: UInt16) {
        guard let address = IPAddress(ip) else { return nil }
        self.init(address, port: port)
    }

    /// `192.0.2.1:3478` or `[2001:db8::1]:3478`.
    public var description: String { ip.isV4 ? "\(ip):\(port)" : "[\(ip)]:\(port)" }
}
