#if Media
import SoraCodecs
import SoraFrames
import Testing

@Suite struct PixelConversionTests {
    @Test(arguments: PixelFormat.allCases, [(64, 48), (33, 17), (1, 1), (2, 2)])
    func roundTripKeepsThePicture(format: PixelFormat, size: (Int, Int)) throws {
        let picture = VideoFrameBuffer(width: size.0, height: size.1) { planes in
            planes.fill(y: 0, u: 100, v: 150)
            for row in 0..<size.1 {
                for x in 0..<size.0 { planes.y[row * planes.strideY + x] = UInt8(60 + (row + x) % 120) }
            }
        }
        let bytes = PixelConversion.bytes(of: picture, as: format)
        let again = try bytes.withUnsafeBytes {
            try PixelConversion.makeBuffer(format: format, width: size.0, height: size.1, bytes: $0)
        }
        #expect(psnr(picture, again) > 38)
    }

    @Test(arguments: PixelFormat.allCases)
    func rowsMayBePadded(format: PixelFormat) throws {  // DEV4
        let picture = TestPattern(width: 65, height: 41).draw(3)
        let tight = PixelConversion.bytes(of: picture, as: format)
        let least = format.leastStride(width: 65)
        let padded = least + 32
        func pad(_ bytes: ArraySlice<UInt8>, row: Int) -> [UInt8] {
            var output: [UInt8] = []
            var index = bytes.startIndex
            while index < bytes.endIndex {
                output += bytes[index..<(index + row)]
                output += [UInt8](repeating: 0xEE, count: padded - row)
                index += row
            }
            return output
        }
        var bytes = pad(tight[..<(least * 41)], row: least)
        if format == .nv12 { bytes += pad(tight[(least * 41)...], row: 66) }
        let a = try tight.withUnsafeBytes {
            try PixelConversion.makeBuffer(
                format: format, width: 65, height: 41, bytes: UnsafeRawBufferPointer(rebasing: $0[..<(least * 41)]),
                chroma: format == .nv12 ? UnsafeRawBufferPointer(rebasing: $0[(least * 41)...]) : nil)
        }
        let b = try bytes.withUnsafeBytes {
            try PixelConversion.makeBuffer(format: format, width: 65, height: 41, bytes: $0, stride: padded)
        }
        #expect(psnr(a, b) == 100)
    }

    @Test(arguments: PixelFormat.allCases)
    func tooFewBytesAreRefused(format: PixelFormat) {
        let bytes = [UInt8](repeating: 0, count: 100)
        bytes.withUnsafeBytes { raw in
            for size in [(64, 64), (0, 0), (-1, 5), (100_000, 1), (Int.max, Int.max)] {
                #expect(throws: CodecError.self) {
                    try PixelConversion.makeBuffer(format: format, width: size.0, height: size.1, bytes: raw)
                }
            }
        }
    }

    @Test func coloursAreRight() {
        let red = VideoFrameBuffer(width: 16, height: 16) { $0.fill(y: 81, u: 90, v: 240) }
        let rgb = PixelConversion.bytes(of: red, as: .rgb)
        #expect(rgb[0] > 245 && rgb[1] < 10 && rgb[2] < 10)
        let bgra = PixelConversion.bytes(of: red, as: .bgra)
        #expect(bgra[0] < 10 && bgra[2] > 245 && bgra[3] == 255)
    }

    @Test(arguments: [(320, 180), (100, 100), (1280, 720), (1, 1), (641, 359)])
    func scalesToAnySize(width: Int, height: Int) {
        let picture = TestPattern(width: 640, height: 360).draw(77)
        let scaled = PixelConversion.scale(picture, width: width, height: height)
        #expect(scaled.width == width && scaled.height == height)
        if width >= 100 { #expect(FrameCounter.read(from: scaled) == 77) }
    }

    @Test(arguments: VideoRotation.allCases)
    func turnsLikeThePlainImplementation(rotation: VideoRotation) {
        let picture = TestPattern(width: 66, height: 42).draw(9)
        #expect(
            psnr(PixelConversion.rotate(picture, by: rotation), NearestScaling.rotate(picture, by: rotation)) == 100)
    }
}
#endif
