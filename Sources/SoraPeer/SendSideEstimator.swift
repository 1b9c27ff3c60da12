import SoraRTP
import SoraWire

struct TransportFeedbackGenerator {
    init(senderSSRC: SSRC) {}
    var nextTimeout: Instant? { nil }
    mutating func receive(_ sequence: SequenceNumber, mediaSSRC: SSRC, now: Instant) {}
    mutating func handleTimeout(now: Instant) -> [TransportFeedback] { [] }
}

struct SendSideEstimator {
    private var next: UInt16 = 1
    private var changed: Int?
    var nextTimeout: Instant? { nil }
    mutating func assignSequence(size: Int, now: Instant) -> UInt16 {
        defer { next &+= 1 }
        return next
    }
    mutating func receive(_ remb: ReceiverEstimatedMaximumBitrate, now: Instant) {
        changed = Int(clamping: remb.bitrate)
    }
    mutating func receive(_ feedback: TransportFeedback, now: Instant) {}
    mutating func receive(_ block: ReportBlock, now: Instant) {}
    mutating func handleTimeout(now: Instant) {}
    mutating func takeChangedEstimate() -> Int? { changed.take() }
}
