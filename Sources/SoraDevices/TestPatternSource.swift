import SoraFrames
import SoraLocking
import Synchronization

/// `TestPattern` and `TestTone` as a camera and a microphone, at real pace.
///
/// Needs no device and no library. After a delay of its thread it catches up in sound and skips in pictures: the
/// number in a picture always tells its time.
package final class TestPatternSource: MediaSource {
    package let pattern: TestPattern?
    package let tone: TestTone?
    private let state = Locked<(thread: DeviceThread, isStopped: Flag)?>(nil)

    /// Pass nil for what is not wanted.
    package init(pattern: TestPattern? = TestPattern(width: 640, height: 360), tone: TestTone? = TestTone()) {
        self.pattern = pattern
        self.tone = tone
    }

    deinit { stop() }

    package var hasVideo: Bool { pattern != nil }
    package var hasAudio: Bool { tone != nil }

    package func start(_ sink: @escaping @Sendable (MediaSourceEvent) -> Void) throws(DeviceError) {
        let isStopped = Flag()
        let failure: DeviceError? = state.withLock { state in
            guard state == nil else { return .alreadyRunning }
            let thread = DeviceThread { [pattern, tone] in
                Self.run(pattern, tone, isStopped, sink)
            }
            guard let thread else { return .deviceFailed(device: "test pattern", reason: "no thread") }
            state = (thread, isStopped)
            return nil
        }
        if let failure { throw failure }
    }

    package func stop() {
        let running = state.withLock { state in
            defer { state = nil }
            return state
        }
        running?.isStopped.raise()
        running?.thread.join()
    }

    private static func run(
        _ pattern: TestPattern?, _ tone: TestTone?, _ isStopped: Flag,
        _ sink: @Sendable (MediaSourceEvent) -> Void
    ) {
        guard pattern != nil || tone != nil else { return }
        let pool = VideoFrameBufferPool(capacity: 8)
        let start = MonotonicClock.now
        var number: UInt32 = 0
        var piece: Int64 = 0
        while !isStopped.isRaised {
            let videoTime = pattern?.time(of: number)
            let audioTime = tone.map { _ in piece * 10_000_000 }
            if let videoTime, videoTime <= audioTime ?? .max, let pattern {
                let late = MonotonicClock.now - start - videoTime
                if late > 200_000_000 {
                    number = UInt32(Double(MonotonicClock.now - start) / 1e9 * pattern.framerate)
                    continue
                }
                MonotonicClock.sleep(until: start + videoTime)
                if isStopped.isRaised { return }
                sink(.video(VideoFrame(buffer: pattern.draw(number, pool: pool), timestamp: start + videoTime)))
                number &+= 1
            } else if let audioTime, let tone {
                MonotonicClock.sleep(until: start + audioTime)
                if isStopped.isRaised { return }
                let count = tone.sampleRate / 100
                // The tone repeats each second, so the position may too; it never overflows.
                let position = Int(piece % 100) * count
                sink(.audio(tone.frame(from: position, count: count, timestamp: start + audioTime)))
                piece += 1
            }
        }
    }
}

/// A flag that one thread raises and another sees.
package final class Flag: Sendable {
    private let value = Atomic<Bool>(false)
    package init() {}
    package var isRaised: Bool { value.load(ordering: .acquiring) }
    package func raise() { value.store(true, ordering: .releasing) }
}
