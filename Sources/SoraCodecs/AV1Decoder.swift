#if Media
import CDav1d
import SoraFrames

/// AV1 by dav1d. Needs a temporal unit per frame, with or without its delimiter.
package final class AV1Decoder: VideoDecoder {
    package let codec = VideoCodecKind.av1
    private let context: OpaquePointer
    private let pool = VideoFrameBufferPool(capacity: 8)
    private var needsKeyFrame = true

    package init(threads: Int = 1) throws(CodecError) {
        guard let context = sora_dav1d_open(Int32(min(max(threads, 1), 16))) else {
            throw .openingFailed(codec: VideoCodecKind.av1.rawValue, detail: "dav1d refused")
        }
        self.context = context
    }

    deinit { sora_dav1d_close(context) }

    package func decode(_ frame: EncodedVideoFrame) throws(CodecError) -> [VideoFrame] {
        guard !frame.payload.isEmpty else { throw .decodingFailed(codec: codec.rawValue, detail: "it is empty") }
        if needsKeyFrame {
            guard frame.isKeyFrame else {
                throw .decodingFailed(codec: codec.rawValue, detail: "its key frame is missing")
            }
            sora_dav1d_reset(context)
        }
        let pictures = Pictures(pool: pool)
        let result = sora_dav1d_decode(
            context, frame.payload, frame.payload.count,
            { view, raw in
                guard let view, let raw else { return }
                Unmanaged<Pictures>.fromOpaque(raw).takeUnretainedValue().take(view.pointee)
            }, Unmanaged.passUnretained(pictures).toOpaque())
        guard result == 0 else {
            needsKeyFrame = true
            throw .decodingFailed(codec: codec.rawValue, detail: "dav1d says \(result)")
        }
        guard pictures.unusable == 0 else {
            throw .decodingFailed(codec: codec.rawValue, detail: "its format is not 8-bit 4:2:0")
        }
        needsKeyFrame = false
        return pictures.buffers.map { VideoFrame(buffer: $0, timestamp: frame.timestamp, rotation: frame.rotation) }
    }

    private final class Pictures {
        let pool: VideoFrameBufferPool
        var buffers: [VideoFrameBuffer] = []
        var unusable = 0
        init(pool: VideoFrameBufferPool) { self.pool = pool }

        func take(_ view: sora_dav1d_view) {
            let (width, height) = (Int(view.width), Int(view.height))
            guard view.is_i420 != 0, VideoFrameBuffer.isValid(width: width, height: height), let y = view.y,
                let u = view.u, let v = view.v
            else {
                unusable += 1
                return
            }
            buffers.append(
                VideoFrameBuffer(
                    copying: I420Planes(
                        width: width, height: height, y: y, strideY: view.stride_y, u: u, strideU: view.stride_uv,
                        v: v, strideV: view.stride_uv), pool: pool))
        }
    }
}
#endif
