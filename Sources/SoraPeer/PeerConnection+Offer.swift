import SoraRTP
import SoraSDP
import SoraSecureTransport
import SoraWire

// We offer, the other side answers.

extension PeerConnection {
    /// Describes everything we want now and waits for the answer.
    ///
    /// The offer is in force as our local description when this returns.
    /// - Throws: ``PeerError/invalidState(operation:state:)`` while another negotiation is under way.
    package func makeOffer(now: Instant) throws(PeerError) -> SessionDescription {
        guard signalingState == .stable else {
            throw .invalidState(operation: "making an offer", state: signalingState)
        }
        let before = sections
        placeNewSections()
        var description = makeDescription()
        // The first living section names the bundle. libwebrtc takes its rejection for the rejection of everything in
        // the bundle and closes the transport, so it stays, inactive, when its media ends.
        let tag = sections.firstIndex { !$0.isVacant }
        for (index, section) in sections.enumerated() {
            switch section.content {
            case .transceiver(let transceiver):
                description.media.append(
                    transceiver.isStopped && index != tag
                        ? rejectedMedia(kind: section.kind, mid: section.mid, like: transceiver)
                        : offeredMedia(for: transceiver))
            case .dataChannels:
                description.media.append(dataChannelMedia(mid: section.mid ?? Mid("data")))
            case .vacant:
                description.media.append(rejectedMedia(kind: section.kind, mid: section.mid, like: nil))
            }
            if !description.media[index].isRejected {
                addTransport(to: &description.media[index], setup: .actpass)
            }
        }
        finish(&description)
        pendingLocalOffer = PendingLocalOffer(description: description, sectionsBefore: before)
        signalingState = .haveLocalOffer
        return description
    }

    /// Takes the answer to our offer. On an error nothing has changed.
    package func acceptAnswer(_ answer: SessionDescription, now: Instant) throws(PeerError) {
        guard signalingState == .haveLocalOffer, let pending = pendingLocalOffer else {
            throw .invalidState(operation: "taking an answer", state: signalingState)
        }
        let offer = pending.description
        guard answer.media.count == offer.media.count else {
            throw .mismatchedAnswer("it has \(answer.media.count) m-lines, the offer has \(offer.media.count)")
        }
        for (index, (offered, answered)) in zip(offer.media, answer.media).enumerated() {
            guard offered.kind == answered.kind else {
                throw .mismatchedAnswer(
                    "m-line \(index + 1) is \(answered.kind.text), offered was \(offered.kind.text)")
            }
            if let mid = answered.mid, mid != offered.mid {
                throw .mismatchedAnswer(
                    "m-line \(index + 1) has the mid \(mid), offered was \(offered.mid?.rawValue ?? "none")")
            }
            if offered.isRejected, !answered.isRejected {
                throw .mismatchedAnswer("m-line \(index + 1) accepts media that was not offered")
            }
        }
        try checkBundle(answer)
        let remote = try RemoteTransport(answer)
        if remote?.setup == .actpass { throw .mismatchedAnswer("its a=setup is actpass; an answer must choose a role") }

        pendingLocalOffer = nil
        signalingState = .stable
        for index in sections.indices {
            apply(answered: answer.media[index], offered: offer.media[index], toSection: index)
        }
        rtp.updateDemultiplexing(transceivers)
        if let remote {
            // RFC 8842, 5.2: the answerer's active means that we are the server.
            try adopt(remote, candidatesFrom: answer, dtlsRole: remote.setup == .passive ? .client : .server, now: now)
        }
        pump(now: now)
    }

    /// Takes back an offer that was not answered, or a remote offer that we have not answered.
    package func rollback() throws(PeerError) {
        switch signalingState {
        case .haveLocalOffer:
            if let pending = pendingLocalOffer { sections = pending.sectionsBefore }
            pendingLocalOffer = nil
        case .haveRemoteOffer:
            undoRemoteOffer()
        case .stable, .closed:
            throw .invalidState(operation: "rolling back", state: signalingState)
        }
        signalingState = .stable
    }

    private func placeNewSections() {
        for transceiver in transceivers where !transceiver.isStopped {
            guard !sections.contains(where: { $0.transceiver === transceiver }) else { continue }
            let section = Section(kind: transceiver.kind, mid: transceiver.mid, content: .transceiver(transceiver))
            if let free = sections.firstIndex(where: { $0.isVacant && $0.kind == transceiver.kind }) {
                sections[free] = section
            } else {
                sections.append(section)
            }
        }
        if wantsDataChannels, !sections.contains(where: \.isDataChannels) {
            sections.append(Section(kind: .application, mid: Mid("data"), content: .dataChannels))
        }
    }

    private func offeredMedia(for transceiver: Transceiver) -> MediaDescription {
        var media = MediaDescription(
            kind: transceiver.kind, port: 9, transportProtocol: MediaDescription.rtpProtocol)
        media.mid = transceiver.mid
        media.direction = transceiver.direction
        media.codecs =
            transceiver.codecPreferences.isEmpty
            ? configuration.media.codecs(of: transceiver.kind) : transceiver.codecPreferences
        media.headerExtensions = configuration.media.extensions(of: transceiver.kind)
        media.rtcpMux = true
        media.rtcpReducedSize = true
        if transceiver.direction.sends { describeSending(transceiver, in: &media) }
        if transceiver.direction.receives {
            if !transceiver.requestedLayers.isEmpty {
                media.rids = transceiver.requestedLayers.map { RIDDescription(id: $0.rid, direction: .recv) }
                media.simulcast = SimulcastDescription(
                    receive: transceiver.requestedLayers.map { [.init($0.rid, isPaused: $0.isPaused)] })
            }
            if let limit = transceiver.receiveBandwidthLimit {
                media.bandwidths = [
                    BandwidthLimit(type: "AS", value: UInt64(limit)),
                    BandwidthLimit(type: "TIAS", value: UInt64(limit) * 1000),
                ]
            }
        }
        return media
    }

    private func apply(answered: MediaDescription, offered: MediaDescription, toSection index: Int) {
        switch sections[index].content {
        case .transceiver(let transceiver):
            if answered.isRejected {
                vacate(index, transceiver: transceiver, isRejected: !transceiver.isStopped)
                return
            }
            if transceiver.isStopped {  // it only names the bundle
                transceiver.currentDirection = .inactive
                return
            }
            let wasReceiving = transceiver.mayReceive
            // The answerer orders by its preference and describes what it can receive; payload types
            // that were not offered are no part of the agreement.
            transceiver.codecs = answered.codecs.filter { codec in
                offered.codecs.contains { $0.payloadType == codec.payloadType }
            }
            transceiver.extensions = RTPExtensionMap(
                answered.headerExtensions.filter { answer in
                    offered.headerExtensions.contains { $0.id == answer.id && $0.uri == answer.uri }
                })
            transceiver.currentDirection = offered.direction.intersection(answered.direction.reversed)
            transceiver.remoteStreamIdentifiers = answered.msids
            transceiver.receivingLayers = (answered.simulcast?.send ?? []).compactMap { $0.first?.rid }
            rtp.bind(transceiver, described: answered, random: &random)
            announceTrack(transceiver, wasReceiving: wasReceiving)
        case .dataChannels:
            if answered.isRejected {
                sections[index].content = .vacant
            } else {
                makeDataChannelTransport(remote: answered)
            }
        case .vacant: break
        }
    }

    /// Ends what an m-line carried and leaves its slot free.
    func vacate(_ index: Int, transceiver: Transceiver, isRejected: Bool) {
        let wasReceiving = transceiver.mayReceive
        transceiver.isRejected = isRejected
        transceiver.isStopped = true
        transceiver.direction = .inactive
        transceiver.currentDirection = .inactive
        rtp.forget(transceiver)
        sections[index].content = .vacant
        transceivers.removeAll { $0 === transceiver }
        if wasReceiving { emit(.trackRemoved(transceiver.id)) }
    }

    func announceTrack(_ transceiver: Transceiver, wasReceiving: Bool) {
        if transceiver.mayReceive, !wasReceiving {
            emit(.trackAdded(transceiver.id))
        } else if !transceiver.mayReceive, wasReceiving {
            emit(.trackRemoved(transceiver.id))
        }
    }
}
