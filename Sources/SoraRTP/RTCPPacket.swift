import SoraWire

/// One RTCP packet of a compound (RFC 3550, 6; RFC 4585; RFC 5104; RFC 3611; REMB and transport-wide feedback drafts).
package enum RTCPPacket: Equatable, Sendable {
    case senderReport(SenderReport)
    case receiverReport(ReceiverReport)
    case sourceDescription(SourceDescription)
    case bye(Goodbye)
    case genericNack(GenericNack)
    case pictureLossIndication(PictureLossIndication)
    case fullIntraRequest(FullIntraRequest)
    case receiverEstimatedMaximumBitrate(ReceiverEstimatedMaximumBitrate)
    case transportFeedback(TransportFeedback)
    case extendedReport(ExtendedReport)
    /// A packet type or feedback format that this implementation does not know; kept as it came.
    case unknown(UnknownRTCP)
}

/// One block of an SR or RR: how one stream arrives (RFC 3550, 6.4.1).
package struct ReportBlock: Equatable, Sendable {
    package var ssrc: SSRC
    /// Loss since the last report, in 1/256.
    package var fractionLost: UInt8
    /// Packets lost since the start; negative when duplicates outnumber losses. 24 bits signed on the wire.
    package var cumulativeLost: Int32
    package var extendedHighestSequence: UInt32
    /// Interarrival jitter in units of the stream's clock.
    package var jitter: UInt32
    /// Middle 32 bits of the NTP time of the last SR received; 0 if none.
    package var lastSenderReport: UInt32
    /// Since that SR arrived, in 1/65536 s; 0 if none.
    package var delaySinceLastSenderReport: UInt32

    package init(
        ssrc: SSRC, fractionLost: UInt8 = 0, cumulativeLost: Int32 = 0, extendedHighestSequence: UInt32 = 0,
        jitter: UInt32 = 0, lastSenderReport: UInt32 = 0, delaySinceLastSenderReport: UInt32 = 0
    ) {
        self.ssrc = ssrc
        self.fractionLost = fractionLost
        self.cumulativeLost = min(max(cumulativeLost, -0x80_0000), 0x7F_FFFF)
        self.extendedHighestSequence = extendedHighestSequence
        self.jitter = jitter
        self.lastSenderReport = lastSenderReport
        self.delaySinceLastSenderReport = delaySinceLastSenderReport
    }
}

package struct SenderReport: Equatable, Sendable {
    package var ssrc: SSRC
    /// Wall clock of the report, and the RTP timestamp of the same moment.
    package var ntpTime: NTPTime
    package var rtpTimestamp: RTPTimestamp
    /// Sent since the start, modulo 2^32.
    package var packetCount: UInt32
    /// Payload octets sent since the start, modulo 2^32.
    package var octetCount: UInt32
    /// At most 31 are written.
    package var reports: [ReportBlock]

    package init(
        ssrc: SSRC, ntpTime: NTPTime, rtpTimestamp: RTPTimestamp, packetCount: UInt32, octetCount: UInt32,
        reports: [ReportBlock] = []
    ) {
        self.ssrc = ssrc
        self.ntpTime = ntpTime
        self.rtpTimestamp = rtpTimestamp
        self.packetCount = packetCount
        self.octetCount = octetCount
        self.reports = reports
    }
}

package struct ReceiverReport: Equatable, Sendable {
    package var ssrc: SSRC
    /// At most 31 are written.
    package var reports: [ReportBlock]
    package init(ssrc: SSRC, reports: [ReportBlock] = []) {
        self.ssrc = ssrc
        self.reports = reports
    }
}

/// SDES: names of sources (RFC 3550, 6.5).
package struct SourceDescription: Equatable, Sendable {
    package struct Item: Equatable, Sendable {
        /// 1 is CNAME.
        package var type: UInt8
        /// At most 255 bytes are written.
        package var value: [UInt8]
        package init(type: UInt8, value: [UInt8]) {
            self.type = type
            self.value = value
        }
    }
    package struct Chunk: Equatable, Sendable {
        package var ssrc: SSRC
        package var items: [Item]
        package init(ssrc: SSRC, items: [Item]) {
            self.ssrc = ssrc
            self.items = items
        }
        package init(ssrc: SSRC, cname: String) {
            self.init(ssrc: ssrc, items: [Item(type: 1, value: Array(cname.utf8.prefix(255)))])
        }
        package var cname: String? {
            items.first { $0.type == 1 }.map { String(decoding: $0.value, as: UTF8.self) }
        }
    }
    /// At most 31 are written.
    package var chunks: [Chunk]
    package init(chunks: [Chunk]) { self.chunks = chunks }
}

package struct Goodbye: Equatable, Sendable {
    /// At most 31 are written.
    package var sources: [SSRC]
    /// UTF-8 text, at most 255 bytes; nil if absent.
    package var reason: [UInt8]?
    package init(sources: [SSRC], reason: [UInt8]? = nil) {
        self.sources = sources
        self.reason = reason
    }
}

/// Packets that are missing (RFC 4585, 6.2.1).
package struct GenericNack: Equatable, Sendable {
    package var senderSSRC: SSRC
    package var mediaSSRC: SSRC
    /// Ascending in sequence order for the most compact form.
    package var lost: [SequenceNumber]
    package init(senderSSRC: SSRC, mediaSSRC: SSRC, lost: [SequenceNumber]) {
        self.senderSSRC = senderSSRC
        self.mediaSSRC = mediaSSRC
        self.lost = lost
    }
}

/// The decoder lost the picture: send a key frame (RFC 4585, 6.3.1).
package struct PictureLossIndication: Equatable, Sendable {
    package var senderSSRC: SSRC
    package var mediaSSRC: SSRC
    package init(senderSSRC: SSRC, mediaSSRC: SSRC) {
        self.senderSSRC = senderSSRC
        self.mediaSSRC = mediaSSRC
    }
}

/// Key frame command (RFC 5104, 4.3.1).
package struct FullIntraRequest: Equatable, Sendable {
    package struct Entry: Equatable, Sendable {
        package var ssrc: SSRC
        /// Counts commands; repetitions of one command keep it.
        package var sequenceNumber: UInt8
        package init(ssrc: SSRC, sequenceNumber: UInt8) {
            self.ssrc = ssrc
            self.sequenceNumber = sequenceNumber
        }
    }
    package var senderSSRC: SSRC
    /// Zero by the RFC; kept as received.
    package var mediaSSRC: SSRC
    package var entries: [Entry]
    package init(senderSSRC: SSRC, mediaSSRC: SSRC = SSRC(0), entries: [Entry]) {
        self.senderSSRC = senderSSRC
        self.mediaSSRC = mediaSSRC
        self.entries = entries
    }
}

/// REMB: the receiver's estimate of what may be sent to it in total (draft-alvestrand-rmcat-remb-03).
package struct ReceiverEstimatedMaximumBitrate: Equatable, Sendable {
    package var senderSSRC: SSRC
    /// Bits per second. Written with 18 significant bits, rounded down; a received value saturates.
    package var bitrate: UInt64
    /// At most 255 are written.
    package var ssrcs: [SSRC]
    package init(senderSSRC: SSRC, bitrate: UInt64, ssrcs: [SSRC]) {
        self.senderSSRC = senderSSRC
        self.bitrate = bitrate
        self.ssrcs = ssrcs
    }
}

/// XR (RFC 3611): receivers that do not send use it to measure the round trip.
package struct ExtendedReport: Equatable, Sendable {
    package struct DLRREntry: Equatable, Sendable {
        package var ssrc: SSRC
        package var lastReceiverReport: UInt32
        package var delaySinceLastReceiverReport: UInt32
        package init(ssrc: SSRC, lastReceiverReport: UInt32, delaySinceLastReceiverReport: UInt32) {
            self.ssrc = ssrc
            self.lastReceiverReport = lastReceiverReport
            self.delaySinceLastReceiverReport = delaySinceLastReceiverReport
        }
    }
    package enum Block: Equatable, Sendable {
        /// Receiver reference time, block type 4.
        case receiverReferenceTime(NTPTime)
        /// Delay since the last receiver reference time, block type 5.
        case delaySinceLastReceiverReport([DLRREntry])
        /// Content is a multiple of four bytes.
        case unknown(type: UInt8, typeSpecific: UInt8, content: [UInt8])
    }
    package var ssrc: SSRC
    package var blocks: [Block]
    package init(ssrc: SSRC, blocks: [Block]) {
        self.ssrc = ssrc
        self.blocks = blocks
    }
}

package struct UnknownRTCP: Equatable, Sendable {
    package var packetType: UInt8
    /// The five bits that are a count, subtype or feedback format.
    package var format: UInt8
    /// Everything behind the four-byte head, without padding: a multiple of four bytes.
    package var body: [UInt8]
    package init(packetType: UInt8, format: UInt8, body: [UInt8]) {
        self.packetType = packetType
        self.format = format
        self.body = body
    }
}
