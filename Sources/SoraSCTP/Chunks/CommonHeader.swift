import SoraWire

/// The first twelve bytes of every SCTP packet (RFC 9260, 3.1).
struct CommonHeader: Equatable {
    static let size = 12
    var sourcePort: UInt16
    var destinationPort: UInt16
    var verificationTag: UInt32

    init(sourcePort: UInt16, destinationPort: UInt16, verificationTag: UInt32) {
        self.sourcePort = sourcePort
        self.destinationPort = destinationPort
        self.verificationTag = verificationTag
    }

    /// Nil if the packet is shorter than a header and one chunk header.
    init?(packet: [UInt8]) {
        guard packet.count >= CommonHeader.size + 4 else { return nil }
        sourcePort = loadUInt16(packet, 0)
        destinationPort = loadUInt16(packet, 2)
        verificationTag = loadUInt32(packet, 4)
    }

    /// The checksum field as transmitted, least significant byte first.
    static func checksum(of packet: [UInt8]) -> UInt32 { loadUInt32(packet, 8).byteSwapped }

    /// Writes the header with a checksum of zero.
    func write(to writer: inout ByteWriter) {
        writer.write(sourcePort)
        writer.write(destinationPort)
        writer.write(verificationTag)
        writer.write(0 as UInt32)
    }

    /// Fills in the checksum of a finished packet.
    static func seal(_ writer: inout ByteWriter) {
        guard let crc = CRC32C.checksum(ofPacket: writer.bytes) else { return }
        writer.patchUInt32(crc.byteSwapped, at: 8)
    }
}

/// Writes a chunk's header now and its length when the body is there.
@inline(__always)
func writeChunk(
    _ type: UInt8, flags: UInt8 = 0, to writer: inout ByteWriter, body: (inout ByteWriter) -> Void
) {
    let start = writer.count
    writer.write(type)
    writer.write(flags)
    writer.write(0 as UInt16)
    body(&writer)
    writer.patchUInt16(UInt16(truncatingIfNeeded: writer.count - start), at: start + 2)
    writer.pad(toMultipleOf: 4)
}
