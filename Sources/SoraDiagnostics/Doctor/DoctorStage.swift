import SoraMessages

/// The stages of a connection, in the order in which they are reached.
package enum DoctorStage: String, Sendable, CaseIterable {
    case url
    case dns
    case tcp
    case proxy
    case tls
    /// The WebSocket handshake.
    case upgrade
    /// `connect` is answered with an offer.
    case connect
    /// What the offer says.
    case offer
    /// STUN and TURN servers, by transport.
    case turn
    case ice
    case dtls
    case srtp
    case dataChannels = "data-channels"
    /// Media packets arrive.
    case rtp
    case keyFrame = "key-frame"
}

/// What the doctor found at one stage.
package struct StageReport: Sendable, Equatable {
    package enum Verdict: String, Sendable {
        case passed
        /// It works, but something should be looked at.
        case warning
        case failed
        /// There was nothing to examine.
        case skipped
    }
    /// The kind of a failure, beside its stage.
    package enum Failure: String, Sendable {
        case timedOut = "timed-out"
        /// The other side said no.
        case refused
        case malformed
        case other
    }

    /// Masked.
    package var url: String
    package var stage: DoctorStage
    package var verdict: Verdict
    package var failure: Failure?
    package var duration: Duration
    /// One line.
    package var summary: String
    package var details: [String]
    /// What to do; empty if there is nothing to be done.
    package var advice: String

    package var milliseconds: Double {
        let parts = duration.components
        return (Double(parts.seconds) * 1e4 + (Double(parts.attoseconds) / 1e14).rounded()) / 10
    }

    /// One JSON object on one line.
    package var jsonText: String {
        var object: JSONObject = [
            "url": .string(url), "stage": .string(stage.rawValue), "verdict": .string(verdict.rawValue),
            "milliseconds": .double(milliseconds), "summary": .string(summary),
            "details": .array(details.map { .string($0) }), "advice": .string(advice),
        ]
        if let failure { object["failure"] = .string(failure.rawValue) }
        return object.text
    }
}

/// What the doctor found on the way to one URL.
package struct Diagnosis: Sendable {
    /// Masked.
    package var url: String
    package var stages: [StageReport]
    /// The user ended it before it was complete.
    package var wasInterrupted = false

    /// Where it ended, if it did.
    package var failure: StageReport? { stages.first { $0.verdict == .failed } }
    package var isHealthy: Bool { failure == nil }
    package var warnings: [StageReport] { stages.filter { $0.verdict == .warning } }

    /// The verdict in one sentence.
    package var summary: String {
        if wasInterrupted { return "was not examined to the end" }
        if let failure { return "fails at \(failure.stage.rawValue): \(failure.summary)" }
        let names = warnings.map(\.stage.rawValue)
        return names.isEmpty ? "works" : "works, with warnings at \(names.joined(separator: ", "))"
    }

    private var verdict: String {
        if wasInterrupted { return "interrupted" }
        return isHealthy ? (warnings.isEmpty ? "healthy" : "warning") : "failed"
    }

    /// The verdict as one JSON object on one line.
    package var jsonText: String {
        var object: JSONObject = [
            "url": .string(url), "verdict": .string(verdict),
            "summary": .string(summary), "milliseconds": .double(stages.reduce(0) { $0 + $1.milliseconds }),
        ]
        if let failure {
            object["failed_stage"] = .string(failure.stage.rawValue)
            object["advice"] = .string(failure.advice)
        }
        return object.text
    }
}
