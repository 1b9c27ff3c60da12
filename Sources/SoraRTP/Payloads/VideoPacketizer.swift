import SoraWire

/// What a packetizer must know of an encoded frame beyond its bytes.
package struct VideoFrameTraits: Equatable, Sendable {
    package var isKeyFrame: Bool
    /// Nil without temporal scalability.
    package var temporalLayer: UInt8?
    /// The frame depends on no frame of its own or a higher temporal layer but the base layer's last one.
    package var isLayerSync: Bool
    /// No later frame depends on this one.
    package var isDiscardable: Bool
    /// Pixels; 0 if unknown. VP9 announces it in key frames.
    package var width: UInt16
    package var height: UInt16

    package init(
        isKeyFrame: Bool, temporalLayer: UInt8? = nil, isLayerSync: Bool = false, isDiscardable: Bool = false,
        width: UInt16 = 0, height: UInt16 = 0
    ) {
        self.isKeyFrame = isKeyFrame
        self.temporalLayer = temporalLayer
        self.isLayerSync = isLayerSync
        self.isDiscardable = isDiscardable
        self.width = width
        self.height = height
    }
}

/// Cuts encoded frames into RTP payloads of at most a given size. The last payload's packet carries the marker bit.
package protocol VideoPacketizer: Sendable {
    /// Payloads in order, none empty and none above `limit` bytes; empty for an empty frame, or if `limit` has no
    /// room for one byte of the frame.
    mutating func packetize(_ frame: [UInt8], traits: VideoFrameTraits, limit: Int) -> [[UInt8]]
}

/// Cuts `count` bytes into the fewest parts of at most `limit`, of nearly equal size: a small last packet costs as
/// much overhead as a full one and is lost as easily.
func evenParts(_ count: Int, limit: Int) -> [Range<Int>] {
    guard count > 0, limit > 0 else { return [] }
    let parts = (count + limit - 1) / limit
    let base = count / parts
    let larger = count % parts
    var ranges: [Range<Int>] = []
    ranges.reserveCapacity(parts)
    var start = 0
    for index in 0..<parts {
        let size = base + (index < larger ? 1 : 0)
        ranges.append(start..<(start + size))
        start += size
    }
    return ranges
}
