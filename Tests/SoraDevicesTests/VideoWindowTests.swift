#if Media
import Foundation
import SoraFrames
import Synchronization
import Testing

@testable import SoraDevices

extension DeviceTests {
    /// What an X display shows, as pictures of ours.
    private func screen(_ width: Int, _ height: Int, until condition: @escaping (VideoFrame) -> Bool) throws -> Bool {
        var options = ScreenSource.Options()
        options.display = DeviceServices.display
        options.region = (x: 0, y: 0, width: width, height: height)
        options.showsPointer = false
        let source = ScreenSource(options: options)
        let collector = Collector()
        try source.start { collector.take($0) }
        defer { source.stop() }
        return collector.wait(10) { content in content.video.last.map(condition) ?? false }
    }

    private func window(
        _ width: Int, _ height: Int, _ mode: VideoContentMode, onDraw: (@Sendable () -> Void)? = nil
    ) throws -> VideoWindow {
        var options = VideoWindow.Options()
        options.width = width
        options.height = height
        options.position = (0, 0)
        options.hasBorder = false
        options.contentMode = mode
        options.onDraw = onDraw
        return try VideoWindow(options)
    }

    @Test func windowShowsWhatItGets() throws {
        #expect(VideoWindow.isDisplayAvailable)
        let window = try window(320, 180, .scaleToFill)
        let pattern = TestPattern(width: 640, height: 360)
        for number: UInt32 in [7, 4_711] {
            window.consume(VideoFrame(buffer: pattern.draw(number), timestamp: 0))
            #expect(try screen(320, 180) { FrameCounter.read(from: $0) == number })
        }
        window.clear()
        #expect(
            try screen(320, 180) { frame in
                frame.buffer.withPlanes { planes in (0..<320).allSatisfy { planes.y[90 * planes.strideY + $0] < 20 } }
            })
        #expect(window.drawnFrames >= 2)
        window.close()
        #expect(!window.isOpen)
    }

    @Test func barsAndRotationAreRight() throws {
        let window = try window(320, 320, .scaleAspectFit)
        defer { window.close() }
        let pattern = TestPattern(width: 640, height: 360)
        window.consume(VideoFrame(buffer: pattern.draw(99), timestamp: 0))
        // Bars of 70 lines above and below; the picture between them.
        #expect(
            try screen(320, 320) { frame in
                frame.buffer.withPlanes { planes in
                    guard (0..<320).allSatisfy({ planes.y[30 * planes.strideY + $0] < 20 }) else { return false }
                    let middle = VideoFrameBuffer(
                        copying: I420Planes(
                            width: 320, height: 180, y: planes.y + 70 * planes.strideY, strideY: planes.strideY,
                            u: planes.u + 35 * planes.strideU, strideU: planes.strideU,
                            v: planes.v + 35 * planes.strideV, strideV: planes.strideV))
                    return FrameCounter.read(from: middle) == 99
                }
            })
        // A quarter turn: bars left and right.
        let turned = NearestScaling.rotate(pattern.draw(100), by: .clockwise270)
        window.consume(VideoFrame(buffer: turned, timestamp: 0, rotation: .clockwise90))
        #expect(
            try screen(320, 320) { frame in
                frame.buffer.withPlanes { planes in
                    let middle = VideoFrameBuffer(
                        copying: I420Planes(
                            width: 320, height: 180, y: planes.y + 70 * planes.strideY, strideY: planes.strideY,
                            u: planes.u + 35 * planes.strideU, strideU: planes.strideU,
                            v: planes.v + 35 * planes.strideV, strideV: planes.strideV))
                    return FrameCounter.read(from: middle) == 100
                }
            })
    }

    @Test func anySizeBetweenAnyTwoFramesIsDrawn() throws {  // DEV5
        let drawn = DispatchSemaphore(value: 0)
        let window = try window(200, 100, .scaleAspectFill) { drawn.signal() }
        defer { window.close() }
        for (index, size) in [(640, 360), (1, 1), (2, 2), (360, 640), (17, 1_000), (641, 359)].enumerated() {
            for rotation in VideoRotation.allCases {
                let before = window.drawnFrames
                window.consume(
                    VideoFrame(
                        buffer: .black(width: size.0, height: size.1), timestamp: Int64(index), rotation: rotation))
                // The window system may have had an earlier one drawn again.
                while window.drawnFrames == before, drawn.wait(timeout: .now() + 5) == .success {}
                #expect(window.drawnFrames > before)
            }
        }
        window.isMirrored = true
        window.contentMode = .scaleToFill
        window.title = "other"
    }
}
#endif
