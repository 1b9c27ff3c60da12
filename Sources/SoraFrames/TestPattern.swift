/// A moving picture with the frame's number burnt in, drawn without any library.
///
/// Frame n of a pattern is always the same, so a receiver can tell what it got, and whether pictures are missing,
/// repeated or out of order. During the first tenth of each second a white square shows at the lower right, together
/// with the beep of `TestTone`: their distance at a receiver is the lip-sync error.
package struct TestPattern: Sendable {
    package let width: Int
    package let height: Int
    package let framerate: Double

    package init(width: Int, height: Int, framerate: Double = 30) {
        self.width = min(max(width, 16), VideoFrameBuffer.maximumDimension)
        self.height = min(max(height, 16), VideoFrameBuffer.maximumDimension)
        self.framerate = framerate.isFinite ? min(max(framerate, 1), 120) : 30
    }

    /// Time of a frame from the start, in nanoseconds.
    package func time(of number: UInt32) -> Int64 { Int64(Double(number) * 1e9 / framerate) }

    /// Whether frame `number` has the flash.
    package func hasFlash(_ number: UInt32) -> Bool { time(of: number) % 1_000_000_000 < 100_000_000 }

    package func draw(_ number: UInt32, pool: VideoFrameBufferPool? = nil) -> VideoFrameBuffer {
        VideoFrameBuffer(width: width, height: height, pool: pool) { planes in
            drawBackground(planes)
            drawBox(planes, number)
            if hasFlash(number) {
                let side = max(2, min(width, height) / 6)
                fill(planes, x: width - side, y: height - side, width: side, height: side, (235, 128, 128))
            }
            FrameCounter.draw(number, into: planes)
        }
    }

    /// Eight colour bars: Y, Cb, Cr in video range.
    private static let bars: [(UInt8, UInt8, UInt8)] = [
        (180, 128, 128), (162, 44, 142), (131, 156, 44), (112, 72, 58), (84, 184, 198), (65, 100, 212),
        (35, 212, 114), (60, 128, 128),
    ]

    private func drawBackground(_ planes: MutableI420Planes) {
        for (index, bar) in Self.bars.enumerated() {
            let left = width * index / Self.bars.count & ~1
            let right = index == Self.bars.count - 1 ? width : width * (index + 1) / Self.bars.count & ~1
            fill(planes, x: left, y: 0, width: right - left, height: height, bar)
        }
    }

    /// A box that runs to and fro, once across in two seconds, with a stripe that tells its direction.
    private func drawBox(_ planes: MutableI420Planes, _ number: UInt32) {
        let size = max(2, min(width, height) / 4 & ~1)
        let period = max(1, Int(framerate * 4))
        let step = Int(number) % period
        let half = max(1, period / 2)
        let progress = step < half ? step : period - step
        let x = (width - size) * progress / half & ~1
        let y = (height / 2 + (height / 2 - size) * progress / half / 2) & ~1
        fill(planes, x: x, y: y, width: size, height: size, (210, 90, 180))
        fill(planes, x: x + size / 4, y: y + size / 4, width: size / 2, height: size / 2, (40, 160, 100))
    }

    /// Cuts what lies outside the picture. Positions should be even, for chroma.
    private func fill(
        _ planes: MutableI420Planes, x: Int, y: Int, width: Int, height: Int, _ colour: (UInt8, UInt8, UInt8)
    ) {
        let right = min(x + width, planes.width)
        let bottom = min(y + height, planes.height)
        let left = max(x, 0)
        let top = max(y, 0)
        guard right > left, bottom > top else { return }
        for row in top..<bottom {
            (planes.y + row * planes.strideY + left).update(repeating: colour.0, count: right - left)
        }
        let chroma = (left / 2)..<((right + 1) / 2)
        for row in (top / 2)..<((bottom + 1) / 2) {
            (planes.u + row * planes.strideU + chroma.lowerBound).update(repeating: colour.1, count: chroma.count)
            (planes.v + row * planes.strideV + chroma.lowerBound).update(repeating: colour.2, count: chroma.count)
        }
    }
}

/// A number in a picture that a machine can read after coding, scaling and cropping of nothing.
///
/// Two rows of twenty cells at the top of the picture, black for 0 and white for 1: 32 bits of the number in Gray
/// code (so that few cells change from frame to frame, which keeps them sharp at low rates) and 8 bits of CRC.
package enum FrameCounter {
    private static let columns = 20
    private static let rows = 2
    /// Each row is this part of the picture's height.
    private static let rowPart = 12

    package static func draw(_ number: UInt32, into planes: MutableI420Planes) {
        let bits = code(number)
        let rowHeight = max(2, planes.height / rowPart)
        for row in 0..<(rowHeight * rows) where row < planes.height {
            let line = planes.y + row * planes.strideY
            for column in 0..<columns {
                let left = planes.width * column / columns
                let right = planes.width * (column + 1) / columns
                let isSet = bits >> UInt64(row / rowHeight * columns + column) & 1 == 1
                (line + left).update(repeating: isSet ? 235 : 16, count: right - left)
            }
        }
        for row in 0..<((rowHeight * rows + 1) / 2) where row < planes.chromaHeight {
            (planes.u + row * planes.strideU).update(repeating: 128, count: planes.chromaWidth)
            (planes.v + row * planes.strideV).update(repeating: 128, count: planes.chromaWidth)
        }
    }

    /// The number in a picture; nil if there is none, or if it is damaged.
    package static func read(from frame: VideoFrame) -> UInt32? { read(from: frame.buffer) }

    package static func read(from buffer: VideoFrameBuffer) -> UInt32? {
        guard buffer.width >= columns, buffer.height >= 2 * rows else { return nil }
        var bits: UInt64 = 0
        buffer.withPlanes { planes in
            let rowHeight = max(2, planes.height / rowPart)
            for row in 0..<rows {
                for column in 0..<columns {
                    let left = planes.width * column / columns
                    let right = planes.width * (column + 1) / columns
                    // Only the inner half: edges are blurred by coding and scaling.
                    let inset = (right - left) / 4
                    let top = row * rowHeight + rowHeight / 4
                    let bottom = max(top + 1, (row + 1) * rowHeight - rowHeight / 4)
                    var sum = 0
                    var count = 0
                    for y in top..<min(bottom, planes.height) {
                        for x in (left + inset)..<max(left + inset + 1, right - inset) where x < planes.width {
                            sum += Int(planes.y[y * planes.strideY + x])
                            count += 1
                        }
                    }
                    if count > 0, sum / count >= 126 { bits |= 1 << UInt64(row * columns + column) }
                }
            }
        }
        let gray = UInt32(truncatingIfNeeded: bits)
        guard UInt8(truncatingIfNeeded: bits >> 32) == checksum(gray) else { return nil }
        var number = gray
        for shift: UInt32 in [1, 2, 4, 8, 16] { number ^= number >> shift }
        return number
    }

    private static func code(_ number: UInt32) -> UInt64 {
        let gray = number ^ number >> 1
        return UInt64(gray) | UInt64(checksum(gray)) << 32
    }

    /// CRC-8 with polynomial x^8+x^2+x+1, starting at 0xA5 so that a black picture is no number.
    private static func checksum(_ value: UInt32) -> UInt8 {
        var crc: UInt8 = 0xA5
        for byte in 0..<4 {
            crc ^= UInt8(truncatingIfNeeded: value >> UInt32(byte * 8))
            for _ in 0..<8 { crc = crc & 0x80 != 0 ? crc << 1 ^ 0x07 : crc << 1 }
        }
        return crc
    }
}

/// A tone of 440 Hz; in the first tenth of each second an octave higher and louder.
package struct TestTone: Sendable {
    package let sampleRate: Int
    package let channels: Int
    private static let samplesPerCycle = 1024
    // One cycle by recurrence in integers of 2^-30 would drift; a table made once by Taylor series is exact enough.
    private let table: [Int16]

    package init(sampleRate: Int = 48_000, channels: Int = 1) {
        self.sampleRate = max(sampleRate, 8_000)
        self.channels = min(max(channels, 1), 8)
        table = (0..<Self.samplesPerCycle).map { index in
            let x = (Double(index) / Double(Self.samplesPerCycle) * 2 - 1) * Double.pi
            var term = x
            var sum = x
            for n in 1..<12 {
                term *= -x * x / Double((2 * n) * (2 * n + 1))
                sum += term
            }
            return Int16(clamping: Int(-sum * 32_000))
        }
    }

    /// Samples from position `start` on, in samples per channel from the beginning.
    package func frame(from start: Int, count: Int, timestamp: Int64) -> AudioFrame {
        var samples: [Int16] = []
        samples.reserveCapacity(count * channels)
        for position in start..<(start + max(count, 0)) {
            let inSecond = position % sampleRate
            let isBeep = inSecond < sampleRate / 10
            // Whole cycles fit into a second, so there is no click at its border.
            let frequency = isBeep ? 880 : 440
            let index = inSecond * frequency * Self.samplesPerCycle / sampleRate % Self.samplesPerCycle
            let sample = Int16(Int(table[index]) * (isBeep ? 8 : 2) / 16)
            for _ in 0..<channels { samples.append(sample) }
        }
        return AudioFrame(samples: samples, sampleRate: sampleRate, channels: channels, timestamp: timestamp)
    }
}
