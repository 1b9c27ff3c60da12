#if Media
import Foundation
import SoraCodecs
import SoraDevices
import SoraFrames
import SoraMedia
import SoraPeer
import SoraRTP
import SoraSDP
import SoraWire
import TestSupport
import Testing

@Suite(.serialized) struct MediaSessionTests {
    /// The test pattern as local tracks of the answerer.
    func publish(
        _ pair: LivePair, width: Int = 320, height: Int = 180
    ) throws -> (source: TestPatternSource, video: LocalVideo, audio: LocalAudio) {
        let video = LocalVideo()
        let audio = LocalAudio()
        pair.sessions[1].send(video, on: pair.transceiver(.answerer, .video).id)
        pair.sessions[1].send(
            audio, on: pair.transceiver(.answerer, .audio).id, settings: AudioEncoderSettings(channels: 2))
        let source = TestPatternSource(
            pattern: TestPattern(width: width, height: height), tone: TestTone(channels: 2))
        try source.start { event in
            switch event {
            case .video(let frame): video.send(frame)
            case .audio(let frame): audio.send(frame)
            case .ended, .failed: break
            }
        }
        return (source, video, audio)
    }

    func subscribe(_ pair: LivePair, raw: Bool = true) -> (received: Received, video: RemoteVideo, audio: RemoteAudio) {
        let received = Received(pair)
        let video = pair.sessions[0].remoteVideo(on: pair.transceiver(.offerer, .video).id, sender: "s")
        let audio = pair.sessions[0].remoteAudio(on: pair.transceiver(.offerer, .audio).id, sender: "s")
        if raw {
            _ = video.addSink { received.take($0) }
            _ = audio.addSink { received.take($0) }
        }
        return (received, video, audio)
    }

    @Test(arguments: ["VP8", "VP9", "H264", "AV1"])
    func picturesAndSoundArriveInStep(codec: String) throws {
        let pair = try LivePair(codec)
        let (received, remoteVideo, remoteAudio) = subscribe(pair)
        let (source, _, _) = try publish(pair)
        defer { source.stop() }
        #expect(pair.run { received.now.counters.count >= 80 && received.now.audio.count >= 200 })
        source.stop()
        let content = received.now
        let numbers = content.counters.compactMap { $0 }
        #expect(numbers.count == content.counters.count, "every picture is whole")
        #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $0 < $1 })
        #expect(Double(numbers.count) > Double(numbers[numbers.count - 1] - numbers[0]) * 0.9 / RealTime.factor)
        #expect(content.audio.allSatisfy { $0.samplesPerChannel == 480 && $0.channels == 2 })
        #expect(content.audio.suffix(100).filter { $0.level > 0.03 }.count > Int(90 / RealTime.factor))
        // Lip sync: flash and beep of one second, as shown and as heard.
        let shown = lipSyncError(content.counters, content.shownAt, content.audio, content.heardAt)
        #expect(Double(try #require(shown)) < 90 * RealTime.factor, "\(shown ?? -1) ms")
        #expect(remoteVideo.statistics.framesDecoded >= 80 && remoteVideo.statistics.width == 320)
        #expect(remoteVideo.statistics.codec?.rawValue == codec)
        #expect(remoteAudio.statistics.packetsReceived >= 100)
        let sent = try #require(pair.sessions[1].videoSenderStatistics.first)
        #expect(sent.errors == 0 && sent.layers[0].framesEncoded >= 80)
        for session in pair.sessions { session.close() }
    }

    @Test func lossIsRepairedOrHealedByAKeyFrame() throws {  // RTP9
        let pair = try LivePair()
        let (received, video, _) = subscribe(pair)
        let (source, _, _) = try publish(pair)
        defer { source.stop() }
        #expect(pair.run { received.now.counters.count >= 20 })
        var random = RandomSource(seed: 7)
        // A tenth of what the publisher sends is lost.
        pair.drop = { side, _ in side == .answerer && random.next() % 10 == 0 }
        let before = received.now.counters.count
        #expect(pair.run { received.now.counters.count >= before + 90 })
        let numbers = received.now.counters.compactMap { $0 }
        #expect(numbers.count == received.now.counters.count, "nothing broken is shown")
        #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $0 < $1 })
        // Then everything for 400 ms, which no repair bridges.
        pair.drop = { side, _ in side == .answerer }
        pair.run(0.4)
        pair.drop = { _, _ in false }
        let gap = received.now.counters.count
        #expect(pair.run { received.now.counters.count >= gap + 30 })
        #expect(video.statistics.decodeErrors == 0)
    }

    @Test func newcomerGetsAKeyFrameAtOnce() throws {
        let pair = try LivePair()
        let (received, video, _) = subscribe(pair, raw: false)
        let (source, _, _) = try publish(pair)
        defer { source.stop() }
        #expect(pair.run { pair.isConnected })
        pair.run(0.7)
        // Nobody has looked: nothing was decoded.
        #expect(video.statistics.framesDecoded == 0)
        let id = video.addSink { received.take($0) }
        let start = pair.now
        #expect(pair.run { received.now.counters.count >= 5 })
        #expect(pair.now - start < .seconds(2))
        video.removeSink(id)
        pair.run(0.1)
        let count = received.now.counters.count
        pair.run(0.2)
        #expect(received.now.counters.count == count)
    }

    @Test func simulcastLayersHaveTheirSizes() throws {
        let pair = try LivePair(layers: ["r0", "r1", "r2"])
        for (index, scale) in [4.0, 2.0, 1.0].enumerated() {
            pair.transceiver(.answerer, .video).encodings[index].scaleResolutionDownBy = scale
            pair.transceiver(.answerer, .video).encodings[index].maximumBitrate = [100_000, 300_000, 900_000][index]
        }
        let (source, _, _) = try publish(pair, width: 640, height: 360)
        defer { source.stop() }
        func layers() -> [MediaSession.VideoSenderStatistics.Layer] {
            pair.sessions[1].videoSenderStatistics.first?.layers ?? []
        }
        #expect(pair.run { layers().count == 3 && layers().allSatisfy { $0.framesEncoded >= 10 } })
        #expect(layers().map(\.width) == [160, 320, 640] && layers().map(\.height) == [90, 180, 360])
        #expect(layers().map { $0.rid?.rawValue } == ["r0", "r1", "r2"])
        // Too little for the upper layers: they stop, the lowest goes on.
        pair.sessions[1].handle(.availableBitrate(120_000), now: pair.now)
        pair.run(0.3)
        let before = layers().map(\.framesEncoded)
        pair.run(0.6)
        let after = layers().map(\.framesEncoded)
        #expect(after[0] > before[0] && after[2] == before[2])
        // And back, with a key frame.
        let keys = layers()[2].keyFramesEncoded
        pair.sessions[1].handle(.availableBitrate(5_000_000), now: pair.now)
        #expect(pair.run { layers()[2].framesEncoded > after[2] })
        #expect(layers()[2].keyFramesEncoded > keys)
    }

    // api 5.37
    @Test(arguments: ["VP8", "VP9", "H264", "AV1"])
    func layersThatAreNotActiveAreNotSent(codec: String) throws {
        for pattern in [[false, true], [true, false], [false, false]] {
            let pair = try LivePair(codec, layers: ["r0", "r1"])
            let transceiver = pair.transceiver(.answerer, .video)
            for index in pattern.indices { transceiver.encodings[index].isActive = pattern[index] }
            transceiver.encodings[0].scaleResolutionDownBy = 2
            let (source, video, _) = try publish(pair)
            defer { source.stop() }
            func encoded() -> [UInt64] {
                pair.sessions[1].videoSenderStatistics.first?.layers.map(\.framesEncoded) ?? []
            }
            if pattern.contains(true) {
                #expect(pair.run { encoded().count == 2 && zip(encoded(), pattern).allSatisfy { $1 == ($0 >= 5) } })
            } else {
                #expect(pair.run { (pair.sessions[1].videoSenderStatistics.first?.framesIn ?? 0) >= 10 })
            }
            #expect(zip(encoded(), pattern).allSatisfy { $1 || $0 == 0 }, "\(pattern)")
            // A later negotiation switches the layers on.
            for index in pattern.indices { transceiver.encodings[index].isActive = true }
            pair.sessions[1].send(video, on: transceiver.id)
            #expect(pair.run { encoded().count == 2 && encoded().allSatisfy { $0 >= 5 } }, "\(pattern)")
            #expect(pair.sessions[1].videoSenderStatistics.first?.errors == 0)
            for session in pair.sessions { session.close() }
        }
    }

    // api 5.50
    @Test(arguments: [true, false]) func stereoKeepsItsSidesForThoseWhoWantIt(isWanted: Bool) throws {
        let pair = try LivePair(stereo: isWanted)
        let (received, _, _) = subscribe(pair)
        let audio = LocalAudio()
        pair.sessions[1].send(
            audio, on: pair.transceiver(.answerer, .audio).id, settings: AudioEncoderSettings(channels: 2))
        let tone = TestPatternSource(pattern: TestPattern(width: 16, height: 16), tone: TestTone(channels: 2))
        try tone.start { event in
            guard case .audio(var frame) = event else { return }
            // The left side buzzes all the time, the right one is silent.
            for index in frame.samples.indices {
                frame.samples[index] = index % 2 == 1 ? 0 : (index / 2) % 96 < 48 ? 8_000 : -8_000
            }
            audio.send(frame)
        }
        defer { tone.stop() }
        func peak(_ side: Int) -> Int {
            let frames = received.now.audio.suffix(10)
            guard frames.count == 10, frames.allSatisfy({ $0.channels == 2 }) else { return 0 }
            return frames.map { frame in
                stride(from: side, to: frame.samples.count, by: 2).map { abs(Int(frame.samples[$0])) }.max() ?? 0
            }.max() ?? 0
        }
        #expect(pair.run { received.now.audio.count > 30 && peak(0) > 2_000 })
        if isWanted {
            #expect(pair.run { peak(0) > 4_000 && peak(1) < 500 })
        } else {
            #expect(pair.run { abs(peak(0) - peak(1)) < 200 })
        }
        for session in pair.sessions { session.close() }
    }

    // api 5.46
    @Test func mutedTracksSendBlackAndSilence() throws {
        let pair = try LivePair()
        let (received, _, _) = subscribe(pair)
        let (source, video, audio) = try publish(pair)
        defer { source.stop() }
        #expect(pair.run { received.now.counters.count >= 10 })
        video.isEnabled = false
        audio.isEnabled = false
        #expect(pair.run { received.now.counters.suffix(5).allSatisfy { $0 == nil } })
        #expect(pair.run { received.now.audio.suffix(10).allSatisfy { $0.level < 0.001 } })
        video.isEnabled = true
        audio.isEnabled = true
        #expect(pair.run { received.now.counters.suffix(5).allSatisfy { $0 != nil } })
        #expect(pair.run { received.now.audio.suffix(10).allSatisfy { $0.level > 0.03 } })
    }

    @Test func orientationTravelsBesideThePicture() throws {
        let pair = try LivePair()
        let (received, _, _) = subscribe(pair)
        let video = LocalVideo()
        pair.sessions[1].send(video, on: pair.transceiver(.answerer, .video).id)
        let pattern = TestPattern(width: 320, height: 180)
        #expect(pair.run { pair.isConnected })
        for number in UInt32(0)..<40 {
            video.send(
                VideoFrame(
                    buffer: pattern.draw(number), timestamp: MonotonicClock.now,
                    rotation: number < 20 ? .clockwise90 : .none))
            pair.run(0.03)
        }
        #expect(pair.run { received.now.rotations.last == VideoRotation.none })
        #expect(received.now.rotations.contains(.clockwise90))
        #expect(received.now.sizes.allSatisfy { $0 == [320, 180] })
    }

    @Test func recordingKeepsSoundAndPicturesTogether() throws {
        let pair = try LivePair()
        let path = NSTemporaryDirectory() + "sora-media-\(UUID().uuidString).webm"
        defer { try? FileManager.default.removeItem(atPath: path) }
        let (_, video, audio) = subscribe(pair, raw: false)
        let recorder = try WebMRecorder(path: path, onKeyFrameNeeded: { video.requestKeyFrame() })
        let ids = (video.addEncodedSink(recorder), audio.addEncodedSink(recorder))
        let (source, _, _) = try publish(pair)
        #expect(pair.run { recorder.summary.videoFrames >= 75 && recorder.summary.audioFrames >= 120 })
        source.stop()
        video.removeSink(ids.0)
        audio.removeSink(ids.1)
        let summary = recorder.stop()
        #expect(summary.failure == nil && summary.duration > .milliseconds(2_300))

        let file = try MediaFileSource(path: path)
        let pictures = Received(pair)
        try file.start { event in
            switch event {
            case .video(let frame): pictures.take(frame)
            case .audio(let frame): pictures.take(frame)
            case .ended, .failed: break
            }
        }
        #expect(pair.run { pictures.now.counters.count >= summary.videoFrames - 2 })
        file.stop()
        let content = pictures.now
        let numbers = content.counters.compactMap { $0 }
        #expect(numbers.count == content.counters.count)
        let recorded = lipSyncError(
            content.counters, content.times, content.audio, content.audio.map(\.timestamp))
        #expect(try #require(recorded) < 80, "\(recorded ?? -1) ms")
    }

    /// Milliseconds between the last flash (frame 30, 60, ... of the pattern) and the beep next to it.
    func lipSyncError(_ counters: [UInt32?], _ pictureTimes: [Int64], _ audio: [AudioFrame], _ soundTimes: [Int64])
        -> Int64?
    {
        var flash: Int64?
        for (index, counter) in counters.enumerated() {
            guard let counter, counter > 0, counter % 30 == 0 else { continue }
            flash = pictureTimes[index]
        }
        guard let flash else { return nil }
        var least: Int64?
        var wasBeep = false
        for (index, frame) in audio.enumerated() {
            let isBeep = frame.level > 0.2
            if isBeep, !wasBeep {
                let distance = abs(soundTimes[index] - flash)
                least = min(least ?? distance, distance)
            }
            wasBeep = isBeep
        }
        return least.map { $0 / 1_000_000 }
    }

    @Test func closingEndsEverythingAtOnce() throws {  // RTP14
        let pair = try LivePair()
        let (received, _, _) = subscribe(pair)
        let (source, video, _) = try publish(pair)
        #expect(pair.run { received.now.counters.count >= 5 })
        for session in pair.sessions { session.close() }
        pair.run(0.1)
        let count = received.now.counters.count
        pair.run(0.2)
        #expect(received.now.counters.count == count)
        #expect(pair.sessions.allSatisfy { $0.nextTimeout == nil })
        source.stop()
        video.send(VideoFrame(buffer: .black(width: 2, height: 2), timestamp: 0))
    }
}

@Suite struct BitrateAllocatorTests {
    typealias Layer = BitrateAllocator.Layer
    let layers = [
        Layer(width: 320, height: 180, maximumBitrate: 150_000),
        Layer(width: 640, height: 360, maximumBitrate: 500_000),
        Layer(width: 1280, height: 720, maximumBitrate: 1_500_000),
    ]

    @Test func fillsFromTheLowestLayerUp() {
        #expect(BitrateAllocator.allocate(10_000_000, to: layers) == [150_000, 500_000, 1_500_000])
        #expect(BitrateAllocator.allocate(600_000, to: layers) == [150_000, 450_000, 0])
        #expect(BitrateAllocator.allocate(200_000, to: layers) == [150_000, 0, 0])
        #expect(BitrateAllocator.allocate(0, to: layers) == [30_000, 0, 0])
    }

    @Test func layerThatRestsNeedsMoreToBeginThanToGoOn() {
        var resting = layers
        resting[2].isRunning = false
        // The largest layer is worth 500 kbit/s to go on with, and 625 to begin with.
        for (left, isSent) in [(490_000, false), (510_000, false), (620_000, false), (630_000, true)] {
            let targets = BitrateAllocator.allocate(650_000 + left, to: resting)
            #expect((targets[2] > 0) == isSent, "\(left)")
        }
        #expect(BitrateAllocator.allocate(650_000 + 510_000, to: layers)[2] == 510_000)
        // Never more than its maximum.
        resting[2].maximumBitrate = 400_000
        #expect(BitrateAllocator.allocate(650_000 + 400_000, to: resting)[2] == 400_000)
    }

    @Test func anyPatternOfActiveLayersWorks() {  // RTP13
        for pattern in 0..<8 {
            var some = layers
            for index in 0..<3 { some[index].isActive = pattern >> index & 1 == 1 }
            let targets = BitrateAllocator.allocate(10_000_000, to: some)
            for index in 0..<3 { #expect((targets[index] > 0) == some[index].isActive) }
            let scarce = BitrateAllocator.allocate(1_000, to: some)
            #expect(scarce.filter { $0 > 0 }.count == (pattern == 0 ? 0 : 1))
        }
    }
}
#endif

#if Media
@Suite struct CodedSizeOfRealFramesTests {
    @Test(arguments: [VideoCodecKind.vp8, .vp9, .h264, .av1])
    func keyFramesTellTheirSize(codec: VideoCodecKind) throws {
        for size in [(320, 180), (1280, 720), (642, 358)] {
            let encoder = try MediaCodecs().makeVideoEncoder(
                VideoEncoderSettings(codec: codec, width: size.0, height: size.1, bitrate: 300_000))
            let frame = VideoFrame(buffer: TestPattern(width: size.0, height: size.1).draw(1), timestamp: 0)
            let coded = try #require(try encoder.encode(frame, forceKeyFrame: true).first)
            let told = try #require(CodedSize.of(codec, coded.payload))
            #expect(told.width == size.0 && told.height == size.1)
            for length in stride(from: 0, to: min(coded.payload.count, 200), by: 1) {
                _ = CodedSize.of(codec, Array(coded.payload.prefix(length)))
            }
        }
    }
}
#endif
