import SoraWire

/// One RTP packet as a value, for building packets and for tests. The forwarding path edits bytes in place instead
/// (``RTPPacketEditing``).
package struct RTPPacket: Equatable, Sendable {
    package var marker: Bool
    package var payloadType: PayloadType
    package var sequenceNumber: SequenceNumber
    package var timestamp: RTPTimestamp
    package var ssrc: SSRC
    /// At most 15; more are not written.
    package var csrcs: [SSRC]
    package var extensions: [RTPExtensionElement]
    package var payload: [UInt8]
    /// Bytes of padding, the count byte included: 0...255.
    package var paddingLength: UInt8

    package init(
        marker: Bool = false, payloadType: PayloadType, sequenceNumber: SequenceNumber, timestamp: RTPTimestamp,
        ssrc: SSRC, csrcs: [SSRC] = [], extensions: [RTPExtensionElement] = [], payload: [UInt8] = [],
        paddingLength: UInt8 = 0
    ) {
        self.marker = marker
        self.payloadType = payloadType
        self.sequenceNumber = sequenceNumber
        self.timestamp = timestamp
        self.ssrc = ssrc
        self.csrcs = csrcs
        self.extensions = extensions
        self.payload = payload
        self.paddingLength = paddingLength
    }

    package init(parsing packet: [UInt8]) throws(RTPError) {
        let header = try RTPHeader(parsing: packet)
        marker = header.marker
        payloadType = header.payloadType
        sequenceNumber = header.sequenceNumber
        timestamp = header.timestamp
        ssrc = header.ssrc
        csrcs = header.csrcs(in: packet)
        extensions = header.extensions(in: packet).map {
            RTPExtensionElement(id: $0.id, value: Array(packet[$0.range]))
        }
        payload = Array(packet[header.payloadRange])
        paddingLength = UInt8(header.paddingLength)
    }

    /// Bytes that ``serialized(reserving:)`` puts in front of the payload.
    package var headerLength: Int {
        RTPHeader.minimumLength + min(csrcs.count, 15) * 4 + RTPExtensionBlock.length(of: extensions)
    }

    /// The packet's bytes. `reserve` more bytes of capacity keep a later authentication tag from reallocating.
    package func serialized(reserving reserve: Int = 32) -> [UInt8] {
        var writer = ByteWriter(capacity: headerLength + payload.count + Int(paddingLength) + reserve)
        let csrcCount = min(csrcs.count, 15)
        let blockLength = RTPExtensionBlock.length(of: extensions)
        writer.write(
            0x80 | (paddingLength > 0 ? 0x20 : 0) | (blockLength > 0 ? 0x10 : 0)
                | UInt8(truncatingIfNeeded: csrcCount))
        writer.write((marker ? 0x80 : 0) | payloadType.rawValue)
        writer.write(sequenceNumber.rawValue)
        writer.write(timestamp.rawValue)
        writer.write(ssrc.rawValue)
        for csrc in csrcs.prefix(csrcCount) { writer.write(csrc.rawValue) }
        if blockLength > 0 { RTPExtensionBlock.write(extensions, to: &writer.bytes) }
        writer.write(payload)
        if paddingLength > 0 {
            for _ in 1..<max(Int(paddingLength), 1) { writer.write(UInt8(0)) }
            writer.write(paddingLength)
        }
        return writer.bytes
    }
}

/// Writing of a header extension block (RFC 8285): the four-byte head, elements, and zeros up to a multiple of four.
enum RTPExtensionBlock {
    /// Elements that can be written at all.
    private static func isWritable(_ element: RTPExtensionElement) -> Bool {
        element.id != 0 && element.value.count <= 255
    }

    private static func needsTwoBytes(_ elements: [RTPExtensionElement]) -> Bool {
        elements.contains { isWritable($0) && ($0.id > 14 || $0.value.isEmpty || $0.value.count > 16) }
    }

    /// Length of the whole block, 0 without elements.
    static func length(of elements: [RTPExtensionElement]) -> Int {
        guard !elements.isEmpty else { return 0 }
        let head = needsTwoBytes(elements) ? 2 : 1
        var length = 0
        for element in elements where isWritable(element) { length += head + element.value.count }
        return length == 0 ? 0 : 4 + (length + 3) / 4 * 4
    }

    static func write(_ elements: [RTPExtensionElement], to bytes: inout [UInt8]) {
        let twoBytes = needsTwoBytes(elements)
        let start = bytes.count
        bytes.append(twoBytes ? 0x10 : 0xBE)
        bytes.append(twoBytes ? 0x00 : 0xDE)
        bytes.append(0)
        bytes.append(0)
        for element in elements where isWritable(element) {
            if twoBytes {
                bytes.append(element.id)
                bytes.append(UInt8(element.value.count))
            } else {
                bytes.append(element.id << 4 | UInt8(element.value.count - 1))
            }
            bytes.append(contentsOf: element.value)
        }
        finish(&bytes, blockStart: start)
    }

    /// Pads the block that began at `blockStart` and sets its length field.
    static func finish(_ bytes: inout [UInt8], blockStart: Int) {
        while (bytes.count - blockStart) % 4 != 0 { bytes.append(0) }
        let words = (bytes.count - blockStart) / 4 - 1
        bytes[blockStart + 2] = UInt8(truncatingIfNeeded: words >> 8)
        bytes[blockStart + 3] = UInt8(truncatingIfNeeded: words)
    }
}
