import SoraICE
import SoraSDP
import SoraSecureTransport
import SoraWire

/// A slot among the m-lines. Slots never move and never vanish: one whose media ended is rejected
/// with port 0 and may later carry other media of its kind under a new mid (RFC 9429, 5.2.2). The
/// first one, which names the bundle, becomes inactive instead.
struct Section {
    enum Content {
        case transceiver(Transceiver)
        case dataChannels
        /// Rejected in the last completed negotiation; free to be reused.
        case vacant
    }
    var kind: MediaKind
    var mid: Mid?
    var content: Content

    var transceiver: Transceiver? {
        if case .transceiver(let transceiver) = content { transceiver } else { nil }
    }
    var isVacant: Bool {
        if case .vacant = content { true } else { false }
    }
    var isDataChannels: Bool {
        if case .dataChannels = content { true } else { false }
    }
}

/// An offer of ours that awaits its answer, with what to restore should it be rolled back.
struct PendingLocalOffer {
    var description: SessionDescription
    var sectionsBefore: [Section]
}

/// What the other side's description says about its end of the transport, checked and parsed.
struct RemoteTransport: Equatable {
    var credentials: ICECredentials
    var isLite: Bool
    var fingerprints: [DTLSFingerprint]
    var setup: DTLSSetup?

    /// Reads the transport of `description`. Nil if every section is rejected: then there is none.
    init?(_ description: SessionDescription) throws(PeerError) {
        guard let attributes = description.transportAttributes else { return nil }
        guard let ice = attributes.iceCredentials else {
            throw .unusableDescription("the section that carries the transport has no a=ice-ufrag and a=ice-pwd")
        }
        guard !attributes.fingerprints.isEmpty else {
            throw .unusableDescription("it has no a=fingerprint; media and data without DTLS are refused")
        }
        let parsed = attributes.fingerprints.compactMap { DTLSFingerprint(sdp: $0) }
        guard !parsed.isEmpty else {
            throw .unusableDescription(
                "none of its fingerprints uses a hash that is supported: \(attributes.fingerprints.joined(separator: ", "))"
            )
        }
        credentials = ICECredentials(usernameFragment: ice.usernameFragment, password: ice.password)
        isLite = attributes.isICELite
        fingerprints = parsed
        setup = attributes.setup
    }
}
