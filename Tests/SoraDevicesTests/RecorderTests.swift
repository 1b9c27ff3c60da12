#if Media
import Foundation
import SoraCodecs
import SoraDevices
import SoraFrames
import SoraLocking
import Synchronization
import TestSupport
import Testing

/// Test pattern and tone, coded and recorded without waiting for real time.
enum Recording {
    static func coded(
        _ codec: VideoCodecKind = .vp8, frames: Int, width: Int = 320, height: Int = 180, from start: Int = 0,
        origin: Int64 = 5_000_000_000
    ) throws -> (video: [EncodedVideoFrame], audio: [EncodedAudioFrame]) {
        let pattern = TestPattern(width: width, height: height)
        let tone = TestTone(channels: 2)
        let encoder = try MediaCodecs().makeVideoEncoder(
            VideoEncoderSettings(codec: codec, width: width, height: height, bitrate: 400_000, mayDropFrames: false))
        let audioEncoder = try MediaCodecs().makeAudioEncoder(AudioEncoderSettings(channels: 2))
        var video: [EncodedVideoFrame] = []
        var audio: [EncodedAudioFrame] = []
        for number in start..<(start + frames) {
            let frame = VideoFrame(
                buffer: pattern.draw(UInt32(number)), timestamp: origin + pattern.time(of: UInt32(number)))
            video += try encoder.encode(frame, forceKeyFrame: (number - start) % 30 == 0)
        }
        for piece in 0..<(frames * 100 / 30) {
            let time = origin + Int64(start) * 33_333_333 + Int64(piece) * 10_000_000
            audio += try audioEncoder.encode(tone.frame(from: piece * 480, count: 480, timestamp: time))
        }
        return (video, audio)
    }

    /// In the order of capture, as they arrive from a network.
    static func feed(
        _ recorder: WebMRecorder, _ video: [EncodedVideoFrame], _ audio: [EncodedAudioFrame]
    ) {
        var rest = audio[...]
        for frame in video {
            while let first = rest.first, first.timestamp <= frame.timestamp {
                recorder.consume(first)
                rest = rest.dropFirst()
            }
            recorder.consume(frame)
        }
        for frame in rest { recorder.consume(frame) }
    }

    @discardableResult
    static func make(_ path: String, _ codec: VideoCodecKind = .vp8, frames: Int) throws -> String {
        let recorder = try WebMRecorder(path: path)
        let (video, audio) = try coded(codec, frames: frames)
        feed(recorder, video, audio)
        recorder.stop()
        return path
    }

    /// Numbers of all pictures in a file.
    static func counters(_ path: String) throws -> [UInt32?] {
        let source = try MediaFileSource(path: path)
        let collector = Collector()
        try source.start { collector.take($0) }
        #expect(collector.wait { $0.isEnded || $0.failure != nil })
        source.stop()
        #expect(collector.now.failure == nil)
        return collector.now.counters
    }
}

@Suite(.serialized, .leavesNoObjects) struct RecorderTests {
    @Test(arguments: [VideoCodecKind.vp8, .vp9, .h264, .av1])
    func fileHasEveryFrameAndItsLength(codec: VideoCodecKind) throws {
        let scratch = Scratch()
        let recorder = try WebMRecorder(path: scratch.file("a.webm"))
        let (video, audio) = try Recording.coded(codec, frames: 75)
        Recording.feed(recorder, video, audio)
        let summary = recorder.stop()
        #expect(summary == recorder.stop())
        #expect(summary.videoFrames == 75 && summary.audioFrames == audio.count && summary.skippedFrames == 0)
        #expect(summary.duration > .milliseconds(2_450) && summary.duration < .milliseconds(2_550))
        let attributes = try FileManager.default.attributesOfItem(atPath: scratch.file("a.webm"))
        #expect(attributes[.size] as? Int == summary.bytes)
        #expect(try Recording.counters(scratch.file("a.webm")).compactMap { $0 } == Array(0..<75))
        if let probe = Program.output(
            "ffprobe",
            [
                "-v", "error", "-count_frames", "-show_entries",
                "stream=codec_name,nb_read_frames,width:format=duration",
                "-of", "compact", scratch.file("a.webm"),
            ])
        {
            #expect(probe.contains("nb_read_frames=75"), "\(probe)")
            #expect(probe.contains("codec_name=\(codec.rawValue.lowercased())"), "\(probe)")
            #expect(probe.contains("codec_name=opus"), "\(probe)")
            #expect(probe.contains("duration=2."), "\(probe)")
        }
    }

    @Test func whatWasWrittenBeforeAKillIsPlayable() throws {
        let scratch = Scratch()
        let recorder = try WebMRecorder(path: scratch.file("live.webm"))
        let (video, audio) = try Recording.coded(frames: 40)
        Recording.feed(recorder, video, audio)
        let written = recorder.flush()
        #expect(written.videoFrames == 40 && written.audioFrames == audio.count)
        // The recorder buffers nothing: the file as it stands is what a kill leaves.
        let data = try #require(FileManager.default.contents(atPath: scratch.file("live.webm")))
        #expect(try Recording.counters(scratch.write("killed.webm", Array(data))).compactMap { $0 } == Array(0..<40))
        // And with the last frame half written.
        let cut = scratch.write("cut.webm", Array(data.dropLast(400)))
        #expect(try Recording.counters(cut).compactMap { $0 }.count >= 35)
        recorder.stop()
    }

    @Test func waitsForAKeyFrameAndAsksForIt() throws {
        let scratch = Scratch()
        let requests = Atomic<Int>(0)
        let recorder = try WebMRecorder(
            path: scratch.file("a.webm"), onKeyFrameNeeded: { requests.add(1, ordering: .relaxed) })
        let (video, _) = try Recording.coded(frames: 70)
        Recording.feed(recorder, Array(video[5...]), [])
        let summary = recorder.stop()
        #expect(summary.skippedFrames == 25 && summary.videoFrames == 40)
        #expect(requests.load(ordering: .relaxed) == 1)
        #expect(try Recording.counters(scratch.file("a.webm")).first == 30)
    }

    @Test func picturesMayChangeTheirSize() throws {  // simulcast switch
        let scratch = Scratch()
        let recorder = try WebMRecorder(path: scratch.file("a.webm"))
        let small = try Recording.coded(frames: 20, width: 320, height: 180).video
        let large = try Recording.coded(frames: 20, width: 640, height: 360, from: 20).video
        Recording.feed(recorder, small + large, [])
        #expect(recorder.stop().videoFrames == 40)
        #expect(try Recording.counters(scratch.file("a.webm")).compactMap { $0 } == Array(0..<40))
    }

    @Test func oneKindAloneIsEnoughAndTheOtherMayComeLate() throws {
        let scratch = Scratch()
        let (video, audio) = try Recording.coded(frames: 60)
        let soundOnly = try WebMRecorder(path: scratch.file("sound.webm"))
        Recording.feed(soundOnly, [], audio)
        #expect(soundOnly.stop().audioFrames == audio.count)
        let sound = try MediaFileSource(path: scratch.file("sound.webm"))
        #expect(sound.hasAudio && !sound.hasVideo)

        let late = try WebMRecorder(path: scratch.file("late.webm"))
        Recording.feed(late, Array(video[30...]), audio)
        late.stop()
        let source = try MediaFileSource(path: scratch.file("late.webm"))
        #expect(source.hasAudio && source.hasVideo)
        #expect(try Recording.counters(scratch.file("late.webm")).compactMap { $0 } == Array(30..<60))
    }

    @Test func soundAndPicturesStayTogether() throws {
        let scratch = Scratch()
        let file = try Recording.make(scratch.file("a.webm"), frames: 75)
        let source = try MediaFileSource(path: file)
        let collector = Collector(keepsPictures: true)
        try source.start { collector.take($0) }
        #expect(collector.wait { $0.isEnded })
        source.stop()
        let content = collector.now
        // Flash and beep of second 1, by the source's common clock.
        let pattern = TestPattern(width: 320, height: 180)
        let flash = try #require(
            zip(content.counters, content.video).first { pair in
                pair.0.map { $0 >= 15 && pattern.hasFlash($0) } ?? false
            }
        ).1.timestamp
        let start = content.audio.first?.timestamp ?? 0
        let beep = try #require(
            content.audio.first { $0.timestamp > start + 500_000_000 && $0.level > 0.2 }
        ).timestamp
        #expect(abs(flash - beep) < 45_000_000, "\((flash - beep) / 1_000_000) ms")
    }

    @Test func placesThatCannotBeWrittenSaySo() throws {
        #expect(throws: DeviceError.self) { try WebMRecorder(path: "/nonexistent/dir/a.webm") }
        let failure = Locked<DeviceError?>(nil)
        guard FileManager.default.fileExists(atPath: "/dev/full") else { return }
        let recorder = try WebMRecorder(path: "/dev/full", onFailure: { error in failure.withLock { $0 = error } })
        let (video, audio) = try Recording.coded(frames: 5)
        Recording.feed(recorder, video, audio)
        let summary = recorder.stop()
        #expect(summary.failure != nil && failure.withLock { $0 } == summary.failure)
    }

    @Test func emptyRecordingIsAnEmptyFile() throws {
        let scratch = Scratch()
        let recorder = try WebMRecorder(path: scratch.file("a.webm"))
        #expect(recorder.stop().bytes == 0)
        let (video, _) = try Recording.coded(frames: 1)
        recorder.consume(video[0])
        #expect(recorder.stop().videoFrames == 0)
    }
}

@Suite(.serialized, .leavesNoObjects) struct PNGWriterTests {
    @Test func pictureReadsBack() throws {
        let scratch = Scratch()
        let frame = VideoFrame(buffer: TestPattern(width: 641, height: 359).draw(42), timestamp: 0)
        try PNGWriter.write(frame, to: scratch.file("a.png"))
        let collector = Collector()
        let source = try MediaFileSource(path: scratch.file("a.png"))
        try source.start { collector.take($0) }
        #expect(collector.wait { $0.isEnded })
        source.stop()
        #expect(collector.now.counters == [42])
        #expect(collector.now.video.first?.width == 641 && collector.now.video.first?.height == 359)
    }

    @Test func picturesAreTurnedUpright() throws {
        let buffer = TestPattern(width: 64, height: 32).draw(1)
        let png = PNGWriter.encode(VideoFrame(buffer: buffer, timestamp: 0, rotation: .clockwise90))
        #expect(Array(png[16..<24]) == [0, 0, 0, 32, 0, 0, 0, 64])
    }

    @Test func coloursAreRight() throws {
        let scratch = Scratch()
        let red = VideoFrameBuffer(width: 33, height: 17) { $0.fill(y: 81, u: 90, v: 240) }
        try PNGWriter.write(VideoFrame(buffer: red, timestamp: 0), to: scratch.file("red.png"))
        let collector = Collector()
        let source = try MediaFileSource(path: scratch.file("red.png"))
        try source.start { collector.take($0) }
        #expect(collector.wait { $0.isEnded })
        source.stop()
        let picture = try #require(collector.now.video.first)
        picture.buffer.withPlanes { planes in
            #expect(abs(Int(planes.y[5 * planes.strideY + 5]) - 81) < 4)
            #expect(abs(Int(planes.u[5 * planes.strideU + 5]) - 90) < 4)
            #expect(abs(Int(planes.v[5 * planes.strideV + 5]) - 240) < 4)
        }
    }

    @Test func placesThatCannotBeWrittenSaySo() {
        let frame = VideoFrame(buffer: .black(width: 2, height: 2), timestamp: 0)
        #expect(throws: DeviceError.self) { try PNGWriter.write(frame, to: "/nonexistent/a.png") }
    }
}
#endif
