import SoraLocking

/// Where the three planes of an 8-bit I420 picture are, for reading.
///
/// Valid only inside the closure that received it. Rows of a plane lie `stride` bytes apart, which may be more
/// than the plane's width (pitfall DEV4); chroma planes of odd pictures are rounded up.
package struct I420Planes {
    package var width: Int
    package var height: Int
    package var y: UnsafePointer<UInt8>
    package var u: UnsafePointer<UInt8>
    package var v: UnsafePointer<UInt8>
    package var strideY: Int
    package var strideU: Int
    package var strideV: Int

    /// Width of the chroma planes in bytes.
    package var chromaWidth: Int { (width + 1) / 2 }
    /// Number of rows in the chroma planes.
    package var chromaHeight: Int { (height + 1) / 2 }

    package init(
        width: Int, height: Int, y: UnsafePointer<UInt8>, strideY: Int, u: UnsafePointer<UInt8>, strideU: Int,
        v: UnsafePointer<UInt8>, strideV: Int
    ) {
        self.width = width
        self.height = height
        self.y = y
        self.u = u
        self.v = v
        self.strideY = strideY
        self.strideU = strideU
        self.strideV = strideV
    }
}

/// The same as `I420Planes`, for writing.
package struct MutableI420Planes {
    package var width: Int
    package var height: Int
    package var y: UnsafeMutablePointer<UInt8>
    package var u: UnsafeMutablePointer<UInt8>
    package var v: UnsafeMutablePointer<UInt8>
    package var strideY: Int
    package var strideU: Int
    package var strideV: Int

    package var chromaWidth: Int { (width + 1) / 2 }
    package var chromaHeight: Int { (height + 1) / 2 }

    package var readable: I420Planes {
        I420Planes(
            width: width, height: height, y: UnsafePointer(y), strideY: strideY, u: UnsafePointer(u),
            strideU: strideU, v: UnsafePointer(v), strideV: strideV)
    }

    /// Copies a picture of the same size, row by row as strides may differ.
    package func copy(from source: I420Planes) {
        let rows = min(height, source.height)
        let chromaRows = min(chromaHeight, source.chromaHeight)
        copyRows(y, strideY, source.y, source.strideY, bytes: min(width, source.width), rows: rows)
        let bytes = min(chromaWidth, source.chromaWidth)
        copyRows(u, strideU, source.u, source.strideU, bytes: bytes, rows: chromaRows)
        copyRows(v, strideV, source.v, source.strideV, bytes: bytes, rows: chromaRows)
    }

    /// Fills the picture with one colour (Y, Cb, Cr in video range).
    package func fill(y luma: UInt8, u cb: UInt8, v cr: UInt8) {
        for row in 0..<height { (y + row * strideY).update(repeating: luma, count: width) }
        for row in 0..<chromaHeight {
            (u + row * strideU).update(repeating: cb, count: chromaWidth)
            (v + row * strideV).update(repeating: cr, count: chromaWidth)
        }
    }
}

private func copyRows(
    _ target: UnsafeMutablePointer<UInt8>, _ targetStride: Int, _ source: UnsafePointer<UInt8>, _ sourceStride: Int,
    bytes: Int, rows: Int
) {
    guard bytes > 0, rows > 0 else { return }
    if targetStride == sourceStride, targetStride == bytes {
        target.update(from: source, count: bytes * rows)
        return
    }
    for row in 0..<rows { (target + row * targetStride).update(from: source + row * sourceStride, count: bytes) }
}

/// One 8-bit I420 picture in reference-counted memory.
///
/// Invariant: after the creator has handed the buffer on, nobody writes to it. Whoever wants another picture
/// makes another buffer. Sizes are 1...16,384 in each direction.
package final class VideoFrameBuffer: @unchecked Sendable {
    // Sendable is proven by immutability: all properties are `let`, and the memory they point to is written only
    // before the buffer is shared (initializer's closure, or `withMutablePlanes` by its sole owner).

    package static let maximumDimension = 16_384

    package let width: Int
    package let height: Int
    package let strideY: Int
    package let strideU: Int
    package let strideV: Int
    private let memory: UnsafeMutablePointer<UInt8>
    private let capacity: Int
    private let pool: VideoFrameBufferPool?

    /// A picture of the given size, black unless `write` draws something else.
    ///
    /// Width and height are clamped to 1...16,384; callers that receive sizes from outside check them first
    /// (`isValid(width:height:)`).
    package init(width: Int, height: Int, pool: VideoFrameBufferPool? = nil) {
        self.width = min(max(width, 1), Self.maximumDimension)
        self.height = min(max(height, 1), Self.maximumDimension)
        // Rows start at multiples of 32 bytes, for SIMD.
        strideY = (self.width + 31) & ~31
        strideU = ((self.width + 1) / 2 + 31) & ~31
        strideV = strideU
        capacity = strideY * self.height + (strideU + strideV) * ((self.height + 1) / 2)
        self.pool = pool
        memory = pool?.take(capacity) ?? VideoFrameBufferPool.allocate(capacity)
    }

    /// A picture drawn by `write`, which must set every visible sample.
    package convenience init(
        width: Int, height: Int, pool: VideoFrameBufferPool? = nil, write: (MutableI420Planes) -> Void
    ) {
        self.init(width: width, height: height, pool: pool)
        withMutablePlanes(write)
    }

    /// A copy of planes that belong to someone else.
    package convenience init(copying source: I420Planes, pool: VideoFrameBufferPool? = nil) {
        self.init(width: source.width, height: source.height, pool: pool) { $0.copy(from: source) }
    }

    /// A black picture.
    package static func black(width: Int, height: Int, pool: VideoFrameBufferPool? = nil) -> VideoFrameBuffer {
        VideoFrameBuffer(width: width, height: height, pool: pool) { $0.fill(y: 16, u: 128, v: 128) }
    }

    package static func isValid(width: Int, height: Int) -> Bool {
        (1...maximumDimension).contains(width) && (1...maximumDimension).contains(height)
    }

    deinit {
        if let pool { pool.give(memory, capacity) } else { VideoFrameBufferPool.free(memory) }
    }

    /// Lends the planes for reading. The pointers must not leave the closure.
    package func withPlanes<R>(_ body: (I420Planes) throws -> R) rethrows -> R {
        try body(mutablePlanes.readable)
    }

    /// Lends the planes for writing. Only for the code that made the buffer, before anyone else has it.
    package func withMutablePlanes<R>(_ body: (MutableI420Planes) throws -> R) rethrows -> R {
        try body(mutablePlanes)
    }

    private var mutablePlanes: MutableI420Planes {
        let u = memory + strideY * height
        return MutableI420Planes(
            width: width, height: height, y: memory, u: u, v: u + strideU * ((height + 1) / 2), strideY: strideY,
            strideU: strideU, strideV: strideV)
    }
}

/// Reuses the memory of pictures: allocating and faulting in a megabyte per frame costs more than scaling it.
///
/// Thread-safe. Keeps blocks of the latest size only, at most `capacity` of them, so a change of resolution gives
/// the old memory back.
package final class VideoFrameBufferPool: Sendable {
    private struct Blocks: ~Copyable {
        var size = 0
        // Addresses, because pointers are not Sendable; each is owned by exactly one holder.
        var free: [UInt] = []
    }
    private let blocks = Locked(Blocks())
    private let capacity: Int

    package init(capacity: Int = 8) { self.capacity = capacity }

    deinit {
        let left = blocks.withLock { $0.free }
        for address in left {
            if let pointer = UnsafeMutablePointer<UInt8>(bitPattern: address) { Self.free(pointer) }
        }
    }

    /// Number of blocks that wait for reuse.
    package var idleCount: Int { blocks.withLock { $0.free.count } }

    fileprivate func take(_ size: Int) -> UnsafeMutablePointer<UInt8> {
        let reused: UInt? = blocks.withLock { $0.size == size ? $0.free.popLast() : nil }
        if let reused, let pointer = UnsafeMutablePointer<UInt8>(bitPattern: reused) { return pointer }
        return Self.allocate(size)
    }

    fileprivate func give(_ pointer: UnsafeMutablePointer<UInt8>, _ size: Int) {
        let address = UInt(bitPattern: pointer)
        let surplus: [UInt] = blocks.withLock { blocks in
            var surplus: [UInt] = []
            if blocks.size != size {
                surplus = blocks.free
                blocks.free = []
                blocks.size = size
            }
            if blocks.free.count < capacity { blocks.free.append(address) } else { surplus.append(address) }
            return surplus
        }
        for address in surplus {
            if let pointer = UnsafeMutablePointer<UInt8>(bitPattern: address) { Self.free(pointer) }
        }
    }

    /// Zeroed, so that rows' padding and undrawn pictures never show another stream's content.
    fileprivate static func allocate(_ size: Int) -> UnsafeMutablePointer<UInt8> {
        let raw = UnsafeMutableRawPointer.allocate(byteCount: size, alignment: 64)
        return raw.initializeMemory(as: UInt8.self, repeating: 0, count: size)
    }
    fileprivate static func free(_ pointer: UnsafeMutablePointer<UInt8>) {
        UnsafeMutableRawPointer(pointer).deallocate()
    }
}
