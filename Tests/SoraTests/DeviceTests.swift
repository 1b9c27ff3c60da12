import Foundation
import SoraLocking
import TestSupport
import Testing

@testable import Sora

@Suite(.serialized, .leavesNoObjects) struct CameraTests {
    private let bench = CameraBench()
    private var cameras: ScriptedCameras { bench.cameras }
    private var system: CameraSystem { bench.system }
    private var journal: Journal { bench.journal }

    private func run(_ operation: (@escaping ((any Error)?) -> Void) -> Void) async -> String {
        await bench.run(operation)
    }
    private func start(_ capturer: CameraVideoCapturer, rate: Int = 30) async -> String {
        await bench.start(capturer, rate: rate)
    }

    @Test func oneCameraRunsAtATime() async throws {
        let front = try #require(system.capturer(at: .front))
        let back = try #require(system.capturer(at: .back))
        #expect(front === system.capturer(at: .front) && system.capturer(at: .unspecified) == nil)
        #expect(await run { system.stop(front, $0) } == "Camera error: capturer is not the current camera")
        #expect(await run { system.restart(front, $0) } == "Camera error: failed to access format")
        #expect(await start(front) == "done")
        #expect(front.isRunning && front.captureSession.isRunning && system.current === front && front.frameRate == 30)
        #expect(await start(front) == "Camera error: another camera is already running")
        #expect(await start(back) == "Camera error: another camera is already running")
        #expect(await run { system.restart(back, $0) } == "Camera error: another camera is already running")
        #expect(
            await run { system.change(back, format: nil, frameRate: 5, $0) }
                == "Camera error: capturer is not the current camera")
        #expect(await run { system.stop(front, $0) } == "done")
        #expect(!front.isRunning && system.current == nil && front.format != nil)
        #expect(await run { system.restart(front, $0) } == "done")
        #expect(await run { system.change(front, format: nil, frameRate: 15, $0) } == "done")
        #expect(front.frameRate == 15)
        #expect(
            cameras.journal.entries == [
                "open f 1280x720@30", "close", "open f 1280x720@30", "close", "open f 1280x720@15",
            ])
    }

    @Test func completionComesBeforeTheHandler() async throws {
        let front = try #require(system.capturer(at: .front))
        _ = await start(front)
        _ = await run { system.restart(front, $0) }
        _ = await run { system.stop(front, $0) }
        #expect(
            journal.entries == ["done", "onStart f", "onStop f", "done", "onStart f", "done", "onStop f"])
    }

    @Test func framesGoThroughTheHandlerToTheStream() async throws {
        let front = try #require(system.capturer(at: .front))
        let track = RecordingTrack()
        let stream = ConnectedStream(streamId: "s", isLocal: true, core: nil, video: track, audio: nil)
        front.stream = stream
        _ = await start(front)
        cameras.state.withLock { $0.onFrame }?(ScriptedCameras.picture(1))
        #expect(await track.journal.wait(for: "frame 1"))
        system.handlers.onCapture = { capturer, _ in VideoFrame(ScriptedCameras.picture(capturer.isRunning ? 9 : 0)) }
        cameras.state.withLock { $0.onFrame }?(ScriptedCameras.picture(2))
        #expect(await track.journal.wait(for: "frame 9"))
        front.stream = nil
        cameras.state.withLock { $0.onFrame }?(ScriptedCameras.picture(3))
        #expect(track.journal.entries == ["frame 1", "frame 9"])
    }

    // DEV3: the wish survives cameras that cannot fulfil it.
    // api 5.39
    @Test func flippingKeepsTheRequestedSize() async throws {
        let front = try #require(system.capturer(at: .front))
        let back = try #require(system.capturer(at: .back))
        let stream = ConnectedStream(streamId: "s", isLocal: true, core: nil, video: RecordingTrack(), audio: nil)
        front.stream = stream
        _ = await start(front)
        for number in 0..<4 {
            #expect(await run { system.flip(number % 2 == 0 ? front : back, $0) } == "done")
            #expect(system.current === (number % 2 == 0 ? back : front))
            #expect(system.current?.stream === stream)
        }
        #expect(
            cameras.journal.entries.filter { $0.hasPrefix("open") } == [
                "open f 1280x720@30", "open b 640x480@15", "open f 1280x720@30", "open b 640x480@15",
                "open f 1280x720@30",
            ])
    }

    @Test func aFailedFlipGivesTheStreamBack() async throws {
        let front = try #require(system.capturer(at: .front))
        let back = try #require(system.capturer(at: .back))
        let stream = ConnectedStream(streamId: "s", isLocal: true, core: nil, video: RecordingTrack(), audio: nil)
        front.stream = stream
        #expect(await run { system.flip(front, $0) } == "Camera error: capturer is not the current camera")
        _ = await start(front)
        cameras.state.withLock { $0.failsToStart = true }
        #expect(await run { system.flip(front, $0) } == "Camera error: CameraVideoCapturer.start failed")
        #expect(front.stream === stream && back.stream == nil && system.current == nil)
        #expect(Array(journal.entries.suffix(2)) == ["onStop f", "Camera error: CameraVideoCapturer.start failed"])
    }

    // api 5.41
    @Test func oneFlipAtATime() async throws {
        let front = try #require(system.capturer(at: .front))
        _ = await start(front)
        let journal = journal
        let gate = DispatchSemaphore(value: 0)
        system.perform { gate.wait() }
        system.flip(front) { journal.add("first \($0?.localizedDescription ?? "done")") }
        system.flip(try #require(system.capturer(at: .back))) {
            journal.add("second \($0?.localizedDescription ?? "done")")
        }
        gate.signal()
        #expect(await journal.wait(for: "second Camera error: camera flip is already in progress"))
        #expect(journal.entries.contains("first done"))
    }

    @Test func withOneCameraThereIsNoOtherToFlipTo() async throws {
        cameras.state.withLock { _ = $0.devices.removeLast() }
        let front = try #require(system.capturer(at: .front))
        _ = await start(front)
        #expect(await run { system.flip(front, $0) } == "Camera error: back camera is not found")
        #expect(front.isRunning)
    }

    @Test func aStopThatFailsQuarantinesTheCamera() async throws {
        let front = try #require(system.capturer(at: .front))
        _ = await start(front)
        cameras.state.withLock { $0.failsToStop = true }
        #expect(await run { system.stop(front, $0) } != "done")
        #expect(front.isRunning)
        let quarantined = "Camera error: camera capture is quarantined after a cleanup failure"
        #expect(await run { system.restart(front, $0) } == quarantined)
        cameras.state.withLock { $0.failsToStop = false }
        #expect(await run { system.stop(front, $0) } == "done")
        #expect(await run { system.restart(front, $0) } == "done")
    }

    @Test func anUnpluggedCameraStops() async throws {
        let front = try #require(system.capturer(at: .front))
        _ = await start(front)
        let onFailure = try #require(cameras.state.withLock { $0.onFailure })
        onFailure(NSError(domain: "unplugged", code: 1))
        #expect(await journal.wait(for: "onStop f"))
        #expect(!front.isRunning && system.current == nil)
        // A failure of a run that is over does not concern the next one.
        _ = await start(front)
        onFailure(NSError(domain: "late", code: 1))
        await bench.turn()
        #expect(front.isRunning)
    }

    // DEV2 and api 2.16: the frame rate decides between formats of one size.
    // api 5.40
    @Test func formatsAreChosenBySizeThenRate() {
        let device = AVCaptureDevice(
            ScriptedCameras.device(
                "x", .front, [(640, 480, 30), (640, 480, 60.9), (1920, 1080, 5), (1280, 720, 29.97)]))
        func chosen(_ width: Int32, _ height: Int32, _ rate: Int?) -> Int? {
            let format = CameraVideoCapturer.format(width: width, height: height, for: device, frameRate: rate)
            return device.formats.firstIndex { $0 === format }
        }
        #expect(chosen(640, 480, 60) == 1)
        #expect(chosen(640, 480, nil) == 0)
        #expect(chosen(640, 480, 120) == 0)
        #expect(chosen(1900, 1000, 30) == 2)
        #expect(CameraVideoCapturer.maxFrameRate(60, for: device.formats[1]) == 60)
        #expect(CameraVideoCapturer.maxFrameRate(61, for: device.formats[1]) == 60)
        #expect(CameraVideoCapturer.maxFrameRate(30, for: device.formats[3]) == 29)
        let bare = AVCaptureDevice(ScriptedCameras.device("y", .front, []))
        #expect(CameraVideoCapturer.format(width: 1, height: 1, for: bare) == nil)
        let rateless = AVCaptureDevice.Format(width: 1, height: 1, ranges: [])
        #expect(CameraVideoCapturer.maxFrameRate(30, for: rateless) == nil)
    }

    // MARK: Hard mute

    @Test func hardMuteStopsAndRestartsTheSameCamera() async throws {
        let mute = VideoHardMute(cameras: system)
        let track = RecordingTrack()
        let stream = ConnectedStream(streamId: "s", isLocal: true, core: nil, video: track, audio: nil)
        let screen = ScreenCapture(owner: ScreenCaptureOwner(backend: NoScreen()))
        let back = try #require(system.capturer(at: .back))
        back.stream = stream
        _ = await start(back, rate: 15)
        try await mute.set(true, stream: stream, settings: .default, screen: screen)
        #expect(!stream.videoEnabled && system.current == nil)
        try await mute.set(true, stream: stream, settings: .default, screen: screen)
        try await mute.set(false, stream: stream, settings: .default, screen: screen)
        #expect(stream.videoEnabled && system.current === back)
        try await mute.set(false, stream: stream, settings: .default, screen: screen)
        #expect(track.journal.entries == ["enabled false", "enabled true"])
    }

    @Test func unmutingOpensTheCameraOfTheSettings() async throws {
        let mute = VideoHardMute(cameras: system)
        let stream = ConnectedStream(streamId: "s", isLocal: true, core: nil, video: RecordingTrack(), audio: nil)
        let screen = ScreenCapture(owner: ScreenCaptureOwner(backend: NoScreen()))
        try await mute.set(
            false, stream: stream, settings: CameraSettings(resolution: .vga480p, frameRate: 60), screen: screen)
        #expect(cameras.journal.entries == ["open f 640x480@60"] && system.current?.stream === stream)
        func reason(_ settings: CameraSettings, _ mute: VideoHardMute) async -> String {
            do {
                try await mute.set(false, stream: stream, settings: settings, screen: screen)
                return "done"
            } catch { return error.localizedDescription }
        }
        try await mute.set(true, stream: stream, settings: .default, screen: screen)
        let fresh = VideoHardMute(cameras: system)
        #expect(
            await reason(CameraSettings(isEnabled: false), fresh)
                == "MediaChannel error (cameraSettings.isEnabled is false)")
        #expect(
            await reason(CameraSettings(position: .unspecified), fresh)
                == "Camera error: CameraSettings.position should not be .unspecified")
        fresh.cancel()
        #expect(
            await reason(.default, fresh) == "MediaChannel error (video hard mute operation was cancelled)")
    }

    // api 2.17: a camera that is about to run for the connection excludes the screen, too.
    @Test func aCameraThatIsBeingOpenedIsKnown() async throws {
        let connection = ConnectionCamera(
            cameras: system, screenOwner: ScreenCaptureOwner(backend: NoScreen()))
        let stream = ConnectedStream(streamId: "s", isLocal: true, core: nil, video: RecordingTrack(), audio: nil)
        let gate = DispatchSemaphore(value: 0)
        system.perform { gate.wait() }
        #expect(!connection.isOpening)
        connection.open(.default, for: stream)
        #expect(connection.isOpening)
        gate.signal()
        await bench.turn()
        #expect(!connection.isOpening && system.current?.stream === stream)
        await withCheckedContinuation { continuation in connection.close(streams: [stream]) { continuation.resume() } }
        #expect(system.current == nil)
    }

    // api 5.43
    @Test func aFailedMuteGivesThePictureBack() async throws {
        let mute = VideoHardMute(cameras: system)
        let stream = ConnectedStream(streamId: "s", isLocal: true, core: nil, video: RecordingTrack(), audio: nil)
        let screen = ScreenCapture(owner: ScreenCaptureOwner(backend: NoScreen()))
        let front = try #require(system.capturer(at: .front))
        front.stream = stream
        _ = await start(front)
        let switches = Journal()
        stream.handlers.onSwitchVideo = { switches.add("\($0)") }
        cameras.state.withLock { $0.failsToStop = true }
        await #expect(throws: NSError.self) {
            try await mute.set(true, stream: stream, settings: .default, screen: screen)
        }
        #expect(stream.videoEnabled && switches.entries == ["false", "true"])
    }
}

@Suite(.serialized, .leavesNoObjects) struct ScreenCaptureTests {
    private let screen = ScriptedScreen()
    private let owner: ScreenCaptureOwner
    private let capture: ScreenCapture
    private let track = RecordingTrack()
    private let stream: ConnectedStream

    init() {
        owner = ScreenCaptureOwner(backend: screen)
        capture = ScreenCapture(owner: owner)
        stream = ConnectedStream(streamId: "s", isLocal: true, core: nil, video: track, audio: nil)
    }

    private func reason(_ body: () async throws -> Void) async -> String {
        do {
            try await body()
            return "done"
        } catch { return error.localizedDescription }
    }
    @Test func oneConnectionAtATime() async throws {
        #expect(!capture.isActive)
        try await capture.start(ScreenCaptureSettings(targetFPS: 30), on: stream)
        #expect(capture.isActive && owner.captures(stream))
        #expect(
            await reason { try await capture.start(.init(), on: stream) }
                == "MediaChannel error (screen capture is already running)")
        let other = ScreenCapture(owner: owner)
        #expect(
            await reason { try await other.start(.init(), on: stream) }
                == "MediaChannel error (screen capture is owned by another connection)")
        #expect(!other.isActive)
        await capture.stop()
        await capture.stop()
        #expect(!capture.isActive && !owner.captures(stream))
        try await other.start(.init(), on: stream)
        await other.stop()
        #expect(screen.journal.entries == ["start 30", "stop", "start 15", "stop"])
    }

    @Test func aStopCancelsAStart() async {
        let gate = OneShot<Void>()
        screen.startGate.write(gate)
        let test = Transfer(self)
        let starting = Task.detached {
            await test.value.reason { try await test.value.capture.start(.init(), on: test.value.stream) }
        }
        #expect(await screen.journal.wait(for: "start 15"))
        #expect(capture.isActive)
        #expect(
            await reason { try await capture.start(.init(), on: stream) }
                == "MediaChannel error (screen capture operation is in progress)")
        let stopping = Task.detached { await test.value.capture.stop() }
        #expect(await eventually { capture.isStopping })
        gate.settle(.success(()))
        await stopping.value
        #expect(await starting.value == "MediaChannel error (screen capture start was cancelled)")
        #expect(screen.journal.entries == ["start 15", "stop"])
        #expect(!capture.isActive)
    }

    @Test func aRecorderThatDoesNotRunIsAnError() async {
        screen.isRecordingSlot.write(false)
        #expect(
            await reason { try await capture.start(.init(), on: stream) }
                == "MediaChannel error (screen capture start succeeded without an active recorder)")
        #expect(!capture.isActive)
        let none = ScreenCapture(owner: ScreenCaptureOwner(backend: NoScreen()))
        #expect(
            await reason { try await none.start(.init(), on: stream) }
                == "MediaChannel error (screen capture is not available on this system)")
        #expect(!none.isActive)
    }

    @Test func picturesArePacedAndChanged() async throws {
        let changed = Journal()
        try await capture.start(
            ScreenCaptureSettings(
                targetFPS: 10,
                videoSampleBufferTransformer: { buffer in
                    let time = buffer.presentationTimeStamp.value / 1_000_000
                    changed.add("\(time)")
                    return time == 200 ? nil : buffer
                }), on: stream)
        let handler = screen.onPicture.read()
        let show = try #require(handler)
        for time in [0, 50, 100, 160, 200, 300] as [Int64] {
            let before = changed.entries.count
            show(ScriptedScreen.picture(time))
            if [0, 100, 200, 300].contains(time) {
                #expect(await changed.wait { $0.count == before + 1 })
                if time != 200 { #expect(await track.journal.wait(for: "frame \(time * 1_000_000)")) }
                #expect(await eventually { !capture.isProcessing })
            }
        }
        #expect(changed.entries == ["0", "100", "200", "300"])
        #expect(track.journal.entries == ["frame 0", "frame 100000000", "frame 300000000"])
        await capture.stop()
        show(ScriptedScreen.picture(1_000))
        #expect(changed.entries.count == 4)
    }

    @Test func pacingFallsBackToTheClock() {
        var pacer = FramePacer(rate: 10)
        let steps: [(Int64?, Double, Bool)] = [
            (nil, 0, true), (nil, 0.05, false), (nil, 0.1, true), (10_000_000_000, 0.3, true),
            (5_000_000_000, 0.35, false), (5_000_000_000, 0.4, true), (5_090_000_000, 0.6, false),
            (5_100_000_000, 0.41, true), (.min, 0.42, false), (.max, 0.43, true), (.min, 0.44, false),
        ]
        for (presentation, arrival, isAdmitted) in steps {
            let answer = pacer.admits(presentation: presentation, arrival: arrival)
            #expect(answer == isAdmitted, "at \(arrival)")
        }
    }
}

@Suite(.serialized, .leavesNoObjects) struct AudioSessionTests {
    @Test func modesSetCategoryModeAndOutput() throws {
        let session = RTCAudioSession()
        try AudioModeChange.apply(.voiceChat(output: .speaker), options: [.allowAirPlay], to: session)
        #expect(session.category == .playAndRecord && session.mode == .voiceChat && session.portOverride == .speaker)
        #expect(session.categoryOptions == [.allowAirPlay, .defaultToSpeaker])
        // Coming back from the speaker has an effect.
        try AudioModeChange.apply(.default(category: .playback, output: .default), options: [], to: session)
        #expect(session.category == .playback && session.mode == .default && session.portOverride == .none)
        #expect(!session.allowsCapture && session.allowsPlayout)
        try AudioModeChange.apply(.videoChat, options: [.mixWithOthers], to: session)
        #expect(session.category == .playAndRecord && session.mode == .videoChat)
        #expect(session.categoryOptions == [.mixWithOthers] && session.allowsCapture)
        try AudioModeChange.apply(.default(category: .record, output: .speaker), options: [], to: session)
        #expect(!session.allowsPlayout && session.categoryOptions == [.defaultToSpeaker])
    }

    @Test func manualAudioDecidesAboutDevices() {
        let session = RTCAudioSession()
        let journal = Journal()
        let id = session.addObserver { journal.add("change") }
        #expect(session.allowsDevices)
        session.useManualAudio = true
        #expect(!session.allowsDevices)
        session.isAudioEnabled = true
        #expect(session.allowsDevices)
        session.removeObserver(id)
        session.isAudioEnabled = false
        #expect(journal.entries == ["change", "change"])
    }

    @Test func configurationBlocksMayUseTheSession() {
        var runs = 0
        Sora(makeDriver: Engine.makeDriver).configureAudioSession {
            RTCAudioSession.sharedInstance().lockForConfiguration()
            RTCAudioSession.sharedInstance().unlockForConfiguration()
            runs += 1
        }
        #expect(runs == 1)
    }

    @Test func routeChangesReachEveryInstance() async throws {
        let stage = Stage()
        let journal = stage.journal
        let events = stage.sora.subscribeEvents()
        stage.sora.handlers.onChangeAudioRoute = { session, reason, previous in
            journal.add("\(session.currentRoute.outputs.map(\.portName)) \(reason.rawValue) \(previous.outputs.count)")
        }
        let observer = AudioRouteObserver()
        observer.add(stage.sora)
        let session = RTCAudioSession()
        let port = AVAudioSessionPortDescription(
            portName: "Speakers", portType: .builtInSpeaker, uid: "sink",
            channels: [
                AVAudioSessionChannelDescription(channelName: "L", channelNumber: 1, owningPortUID: "sink")
            ])
        let route = AVAudioSessionRouteDescription(inputs: [], outputs: [port])
        observer.routeChanged(to: route, reason: .routeConfigurationChange, session: session)
        observer.routeChanged(to: route, reason: .newDeviceAvailable, session: session)
        #expect(await journal.wait(for: #"["Speakers"] 1 1"#))
        for await event in events {
            let change = try #require(event.audioRoute)
            #expect(event.kind == .audioRouteChanged && event.transportEpoch == nil && event.sequence == 1)
            #expect(change.reason == .newDeviceAvailable)
            let snapshot = try #require(change.previousRoute.outputs.first)
            #expect(snapshot.name == "Speakers" && snapshot.portType == "Speaker" && snapshot.uid == "sink")
            #expect(snapshot.channelCount == 1 && !snapshot.hasDataSource)
            break
        }
    }
}
