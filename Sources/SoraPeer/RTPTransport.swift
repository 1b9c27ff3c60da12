import SoraRTP
import SoraSDP
import SoraSecureTransport
import SoraWire

/// The media half of the bundled transport: SRTP contexts, the streams of both directions and the
/// rules by which a packet finds its m-line.
///
/// A part of ``PeerConnection``, which moves the packets; no packet leaves or enters here.
struct RTPTransport {
    let canonicalName: String
    let ntpOrigin: NTPTime
    let maximumDatagramSize: Int
    private(set) var sending: SRTPContext?
    private(set) var receiving: SRTPContext?

    private(set) var inbound: [SSRC: InboundStream] = [:]
    private(set) var outbound: [SSRC: OutboundStream] = [:]
    /// Retransmission SSRC to the stream that it repairs.
    private(set) var outboundRepairs: [SSRC: OutboundStream] = [:]

    /// Agreed identifiers, over all m-lines: a bundle shares one numbering (RFC 8843, 9.2).
    private(set) var extensions = RTPExtensionMap()
    private var transceiversByMid: [String: Transceiver] = [:]
    private var transceiversByPayloadType: [PayloadType: Transceiver] = [:]
    /// From `a=ssrc` lines: the m-line of an SSRC, and what it repairs.
    private var hints: [SSRC: (transceiver: Transceiver, repairs: SSRC?)] = [:]
    /// SSRCs seen are bounded: a peer that keeps inventing some gets no new streams.
    private let maximumInboundStreams = 512

    /// SSRC under which we send feedback when we send no media.
    let feedbackSSRC: SSRC
    var reportDue: Instant
    var transportFeedback: TransportFeedbackGenerator
    var estimator: SendSideEstimator
    var probes = ProbeController()
    /// SRTP and SRTCP packets that were authentic, and their size once decrypted.
    var decryptedPackets: UInt64 = 0
    var decryptedBytes: UInt64 = 0
    /// Packets dropped because SRTP did not authenticate them, or they were no RTP.
    var rejectedPackets: UInt64 = 0
    /// Packets of no m-line.
    var unroutablePackets: UInt64 = 0

    static let reportInterval: Duration = .seconds(1)

    init(
        canonicalName: String, ntpEpoch: UInt64, maximumDatagramSize: Int, feedbackSSRC: SSRC, now: Instant
    ) {
        self.canonicalName = canonicalName
        ntpOrigin = NTPTime(ntpEpoch)
        self.maximumDatagramSize = maximumDatagramSize
        self.feedbackSSRC = feedbackSSRC
        reportDue = now + Self.reportInterval
        transportFeedback = TransportFeedbackGenerator(senderSSRC: feedbackSSRC)
        estimator = SendSideEstimator()
    }

    mutating func start(keys: SRTPKeyingMaterial) throws(SRTPError) {
        sending = try keys.makeSendContext()
        receiving = try keys.makeReceiveContext()
    }

    mutating func close() {
        sending = nil
        receiving = nil
        inbound.removeAll()
        outbound.removeAll()
        outboundRepairs.removeAll()
        hints.removeAll()
        transceiversByMid.removeAll()
        transceiversByPayloadType.removeAll()
    }

    // MARK: Binding m-lines

    /// Takes over what a negotiation agreed for one m-line; `described` is the other side's section.
    mutating func bind(_ transceiver: Transceiver, described: MediaDescription, random: inout RandomSource) {
        var repairs: [SSRC: SSRC] = [:]
        for group in described.ssrcGroups where group.semantics == "FID" && group.ssrcs.count == 2 {
            repairs[group.ssrcs[1]] = group.ssrcs[0]
        }
        hints = hints.filter { $0.value.transceiver !== transceiver }
        for description in described.ssrcs.prefix(64) {
            hints[description.ssrc] = (transceiver, repairs[description.ssrc])
        }
        if !transceiver.mayReceive {
            inbound = inbound.filter { $0.value.transceiver !== transceiver }
        }
        bindSending(transceiver, random: &random)
    }

    private mutating func bindSending(_ transceiver: Transceiver, random: inout RandomSource) {
        let wanted = transceiver.maySend ? transceiver.encodings : []
        for (ssrc, stream) in outbound where stream.transceiver === transceiver {
            if !wanted.contains(where: { $0.ssrc == ssrc }) { removeOutbound(ssrc) }
        }
        let repairTypes = Dictionary(
            transceiver.codecs.compactMap { codec in codec.associatedPayloadType.map { ($0, codec.payloadType) } },
            uniquingKeysWith: { first, _ in first })
        for encoding in wanted {
            let map = transceiver.extensions
            let extensions = ForwardedExtensions(
                incoming: map, outgoing: map, mid: transceiver.mid, rid: encoding.rid)
            if let stream = outbound[encoding.ssrc] {
                stream.extensions = extensions
                continue
            }
            let type = transceiver.primaryCodec?.payloadType ?? PayloadType(0)
            var history: RTPSendHistory?
            if transceiver.supportsFeedback("nack", payloadType: type) {
                let rtx =
                    repairTypes.isEmpty
                    ? nil
                    : RTXSender(
                        ssrc: encoding.repairSSRC, payloadTypes: repairTypes,
                        sequenceNumber: SequenceNumber(UInt16(truncatingIfNeeded: random.next() & 0x7FFF)),
                        extensionTable: encoding.rid == nil ? nil : Self.repairTable(map))
                history = RTPSendHistory(rtx: rtx)
            }
            let stream = OutboundStream(
                ssrc: encoding.ssrc, transceiver: transceiver, rid: encoding.rid,
                clockRate: transceiver.primaryCodec?.clockRate ?? 90_000, history: history, extensions: extensions)
            outbound[encoding.ssrc] = stream
            if history?.rtxSSRC != nil { outboundRepairs[encoding.repairSSRC] = stream }
        }
    }

    /// Identity, but for `rid`, which becomes `repaired-rid` on a repair stream (RFC 8852).
    private static func repairTable(_ map: RTPExtensionMap) -> [UInt8] {
        var table = [UInt8](0...255)
        if let rid = map[.rid] { table[Int(rid)] = map[.repairedRid] ?? 0 }
        return table
    }

    private mutating func removeOutbound(_ ssrc: SSRC) {
        guard let stream = outbound.removeValue(forKey: ssrc) else { return }
        if let repair = stream.history?.rtxSSRC { outboundRepairs.removeValue(forKey: repair) }
    }

    /// Ends all streams of an m-line.
    mutating func forget(_ transceiver: Transceiver) {
        inbound = inbound.filter { $0.value.transceiver !== transceiver }
        hints = hints.filter { $0.value.transceiver !== transceiver }
        for (ssrc, stream) in outbound where stream.transceiver === transceiver { removeOutbound(ssrc) }
    }

    /// Rebuilds the tables by which packets find their m-line, after a negotiation.
    mutating func updateDemultiplexing(_ transceivers: [Transceiver]) {
        extensions = RTPExtensionMap()
        transceiversByMid.removeAll()
        transceiversByPayloadType.removeAll()
        var shared = Set<PayloadType>()
        for transceiver in transceivers where !transceiver.isStopped {
            for kind in RTPExtensionKind.allCases where extensions[kind] == nil {
                extensions[kind] = transceiver.extensions[kind]
            }
            guard transceiver.mayReceive else { continue }
            if let mid = transceiver.mid { transceiversByMid[mid.rawValue] = transceiver }
            for codec in transceiver.codecs {
                if transceiversByPayloadType[codec.payloadType] != nil { shared.insert(codec.payloadType) }
                transceiversByPayloadType[codec.payloadType] = transceiver
            }
        }
        for type in shared { transceiversByPayloadType.removeValue(forKey: type) }
    }

    // MARK: Receiving

    /// The stream that a packet belongs to: by its SSRC if that is known, else by MID and RID, by SSRC
    /// lines of the description, by a payload type that only one m-line has (RFC 8843, 9.2).
    mutating func stream(for header: RTPHeader, packet: [UInt8]) -> InboundStream? {
        if let known = inbound[header.ssrc] { return known }
        var transceiver: Transceiver?
        var rid: RestrictionID?
        var repairedRid: RestrictionID?
        for element in header.extensions(in: packet) {
            switch extensions.kind(of: element.id) {
            case .mid:
                transceiver = RTPExtensionValue.text(packet, element.range).flatMap { transceiversByMid[$0] }
            case .rid: rid = RTPExtensionValue.text(packet, element.range).map { RestrictionID($0) }
            case .repairedRid:
                repairedRid = RTPExtensionValue.text(packet, element.range).map { RestrictionID($0) }
            default: break
            }
        }
        let hint = hints[header.ssrc]
        guard
            let found = transceiver ?? hint?.transceiver ?? transceiversByPayloadType[header.payloadType],
            found.mayReceive, inbound.count < maximumInboundStreams,
            let codec = found.codecs.first(where: { $0.payloadType == header.payloadType })
        else { return nil }

        let role: InboundStream.Role
        if codec.associatedPayloadType != nil {
            let wanted = repairedRid ?? rid
            let repaired =
                hint?.repairs
                ?? inbound.values.first { stream in
                    guard stream.transceiver === found, case .media = stream.role else { return false }
                    return stream.rid == wanted
                }?.ssrc
            role = .repair(of: repaired)
        } else {
            // A simulcast layer without its name cannot be placed; its name comes with the first packets.
            if !found.receivingLayers.isEmpty {
                guard let rid, found.receivingLayers.contains(rid) else { return nil }
            }
            role = .media
        }
        let stream = InboundStream(
            ssrc: header.ssrc, transceiver: found, rid: repairedRid ?? rid, role: role,
            payloadType: header.payloadType)
        if case .media = role {
            // A layer that restarted under a new SSRC replaces the old one.
            for old in inbound.values where old.transceiver === found && old.rid == stream.rid {
                if case .media = old.role { inbound.removeValue(forKey: old.ssrc) }
            }
        }
        inbound[header.ssrc] = stream
        return stream
    }

    /// The stream that a repair stream repairs, found again if it was not known yet.
    func repairedStream(of repair: InboundStream) -> InboundStream? {
        guard case .repair(let ssrc) = repair.role else { return nil }
        if let ssrc, let stream = inbound[ssrc] { return stream }
        let found = inbound.values.first { stream in
            guard stream.transceiver === repair.transceiver, case .media = stream.role else { return false }
            return stream.rid == repair.rid
        }
        if let found { repair.role = .repair(of: found.ssrc) }
        return found
    }

    /// Bits per second that our video could use: what its encodings and the other side allow, 2.5 Mbit/s
    /// for each that says nothing.
    var wantedBitrate: Int {
        outbound.values.reduce(0) { sum, stream in
            guard stream.transceiver.kind == .video else { return sum + 64_000 }
            let encoding = stream.transceiver.encodings.first { $0.ssrc == stream.ssrc }
            let limit = min(
                encoding?.maximumBitrate ?? 2_500_000, stream.transceiver.sendBandwidthLimit ?? 2_500_000)
            return sum + min(max(limit, 0), 20_000_000)
        }
    }

    // MARK: Time

    /// Nil without streams: a connection for messages alone does not wake up for reports that say nothing.
    var nextTimeout: Instant? {
        guard !inbound.isEmpty || !outbound.isEmpty else { return transportFeedback.nextTimeout }
        var earliest = reportDue
        for stream in inbound.values {
            if let due = stream.nack?.nextTimeout { earliest = min(earliest, due) }
        }
        if let due = transportFeedback.nextTimeout { earliest = min(earliest, due) }
        if let due = estimator.nextTimeout { earliest = min(earliest, due) }
        if let due = probes.nextTimeout { earliest = min(earliest, due) }
        return earliest
    }
}
