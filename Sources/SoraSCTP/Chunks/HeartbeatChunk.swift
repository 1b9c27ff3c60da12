import SoraWire

/// HEARTBEAT and HEARTBEAT ACK (RFC 9260, 3.3.5 and 3.3.6): opaque bytes that come back as they went.
struct HeartbeatChunk: Equatable {
    var info: [UInt8]

    init(info: [UInt8]) { self.info = info }

    /// Reads the chunk's value: one heartbeat information parameter.
    init(value: ByteReader) throws(WireError) {
        var reader = value
        let type = try reader.readUInt16()
        guard type == InitChunk.Parameter.heartbeatInfo else {
            throw .invalid(field: "heartbeat parameter", value: UInt64(type))
        }
        let length = Int(try reader.readUInt16())
        guard length >= 4 else { throw .invalid(field: "heartbeat length", value: UInt64(length)) }
        info = try reader.readBytes(length - 4)
    }

    func write(isAck: Bool, to writer: inout ByteWriter) {
        writeChunk(isAck ? ChunkType.heartbeatAck : ChunkType.heartbeat, to: &writer) { writer in
            writer.write(InitChunk.Parameter.heartbeatInfo)
            writer.write(UInt16(truncatingIfNeeded: 4 + info.count))
            writer.write(info)
        }
    }
}
