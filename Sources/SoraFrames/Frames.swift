import SoraWire

/// How far a picture must be turned clockwise to stand upright.
package enum VideoRotation: Int, Sendable, CaseIterable {
    case none = 0
    case clockwise90 = 90
    case clockwise180 = 180
    case clockwise270 = 270

    /// Width and height change places.
    package var isTransposing: Bool { self == .clockwise90 || self == .clockwise270 }
}

/// A picture with its capture time.
package struct VideoFrame: Sendable {
    package var buffer: VideoFrameBuffer
    /// Capture time in nanoseconds on the source's monotonic clock.
    package var timestamp: Int64
    package var rotation: VideoRotation

    package init(buffer: VideoFrameBuffer, timestamp: Int64, rotation: VideoRotation = .none) {
        self.buffer = buffer
        self.timestamp = timestamp
        self.rotation = rotation
    }
    /// Width of the stored picture, before rotation.
    package var width: Int { buffer.width }
    /// Height of the stored picture, before rotation.
    package var height: Int { buffer.height }
    /// Size as shown, after rotation.
    package var uprightSize: (width: Int, height: Int) {
        rotation.isTransposing ? (height, width) : (width, height)
    }
}

/// A piece of sound: interleaved 16-bit samples.
package struct AudioFrame: Sendable, Equatable {
    /// Samples of all channels, interleaved: `samplesPerChannel * channels` of them.
    package var samples: [Int16]
    /// In hertz.
    package var sampleRate: Int
    package var channels: Int
    /// Time of the first sample in nanoseconds, on the same clock as the source's pictures.
    package var timestamp: Int64

    /// A surplus that is no whole sample of all channels is cut off.
    package init(samples: [Int16], sampleRate: Int, channels: Int, timestamp: Int64) {
        let channels = max(channels, 1)
        self.samples = samples.count % channels == 0 ? samples : Array(samples.dropLast(samples.count % channels))
        self.sampleRate = max(sampleRate, 1)
        self.channels = channels
        self.timestamp = timestamp
    }

    package static func silence(
        samplesPerChannel: Int, sampleRate: Int = 48_000, channels: Int = 1, timestamp: Int64
    ) -> AudioFrame {
        AudioFrame(
            samples: [Int16](repeating: 0, count: max(samplesPerChannel, 0) * max(channels, 1)),
            sampleRate: sampleRate, channels: channels, timestamp: timestamp)
    }

    package var samplesPerChannel: Int { samples.count / channels }
    package var duration: Duration {
        .nanoseconds(Int64(samplesPerChannel) * 1_000_000_000 / Int64(sampleRate))
    }
    /// Root mean square of all samples, 0...1 of full scale.
    package var level: Double {
        guard !samples.isEmpty else { return 0 }
        let sum = samples.reduce(0.0) { $0 + Double($1) * Double($1) }
        return (sum / Double(samples.count)).squareRoot() / 32_768
    }
}

/// Video codecs that Sora knows. The raw value is the name in SDP and in Sora's messages.
package enum VideoCodecKind: String, Sendable, CaseIterable, CustomStringConvertible {
    case vp8 = "VP8"
    case vp9 = "VP9"
    case av1 = "AV1"
    case h264 = "H264"
    case h265 = "H265"

    /// By name in any case (pitfall CLI2); nil for an unknown one.
    package init?(name: String) {
        let upper = name.uppercased()
        guard let kind = Self.allCases.first(where: { $0.rawValue == upper }) else { return nil }
        self = kind
    }
    package var description: String { rawValue }
}

/// Audio codecs that Sora knows. The raw value is the name in Sora's messages.
package enum AudioCodecKind: String, Sendable, CaseIterable, CustomStringConvertible {
    case opus = "OPUS"
    case pcmu = "PCMU"

    package init?(name: String) {
        let upper = name.uppercased()
        guard let kind = Self.allCases.first(where: { $0.rawValue == upper }) else { return nil }
        self = kind
    }
    package var description: String { rawValue }
}

/// One coded picture (of one spatial layer), complete.
package struct EncodedVideoFrame: Sendable, Equatable {
    package var codec: VideoCodecKind
    package var isKeyFrame: Bool
    /// Size of the coded picture; 0 where it is not known (a received delta frame).
    package var width: Int
    package var height: Int
    /// Capture time in nanoseconds, as of the raw frame.
    package var timestamp: Int64
    package var payload: [UInt8]
    package var rotation: VideoRotation
    /// 0 is the base layer.
    package var temporalLayer: Int
    package var spatialLayer: Int
    /// Whether a decoder may start to use this temporal layer here (it depends on the base layer only).
    package var isLayerSync: Bool
    /// Whether no later frame refers to this one, so that it can be dropped.
    package var isDiscardable: Bool
    /// Which simulcast stream it belongs to.
    package var rid: RestrictionID?

    package init(
        codec: VideoCodecKind, isKeyFrame: Bool, width: Int, height: Int, timestamp: Int64, payload: [UInt8],
        rotation: VideoRotation = .none, temporalLayer: Int = 0, spatialLayer: Int = 0, isLayerSync: Bool = false,
        isDiscardable: Bool = false, rid: RestrictionID? = nil
    ) {
        self.codec = codec
        self.isKeyFrame = isKeyFrame
        self.width = width
        self.height = height
        self.timestamp = timestamp
        self.payload = payload
        self.rotation = rotation
        self.temporalLayer = temporalLayer
        self.spatialLayer = spatialLayer
        self.isLayerSync = isLayerSync
        self.isDiscardable = isDiscardable
        self.rid = rid
    }
}

/// One coded piece of sound.
package struct EncodedAudioFrame: Sendable, Equatable {
    package var codec: AudioCodecKind
    /// Time of the first sample in nanoseconds.
    package var timestamp: Int64
    /// Length in samples per channel at 48 kHz (Opus) or 8 kHz (PCMU), which is the RTP clock; 0 if not known.
    package var duration: Int
    package var payload: [UInt8]
    /// The encoder saw silence and the packet need not be sent (DTX).
    package var isSilence: Bool

    package init(
        codec: AudioCodecKind, timestamp: Int64, duration: Int, payload: [UInt8], isSilence: Bool = false
    ) {
        self.codec = codec
        self.timestamp = timestamp
        self.duration = duration
        self.payload = payload
        self.isSilence = isSilence
    }
}
