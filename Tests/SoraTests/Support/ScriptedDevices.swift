import Foundation
import SoraFrames
import SoraLocking

@testable import Sora

/// Cameras that a test plugs in and breaks.
final class ScriptedCameras: CameraBackend {
    struct State {
        var devices: [CameraDescription] = []
        var failsToStart = false
        var failsToStop = false
        /// Comes while the camera is being opened.
        var firstFrame: SoraFrames.VideoFrame?
        /// Holds a start back until it is signalled.
        var startGate: DispatchSemaphore?
        var onFrame: (@Sendable (SoraFrames.VideoFrame) -> Void)?
        var onFailure: (@Sendable (any Error) -> Void)?
    }
    let state: Locked<State>
    let journal = Journal()

    init(_ devices: [CameraDescription]) { state = Locked(State(devices: devices)) }

    func devices() -> [CameraDescription] { state.withLock { $0.devices } }
    func start(
        camera: String, size: CameraDescription.Size, frameRate: Int,
        onFrame: @escaping @Sendable (SoraFrames.VideoFrame) -> Void,
        onFailure: @escaping @Sendable (any Error) -> Void
    ) throws -> any CameraCapture {
        if state.withLock({ $0.failsToStart }) { throw NSError(domain: "device", code: 7) }
        state.withLock { state in
            state.onFrame = onFrame
            state.onFailure = onFailure
        }
        journal.add("open \(camera) \(size.width)x\(size.height)@\(frameRate)")
        state.withLock { $0.startGate }?.wait()
        if let frame = state.withLock({ $0.firstFrame }) { onFrame(frame) }
        return Capture(self)
    }
    final class Capture: CameraCapture {
        private let cameras: ScriptedCameras
        init(_ cameras: ScriptedCameras) { self.cameras = cameras }
        func stop() throws {
            if cameras.state.withLock({ $0.failsToStop }) { throw NSError(domain: "device", code: 8) }
            cameras.journal.add("close")
        }
    }

    static func device(
        _ id: String, _ position: CameraDescription.Position, _ formats: [(Int, Int, Double)]
    ) -> CameraDescription {
        CameraDescription(
            id: id, name: id, position: position,
            formats: formats.map { width, height, rate in
                CameraDescription.Format(
                    size: CameraDescription.Size(width: width, height: height), frameRates: [1...rate])
            })
    }

    /// A small picture.
    static func picture(_ nanoseconds: Int64) -> SoraFrames.VideoFrame {
        SoraFrames.VideoFrame(buffer: .black(width: 2, height: 2), timestamp: nanoseconds)
    }
}

/// Two cameras of which the one at the back can do little, and everything that is done with them.
struct CameraBench {
    let cameras: ScriptedCameras
    let system: CameraSystem
    let journal = Journal()

    init() {
        let front = ScriptedCameras.device("f", .front, [(1280, 720, 30), (640, 480, 60)])
        let back = ScriptedCameras.device("b", .back, [(640, 480, 15)])
        cameras = ScriptedCameras([front, back])
        system = CameraSystem(backend: cameras, queue: DispatchQueue(label: "test.camera"))
        let journal = journal
        system.handlers.onStart = { journal.add("onStart \($0.device.uniqueID)") }
        system.handlers.onStop = { journal.add("onStop \($0.device.uniqueID)") }
    }

    func run(_ operation: (@escaping ((any Error)?) -> Void) -> Void) async -> String {
        let journal = journal
        let text = await withCheckedContinuation { continuation in
            operation { error in
                let text = error?.localizedDescription ?? "done"
                journal.add(text)
                continuation.resume(returning: text)
            }
        }
        // What an operation does after its completion handler is over when the next one begins.
        await turn()
        return text
    }

    func start(_ capturer: CameraVideoCapturer, rate: Int = 30) async -> String {
        let format = CameraVideoCapturer.format(width: 1280, height: 720, for: capturer.device)!
        return await run { system.start(capturer, format: format, frameRate: rate, $0) }
    }

    /// Returns after everything that was asked of the cameras before.
    func turn() async { await system.turn() }
}

extension CameraSystem {
    /// Returns after everything that was asked of the cameras before.
    func turn() async { await withCheckedContinuation { continuation in perform { continuation.resume() } } }
}

/// A microphone that a test opens and holds.
final class ScriptedMicrophone: MicrophoneBackend {
    let journal = Journal()
    let failsToStart = Locked(false)
    /// Holds a stop back until it is signalled.
    let stopGate = Locked<DispatchSemaphore?>(nil)
    let isControllable: Bool
    private let listener = Locked<(@Sendable (AudioChunk) -> Void)?>(nil)

    init(isControllable: Bool = true) { self.isControllable = isControllable }

    func start(
        processesVoice: Bool, onSound: @escaping @Sendable (AudioChunk) -> Void
    ) throws -> any MicrophoneCapture {
        if failsToStart.read() {
            journal.add("refuse")
            throw NSError(domain: "microphone", code: 1)
        }
        journal.add(processesVoice ? "open" : "open plain")
        listener.write(onSound)
        return Capture(self)
    }

    /// Lets the connection hear something.
    func speak() { listener.read()?(AudioChunk(samples: [1, 2], sampleRate: 48_000, channels: 1)) }

    private final class Capture: MicrophoneCapture {
        private let microphone: ScriptedMicrophone
        init(_ microphone: ScriptedMicrophone) { self.microphone = microphone }
        func stop() {
            microphone.journal.add("closing")
            microphone.stopGate.read()?.wait()
            microphone.journal.add("closed")
        }
    }
}

/// A speaker that notes when it is opened and what it plays.
final class ScriptedSpeaker: SpeakerBackend {
    let journal = Journal()
    func open() throws -> any SpeakerStream {
        journal.add("open")
        return Stream(journal)
    }
    private final class Stream: SpeakerStream {
        private let journal: Journal
        init(_ journal: Journal) { self.journal = journal }
        deinit { journal.add("close") }
        func play(_ chunk: AudioChunk) { journal.add("play \(chunk.channels)") }
    }
}

/// A screen whose pictures a test makes.
final class ScriptedScreen: ScreenCaptureBackend, ScreenRecorder {
    let journal = Journal()
    let isRecordingSlot = Locked(true)
    let onPicture = Locked<(@Sendable (SoraFrames.VideoFrame) -> Void)?>(nil)
    let onRuntimeError = Locked<(@Sendable (any Error) -> Void)?>(nil)
    let startGate = Locked<OneShot<Void>?>(nil)
    let stopGate = Locked<OneShot<Void>?>(nil)
    var isRecording: Bool { isRecordingSlot.read() }
    func start(
        targetFPS: Int, onPicture: @escaping @Sendable (SoraFrames.VideoFrame) -> Void,
        onRuntimeError: @escaping @Sendable (any Error) -> Void
    ) async throws -> any ScreenRecorder {
        journal.add("start \(targetFPS)")
        if let gate = startGate.read() { try await gate.value() }
        self.onPicture.write(onPicture)
        self.onRuntimeError.write(onRuntimeError)
        return self
    }
    func stop() async {
        journal.add("stop")
        if let gate = stopGate.read() { try? await gate.value() }
    }
    static func picture(_ milliseconds: Int64) -> SoraFrames.VideoFrame {
        ScriptedCameras.picture(milliseconds * 1_000_000)
    }
}

/// Returns after everything that was put into the queue for sound before.
func audioQueueTurn() async {
    await withCheckedContinuation { continuation in SoraDispatcher.async(on: .audio) { continuation.resume() } }
}
