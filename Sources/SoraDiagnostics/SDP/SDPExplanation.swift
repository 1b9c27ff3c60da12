import SoraICE
import SoraMessages
import SoraSDP
import SoraWire

/// A session description in plain words: what it offers, in which direction, over which transport, and what is wrong
/// with it. Credentials are masked.
package struct SDPExplanation: Sendable {
    /// A headed list of facts.
    package struct Group: Sendable, Equatable {
        package var title: String
        package var facts: [Fact] = []
    }
    package struct Fact: Sendable, Equatable {
        package var label: String
        package var text: String
    }

    package let document: SDPDocument
    package let findings: [SDPFinding]
    package private(set) var groups: [Group] = []

    package init(_ document: SDPDocument) {
        self.document = document
        findings = SDPCheck.findings(in: document)
        groups = [sessionGroup(), transportGroup()]
        if let offer = document.offer { groups.append(messageGroup(offer)) }
        for (index, media) in document.description.media.enumerated() { groups.append(sectionGroup(index, media)) }
    }

    /// Whether a connection with it can work.
    package var hasFaults: Bool { findings.contains { $0.severity == .fault } }

    /// The whole explanation for a terminal.
    package var text: String {
        var lines: [String] = []
        for group in groups {
            lines.append(group.title)
            lines += group.facts.map { "  \($0.label): \($0.text)" }
        }
        lines.append(findings.isEmpty ? "Nothing is wrong with it." : "Findings")
        for finding in findings {
            lines.append("  \(finding.severity.rawValue), \(finding.place): \(finding.text)")
            if !finding.advice.isEmpty { lines.append("    \(finding.advice)") }
        }
        return lines.joined(separator: "\n")
    }

    // MARK: Session

    private var description: SessionDescription { document.description }

    private func sessionGroup() -> Group {
        var group = Group(title: "Session (\(document.name), \(document.kind.rawValue))")
        let living = description.media.filter { !$0.isRejected }
        let kinds = living.map(\.kind.text).joined(separator: ", ")
        group.add("session", "\(description.sessionID), version \(description.sessionVersion)")
        group.add(
            "sections", "\(living.count) of \(description.media.count) in use\(kinds.isEmpty ? "" : ": \(kinds)")")
        let streams = Set(living.flatMap { $0.msids.map(\.stream) }).sorted()
        if !streams.isEmpty { group.add("streams", streams.joined(separator: ", ")) }
        return group
    }

    private func transportGroup() -> Group {
        var group = Group(title: "Transport")
        let bundled = description.bundledMids.map(\.rawValue)
        group.add(
            "bundle",
            bundled.isEmpty
                ? "none: every section has its own transport" : "\(bundled.joined(separator: ", ")) share one transport"
        )
        let mode = description.isICELite ? "lite: it answers checks and sends none" : "full: it sends checks itself"
        group.add("ICE", mode)
        guard let transport = description.transportAttributes else { return group }
        if let credentials = transport.iceCredentials {
            group.add(
                "ICE credentials",
                "user \(Masking.name(credentials.usernameFragment)), password \(Masking.secret(credentials.password))")
        }
        if !transport.iceOptions.isEmpty { group.add("ICE options", transport.iceOptions.joined(separator: ", ")) }
        for fingerprint in transport.fingerprints { group.add("DTLS fingerprint", fingerprint) }
        if let setup = transport.setup { group.add("DTLS role", SDPVocabulary.setup(setup)) }
        addCandidates(to: &group)
        return group
    }

    private func addCandidates(to group: inout Group) {
        let lines = description.media.flatMap(\.candidates)
        let candidates = lines.compactMap { try? ICECandidate(parsing: $0) }
        guard !candidates.isEmpty else { return group.add("candidates", "none") }
        for type in [ICECandidateType.host, .serverReflexive, .peerReflexive, .relayed] {
            let own = candidates.filter { $0.type == type }
            guard !own.isEmpty else { continue }
            let places = own.map { candidate in
                let role = candidate.tcpType.map { " (\($0.rawValue))" } ?? ""
                return "\(candidate.address)/\(candidate.transport.rawValue)\(role)"
            }
            group.add(
                "candidates", "\(own.count) \(SDPVocabulary.candidateType(type)): \(places.joined(separator: ", "))")
        }
        let isComplete = description.media.contains { $0.hasEndOfCandidates }
        group.add("more candidates", isComplete ? "none will follow" : "may follow")
    }

    // MARK: Message

    private func messageGroup(_ offer: OfferMessage) -> Group {
        var group = Group(title: "Message")
        if let version = offer.version { group.add("server", "Sora \(Masking.line(version, limit: 40))") }
        group.add("connection", Masking.line(offer.connectionID, limit: 60))
        if let config = offer.config {
            group.add(
                "ICE policy",
                config.allowsOnlyRelay ? "relay: only TURN servers may be used" : "all: any path may be used")
            for server in config.iceServers {
                for url in server.urls {
                    let secret = server.credential.map { ", credential \(Masking.secret($0))" } ?? ""
                    let user = server.username.map { ", user \(Masking.name($0))" } ?? ""
                    group.add("ICE server", Masking.line(url, limit: 200) + user + secret)
                }
            }
        }
        if let audio = offer.mid?.audio {
            group.add("own audio", "may be sent on section \(Masking.line(audio, limit: 60))")
        }
        if let video = offer.mid?.video {
            group.add("own video", "may be sent on section \(Masking.line(video, limit: 60))")
        }
        for encoding in offer.encodings ?? [] { group.add("encoding", text(of: encoding)) }
        group.add("signaling", offer.usesDataChannelSignaling ? "moves to data channels" : "stays on the WebSocket")
        for channel in offer.dataChannels ?? [] {
            group.add(
                "data channel",
                "\(Masking.line(channel.label, limit: 60)), \(channel.effectiveDirection.rawValue)"
                    + (channel.isCompressed ? ", compressed" : ""))
        }
        if let methods = offer.rpcMethods, !methods.isEmpty {
            group.add("RPC methods", methods.joined(separator: ", "))
        }
        return group
    }

    private func text(of encoding: SimulcastEncoding) -> String {
        var parts = [encoding.rid ?? "single"]
        if !encoding.isActive { parts.append("off") }
        if let scale = encoding.scaleResolutionDownBy { parts.append("size divided by \(scale)") }
        if let rate = encoding.maxBitrate { parts.append("at most \(rate / 1000) kbit/s") }
        if let rate = encoding.maxFramerate { parts.append("at most \(rate) frames/s") }
        if let mode = encoding.scalabilityMode { parts.append(mode) }
        return parts.joined(separator: ", ")
    }

    // MARK: Sections

    private func sectionGroup(_ index: Int, _ media: MediaDescription) -> Group {
        var group = Group(title: "Section \(index): \(media.kind.text)\(media.mid.map { " \"\($0)\"" } ?? "")")
        guard !media.isRejected else {
            group.add("state", "not in use (port 0); the slot may be used again")
            return group
        }
        group.add("protocol", media.transportProtocol)
        if media.kind == .application {
            group.add("SCTP", "port \(media.sctpPort.map(String.init) ?? "not stated")")
            let limit = media.effectiveMaxMessageSize
            group.add("largest message", limit == .max ? "no limit" : "\(limit) bytes")
            return group
        }
        group.add(
            "direction",
            SDPVocabulary.direction(media.direction, writer: document.writer, reader: document.reader))
        for msid in media.msids {
            group.add("stream", "\(msid.stream)\(msid.track.map { ", track \($0)" } ?? "")")
        }
        for codec in media.codecs where !codec.isNamed("rtx") { group.add("codec", text(of: codec, in: media)) }
        for bandwidth in media.bandwidths { group.add("bandwidth", "\(bandwidth.type) \(bandwidth.value)") }
        for element in media.headerExtensions {
            group.add(
                "header extension", "\(element.id) \(SDPVocabulary.headerExtension(element.uri)) (\(element.uri))")
        }
        addSimulcast(media, to: &group)
        for ssrc in media.ssrcs {
            group.add("SSRC", "\(ssrc.ssrc)\(ssrc.value("cname").map { ", cname \($0)" } ?? "")")
        }
        for pair in media.ssrcGroups {
            let meaning = pair.semantics == "FID" ? " (the second repeats lost packets of the first)" : ""
            group.add(
                "SSRC group", "\(pair.semantics) \(pair.ssrcs.map(\.description).joined(separator: " "))\(meaning)")
        }
        group.add(
            "RTCP",
            media.rtcpMux ? "on the same port\(media.rtcpReducedSize ? ", reduced size" : "")" : "on a port of its own")
        return group
    }

    private func text(of codec: CodecDescription, in media: MediaDescription) -> String {
        var text = "\(codec.payloadType) \(codec.name)/\(codec.clockRate)\(codec.channels.map { "/\($0)" } ?? "")"
        let parameters = SDPVocabulary.parameters(of: codec)
        if !parameters.isEmpty { text += "; " + parameters.joined(separator: ", ") }
        if let repair = media.retransmissionCodec(for: codec.payloadType) { text += "; rtx \(repair.payloadType)" }
        let feedback = codec.rtcpFeedback.map { "\($0) (\(SDPVocabulary.feedback($0)))" }
        if !feedback.isEmpty { text += "; feedback " + feedback.joined(separator: ", ") }
        return text
    }

    private func addSimulcast(_ media: MediaDescription, to group: inout Group) {
        guard let simulcast = media.simulcast else { return }
        let directions = [("sends", simulcast.send), ("receives", simulcast.receive)]
        for (verb, streams) in directions where !streams.isEmpty {
            let names = streams.map { alternatives in
                alternatives.map { "\($0.rid)\($0.isPaused ? " (paused)" : "")" }.joined(separator: " or ")
            }
            group.add(
                "simulcast", "the \(document.writer) \(verb) \(streams.count) layers: \(names.joined(separator: ", "))")
        }
        for rid in media.rids where !rid.payloadTypes.isEmpty || !rid.restrictions.isEmpty {
            let types = rid.payloadTypes.map(\.description).joined(separator: ", ")
            let limits = rid.restrictions.map { "\($0.name)=\($0.value ?? "")" }.joined(separator: ", ")
            group.add(
                "layer \(rid.id)",
                [types.isEmpty ? "" : "payload types \(types)", limits].filter { !$0.isEmpty }.joined(separator: "; "))
        }
    }
}

extension SDPExplanation.Group {
    mutating func add(_ label: String, _ text: String) { facts.append(.init(label: label, text: text)) }
}
