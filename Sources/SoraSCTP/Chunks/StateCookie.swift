import SoraWire

/// What an INIT ACK's cookie carries, so that answering an INIT leaves no state (RFC 9260, 5.1.3).
struct StateCookie: Equatable {
    static let size = 52

    /// When it was made.
    var createdAt: Instant
    var localTag: UInt32
    var peerTag: UInt32
    /// Tags of the association that existed when it was made; zero if none.
    var tieLocalTag: UInt32
    var tiePeerTag: UInt32
    var localInitialTSN: TSN
    var peerInitialTSN: TSN
    var peerWindow: UInt32
    /// Streams that we may send on and receive on.
    var outboundStreams: UInt16
    var inboundStreams: UInt16
    var peerFeatures: InitChunk.Features

    func sealed(with key: SipHash) -> [UInt8] {
        var writer = ByteWriter(capacity: StateCookie.size)
        writer.write(UInt64(bitPattern: createdAt.nanoseconds))
        writer.write(localTag)
        writer.write(peerTag)
        writer.write(tieLocalTag)
        writer.write(tiePeerTag)
        writer.write(localInitialTSN.rawValue)
        writer.write(peerInitialTSN.rawValue)
        writer.write(peerWindow)
        writer.write(outboundStreams)
        writer.write(inboundStreams)
        writer.write(UInt32(peerFeatures.rawValue))
        writer.write(key.tag(writer.bytes, in: 0..<writer.count))
        return writer.bytes
    }

    /// Nil if the bytes are not exactly a cookie that `key` sealed.
    init?(_ bytes: [UInt8], key: SipHash) {
        guard bytes.count == StateCookie.size else { return nil }
        var reader = ByteReader(bytes)
        do {
            createdAt = Instant(nanoseconds: Int64(bitPattern: try reader.readUInt64()))
            localTag = try reader.readUInt32()
            peerTag = try reader.readUInt32()
            tieLocalTag = try reader.readUInt32()
            tiePeerTag = try reader.readUInt32()
            localInitialTSN = TSN(try reader.readUInt32())
            peerInitialTSN = TSN(try reader.readUInt32())
            peerWindow = try reader.readUInt32()
            outboundStreams = try reader.readUInt16()
            inboundStreams = try reader.readUInt16()
            peerFeatures = InitChunk.Features(rawValue: UInt8(truncatingIfNeeded: try reader.readUInt32()))
            let tag = key.tag(bytes, in: 0..<reader.position)
            guard try reader.readUInt64() == tag else { return nil }
        } catch {
            return nil
        }
    }

    init(
        createdAt: Instant, localTag: UInt32, peerTag: UInt32, tieLocalTag: UInt32, tiePeerTag: UInt32,
        localInitialTSN: TSN, peerInitialTSN: TSN, peerWindow: UInt32, outboundStreams: UInt16,
        inboundStreams: UInt16, peerFeatures: InitChunk.Features
    ) {
        self.createdAt = createdAt
        self.localTag = localTag
        self.peerTag = peerTag
        self.tieLocalTag = tieLocalTag
        self.tiePeerTag = tiePeerTag
        self.localInitialTSN = localInitialTSN
        self.peerInitialTSN = peerInitialTSN
        self.peerWindow = peerWindow
        self.outboundStreams = outboundStreams
        self.inboundStreams = inboundStreams
        self.peerFeatures = peerFeatures
    }
}
