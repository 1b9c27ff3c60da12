import SoraWire

/// FORWARD TSN (RFC 3758, 3.2): everything up to `newCumulative` counts as received.
struct ForwardTSNChunk: Equatable {
    /// On `stream`, ordered messages up to `ssn` are skipped.
    struct Skip: Equatable {
        var stream: UInt16
        var ssn: UInt16
    }

    var newCumulative: TSN
    var skips: [Skip]

    init(newCumulative: TSN, skips: [Skip]) {
        self.newCumulative = newCumulative
        self.skips = skips
    }

    /// Reads the chunk's value; a length that is no whole number of entries throws.
    init(value: ByteReader) throws(WireError) {
        var reader = value
        newCumulative = TSN(try reader.readUInt32())
        skips = []
        guard reader.remaining % 4 == 0 else {
            throw .invalid(field: "FORWARD TSN length", value: UInt64(reader.remaining))
        }
        skips.reserveCapacity(reader.remaining / 4)
        while !reader.isAtEnd {
            skips.append(Skip(stream: try reader.readUInt16(), ssn: try reader.readUInt16()))
        }
    }

    func write(to writer: inout ByteWriter) {
        writeChunk(ChunkType.forwardTSN, to: &writer) { writer in
            writer.write(newCumulative.rawValue)
            for skip in skips {
                writer.write(skip.stream)
                writer.write(skip.ssn)
            }
        }
    }
}
