import SoraICE
import SoraMessages
import SoraPeer
import SoraRTP
import SoraSCTP
import SoraSDP
import SoraWire

/// A `PeerConnection` in the role of ``ClientPeer``.
package final class PeerConnectionAdapter: ClientPeer {
    package let connection: PeerConnection
    /// An answer that is made but not yet polled.
    private var answers: [ClientPeerOutput] = []
    private var hasAnswered = false

    package let warnings: [String]

    package init(_ connection: PeerConnection, warnings: [String] = []) {
        self.connection = connection
        self.warnings = warnings
    }

    package func accept(_ offer: SessionDescription, now: Instant) throws(PeerError) {
        try connection.acceptOffer(offer, now: now)
    }

    package func attach(_ track: LocalTrack, now: Instant) throws(ClientError) -> TransceiverID {
        let name = track.isVideo ? "video" : "audio"
        guard let transceiver = connection.transceiver(mid: Mid(track.mid)) else {
            throw .peerChannel("transceiver for \(name) not found")
        }
        guard transceiver.kind == (track.isVideo ? .video : .audio) else {
            throw .peerChannel("failed to set direction to transceiver for \(name)")
        }
        transceiver.direction = .sendonly
        transceiver.streamIdentifier = MediaStreamIdentifier(stream: track.streamID, track: track.trackID)
        let layers = track.isSimulcast ? track.encodings.filter { $0.rid != nil } : []
        if transceiver.encodings.isEmpty {
            transceiver.encodings =
                layers.isEmpty
                ? [connection.makeEncoding()]
                : layers.map { connection.makeEncoding(rid: $0.rid.map { RestrictionID($0) }) }
        }
        // Parameters are applied at every negotiation, by rid; the SSRCs stay.
        for index in transceiver.encodings.indices {
            let rid = transceiver.encodings[index].rid?.rawValue
            guard let wish = rid == nil ? track.encodings.first : layers.first(where: { $0.rid == rid }) else {
                continue
            }
            transceiver.encodings[index].isActive = wish.isActive
            transceiver.encodings[index].maximumBitrate = wish.maxBitrate
            transceiver.encodings[index].maximumFramerate = wish.maxFramerate
            // Without simulcast the one stream is not scaled by what was meant for a layer.
            if rid != nil {
                transceiver.encodings[index].scaleResolutionDownBy = max(1, wish.scaleResolutionDownBy ?? 1)
            }
        }
        return transceiver.id
    }

    package func beginAnswer(now: Instant) {
        do throws(PeerError) {
            let answer = try connection.makeAnswer(now: now)
            if !hasAnswered { try checkThatSomethingIsAccepted(answer) }
            hasAnswered = true
            answers.append(.answer(answer))
        } catch {
            answers.append(.answerFailed(error))
        }
    }

    /// Without a single accepted m-line there is no transport, and nothing would ever connect or fail.
    private func checkThatSomethingIsAccepted(_ answer: SessionDescription) throws(PeerError) {
        guard answer.media.allSatisfy(\.isRejected) else { return }
        let media = connection.configuration.media
        let kinds = answer.media.map(\.kind.text).joined(separator: ", ")
        func names(_ codecs: [CodecDescription]) -> String {
            let names = codecs.filter(\.isMedia).map(\.name)
            return names.isEmpty ? "none" : names.joined(separator: ", ")
        }
        throw .unusableDescription(
            """
            none of its m-lines (\(kinds.isEmpty ? "none" : kinds)) can be accepted; codecs of this side: \
            audio \(names(media.audioCodecs)), video \(names(media.videoCodecs))
            """)
    }

    package var remoteStreams: [RemoteStream] {
        var streams: [RemoteStream] = []
        for transceiver in connection.transceivers where transceiver.mayReceive {
            let announced = transceiver.remoteStreamIdentifiers.first
            // Without a=msid the section itself is the stream.
            guard let id = announced?.stream ?? transceiver.mid?.rawValue else { continue }
            let track = RemoteStream.Track(
                transceiver: transceiver.id, isVideo: transceiver.kind == .video, trackID: announced?.track)
            if let index = streams.firstIndex(where: { $0.id == id }) {
                streams[index].tracks.append(track)
            } else {
                streams.append(RemoteStream(id: id, tracks: [track]))
            }
        }
        return streams
    }

    package func addLocalSocket(_ id: SocketID, address: SocketAddress, now: Instant) {
        connection.addLocalSocket(id, address: address, now: now)
    }
    package func removeLocalSocket(_ id: SocketID, now: Instant) { connection.removeLocalSocket(id, now: now) }
    package func handle(_ datagram: Datagram, now: Instant) { connection.handle(datagram, now: now) }
    package func handleStream(_ id: ICEStreamID, _ event: ICEStreamEvent, now: Instant) {
        connection.handleStream(id, event, now: now)
    }
    package func resolved(_ token: Int, addresses: [IPAddress], now: Instant) {
        connection.resolved(token, addresses: addresses, now: now)
    }
    package func gather(now: Instant) { connection.gather(now: now) }
    package func handleTimeout(now: Instant) { connection.handleTimeout(now: now) }
    package var nextTimeout: Instant? { connection.nextTimeout }
    package func close(now: Instant) { connection.close(now: now) }

    package var pathProblem: PathProblem? {
        if let reason = connection.iceFailureReason {
            return PathProblem(reason, endsAttempt: connection.hasNoRelayLeft)
        }
        let relays = connection.iceServerReports.compactMap { report -> String? in
            guard case .failed(let reason) = report.status else { return nil }
            return "\(report.server): \(reason)"
        }
        if !relays.isEmpty { return PathProblem(relays.joined(separator: "; ")) }
        // Nobody says that the relay is gone when it is reached over UDP.
        guard let used = connection.iceStatistics.pairs.first(where: \.isSelected), used.local.type == .relayed else {
            return nil
        }
        let server = connection.iceServerReports.first {
            $0.relayedAddress != nil && $0.relayedAddress == used.local.socketAddress
        }
        return PathProblem("no answers through the relay \(server.map { "\($0.server)" } ?? "\(used.local.address)")")
    }

    package func send(_ payload: [UInt8], isBinary: Bool, on channel: StreamID, now: Instant) -> Bool {
        (try? connection.send(message: payload, isBinary: isBinary, on: channel, now: now)) != nil
    }

    package func bufferedAmount(of channel: StreamID) -> Int { connection.bufferedAmount(of: channel) }

    package func poll() -> ClientPeerOutput? {
        // The answer comes before what it caused, so that candidates never precede it.
        if !answers.isEmpty { return answers.removeFirst() }
        while let output = connection.poll() {
            switch output {
            case .transmit(let datagram): return .transmit(datagram)
            case .stateChanged(let state): return .stateChanged(state)
            case .localCandidate(let candidate): return .localCandidate(candidate.attributeValue)
            case .dataChannelOpened(let info): return .dataChannelOpened(info.id, label: info.label)
            case .dataChannelMessage(let id, let payload, let isBinary):
                return .dataChannelMessage(id, payload, isBinary: isBinary)
            case .dataChannelClosed(let id): return .dataChannelClosed(id)
            case .ended(let error): return .ended(error)
            case .ice(let output): return .ice(output)
            case .iceStateChanged, .gatheringFinished, .trackAdded, .trackRemoved: continue
            case .rtp, .keyFrameRequested, .keyFrameNeeded, .availableBitrate, .senderReport, .bufferedAmountLow:
                return .media(output)
            }
        }
        return nil
    }
}
