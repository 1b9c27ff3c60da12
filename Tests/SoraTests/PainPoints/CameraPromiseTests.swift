import Foundation
import SoraLocking
import Testing

@testable import Sora

/// What applications are promised about cameras, hard mute and the screen.
@Suite(.serialized, .leavesNoObjects) struct CameraPromiseTests {
    private let bench = CameraBench()
    private var cameras: ScriptedCameras { bench.cameras }
    private var system: CameraSystem { bench.system }
    private let noScreen = ScreenCapture(owner: ScreenCaptureOwner(backend: NoScreen()))

    private func stream(_ track: RecordingTrack = RecordingTrack()) -> ConnectedStream {
        ConnectedStream(streamId: "s", isLocal: true, core: nil, video: track, audio: nil)
    }

    // api 5.41
    @Test func theStreamIsHandedOverBeforeTheOtherCameraStarts() async throws {
        let front = try #require(system.capturer(at: .front))
        let track = RecordingTrack()
        let local = stream(track)
        front.stream = local
        #expect(await bench.start(front) == "done")
        let oldCamera = try #require(cameras.state.withLock { $0.onFrame })
        cameras.state.withLock { $0.firstFrame = ScriptedCameras.picture(7) }
        #expect(await bench.run { system.flip(front, $0) } == "done")
        // The very first picture already goes to the stream, and nothing of the old camera does any more.
        #expect(await track.journal.wait(for: "frame 7"))
        oldCamera(ScriptedCameras.picture(8))
        cameras.state.withLock { $0.onFrame }?(ScriptedCameras.picture(9))
        #expect(await track.journal.wait(for: "frame 9"))
        #expect(track.journal.entries == ["frame 7", "frame 9"])
    }

    // api 5.41
    @Test func flipsAtTheSameTimeDoNotMix() async throws {
        let front = try #require(system.capturer(at: .front))
        let back = try #require(system.capturer(at: .back))
        let local = stream()
        front.stream = local
        #expect(await bench.start(front) == "done")
        let results = Journal()
        let pair = Transfer((front, back))
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<40 {
                group.addTask { [system] in
                    system.flip(number % 2 == 0 ? pair.value.0 : pair.value.1) {
                        results.add($0?.localizedDescription ?? "done")
                    }
                }
            }
        }
        #expect(await results.wait { $0.count == 40 })
        await bench.turn()
        // Never two cameras, never one closed that was not open.
        let kinds = cameras.journal.entries.map { $0.hasPrefix("open") ? "open" : "close" }
        #expect(kinds == kinds.indices.map { $0 % 2 == 0 ? "open" : "close" } && kinds.last == "open")
        #expect(kinds.filter { $0 == "close" }.count == results.entries.filter { $0 == "done" }.count)
        #expect(system.current?.stream === local)
    }

    // api 5.42
    @Test func whatAHardMuteRemembersBelongsToItsConnection() async throws {
        let (first, second) = (VideoHardMute(cameras: system), VideoHardMute(cameras: system))
        let (mine, other) = (stream(), stream())
        let back = try #require(system.capturer(at: .back))
        back.stream = mine
        let format = try #require(CameraVideoCapturer.format(width: 640, height: 480, for: back.device))
        #expect(await bench.run { system.start(back, format: format, frameRate: 15, $0) } == "done")
        try await first.set(true, stream: mine, settings: .default, screen: noScreen)
        // The second connection opens what its own settings say, not the camera that the first one stopped.
        try await second.set(
            false, stream: other, settings: CameraSettings(resolution: .vga480p, frameRate: 60), screen: noScreen)
        #expect(system.current?.position == .front && system.current?.stream === other)
        // Muting the first again finds nothing of its own to stop.
        try await first.set(true, stream: mine, settings: .default, screen: noScreen)
        #expect(system.current?.stream === other)
        try await second.set(true, stream: other, settings: .default, screen: noScreen)
        try await first.set(false, stream: mine, settings: .default, screen: noScreen)
        #expect(system.current === back && back.stream === mine && back.frameRate == 15)
        #expect(
            cameras.journal.entries == [
                "open b 640x480@15", "close", "open f 640x480@60", "close", "open b 640x480@15",
            ]
        )
    }

    /// A redirect that comes late makes a new local stream.
    @Test func aMutedCameraStaysClosedAfterARedirect() async throws {
        let camera = ConnectionCamera(cameras: system, screenOwner: ScreenCaptureOwner(backend: NoScreen()))
        let (before, after) = (stream(), stream())
        camera.open(CameraSettings(resolution: .vga480p), for: before)
        await bench.turn()
        try await camera.hardMute.set(true, stream: before, settings: .default, screen: noScreen)
        camera.open(CameraSettings(resolution: .vga480p), for: after)
        await bench.turn()
        #expect(cameras.journal.entries == ["open f 640x480@30", "close"])
        #expect(!after.videoEnabled && !camera.isOpening)
        try await camera.hardMute.set(false, stream: after, settings: .default, screen: noScreen)
        #expect(system.current?.stream === after && after.videoEnabled)
        #expect(cameras.journal.entries.suffix(1) == ["open f 640x480@30"])
    }

    // api 5.44
    @Test func aCameraIsForgottenOnceItRunsAgain() async throws {
        let mute = VideoHardMute(cameras: system)
        let local = stream()
        let (front, back) = (try #require(system.capturer(at: .front)), try #require(system.capturer(at: .back)))
        back.stream = local
        let format = try #require(CameraVideoCapturer.format(width: 640, height: 480, for: back.device))
        #expect(await bench.run { system.start(back, format: format, frameRate: 15, $0) } == "done")
        for byApplication in [false, true] {
            try await mute.set(true, stream: local, settings: .default, screen: noScreen)
            // The application may start the camera itself; unmuting then finds it running.
            if byApplication { #expect(await bench.run { system.restart(back, $0) } == "done") }
            try await mute.set(false, stream: local, settings: .default, screen: noScreen)
            #expect(system.current === back && local.videoEnabled)
        }
        // Nothing is remembered: once the application has stopped the camera, unmuting opens that of the settings.
        #expect(await bench.run { system.stop(back, $0) } == "done")
        try await mute.set(false, stream: local, settings: CameraSettings(resolution: .hd720p), screen: noScreen)
        #expect(system.current === front)
    }

    // api 5.45
    @Test func aSoftMuteThatBeganLaterOutlastsAHardMute() async throws {
        let mute = VideoHardMute(cameras: system)
        let track = RecordingTrack()
        let local = stream(track)
        let switches = Journal()
        local.handlers.onSwitchVideo = { switches.add("\($0)") }
        let (objects, screen) = (Transfer((mute, local)), noScreen)
        let blocked = DispatchSemaphore(value: 0)
        system.perform { blocked.wait() }
        let muting = Task {
            try await objects.value.0.set(true, stream: objects.value.1, settings: .default, screen: screen)
        }
        #expect(await switches.wait(for: "false"))
        local.videoEnabled = true
        blocked.signal()
        // The one that lost succeeds all the same.
        try await muting.value
        #expect(local.videoEnabled)

        let opening = DispatchSemaphore(value: 0)
        cameras.state.withLock { $0.startGate = opening }
        let unmuting = Task {
            try await objects.value.0.set(false, stream: objects.value.1, settings: .default, screen: screen)
        }
        #expect(await cameras.journal.wait { $0.contains { $0.hasPrefix("open") } })
        local.videoEnabled = false
        opening.signal()
        try await unmuting.value
        #expect(!local.videoEnabled && system.current?.stream === local)
        #expect(track.journal.entries == ["enabled false", "enabled true", "enabled false"])
        #expect(switches.entries == ["false", "true", "false"])
    }

    // api 5.54
    @Test func picturesOfAnOlderScreenCaptureReachNobody() async throws {
        let screen = ScriptedScreen()
        let track = RecordingTrack()
        let local = stream(track)
        let capture = ScreenCapture(owner: ScreenCaptureOwner(backend: screen))
        try await capture.start(ScreenCaptureSettings(), on: local)
        let old = try #require(screen.onPicture.read())
        old(ScriptedScreen.picture(0))
        #expect(await track.journal.wait(for: "frame 0"))
        await capture.stop()
        let seen = Journal()
        try await capture.start(
            ScreenCaptureSettings(videoSampleBufferTransformer: { buffer in
                seen.add("\(buffer.presentationTimeStamp.seconds)")
                return buffer
            }), on: local)
        old(ScriptedScreen.picture(1_000))
        screen.onPicture.read()?(ScriptedScreen.picture(2_000))
        #expect(await track.journal.wait(for: "frame 2000000000"))
        old(ScriptedScreen.picture(3_000))
        screen.onPicture.read()?(ScriptedScreen.picture(4_000))
        #expect(await track.journal.wait(for: "frame 4000000000"))
        #expect(track.journal.entries == ["frame 0", "frame 2000000000", "frame 4000000000"])
        #expect(seen.entries == ["2.0", "4.0"])
        await capture.stop()
    }

    // api 5.54
    @Test func aPictureThatWasBeingChangedWhenTheCaptureEndedIsNotSent() async throws {
        let screen = ScriptedScreen()
        let track = RecordingTrack()
        let local = stream(track)
        let capture = ScreenCapture(owner: ScreenCaptureOwner(backend: screen))
        let gate = DispatchSemaphore(value: 0)
        let seen = Journal()
        try await capture.start(
            ScreenCaptureSettings(videoSampleBufferTransformer: { buffer in
                seen.add("in")
                gate.wait()
                return buffer
            }), on: local)
        let old = try #require(screen.onPicture.read())
        old(ScriptedScreen.picture(0))
        #expect(await seen.wait(for: "in"))
        await capture.stop()
        try await capture.start(ScreenCaptureSettings(), on: local)
        // One of the new capture waits behind it.
        screen.onPicture.read()?(ScriptedScreen.picture(1_000))
        gate.signal()
        #expect(await track.journal.wait(for: "frame 1000000000"))
        #expect(track.journal.entries == ["frame 1000000000"])
        await capture.stop()
    }

    // api 5.55
    @Test @MainActor func screenCaptureCallsBackOnAnyThread() async throws {
        let screen = ScriptedScreen()
        let track = RecordingTrack()
        let local = stream(track)
        let capture = ScreenCapture(owner: ScreenCaptureOwner(backend: screen))
        let seen = Journal()
        // Installed from the main actor, as view controllers do it.
        try await capture.start(
            ScreenCaptureSettings(
                videoSampleBufferTransformer: { @Sendable buffer in
                    seen.add("transformed \(isOnMainQueue())")
                    return buffer
                }, onRuntimeError: { @Sendable error in seen.add(error.localizedDescription) }), on: local)
        let show = try #require(screen.onPicture.read())
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                show(ScriptedScreen.picture(0))
                screen.onRuntimeError.read()?(SoraError.mediaChannelError(reason: "trouble"))
                continuation.resume()
            }
        }
        #expect(await track.journal.wait(for: "frame 0"))
        #expect(Set(seen.entries) == ["transformed false", "MediaChannel error (trouble)"])
        await capture.stop()
    }
}
