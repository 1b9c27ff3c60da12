import SoraWire

extension RTCPPacket {
    /// Reads one packet's body; `format` is the count, subtype or feedback format of its head.
    init(type: UInt8, format: UInt8, body: ByteReader) throws(WireError) {
        var reader = body
        switch (type, format) {
        case (RTCPType.senderReport, _):
            self = .senderReport(try SenderReport(&reader, count: Int(format)))
        case (RTCPType.receiverReport, _):
            let ssrc = SSRC(try reader.readUInt32())
            self = .receiverReport(
                ReceiverReport(ssrc: ssrc, reports: try ReportBlock.read(&reader, count: Int(format))))
        case (RTCPType.sourceDescription, _):
            self = .sourceDescription(try SourceDescription(&reader, count: Int(format)))
        case (RTCPType.bye, _):
            self = .bye(try Goodbye(&reader, count: Int(format)))
        case (RTCPType.transportFeedback, 1):
            self = .genericNack(try GenericNack(&reader))
        case (RTCPType.transportFeedback, 15):
            self = .transportFeedback(try TransportFeedback(&reader))
        case (RTCPType.payloadFeedback, 1):
            self = .pictureLossIndication(
                PictureLossIndication(
                    senderSSRC: SSRC(try reader.readUInt32()), mediaSSRC: SSRC(try reader.readUInt32())))
        case (RTCPType.payloadFeedback, 4):
            self = .fullIntraRequest(try FullIntraRequest(&reader))
        case (RTCPType.payloadFeedback, 15) where ReceiverEstimatedMaximumBitrate.isREMB(reader):
            self = .receiverEstimatedMaximumBitrate(try ReceiverEstimatedMaximumBitrate(&reader))
        case (RTCPType.extendedReport, _):
            self = .extendedReport(try ExtendedReport(&reader))
        default:
            self = .unknown(UnknownRTCP(packetType: type, format: format, body: reader.readRemaining()))
        }
    }
}

extension ReportBlock {
    static func read(_ reader: inout ByteReader, count: Int) throws(WireError) -> [ReportBlock] {
        var blocks: [ReportBlock] = []
        blocks.reserveCapacity(count)
        for _ in 0..<count {
            let ssrc = SSRC(try reader.readUInt32())
            let fraction = try reader.readUInt8()
            let lost = try reader.readUInt24()
            blocks.append(
                ReportBlock(
                    ssrc: ssrc, fractionLost: fraction,
                    cumulativeLost: Int32(bitPattern: lost << 8) >> 8,  // sign extension of 24 bits
                    extendedHighestSequence: try reader.readUInt32(), jitter: try reader.readUInt32(),
                    lastSenderReport: try reader.readUInt32(),
                    delaySinceLastSenderReport: try reader.readUInt32()))
        }
        return blocks
    }
}

extension SenderReport {
    fileprivate init(_ reader: inout ByteReader, count: Int) throws(WireError) {
        ssrc = SSRC(try reader.readUInt32())
        ntpTime = NTPTime(try reader.readUInt64())
        rtpTimestamp = RTPTimestamp(try reader.readUInt32())
        packetCount = try reader.readUInt32()
        octetCount = try reader.readUInt32()
        reports = try ReportBlock.read(&reader, count: count)
    }
}

extension SourceDescription {
    fileprivate init(_ reader: inout ByteReader, count: Int) throws(WireError) {
        chunks = []
        for _ in 0..<count {
            let ssrc = SSRC(try reader.readUInt32())
            let start = reader.position
            var items: [Item] = []
            while true {
                let type = try reader.readUInt8()
                if type == 0 { break }
                let length = Int(try reader.readUInt8())
                items.append(Item(type: type, value: try reader.readBytes(length)))
            }
            // The list ends with zeros up to the next 32-bit boundary.
            while (reader.position - start) % 4 != 0 { try reader.skip(1) }
            chunks.append(Chunk(ssrc: ssrc, items: items))
        }
    }
}

extension Goodbye {
    fileprivate init(_ reader: inout ByteReader, count: Int) throws(WireError) {
        sources = []
        for _ in 0..<count { sources.append(SSRC(try reader.readUInt32())) }
        if reader.isAtEnd {
            reason = nil
        } else {
            let length = Int(try reader.readUInt8())
            reason = try reader.readBytes(length)
        }
    }
}

extension GenericNack {
    fileprivate init(_ reader: inout ByteReader) throws(WireError) {
        senderSSRC = SSRC(try reader.readUInt32())
        mediaSSRC = SSRC(try reader.readUInt32())
        lost = []
        while !reader.isAtEnd {
            let first = SequenceNumber(try reader.readUInt16())
            var mask = try reader.readUInt16()
            lost.append(first)
            var step = 1
            while mask != 0 {
                if mask & 1 != 0 { lost.append(first + step) }
                mask >>= 1
                step += 1
            }
        }
    }
}

extension FullIntraRequest {
    fileprivate init(_ reader: inout ByteReader) throws(WireError) {
        senderSSRC = SSRC(try reader.readUInt32())
        mediaSSRC = SSRC(try reader.readUInt32())
        entries = []
        while !reader.isAtEnd {
            let ssrc = SSRC(try reader.readUInt32())
            entries.append(Entry(ssrc: ssrc, sequenceNumber: try reader.readUInt8()))
            try reader.skip(3)
        }
    }
}

extension ReceiverEstimatedMaximumBitrate {
    private static let identifier: [UInt8] = [0x52, 0x45, 0x4D, 0x42]  // "REMB"

    fileprivate static func isREMB(_ reader: ByteReader) -> Bool {
        identifier.enumerated().allSatisfy { reader.peekUInt8(at: 8 + $0.offset) == $0.element }
    }

    fileprivate init(_ reader: inout ByteReader) throws(WireError) {
        senderSSRC = SSRC(try reader.readUInt32())
        try reader.skip(8)  // media source (0) and identifier
        let count = Int(try reader.readUInt8())
        let packed = try reader.readUInt24()
        let exponent = Int(packed >> 18)
        let mantissa = UInt64(packed & 0x3FFFF)
        let fits = mantissa == 0 || exponent <= mantissa.leadingZeroBitCount
        bitrate = fits ? (mantissa == 0 ? 0 : mantissa << UInt64(exponent)) : .max
        guard reader.remaining == count * 4 else {
            throw .invalid(field: "REMB source count", value: UInt64(count))
        }
        ssrcs = []
        for _ in 0..<count { ssrcs.append(SSRC(try reader.readUInt32())) }
    }

    /// Written by `RTCPPacket.write`: `REMB`, count, exponent and mantissa.
    static func write(_ bitrate: UInt64, count: Int, to writer: inout ByteWriter) {
        writer.write(identifier)
        var exponent: UInt32 = 0
        var mantissa = bitrate
        while mantissa > 0x3FFFF {
            mantissa >>= 1
            exponent += 1
        }
        writer.write(UInt8(truncatingIfNeeded: count))
        writer.writeUInt24(exponent << 18 | UInt32(mantissa))
    }
}

extension ExtendedReport {
    fileprivate init(_ reader: inout ByteReader) throws(WireError) {
        ssrc = SSRC(try reader.readUInt32())
        blocks = []
        while !reader.isAtEnd {
            let type = try reader.readUInt8()
            let specific = try reader.readUInt8()
            let length = Int(try reader.readUInt16()) * 4
            var content = try reader.readSubreader(length)
            switch type {
            case 4:
                guard length == 8 else { throw .invalid(field: "RRTR block length", value: UInt64(length)) }
                blocks.append(.receiverReferenceTime(NTPTime(try content.readUInt64())))
            case 5:
                var entries: [DLRREntry] = []
                while !content.isAtEnd {
                    entries.append(
                        DLRREntry(
                            ssrc: SSRC(try content.readUInt32()),
                            lastReceiverReport: try content.readUInt32(),
                            delaySinceLastReceiverReport: try content.readUInt32()))
                }
                blocks.append(.delaySinceLastReceiverReport(entries))
            default:
                blocks.append(.unknown(type: type, typeSpecific: specific, content: content.readRemaining()))
            }
        }
    }
}
