import SoraICE
import SoraMessages
import SoraSDP
import SoraWire

/// Looks for what will fail in a description: the rules of RFC 8829, 8843, 8842 and of Sora's clients (signaling
/// specification 2.7.2).
struct SDPCheck {
    let document: SDPDocument
    var description: SessionDescription { document.description }
    private(set) var findings: [SDPFinding] = []

    init(_ document: SDPDocument) { self.document = document }

    /// All findings, the worst first.
    static func findings(in document: SDPDocument) -> [SDPFinding] {
        var check = SDPCheck(document)
        check.checkSession()
        for (index, media) in document.description.media.enumerated() where !media.isRejected {
            check.checkSection(media, place: place(index, media))
        }
        check.checkAcrossSections()
        check.checkMessage()
        return check.findings.enumerated().sorted {
            ($0.element.severity, $0.offset) < ($1.element.severity, $1.offset)
        }.map(\.element)
    }

    static func place(_ index: Int, _ media: MediaDescription) -> String {
        "section \(index) (\(media.mid?.rawValue ?? media.kind.text))"
    }

    mutating func add(_ severity: SDPFinding.Severity, _ place: String, _ text: String, _ advice: String = "") {
        findings.append(SDPFinding(severity: severity, place: place, text: text, advice: advice))
    }

    // MARK: Session and transport

    private mutating func checkSession() {
        let living = description.media.filter { !$0.isRejected }
        if description.media.isEmpty {
            return add(.fault, "session", "there is no m-line", "a connection needs at least one section")
        }
        if living.isEmpty {
            return add(
                .fault, "session", "every section is rejected (port 0)", "nothing can be sent in either direction")
        }
        checkBundle(living)
        checkTransport(living)
        checkCandidates()
    }

    private mutating func checkBundle(_ living: [MediaDescription]) {
        for mid in description.unknownBundledMids {
            add(
                .fault, "session", "a=group:BUNDLE names \(mid), which no section has",
                "drop the mid from the group or add its section")
        }
        let bundled = Set(description.bundledMids)
        for (index, media) in description.media.enumerated() where !media.isRejected && living.count > 1 {
            if let mid = media.mid, bundled.contains(mid) { continue }
            add(
                .fault, SDPCheck.place(index, media), "it is not in a=group:BUNDLE",
                "clients of Sora use one transport for everything: name its mid in the group")
        }
    }

    private mutating func checkTransport(_ living: [MediaDescription]) {
        guard let transport = description.transportAttributes else { return }
        if transport.iceCredentials == nil {
            add(
                .fault, "session", "there is no a=ice-ufrag and a=ice-pwd", "ICE checks cannot be authenticated without"
            )
        }
        if transport.fingerprints.isEmpty {
            add(
                .fault, "session", "there is no a=fingerprint",
                "DTLS cannot be tied to this description; clients refuse media and data without it")
        } else if !transport.fingerprints.contains(where: { SDPCheck.isStrong($0) }) {
            add(
                .fault, "session", "all fingerprints use weak or unknown hashes",
                "offer one of sha-256, sha-384 or sha-512")
        }
        checkSetup(transport.setup)
        for (index, media) in description.media.enumerated() where !media.isRejected {
            if let own = media.iceCredentials, let shared = transport.iceCredentials, own != shared {
                add(
                    .warning, SDPCheck.place(index, media), "its ICE credentials differ from the bundle's",
                    "those of the bundle's first section count")
            }
            if !media.fingerprints.isEmpty, Set(media.fingerprints) != Set(transport.fingerprints) {
                add(
                    .warning, SDPCheck.place(index, media), "its fingerprint differs from the bundle's",
                    "that of the bundle's first section counts")
            }
        }
    }

    private static func isStrong(_ fingerprint: String) -> Bool {
        let algorithm = fingerprint.prefix { $0 != " " }.lowercased()
        return ["sha-256", "sha-384", "sha-512"].contains(algorithm)
    }

    private mutating func checkSetup(_ setup: DTLSSetup?) {
        switch (document.kind, setup) {
        case (_, .holdconn):
            add(.fault, "session", "setup is holdconn", "no DTLS handshake will take place")
        case (.offer, .actpass), (.unknown, _), (.answer, .active), (.answer, .passive): break
        case (.offer, let other):
            add(
                .warning, "session", "an offer with \(other.map { "setup:\($0.rawValue)" } ?? "no a=setup")",
                "offers say a=setup:actpass; clients then begin the handshake (2.7.2)")
        case (.answer, .actpass):
            add(.fault, "session", "an answer with setup:actpass", "an answer has to choose active or passive")
        case (.answer, nil):
            add(.warning, "session", "an answer without a=setup", "an answer has to choose active or passive")
        }
    }

    private mutating func checkCandidates() {
        let lines = description.media.flatMap(\.candidates)
        let candidates = lines.compactMap { try? ICECandidate(parsing: $0) }
        if candidates.count < lines.count {
            add(
                .note, "session", "\(lines.count - candidates.count) of \(lines.count) candidates cannot be used",
                "their transport is neither UDP nor TCP, or the line is malformed")
        }
        guard !candidates.isEmpty else {
            if description.isICELite || description.media.contains(where: \.hasEndOfCandidates) {
                add(
                    .fault, "session", "there is no usable candidate and none will follow",
                    "the other side has nowhere to send to: check the writer's addresses")
            } else if document.kind == .answer {
                add(
                    .note, "session", "there is no candidate yet",
                    "answers of Sora's clients are followed by candidate messages")
            } else {
                add(
                    .warning, "session", "there is no candidate",
                    "Sora's server never sends any later: unless it sends checks itself, no path will be found")
            }
            return
        }
        let addresses = candidates.compactMap(\.socketAddress)
        if addresses.isEmpty {
            return add(
                .warning, "session", "all candidates are names", "each must be resolvable (mDNS) from the other side")
        }
        if addresses.contains(where: { $0.ip.isUnspecified }) {
            add(
                .warning, "session", "a candidate has the unspecified address",
                "the server's media address is not configured")
        }
        if addresses.allSatisfy({ $0.ip.isLoopback }) {
            add(
                .note, "session", "all candidates are loopback addresses",
                "only clients on the same machine can connect")
        }
        if candidates.allSatisfy({ $0.transport == .tcp }) {
            add(.warning, "session", "all candidates are TCP", "many clients use UDP only")
        }
    }

    // MARK: One section

    private mutating func checkSection(_ media: MediaDescription, place: String) {
        if media.mid == nil {
            add(.warning, place, "it has no a=mid", "sections are told apart by their mid")
        }
        if media.kind == .application {
            checkDataChannels(media, place)
        } else if media.carriesRTP {
            checkRTP(media, place)
        } else {
            add(.warning, place, "\(media.transportProtocol) is neither RTP nor data channels", "it will be rejected")
        }
    }

    private mutating func checkDataChannels(_ media: MediaDescription, _ place: String) {
        guard media.carriesDataChannels else {
            return add(
                .fault, place,
                "\(media.transportProtocol) \(media.formats.joined(separator: " ")) is not SCTP over DTLS",
                "data channels need UDP/DTLS/SCTP webrtc-datachannel")
        }
        if media.usesLegacySCTPSyntax {
            add(.note, place, "it uses the form before RFC 8841", "old clients only")
        } else if media.sctpPort == nil {
            add(.warning, place, "there is no a=sctp-port", "5000 will be assumed")
        }
        if media.maxMessageSize == nil {
            add(.note, place, "there is no a=max-message-size", "messages are limited to 65536 bytes then")
        }
    }

    private mutating func checkRTP(_ media: MediaDescription, _ place: String) {
        if !media.isSecureRTP {
            add(
                .fault, place, "\(media.transportProtocol) is not protected by DTLS",
                "media in the clear is refused: use UDP/TLS/RTP/SAVPF")
        }
        if !media.rtcpMux {
            add(.fault, place, "there is no a=rtcp-mux", "clients of Sora require RTP and RTCP on one port")
        }
        if !media.codecs.contains(where: \.isMedia) {
            add(.fault, place, "there is no codec", "name at least one that both sides know")
        }
        checkCodecs(media, place)
        checkSimulcast(media, place)
        guard document.kind == .offer else { return }
        if media.direction == .recvonly, !media.msids.isEmpty || !media.ssrcs.isEmpty {
            add(
                .warning, place, "a recvonly section of an offer carries a=msid or a=ssrc",
                "a native client that only sends aborts on it (2.7.2)")
        }
        if media.direction.sends, media.msids.isEmpty, document.isSignaling {
            add(
                .warning, place, "it sends without a=msid",
                "clients take the stream id for the sender's connection id (2.7.2)")
        }
        if media.msids.contains(where: { $0.stream == "default" }) {
            add(.note, place, "its stream id is \"default\"", "clients take it for a placeholder and show no stream")
        }
    }

    private mutating func checkCodecs(_ media: MediaDescription, _ place: String) {
        for codec in media.codecs where codec.isNamed("rtx") {
            guard let repaired = codec.associatedPayloadType else {
                add(.warning, place, "the rtx format \(codec.payloadType) has no apt", "it repairs nothing")
                continue
            }
            if media.codec(repaired) == nil {
                add(
                    .warning, place, "the rtx format \(codec.payloadType) repeats \(repaired), which is not there",
                    "lost packets of it cannot be repaired")
            }
        }
        guard media.kind == .video else { return }
        for codec in media.codecs where codec.isMedia {
            if !codec.rtcpFeedback.contains("nack pli") && !codec.rtcpFeedback.contains("ccm fir") {
                add(
                    .warning, place, "\(codec.name) (\(codec.payloadType)) has no feedback that asks for key frames",
                    "a receiver that joins or loses packets sees no picture until the next key frame")
            }
            if codec.isNamed("H264"), let text = codec.formatParameters["profile-level-id"],
                H264ProfileLevel(profileLevelID: text) == nil
            {
                add(
                    .warning, place, "profile-level-id=\(Masking.line(text, limit: 20)) is no H.264 profile",
                    "decoders will refuse it")
            }
        }
    }

    private mutating func checkSimulcast(_ media: MediaDescription, _ place: String) {
        guard let simulcast = media.simulcast else { return }
        let layers = (simulcast.send + simulcast.receive).flatMap { $0 }
        for layer in layers where !media.rids.contains(where: { $0.id == layer.rid }) {
            add(.warning, place, "a=simulcast names \(layer.rid), which has no a=rid", "the layer will be dropped")
        }
        for (uri, name) in [(HeaderExtensionURI.mid, "mid"), (HeaderExtensionURI.rid, "rtp-stream-id")]
        where media.headerExtension(uri) == nil {
            add(
                .fault, place, "simulcast without the header extension \(name)",
                "layers have no a=ssrc lines: they are recognised by this extension only (2.7.2)")
        }
        if media.codecs.contains(where: { $0.isNamed("rtx") }),
            media.headerExtension(HeaderExtensionURI.repairedRid) == nil
        {
            add(
                .warning, place, "simulcast with rtx but without the header extension repaired-rtp-stream-id",
                "retransmissions cannot be assigned to a layer")
        }
    }

    // MARK: Bundle-wide numbers

    private mutating func checkAcrossSections() {
        var codecs: [PayloadType: CodecDescription] = [:]
        var extensions: [UInt8: String] = [:]
        for (index, media) in description.media.enumerated() where !media.isRejected {
            for codec in media.codecs {
                if let other = codecs[codec.payloadType],
                    !other.isNamed(codec.name) || other.clockRate != codec.clockRate
                {
                    add(
                        .fault, SDPCheck.place(index, media),
                        "payload type \(codec.payloadType) means \(codec.name) here and \(other.name) elsewhere",
                        "in one bundle a payload type has one meaning")
                }
                codecs[codec.payloadType] = codec
            }
            for element in media.headerExtensions {
                if let other = extensions[element.id], other != element.uri {
                    add(
                        .fault, SDPCheck.place(index, media),
                        "header extension id \(element.id) means two things in one bundle", "give each its own id")
                }
                extensions[element.id] = element.uri
                if element.id > 14, !description.extmapAllowMixed {
                    add(
                        .note, SDPCheck.place(index, media),
                        "header extension id \(element.id) needs two-byte headers, and a=extmap-allow-mixed is missing",
                        "")
                }
            }
        }
    }

    // MARK: The message around it

    private mutating func checkMessage() {
        guard let offer = document.offer else { return }
        let places: [(key: String, mid: String?, kind: MediaKind)] = [
            ("mid.audio", offer.mid?.audio, .audio), ("mid.video", offer.mid?.video, .video),
        ]
        for (key, mid, kind) in places {
            guard let mid else { continue }
            guard let media = description.media.first(where: { $0.mid?.rawValue == mid }) else {
                add(
                    .fault, "message", "\(key) is \"\(Masking.line(mid, limit: 60))\", which no section has",
                    "senders cannot send")
                continue
            }
            if media.kind != kind || !media.direction.receives {
                add(
                    .warning, "message",
                    "\(key) names a section that is \(media.kind.text), \(media.direction.rawValue)",
                    "the section of one's own \(kind.text) has to be recvonly in the offer (2.7.2)")
            }
        }
        let hasDataChannels = description.media.contains { !$0.isRejected && $0.carriesDataChannels }
        if offer.usesDataChannelSignaling, !hasDataChannels {
            add(.fault, "message", "data channel signaling is on, but no section carries data channels", "")
        }
        guard let config = offer.config else {
            return add(.note, "message", "there is no config", "native clients of Sora abort without it (2.3)")
        }
        let hasTURN = config.iceServers.contains { $0.urls.contains { $0.lowercased().hasPrefix("turn") } }
        if config.allowsOnlyRelay, !hasTURN {
            add(
                .warning, "message", "iceTransportPolicy is relay, but there is no TURN server",
                "browsers find no candidate then")
        }
    }
}
