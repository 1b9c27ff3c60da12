import SoraWire

/// Which frames may follow those already decoded, by VP8 and VP9 picture ids and base layer indexes.
///
/// Streams without them have only one rule: no gap.
struct VideoContinuity: Sendable {
    private var pictureID: UInt16?
    private var tl0PictureIndex: UInt8?
    /// Temporal layers above the base that lost a frame and wait for a synchronization frame; bit per layer.
    private var brokenLayers: UInt8 = 0

    /// Notes the next frame in sequence; false if it must not be decoded because its layer lost a frame.
    mutating func accept(_ info: VideoPayloadInfo) -> Bool {
        if info.startsKeyFrame { brokenLayers = 0 }
        let layer = info.temporalLayer ?? 0
        let bit = UInt8(1) << min(layer, 7)
        if brokenLayers & bit != 0 {
            guard info.isLayerSync else {
                pictureID = info.pictureID
                return false
            }
            brokenLayers &= ~bit
        }
        pictureID = info.pictureID
        if layer == 0 { tl0PictureIndex = info.tl0PictureIndex }
        return true
    }

    enum Verdict {
        case undecodable
        /// Nothing but padding was missing.
        case nothingLost
        /// Frames were lost that this one does not need.
        case decodableAfterLoss
    }

    /// Whether the frame can be decoded although packets before it are missing.
    func verdictAfterGap(_ info: VideoPayloadInfo) -> Verdict {
        if info.startsKeyFrame { return .decodableAfterLoss }
        // Adjacent ids: what is missing was padding. (A gap could hide a whole cycle of 7-bit ids: not trusted.)
        if let last = pictureID, let next = info.pictureID, info.pictureIDBits != 7, (last &+ 1) & 0x7FFF == next {
            return .nothingLost
        }
        guard let last = tl0PictureIndex, let index = info.tl0PictureIndex, let layer = info.temporalLayer else {
            return .undecodable
        }
        let isDecodable = layer == 0 ? index == last &+ 1 : info.isLayerSync && index == last
        return isDecodable ? .decodableAfterLoss : .undecodable
    }

    /// Frames were skipped: layers above the base may have lost one.
    mutating func noteLoss() { brokenLayers = 0xFE }
}
