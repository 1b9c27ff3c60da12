import SoraICE
import SoraMessages
import SoraNetwork
import SoraPeer
import SoraSDP
import SoraSecureTransport
import SoraWire

// The offer explained, and answered.
extension Examination {
    func negotiate(_ offer: OfferMessage) async throws(Stop) {
        let start = now
        self.offer = offer
        mayLoseWebSocket = offer.ignoreDisconnectWebSocket ?? false
        let description: SessionDescription
        do throws(SDPError) {
            description = try SessionDescription(parsing: offer.sdp)
        } catch {
            throw fail(
                .offer, since: start, "the offer's SDP cannot be read: \(error)",
                advice: "a server of another kind or version may have written it", failure: .malformed)
        }
        let explanation = explain(description, offer)
        let (ice, unusable) = iceConfiguration(for: offer)
        let details = unusable + text(of: explanation)
        let peer: PeerConnection
        do {
            let configuration = PeerConfiguration(
                ice: ice, certificate: try DTLSCertificate.selfSigned(), media: DoctorMedia.capabilities,
                canonicalName: "doctor")
            peer = PeerConnection(configuration: configuration, now: now)
            try peer.acceptOffer(description, now: now)
        } catch {
            let fault = explanation.findings.first { $0.severity == .fault }
            throw fail(
                .offer, since: start, "\(error)", details: details,
                advice: fault.map { "\($0.place): \($0.advice)" }
                    ?? "the server's offer breaks a rule of SDP: report it",
                failure: .malformed)
        }
        try judge(explanation, details: details, since: start)
        self.peer = peer
        answer(peer, offer, description)
    }

    private func explain(_ description: SessionDescription, _ offer: OfferMessage) -> SDPExplanation {
        var document = SDPDocument(description, name: "offer", kind: .offer)
        document.offer = offer
        document.isSignaling = true
        return SDPExplanation(document)
    }

    private func text(of explanation: SDPExplanation) -> [String] {
        explanation.groups.flatMap { group in group.facts.map { "\(group.title): \($0.label): \($0.text)" } }
            + explanation.findings.map(\.description)
    }

    private func judge(_ explanation: SDPExplanation, details: [String], since start: Instant) throws(Stop) {
        let description = explanation.document.description
        let candidates = description.media.flatMap(\.candidates)
        if candidates.isEmpty, description.isICELite {
            throw fail(
                .offer, since: start, "the offer has no candidate, and an ice-lite server sends no checks",
                details: details, advice: "the server does not know its own address: check its media address settings",
                failure: .malformed)
        }
        let worst = explanation.findings.first
        if let worst, worst.severity != .note {
            return report(
                .offer, .warning, since: start, "\(worst.place): \(worst.text)", details: details, advice: worst.advice)
        }
        let living = description.media.filter { !$0.isRejected }
        let sections = living.map {
            $0.kind == .application ? "data channels" : "\($0.kind.text) \($0.direction.rawValue)"
        }
        report(.offer, .passed, since: start, sections.joined(separator: ", "), details: details)
    }

    /// What the offer's `config` means, and what of it cannot be used.
    private func iceConfiguration(for offer: OfferMessage) -> (ICEConfiguration, [String]) {
        var ice = ICEConfiguration()
        var unusable: [String] = []
        for server in offer.config?.iceServers ?? [] {
            for url in server.urls {
                do throws(ICEError) {
                    ice.servers.append(
                        try ICEServer(url: url, username: server.username, credential: server.credential))
                } catch {
                    unusable.append("ICE server left out: \(error)")
                }
            }
        }
        let hasRelay = ice.servers.contains { $0.uri.isTURN }
        let forced = offer.config?.allowsOnlyRelay ?? false
        ice.transportPolicy = configuration.relayOnly || (forced && hasRelay) ? .relay : .all
        // The stages have limits of their own, which come first.
        ice.connectTimeout = configuration.timeout + configuration.timeout + .seconds(5)
        return (ice, unusable)
    }

    // MARK: Answer

    private func answer(_ peer: PeerConnection, _ offer: OfferMessage, _ description: SessionDescription) {
        attachSenders(peer, offer)
        let network = DoctorNetwork(
            loop: loop, configuration: configuration,
            onDatagrams: { batch in self.receive(batch) },
            onStream: { id, event in
                self.note()
                self.peer?.handleStream(id, event, now: self.now)
                self.drainPeer()
            })
        self.network = network
        peerTimer = LoopTimer(on: loop) { [weak self] in
            self?.assumeIsolated { examination in
                examination.note()
                examination.peer?.handleTimeout(now: examination.now)
                examination.drainPeer()
            }
        }
        course.answeredAt = now
        do throws(PeerError) {
            let answer = try peer.makeAnswer(now: now)
            send(SignalingMessage.answer(DescriptionMessage(sdp: answer.serialized())).json)
        } catch {
            course.ended = .some(error)
        }
        let remote = description.media.flatMap(\.candidates).compactMap { try? ICECandidate(parsing: $0).socketAddress }
        let isLocal = (stream?.remoteAddress.ip.isLoopback ?? false) || remote.contains { $0.ip.isLoopback }
        let sockets = network.openSockets(includesLoopback: isLocal)
        for socket in sockets { peer.addLocalSocket(socket.id, address: socket.localAddress, now: now) }
        if sockets.isEmpty { peer.gather(now: now) }
        drainPeer()
    }

    /// Takes the sections that the offer sets aside for what we send. Nothing is sent on them.
    private func attachSenders(_ peer: PeerConnection, _ offer: OfferMessage) {
        guard configuration.role.sends else { return }
        let places: [(String?, String)] = [(offer.mid?.audio, "audio"), (offer.mid?.video, "video")]
        for (mid, kind) in places {
            guard let mid, let transceiver = peer.transceiver(mid: Mid(mid)), transceiver.encodings.isEmpty else {
                continue
            }
            transceiver.direction = .sendonly
            transceiver.streamIdentifier = MediaStreamIdentifier(
                stream: offer.connectionID, track: "\(offer.connectionID)-\(kind)")
            transceiver.encodings = [peer.makeEncoding()]
        }
    }

    /// Answers a re-offer on the carrier that it came by.
    func answer(reOffer sdp: String, label: String?) {
        guard let peer, let description = try? SessionDescription(parsing: sdp) else { return }
        do throws(PeerError) {
            try peer.acceptOffer(description, now: now)
            if let offer { attachSenders(peer, offer) }
            let answer = try peer.makeAnswer(now: now)
            send(SignalingMessage.reAnswer(DescriptionMessage(sdp: answer.serialized())), label: label)
        } catch {
            course.serverEnd = "a re-offer cannot be used: \(error)"
        }
        drainPeer()
    }
}
