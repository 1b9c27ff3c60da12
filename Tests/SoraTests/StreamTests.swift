import Foundation
import SoraPeer
import TestSupport
import Testing

@testable import Sora

/// A renderer that writes down what it is told.
private final class RecordingRenderer: VideoRenderer {
    let journal: Journal
    let name: String
    init(_ journal: Journal, _ name: String = "") {
        self.journal = journal
        self.name = name
    }
    private func add(_ text: String) {
        journal.add((name.isEmpty ? "" : name + " ") + text + (isOnMainQueue() ? "" : " off main"))
    }
    func onChange(size: CGSize) { add("size \(Int(size.width))x\(Int(size.height))") }
    func render(videoFrame: VideoFrame?) { add("frame \(videoFrame?.timestamp?.value ?? -1)") }
    func onDisconnect(from: MediaChannel?) { add("disconnect") }
    func onAdded(from: any MediaStream) { add("added \(from.streamId)") }
    func onRemoved(from: any MediaStream) { add("removed \(from.streamId)") }
    func onSwitch(video: Bool) { add("video \(video)") }
    func onSwitch(audio: Bool) { add("audio \(audio)") }
}

private func frame(
    _ time: Int64, _ width: Int32 = 4, _ height: Int32 = 2, rotation: RTCVideoRotation = ._0
) -> VideoFrame {
    .native(
        capturer: nil,
        frame: RTCVideoFrame(
            buffer: RTCI420Buffer(width: width, height: height), rotation: rotation, timeStampNs: time))
}

private func remoteStream(video: RecordingTrack? = RecordingTrack(), audio: RecordingTrack? = nil) -> ConnectedStream {
    ConnectedStream(streamId: "s", isLocal: false, core: nil, video: video, audio: audio)
}

@Suite(.serialized, .leavesNoObjects) struct RendererTests {
    @Test func sizesComeBeforeTheirFrames() async {
        let stream = remoteStream()
        let journal = Journal()
        let renderer = RecordingRenderer(journal)
        stream.videoRenderer = renderer
        // DEV5: any size after any other; nothing is shown of an empty frame.
        stream.receive(video: frame(1, 640, 360))
        stream.receive(video: frame(2, 0, 0))
        stream.receive(video: frame(3, 1, 1))
        stream.receive(video: frame(4, 360, 640, rotation: ._90))
        await mainQueueTurn()
        #expect(
            journal.entries == [
                "added s", "size 640x360", "frame 1", "size 1x1", "frame 3", "size 640x360", "frame 4",
            ])
    }

    @Test func theSameRendererAgainIsNothingNew() async {
        let stream = remoteStream()
        let journal = Journal()
        let first = RecordingRenderer(journal, "a")
        let second = RecordingRenderer(journal, "b")
        stream.videoRenderer = nil
        stream.videoRenderer = first
        stream.videoRenderer = first
        stream.videoRenderer = second
        stream.videoRenderer = nil
        stream.videoRenderer = nil
        await mainQueueTurn()
        #expect(journal.entries == ["a added s", "a removed s", "b added s", "b removed s"])
    }

    @Test func theRendererIsHeldWeakly() async {
        let stream = remoteStream()
        let journal = Journal()
        do { stream.videoRenderer = RecordingRenderer(journal) }
        // The waiting callback keeps it until it is delivered.
        await mainQueueTurn()
        #expect(journal.entries == ["added s"])
        #expect(stream.videoRenderer == nil)
    }

    // api 5.59
    @Test func atMostFourFramesWait() async {
        let stream = remoteStream()
        let journal = Journal()
        let renderer = RecordingRenderer(journal)
        stream.videoRenderer = renderer
        await mainQueueTurn()
        let target = Transfer(stream)
        await withCheckedContinuation { continuation in
            DispatchQueue.main.async {
                for time in 1...10 { target.value.receive(video: frame(Int64(time))) }
                continuation.resume()
            }
        }
        await mainQueueTurn()
        #expect(journal.entries == ["added s", "size 4x2", "frame 1", "frame 2", "frame 3", "frame 4"])
        withExtendedLifetime(renderer) {}
    }

    @Test func queuedFramesNeverReachTheNextRenderer() async {
        let stream = remoteStream()
        let journal = Journal()
        let first = RecordingRenderer(journal, "a")
        let second = RecordingRenderer(journal, "b")
        stream.videoRenderer = first
        await mainQueueTurn()
        let (target, next) = (Transfer(stream), Transfer(second))
        await withCheckedContinuation { continuation in
            DispatchQueue.main.async {
                target.value.receive(video: frame(1))
                target.value.videoRenderer = next.value
                target.value.receive(video: frame(2))
                continuation.resume()
            }
        }
        await mainQueueTurn()
        #expect(journal.entries == ["a added s", "a removed s", "b added s", "b size 4x2", "b frame 2"])
        withExtendedLifetime(first) {}
    }

    @Test func afterTheEndNothingButRemovalArrives() async {
        let stream = remoteStream()
        let journal = Journal()
        let renderer = RecordingRenderer(journal, "a")
        let late = RecordingRenderer(journal, "late")
        stream.videoRenderer = renderer
        let target = Transfer(stream)
        await withCheckedContinuation { continuation in
            DispatchQueue.main.async {
                target.value.receive(video: frame(1))
                target.value.terminate()
                target.value.terminate()
                target.value.receive(video: frame(2))
                target.value.videoEnabled = false
                continuation.resume()
            }
        }
        await mainQueueTurn()
        #expect(journal.entries == ["a added s", "a disconnect"])
        stream.videoRenderer = late
        stream.receive(video: frame(3))
        await mainQueueTurn()
        stream.videoRenderer = nil
        await mainQueueTurn()
        #expect(journal.entries == ["a added s", "a disconnect", "a removed s", "late removed s"])
    }

    @Test func switchesReachTheRenderer() async {
        let stream = remoteStream(audio: RecordingTrack())
        let journal = Journal()
        let renderer = RecordingRenderer(journal)
        stream.videoRenderer = renderer
        stream.videoEnabled = false
        stream.receive(video: frame(1))
        stream.audioEnabled.toggle()
        stream.videoEnabled = true
        stream.videoEnabled = true
        await mainQueueTurn()
        #expect(journal.entries == ["added s", "video false", "audio false", "video true"])
    }
}

@Suite(.serialized, .leavesNoObjects) struct StreamTests {
    private final class Doubler: VideoFilter {
        func filter(videoFrame: VideoFrame) -> VideoFrame { frame((videoFrame.timestamp?.value ?? 0) * 2) }
    }
    private final class Gate: VideoFilter, Sendable {
        let journal = Journal()
        let semaphore = DispatchSemaphore(value: 0)
        func filter(videoFrame: VideoFrame) -> VideoFrame {
            journal.add("in")
            semaphore.wait()
            return videoFrame
        }
    }

    private func localStream(_ track: RecordingTrack?, audio: RecordingTrack? = nil) -> ConnectedStream {
        ConnectedStream(streamId: "s", isLocal: true, core: nil, video: track, audio: audio)
    }

    @Test func framesGoThroughTheFilterInOrder() async {
        let track = RecordingTrack()
        let stream = localStream(track)
        stream.videoFilter = Doubler()
        stream.send(videoFrame: nil)
        stream.send(videoFrame: frame(1))
        #expect(await track.journal.wait(for: "frame 2"))
        stream.send(videoFrame: frame(2))
        #expect(await track.journal.wait(for: "frame 4"))
        #expect(track.journal.entries == ["frame 2", "frame 4"])
    }

    // api 5.59
    @Test func aSlowFilterLosesTheNewestBeyondFour() async {
        let track = RecordingTrack()
        let stream = localStream(track)
        let gate = Gate()
        stream.videoFilter = gate
        stream.send(videoFrame: frame(1))
        #expect(await gate.journal.wait(for: "in"))
        for time in 2...9 { stream.send(videoFrame: frame(Int64(time))) }
        for _ in 0..<5 { gate.semaphore.signal() }
        #expect(await track.journal.wait { $0.count == 5 })
        #expect(track.journal.entries == (1...5).map { "frame \($0)" })
    }

    @Test func theEndDropsWhatWaits() async {
        let track = RecordingTrack()
        let stream = localStream(track)
        let gate = Gate()
        stream.videoFilter = gate
        for time in 1...3 { stream.send(videoFrame: frame(Int64(time))) }
        #expect(await gate.journal.wait(for: "in"))
        stream.terminate()
        stream.send(videoFrame: frame(4))
        gate.semaphore.signal()
        #expect(await track.journal.wait(for: "frame 1"))
        #expect(gate.journal.entries == ["in"])
    }

    @Test func streamsWithoutTracksAreOff() {
        let stream = localStream(nil)
        stream.videoEnabled = true
        stream.audioEnabled = true
        #expect(!stream.videoEnabled && !stream.audioEnabled && !stream.hasVideoTrack && !stream.hasAudioTrack)
        #expect(stream.remoteAudioVolume == nil)
        stream.send(videoFrame: frame(1))
    }

    // api 5.49
    @Test func volumeIsClampedAndStartsAtOne() {
        let audio = RecordingTrack()
        let stream = remoteStream(audio: audio)
        #expect(stream.remoteAudioVolume == 1)
        for (value, expected) in [(3.0, 3.0), (-1, 0), (99, 10)] {
            stream.remoteAudioVolume = value
            #expect(stream.remoteAudioVolume == expected)
        }
        stream.remoteAudioVolume = nil
        stream.remoteAudioVolume = .nan
        #expect(stream.remoteAudioVolume == 10)
        #expect(audio.journal.entries == ["volume 3.0", "volume 0.0", "volume 10.0"])
    }

    // EVT7: of two operations the one that began later decides, whatever order they finish in.
    // api 5.45
    @Test func laterOperationsWin() {
        let track = RecordingTrack()
        let stream = localStream(track)
        let journal = Journal()
        stream.handlers.onSwitchVideo = { journal.add("\($0)") }
        let early = stream.beginVideoOperation()
        let late = stream.beginVideoOperation()
        stream.setVideoEnabled(false, by: late)
        stream.setVideoEnabled(true, by: early)
        #expect(!stream.videoEnabled && journal.entries == ["false"])
        stream.setVideoEnabled(true, by: late)
        #expect(stream.videoEnabled && journal.entries == ["false", "true"])
        let rollback = stream.beginVideoOperation()
        stream.setVideoEnabled(false, by: rollback)
        stream.videoEnabled = false
        stream.setVideoEnabled(true, by: rollback)
        #expect(!stream.videoEnabled)
    }

    @Test func concurrentTogglesCountEveryChange() async {
        let track = RecordingTrack()
        let stream = Transfer(localStream(track))
        let journal = Journal()
        stream.value.handlers.onSwitchVideo = { journal.add("\($0)") }
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<4 {
                group.addTask { for _ in 0..<200 { stream.value.videoEnabled = number % 2 == 0 } }
            }
        }
        #expect(journal.entries.count == track.journal.entries.count)
        #expect(track.journal.entries.last.map { $0 == "enabled \(stream.value.videoEnabled)" } ?? true)
    }

    private final class Sink: RTCAudioTrackSink {
        let journal = Journal()
        let channels: Int
        init(_ channels: Int) { self.channels = channels }
        func onData(
            _ audioData: Data, bitsPerSample: Int, sampleRate: Int, numberOfChannels: Int, numberOfFrames: Int
        ) {
            journal.add("\([UInt8](audioData)) \(bitsPerSample) \(sampleRate) \(numberOfChannels) \(numberOfFrames)")
        }
        func preferredNumberOfChannels() -> Int { channels }
    }

    @Test func sinksGetSoundAsTheyWantIt() {
        let audio = RecordingTrack()
        let stream = remoteStream(video: nil, audio: audio)
        let native = Sink(-1)
        let mono = Sink(1)
        stream.addAudioTrackSink(native)
        stream.addAudioTrackSink(native)
        stream.addAudioTrackSink(mono)
        stream.receive(audio: AudioChunk(samples: [256, 768, -2, -4], sampleRate: 48_000, channels: 2))
        stream.removeAudioTrackSink(native)
        stream.removeAudioTrackSink(native)
        stream.receive(audio: AudioChunk(samples: [1], sampleRate: 8_000, channels: 1))
        stream.removeAudioTrackSink(mono)
        #expect(native.journal.entries == ["[0, 1, 0, 3, 254, 255, 252, 255] 16 48000 2 2"])
        #expect(mono.journal.entries == ["[0, 2, 253, 255] 16 48000 1 2", "[1, 0] 16 8000 1 1"])
        #expect(audio.journal.entries == ["tapped true", "tapped false"])
        #expect(AudioChunk(samples: [5], sampleRate: 8_000, channels: 1).mixed(to: 2).samples == [5, 5])
    }

    @Test func theEndLetsGoOfSinks() {
        let audio = RecordingTrack()
        let stream = remoteStream(video: nil, audio: audio)
        weak var weakSink: Sink?
        do {
            let sink = Sink(-1)
            weakSink = sink
            stream.addAudioTrackSink(sink)
        }
        #expect(weakSink != nil)
        stream.terminate()
        #expect(weakSink == nil && audio.journal.entries == ["tapped true", "tapped false"])
        stream.addAudioTrackSink(Sink(-1))
        #expect(audio.journal.entries.count == 2)
    }
}

@Suite(.serialized, .leavesNoObjects) struct StandInTests {
    @Test func timesCompareExactly() {
        #expect(CMTimeMake(value: 1, timescale: 3) < CMTimeMake(value: 334, timescale: 1000))
        #expect(CMTimeMake(value: 2, timescale: 4) == CMTimeMake(value: 1, timescale: 2))
        #expect(CMTime.invalid < .zero && .zero < CMTime.indefinite)
        #expect(CMTime(value: .max, timescale: 1) > CMTime(value: .max - 1, timescale: 1))
        #expect(CMTime(seconds: 1.5, preferredTimescale: 600).value == 900)
        #expect(!CMTime(seconds: .nan, preferredTimescale: 600).isValid)
        #expect(!CMTime(seconds: 1e300, preferredTimescale: 600).isValid)
        #expect(CMTimeMake(value: 3, timescale: 2).nanoseconds == 1_500_000_000)
        #expect(CMTimeMake(value: .max, timescale: 1).nanoseconds == nil)
        #expect(CMTimeGetSeconds(CMTimeMake(value: 1, timescale: 4)) == 0.25)
    }

    // DEV4: odd sizes round chroma up.
    @Test func oddPicturesKeepTheirLastColumnAndRow() {
        let picture = RTCNV12Buffer(width: 3, height: 3)
        #expect(picture.strideUV == 4)
        for index in 0..<8 { picture.dataUV[index] = UInt8(index + 1) }
        let converted = picture.toI420()
        #expect(converted.chromaWidth == 2 && converted.chromaHeight == 2)
        func samples(_ plane: UnsafeMutablePointer<UInt8>, _ stride: Int32) -> [UInt8] {
            (0..<4).map { plane[$0 / 2 * Int(stride) + $0 % 2] }
        }
        #expect(samples(converted.dataU, converted.strideU) == [1, 3, 5, 7])
        #expect(samples(converted.dataV, converted.strideV) == [2, 4, 6, 8])
        #expect(RTCI420Buffer(width: -1, height: 4).width == 0)
    }

    @Test func pixelsBecomePlanes() throws {
        let picture = CVPixelBuffer(bgraWidth: 2, height: 2)
        let (pixels, stride) = try #require(picture.bgraData)
        #expect(stride == 8)
        for index in 0..<4 {
            pixels[4 * index] = 0
            pixels[4 * index + 1] = 0
            pixels[4 * index + 2] = 255
        }
        let planes = RTCCVPixelBuffer(pixelBuffer: picture).toI420()
        // Red in BT.601, limited range: 82, 90, 240.
        #expect(planes.dataY[0] == 82 && planes.dataU[0] == 90 && planes.dataV[0] == 240)
    }

    @Test func sampleBuffersBecomeFrames() throws {
        let picture = CVPixelBuffer(i420: RTCI420Buffer(width: 4, height: 2))
        let buffer = try #require(
            CMSampleBuffer(pixelBuffer: picture, presentationTimeStamp: CMTimeMake(value: 1, timescale: 2)))
        let frame = try #require(VideoFrame(from: buffer))
        #expect(frame.width == 4 && frame.height == 2 && frame.timestamp?.value == 500_000_000)
        #expect(VideoFrame(from: CMSampleBuffer(presentationTimeStamp: .zero)) == nil)
        #expect(
            CMSampleBuffer(pixelBuffer: CVPixelBuffer(bgraWidth: 0, height: 1), presentationTimeStamp: .zero) == nil)
        #expect(CMSampleBufferGetImageBuffer(buffer) === picture)
        #expect(CMSampleBufferGetPresentationTimeStamp(buffer) == CMTimeMake(value: 1, timescale: 2))
    }

    @Test func aPeerConnectionIsClosedOnce() {
        let journal = Journal()
        let observed = ObservedPeer(onClose: { journal.add("close") })
        let peer = RTCPeerConnection(observed)
        observed.update(.connected)
        #expect(peer.connectionState == .connected)
        peer.close()
        peer.close()
        observed.update(.failed)
        #expect(peer.connectionState == .closed && journal.entries == ["close"])
        let other = ObservedPeer(onClose: { journal.add("late") })
        other.update(.closed)
        RTCPeerConnection(other).close()
        #expect(journal.entries == ["close"])
    }
}

@MainActor @Suite(.serialized, .leavesNoObjects) struct VideoViewTests {
    @Test func placementsFollowTheContentMode() {
        let picture = CGSize(width: 160, height: 90)
        let bounds = CGSize(width: 100, height: 100)
        let whole = CGRect(x: 0, y: 0, width: 160, height: 90)
        let everything = CGRect(x: 0, y: 0, width: 100, height: 100)
        #expect(
            VideoLayout.placement(of: picture, in: bounds, mode: .scaleToFill)
                == VideoLayout.Placement(source: whole, target: everything))
        #expect(
            VideoLayout.placement(of: picture, in: bounds, mode: .scaleAspectFit)
                == VideoLayout.Placement(source: whole, target: CGRect(x: 0, y: 21.875, width: 100, height: 56.25)))
        #expect(
            VideoLayout.placement(of: picture, in: bounds, mode: .topLeft)
                == VideoLayout.placement(of: picture, in: bounds, mode: .scaleAspectFit))
        let fill = VideoLayout.placement(of: picture, in: bounds, mode: .scaleAspectFill)
        #expect(fill?.target == everything && fill?.source == CGRect(x: 35, y: 0, width: 90, height: 90))
        #expect(VideoLayout.placement(of: .zero, in: bounds, mode: .scaleToFill) == nil)
    }

    @Test func viewsFollowTheirStreamByMode() async {
        for mode in [VideoViewConnectionMode.auto, .autoClear, .manual] {
            let view = VideoView()
            view.connectionMode = mode
            let stream = remoteStream()
            stream.videoRenderer = view
            await mainQueueTurn()
            await mainQueueTurn()
            #expect(view.isRendering == (mode != .manual))
            stream.videoEnabled = false
            await mainQueueTurn()
            #expect(!view.isRendering)
            stream.videoEnabled = true
            await mainQueueTurn()
            await mainQueueTurn()
            #expect(view.isRendering == (mode != .manual))
            stream.terminate()
            await mainQueueTurn()
            #expect(!view.isRendering)
        }
    }

    // A start is carried out later; what stops the view in between counts.
    @Test func aStopTakesAStartBackThatWaits() async {
        let view = VideoView()
        view.start()
        view.stop()
        await mainQueueTurn()
        #expect(!view.isRendering)
        view.start()
        view.stop()
        view.start()
        await mainQueueTurn()
        #expect(view.isRendering)
        let other = VideoView()
        let stream = remoteStream()
        stream.videoRenderer = other
        stream.videoRenderer = nil
        await mainQueueTurn()
        await mainQueueTurn()
        #expect(!other.isRendering)
    }

    @Test func theSizeOfTheLastFrameStays() async {
        let view = VideoView(frame: CGRect(x: 0, y: 0, width: 10, height: 10))
        #expect(view.contentMode == .scaleAspectFit && view.currentVideoFrameSize == nil)
        view.render(videoFrame: frame(1, 8, 6))
        #expect(view.currentVideoFrameSize == nil)
        view.start()
        await mainQueueTurn()
        view.render(videoFrame: frame(2, 8, 6, rotation: ._90))
        #expect(view.currentVideoFrameSize == CGSize(width: 6, height: 8))
        view.stop()
        view.render(videoFrame: frame(3, 2, 2))
        #expect(view.currentVideoFrameSize == CGSize(width: 6, height: 8))
    }

    @Test func backgroundsReplaceEachOther() {
        let view = VideoView()
        let first = UIView()
        let second = UIView()
        view.backgroundView = first
        view.backgroundView = second
        #expect(first.superview == nil && second.superview === view && view.subviews.count == 1)
        view.addSubview(first)
        view.clear()
        #expect(view.subviews.last === second)
    }

    // api 5.58
    // The timer goes with the mode and with the view.
    @Test func debugModeLeavesNothingBehind() {
        weak var weakView: VideoView?
        var lastTimer: (any DispatchSourceTimer)?
        do {
            let view = VideoView()
            weakView = view
            view.debugMode = true
            let timer = view.debugTimer
            #expect(view.debugMode && timer?.isCancelled == false)
            view.debugMode = true
            #expect(view.debugTimer as AnyObject === timer as AnyObject, "one timer at a time")
            view.debugMode = false
            #expect(!view.debugMode && timer?.isCancelled == true && view.debugTimer == nil)
            view.debugMode = true
            lastTimer = view.debugTimer
        }
        #expect(weakView == nil && lastTimer?.isCancelled == true)
    }

    @Test func viewsKeepATree() {
        let root = UIView(frame: CGRect(x: 1, y: 2, width: 3, height: 4))
        let child = UIView()
        root.addSubview(child)
        root.addSubview(root)
        #expect(child.superview === root && root.subviews.count == 1)
        #expect(root.bounds == CGRect(x: 0, y: 0, width: 3, height: 4))
        let other = UIView()
        other.addSubview(child)
        #expect(root.subviews.isEmpty && child.superview === other)
        child.removeFromSuperview()
        #expect(child.superview == nil)
    }
}
