import SoraWire

/// Changes of an RTP packet's bytes in place, for forwarding without rebuilding.
///
/// Each function leaves a packet that is too short for the field alone.
package enum RTPPacketEditing {
    package static func setMarker(_ marker: Bool, in packet: inout [UInt8]) {
        guard packet.count >= RTPHeader.minimumLength else { return }
        packet[1] = packet[1] & 0x7F | (marker ? 0x80 : 0)
    }

    package static func setPayloadType(_ type: PayloadType, in packet: inout [UInt8]) {
        guard packet.count >= RTPHeader.minimumLength else { return }
        packet[1] = packet[1] & 0x80 | type.rawValue
    }

    package static func setSequenceNumber(_ number: SequenceNumber, in packet: inout [UInt8]) {
        guard packet.count >= RTPHeader.minimumLength else { return }
        packet[2] = UInt8(truncatingIfNeeded: number.rawValue >> 8)
        packet[3] = UInt8(truncatingIfNeeded: number.rawValue)
    }

    package static func setTimestamp(_ timestamp: RTPTimestamp, in packet: inout [UInt8]) {
        setUInt32(timestamp.rawValue, at: 4, in: &packet)
    }

    package static func setSSRC(_ ssrc: SSRC, in packet: inout [UInt8]) {
        setUInt32(ssrc.rawValue, at: 8, in: &packet)
    }

    private static func setUInt32(_ value: UInt32, at offset: Int, in packet: inout [UInt8]) {
        guard packet.count >= RTPHeader.minimumLength else { return }
        packet[offset] = UInt8(truncatingIfNeeded: value >> 24)
        packet[offset + 1] = UInt8(truncatingIfNeeded: value >> 16)
        packet[offset + 2] = UInt8(truncatingIfNeeded: value >> 8)
        packet[offset + 3] = UInt8(truncatingIfNeeded: value)
    }

    /// Overwrites the value of an extension element that is there with the same length. False if it is not.
    @discardableResult
    package static func setExtension(
        id: UInt8, value: [UInt8], in packet: inout [UInt8], header: RTPHeader
    ) -> Bool {
        guard let range = header.extensionRange(id: id, in: packet), range.count == value.count else { return false }
        for index in 0..<value.count { packet[range.lowerBound + index] = value[index] }
        return true
    }

    /// Overwrites a two-byte extension value, such as the transport-wide sequence number. False if it is not there.
    @discardableResult
    package static func setExtension(
        id: UInt8, uint16 value: UInt16, in packet: inout [UInt8], header: RTPHeader
    ) -> Bool {
        guard let range = header.extensionRange(id: id, in: packet), range.count == 2 else { return false }
        packet[range.lowerBound] = UInt8(truncatingIfNeeded: value >> 8)
        packet[range.lowerBound + 1] = UInt8(truncatingIfNeeded: value)
        return true
    }

    /// Overwrites a three-byte extension value, such as the absolute send time. False if it is not there.
    @discardableResult
    package static func setExtension(
        id: UInt8, uint24 value: UInt32, in packet: inout [UInt8], header: RTPHeader
    ) -> Bool {
        guard let range = header.extensionRange(id: id, in: packet), range.count == 3 else { return false }
        packet[range.lowerBound] = UInt8(truncatingIfNeeded: value >> 16)
        packet[range.lowerBound + 1] = UInt8(truncatingIfNeeded: value >> 8)
        packet[range.lowerBound + 2] = UInt8(truncatingIfNeeded: value)
        return true
    }

    /// Gives each element the local identifier `table[id]`; an element whose entry is missing or 0, or cannot be
    /// written in the packet's form, becomes padding. Lengths do not change.
    package static func remapExtensions(_ table: [UInt8], in packet: inout [UInt8], header: RTPHeader) {
        let oneByte = header.usesOneByteExtensions
        var offset = header.extensionElements.lowerBound
        let end = min(header.extensionElements.upperBound, packet.count)
        while offset < end {
            let head = packet[offset]
            if head == 0 {
                offset += 1
                continue
            }
            let id = oneByte ? head >> 4 : head
            let headLength = oneByte ? 1 : 2
            guard offset + headLength <= end else { return }
            let length = oneByte ? Int(head & 0x0F) + 1 : Int(packet[offset + 1])
            let next = offset + headLength + length
            guard next <= end else { return }
            let new = Int(id) < table.count ? table[Int(id)] : 0
            if new == 0 || (oneByte && new > 14) {
                for index in offset..<next { packet[index] = 0 }
            } else {
                packet[offset] = oneByte ? new << 4 | head & 0x0F : new
            }
            offset = next
        }
    }

    /// Replaces the whole extension block, or removes it when there are no elements.
    package static func replaceExtensions(
        with elements: [RTPExtensionElement], in packet: inout [UInt8], header: RTPHeader
    ) {
        let start = RTPHeader.minimumLength + header.csrcCount * 4
        guard start <= header.headerLength, header.headerLength <= packet.count else { return }
        var block: [UInt8] = []
        if RTPExtensionBlock.length(of: elements) > 0 { RTPExtensionBlock.write(elements, to: &block) }
        packet.replaceSubrange(start..<header.headerLength, with: block)
        packet[0] = packet[0] & ~0x10 | (block.isEmpty ? 0 : 0x10)
    }

    /// Removes the padding and its bit.
    package static func stripPadding(in packet: inout [UInt8], header: RTPHeader) {
        guard header.paddingLength > 0, header.paddingLength <= packet.count - header.headerLength else { return }
        packet.removeLast(header.paddingLength)
        packet[0] &= ~0x20
    }

    /// Appends `count` bytes of padding, 1...255, to a packet without padding.
    package static func appendPadding(_ count: UInt8, to packet: inout [UInt8]) {
        guard count > 0, packet.count >= RTPHeader.minimumLength, packet[0] & 0x20 == 0 else { return }
        packet[0] |= 0x20
        for _ in 1..<max(Int(count), 1) { packet.append(0) }
        packet.append(count)
    }
}
