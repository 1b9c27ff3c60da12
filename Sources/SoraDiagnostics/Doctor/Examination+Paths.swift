import SoraICE
import SoraMessages
import SoraNetwork
import SoraPeer
import SoraSecureTransport
import SoraWire

// Servers, candidate pairs, DTLS, SRTP, data channels.
extension Examination {
    // MARK: TURN

    func examineServers() async throws(Stop) {
        let start = course.answeredAt
        guard let servers = peer?.configuration.ice.servers, !servers.isEmpty else {
            if peer?.configuration.ice.transportPolicy == .relay {
                throw fail(
                    .turn, since: start, "only relays may be used, and the offer names no TURN server",
                    advice: "run without --relay, or set up TURN on the server")
            }
            return report(.turn, .skipped, since: now, "the offer names no STUN or TURN server")
        }
        let isDone = { !self.course.servers.isEmpty && self.course.servers.allSatisfy { $0.status.isFinal } }
        _ = await until(start + configuration.timeout) { isDone() || self.course.ended != nil }
        let reports = course.servers
        let details = reports.map { text(of: $0) }
        // A server counts by its best try: it is asked from every local address.
        let missing = Set(servers.map(\.uri)).filter { uri in
            !reports.contains { $0.server == uri && $0.status == .succeeded }
        }
        let working = Set(servers.map(\.uri)).subtracting(missing)
        let worst =
            reports.first { missing.contains($0.server) && !$0.reason.isEmpty }
            ?? reports.first { missing.contains($0.server) }
        let end = reports.compactMap(\.endedAt).max()
        guard let worst else {
            let names = working.map(\.description).sorted()
            return report(
                .turn, .passed, since: start, "all answer: \(names.joined(separator: ", "))", details: details,
                until: end)
        }
        let advice = advice(for: worst)
        let summary = "\(worst.server): \(worst.reason.isEmpty ? "no answer within \(limitText)" : worst.reason)"
        if working.isEmpty, peer?.configuration.ice.transportPolicy == .relay {
            throw fail(
                .turn, since: start, summary, details: details, advice: advice,
                failure: worst.reason.isEmpty || worst.isSilent ? .timedOut : .refused)
        }
        report(.turn, .warning, since: start, summary, details: details, advice: advice, until: end)
    }

    private func text(of report: ICEServerReport) -> String {
        let end = report.endedAt.map { " after \(($0 - report.startedAt).shortText)" } ?? ""
        let place = report.localAddress.map { " from \($0)" } ?? ""
        let result =
            switch report.status {
            case .resolving: "the name is still being looked up"
            case .connecting: "still connecting"
            case .requesting: "no answer yet"
            case .succeeded:
                "works\(report.relayedAddress.map { ", relays at \($0)" } ?? "")"
                    + (report.mappedAddress.map { ", sees us as \($0)" } ?? "")
            case .failed(let reason): reason
            }
        return "\(report.server) (\(report.server.transport.rawValue))\(place): \(result)\(end)"
    }

    private func advice(for report: ICEServerReport) -> String {
        let reason = report.reason.lowercased()
        if reason.hasPrefix("tls:") {
            let chain = report.address.flatMap { network?.refusedCertificates[$0] } ?? []
            let names = chain.first.map { " (it shows \($0))" } ?? ""
            return reason.contains("valid for")
                ? "the certificate of the TURN server is for other names\(names): use a name of it in the turns: URL"
                : "check the certificate of the TURN server\(names) and the CA certificates here"
        }
        if ["(401)", "answered 401", "answered 441", "credential"].contains(where: { reason.contains($0) }) {
            return
                "the TURN server refuses user name and password of the offer: check that Sora and the TURN server "
                + "share "
                + "the same secret, and the clocks of both"
        }
        if reason.contains("name has no address") { return "check the host name in the turn: URL of the offer" }
        if reason.contains("refused by") { return "nothing listens there: check the port of the TURN server" }
        if reason.contains("answered 486") || reason.contains("answered 508") {
            return "the TURN server is full: raise its quota or port range"
        }
        if report.server.transport == .udp {
            return
                "no answer over UDP: a firewall blocks it, or the server is not there; clients in such networks need "
                + "TURN over TCP or TLS"
        }
        return "check that the TURN server listens on this port and that the firewall lets TCP through"
    }

    // MARK: ICE

    func examineICE() async throws(Stop) {
        let start = course.answeredAt
        let deadline = max(start + configuration.timeout, now + .seconds(1))
        _ = await until(deadline) { self.course.iceConnectedAt != nil || self.unexpectedEnd != nil }
        let details = (network?.problems ?? []).map { "no socket at \($0)" } + candidateTexts() + pairTexts()
        if let connected = course.iceConnectedAt {
            let pair = course.ice?.pairs.first(where: \.isSelected)
            let way = pair.map { "\(text(of: $0.local)) to \(text(of: $0.remote))" } ?? "connected"
            return report(.ice, .passed, since: start, way, details: details, until: connected)
        }
        let pairs = course.ice?.pairs ?? []
        let advice: String
        var summary = "no pair of candidates works"
        if case .some(.some(.iceFailed)) = course.ended {
            summary = course.iceFailure ?? summary
        } else if let end = unexpectedEnd {
            summary = end
        } else {
            summary += " within \(limitText)"
        }
        if closure != nil || course.serverEnd != nil {
            advice = "the server ended the connection by itself: its log says why"
        } else if pairs.isEmpty {
            advice = adviceWithoutPairs()
        } else if pairs.allSatisfy({ $0.counters.responsesReceived == 0 && $0.counters.requestsReceived == 0 }) {
            advice =
                "nothing comes back from the server's media address: UDP is blocked by a firewall, or the server "
                + "announces an "
                + "address that this machine cannot reach (\(remoteAddresses())); open its UDP ports, or use TURN "
                + "over TCP or TLS"
        } else {
            advice =
                "packets arrive in one direction only: a firewall or NAT drops the other; check the rules for UDP "
                + "between both"
        }
        let isRelayless = !course.servers.isEmpty && !course.servers.contains { $0.status == .succeeded }
        throw fail(
            .ice, since: start, summary, details: details,
            advice: advice + (isRelayless ? "; no TURN server answers either: see the stage turn" : ""),
            failure: course.ended == nil ? .timedOut : .other)
    }

    private func remoteAddresses() -> String {
        (course.ice?.remoteCandidates ?? []).prefix(4).map { "\($0.address)" }.joined(separator: ", ")
    }

    private func adviceWithoutPairs() -> String {
        let remote = course.ice?.remoteCandidates ?? []
        let local = course.ice?.localCandidates ?? []
        if remote.isEmpty {
            return "the offer has no candidate that can be used: check the server's media address settings"
        }
        if local.isEmpty { return "this machine has no address to send from: check its network" }
        let families = Set(remote.compactMap { $0.socketAddress?.ip.isV4 })
        if !local.contains(where: { $0.socketAddress.map { families.contains($0.ip.isV4) } ?? false }) {
            return
                "the server announces \(families.contains(true) ? "IPv4" : "IPv6") only, and this machine has no "
                + "such address"
        }
        return "the candidates do not fit together: see the details"
    }

    private func candidateTexts() -> [String] {
        (course.ice?.localCandidates ?? []).map { "ours: \(text(of: $0))" }
            + (course.ice?.remoteCandidates ?? []).map { "server's: \(text(of: $0))" }
    }

    private func text(of candidate: ICECandidate) -> String {
        "\(candidate.type.rawValue) \(candidate.address)/\(candidate.transport.rawValue)"
    }

    /// Each pair with what became of it, and why.
    private func pairTexts() -> [String] {
        (course.ice?.pairs ?? []).map { pair in
            let counters = pair.counters
            let reason: String
            switch pair.state {
            case "succeeded":
                let time = counters.currentRoundTripTime.map { ", round trip \($0.shortText)" } ?? ""
                reason = "works\(time)\(pair.isSelected ? ", in use" : "")"
            case "frozen": reason = "not needed: another pair works"
            case "waiting": reason = "not checked yet"
            default:
                if counters.responsesReceived > 0 {
                    reason = "answered before, silent now"
                } else if counters.requestsReceived > 0 {
                    reason =
                        "\(counters.requestsSent) checks without answer, although \(counters.requestsReceived) "
                        + "came from there: "
                        + "answers are lost or ours do not arrive"
                } else {
                    reason = "\(counters.requestsSent) checks without answer: blocked, or nobody is there"
                }
            }
            return "pair \(text(of: pair.local)) to \(text(of: pair.remote)): \(reason)"
        }
    }

    // MARK: DTLS and SRTP

    func examineDTLS() async throws(Stop) {
        let start = course.iceConnectedAt ?? now
        _ = await until(limit) { self.course.dtlsConnectedAt != nil || self.unexpectedEnd != nil }
        guard let connected = course.dtlsConnectedAt else {
            let fingerprints = peer?.remoteFingerprints.map(\.description) ?? []
            let details = fingerprints.map { "the offer's fingerprint: \($0)" }
            if case .some(.some(.dtls(let error))) = course.ended {
                throw fail(
                    .dtls, since: start, "\(error)", details: details, advice: Examination.advice(for: error),
                    failure: error == .timedOut ? .timedOut : .other)
            }
            throw fail(
                .dtls, since: start, unexpectedEnd ?? "no handshake within \(limitText)", details: details,
                advice: "the path carries STUN but not DTLS: look for a firewall that inspects UDP, or a small MTU",
                failure: unexpectedEnd == nil ? .timedOut : .other)
        }
        report(
            .dtls, .passed, since: start, "the server's certificate matches the fingerprint of its offer",
            until: connected)
        guard let profile = peer?.srtpProfile else {
            return report(.srtp, .skipped, since: connected, "no media was negotiated", until: connected)
        }
        report(.srtp, .passed, since: connected, "media is protected by \(profile.name)", until: connected)
    }

    private static func advice(for error: DTLSError) -> String {
        switch error {
        case .fingerprintMismatch:
            "something between changes the signaling or takes part in the media path; or the server offered the "
                + "fingerprint "
                + "of another certificate (after a restart, or behind a load balancer that mixes nodes)"
        case .timedOut: "the path carries STUN but not DTLS: look for a firewall that inspects UDP, or a small MTU"
        case .noCommonSRTPProfile: "the server offers only SRTP profiles that are not supported here: update it"
        case .peerAlert: "the server refused our certificate or version: check that our answer reached it unchanged"
        default: "compare the versions of OpenSSL on both sides"
        }
    }

    // MARK: Data channels

    func examineDataChannels() async throws(Stop) {
        let start = course.dtlsConnectedAt ?? now
        guard let offer, offer.usesDataChannelSignaling else {
            return report(.dataChannels, .skipped, since: now, "signaling stays on the WebSocket")
        }
        let expected = (offer.dataChannels ?? []).map(\.label)
        let isOpen = { expected.allSatisfy { self.course.openLabels[$0] != nil } }
        _ = await until(start + configuration.timeout) {
            (isOpen() && self.isSwitched) || self.unexpectedEnd != nil
        }
        let details = expected.map { "\($0): \(course.openLabels[$0] == nil ? "not open" : "open")" }
        let missing = expected.filter { course.openLabels[$0] == nil }
        if let end = unexpectedEnd {
            throw fail(
                .dataChannels, since: start, end, details: details, advice: "check the server's log for this connection"
            )
        }
        guard missing.isEmpty else {
            throw fail(
                .dataChannels, since: start,
                "the server did not open \(missing.joined(separator: ", ")) within \(limitText)",
                details: details,
                advice:
                    "SCTP does not pass although DTLS does (look for a small MTU), or the server is at fault: its "
                    + "log shows "
                    + "which channel it opened", failure: .timedOut)
        }
        guard isSwitched else {
            throw fail(
                .dataChannels, since: start, "all channels are open, but the server never said switched",
                details: details,
                advice:
                    "signaling stays on the WebSocket then, and its loss ends the connection: check the server's log",
                failure: .timedOut)
        }
        let count = expected.count
        report(
            .dataChannels, .passed, since: start, "\(count) channels are open, signaling has moved", details: details)
    }
}

extension ICEServerReport.Status {
    var isFinal: Bool {
        switch self {
        case .succeeded, .failed: true
        case .resolving, .connecting, .requesting: false
        }
    }
}

extension ICEServerReport {
    /// Why it failed; empty if it has not.
    var reason: String { if case .failed(let reason) = status { reason } else { "" } }
    var isSilent: Bool { reason.hasPrefix("no answer") || reason.contains("timed out") }
}

extension SRTPProfile {
    /// As in the registry of DTLS-SRTP.
    var name: String {
        switch self {
        case .aeadAES128GCM: "SRTP_AEAD_AES_128_GCM"
        case .aeadAES256GCM: "SRTP_AEAD_AES_256_GCM"
        case .aesCM128HMACSHA1_80: "SRTP_AES128_CM_HMAC_SHA1_80"
        }
    }
}
