/// Scaling and turning in plain Swift, for builds without libyuv and as the oracle of its tests.
package enum NearestScaling {
    package static func scale(
        _ buffer: VideoFrameBuffer, width: Int, height: Int, pool: VideoFrameBufferPool? = nil
    ) -> VideoFrameBuffer {
        VideoFrameBuffer(width: width, height: height, pool: pool) { target in
            buffer.withPlanes { source in
                map(
                    source.y, source.strideY, source.width, source.height, target.y, target.strideY, target.width,
                    target.height)
                map(
                    source.u, source.strideU, source.chromaWidth, source.chromaHeight, target.u, target.strideU,
                    target.chromaWidth, target.chromaHeight)
                map(
                    source.v, source.strideV, source.chromaWidth, source.chromaHeight, target.v, target.strideV,
                    target.chromaWidth, target.chromaHeight)
            }
        }
    }

    package static func rotate(_ buffer: VideoFrameBuffer, by rotation: VideoRotation) -> VideoFrameBuffer {
        if rotation == .none { return buffer }
        let size = rotation.isTransposing ? (buffer.height, buffer.width) : (buffer.width, buffer.height)
        return VideoFrameBuffer(width: size.0, height: size.1) { target in
            buffer.withPlanes { source in
                turn(source.y, source.strideY, source.width, source.height, target.y, target.strideY, rotation)
                let (w, h) = (source.chromaWidth, source.chromaHeight)
                turn(source.u, source.strideU, w, h, target.u, target.strideU, rotation)
                turn(source.v, source.strideV, w, h, target.v, target.strideV, rotation)
            }
        }
    }

    private static func map(
        _ source: UnsafePointer<UInt8>, _ sourceStride: Int, _ sourceWidth: Int, _ sourceHeight: Int,
        _ target: UnsafeMutablePointer<UInt8>, _ targetStride: Int, _ width: Int, _ height: Int
    ) {
        for row in 0..<height {
            let from = source + (row * sourceHeight / height) * sourceStride
            let to = target + row * targetStride
            for column in 0..<width { to[column] = from[column * sourceWidth / width] }
        }
    }

    private static func turn(
        _ source: UnsafePointer<UInt8>, _ sourceStride: Int, _ width: Int, _ height: Int,
        _ target: UnsafeMutablePointer<UInt8>, _ targetStride: Int, _ rotation: VideoRotation
    ) {
        for row in 0..<height {
            for column in 0..<width {
                let sample = source[row * sourceStride + column]
                switch rotation {
                case .none: target[row * targetStride + column] = sample
                case .clockwise90: target[column * targetStride + (height - 1 - row)] = sample
                case .clockwise180: target[(height - 1 - row) * targetStride + (width - 1 - column)] = sample
                case .clockwise270: target[(width - 1 - column) * targetStride + row] = sample
                }
            }
        }
    }
}
