import SoraICE
import SoraWire

// What ICE needs of the network beside datagrams: connections to TURN servers, names, and news of both.
extension PeerConnection {
    /// What happened to a connection that `.ice(.openStream(…))` asked for.
    package func handleStream(_ id: ICEStreamID, _ event: ICEStreamEvent, now: Instant) {
        guard !hasEnded else { return }
        for payload in ice.handleStream(id, event, now: now) { handleApplication(payload, now: now) }
        pump(now: now)
    }

    /// The answer to `.ice(.resolve(…))`; empty if the name has no address.
    package func resolved(_ token: Int, addresses: [IPAddress], now: Instant) {
        guard !hasEnded else { return }
        ice.resolved(token, addresses: addresses, now: now)
        pump(now: now)
    }

    /// Starts asking STUN and TURN servers although there is no local socket, as where UDP is not to be had at all.
    package func gather(now: Instant) {
        guard !hasEnded else { return }
        ice.gather(now: now)
        pump(now: now)
    }

    /// Candidates, pairs and their counters.
    package var iceStatistics: ICEStatistics { ice.statistics }

    /// What became of each STUN and TURN server.
    package var iceServerReports: [ICEServerReport] { hasEnded ? lastServerReports : ice.serverReports }

    /// Why ICE failed, for users; nil while it has not.
    package var iceFailureReason: String? { hasEnded ? lastICEFailureReason : ice.failureReason }

    /// Only relays may be used, and no server has one (ICE12).
    package var hasNoRelayLeft: Bool { hasEnded ? hadNoRelayLeft : ice.hasNoRelayLeft }

    /// Gives relays back and closes connections, while there is still somebody to carry that out.
    func closeNetwork(now: Instant) {
        lastICEFailureReason = ice.failureReason
        hadNoRelayLeft = ice.hasNoRelayLeft
        lastServerReports = ice.serverReports
        ice.close(now: now)
        while let output = ice.poll() {
            switch output {
            case .transmit(let datagram): emit(.transmit(datagram))
            case .openStream, .writeStream, .closeStream: emit(.ice(output))
            case .stateChanged, .selectedPairChanged, .localCandidate, .gatheringFinished, .resolve: break
            }
        }
    }
}
