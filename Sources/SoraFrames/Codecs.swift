/// What a video encoder is asked for. Values outside the ranges are clamped, not refused (pitfall COD13).
package struct VideoEncoderSettings: Sendable, Equatable {
    package enum Content: Sendable {
        /// Camera pictures: keep the rate, let sharpness go.
        case motion
        /// Screens and slides: keep sharpness.
        case detail
    }
    package var codec: VideoCodecKind
    package var width: Int
    package var height: Int
    /// Target in bits per second, 10,000...100,000,000.
    package var bitrate: Int
    /// Expected frames per second, 1...120.
    package var framerate: Double
    package var content: Content
    /// Longest distance of key frames in frames; nil: only on request (and when the size changes).
    package var keyFrameInterval: Int?
    /// Whether the encoder may leave frames out to hold the bit rate.
    package var mayDropFrames: Bool
    /// Threads of its own; nil: chosen by size and cores.
    package var threads: Int?

    package init(
        codec: VideoCodecKind, width: Int, height: Int, bitrate: Int, framerate: Double = 30,
        content: Content = .motion, keyFrameInterval: Int? = nil, mayDropFrames: Bool = true, threads: Int? = nil
    ) {
        self.codec = codec
        self.width = width
        self.height = height
        self.bitrate = bitrate
        self.framerate = framerate
        self.content = content
        self.keyFrameInterval = keyFrameInterval
        self.mayDropFrames = mayDropFrames
        self.threads = threads
    }

    /// The same with every value inside its range.
    package var clamped: VideoEncoderSettings {
        var copy = self
        copy.width = min(max(width, 1), VideoFrameBuffer.maximumDimension - 1)
        copy.height = min(max(height, 1), VideoFrameBuffer.maximumDimension - 1)
        copy.bitrate = min(max(bitrate, 10_000), 100_000_000)
        copy.framerate = framerate.isFinite ? min(max(framerate, 1), 120) : 30
        return copy
    }
}

/// What an audio encoder is asked for.
package struct AudioEncoderSettings: Sendable, Equatable {
    package var codec: AudioCodecKind
    /// 1 or 2.
    package var channels: Int
    /// Bits per second; nil: the codec's choice.
    package var bitrate: Int?
    /// Milliseconds per packet: 10, 20, 40 or 60.
    package var frameMilliseconds: Int
    /// Carry a coarse copy of the frame before (Opus in-band FEC).
    package var usesForwardErrorCorrection: Bool
    /// Expected loss in percent, which governs how much goes into that copy.
    package var expectedPacketLoss: Int
    /// Send next to nothing in silence.
    package var usesDiscontinuousTransmission: Bool
    /// Tuned for speech (true) or for any sound.
    package var isVoice: Bool

    package init(
        codec: AudioCodecKind = .opus, channels: Int = 1, bitrate: Int? = nil, frameMilliseconds: Int = 20,
        usesForwardErrorCorrection: Bool = true, expectedPacketLoss: Int = 5,
        usesDiscontinuousTransmission: Bool = false, isVoice: Bool = true
    ) {
        self.codec = codec
        self.channels = channels
        self.bitrate = bitrate
        self.frameMilliseconds = frameMilliseconds
        self.usesForwardErrorCorrection = usesForwardErrorCorrection
        self.expectedPacketLoss = expectedPacketLoss
        self.usesDiscontinuousTransmission = usesDiscontinuousTransmission
        self.isVoice = isVoice
    }
}

/// What can go wrong in a codec. None of these ends the connection: the frame is lost, the codec lives on.
package enum CodecError: Error, Equatable, Sendable, CustomStringConvertible {
    /// This build has no such codec.
    case unavailable(String)
    /// The library refused to open.
    case openingFailed(codec: String, detail: String)
    case encodingFailed(codec: String, detail: String)
    case decodingFailed(codec: String, detail: String)
    /// A frame that cannot be coded: no samples, or a size out of range.
    case unusableFrame(String)

    package var description: String {
        switch self {
        case .unavailable(let codec): "this build has no \(codec) codec; choose another, or build with the trait Media"
        case .openingFailed(let codec, let detail): "the \(codec) codec could not be opened: \(detail)"
        case .encodingFailed(let codec, let detail): "a frame could not be encoded as \(codec): \(detail)"
        case .decodingFailed(let codec, let detail): "a \(codec) frame could not be decoded: \(detail)"
        case .unusableFrame(let detail): "a frame was not usable: \(detail)"
        }
    }
}

/// Raw pictures in, coded pictures out. Not thread-safe: one owner calls it.
///
/// A frame of another size than the last starts a new sequence with a key frame.
package protocol VideoEncoder: AnyObject {
    var codec: VideoCodecKind { get }
    /// No frame comes out when the encoder drops it to hold the rate. With `forceKeyFrame` the result is a key frame.
    func encode(_ frame: VideoFrame, forceKeyFrame: Bool) throws(CodecError) -> [EncodedVideoFrame]
    /// Takes effect with the next frame; the rate is reached within about a second.
    func setBitrate(_ bitsPerSecond: Int, framerate: Double) throws(CodecError)
}

/// Coded pictures in, raw pictures out. Not thread-safe.
package protocol VideoDecoder: AnyObject {
    var codec: VideoCodecKind { get }
    /// Throws on a broken frame, or on a delta frame without its reference: the caller then asks for a key frame.
    func decode(_ frame: EncodedVideoFrame) throws(CodecError) -> [VideoFrame]
}

/// Sound in, packets out. Not thread-safe. Collects samples until a packet is full; any frame length is welcome.
package protocol AudioEncoder: AnyObject {
    var codec: AudioCodecKind { get }
    func encode(_ frame: AudioFrame) throws(CodecError) -> [EncodedAudioFrame]
    func setBitrate(_ bitsPerSecond: Int) throws(CodecError)
    /// Percent, from receiver reports.
    func setExpectedPacketLoss(_ percent: Int) throws(CodecError)
}

/// Packets in, sound out. Not thread-safe.
package protocol AudioDecoder: AnyObject {
    var codec: AudioCodecKind { get }
    var sampleRate: Int { get }
    var channels: Int { get }
    func decode(_ frame: EncodedAudioFrame) throws(CodecError) -> AudioFrame
    /// Sound in place of a lost packet, from what came before it.
    func conceal(samplesPerChannel: Int, timestamp: Int64) throws(CodecError) -> AudioFrame
    /// Sound of the lost packet directly before `next`, from the copy that `next` carries (Opus in-band FEC).
    func recoverLoss(before next: EncodedAudioFrame, samplesPerChannel: Int) throws(CodecError) -> AudioFrame
}

/// Where pipelines get codecs from, so that they import no C library.
package protocol CodecFactory: Sendable {
    /// Codecs that can be encoded, best choice first. Each honours key-frame requests (pitfall COD12).
    var videoEncoders: [VideoCodecKind] { get }
    var videoDecoders: [VideoCodecKind] { get }
    var audioCodecs: [AudioCodecKind] { get }
    func makeVideoEncoder(_ settings: VideoEncoderSettings) throws(CodecError) -> sending any VideoEncoder
    func makeVideoDecoder(_ codec: VideoCodecKind) throws(CodecError) -> sending any VideoDecoder
    func makeAudioEncoder(_ settings: AudioEncoderSettings) throws(CodecError) -> sending any AudioEncoder
    func makeAudioDecoder(_ codec: AudioCodecKind, channels: Int) throws(CodecError) -> sending any AudioDecoder
    /// The picture in another size, filtered. Sizes are clamped to 1...16,384.
    func scale(_ buffer: VideoFrameBuffer, width: Int, height: Int, pool: VideoFrameBufferPool?) -> VideoFrameBuffer
    /// The picture turned upright.
    func rotate(_ buffer: VideoFrameBuffer, by rotation: VideoRotation) -> VideoFrameBuffer
}

/// The factory of a build without codecs (trait `Media` off): it offers none and refuses all.
package struct NoCodecs: CodecFactory {
    package init() {}
    package var videoEncoders: [VideoCodecKind] { [] }
    package var videoDecoders: [VideoCodecKind] { [] }
    package var audioCodecs: [AudioCodecKind] { [] }
    package func makeVideoEncoder(_ settings: VideoEncoderSettings) throws(CodecError) -> sending any VideoEncoder {
        throw .unavailable(settings.codec.rawValue)
    }
    package func makeVideoDecoder(_ codec: VideoCodecKind) throws(CodecError) -> sending any VideoDecoder {
        throw .unavailable(codec.rawValue)
    }
    package func makeAudioEncoder(_ settings: AudioEncoderSettings) throws(CodecError) -> sending any AudioEncoder {
        throw .unavailable(settings.codec.rawValue)
    }
    package func makeAudioDecoder(
        _ codec: AudioCodecKind, channels: Int
    ) throws(CodecError) -> sending any AudioDecoder {
        throw .unavailable(codec.rawValue)
    }
    /// By nearest samples: correct, not beautiful.
    package func scale(
        _ buffer: VideoFrameBuffer, width: Int, height: Int, pool: VideoFrameBufferPool?
    ) -> VideoFrameBuffer {
        NearestScaling.scale(buffer, width: width, height: height, pool: pool)
    }
    package func rotate(_ buffer: VideoFrameBuffer, by rotation: VideoRotation) -> VideoFrameBuffer {
        NearestScaling.rotate(buffer, by: rotation)
    }
}
