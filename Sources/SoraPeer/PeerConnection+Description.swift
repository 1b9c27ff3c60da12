import SoraICE
import SoraSDP
import SoraSecureTransport
import SoraWire

// What offers and answers share: session level, transport lines, sending lines.

extension PeerConnection {
    func makeDescription() -> SessionDescription {
        var description = SessionDescription(
            sessionID: String(sessionID), sessionVersion: String(sessionVersion))
        sessionVersion += 1
        description.isICELite = configuration.ice.mode == .lite
        description.extmapAllowMixed = true
        description.msidSemantic = "WMS *"
        return description
    }

    /// Adds the BUNDLE group over all living sections (of `bundling`, if given) and the candidates,
    /// which stand in the first of them only.
    func finish(_ description: inout SessionDescription, bundling: Set<Mid>? = nil) {
        let living = description.media.filter { !$0.isRejected }.compactMap(\.mid)
            .filter { bundling?.contains($0) ?? true }
        if !living.isEmpty { description.groups = [MediaGroup(semantics: "BUNDLE", mids: living)] }
        if let first = description.media.firstIndex(where: { !$0.isRejected }) {
            description.media[first].candidates = localCandidates.map(\.attributeValue)
            description.media[first].hasEndOfCandidates = configuration.ice.mode == .lite || hasFinishedGathering
        }
    }

    func addTransport(to media: inout MediaDescription, setup: DTLSSetup) {
        let credentials = ice.localCredentials
        media.iceCredentials = ICEParameters(
            usernameFragment: credentials.usernameFragment, password: credentials.password)
        if configuration.ice.mode == .full { media.iceOptions = ["trickle"] }
        media.fingerprints = [configuration.certificate.fingerprint.sdp]
        media.setup = setup
    }

    /// Adds stream ids and, without simulcast, SSRCs. Simulcast layers are told apart by their RID
    /// header extension alone.
    func describeSending(_ transceiver: Transceiver, in media: inout MediaDescription) {
        guard let stream = transceiver.streamIdentifier else { return }
        media.msids = [stream]
        guard transceiver.encodings.count == 1, let encoding = transceiver.encodings.first, encoding.rid == nil
        else { return }
        let attributes = [SDPAttribute("cname", configuration.canonicalName)]
        media.ssrcs = [SSRCDescription(ssrc: encoding.ssrc, attributes: attributes)]
        if media.codecs.contains(where: { $0.isNamed("rtx") }) {
            media.ssrcs.append(SSRCDescription(ssrc: encoding.repairSSRC, attributes: attributes))
            media.ssrcGroups = [SSRCGroup(semantics: "FID", ssrcs: [encoding.ssrc, encoding.repairSSRC])]
        }
    }

    func dataChannelMedia(mid: Mid?) -> MediaDescription {
        var media = MediaDescription(
            kind: .application, port: 9, transportProtocol: "UDP/DTLS/SCTP")
        media.formats = ["webrtc-datachannel"]
        media.mid = mid
        media.sctpPort = 5000
        media.maxMessageSize = configuration.maximumMessageSize
        return media
    }

    func rejectedMedia(kind: MediaKind, mid: Mid?, like transceiver: Transceiver?) -> MediaDescription {
        var media = MediaDescription(
            kind: kind, port: 0,
            transportProtocol: kind == .application ? "UDP/DTLS/SCTP" : MediaDescription.rtpProtocol)
        media.mid = mid
        media.direction = .inactive
        if kind == .application {
            media.formats = ["webrtc-datachannel"]
        } else {
            // An m-line needs at least one format.
            let known = transceiver?.codecs.first ?? transceiver?.codecPreferences.first
            media.codecs = [known ?? configuration.media.codecs(of: kind).first].compactMap { $0 }
        }
        return media
    }

    /// Every living section must be in the one bundle, and the bundle must name only what is there.
    func checkBundle(_ description: SessionDescription) throws(PeerError) {
        if let unknown = description.unknownBundledMids.first {
            throw .unusableDescription("a=group:BUNDLE names the mid \(unknown), which no section has")
        }
        let bundled = Set(description.bundledMids)
        let living = description.media.filter { !$0.isRejected }
        guard living.count > 1 else { return }
        for media in living {
            guard let mid = media.mid, bundled.contains(mid) else {
                throw .unusableDescription(
                    "the \(media.kind.text) section \(media.mid?.rawValue ?? "without a mid") is not in a=group:BUNDLE; "
                        + "all sections must share one transport")
            }
        }
    }

    /// Puts the other side's transport parameters into force.
    func adopt(
        _ remote: RemoteTransport, candidatesFrom description: SessionDescription, dtlsRole role: DTLSEndpoint.Role,
        now: Instant
    ) throws(PeerError) {
        if dtls == nil {
            do {
                dtls = try DTLSEndpoint(
                    certificate: configuration.certificate, role: dtlsRole ?? role,
                    remoteFingerprints: remote.fingerprints, srtpProfiles: configuration.srtpProfiles,
                    maximumDatagramSize: configuration.maximumDatagramSize)
            } catch {
                throw .dtls(error)
            }
            dtlsRole = dtlsRole ?? role
        }
        if remoteTransport?.credentials != remote.credentials {
            ice.setRemote(credentials: remote.credentials, isLite: remote.isLite, now: now)
        }
        remoteTransport = remote
        for line in description.media.flatMap(\.candidates) {
            // One that cannot be used costs only itself.
            if let candidate = try? ICECandidate(parsing: line) { ice.addRemoteCandidate(candidate, now: now) }
        }
        startDTLSIfPossible(now: now)
        startDataChannelsIfPossible(now: now)
    }
}
