import SoraWire

extension RTCPPacket {
    /// Appends the packet. Lists longer than their count field are cut.
    func write(to writer: inout ByteWriter) {
        let start = writer.count
        switch self {
        case .senderReport(let report):
            let reports = report.reports.prefix(31)
            RTCPPacket.head(RTCPType.senderReport, UInt8(reports.count), &writer)
            writer.write(report.ssrc.rawValue)
            writer.write(report.ntpTime.rawValue)
            writer.write(report.rtpTimestamp.rawValue)
            writer.write(report.packetCount)
            writer.write(report.octetCount)
            for block in reports { block.write(to: &writer) }
        case .receiverReport(let report):
            let reports = report.reports.prefix(31)
            RTCPPacket.head(RTCPType.receiverReport, UInt8(reports.count), &writer)
            writer.write(report.ssrc.rawValue)
            for block in reports { block.write(to: &writer) }
        case .sourceDescription(let description):
            let chunks = description.chunks.prefix(31)
            RTCPPacket.head(RTCPType.sourceDescription, UInt8(chunks.count), &writer)
            for chunk in chunks { chunk.write(to: &writer) }
        case .bye(let bye):
            let sources = bye.sources.prefix(31)
            RTCPPacket.head(RTCPType.bye, UInt8(sources.count), &writer)
            for source in sources { writer.write(source.rawValue) }
            if let reason = bye.reason {
                let text = reason.prefix(255)
                writer.write(UInt8(text.count))
                writer.write(text)
                RTCPPacket.pad(&writer, from: start)
            }
        case .genericNack(let nack):
            RTCPPacket.head(RTCPType.transportFeedback, 1, &writer)
            writer.write(nack.senderSSRC.rawValue)
            writer.write(nack.mediaSSRC.rawValue)
            nack.writeEntries(to: &writer)
        case .pictureLossIndication(let indication):
            RTCPPacket.head(RTCPType.payloadFeedback, 1, &writer)
            writer.write(indication.senderSSRC.rawValue)
            writer.write(indication.mediaSSRC.rawValue)
        case .fullIntraRequest(let request):
            RTCPPacket.head(RTCPType.payloadFeedback, 4, &writer)
            writer.write(request.senderSSRC.rawValue)
            writer.write(request.mediaSSRC.rawValue)
            for entry in request.entries {
                writer.write(entry.ssrc.rawValue)
                writer.write(UInt32(entry.sequenceNumber) << 24)
            }
        case .receiverEstimatedMaximumBitrate(let estimate):
            let ssrcs = estimate.ssrcs.prefix(255)
            RTCPPacket.head(RTCPType.payloadFeedback, 15, &writer)
            writer.write(estimate.senderSSRC.rawValue)
            writer.write(UInt32(0))
            ReceiverEstimatedMaximumBitrate.write(estimate.bitrate, count: ssrcs.count, to: &writer)
            for ssrc in ssrcs { writer.write(ssrc.rawValue) }
        case .transportFeedback(let feedback):
            RTCPPacket.head(RTCPType.transportFeedback, 15, &writer)
            feedback.write(to: &writer)
            // The feedback says its own length: zeros suffice, and the padding bit, which is allowed only in
            // a compound's last packet, is not needed.
            RTCPPacket.pad(&writer, from: start)
        case .extendedReport(let report):
            RTCPPacket.head(RTCPType.extendedReport, 0, &writer)
            writer.write(report.ssrc.rawValue)
            for block in report.blocks { block.write(to: &writer) }
        case .unknown(let unknown):
            RTCPPacket.head(unknown.packetType, unknown.format, &writer)
            writer.write(unknown.body)
            RTCPPacket.pad(&writer, from: start)
        }
        writer.patchUInt16(UInt16(truncatingIfNeeded: (writer.count - start) / 4 - 1), at: start + 2)
    }

    private static func head(_ type: UInt8, _ format: UInt8, _ writer: inout ByteWriter) {
        writer.write(0x80 | format & 0x1F)
        writer.write(type)
        writer.write(UInt16(0))
    }

    /// Zeros up to a multiple of four bytes from `start`.
    private static func pad(_ writer: inout ByteWriter, from start: Int) {
        while (writer.count - start) % 4 != 0 { writer.write(UInt8(0)) }
    }
}

extension ReportBlock {
    fileprivate func write(to writer: inout ByteWriter) {
        writer.write(ssrc.rawValue)
        writer.write(fractionLost)
        writer.writeUInt24(UInt32(bitPattern: min(max(cumulativeLost, -0x80_0000), 0x7F_FFFF)) & 0xFF_FFFF)
        writer.write(extendedHighestSequence)
        writer.write(jitter)
        writer.write(lastSenderReport)
        writer.write(delaySinceLastSenderReport)
    }
}

extension SourceDescription.Chunk {
    fileprivate func write(to writer: inout ByteWriter) {
        let start = writer.count
        writer.write(ssrc.rawValue)
        for item in items where item.type != 0 {
            let value = item.value.prefix(255)
            writer.write(item.type)
            writer.write(UInt8(value.count))
            writer.write(value)
        }
        writer.write(UInt8(0))
        while (writer.count - start) % 4 != 0 { writer.write(UInt8(0)) }
    }
}

extension GenericNack {
    /// Packs the list into packet id and mask of the sixteen following numbers.
    fileprivate func writeEntries(to writer: inout ByteWriter) {
        var index = 0
        while index < lost.count {
            let first = lost[index]
            var mask: UInt16 = 0
            index += 1
            while index < lost.count {
                let distance = lost[index].distance(from: first)
                if distance == 0 {
                    index += 1
                    continue
                }
                guard (1...16).contains(distance) else { break }
                mask |= 1 << UInt16(distance - 1)
                index += 1
            }
            writer.write(first.rawValue)
            writer.write(mask)
        }
    }
}

extension ExtendedReport.Block {
    fileprivate func write(to writer: inout ByteWriter) {
        switch self {
        case .receiverReferenceTime(let time):
            writer.write(UInt8(4))
            writer.write(UInt8(0))
            writer.write(UInt16(2))
            writer.write(time.rawValue)
        case .delaySinceLastReceiverReport(let entries):
            let entries = entries.prefix(0xFFFF / 3)
            writer.write(UInt8(5))
            writer.write(UInt8(0))
            writer.write(UInt16(entries.count * 3))
            for entry in entries {
                writer.write(entry.ssrc.rawValue)
                writer.write(entry.lastReceiverReport)
                writer.write(entry.delaySinceLastReceiverReport)
            }
        case .unknown(let type, let typeSpecific, let content):
            let words = min((content.count + 3) / 4, 0xFFFF)
            writer.write(type)
            writer.write(typeSpecific)
            writer.write(UInt16(words))
            let kept = content.prefix(words * 4)
            writer.write(kept)
            for _ in kept.count..<(words * 4) { writer.write(UInt8(0)) }
        }
    }
}
