import SoraWire

/// The payload descriptor in front of each VP9 payload (RFC 9628, 4.2), flexible and non-flexible mode.
package struct VP9PayloadDescriptor: Equatable, Sendable {
    /// The picture depends on earlier pictures.
    package var isInterPredicted = false
    package var isFlexible = false
    /// First and last payload of a layer frame.
    package var startsLayerFrame = false
    package var endsLayerFrame = false
    package var isNotReferenceForUpperLayers = false
    package var pictureID: UInt16?
    package var hasLongPictureID = false
    package var temporalLayer: UInt8?
    package var spatialLayer: UInt8?
    /// From this picture on a receiver may switch up to this temporal layer.
    package var isSwitchingUpPoint = false
    package var usesInterLayerPrediction = false
    /// Non-flexible mode only.
    package var tl0PictureIndex: UInt8?
    /// Flexible mode: how many pictures back the references lie, at most three.
    package var referenceDifferences: [UInt8] = []
    package var scalability: VP9ScalabilityStructure?
    package private(set) var length = 1
    package private(set) var pictureIDOffset = 0
    package private(set) var tl0PictureIndexOffset = 0

    package init() {}

    package init(parsing packet: [UInt8], in range: Range<Int>) throws(RTPError) {
        var reader = ByteReader(packet, in: range)
        let start = reader.position
        do throws(WireError) {
            let first = try reader.readUInt8()
            isInterPredicted = first & 0x40 != 0
            isFlexible = first & 0x10 != 0
            startsLayerFrame = first & 0x08 != 0
            endsLayerFrame = first & 0x04 != 0
            isNotReferenceForUpperLayers = first & 0x01 != 0
            if first & 0x80 != 0 {
                pictureIDOffset = reader.position - start
                let high = try reader.readUInt8()
                if high & 0x80 != 0 {
                    hasLongPictureID = true
                    pictureID = UInt16(high & 0x7F) << 8 | UInt16(try reader.readUInt8())
                } else {
                    pictureID = UInt16(high)
                }
            }
            if first & 0x20 != 0 {
                let layers = try reader.readUInt8()
                temporalLayer = layers >> 5
                isSwitchingUpPoint = layers & 0x10 != 0
                spatialLayer = layers >> 1 & 0x07
                usesInterLayerPrediction = layers & 0x01 != 0
                if !isFlexible {
                    tl0PictureIndexOffset = reader.position - start
                    tl0PictureIndex = try reader.readUInt8()
                }
            }
            if isFlexible && isInterPredicted {
                var more = true
                while more {
                    guard referenceDifferences.count < 3 else {
                        throw .invalid(field: "VP9 reference count", value: 4)
                    }
                    let byte = try reader.readUInt8()
                    referenceDifferences.append(byte >> 1)
                    more = byte & 0x01 != 0
                }
            }
            if first & 0x02 != 0 { scalability = try VP9ScalabilityStructure(&reader) }
        } catch {
            throw .malformedPayload(format: "VP9", reason: "descriptor: \(error)")
        }
        guard !reader.isAtEnd else { throw .malformedPayload(format: "VP9", reason: "nothing behind the descriptor") }
        length = reader.position - start
    }

    /// The descriptor's bytes, with a 15-bit picture id.
    package func write(to bytes: inout [UInt8]) {
        let hasLayers = temporalLayer != nil || spatialLayer != nil
        bytes.append(
            (pictureID != nil ? 0x80 : 0) | (isInterPredicted ? 0x40 : 0) | (hasLayers ? 0x20 : 0)
                | (isFlexible ? 0x10 : 0) | (startsLayerFrame ? 0x08 : 0) | (endsLayerFrame ? 0x04 : 0)
                | (scalability != nil ? 0x02 : 0) | (isNotReferenceForUpperLayers ? 0x01 : 0))
        if let pictureID {
            bytes.append(0x80 | UInt8(truncatingIfNeeded: pictureID >> 8) & 0x7F)
            bytes.append(UInt8(truncatingIfNeeded: pictureID))
        }
        if hasLayers {
            bytes.append(
                ((temporalLayer ?? 0) & 0x07) << 5 | (isSwitchingUpPoint ? 0x10 : 0) | ((spatialLayer ?? 0) & 0x07) << 1
                    | (usesInterLayerPrediction ? 0x01 : 0))
            if !isFlexible { bytes.append(tl0PictureIndex ?? 0) }
        }
        if isFlexible && isInterPredicted {
            let differences = referenceDifferences.prefix(3)
            for (index, difference) in differences.enumerated() {
                bytes.append(difference << 1 | (index + 1 < differences.count ? 0x01 : 0))
            }
        }
        scalability?.write(to: &bytes)
    }

    func info(at start: Int) -> VideoPayloadInfo {
        var info = VideoPayloadInfo()
        let isBaseLayer = (spatialLayer ?? 0) == 0
        info.startsFrame = startsLayerFrame && isBaseLayer
        info.startsKeyFrame = info.startsFrame && !isInterPredicted
        info.pictureID = pictureID
        info.pictureIDBits = hasLongPictureID ? 15 : 7
        info.tl0PictureIndex = tl0PictureIndex
        info.temporalLayer = temporalLayer
        info.isLayerSync = isSwitchingUpPoint
        info.pictureIDPosition = pictureID == nil ? 0 : start + pictureIDOffset
        info.tl0PictureIndexPosition = tl0PictureIndex == nil ? 0 : start + tl0PictureIndexOffset
        return info
    }
}

/// Layers and picture group of a VP9 stream (RFC 9628, 4.2.1). Counts are checked against the bytes.
package struct VP9ScalabilityStructure: Equatable, Sendable {
    package struct Size: Equatable, Sendable {
        package var width: UInt16
        package var height: UInt16
        package init(width: UInt16, height: UInt16) {
            self.width = width
            self.height = height
        }
    }
    package struct Picture: Equatable, Sendable {
        package var temporalLayer: UInt8
        package var isSwitchingUpPoint: Bool
        /// At most three.
        package var referenceDifferences: [UInt8]
        package init(temporalLayer: UInt8, isSwitchingUpPoint: Bool, referenceDifferences: [UInt8]) {
            self.temporalLayer = temporalLayer
            self.isSwitchingUpPoint = isSwitchingUpPoint
            self.referenceDifferences = referenceDifferences
        }
    }
    /// 1...8.
    package var spatialLayerCount: UInt8
    /// One per layer, or none.
    package var sizes: [Size]
    /// Nil: no group is described. At most 255.
    package var pictures: [Picture]?

    package init(spatialLayerCount: UInt8, sizes: [Size], pictures: [Picture]?) {
        self.spatialLayerCount = spatialLayerCount
        self.sizes = sizes
        self.pictures = pictures
    }

    init(_ reader: inout ByteReader) throws(WireError) {
        let flags = try reader.readUInt8()
        spatialLayerCount = (flags >> 5) + 1
        sizes = []
        if flags & 0x10 != 0 {
            for _ in 0..<spatialLayerCount {
                sizes.append(Size(width: try reader.readUInt16(), height: try reader.readUInt16()))
            }
        }
        guard flags & 0x08 != 0 else { return }
        var pictures: [Picture] = []
        for _ in 0..<(try reader.readUInt8()) {
            let byte = try reader.readUInt8()
            pictures.append(
                Picture(
                    temporalLayer: byte >> 5, isSwitchingUpPoint: byte & 0x10 != 0,
                    referenceDifferences: try reader.readBytes(Int(byte >> 2 & 0x03))))
        }
        self.pictures = pictures
    }

    func write(to bytes: inout [UInt8]) {
        let count = min(max(spatialLayerCount, 1), 8)
        let hasSizes = sizes.count == Int(count)
        bytes.append((count - 1) << 5 | (hasSizes ? 0x10 : 0) | (pictures != nil ? 0x08 : 0))
        if hasSizes {
            for size in sizes {
                bytes += [UInt8(size.width >> 8), UInt8(truncatingIfNeeded: size.width)]
                bytes += [UInt8(size.height >> 8), UInt8(truncatingIfNeeded: size.height)]
            }
        }
        guard let pictures = pictures?.prefix(255) else { return }
        bytes.append(UInt8(pictures.count))
        for picture in pictures {
            let references = picture.referenceDifferences.prefix(3)
            bytes.append(
                (picture.temporalLayer & 0x07) << 5 | (picture.isSwitchingUpPoint ? 0x10 : 0)
                    | UInt8(references.count) << 2)
            bytes.append(contentsOf: references)
        }
    }
}

/// Cuts VP9 frames of one spatial layer into payloads, in non-flexible mode.
package struct VP9Packetizer: VideoPacketizer {
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
        var descriptor = VP9PayloadDescriptor()
        descriptor.pictureID = pictureID
        descriptor.isInterPredicted = !traits.isKeyFrame
        if let layer = traits.temporalLayer {
            if layer == 0 { tl0PictureIndex &+= 1 }
            descriptor.temporalLayer = min(layer, 7)
            descriptor.spatialLayer = 0
            descriptor.tl0PictureIndex = tl0PictureIndex
            descriptor.isSwitchingUpPoint = traits.isLayerSync
        }
        pictureID = (pictureID &+ 1) & 0x7FFF
        var structure: VP9ScalabilityStructure?
        if traits.isKeyFrame, traits.width > 0, traits.height > 0 {
            structure = VP9ScalabilityStructure(
                spatialLayerCount: 1, sizes: [.init(width: traits.width, height: traits.height)], pictures: nil)
        }
        // The structure stands in the first payload only; all are sized as if they had it, to keep them even.
        let head = 3 + (traits.temporalLayer == nil ? 0 : 2) + (structure == nil ? 0 : 5)
        let parts = evenParts(frame.count, limit: limit - head)
        return parts.enumerated().map { index, part in
            var payload: [UInt8] = []
            payload.reserveCapacity(head + part.count)
            descriptor.startsLayerFrame = index == 0
            descriptor.endsLayerFrame = index == parts.count - 1
            descriptor.scalability = index == 0 ? structure : nil
            descriptor.write(to: &payload)
            payload.append(contentsOf: frame[part])
            return payload
        }
    }
}
