/// Video codecs that a WebM or Matroska file of ours holds.
package enum WebMVideoCodec: Sendable, Equatable {
    case vp8, vp9, av1, h264
}

/// A coded picture for a file.
package struct WebMVideoFrame: Sendable, Equatable {
    package var codec: WebMVideoCodec
    package var isKeyFrame: Bool
    /// Size of the coded picture; 0 where it is not known (a delta frame).
    package var width: Int
    package var height: Int
    /// Nanoseconds on any clock that the file's tracks share.
    package var timestamp: Int64
    /// H.264: with start codes (Annex B).
    package var payload: [UInt8]
    /// Clockwise degrees by which it must be turned to stand upright.
    package var rotation: Int

    package init(
        codec: WebMVideoCodec, isKeyFrame: Bool, width: Int, height: Int, timestamp: Int64, payload: [UInt8],
        rotation: Int = 0
    ) {
        self.codec = codec
        self.isKeyFrame = isKeyFrame
        self.width = width
        self.height = height
        self.timestamp = timestamp
        self.payload = payload
        self.rotation = rotation
    }
}

/// An Opus packet for a file.
package struct WebMOpusFrame: Sendable, Equatable {
    /// Of the first sample, in nanoseconds on the clock of the pictures.
    package var timestamp: Int64
    /// Samples per channel at 48 kHz.
    package var duration: Int
    package var payload: [UInt8]

    package init(timestamp: Int64, duration: Int, payload: [UInt8]) {
        self.timestamp = timestamp
        self.duration = duration
        self.payload = payload
    }
}
