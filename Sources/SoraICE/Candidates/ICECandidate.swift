import SoraWire

/// How a candidate was learnt (RFC 8445, 5.1.1 and 7.3.1.3).
package enum ICECandidateType: String, Sendable, Equatable {
    case host
    case serverReflexive = "srflx"
    case peerReflexive = "prflx"
    case relayed = "relay"

    /// The type preference that RFC 8445, 5.1.2.2 recommends, 0...126.
    var preference: UInt32 {
        switch self {
        case .host: 126
        case .peerReflexive: 110
        case .serverReflexive: 100
        case .relayed: 0
        }
    }
}

/// Transport of a candidate.
package enum ICETransport: String, Sendable, Equatable {
    case udp
    case tcp
}

/// Which side opens the connection of a TCP candidate (RFC 6544, 4.5).
package enum ICETCPType: String, Sendable, Equatable {
    case active
    case passive
    case simultaneousOpen = "so"
}

/// Where a candidate is: an address, or a name that has still to be resolved (mDNS, RFC 8839 5.1).
package enum CandidateAddress: Hashable, Sendable, CustomStringConvertible {
    case ip(SocketAddress)
    case name(String, port: UInt16)

    package var description: String {
        switch self {
        case .ip(let address): address.description
        case .name(let name, let port): "\(name):\(port)"
        }
    }

    package var port: UInt16 {
        switch self {
        case .ip(let address): address.port
        case .name(_, let port): port
        }
    }
}

/// One transport address that a side can be reached at, as SDP writes it (RFC 8839, 5.1).
package struct ICECandidate: Equatable, Sendable, CustomStringConvertible {
    /// 1 to 32 ice-chars; equal for candidates of one type, base and server.
    package var foundation: String
    /// 1...256; always 1 where RTCP is multiplexed.
    package var component: Int
    package var transport: ICETransport
    package var priority: UInt32
    package var address: CandidateAddress
    package var type: ICECandidateType
    /// Base of a reflexive candidate, mapped address of a relayed one; for diagnostics only.
    package var relatedAddress: CandidateAddress?
    /// There exactly for TCP candidates.
    package var tcpType: ICETCPType?
    /// The generation that the candidate belongs to, where the line says so.
    package var usernameFragment: String?

    package init(
        foundation: String, component: Int = 1, transport: ICETransport = .udp, priority: UInt32,
        address: CandidateAddress, type: ICECandidateType, relatedAddress: CandidateAddress? = nil,
        tcpType: ICETCPType? = nil, usernameFragment: String? = nil
    ) {
        self.foundation = foundation
        self.component = component
        self.transport = transport
        self.priority = priority
        self.address = address
        self.type = type
        self.relatedAddress = relatedAddress
        self.tcpType = tcpType
        self.usernameFragment = usernameFragment
    }

    /// The address, unless it is still a name.
    package var socketAddress: SocketAddress? {
        if case .ip(let address) = address { address } else { nil }
    }

    package var description: String { attributeValue }

    /// RFC 8445, 5.1.2.1 for component 1. A smaller `rank` is preferred, 0...65535.
    static func priority(type: ICECandidateType, rank: Int, transport: ICETransport = .udp) -> UInt32 {
        // RFC 6544, 4.2: TCP below UDP of the same kind.
        let preference = transport == .udp ? type.preference : type.preference * 7 / 10
        let local = UInt32(65_535 - min(max(rank, 0), 65_535))
        return preference << 24 | local << 8 | 255
    }

    /// The same number for the same inputs, different ones for others (RFC 8445, 5.1.1.3).
    static func foundation(
        type: ICECandidateType, base: IPAddress, server: String = "", transport: ICETransport = .udp
    ) -> String {
        String(CRC32.checksum(of: "\(type.rawValue) \(base) \(server) \(transport.rawValue)".utf8))
    }
}
