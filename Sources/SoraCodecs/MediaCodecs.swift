#if Media
import SoraFrames

/// The codecs of this build.
package struct MediaCodecs: CodecFactory {
    package init() {}

    package var videoEncoders: [VideoCodecKind] { [.vp8, .vp9, .h264, .av1] }
    package var videoDecoders: [VideoCodecKind] { [.vp8, .vp9, .h264, .av1] }
    package var audioCodecs: [AudioCodecKind] { [.opus] }

    package func makeVideoEncoder(_ settings: VideoEncoderSettings) throws(CodecError) -> sending any VideoEncoder {
        switch settings.codec {
        case .vp8, .vp9: return try VPXEncoder(settings)
        case .av1: return try AV1Encoder(settings)
        case .h264: return try H264Encoder(settings)
        case .h265: throw .unavailable(settings.codec.rawValue)
        }
    }

    package func makeVideoDecoder(_ codec: VideoCodecKind) throws(CodecError) -> sending any VideoDecoder {
        switch codec {
        case .vp8, .vp9: return try VPXDecoder(codec)
        case .av1: return try AV1Decoder()
        case .h264: return try H264Decoder()
        case .h265: throw .unavailable(codec.rawValue)
        }
    }

    package func makeAudioEncoder(_ settings: AudioEncoderSettings) throws(CodecError) -> sending any AudioEncoder {
        guard settings.codec == .opus else { throw .unavailable(settings.codec.rawValue) }
        return try OpusEncoder(settings)
    }

    package func makeAudioDecoder(
        _ codec: AudioCodecKind, channels: Int
    ) throws(CodecError) -> sending any AudioDecoder {
        guard codec == .opus else { throw .unavailable(codec.rawValue) }
        return try OpusDecoder(channels: channels)
    }

    package func scale(
        _ buffer: VideoFrameBuffer, width: Int, height: Int, pool: VideoFrameBufferPool?
    ) -> VideoFrameBuffer {
        PixelConversion.scale(buffer, width: width, height: height, pool: pool)
    }

    package func rotate(_ buffer: VideoFrameBuffer, by rotation: VideoRotation) -> VideoFrameBuffer {
        PixelConversion.rotate(buffer, by: rotation)
    }
}
#endif
