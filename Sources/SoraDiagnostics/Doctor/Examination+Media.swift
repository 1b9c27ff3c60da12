import SoraMessages
import SoraPeer
import SoraSDP
import SoraWire

// First packets and first key frames.
extension Examination {
    /// Sections on which somebody sends. A stream of the id `default` is Sora's placeholder for nobody.
    private var expected: [Transceiver] {
        (peer?.transceivers ?? []).filter { transceiver in
            transceiver.mayReceive && !transceiver.remoteStreamIdentifiers.contains { $0.stream == "default" }
        }
    }

    private func name(_ transceiver: Transceiver) -> String {
        let stream = transceiver.remoteStreamIdentifiers.first.map { " of \($0.stream)" } ?? ""
        return "\(transceiver.kind.text) \(transceiver.mid?.rawValue ?? "")\(stream)"
    }

    func examineMedia() async throws(Stop) {
        let start = course.dtlsConnectedAt ?? now
        guard !expected.isEmpty else {
            let reason =
                configuration.role.receives
                ? "nobody sends in this channel; start a sender to examine media" : "the role receives nothing"
            report(.rtp, .skipped, since: now, reason)
            return report(.keyFrame, .skipped, since: now, reason)
        }
        _ = await until(limit) {
            self.expected.allSatisfy { self.course.firstPacketAt[$0.id] != nil } || self.unexpectedEnd != nil
        }
        let silent = expected.filter { course.firstPacketAt[$0.id] == nil }
        let details = expected.map { transceiver in
            let first = course.firstPacketAt[transceiver.id].map { "first packet after \(($0 - start).shortText)" }
            return "\(name(transceiver)), \(codec(transceiver)): \(first ?? "no packet")"
        }
        if let end = unexpectedEnd {
            throw fail(.rtp, since: start, end, details: details, advice: "check the server's log for this connection")
        }
        let rejected = peer?.statistics(now: now)
        guard silent.isEmpty || !(silent.count == expected.count || silent.contains { $0.kind == .video }) else {
            let damaged = (rejected?.rejectedPackets ?? 0) + (rejected?.unroutablePackets ?? 0)
            throw fail(
                .rtp, since: start, "no media within \(limitText) on \(silent.map(name).joined(separator: ", "))",
                details: details + (damaged > 0 ? ["\(damaged) packets could not be decrypted or assigned"] : []),
                advice: damaged > 0
                    ? "packets arrive but belong to no section: the offer's SSRCs, mids and header extensions do "
                        + "not fit them"
                    : "the path works, so the server forwards nothing: check that the sender really sends (its "
                        + "camera, its "
                        + "own connection) and the forwarding filters", failure: .timedOut)
        }
        let end = expected.compactMap { course.firstPacketAt[$0.id] }.max()
        if silent.isEmpty {
            report(
                .rtp, .passed, since: start, "media arrives on all \(expected.count) sections", details: details,
                until: end)
        } else {
            report(
                .rtp, .warning, since: start, "no packet on \(silent.map(name).joined(separator: ", "))",
                details: details,
                advice: "a muted or silent microphone sends little or nothing: make a sound and run again", until: end)
        }
        try await examineKeyFrames()
    }

    private func codec(_ transceiver: Transceiver) -> String {
        transceiver.primaryCodec.map { "\($0.name)" } ?? "no codec"
    }

    private func examineKeyFrames() async throws(Stop) {
        let videos = expected.filter { $0.kind == .video && course.firstPacketAt[$0.id] != nil }
        guard !videos.isEmpty else { return report(.keyFrame, .skipped, since: now, "no video is received") }
        let start = videos.compactMap { course.firstPacketAt[$0.id] }.min() ?? now
        _ = await until(limit) {
            videos.allSatisfy { self.course.firstKeyFrameAt[$0.id] != nil } || self.unexpectedEnd != nil
        }
        let missing = videos.filter { course.firstKeyFrameAt[$0.id] == nil }
        let details = videos.map { transceiver in
            let first = course.firstKeyFrameAt[transceiver.id].map { "key frame after \(($0 - start).shortText)" }
            return "\(name(transceiver)): \(first ?? "\(course.packets[transceiver.id] ?? 0) packets, no key frame")"
        }
        guard missing.isEmpty else {
            throw fail(
                .keyFrame, since: start,
                "no key frame within \(limitText) on \(missing.map(name).joined(separator: ", "))",
                details: details + ["asked for one \(course.keyFrameRequests) times"],
                advice:
                    "receivers see no picture: the sender ignores requests for key frames (PLI), or they do not "
                    + "reach it; "
                    + "check the sender's encoder and that its m-line has nack pli", failure: .timedOut)
        }
        let end = videos.compactMap { course.firstKeyFrameAt[$0.id] }.max()
        report(
            .keyFrame, .passed, since: start, "all \(videos.count) videos can be decoded", details: details, until: end)
    }
}
