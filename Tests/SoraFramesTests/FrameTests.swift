import SoraFrames
import Testing

@Suite struct FrameTests {
    // DEV4
    @Test(arguments: [(1, 1), (2, 2), (641, 359), (7, 5), (640, 480)])
    func copiesByStrideAndRoundsChromaUp(width: Int, height: Int) {
        let stride = width + 32
        let chromaWidth = (width + 1) / 2
        let chromaHeight = (height + 1) / 2
        let y = (0..<(stride * height)).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        let u = (0..<((chromaWidth + 3) * chromaHeight)).map { UInt8(truncatingIfNeeded: $0 &* 5) }
        let v = (0..<((chromaWidth + 9) * chromaHeight)).map { UInt8(truncatingIfNeeded: $0 &* 3) }
        let buffer = y.withUnsafeBufferPointer { py in
            u.withUnsafeBufferPointer { pu in
                v.withUnsafeBufferPointer { pv in
                    VideoFrameBuffer(
                        copying: I420Planes(
                            width: width, height: height, y: py.baseAddress!, strideY: stride, u: pu.baseAddress!,
                            strideU: chromaWidth + 3, v: pv.baseAddress!, strideV: chromaWidth + 9))
                }
            }
        }
        buffer.withPlanes { planes in
            #expect(planes.chromaWidth == chromaWidth && planes.chromaHeight == chromaHeight)
            var wrong = 0
            for row in 0..<height {
                for x in 0..<width where planes.y[row * planes.strideY + x] != y[row * stride + x] { wrong += 1 }
            }
            for row in 0..<chromaHeight {
                for x in 0..<chromaWidth {
                    if planes.u[row * planes.strideU + x] != u[row * (chromaWidth + 3) + x] { wrong += 1 }
                    if planes.v[row * planes.strideV + x] != v[row * (chromaWidth + 9) + x] { wrong += 1 }
                }
            }
            #expect(wrong == 0)
        }
    }

    @Test func poolReusesMemoryAndGivesOldSizesBack() {
        let pool = VideoFrameBufferPool(capacity: 2)
        var first: UInt = 0
        do {
            let buffer = VideoFrameBuffer(width: 64, height: 64, pool: pool)
            first = buffer.withPlanes { UInt(bitPattern: $0.y) }
        }
        #expect(pool.idleCount == 1)
        do {
            let again = VideoFrameBuffer(width: 64, height: 64, pool: pool)
            #expect(again.withPlanes { UInt(bitPattern: $0.y) } == first)
        }
        let many = (0..<5).map { _ in VideoFrameBuffer(width: 64, height: 64, pool: pool) }
        #expect(many.count == 5)
        _ = consume many
        #expect(pool.idleCount <= 2)
        do { _ = VideoFrameBuffer(width: 32, height: 32, pool: pool) }
        #expect(pool.idleCount == 1)
    }

    @Test func codecNamesInAnyCase() {  // CLI2
        #expect(VideoCodecKind(name: "h264") == .h264)
        #expect(VideoCodecKind(name: "Av1") == .av1)
        #expect(VideoCodecKind(name: "vp10") == nil)
        #expect(AudioCodecKind(name: "opus") == .opus)
    }

    @Test func settingsAreClamped() {  // COD13
        let wild = VideoEncoderSettings(
            codec: .vp8, width: 0, height: 99_999, bitrate: 1_000, framerate: .infinity
        ).clamped
        #expect(wild.width == 1 && wild.height == 16_383 && wild.bitrate == 10_000 && wild.framerate == 30)
    }

    @Test(arguments: VideoRotation.allCases)
    func fourTurnsOfNinetyDegreesAreOneOfEach(rotation: VideoRotation) {
        let picture = TestPattern(width: 62, height: 34).draw(5)
        let direct = NearestScaling.rotate(picture, by: rotation)
        var stepwise = picture
        for _ in 0..<(rotation.rawValue / 90) { stepwise = NearestScaling.rotate(stepwise, by: .clockwise90) }
        #expect(difference(direct, stepwise) == 0)
    }
}

@Suite struct TestPatternTests {
    @Test(arguments: [(160, 90), (320, 180), (640, 360), (641, 359), (1280, 720)])
    func counterReadsBack(width: Int, height: Int) {
        let pattern = TestPattern(width: width, height: height)
        for number: UInt32 in [0, 1, 2, 29, 30, 255, 256, 65_535, 123_456_789, .max] {
            #expect(FrameCounter.read(from: pattern.draw(number)) == number)
        }
    }

    @Test func counterSurvivesScaling() {
        let picture = TestPattern(width: 640, height: 360).draw(4711)
        #expect(FrameCounter.read(from: NearestScaling.scale(picture, width: 333, height: 187)) == 4711)
    }

    @Test func picturesWithoutCounterHaveNone() {
        #expect(FrameCounter.read(from: .black(width: 320, height: 240)) == nil)
        #expect(FrameCounter.read(from: .black(width: 1, height: 1)) == nil)
        let white = VideoFrameBuffer(width: 320, height: 240) { $0.fill(y: 235, u: 128, v: 128) }
        #expect(FrameCounter.read(from: white) == nil)
    }

    @Test func picturesMove() {
        let pattern = TestPattern(width: 320, height: 180)
        #expect(difference(pattern.draw(10), pattern.draw(11)) > 0)
        #expect(pattern.hasFlash(0) && pattern.hasFlash(30) && !pattern.hasFlash(15))
    }

    @Test func toneHasItsFrequencyAndBeep() {
        let tone = TestTone()
        let second = tone.frame(from: 0, count: 48_000, timestamp: 0)
        func crossings(_ range: Range<Int>) -> Int {
            var count = 0
            for i in range.dropFirst() where second.samples[i - 1] < 0 && second.samples[i] >= 0 { count += 1 }
            return count
        }
        #expect(abs(crossings(4_800..<48_000) - 396) <= 1)
        #expect(abs(crossings(0..<4_800) - 88) <= 1)
        let beep = AudioFrame(
            samples: Array(second.samples[0..<4_800]), sampleRate: 48_000, channels: 1, timestamp: 0)
        #expect(beep.level > 0.3 && beep.level < 0.4)
        #expect(tone.frame(from: 480, count: 480, timestamp: 0).samples == Array(second.samples[480..<960]))
    }
}

@Suite struct AudioConversionTests {
    @Test func packerKeepsTimeThroughOddPieces() {
        var packer = AudioPacker(samplesPerPacket: 960, sampleRate: 48_000, channels: 1)
        let tone = TestTone()
        var position = 0
        var packets: [AudioFrame] = []
        for size in [100, 441, 1_000, 960, 3, 2_000, 17, 479] {
            packer.append(
                tone.frame(from: position, count: size, timestamp: Int64(position) * 1_000_000_000 / 48_000))
            position += size
            while let packet = packer.next() { packets.append(packet) }
        }
        #expect(packets.count == 5)
        #expect(packets.map(\.timestamp) == (0..<5).map { Int64($0) * 20_000_000 })
        #expect(packets.flatMap(\.samples) == tone.frame(from: 0, count: 4_800, timestamp: 0).samples)
    }

    @Test func packerStartsAnewAfterAPause() {  // COD10: a gap of 2 s
        var packer = AudioPacker(samplesPerPacket: 480, sampleRate: 48_000, channels: 1)
        packer.append(.silence(samplesPerChannel: 500, timestamp: 0))
        #expect(packer.next()?.timestamp == 0)
        packer.append(.silence(samplesPerChannel: 480, timestamp: 2_000_000_000))
        #expect(packer.next()?.timestamp == 2_000_000_000)
        #expect(packer.next() == nil)
    }

    @Test(arguments: [8_000, 16_000, 44_100, 32_000, 96_000])
    func resamplingKeepsLengthAndPitch(rate: Int) {
        var converter = AudioConverter(sampleRate: 48_000, channels: 1)
        let tone = TestTone(sampleRate: rate)
        var output: [Int16] = []
        for piece in 0..<100 {
            let frame = tone.frame(from: piece * rate / 100, count: rate / 100, timestamp: Int64(piece) * 10_000_000)
            output += converter.convert(frame).samples
        }
        #expect(abs(output.count - 48_000) <= 480)
        var crossings = 0
        for i in 9_600..<43_200 where output[i - 1] < 0 && output[i] >= 0 { crossings += 1 }
        #expect(abs(crossings - 308) <= 2)
    }

    @Test func mixesBetweenMonoAndStereo() {
        var toMono = AudioConverter(sampleRate: 48_000, channels: 1)
        let stereo = AudioFrame(
            samples: [100, 300, -100, -300, 32_767, 32_767], sampleRate: 48_000, channels: 2,
            timestamp: 5)
        #expect(toMono.convert(stereo).samples == [200, -200, 32_767])
        var toStereo = AudioConverter(sampleRate: 48_000, channels: 2)
        let mono = AudioFrame(samples: [1, 2], sampleRate: 48_000, channels: 1, timestamp: 5)
        #expect(toStereo.convert(mono).samples == [1, 1, 2, 2])
    }
}

@Suite struct VideoLayoutTests {
    typealias R = VideoLayout.Rectangle

    @Test func fillStretches() {
        let layout = VideoLayout.make(mode: .scaleToFill, videoSize: (640, 360), viewSize: (100, 200))
        #expect(layout.source == R(x: 0, y: 0, width: 640, height: 360))
        #expect(layout.destination == R(x: 0, y: 0, width: 100, height: 200))
    }

    @Test func fitAddsBars() {
        let wide = VideoLayout.make(mode: .scaleAspectFit, videoSize: (640, 360), viewSize: (320, 320))
        #expect(wide.destination == R(x: 0, y: 70, width: 320, height: 180))
        let tall = VideoLayout.make(
            mode: .scaleAspectFit, videoSize: (640, 360), viewSize: (320, 320), rotation: .clockwise90)
        #expect(tall.destination == R(x: 70, y: 0, width: 180, height: 320))
        #expect(tall.source == R(x: 0, y: 0, width: 640, height: 360))
    }

    @Test func fillAspectCutsEvenly() {
        let square = VideoLayout.make(mode: .scaleAspectFill, videoSize: (640, 360), viewSize: (200, 200))
        #expect(square.source == R(x: 140, y: 0, width: 360, height: 360))
        #expect(square.destination == R(x: 0, y: 0, width: 200, height: 200))
        let turned = VideoLayout.make(
            mode: .scaleAspectFill, videoSize: (640, 360), viewSize: (360, 320), rotation: .clockwise270)
        #expect(turned.source == R(x: 160, y: 0, width: 320, height: 360))
    }

    @Test(arguments: VideoContentMode.allCases)
    func nothingIsDrawnWithoutArea(mode: VideoContentMode) {  // DEV5
        #expect(VideoLayout.make(mode: mode, videoSize: (0, 0), viewSize: (10, 10)) == .empty)
        #expect(VideoLayout.make(mode: mode, videoSize: (10, 10), viewSize: (0, 10)) == .empty)
        #expect(VideoLayout.make(mode: mode, videoSize: (10, 10), viewSize: (.infinity, 10)) == .empty)
        for rotation in VideoRotation.allCases {
            let layout = VideoLayout.make(
                mode: mode, videoSize: (1, 1), viewSize: (33, 17), rotation: rotation)
            #expect(!layout.source.isEmpty && !layout.destination.isEmpty)
        }
    }
}

/// Sum of absolute luma differences.
func difference(_ a: VideoFrameBuffer, _ b: VideoFrameBuffer) -> Int {
    guard a.width == b.width, a.height == b.height else { return .max }
    return a.withPlanes { pa in
        b.withPlanes { pb in
            var sum = 0
            for row in 0..<pa.height {
                for x in 0..<pa.width {
                    sum += abs(Int(pa.y[row * pa.strideY + x]) - Int(pb.y[row * pb.strideY + x]))
                }
            }
            return sum
        }
    }
}
