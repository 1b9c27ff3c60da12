import SoraWire

/// A whole session description (RFC 8866), as JSEP (RFC 9429) uses it: one offer or one answer.
///
/// Attributes that stand at session level and mean every section (ICE credentials and options,
/// fingerprints, setup, direction, header extensions, connection address) are kept in
/// ``sessionLevel`` *and* folded by the parser into each section that does not state its own, so a
/// reader of ``media`` always sees the values in force.
package struct SessionDescription: Sendable, Equatable {
    /// First word of the `o=` line; `-` in WebRTC.
    package var username = "-"
    /// Numeric session id of the `o=` line, kept as text: any number of digits.
    package var sessionID: String
    /// Version of the `o=` line, kept as text (RFC 8866 sets no bound).
    package var sessionVersion: String
    /// Network type, address type and address of the `o=` line.
    package var originAddress = "IN IP4 127.0.0.1"
    /// Text of the `s=` line; may be a single space.
    package var name = "-"
    /// Text of each `t=` line.
    package var timing = ["0 0"]
    /// `i=`, `u=`, `e=`, `p=`, `r=`, `z=` and `k=` lines at session level, whole, in order.
    package var informationLines: [String] = []
    /// Every `a=group` line in order (RFC 5888); several may carry the same semantics.
    package var groups: [MediaGroup] = []
    package var isICELite = false
    /// `a=extmap-allow-mixed` (RFC 8285, 6): one-byte and two-byte headers may be mixed.
    package var extmapAllowMixed = false
    /// Text behind `a=msid-semantic:`, trimmed; nil without the line.
    package var msidSemantic: String?
    /// What stood at session level for all sections.
    package var sessionLevel = SessionLevelAttributes()
    package var media: [MediaDescription] = []
    /// Session-level attributes without a member of their own, in order.
    package var otherAttributes: [SDPAttribute] = []

    package init(sessionID: String, sessionVersion: String) {
        self.sessionID = sessionID
        self.sessionVersion = sessionVersion
    }

    /// Reads a description. Accepts LF or CRLF, with or without a last line end. Unknown attributes
    /// are kept; a fault in a line that is understood refuses the whole text.
    package init(parsing text: String) throws(SDPError) {
        var parser = SDPParser()
        self = try parser.parse(text)
    }

    /// The text with CRLF line ends.
    package func serialized() -> String {
        SDPSerializer.serialize(self)
    }
}

/// One `a=group` line: sections that belong together under `semantics` (`BUNDLE`, `LS`, …).
package struct MediaGroup: Sendable, Equatable {
    package var semantics: String
    package var mids: [Mid]
    package init(semantics: String, mids: [Mid]) {
        self.semantics = semantics
        self.mids = mids
    }
}

/// Attributes written once at session level for all sections.
package struct SessionLevelAttributes: Sendable, Equatable {
    /// Text behind `c=`.
    package var connection: String?
    package var bandwidths: [BandwidthLimit] = []
    package var iceCredentials: ICEParameters?
    package var iceOptions: [String] = []
    package var fingerprints: [String] = []
    package var setup: DTLSSetup?
    package var direction: MediaDirection?
    package var headerExtensions: [HeaderExtensionDescription] = []
    package init() {}
}

/// An attribute line. `a=x` has no value, `a=x:` an empty one, `a=x:y` the value `y`.
package struct SDPAttribute: Sendable, Equatable {
    package var name: String
    package var value: String?
    package init(_ name: String, _ value: String? = nil) {
        self.name = name
        self.value = value
    }
}

extension SessionDescription {
    /// Mids of the first `BUNDLE` group, in its order; empty without one.
    package var bundledMids: [Mid] {
        groups.first { $0.semantics == "BUNDLE" }?.mids ?? []
    }

    /// Bundled mids that no section carries. A description with such mids cannot be applied.
    package var unknownBundledMids: [Mid] {
        let known = Set(media.compactMap(\.mid))
        return bundledMids.filter { !known.contains($0) }
    }

    /// Position of the section with this mid.
    package func index(of mid: Mid) -> Int? {
        media.firstIndex { $0.mid == mid }
    }

    /// Position of the section whose transport attributes speak for the bundle: the first that
    /// BUNDLE names and that is alive, else the first section that is alive. Nil if none is.
    package var transportSectionIndex: Int? {
        for mid in bundledMids {
            if let index = index(of: mid), !media[index].isRejected { return index }
        }
        return media.firstIndex { !$0.isRejected }
    }

    /// ICE and DTLS attributes of the bundle's transport; nil if every section is rejected.
    package var transportAttributes: TransportAttributes? {
        guard let index = transportSectionIndex else { return nil }
        let section = media[index]
        return TransportAttributes(
            iceCredentials: section.iceCredentials, iceOptions: section.iceOptions, isICELite: isICELite,
            fingerprints: section.fingerprints, setup: section.setup, candidates: section.candidates,
            hasEndOfCandidates: section.hasEndOfCandidates)
    }
}

/// What a description says about one transport.
package struct TransportAttributes: Sendable, Equatable {
    package var iceCredentials: ICEParameters?
    package var iceOptions: [String]
    package var isICELite: Bool
    /// As in SDP: `sha-256 AB:CD:…`.
    package var fingerprints: [String]
    package var setup: DTLSSetup?
    /// As in SDP without `a=`: `candidate:…`.
    package var candidates: [String]
    package var hasEndOfCandidates: Bool
}
