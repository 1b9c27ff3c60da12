#if Media
import Foundation
import SoraDevices
import SoraFrames
import TestSupport
import Testing

@Suite(.serialized, .leavesNoObjects) struct MediaFileSourceTests {
    @Test(.enabled(if: Samples.hasMovie, "package forensics-samples-files is not installed"))
    func realClipPlaysAtItsPace() throws {
        let source = try MediaFileSource(path: Samples.movie)
        #expect(source.hasVideo && source.hasAudio)
        #expect(source.videoSize?.width == 1280 && source.videoSize?.height == 720)
        #expect((source.duration ?? .zero) > .seconds(8) && (source.duration ?? .zero) < .seconds(9))
        let collector = Collector()
        let start = MonotonicClock.now
        try source.start { collector.take($0) }
        #expect(collector.wait { $0.videoCount >= 60 && $0.audio.count >= 190 })
        let elapsed = Double(MonotonicClock.now - start) / 1e9
        source.stop()
        #expect(elapsed > 1.7 && elapsed < 6, "two seconds of material took \(elapsed) s")
        let content = collector.now
        #expect(content.failure == nil)
        let frame = try #require(content.video.last)
        #expect(frame.width == 1280 && frame.height == 720)
        // One clock for both, and it is the system's.
        #expect(abs(frame.timestamp - MonotonicClock.now) < 5_000_000_000)
        let sound = try #require(content.audio.last)
        #expect(sound.sampleRate == 48_000 && sound.channels == 2)
        #expect(content.audio.dropFirst(2).dropLast(2).allSatisfy { $0.samplesPerChannel == 480 })
        #expect(zip(content.audio, content.audio.dropFirst()).allSatisfy { $1.timestamp > $0.timestamp })
        #expect(content.audio.map(\.level).max() ?? 0 > 0.001)
    }

    @Test(.enabled(if: Samples.hasMovie, "package forensics-samples-files is not installed"))
    func picturesAreScaledDownAndThinnedOut() throws {
        var options = MediaFileSource.Options()
        options.maximumSize = (320, 320)
        options.maximumFramerate = 10
        options.usesAudio = false
        options.audioChannels = 1
        let source = try MediaFileSource(path: Samples.movie, options: options)
        #expect(source.videoSize?.width == 320 && source.videoSize?.height == 180 && !source.hasAudio)
        let collector = Collector(keepsPictures: true)
        try source.start { collector.take($0) }
        #expect(collector.wait { $0.videoCount >= 8 })
        source.stop()
        let times = collector.now.video.map(\.timestamp)
        #expect(zip(times.dropFirst(), times.dropFirst(2)).allSatisfy { $1 - $0 > 90_000_000 })
        #expect(collector.now.audio.isEmpty)
    }

    @Test func badFilesGiveTypedErrorsAtOnce() throws {
        let scratch = Scratch()
        let start = MonotonicClock.now
        #expect(throws: DeviceError.fileNotFound(path: "/nonexistent/a.mp4")) {
            try MediaFileSource(path: "/nonexistent/a.mp4")
        }
        #expect(throws: DeviceError.fileNotReadable(path: scratch.path, reason: "it is not a regular file")) {
            try MediaFileSource(path: scratch.path)
        }
        var files = [
            scratch.write("empty.mp4", []), scratch.write("text.mp4", Array("this is no film\n".utf8)),
            scratch.write("noise.webm", (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 3) }),
            scratch.write("ebml.webm", [0x1A, 0x45, 0xDF, 0xA3, 0x80]),
        ]
        if let movie = FileManager.default.contents(atPath: Samples.movie) {
            files.append(scratch.write("cut.mp4", Array(movie.prefix(2_000))))
        }
        for file in files {
            do {
                _ = try MediaFileSource(path: file)
                Issue.record("\(file) was opened")
            } catch {
                guard case .undecodable(file, let reason) = error else {
                    Issue.record("\(error)")
                    continue
                }
                #expect(!reason.isEmpty)
            }
        }
        #expect(MonotonicClock.now - start < 30_000_000_000)
    }

    @Test func endsOnceAndLoopsOnDemand() throws {
        let scratch = Scratch()
        let file = try Recording.make(scratch.file("short.webm"), frames: 15)
        let once = try MediaFileSource(path: file)
        let first = Collector()
        try once.start { first.take($0) }
        #expect(first.wait { $0.isEnded })
        #expect(first.now.counters.compactMap { $0 } == Array(0..<15))
        once.stop()
        // The same object plays again.
        let second = Collector()
        try once.start { second.take($0) }
        #expect(second.wait { $0.isEnded })
        #expect(second.now.videoCount == 15)
        once.stop()

        var options = MediaFileSource.Options()
        options.loops = true
        let looped = try MediaFileSource(path: file, options: options)
        let third = Collector(keepsPictures: true)
        try looped.start { third.take($0) }
        #expect(third.wait { $0.videoCount >= 40 })
        looped.stop()
        #expect(!third.now.isEnded)
        let numbers = third.now.counters.compactMap { $0 }
        #expect(numbers.filter { $0 == 0 }.count >= 2)
        let times = third.now.video.map(\.timestamp)
        #expect(zip(times, times.dropFirst()).allSatisfy { $0 < $1 })
    }

    @Test func fiftyCyclesLeaveNothingBehind() throws {  // MEM1
        let scratch = Scratch()
        let file = try Recording.make(scratch.file("short.webm"), frames: 10)
        func cycle() throws {
            let source = try MediaFileSource(path: file)
            let collector = Collector()
            try source.start { collector.take($0) }
            #expect(collector.wait { $0.videoCount >= 1 })
            source.stop()
        }
        for _ in 0..<3 { try cycle() }
        let threads = ProcessUse.threads
        let descriptors = ProcessUse.descriptors
        for _ in 0..<50 { try cycle() }
        #expect(ProcessUse.threads <= threads + 8, "\(threads) → \(ProcessUse.threads)")
        #expect(ProcessUse.descriptors <= descriptors + 8, "\(descriptors) → \(ProcessUse.descriptors)")
    }

    @Test func openedAndNeverStartedIsFreed() throws {
        let scratch = Scratch()
        let file = try Recording.make(scratch.file("short.webm"), frames: 5)
        _ = try MediaFileSource(path: file)
        let before = ProcessUse.descriptors
        for _ in 0..<10 { _ = try MediaFileSource(path: file) }
        #expect(ProcessUse.descriptors <= before + 5)
    }
}
#endif
