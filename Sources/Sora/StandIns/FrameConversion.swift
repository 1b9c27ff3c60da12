internal import SoraFrames

// The one place where frames change between the SDK's own form and the public one.

extension RTCVideoFrame {
    /// The public form of a frame; shares its pixels.
    convenience init(_ frame: SoraFrames.VideoFrame) {
        self.init(
            buffer: RTCI420Buffer(frame.buffer), rotation: RTCVideoRotation(rawValue: frame.rotation.rawValue) ?? ._0,
            timeStampNs: frame.timestamp)
    }
}

extension SoraFrames.VideoFrame {
    /// The inner form of a frame; shares its pixels where they have three planes already. Nil for one without pixels.
    init?(_ frame: RTCVideoFrame) {
        guard frame.width > 0, frame.height > 0 else { return nil }
        self.init(
            buffer: frame.buffer.toI420().storage, timestamp: frame.timeStampNs,
            rotation: VideoRotation(rawValue: frame.rotation.rawValue) ?? .none)
    }
}
