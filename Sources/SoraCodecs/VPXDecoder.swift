#if Media
import CVPX
import CYUV
import SoraFrames

/// VP8 and VP9 by libvpx. The pictures' memory is pooled.
package final class VPXDecoder: VideoDecoder {
    package let codec: VideoCodecKind
    private let context: UnsafeMutablePointer<vpx_codec_ctx_t>
    private let pool = VideoFrameBufferPool(capacity: 8)
    /// Set until the first key frame, and after damage: references are not to be trusted.
    private var needsKeyFrame = true

    package init(_ codec: VideoCodecKind, threads: Int = 1) throws(CodecError) {
        self.codec = codec
        guard codec == .vp8 || codec == .vp9,
            let interface = codec == .vp8 ? vpx_codec_vp8_dx() : vpx_codec_vp9_dx()
        else { throw .unavailable(codec.rawValue) }
        context = UnsafeMutablePointer<vpx_codec_ctx_t>.allocate(capacity: 1)
        context.initialize(to: vpx_codec_ctx_t())
        guard sora_vpx_dec_init(context, interface, UInt32(min(max(threads, 1), 16))) == VPX_CODEC_OK else {
            let detail = String(cString: sora_vpx_error(context))
            throw .openingFailed(codec: codec.rawValue, detail: detail)
        }
    }

    deinit {
        vpx_codec_destroy(context)
        context.deallocate()
    }

    package func decode(_ frame: EncodedVideoFrame) throws(CodecError) -> [VideoFrame] {
        guard !frame.payload.isEmpty else {
            throw .decodingFailed(codec: codec.rawValue, detail: "it is empty")
        }
        if needsKeyFrame && !isKeyFrame(frame.payload) {
            throw .decodingFailed(codec: codec.rawValue, detail: "its key frame is missing")
        }
        let result = frame.payload.withUnsafeBufferPointer { bytes in
            vpx_codec_decode(context, bytes.baseAddress, UInt32(bytes.count), nil, 0)
        }
        guard result == VPX_CODEC_OK else {
            needsKeyFrame = true
            throw .decodingFailed(codec: codec.rawValue, detail: String(cString: sora_vpx_error(context)))
        }
        needsKeyFrame = false
        var output: [VideoFrame] = []
        var iterator: vpx_codec_iter_t?
        while let image = vpx_codec_get_frame(context, &iterator) {
            if let buffer = copy(image) {
                output.append(VideoFrame(buffer: buffer, timestamp: frame.timestamp, rotation: frame.rotation))
            }
        }
        if sora_vp8_is_corrupted(context) != 0 {
            needsKeyFrame = true
            throw .decodingFailed(codec: codec.rawValue, detail: "it is damaged")
        }
        return output
    }

    /// From the first byte: VP8's inverted key flag (RFC 6386, 9.1), VP9's frame marker, profile, and type
    /// (VP9 bitstream 6.2).  What cannot be told counts as key frame, and libvpx judges.
    private func isKeyFrame(_ payload: [UInt8]) -> Bool {
        guard let first = payload.first else { return false }
        if codec == .vp8 { return first & 1 == 0 }
        guard first >> 6 == 0b10 else { return true }
        let isProfile3 = first & 0x30 == 0x30
        let showsExisting = isProfile3 ? first & 0x04 != 0 : first & 0x08 != 0
        let isInter = isProfile3 ? first & 0x02 != 0 : first & 0x04 != 0
        return !showsExisting && !isInter
    }

    private func copy(_ image: UnsafeMutablePointer<vpx_image_t>) -> VideoFrameBuffer? {
        let width = Int(image.pointee.d_w)
        let height = Int(image.pointee.d_h)
        guard VideoFrameBuffer.isValid(width: width, height: height), let y = sora_vpx_plane(image, 0),
            let u = sora_vpx_plane(image, 1), let v = sora_vpx_plane(image, 2)
        else { return nil }
        let strides = (sora_vpx_stride(image, 0), sora_vpx_stride(image, 1), sora_vpx_stride(image, 2))
        let buffer = VideoFrameBuffer(width: width, height: height, pool: pool)
        let result: Int32 = buffer.withMutablePlanes { target in
            switch image.pointee.fmt {
            case VPX_IMG_FMT_I420:
                I420Copy(
                    y, strides.0, u, strides.1, v, strides.2, target.y, Int32(target.strideY), target.u,
                    Int32(target.strideU), target.v, Int32(target.strideV), Int32(width), Int32(height))
            case VPX_IMG_FMT_I444:
                I444ToI420(
                    y, strides.0, u, strides.1, v, strides.2, target.y, Int32(target.strideY), target.u,
                    Int32(target.strideU), target.v, Int32(target.strideV), Int32(width), Int32(height))
            default:
                -1  // Profiles with more than 8 bits are not offered.
            }
        }
        return result == 0 ? buffer : nil
    }
}
#endif
