import SoraWire

/// Writes a session description: RFC 8866 order, CRLF line ends, one line per fact.
struct SDPSerializer {
    private var text = ""

    static func serialize(_ session: SessionDescription) -> String {
        var serializer = SDPSerializer()
        serializer.write(session)
        return serializer.text
    }

    /// Ends the line. Line breaks and NUL inside a value would begin a line of somebody else's, so they
    /// are left out.
    private mutating func line(_ content: String) {
        if content.utf8.contains(where: { $0 == 13 || $0 == 10 || $0 == 0 }) {
            text += String(decoding: content.utf8.filter { $0 != 13 && $0 != 10 && $0 != 0 }, as: UTF8.self)
        } else {
            text += content
        }
        text += "\r\n"
    }

    private mutating func write(_ attribute: SDPAttribute) {
        line("a=\(attribute.name)" + (attribute.value.map { ":" + $0 } ?? ""))
    }

    private mutating func write(_ session: SessionDescription) {
        line("v=0")
        line("o=\(session.username) \(session.sessionID) \(session.sessionVersion) \(session.originAddress)")
        line("s=\(session.name)")
        for information in session.informationLines where "iuep".contains(information.prefix(1)) { line(information) }
        let common = session.sessionLevel
        if let connection = common.connection { line("c=\(connection)") }
        for bandwidth in common.bandwidths { line("b=\(bandwidth.type):\(bandwidth.value)") }
        for time in session.timing { line("t=\(time)") }
        for information in session.informationLines where "rzk".contains(information.prefix(1)) { line(information) }
        for group in session.groups {
            line("a=group:" + ([group.semantics] + group.mids.map(\.rawValue)).joined(separator: " "))
        }
        if session.isICELite { line("a=ice-lite") }
        if session.extmapAllowMixed { line("a=extmap-allow-mixed") }
        if let semantic = session.msidSemantic { line("a=msid-semantic: \(semantic)") }
        writeTransport(
            ice: common.iceCredentials, options: common.iceOptions, fingerprints: common.fingerprints,
            setup: common.setup)
        for item in common.headerExtensions { write(item) }
        if let direction = common.direction { line("a=\(direction.rawValue)") }
        for attribute in session.otherAttributes { write(attribute) }
        for media in session.media { write(media) }
    }

    private mutating func writeTransport(
        ice: ICEParameters?, options: [String], fingerprints: [String], setup: DTLSSetup?
    ) {
        if let ice {
            line("a=ice-ufrag:\(ice.usernameFragment)")
            line("a=ice-pwd:\(ice.password)")
        }
        if !options.isEmpty { line("a=ice-options:" + options.joined(separator: " ")) }
        for fingerprint in fingerprints { line("a=fingerprint:\(fingerprint)") }
        if let setup { line("a=setup:\(setup.rawValue)") }
    }

    private mutating func write(_ item: HeaderExtensionDescription) {
        let direction = item.direction.map { "/" + $0.rawValue } ?? ""
        line("a=extmap:\(item.id)\(direction) \(item.uri)" + (item.attributes.map { " " + $0 } ?? ""))
    }

    private mutating func write(_ media: MediaDescription) {
        var formats = media.carriesRTP ? media.codecs.map { String($0.payloadType.rawValue) } : media.formats
        // A rejected section may have no codec in common, but the grammar wants one format.
        if formats.isEmpty { formats = ["0"] }
        line("m=\(media.kind.text) \(media.port) \(media.transportProtocol) " + formats.joined(separator: " "))
        if let connection = media.connection { line("c=\(connection)") }
        for bandwidth in media.bandwidths { line("b=\(bandwidth.type):\(bandwidth.value)") }
        if let rtcp = media.rtcp { line("a=rtcp:\(rtcp.port)" + (rtcp.address.map { " " + $0 } ?? "")) }
        for candidate in media.candidates { line("a=\(candidate)") }
        if media.hasEndOfCandidates { line("a=end-of-candidates") }
        writeTransport(
            ice: media.iceCredentials, options: media.iceOptions, fingerprints: media.fingerprints, setup: media.setup)
        if let mid = media.mid { line("a=mid:\(mid)") }
        if media.isBundleOnly { line("a=bundle-only") }
        for item in media.headerExtensions { write(item) }
        if media.carriesRTP || media.direction != .sendrecv { line("a=\(media.direction.rawValue)") }
        for msid in media.msids { line("a=msid:\(msid.stream)" + (msid.track.map { " " + $0 } ?? "")) }
        if media.rtcpMux { line("a=rtcp-mux") }
        if media.rtcpReducedSize { line("a=rtcp-rsize") }
        if media.carriesRTP { for codec in media.codecs { write(codec) } }
        for rid in media.rids { write(rid) }
        if let simulcast = media.simulcast { write(simulcast) }
        for group in media.ssrcGroups {
            line("a=ssrc-group:" + ([group.semantics] + group.ssrcs.map(\.description)).joined(separator: " "))
        }
        for source in media.ssrcs {
            for attribute in source.attributes {
                line("a=ssrc:\(source.ssrc) \(attribute.name)" + (attribute.value.map { ":" + $0 } ?? ""))
            }
        }
        writeDataChannel(media)
        for attribute in media.otherAttributes { write(attribute) }
    }

    private mutating func write(_ codec: CodecDescription) {
        if !codec.name.isEmpty {
            let channels = codec.channels.map { "/\($0)" } ?? ""
            line("a=rtpmap:\(codec.payloadType) \(codec.name)/\(codec.clockRate)\(channels)")
        }
        for feedback in codec.rtcpFeedback { line("a=rtcp-fb:\(codec.payloadType) \(feedback)") }
        if !codec.formatParameters.isEmpty { line("a=fmtp:\(codec.payloadType) \(codec.formatParameters.text)") }
    }

    private mutating func write(_ rid: RIDDescription) {
        var restrictions: [String] = []
        if !rid.payloadTypes.isEmpty {
            restrictions.append("pt=" + rid.payloadTypes.map(\.description).joined(separator: ","))
        }
        if !rid.restrictions.isEmpty { restrictions.append(FormatParameters(rid.restrictions).text) }
        let suffix = restrictions.isEmpty ? "" : " " + restrictions.joined(separator: ";")
        line("a=rid:\(rid.id) \(rid.direction.rawValue)\(suffix)")
    }

    private mutating func write(_ simulcast: SimulcastDescription) {
        func list(_ streams: [[SimulcastDescription.Layer]]) -> String {
            streams.map { alternatives in
                alternatives.map { ($0.isPaused ? "~" : "") + $0.rid.rawValue }.joined(separator: ",")
            }.joined(separator: ";")
        }
        var parts: [String] = []
        if !simulcast.send.isEmpty { parts.append("send " + list(simulcast.send)) }
        if !simulcast.receive.isEmpty { parts.append("recv " + list(simulcast.receive)) }
        if !parts.isEmpty { line("a=simulcast:" + parts.joined(separator: " ")) }
    }

    private mutating func writeDataChannel(_ media: MediaDescription) {
        if media.usesLegacySCTPSyntax {
            if let port = media.sctpPort {
                let streams = media.sctpMapStreams.map { " \($0)" } ?? ""
                line("a=sctpmap:\(port) webrtc-datachannel\(streams)")
            }
        } else if let port = media.sctpPort {
            line("a=sctp-port:\(port)")
        }
        if let size = media.maxMessageSize { line("a=max-message-size:\(size)") }
    }
}
