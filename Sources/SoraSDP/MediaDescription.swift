import SoraWire

/// One media section (`m=` line and what follows).
package struct MediaDescription: Sendable, Equatable {
    package var kind: MediaKind
    /// 0 means rejected, unless ``isBundleOnly``.
    package var port: UInt16
    /// `UDP/TLS/RTP/SAVPF`, `UDP/DTLS/SCTP`, …
    package var transportProtocol: String
    /// The formats of a section that does not carry RTP: `webrtc-datachannel`, or the port in the
    /// form before RFC 8841. For RTP the formats are ``codecs``.
    package var formats: [String] = []
    /// Text behind `c=`; nil if neither the section nor the session has one.
    package var connection: String? = "IN IP4 0.0.0.0"
    package var mid: Mid?
    package var direction: MediaDirection = .sendrecv
    /// In order of preference. Lines for all payload types (`*`) are already added to each.
    package var codecs: [CodecDescription] = []
    package var iceCredentials: ICEParameters?
    package var iceOptions: [String] = []
    /// As in SDP: `sha-256 AB:CD:…`. Checked for form and length.
    package var fingerprints: [String] = []
    package var setup: DTLSSetup?
    /// As in SDP without `a=`: `candidate:…`. Checked against the grammar of RFC 8839.
    package var candidates: [String] = []
    package var hasEndOfCandidates = false
    package var rtcp: RTCPAddress?
    package var rtcpMux = false
    package var rtcpReducedSize = false
    /// `a=bundle-only` (RFC 8843, 6): port 0 does not mean rejected.
    package var isBundleOnly = false
    package var headerExtensions: [HeaderExtensionDescription] = []
    package var msids: [MediaStreamIdentifier] = []
    package var ssrcs: [SSRCDescription] = []
    package var ssrcGroups: [SSRCGroup] = []
    package var rids: [RIDDescription] = []
    package var simulcast: SimulcastDescription?
    package var sctpPort: UInt16?
    /// Bytes; 0 means no limit, nil means 65,536 (RFC 8841, 6).
    package var maxMessageSize: Int?
    /// Streams of `a=sctpmap`, in the form before RFC 8841.
    package var sctpMapStreams: UInt16?
    package var bandwidths: [BandwidthLimit] = []
    /// Attributes without a member of their own, in order.
    package var otherAttributes: [SDPAttribute] = []

    package init(kind: MediaKind, port: UInt16, transportProtocol: String) {
        self.kind = kind
        self.port = port
        self.transportProtocol = transportProtocol
    }
}

extension MediaDescription {
    package static let rtpProtocol = "UDP/TLS/RTP/SAVPF"
    package static let dataChannelProtocol = "UDP/DTLS/SCTP"

    /// Port 0 that is not `bundle-only`.
    package var isRejected: Bool { port == 0 && !isBundleOnly }

    /// Whether the formats are RTP payload types.
    package var carriesRTP: Bool {
        transportProtocol.split(separator: "/").contains("RTP")
    }

    /// Whether this RTP section is protected by keys that DTLS agreed on; plain RTP is not served.
    package var isSecureRTP: Bool {
        carriesRTP && transportProtocol.split(separator: "/").contains("TLS")
            && (transportProtocol.hasSuffix("/SAVPF") || transportProtocol.hasSuffix("/SAVP"))
    }

    /// Whether this section carries data channels, in the form of RFC 8841 or the one before it.
    package var carriesDataChannels: Bool {
        guard transportProtocol.split(separator: "/").contains("SCTP") else { return false }
        return formats.contains("webrtc-datachannel") || usesLegacySCTPSyntax
    }

    /// `m=application 54111 DTLS/SCTP 6001`: the form before RFC 8841, to be answered in kind.
    package var usesLegacySCTPSyntax: Bool {
        transportProtocol == "DTLS/SCTP" && !formats.contains("webrtc-datachannel")
    }

    /// The largest message that the describer accepts, in bytes; `Int.max` for "no limit".
    package var effectiveMaxMessageSize: Int {
        guard let maxMessageSize else { return 65_536 }
        return maxMessageSize == 0 ? .max : maxMessageSize
    }
}

package enum MediaKind: Sendable, Equatable {
    case audio, video, application
    case other(String)

    package init(_ text: String) {
        switch text {
        case "audio": self = .audio
        case "video": self = .video
        case "application": self = .application
        default: self = .other(text)
        }
    }

    package var text: String {
        switch self {
        case .audio: "audio"
        case .video: "video"
        case .application: "application"
        case .other(let text): text
        }
    }
}

package enum MediaDirection: String, Sendable, Equatable {
    case sendrecv, sendonly, recvonly, inactive

    package init(sends: Bool, receives: Bool) {
        self = sends ? (receives ? .sendrecv : .sendonly) : (receives ? .recvonly : .inactive)
    }
    package var sends: Bool { self == .sendrecv || self == .sendonly }
    package var receives: Bool { self == .sendrecv || self == .recvonly }
    /// The same agreement seen from the other side.
    package var reversed: MediaDirection { MediaDirection(sends: receives, receives: sends) }
    /// What both sides allow, each from its own view of the same side.
    package func intersection(_ other: MediaDirection) -> MediaDirection {
        MediaDirection(sends: sends && other.sends, receives: receives && other.receives)
    }
}

/// `a=setup` (RFC 8842, 5): who starts DTLS.
package enum DTLSSetup: String, Sendable, Equatable {
    case actpass, active, passive, holdconn
}

/// `a=ice-ufrag` and `a=ice-pwd` (RFC 8839, 5.4).
package struct ICEParameters: Sendable, Equatable {
    package var usernameFragment: String
    package var password: String
    package init(usernameFragment: String, password: String) {
        self.usernameFragment = usernameFragment
        self.password = password
    }
}

/// `a=rtcp` (RFC 3605). The address is optional.
package struct RTCPAddress: Sendable, Equatable {
    package var port: UInt16
    /// Network type, address type and address, as in the line.
    package var address: String?
    package init(port: UInt16, address: String? = nil) {
        self.port = port
        self.address = address
    }
}

/// `b=` line: `type` is `AS` (kbit/s), `TIAS` (bit/s) or another.
package struct BandwidthLimit: Sendable, Equatable {
    package var type: String
    package var value: UInt64
    package init(type: String, value: UInt64) {
        self.type = type
        self.value = value
    }
}
