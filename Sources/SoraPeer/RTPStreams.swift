import SoraRTP
import SoraSDP
import SoraWire

/// A decrypted media packet of the other side, after retransmissions were put back in their place.
package struct ReceivedRTP: Sendable {
    package var transceiver: TransceiverID
    /// The simulcast layer, if the stream is one.
    package var rid: RestrictionID?
    package var header: RTPHeader
    package var packet: [UInt8]
    /// It came as a retransmission (RFC 4588).
    package var isRetransmission: Bool
    package var arrival: Instant

    package var ssrc: SSRC { header.ssrc }
}

/// One stream that the other side sends: what is known of it, and its feedback.
final class InboundStream {
    enum Role {
        case media
        /// Carries retransmissions of another stream, which may not have been seen yet.
        case repair(of: SSRC?)
    }
    let ssrc: SSRC
    let transceiver: Transceiver
    let rid: RestrictionID?
    var role: Role
    var reception: ReceptionStatistics
    var nack: NACKGenerator?
    var unwrapper: RTXReceiver?
    var packets: UInt64 = 0
    var bytes: UInt64 = 0
    var retransmittedPackets: UInt64 = 0
    var lastArrival: Instant?
    var keyFrameRequests = 0
    var nackRequests = 0

    init(ssrc: SSRC, transceiver: Transceiver, rid: RestrictionID?, role: Role, payloadType: PayloadType) {
        self.ssrc = ssrc
        self.transceiver = transceiver
        self.rid = rid
        self.role = role
        let codec = transceiver.codecs.first { $0.payloadType == payloadType }
        reception = ReceptionStatistics(ssrc: ssrc, clockRate: codec.map(\.clockRate) ?? 90_000)
        if case .media = role, transceiver.supportsFeedback("nack", payloadType: payloadType) {
            nack = NACKGenerator(configuration: transceiver.kind == .audio ? .audio : .init())
        }
    }
}

/// One stream that we send, with what was sent of it.
final class OutboundStream {
    let ssrc: SSRC
    let transceiver: Transceiver
    let rid: RestrictionID?
    var clockRate: Int
    var history: RTPSendHistory?
    var extensions: ForwardedExtensions
    /// The mid and rid need to be sent only until the receiver knows the SSRC (RFC 8843, 9.2).
    var isKnownToReceiver = false
    var packets: UInt64 = 0
    var bytes: UInt64 = 0
    var lastTimestamp: RTPTimestamp?
    var lastSentAt: Instant?
    /// An explicit pair of wall clock and media time, and when it was given.
    var clockMapping: (ntp: NTPTime, timestamp: RTPTimestamp, at: Instant)?
    var lastReport: ReportBlock?
    var roundTripTime: Duration?
    var keyFrameRequests = 0
    var nacksReceived = 0

    init(
        ssrc: SSRC, transceiver: Transceiver, rid: RestrictionID?, clockRate: Int, history: RTPSendHistory?,
        extensions: ForwardedExtensions
    ) {
        self.ssrc = ssrc
        self.transceiver = transceiver
        self.rid = rid
        self.clockRate = clockRate
        self.history = history
        self.extensions = extensions
    }

    /// What a sender report says at `now`: a wall clock time and the media time that belongs to it.
    func reportTimes(now: Instant, ntpOrigin: NTPTime) -> (NTPTime, RTPTimestamp)? {
        if let mapping = clockMapping {
            let elapsed = now - mapping.at
            return (mapping.ntp + elapsed, mapping.timestamp + Int(elapsed.inSeconds * Double(clockRate)))
        }
        guard let lastTimestamp, let lastSentAt else { return nil }
        let elapsed = (now - lastSentAt).inSeconds
        return (NTPTime(now, origin: ntpOrigin), lastTimestamp + Int(elapsed * Double(clockRate)))
    }
}
