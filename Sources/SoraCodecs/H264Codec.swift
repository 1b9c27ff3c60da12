#if Media
import COpenH264
import SoraFrames

/// H.264 constrained baseline by OpenH264, with start codes (Annex B); parameter sets before each key frame.
package final class H264Encoder: VideoEncoder {
    package let codec = VideoCodecKind.h264
    private var settings: VideoEncoderSettings
    private var encoder: UnsafeMutablePointer<ISVCEncoder?>?
    private let pool = VideoFrameBufferPool(capacity: 2)
    private var codedSize = (width: 0, height: 0)
    private var clock = EncodingClock(unit: .milliseconds(1))

    package init(_ settings: VideoEncoderSettings) throws(CodecError) {
        self.settings = settings.clamped
        // A size that cannot be coded is told with the frame that has it.
        do throws(CodecError) {
            try open()
        } catch {
            if case .unusableFrame = error { return }
            throw error
        }
    }

    deinit { close() }

    package func encode(_ frame: VideoFrame, forceKeyFrame: Bool) throws(CodecError) -> [EncodedVideoFrame] {
        var forceKeyFrame = forceKeyFrame
        if frame.width != settings.width || frame.height != settings.height {
            settings.width = frame.width
            settings.height = frame.height
            close()
        }
        if encoder == nil {
            try open()
            forceKeyFrame = true
        }
        guard let encoder else { throw .openingFailed(codec: codec.rawValue, detail: "no encoder") }
        // The library codes even sizes only: odd ones lose a line rather than the whole picture.
        let buffer = PixelConversion.scale(
            frame.buffer, width: codedSize.width, height: codedSize.height, pool: pool)
        let time = clock.time(of: frame.timestamp)
        let collected = Bytes()
        var kind: Int32 = 0
        let code = buffer.withPlanes { planes in
            sora_h264_encode(
                encoder, planes.y, Int32(planes.strideY), planes.u, Int32(planes.strideU), planes.v,
                Int32(planes.strideV), Int32(planes.width), Int32(planes.height), time, forceKeyFrame ? 1 : 0, &kind,
                { bytes, size, raw in
                    guard let bytes, let raw else { return }
                    Unmanaged<Bytes>.fromOpaque(raw).takeUnretainedValue().all += UnsafeBufferPointer(
                        start: bytes, count: size)
                }, Unmanaged.passUnretained(collected).toOpaque())
        }
        guard code == 0 else { throw .encodingFailed(codec: codec.rawValue, detail: "OpenH264 says \(code)") }
        guard kind != 0, !collected.all.isEmpty else { return [] }
        return [
            EncodedVideoFrame(
                codec: codec, isKeyFrame: kind == 2, width: codedSize.width, height: codedSize.height,
                timestamp: frame.timestamp, payload: collected.all, rotation: frame.rotation, isLayerSync: kind == 2)
        ]
    }

    package func setBitrate(_ bitsPerSecond: Int, framerate: Double) throws(CodecError) {
        settings.bitrate = bitsPerSecond
        settings.framerate = framerate
        settings = settings.clamped
        guard let encoder else { return }
        let code = sora_h264_encoder_rate(encoder, Int32(clamping: settings.bitrate), Float(settings.framerate))
        guard code == 0 else { throw .encodingFailed(codec: codec.rawValue, detail: "OpenH264 says \(code)") }
    }

    private func open() throws(CodecError) {
        close()
        codedSize = (settings.width & ~1, settings.height & ~1)
        guard codedSize.width >= 16, codedSize.height >= 16, codedSize.width <= 3840, codedSize.height <= 2160 else {
            throw .unusableFrame(
                "H.264 pictures have 16x16 to 3840x2160 pixels here, not \(settings.width)x\(settings.height)")
        }
        let threads = CodecMachine.threads(for: settings, twoFrom: 1280 * 720, fourFrom: .max)
        encoder = sora_h264_encoder_open(
            Int32(codedSize.width), Int32(codedSize.height), Int32(clamping: settings.bitrate),
            Float(settings.framerate), Int32(min(threads, 4)), settings.mayDropFrames ? 1 : 0,
            settings.content == .detail ? 1 : 0)
        guard encoder != nil else {
            throw .openingFailed(
                codec: codec.rawValue, detail: "OpenH264 refused \(codedSize.width)x\(codedSize.height)")
        }
        clock.restart()
    }

    private func close() {
        if let encoder { sora_h264_encoder_close(encoder) }
        encoder = nil
    }

    private final class Bytes {
        var all: [UInt8] = []
    }
}

/// H.264 by OpenH264. Takes access units with start codes.
package final class H264Decoder: VideoDecoder {
    package let codec = VideoCodecKind.h264
    private let decoder: UnsafeMutablePointer<ISVCDecoder?>
    private let pool = VideoFrameBufferPool(capacity: 8)
    private var needsKeyFrame = true

    package init() throws(CodecError) {
        guard let decoder = sora_h264_decoder_open() else {
            throw .openingFailed(codec: VideoCodecKind.h264.rawValue, detail: "OpenH264 refused")
        }
        self.decoder = decoder
    }

    deinit { sora_h264_decoder_close(decoder) }

    package func decode(_ frame: EncodedVideoFrame) throws(CodecError) -> [VideoFrame] {
        guard !frame.payload.isEmpty else { throw .decodingFailed(codec: codec.rawValue, detail: "it is empty") }
        if needsKeyFrame, !frame.isKeyFrame {
            throw .decodingFailed(codec: codec.rawValue, detail: "its key frame is missing")
        }
        var view = sora_h264_view()
        let code = sora_h264_decode(decoder, frame.payload, Int32(frame.payload.count), &view)
        guard code >= 0 else {
            needsKeyFrame = true
            throw .decodingFailed(codec: codec.rawValue, detail: "OpenH264 says \(-code)")
        }
        needsKeyFrame = false
        guard code == 1 else { return [] }
        let (width, height) = (Int(view.width), Int(view.height))
        guard VideoFrameBuffer.isValid(width: width, height: height), let y = view.y, let u = view.u, let v = view.v
        else { throw .decodingFailed(codec: codec.rawValue, detail: "its size is \(width)x\(height)") }
        let buffer = VideoFrameBuffer(
            copying: I420Planes(
                width: width, height: height, y: y, strideY: Int(view.stride_y), u: u, strideU: Int(view.stride_uv),
                v: v, strideV: Int(view.stride_uv)), pool: pool)
        return [VideoFrame(buffer: buffer, timestamp: frame.timestamp, rotation: frame.rotation)]
    }
}
#endif
