import SoraWire

/// Wraps packets of one stream for retransmission on a stream of their own (RFC 4588, 4).
package struct RTXSender: Sendable {
    package let ssrc: SSRC
    private var table: [UInt8]  // RTX payload type by original payload type; 0xFF: none
    private var sequenceNumber: SequenceNumber
    private let extensionTable: [UInt8]?

    /// - Parameters:
    ///   - payloadTypes: RTX payload type by the original payload type (`apt`).
    ///   - sequenceNumber: of the first RTX packet; random in production.
    ///   - extensionTable: new local identifier by old one, for `rid` to become `repaired-rid` (RFC 8852); nil keeps
    ///     the extensions as they are.
    package init(
        ssrc: SSRC, payloadTypes: [PayloadType: PayloadType], sequenceNumber: SequenceNumber,
        extensionTable: [UInt8]? = nil
    ) {
        self.ssrc = ssrc
        table = [UInt8](repeating: 0xFF, count: 128)
        for (original, rtx) in payloadTypes { table[Int(original.rawValue & 0x7F)] = rtx.rawValue }
        self.sequenceNumber = sequenceNumber
        self.extensionTable = extensionTable
    }

    /// The RTX packet for `packet`, or nil if its payload type has no RTX or it is no RTP packet.
    /// Padding is left out.
    package mutating func wrap(_ packet: [UInt8]) -> [UInt8]? {
        guard let header = try? RTPHeader(parsing: packet) else { return nil }
        let type = table[Int(header.payloadType.rawValue)]
        guard type != 0xFF else { return nil }
        var wrapped: [UInt8] = []
        wrapped.reserveCapacity(packet.count + 2 + 32)
        wrapped.append(contentsOf: packet[..<header.headerLength])
        wrapped.append(UInt8(truncatingIfNeeded: header.sequenceNumber.rawValue >> 8))
        wrapped.append(UInt8(truncatingIfNeeded: header.sequenceNumber.rawValue))
        wrapped.append(contentsOf: packet[header.payloadRange])
        wrapped[0] &= ~0x20
        RTPPacketEditing.setPayloadType(PayloadType(type), in: &wrapped)
        RTPPacketEditing.setSSRC(ssrc, in: &wrapped)
        RTPPacketEditing.setSequenceNumber(sequenceNumber, in: &wrapped)
        if let extensionTable { RTPPacketEditing.remapExtensions(extensionTable, in: &wrapped, header: header) }
        sequenceNumber += 1
        return wrapped
    }

    /// A packet of nothing but padding on the RTX stream, for probing: 1...255 bytes.
    package mutating func padding(_ count: UInt8, timestamp: RTPTimestamp, extensions: [RTPExtensionElement] = [])
        -> [UInt8]?
    {
        guard let type = table.first(where: { $0 != 0xFF }) else { return nil }
        let packet = RTPPacket(
            payloadType: PayloadType(type), sequenceNumber: sequenceNumber, timestamp: timestamp, ssrc: ssrc,
            extensions: extensions, paddingLength: max(count, 1))
        sequenceNumber += 1
        return packet.serialized()
    }
}

/// Restores the original packets of one stream from its RTX stream (RFC 4588, 4).
package struct RTXReceiver: Sendable {
    /// The stream that is repaired.
    package let originalSSRC: SSRC
    private var table: [UInt8]

    /// - Parameter payloadTypes: original payload type (`apt`) by RTX payload type.
    package init(originalSSRC: SSRC, payloadTypes: [PayloadType: PayloadType]) {
        self.originalSSRC = originalSSRC
        table = [UInt8](repeating: 0xFF, count: 128)
        for (rtx, original) in payloadTypes { table[Int(rtx.rawValue & 0x7F)] = original.rawValue }
    }

    /// The original packet, or nil for a probe (less than two payload bytes) and for unknown payload types.
    /// The original number is read behind CSRCs and extensions; padding is removed.
    package func unwrap(_ packet: [UInt8], header: RTPHeader) -> [UInt8]? {
        let type = table[Int(header.payloadType.rawValue)]
        let payload = header.payloadRange
        guard type != 0xFF, payload.count >= 2, payload.upperBound <= packet.count else { return nil }
        var original: [UInt8] = []
        original.reserveCapacity(packet.count)
        original.append(contentsOf: packet[..<header.headerLength])
        original.append(contentsOf: packet[(payload.lowerBound + 2)..<payload.upperBound])
        original[0] &= ~0x20
        original[2] = packet[payload.lowerBound]
        original[3] = packet[payload.lowerBound + 1]
        RTPPacketEditing.setPayloadType(PayloadType(type), in: &original)
        RTPPacketEditing.setSSRC(originalSSRC, in: &original)
        return original
    }
}
