import SoraWire

/// The payload descriptor in front of each VP8 payload (RFC 7741, 4.2).
package struct VP8PayloadDescriptor: Equatable, Sendable {
    /// No other frame depends on this one.
    package var isNonReference = false
    /// The payload begins a partition.
    package var startsPartition = false
    package var partitionIndex: UInt8 = 0
    /// 7 or 15 bits.
    package var pictureID: UInt16?
    package var hasLongPictureID = false
    /// Counts base layer frames, modulo 256.
    package var tl0PictureIndex: UInt8?
    package var temporalLayer: UInt8?
    package var isLayerSync = false
    package var keyIndex: UInt8?
    /// Bytes of the descriptor.
    package private(set) var length = 1
    /// Where the picture id and the base layer index stand, counted from the descriptor's start; 0 if absent.
    package private(set) var pictureIDOffset = 0
    package private(set) var tl0PictureIndexOffset = 0

    package init() {}

    /// Whether this payload begins a frame.
    package var startsFrame: Bool { startsPartition && partitionIndex == 0 }

    /// Reads the descriptor at the start of `range`, behind which at least one byte of VP8 must stand.
    package init(parsing packet: [UInt8], in range: Range<Int>) throws(RTPError) {
        var reader = ByteReader(packet, in: range)
        let start = reader.position
        do throws(WireError) {
            let first = try reader.readUInt8()
            isNonReference = first & 0x20 != 0
            startsPartition = first & 0x10 != 0
            partitionIndex = first & 0x07
            if first & 0x80 != 0 {
                let flags = try reader.readUInt8()
                if flags & 0x80 != 0 {
                    pictureIDOffset = reader.position - start
                    let high = try reader.readUInt8()
                    if high & 0x80 != 0 {
                        hasLongPictureID = true
                        pictureID = UInt16(high & 0x7F) << 8 | UInt16(try reader.readUInt8())
                    } else {
                        pictureID = UInt16(high)
                    }
                }
                if flags & 0x40 != 0 {
                    tl0PictureIndexOffset = reader.position - start
                    tl0PictureIndex = try reader.readUInt8()
                }
                if flags & 0x30 != 0 {
                    let layers = try reader.readUInt8()
                    if flags & 0x20 != 0 {
                        temporalLayer = layers >> 6
                        isLayerSync = layers & 0x20 != 0
                    }
                    if flags & 0x10 != 0 { keyIndex = layers & 0x1F }
                }
            }
        } catch {
            throw .malformedPayload(format: "VP8", reason: "descriptor ends early")
        }
        guard !reader.isAtEnd else { throw .malformedPayload(format: "VP8", reason: "nothing behind the descriptor") }
        length = reader.position - start
    }

    /// The descriptor's bytes, with a 15-bit picture id.
    package func write(to bytes: inout [UInt8]) {
        let hasLayers = temporalLayer != nil || keyIndex != nil
        let isExtended = pictureID != nil || tl0PictureIndex != nil || hasLayers
        bytes.append(
            (isExtended ? 0x80 : 0) | (isNonReference ? 0x20 : 0) | (startsPartition ? 0x10 : 0)
                | partitionIndex & 0x07)
        guard isExtended else { return }
        bytes.append(
            (pictureID != nil ? 0x80 : 0) | (tl0PictureIndex != nil ? 0x40 : 0) | (temporalLayer != nil ? 0x20 : 0)
                | (keyIndex != nil ? 0x10 : 0))
        if let pictureID {
            bytes.append(0x80 | UInt8(truncatingIfNeeded: pictureID >> 8) & 0x7F)
            bytes.append(UInt8(truncatingIfNeeded: pictureID))
        }
        if let tl0PictureIndex { bytes.append(tl0PictureIndex) }
        if hasLayers {
            bytes.append((temporalLayer ?? 0) << 6 | (isLayerSync ? 0x20 : 0) | (keyIndex ?? 0) & 0x1F)
        }
    }
}

/// VP8's own frame header (RFC 6386, 9.1).
package enum VP8Bitstream {
    /// Whether a frame's first byte belongs to a key frame.
    package static func isKeyFrame(firstByte: UInt8) -> Bool { firstByte & 0x01 == 0 }
}

/// Cuts VP8 frames into payloads, with 15-bit picture ids and, for temporal layers, base layer indexes.
package struct VP8Packetizer: VideoPacketizer {
    private var pictureID: UInt16
    private var tl0PictureIndex: UInt8

    package init(random: inout RandomSource) {
        pictureID = UInt16(truncatingIfNeeded: random.next()) & 0x7FFF
        tl0PictureIndex = UInt8(truncatingIfNeeded: random.next())
    }

    package init(pictureID: UInt16, tl0PictureIndex: UInt8) {
        self.pictureID = pictureID & 0x7FFF
        self.tl0PictureIndex = tl0PictureIndex
    }

    package mutating func packetize(_ frame: [UInt8], traits: VideoFrameTraits, limit: Int) -> [[UInt8]] {
        guard !frame.isEmpty else { return [] }
        var descriptor = VP8PayloadDescriptor()
        descriptor.isNonReference = traits.isDiscardable && !traits.isKeyFrame
        descriptor.pictureID = pictureID
        if let layer = traits.temporalLayer {
            if layer == 0 { tl0PictureIndex &+= 1 }
            descriptor.tl0PictureIndex = tl0PictureIndex
            descriptor.temporalLayer = min(layer, 3)
            descriptor.isLayerSync = traits.isLayerSync || traits.isKeyFrame
        }
        pictureID = (pictureID &+ 1) & 0x7FFF
        let head = 4 + (traits.temporalLayer == nil ? 0 : 2)
        return evenParts(frame.count, limit: limit - head).map { part in
            var payload: [UInt8] = []
            payload.reserveCapacity(head + part.count)
            descriptor.startsPartition = part.lowerBound == 0
            descriptor.write(to: &payload)
            payload.append(contentsOf: frame[part])
            return payload
        }
    }
}
