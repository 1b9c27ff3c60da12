import SoraWire

/// Selective acknowledgement (RFC 9260, 3.3.4). The gap blocks stay in the packet and are read from there.
struct SackChunk: Equatable {
    /// Largest sizes of the lists that we write.
    static let fixedSize = 16

    /// TSNs `cumulative + start` to `cumulative + end` have arrived.
    struct GapBlock: Equatable {
        var start: UInt16
        var end: UInt16
    }

    var cumulative: TSN
    var receiverWindow: UInt32
    var gapCount: Int
    var duplicateCount: Int
    /// Where the first gap block stands in the packet.
    let gapsOffset: Int

    /// Reads the chunk at `offset` of `packet` with the given length field. Nil if the counts promise more
    /// than the chunk holds.
    init?(packet: [UInt8], offset: Int, length: Int) {
        guard length >= SackChunk.fixedSize, offset + length <= packet.count else { return nil }
        cumulative = TSN(loadUInt32(packet, offset + 4))
        receiverWindow = loadUInt32(packet, offset + 8)
        gapCount = Int(loadUInt16(packet, offset + 12))
        duplicateCount = Int(loadUInt16(packet, offset + 14))
        gapsOffset = offset + 16
        guard SackChunk.fixedSize + 4 * (gapCount + duplicateCount) <= length else { return nil }
    }

    /// Block `index`, which must be below `gapCount`.
    func gap(_ index: Int, in packet: [UInt8]) -> GapBlock {
        let at = gapsOffset + 4 * index
        return GapBlock(start: loadUInt16(packet, at), end: loadUInt16(packet, at + 2))
    }

    static func write(
        cumulative: TSN, receiverWindow: UInt32, gaps: [GapBlock], duplicates: [TSN], to writer: inout ByteWriter
    ) {
        writeChunk(ChunkType.sack, to: &writer) { writer in
            writer.write(cumulative.rawValue)
            writer.write(receiverWindow)
            writer.write(UInt16(truncatingIfNeeded: gaps.count))
            writer.write(UInt16(truncatingIfNeeded: duplicates.count))
            for gap in gaps {
                writer.write(gap.start)
                writer.write(gap.end)
            }
            for duplicate in duplicates { writer.write(duplicate.rawValue) }
        }
    }
}
