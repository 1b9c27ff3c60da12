#if Media
import CYUV
import SoraFrames

/// Formats that applications and cameras hand in, besides I420.
package enum PixelFormat: Sendable, CaseIterable {
    /// One luma plane, one plane of interleaved Cb and Cr.
    case nv12
    /// Packed 4:2:2, Y Cb Y Cr.
    case yuy2
    /// Packed 4:2:2, Cb Y Cr Y.
    case uyvy
    /// Four bytes per pixel in memory order blue, green, red, alpha.
    case bgra
    /// Four bytes per pixel in memory order red, green, blue, alpha.
    case rgba
    /// Three bytes per pixel in memory order red, green, blue.
    case rgb

    /// Least stride in bytes of the (first) plane.
    package func leastStride(width: Int) -> Int {
        switch self {
        case .nv12: width
        case .yuy2, .uyvy: (width + 1) / 2 * 4
        case .bgra, .rgba: width * 4
        case .rgb: width * 3
        }
    }
}

/// Scaling, turning and colour conversion by libyuv. Colours are BT.601 in video range, WebRTC's habit.
package enum PixelConversion {
    /// The picture in another size; box-filtered when it shrinks. The same picture if the size is the same.
    package static func scale(
        _ buffer: VideoFrameBuffer, width: Int, height: Int, pool: VideoFrameBufferPool? = nil
    ) -> VideoFrameBuffer {
        if buffer.width == width, buffer.height == height { return buffer }
        return VideoFrameBuffer(width: width, height: height, pool: pool) { target in
            buffer.withPlanes { source in
                _ = I420Scale(
                    source.y, Int32(source.strideY), source.u, Int32(source.strideU), source.v,
                    Int32(source.strideV), Int32(source.width), Int32(source.height), target.y,
                    Int32(target.strideY), target.u, Int32(target.strideU), target.v, Int32(target.strideV),
                    Int32(target.width), Int32(target.height), kFilterBox)
            }
        }
    }

    /// The picture turned clockwise.
    package static func rotate(_ buffer: VideoFrameBuffer, by rotation: VideoRotation) -> VideoFrameBuffer {
        if rotation == .none { return buffer }
        let size = rotation.isTransposing ? (buffer.height, buffer.width) : (buffer.width, buffer.height)
        let mode: RotationMode =
            switch rotation {
            case .none: kRotate0
            case .clockwise90: kRotate90
            case .clockwise180: kRotate180
            case .clockwise270: kRotate270
            }
        return VideoFrameBuffer(width: size.0, height: size.1) { target in
            buffer.withPlanes { source in
                _ = I420Rotate(
                    source.y, Int32(source.strideY), source.u, Int32(source.strideU), source.v,
                    Int32(source.strideV), target.y, Int32(target.strideY), target.u, Int32(target.strideU),
                    target.v, Int32(target.strideV), Int32(source.width), Int32(source.height), mode)
            }
        }
    }

    /// A picture from bytes in another format. `chroma` is the second plane of NV12, ignored otherwise: pass
    /// nil when it follows the first.
    ///
    /// Throws when there are too few bytes or the size is out of range.
    package static func makeBuffer(
        format: PixelFormat, width: Int, height: Int, bytes: UnsafeRawBufferPointer, stride: Int? = nil,
        chroma: UnsafeRawBufferPointer? = nil, chromaStride: Int? = nil, pool: VideoFrameBufferPool? = nil
    ) throws(CodecError) -> VideoFrameBuffer {
        guard VideoFrameBuffer.isValid(width: width, height: height) else {
            throw .unusableFrame("its size is \(width)x\(height)")
        }
        let least = format.leastStride(width: width)
        let chromaRow = (width + 1) / 2 * 2
        // Behind a padded luma plane the chroma plane has the same stride.
        let secondStride = chromaStride ?? (chroma == nil ? max(stride ?? 0, chromaRow) : chromaRow)
        let stride = stride ?? least
        // The last row need not be padded.
        guard stride >= least, stride <= 1 << 20, bytes.count >= stride * (height - 1) + least else {
            throw .unusableFrame("\(bytes.count) bytes are too few for \(width)x\(height) in rows of \(stride)")
        }
        guard let first = bytes.bindMemory(to: UInt8.self).baseAddress else {
            throw .unusableFrame("it has no bytes")
        }
        var second: UnsafePointer<UInt8>?
        if format == .nv12 {
            let rest = chroma ?? UnsafeRawBufferPointer(rebasing: bytes.dropFirst(stride * height))
            guard secondStride >= chromaRow, secondStride <= 1 << 20,
                rest.count >= secondStride * ((height + 1) / 2 - 1) + chromaRow
            else { throw .unusableFrame("its chroma plane is too short") }
            second = rest.bindMemory(to: UInt8.self).baseAddress
        }
        let (w, h, s) = (Int32(width), Int32(height), Int32(stride))
        let buffer = VideoFrameBuffer(width: width, height: height, pool: pool)
        let result: Int32 = buffer.withMutablePlanes { t in
            let (sy, su, sv) = (Int32(t.strideY), Int32(t.strideU), Int32(t.strideV))
            // libyuv names packed formats by their little-endian word, the reverse of memory order.
            return switch format {
            case .nv12: NV12ToI420(first, s, second, Int32(secondStride), t.y, sy, t.u, su, t.v, sv, w, h)
            case .yuy2: YUY2ToI420(first, s, t.y, sy, t.u, su, t.v, sv, w, h)
            case .uyvy: UYVYToI420(first, s, t.y, sy, t.u, su, t.v, sv, w, h)
            case .bgra: ARGBToI420(first, s, t.y, sy, t.u, su, t.v, sv, w, h)
            case .rgba: ABGRToI420(first, s, t.y, sy, t.u, su, t.v, sv, w, h)
            case .rgb: RAWToI420(first, s, t.y, sy, t.u, su, t.v, sv, w, h)
            }
        }
        guard result == 0 else { throw .unusableFrame("its colours could not be converted") }
        return buffer
    }

    /// The picture as packed bytes without padding between rows. Planar and 4:2:2 formats are written as they are
    /// defined, NV12 with its chroma plane behind the luma plane.
    package static func bytes(of buffer: VideoFrameBuffer, as format: PixelFormat) -> [UInt8] {
        let stride = format.leastStride(width: buffer.width)
        let chromaStride = (buffer.width + 1) / 2 * 2
        let chromaSize = format == .nv12 ? chromaStride * ((buffer.height + 1) / 2) : 0
        let size = stride * buffer.height + chromaSize
        return [UInt8](unsafeUninitializedCapacity: size) { output, count in
            guard let target = output.baseAddress else { return }
            buffer.withPlanes { p in
                let (w, h, s) = (Int32(p.width), Int32(p.height), Int32(stride))
                let (sy, su, sv) = (Int32(p.strideY), Int32(p.strideU), Int32(p.strideV))
                _ =
                    switch format {
                    case .nv12:
                        I420ToNV12(
                            p.y, sy, p.u, su, p.v, sv, target, s, target + stride * p.height, Int32(chromaStride),
                            w, h)
                    case .yuy2: I420ToYUY2(p.y, sy, p.u, su, p.v, sv, target, s, w, h)
                    case .uyvy: I420ToUYVY(p.y, sy, p.u, su, p.v, sv, target, s, w, h)
                    case .bgra: I420ToARGB(p.y, sy, p.u, su, p.v, sv, target, s, w, h)
                    case .rgba: I420ToABGR(p.y, sy, p.u, su, p.v, sv, target, s, w, h)
                    case .rgb: I420ToRAW(p.y, sy, p.u, su, p.v, sv, target, s, w, h)
                    }
            }
            count = size
        }
    }
}
#endif
