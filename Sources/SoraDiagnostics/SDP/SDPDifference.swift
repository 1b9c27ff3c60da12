import SoraMessages
import SoraSDP
import SoraWire

/// What changed from one description to another, by meaning: the order of lines, and how attributes are spread over
/// session and sections, make no difference.
package struct SDPDifference: Sendable {
    package struct Change: Sendable, Equatable, CustomStringConvertible {
        /// `session`, `transport`, or the section.
        package var place: String
        package var what: String
        /// Nil: it was not there.
        package var before: String?
        /// Nil: it is not there any more.
        package var after: String?
        /// What the change does, where that is not plain.
        package var meaning: String?

        package var description: String {
            let change =
                switch (before, after) {
                case (let before?, let after?): "\(before) → \(after)"
                case (let before?, nil): "no longer \(before)"
                case (nil, let after?): "now \(after)"
                case (nil, nil): "changed"
                }
            return "\(place), \(what): \(change)" + (meaning.map { " (\($0))" } ?? "")
        }

        /// The change as one JSON object on one line.
        package var jsonText: String { json.text }
        var json: JSONValue {
            [
                "place": .string(place), "what": .string(what), "before": before.map { .string($0) } ?? .null,
                "after": after.map { .string($0) } ?? .null, "meaning": meaning.map { .string($0) } ?? .null,
            ]
        }
    }

    package private(set) var changes: [Change] = []
    package var isEmpty: Bool { changes.isEmpty }
    package var text: String {
        changes.isEmpty ? "Both mean the same." : changes.map(\.description).joined(separator: "\n")
    }

    package init(from before: SessionDescription, to after: SessionDescription) {
        compareSession(before, after)
        compareTransport(before, after)
        for index in 0..<max(before.media.count, after.media.count) {
            compare(
                index, index < before.media.count ? before.media[index] : nil,
                index < after.media.count ? after.media[index] : nil)
        }
    }

    private mutating func add(
        _ place: String, _ what: String, _ before: String?, _ after: String?, _ meaning: String? = nil
    ) {
        guard before != after else { return }
        changes.append(Change(place: place, what: what, before: before, after: after, meaning: meaning))
    }

    /// What left and what came, each by itself.
    private mutating func addList(_ place: String, _ what: String, _ before: [String], _ after: [String]) {
        let old = Set(before)
        let new = Set(after)
        for gone in before where !new.contains(gone) { add(place, what, gone, nil) }
        for come in after where !old.contains(come) { add(place, what, nil, come) }
        if old == new, before != after {
            add(place, "order of \(what)", before.joined(separator: ", "), after.joined(separator: ", "))
        }
    }

    // MARK: Session

    private mutating func compareSession(_ a: SessionDescription, _ b: SessionDescription) {
        add(
            "session", "session id", a.sessionID, b.sessionID,
            "another peer connection, or the other side's description")
        if a.sessionID == b.sessionID { add("session", "version", a.sessionVersion, b.sessionVersion) }
        addList("session", "bundled mid", a.bundledMids.map(\.rawValue), b.bundledMids.map(\.rawValue))
        add("session", "header extensions", mixed(a), mixed(b))
    }

    private func mixed(_ description: SessionDescription) -> String {
        description.extmapAllowMixed ? "one-byte and two-byte forms mixed" : "one form only"
    }

    private mutating func compareTransport(_ a: SessionDescription, _ b: SessionDescription) {
        add("transport", "ICE mode", a.isICELite ? "lite" : "full", b.isICELite ? "lite" : "full")
        let (old, new) = (a.transportAttributes, b.transportAttributes)
        if old?.iceCredentials != new?.iceCredentials {
            changes.append(
                Change(
                    place: "transport", what: "ICE credentials",
                    before: (old?.iceCredentials?.usernameFragment).map(Masking.name),
                    after: (new?.iceCredentials?.usernameFragment).map(Masking.name),
                    meaning: a.sessionID == b.sessionID ? "an ICE restart" : nil))
        }
        addList("transport", "fingerprint", old?.fingerprints ?? [], new?.fingerprints ?? [])
        add("transport", "DTLS role", old?.setup?.rawValue, new?.setup?.rawValue)
        addList("transport", "candidate", a.media.flatMap(\.candidates), b.media.flatMap(\.candidates))
        let (oldEnd, newEnd) = (a.media.contains { $0.hasEndOfCandidates }, b.media.contains { $0.hasEndOfCandidates })
        add("transport", "candidates", oldEnd ? "complete" : "may follow", newEnd ? "complete" : "may follow")
    }

    // MARK: Sections

    private mutating func compare(_ index: Int, _ a: MediaDescription?, _ b: MediaDescription?) {
        guard let media = b ?? a else { return }
        let place = SDPCheck.place(index, media)
        guard let a else { return add(place, "section", nil, summary(media)) }
        guard let b else {
            return add(place, "section", summary(a), nil, "m-lines must not vanish: refused by the other side")
        }
        guard a.isRejected == b.isRejected else {
            return add(
                place, "section", a.isRejected ? "out of use" : summary(a), b.isRejected ? "out of use" : summary(b))
        }
        guard !b.isRejected else { return }
        add(place, "kind", a.kind.text, b.kind.text, "an m-line cannot change its kind while in use")
        add(place, "mid", a.mid?.rawValue, b.mid?.rawValue, "the slot is used for something else")
        add(place, "protocol", a.transportProtocol, b.transportProtocol)
        if b.kind != .application { add(place, "direction", a.direction.rawValue, b.direction.rawValue) }
        addList(place, "stream", a.msids.map(text(of:)), b.msids.map(text(of:)))
        compareCodecs(place, a, b)
        addList(
            place, "header extension", a.headerExtensions.map { "\($0.id) \($0.uri)" },
            b.headerExtensions.map { "\($0.id) \($0.uri)" })
        addList(place, "rid", a.rids.map(text(of:)), b.rids.map(text(of:)))
        add(place, "simulcast", a.simulcast.map(text(of:)), b.simulcast.map(text(of:)))
        addList(place, "SSRC", a.ssrcs.map(\.ssrc.description), b.ssrcs.map(\.ssrc.description))
        addList(place, "SSRC group", a.ssrcGroups.map(text(of:)), b.ssrcGroups.map(text(of:)))
        addList(
            place, "bandwidth", a.bandwidths.map { "\($0.type) \($0.value)" },
            b.bandwidths.map { "\($0.type) \($0.value)" })
        add(place, "SCTP port", a.sctpPort.map { String($0) }, b.sctpPort.map { String($0) })
        if b.kind == .application {
            add(place, "largest message", String(a.effectiveMaxMessageSize), String(b.effectiveMaxMessageSize))
        }
        if b.carriesRTP {
            add(place, "RTCP", a.rtcpMux ? "on the same port" : "apart", b.rtcpMux ? "on the same port" : "apart")
        }
    }

    private mutating func compareCodecs(_ place: String, _ a: MediaDescription, _ b: MediaDescription) {
        let (old, new) = (
            Dictionary(grouping: a.codecs, by: \.payloadType), Dictionary(grouping: b.codecs, by: \.payloadType)
        )
        for codec in a.codecs {
            guard let other = new[codec.payloadType]?.first else {
                add(place, "codec", text(of: codec), nil)
                continue
            }
            add(place, "codec \(codec.payloadType)", text(of: codec), text(of: other))
            addList(place, "feedback of \(other.payloadType) \(other.name)", codec.rtcpFeedback, other.rtcpFeedback)
        }
        for codec in b.codecs where old[codec.payloadType] == nil { add(place, "codec", nil, text(of: codec)) }
        let (oldOrder, newOrder) = (a.codecs.map(\.payloadType), b.codecs.map(\.payloadType))
        if Set(oldOrder) == Set(newOrder), oldOrder != newOrder {
            add(
                place, "preference of codecs", oldOrder.map(\.description).joined(separator: " "),
                newOrder.map(\.description).joined(separator: " "))
        }
    }

    // MARK: Words

    private func summary(_ media: MediaDescription) -> String {
        let direction = media.kind == .application ? "" : " \(media.direction.rawValue)"
        return "\(media.kind.text) \(media.mid?.rawValue ?? "")\(direction)"
    }
    private func text(of codec: CodecDescription) -> String {
        // The order of parameters means nothing.
        let parameters = codec.formatParameters.entries.map { entry in
            entry.value.map { "\(entry.name)=\($0)" } ?? entry.name
        }
        let name = "\(codec.payloadType) \(codec.name)/\(codec.clockRate)\(codec.channels.map { "/\($0)" } ?? "")"
        return parameters.isEmpty ? name : "\(name) \(parameters.sorted().joined(separator: ";"))"
    }
    private func text(of msid: MediaStreamIdentifier) -> String { "\(msid.stream) \(msid.track ?? "")" }
    private func text(of group: SSRCGroup) -> String {
        "\(group.semantics) \(group.ssrcs.map(\.description).joined(separator: " "))"
    }
    private func text(of rid: RIDDescription) -> String {
        let types = rid.payloadTypes.map(\.description).joined(separator: ",")
        let limits = rid.restrictions.map { "\($0.name)=\($0.value ?? "")" }.joined(separator: ";")
        return [rid.id.rawValue, rid.direction.rawValue, types, limits].filter { !$0.isEmpty }.joined(separator: " ")
    }
    private func text(of simulcast: SimulcastDescription) -> String {
        let parts = [("send", simulcast.send), ("recv", simulcast.receive)].filter { !$0.1.isEmpty }
        return parts.map { name, streams in
            name + " "
                + streams.map { $0.map { ($0.isPaused ? "~" : "") + $0.rid.rawValue }.joined(separator: ",") }
                .joined(separator: ";")
        }.joined(separator: " ")
    }
}
