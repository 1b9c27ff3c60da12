import SoraWire

/// Rewrites the header extension block of a forwarded packet for one receiver.
///
/// Extensions that describe the media are copied under the receiver's identifiers, those of the hop (mid, rid, send
/// time, transport-wide sequence number) are written anew, all others are left out. The scratch buffer is reused, so a
/// packet costs no allocation beyond its own growth.
package struct ForwardedExtensions: Sendable {
    /// Receiver's identifier by sender's identifier, 0 where the element is not passed on.
    private var table: [UInt8]
    private var midID: UInt8
    private var mid: [UInt8]
    private var ridID: UInt8
    private var rid: [UInt8]
    private let transportSequenceID: UInt8
    private let sendTimeID: UInt8
    private var scratch: [UInt8] = []

    /// - Parameters:
    ///   - incoming: identifiers agreed with the sender.
    ///   - outgoing: identifiers agreed with the receiver.
    ///   - mid: the receiver's m-line; nil leaves the extension out.
    ///   - rid: the simulcast layer that this stream is; nil leaves the extension out.
    package init(incoming: RTPExtensionMap, outgoing: RTPExtensionMap, mid: Mid?, rid: RestrictionID? = nil) {
        table = [UInt8](repeating: 0, count: 256)
        for id in UInt8(1)...255 {
            if let kind = incoming.kind(of: id), kind.describesMedia { table[Int(id)] = outgoing[kind] ?? 0 }
        }
        self.mid = mid.map { Array($0.rawValue.utf8.prefix(255)) } ?? []
        midID = self.mid.isEmpty ? 0 : outgoing[.mid] ?? 0
        self.rid = rid.map { Array($0.rawValue.utf8.prefix(255)) } ?? []
        ridID = self.rid.isEmpty ? 0 : outgoing[.rid] ?? 0
        transportSequenceID = outgoing[.transportSequenceNumber] ?? 0
        sendTimeID = outgoing[.absoluteSendTime] ?? 0
    }

    /// Stops writing mid and rid: they are needed only until the receiver knows the SSRC (RFC 8843, 9.2).
    package mutating func omitStreamNames() {
        midID = 0
        ridID = 0
    }

    /// Replaces the block. Returns false and leaves the packet alone if `header` does not belong to it.
    ///
    /// The header's ranges behind the extension block are no longer valid afterwards; the change of length is
    /// returned in `shift`.
    /// - Parameters:
    ///   - transportSequence: written if negotiated; a later hop may overwrite it in place.
    ///   - sendTime: 24-bit absolute send time, written if negotiated.
    @discardableResult
    package mutating func rewrite(
        _ packet: inout [UInt8], header: RTPHeader, transportSequence: UInt16 = 0, sendTime: UInt32 = 0
    ) -> Int? {
        let start = RTPHeader.minimumLength + header.csrcCount * 4
        guard start <= header.headerLength, header.headerLength <= packet.count else { return nil }
        scratch.removeAll(keepingCapacity: true)
        var twoBytes =
            (midID > 14) || (midID != 0 && mid.count > 16) || (ridID > 14) || (ridID != 0 && rid.count > 16)
            || transportSequenceID > 14 || sendTimeID > 14
        for element in header.extensions(in: packet) {
            let id = table[Int(element.id)]
            if id > 14 || (id != 0 && (element.range.isEmpty || element.range.count > 16)) { twoBytes = true }
        }
        scratch.append(twoBytes ? 0x10 : 0xBE)
        scratch.append(twoBytes ? 0x00 : 0xDE)
        scratch.append(0)
        scratch.append(0)
        if transportSequenceID != 0 {
            head(transportSequenceID, 2, twoBytes)
            scratch.append(UInt8(truncatingIfNeeded: transportSequence >> 8))
            scratch.append(UInt8(truncatingIfNeeded: transportSequence))
        }
        if sendTimeID != 0 {
            head(sendTimeID, 3, twoBytes)
            scratch.append(UInt8(truncatingIfNeeded: sendTime >> 16))
            scratch.append(UInt8(truncatingIfNeeded: sendTime >> 8))
            scratch.append(UInt8(truncatingIfNeeded: sendTime))
        }
        if midID != 0 {
            head(midID, mid.count, twoBytes)
            scratch.append(contentsOf: mid)
        }
        if ridID != 0 {
            head(ridID, rid.count, twoBytes)
            scratch.append(contentsOf: rid)
        }
        for element in header.extensions(in: packet) {
            let id = table[Int(element.id)]
            guard id != 0 else { continue }
            head(id, element.range.count, twoBytes)
            for index in element.range { scratch.append(packet[index]) }
        }
        if scratch.count == 4 { scratch.removeAll(keepingCapacity: true) }
        if !scratch.isEmpty { RTPExtensionBlock.finish(&scratch, blockStart: 0) }
        let shift = scratch.count - (header.headerLength - start)
        packet.replaceSubrange(start..<header.headerLength, with: scratch)
        packet[0] = packet[0] & ~0x10 | (scratch.isEmpty ? 0 : 0x10)
        return shift
    }

    private mutating func head(_ id: UInt8, _ length: Int, _ twoBytes: Bool) {
        if twoBytes {
            scratch.append(id)
            scratch.append(UInt8(truncatingIfNeeded: length))
        } else {
            scratch.append(id << 4 | UInt8(truncatingIfNeeded: length - 1))
        }
    }
}
