import SoraDevices
import SoraFrames
import TestSupport
import Testing

@Suite(.serialized, .leavesNoObjects) struct TestPatternSourceTests {
    @Test func picturesAndSoundComeAtTheirPace() throws {
        let source = TestPatternSource(pattern: TestPattern(width: 160, height: 90, framerate: 50))
        let collector = Collector()
        let start = MonotonicClock.now
        try source.start { collector.take($0) }
        #expect(throws: DeviceError.alreadyRunning) { try source.start { _ in } }
        #expect(collector.wait { $0.videoCount >= 50 && $0.audio.count >= 95 })
        let elapsed = MonotonicClock.now - start
        source.stop()
        let content = collector.now
        #expect(elapsed > 900_000_000)
        let numbers = content.counters.compactMap { $0 }
        #expect(numbers.count == content.videoCount)
        #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $0 < $1 })
        #expect(zip(content.audio, content.audio.dropFirst()).allSatisfy { $1.timestamp - $0.timestamp == 10_000_000 })
        let after = collector.now.videoCount
        #expect(collector.wait(0.1) { $0.videoCount > after } == false)
    }

    @Test func startsAgainAfterAStop() throws {
        let source = TestPatternSource(pattern: nil)
        for _ in 0..<3 {
            let collector = Collector()
            try source.start { collector.take($0) }
            #expect(collector.wait { $0.audio.count >= 2 })
            source.stop()
            source.stop()
            #expect(collector.now.videoCount == 0)
        }
    }

    @Test func leavesNoThreadBehind() throws {
        let before = ProcessUse.threads
        for _ in 0..<50 {
            let source = TestPatternSource(pattern: TestPattern(width: 64, height: 64))
            let collector = Collector()
            try source.start { collector.take($0) }
            #expect(collector.wait { $0.videoCount >= 1 })
            source.stop()
        }
        // Other suites run beside this one; fifty left threads would show all the same.
        #expect(ProcessUse.threads < before + 40)
    }
}
