import Foundation
internal import SoraFrames

/// How far a picture must be turned clockwise to stand upright.
public enum RTCVideoRotation: Int, Sendable {
    case _0 = 0
    case _90 = 90
    case _180 = 180
    case _270 = 270
}

/// The pixels of a frame. Stands in for the type of the WebRTC framework.
public protocol RTCVideoFrameBuffer: AnyObject {
    var width: Int32 { get }
    var height: Int32 { get }
    /// The pixels as three planes; the object itself if it has that form already.
    func toI420() -> RTCI420Buffer
}

/// Memory of one plane of 8-bit samples, zeroed at first.
///
/// `@unchecked Sendable`: the pointer is made once, freed once when nobody holds the plane, and written only by
/// whoever fills the frame before it is sent; from then on it is read-only by the contract of the API.
final class PixelPlane: @unchecked Sendable {
    let pointer: UnsafeMutablePointer<UInt8>
    let count: Int
    /// Bytes from one row to the next.
    let stride: Int

    init(stride: Int, rows: Int) {
        self.stride = stride
        count = stride * rows
        pointer = .allocate(capacity: max(count, 1))
        pointer.initialize(repeating: 0, count: max(count, 1))
    }

    deinit { pointer.deallocate() }
}

/// A picture of three planes: luma, and two of chroma with half the width and height, rounded up.
///
/// The planes are those of the SDK's own frames, so that nothing is copied on the way in and out.
public final class RTCI420Buffer: RTCVideoFrameBuffer, Sendable {
    /// In pixels.
    public let width: Int32
    /// In pixels.
    public let height: Int32
    let storage: VideoFrameBuffer

    /// A picture of zeros. Negative sizes count as 0, and sizes beyond 16,384 as 16,384.
    public init(width: Int32, height: Int32) {
        let limit = Int32(VideoFrameBuffer.maximumDimension)
        self.width = min(max(0, width), limit)
        self.height = min(max(0, height), limit)
        storage = VideoFrameBuffer(width: Int(self.width), height: Int(self.height))
    }

    init(_ storage: VideoFrameBuffer) {
        self.storage = storage
        width = Int32(storage.width)
        height = Int32(storage.height)
    }

    /// The memory belongs to the buffer and lives as long as it does.
    public var dataY: UnsafeMutablePointer<UInt8> { storage.withMutablePlanes { $0.y } }
    /// The plane of the blue-difference chroma.
    public var dataU: UnsafeMutablePointer<UInt8> { storage.withMutablePlanes { $0.u } }
    /// The plane of the red-difference chroma.
    public var dataV: UnsafeMutablePointer<UInt8> { storage.withMutablePlanes { $0.v } }
    /// Bytes from one row of luma to the next.
    public var strideY: Int32 { Int32(storage.strideY) }
    /// Bytes from one row of ``dataU`` to the next.
    public var strideU: Int32 { Int32(storage.strideU) }
    /// Bytes from one row of ``dataV`` to the next.
    public var strideV: Int32 { Int32(storage.strideV) }
    /// Columns of the chroma planes.
    public var chromaWidth: Int32 { (width + 1) / 2 }
    /// Rows of the chroma planes.
    public var chromaHeight: Int32 { (height + 1) / 2 }

    public func toI420() -> RTCI420Buffer { self }
}

/// A picture of two planes: luma, and chroma with both samples side by side.
public final class RTCNV12Buffer: RTCVideoFrameBuffer, Sendable {
    public let width: Int32
    public let height: Int32
    let planeY: PixelPlane
    let planeUV: PixelPlane

    /// Negative sizes count as 0.
    public init(width: Int32, height: Int32) {
        self.width = max(0, width)
        self.height = max(0, height)
        let columns = Int(self.width)
        let rows = Int(self.height)
        planeY = PixelPlane(stride: columns, rows: rows)
        planeUV = PixelPlane(stride: (columns + 1) / 2 * 2, rows: (rows + 1) / 2)
    }

    /// The plane of luma.
    public var dataY: UnsafeMutablePointer<UInt8> { planeY.pointer }
    /// The plane of chroma: blue and red difference in turn.
    public var dataUV: UnsafeMutablePointer<UInt8> { planeUV.pointer }
    public var strideY: Int32 { Int32(planeY.stride) }
    public var strideUV: Int32 { Int32(planeUV.stride) }

    public func toI420() -> RTCI420Buffer {
        let picture = RTCI420Buffer(width: width, height: height)
        for row in 0..<Int(height) {
            (picture.dataY + row * Int(picture.strideY)).update(
                from: dataY + row * planeY.stride, count: Int(width))
        }
        let columns = Int(picture.chromaWidth)
        for row in 0..<Int(picture.chromaHeight) {
            let source = dataUV + row * planeUV.stride
            let u = picture.dataU + row * Int(picture.strideU)
            let v = picture.dataV + row * Int(picture.strideV)
            for column in 0..<columns {
                u[column] = source[2 * column]
                v[column] = source[2 * column + 1]
            }
        }
        return picture
    }
}

/// A picture in one of the common pixel formats. Stands in for the type of Core Video.
public final class CVPixelBuffer: Sendable {
    enum Storage: Sendable {
        case i420(RTCI420Buffer)
        case nv12(RTCNV12Buffer)
        /// Blue, green, red, alpha.
        case bgra(PixelPlane, width: Int32, height: Int32)
    }
    let storage: Storage

    public init(i420 buffer: RTCI420Buffer) { storage = .i420(buffer) }
    public init(nv12 buffer: RTCNV12Buffer) { storage = .nv12(buffer) }

    /// A black picture of 32-bit pixels; ``bgraData`` gives access to them.
    public init(bgraWidth width: Int32, height: Int32) {
        let columns = max(0, width)
        let rows = max(0, height)
        storage = .bgra(PixelPlane(stride: Int(columns) * 4, rows: Int(rows)), width: columns, height: rows)
    }

    public var width: Int32 {
        switch storage {
        case .i420(let buffer): buffer.width
        case .nv12(let buffer): buffer.width
        case .bgra(_, let width, _): width
        }
    }
    public var height: Int32 {
        switch storage {
        case .i420(let buffer): buffer.height
        case .nv12(let buffer): buffer.height
        case .bgra(_, _, let height): height
        }
    }

    /// Pixels and bytes per row of a picture made by ``init(bgraWidth:height:)``; nil for others.
    public var bgraData: (pointer: UnsafeMutablePointer<UInt8>, stride: Int)? {
        guard case .bgra(let plane, _, _) = storage else { return nil }
        return (plane.pointer, plane.stride)
    }
}

/// A frame buffer around a `CVPixelBuffer`. Stands in for the type of the WebRTC framework.
public final class RTCCVPixelBuffer: RTCVideoFrameBuffer, Sendable {
    public let pixelBuffer: CVPixelBuffer

    public init(pixelBuffer: CVPixelBuffer) { self.pixelBuffer = pixelBuffer }

    public var width: Int32 { pixelBuffer.width }
    public var height: Int32 { pixelBuffer.height }

    public func toI420() -> RTCI420Buffer {
        switch pixelBuffer.storage {
        case .i420(let buffer): buffer
        case .nv12(let buffer): buffer.toI420()
        case .bgra(let plane, let width, let height): BGRAConversion.toI420(plane, width: width, height: height)
        }
    }
}

/// From 32-bit pixels to three planes, ITU-R BT.601 limited range, in integers.
enum BGRAConversion {
    static func toI420(_ source: PixelPlane, width: Int32, height: Int32) -> RTCI420Buffer {
        let picture = RTCI420Buffer(width: width, height: height)
        let columns = Int(width)
        let rows = Int(height)
        for row in 0..<rows {
            let line = source.pointer + row * source.stride
            let luma = picture.dataY + row * Int(picture.strideY)
            for column in 0..<columns {
                let (b, g, r) = pixel(line, column)
                luma[column] = UInt8(clamping: (66 * r + 129 * g + 25 * b + 128) >> 8 + 16)
            }
        }
        // Chroma is taken from the upper left pixel of each square of four.
        for row in 0..<Int(picture.chromaHeight) {
            let line = source.pointer + 2 * row * source.stride
            let u = picture.dataU + row * Int(picture.strideU)
            let v = picture.dataV + row * Int(picture.strideV)
            for column in 0..<Int(picture.chromaWidth) {
                let (b, g, r) = pixel(line, 2 * column)
                u[column] = UInt8(clamping: (-38 * r - 74 * g + 112 * b + 128) >> 8 + 128)
                v[column] = UInt8(clamping: (112 * r - 94 * g - 18 * b + 128) >> 8 + 128)
            }
        }
        return picture
    }

    private static func pixel(_ line: UnsafeMutablePointer<UInt8>, _ column: Int) -> (Int, Int, Int) {
        (Int(line[4 * column]), Int(line[4 * column + 1]), Int(line[4 * column + 2]))
    }
}

/// One picture with its time. Stands in for the type of the WebRTC framework.
///
/// `@unchecked Sendable`: immutable, and its buffer is not written to once the frame exists, by the contract of
/// `MediaStream.send(videoFrame:)`.
public final class RTCVideoFrame: @unchecked Sendable {
    /// The pixels. They must not be changed once the frame exists.
    public let buffer: any RTCVideoFrameBuffer
    /// How far the picture must be turned to stand upright.
    public let rotation: RTCVideoRotation
    /// Time of capture in nanoseconds, on a clock of the sender's choice.
    public let timeStampNs: Int64

    /// A frame. Its buffer belongs to it from now on.
    public init(buffer: any RTCVideoFrameBuffer, rotation: RTCVideoRotation, timeStampNs: Int64) {
        self.buffer = buffer
        self.rotation = rotation
        self.timeStampNs = timeStampNs
    }

    public var width: Int32 { buffer.width }
    public var height: Int32 { buffer.height }
}

/// Names whoever made a frame. Stands in for the type of the WebRTC framework.
open class RTCVideoCapturer {
    public init() {}
}
