import SoraWire

/// The header of a DATA chunk (RFC 9260, 3.3.1). The user data is what follows it.
struct DataChunk: Equatable {
    static let headerSize = 16

    /// Low four bits of the chunk flags.
    struct Flags: OptionSet {
        let rawValue: UInt8
        static let end = Flags(rawValue: 1)
        static let beginning = Flags(rawValue: 2)
        static let unordered = Flags(rawValue: 4)
        /// The receiver is asked not to delay its SACK.
        static let immediate = Flags(rawValue: 8)
    }

    var flags: Flags
    var tsn: TSN
    var stream: UInt16
    var ssn: UInt16
    var ppid: UInt32

    init(flags: Flags, tsn: TSN, stream: UInt16, ssn: UInt16, ppid: UInt32) {
        self.flags = flags
        self.tsn = tsn
        self.stream = stream
        self.ssn = ssn
        self.ppid = ppid
    }

    /// Reads the header of the chunk at `offset`, whose length field says `length` and lies within the
    /// packet. Nil if there is no user data.
    @inline(__always)
    init?(packet: [UInt8], offset: Int, length: Int) {
        guard length > DataChunk.headerSize, offset + length <= packet.count else { return nil }
        flags = Flags(rawValue: packet[offset + 1] & 0x0F)
        tsn = TSN(loadUInt32(packet, offset + 4))
        stream = loadUInt16(packet, offset + 8)
        ssn = loadUInt16(packet, offset + 10)
        ppid = loadUInt32(packet, offset + 12)
    }

    /// Writes the chunk with `payload[range]` as user data, padded with zeros.
    @inline(__always)
    func write(to writer: inout ByteWriter, payload: [UInt8], range: Range<Int>) {
        writer.write(ChunkType.data)
        writer.write(flags.rawValue)
        writer.write(UInt16(truncatingIfNeeded: DataChunk.headerSize + range.count))
        writer.write(tsn.rawValue)
        writer.write(stream)
        writer.write(ssn)
        writer.write(ppid)
        writer.write(payload[range])
        writer.pad(toMultipleOf: 4)
    }
}
