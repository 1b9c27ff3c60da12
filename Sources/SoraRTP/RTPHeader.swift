import SoraWire

/// The fixed header of an RTP packet (RFC 3550, 5.1) with the places of its variable parts.
///
/// Parsing copies nothing out of the packet and allocates nothing: CSRCs, extension elements (RFC 8285, one- and
/// two-byte form) and payload are given as ranges of the packet's bytes. All lengths were checked, including each
/// extension element's, so that a parsed header can be trusted for the packet that it was parsed from.
package struct RTPHeader: Equatable, Sendable {
    package static let minimumLength = 12

    package var marker: Bool
    package var payloadType: PayloadType
    package var sequenceNumber: SequenceNumber
    package var timestamp: RTPTimestamp
    package var ssrc: SSRC
    /// Number of contributing sources, 0...15.
    package let csrcCount: Int
    /// The 16 bits "defined by profile" in front of the extension block; nil without a block.
    package let extensionProfile: UInt16?
    /// Where extension elements stand: behind the block's four-byte head, up to the end of the last valid element.
    package let extensionElements: Range<Int>
    /// Bytes in front of the payload: fixed header, CSRCs and the whole extension block.
    package let headerLength: Int
    /// Bytes of padding behind the payload, its count byte included; 0 without padding.
    package let paddingLength: Int
    /// Length of the packet that was parsed.
    package let packetLength: Int

    /// The payload's place in the packet. Empty for packets that are padding only.
    package var payloadRange: Range<Int> { headerLength..<(packetLength - paddingLength) }
    package var payloadLength: Int { packetLength - paddingLength - headerLength }
    /// One-byte form: local identifiers 1...14, values of 1...16 bytes (RFC 8285, 4.2).
    package var usesOneByteExtensions: Bool { extensionProfile == 0xBEDE }

    /// Reads the header of a decrypted packet.
    package init(parsing packet: [UInt8]) throws(RTPError) {
        let count = packet.count
        guard count >= RTPHeader.minimumLength else {
            throw .truncated(field: "fixed header", needed: RTPHeader.minimumLength, available: count)
        }
        let first = packet[0]
        guard first >> 6 == 2 else { throw .unsupportedVersion(first >> 6) }
        let second = packet[1]
        marker = second & 0x80 != 0
        payloadType = PayloadType(second & 0x7F)
        sequenceNumber = SequenceNumber(UInt16(packet[2]) << 8 | UInt16(packet[3]))
        timestamp = RTPTimestamp(
            UInt32(packet[4]) << 24 | UInt32(packet[5]) << 16 | UInt32(packet[6]) << 8 | UInt32(packet[7]))
        ssrc = SSRC(
            UInt32(packet[8]) << 24 | UInt32(packet[9]) << 16 | UInt32(packet[10]) << 8 | UInt32(packet[11]))
        csrcCount = Int(first & 0x0F)
        var offset = RTPHeader.minimumLength + csrcCount * 4
        guard offset <= count else {
            throw .truncated(field: "CSRC list", needed: offset, available: count)
        }
        if first & 0x10 != 0 {
            guard offset + 4 <= count else {
                throw .truncated(field: "extension head", needed: offset + 4, available: count)
            }
            let profile = UInt16(packet[offset]) << 8 | UInt16(packet[offset + 1])
            let length = (Int(packet[offset + 2]) << 8 | Int(packet[offset + 3])) * 4
            let start = offset + 4
            let end = start + length
            guard end <= count else {
                throw .truncated(field: "extension block", needed: end, available: count)
            }
            extensionProfile = profile
            extensionElements =
                start..<(try RTPHeader.endOfElements(packet, profile: profile, from: start, to: end))
            offset = end
        } else {
            extensionProfile = nil
            extensionElements = offset..<offset
        }
        headerLength = offset
        if first & 0x20 != 0 {
            let padding = Int(packet[count - 1])
            guard padding > 0, padding <= count - offset else {
                throw .invalidPadding(count: padding, available: count - offset)
            }
            paddingLength = padding
        } else {
            paddingLength = 0
        }
        packetLength = count
    }

    /// Checks each element and says where the list ends (RFC 8285, 4.2 and 4.3).
    private static func endOfElements(
        _ packet: [UInt8], profile: UInt16, from start: Int, to end: Int
    ) throws(RTPError) -> Int {
        var offset = start
        if profile == 0xBEDE {
            while offset < end {
                let head = packet[offset]
                if head == 0 {
                    offset += 1
                    continue
                }
                let id = head >> 4
                // Identifier 15 is reserved and ends the list; 0 with a length likewise.
                if id == 15 || id == 0 { return offset }
                let length = Int(head & 0x0F) + 1
                guard length < end - offset else {
                    throw .extensionOverrun(id: id, length: length, available: end - offset - 1)
                }
                offset += 1 + length
            }
            return end
        }
        guard profile & 0xFFF0 == 0x1000 else { return start }  // some other profile: opaque
        while offset < end {
            let id = packet[offset]
            if id == 0 {
                offset += 1
                continue
            }
            guard offset + 1 < end else { throw .extensionOverrun(id: id, length: 1, available: 0) }
            let length = Int(packet[offset + 1])
            guard length <= end - offset - 2 else {
                throw .extensionOverrun(id: id, length: length, available: end - offset - 2)
            }
            offset += 2 + length
        }
        return end
    }

    /// The contributing sources of the packet that this header was parsed from.
    package func csrcs(in packet: [UInt8]) -> [SSRC] {
        var result: [SSRC] = []
        for index in 0..<csrcCount {
            let i = RTPHeader.minimumLength + index * 4
            guard i + 4 <= packet.count else { break }
            result.append(
                SSRC(
                    UInt32(packet[i]) << 24 | UInt32(packet[i + 1]) << 16 | UInt32(packet[i + 2]) << 8
                        | UInt32(packet[i + 3])))
        }
        return result
    }

    /// The extension elements of the packet that this header was parsed from, in order.
    package func extensions(in packet: [UInt8]) -> RTPExtensionSequence {
        RTPExtensionSequence(packet: packet, elements: extensionElements, isOneByte: usesOneByteExtensions)
    }

    /// Where the value of the first element with this local identifier stands, or nil.
    package func extensionRange(id: UInt8, in packet: [UInt8]) -> Range<Int>? {
        guard !extensionElements.isEmpty, id != 0 else { return nil }
        for element in extensions(in: packet) where element.id == id { return element.range }
        return nil
    }
}

/// Walks the extension elements of a packet whose header was parsed.
package struct RTPExtensionSequence: Sequence, IteratorProtocol {
    /// Local identifier and the place of the value in the packet.
    package typealias Element = (id: UInt8, range: Range<Int>)

    private let packet: [UInt8]
    private var offset: Int
    private let end: Int
    private let isOneByte: Bool

    init(packet: [UInt8], elements: Range<Int>, isOneByte: Bool) {
        self.packet = packet
        offset = elements.lowerBound
        // Stays inside the array even if the caller hands a packet that is not the parsed one.
        end = Swift.min(elements.upperBound, packet.count)
        self.isOneByte = isOneByte
    }

    package mutating func next() -> Element? {
        while offset < end {
            let head = packet[offset]
            if head == 0 {
                offset += 1
                continue
            }
            let start: Int
            let length: Int
            let id: UInt8
            if isOneByte {
                id = head >> 4
                start = offset + 1
                length = Int(head & 0x0F) + 1
            } else {
                guard offset + 1 < end else { break }
                id = head
                start = offset + 2
                length = Int(packet[offset + 1])
            }
            guard length <= end - start else { break }
            offset = start + length
            return (id, start..<offset)
        }
        offset = end
        return nil
    }
}
