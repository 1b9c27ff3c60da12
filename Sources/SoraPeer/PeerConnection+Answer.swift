import SoraRTP
import SoraSDP
import SoraSecureTransport
import SoraWire

// The other side offers, we answer.

extension PeerConnection {
    /// Takes an offer. Transceivers for its m-lines exist when this returns, so that directions and
    /// encodings can be set before ``makeAnswer(now:)``. On an error nothing has changed.
    ///
    /// An offer that meets one of ours undoes ours (the other side wins; RFC 9429, 4.1.10.2).
    package func acceptOffer(_ offer: SessionDescription, now: Instant) throws(PeerError) {
        guard signalingState == .stable || signalingState == .haveLocalOffer else {
            throw .invalidState(operation: "taking an offer", state: signalingState)
        }
        let current = pendingLocalOffer?.sectionsBefore ?? sections
        guard offer.media.count >= current.count else {
            throw .unusableDescription("it has \(offer.media.count) m-lines, \(current.count) were negotiated before")
        }
        for (index, (section, media)) in zip(current, offer.media).enumerated() where !section.isVacant {
            guard section.kind == media.kind else {
                throw .unusableDescription(
                    "m-line \(index + 1) changed from \(section.kind.text) to \(media.kind.text)")
            }
            if !media.isRejected, let mid = media.mid, mid != section.mid {
                throw .unusableDescription(
                    "m-line \(index + 1) changed its mid from \(section.mid?.rawValue ?? "none") to \(mid) while in use"
                )
            }
        }
        try checkBundle(offer)
        for (index, media) in offer.media.enumerated() where !media.isRejected {
            if media.carriesRTP, !media.isSecureRTP {
                throw .unusableDescription(
                    "m-line \(index + 1) uses \(media.transportProtocol); only RTP secured by DTLS is supported")
            }
        }
        let remote = try RemoteTransport(offer)

        if signalingState == .haveLocalOffer { try rollback() }
        signalingState = .haveRemoteOffer
        pendingRemoteOffer = offer
        sectionsBeforeRemoteOffer = sections
        for (index, media) in offer.media.enumerated() { place(media, at: index) }
        if let remote {
            let role: DTLSEndpoint.Role = remote.setup == .active ? .server : .client
            try adopt(remote, candidatesFrom: offer, dtlsRole: role, now: now)
        }
        pump(now: now)
    }

    /// Answers the offer taken last. The answer is in force when this returns.
    package func makeAnswer(now: Instant) throws(PeerError) -> SessionDescription {
        guard signalingState == .haveRemoteOffer, let offer = pendingRemoteOffer else {
            throw .invalidState(operation: "making an answer", state: signalingState)
        }
        var answer = makeDescription()
        for (index, offered) in offer.media.enumerated() {
            var media = answerMedia(to: offered, at: index)
            if !media.isRejected {
                addTransport(to: &media, setup: dtlsRole == .server ? .passive : .active)
            }
            answer.media.append(media)
        }
        finish(&answer, bundling: Set(offer.bundledMids))
        pendingRemoteOffer = nil
        sectionsBeforeRemoteOffer = nil
        signalingState = .stable
        rtp.updateDemultiplexing(transceivers)
        pump(now: now)
        return answer
    }

    func undoRemoteOffer() {
        pendingRemoteOffer = nil
        if let before = sectionsBeforeRemoteOffer {
            let kept = before.compactMap(\.transceiver)
            transceivers.removeAll { transceiver in
                sections.contains { $0.transceiver === transceiver } && !kept.contains { $0 === transceiver }
            }
            sections = before
        }
        sectionsBeforeRemoteOffer = nil
    }

    private func place(_ media: MediaDescription, at index: Int) {
        if index < sections.count, !sections[index].isVacant { return }
        var section = Section(kind: media.kind, mid: media.mid, content: .vacant)
        if !media.isRejected {
            switch media.kind {
            case .audio, .video:
                let transceiver = Transceiver(
                    id: TransceiverID(nextTransceiverID), kind: media.kind, direction: .recvonly,
                    mid: media.mid ?? makeMid(prefix: media.kind.text))
                nextTransceiverID += 1
                transceivers.append(transceiver)
                section.mid = transceiver.mid
                section.content = .transceiver(transceiver)
            case .application where media.carriesDataChannels:
                section.content = .dataChannels
            default: break
            }
        }
        if index < sections.count { sections[index] = section } else { sections.append(section) }
    }

    private func answerMedia(to offered: MediaDescription, at index: Int) -> MediaDescription {
        switch sections[index].content {
        case .vacant:
            return rejectedAnswer(to: offered)
        case .dataChannels:
            guard !offered.isRejected else {
                sections[index].content = .vacant
                return rejectedAnswer(to: offered)
            }
            makeDataChannelTransport(remote: offered)
            var media = dataChannelMedia(mid: offered.mid)
            if offered.usesLegacySCTPSyntax {
                media.transportProtocol = offered.transportProtocol
                media.formats = ["5000"]
                media.sctpPort = nil
                media.sctpMapStreams = offered.sctpMapStreams ?? 1024
            }
            return media
        case .transceiver(let transceiver):
            let codecs = offered.isRejected ? [] : acceptableCodecs(offered, for: transceiver)
            guard codecs.contains(where: \.isMedia) else {
                vacate(index, transceiver: transceiver, isRejected: !offered.isRejected)
                return rejectedAnswer(to: offered)
            }
            return acceptedMedia(to: offered, codecs: codecs, transceiver: transceiver)
        }
    }

    private func acceptedMedia(
        to offered: MediaDescription, codecs: [CodecDescription], transceiver: Transceiver
    ) -> MediaDescription {
        let wasReceiving = transceiver.mayReceive
        let wanted = transceiver.direction
        let agreed = wanted.intersection(offered.direction.reversed)
        let supported = configuration.media.extensions(of: transceiver.kind)
        var media = MediaDescription(
            kind: offered.kind, port: 9, transportProtocol: offered.transportProtocol)
        media.mid = offered.mid
        media.direction = agreed
        media.codecs = agreed.receives ? codecs.map { withOwnWishes($0, for: transceiver) } : codecs
        media.headerExtensions = offered.headerExtensions.filter { theirs in
            supported.contains { $0.uri == theirs.uri }
        }
        media.rtcpMux = true
        media.rtcpReducedSize = offered.rtcpReducedSize

        transceiver.codecs = codecs
        transceiver.extensions = RTPExtensionMap(media.headerExtensions)
        transceiver.currentDirection = agreed
        transceiver.remoteStreamIdentifiers = offered.direction.sends ? offered.msids : []
        transceiver.sendBandwidthLimit =
            offered.bandwidths.first { $0.type == "TIAS" }.map { Int(clamping: $0.value) }
            ?? offered.bandwidths.first { $0.type == "AS" }.map { Int(clamping: $0.value) }
            .map { $0.multipliedReportingOverflow(by: 1000) }.map { $0.overflow ? Int.max : $0.partialValue }
        if agreed.sends {
            answerSimulcast(offered, transceiver: transceiver, in: &media)
            describeSending(transceiver, in: &media)
        }
        rtp.bind(transceiver, described: offered, random: &random)
        announceTrack(transceiver, wasReceiving: wasReceiving)
        return media
    }

    /// Accepts of the layers asked for those that we have encodings for.
    private func answerSimulcast(
        _ offered: MediaDescription, transceiver: Transceiver, in media: inout MediaDescription
    ) {
        let asked = (offered.simulcast?.receive ?? []).compactMap(\.first)
        let layers = asked.filter { layer in transceiver.encodings.contains { $0.rid == layer.rid } }
        guard !layers.isEmpty else {
            // One plain stream: the best we have.
            if let best = transceiver.encodings.last, transceiver.encodings.count > 1 || best.rid != nil {
                transceiver.encodings = [Encoding(ssrc: best.ssrc, repairSSRC: best.repairSSRC)]
            }
            return
        }
        transceiver.encodings.removeAll { encoding in !layers.contains { $0.rid == encoding.rid } }
        media.rids = layers.map { RIDDescription(id: $0.rid, direction: .send) }
        media.simulcast = SimulcastDescription(send: layers.map { [$0] })
    }

    /// The offered codecs that we have too, in the offer's order with the offer's payload types, each
    /// with its repair format.
    private func acceptableCodecs(_ offered: MediaDescription, for transceiver: Transceiver) -> [CodecDescription] {
        let ours =
            transceiver.codecPreferences.isEmpty
            ? configuration.media.codecs(of: transceiver.kind) : transceiver.codecPreferences
        let media = offered.codecs.filter { theirs in
            theirs.isMedia && ours.contains { $0.isCompatible(with: theirs) }
        }
        let repairs = offered.codecs.filter { repair in
            guard let repaired = repair.associatedPayloadType, ours.contains(where: { $0.isNamed("rtx") }) else {
                return false
            }
            return media.contains { $0.payloadType == repaired }
        }
        return (media + repairs).map { codec in
            var answered = codec
            let mine = ours.first { $0.isCompatible(with: codec) || (codec.isNamed("rtx") && $0.isNamed("rtx")) }
            answered.rtcpFeedback = codec.rtcpFeedback.filter { mine?.rtcpFeedback.contains($0) ?? false }
            return answered
        }
    }

    /// Each side says for itself whether it wants to receive Opus in stereo (RFC 7587, 7.1).
    private func withOwnWishes(_ codec: CodecDescription, for transceiver: Transceiver) -> CodecDescription {
        guard codec.isNamed("opus"),
            let mine = configuration.media.codecs(of: transceiver.kind).first(where: { $0.isNamed("opus") }),
            let stereo = mine.formatParameters["stereo"]
        else { return codec }
        var codec = codec
        codec.formatParameters["stereo"] = stereo
        return codec
    }

    private func rejectedAnswer(to offered: MediaDescription) -> MediaDescription {
        var media = MediaDescription(kind: offered.kind, port: 0, transportProtocol: offered.transportProtocol)
        media.mid = offered.mid
        media.direction = .inactive
        media.formats = offered.formats
        media.codecs = Array(offered.codecs.prefix(1))
        media.sctpPort = offered.sctpPort
        return media
    }
}
