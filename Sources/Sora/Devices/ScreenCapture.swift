import Foundation
internal import SoraFrames
internal import SoraLocking

/// The screen capture of one connection.
///
/// Invariant: each start has a number; pictures and results of an older start are dropped.
final class ScreenCapture: Sendable {
    private enum Phase {
        case idle
        case starting(number: Int)
        case running(number: Int, recorder: any ScreenRecorder)
        case stopping(waiters: [CheckedContinuation<Void, Never>])
    }
    private struct State {
        var phase = Phase.idle
        var lastNumber = 0
        weak var stream: ConnectedStream?
        var isProcessing = false
        var pacer = FramePacer(rate: 15)
    }
    private let state = Locked(State())
    private let owner: ScreenCaptureOwner
    private let queue = DispatchQueue(label: "sora.screen")

    init(owner: ScreenCaptureOwner = .shared) { self.owner = owner }

    /// True from the beginning of a start to the end of its stop.
    var isActive: Bool {
        state.withLock { state in
            if case .idle = state.phase { return false }
            return true
        }
    }

    /// True while a stop waits or runs.
    var isStopping: Bool {
        state.withLock { state in
            if case .stopping = state.phase { return true }
            return false
        }
    }

    /// True while a picture is being changed; others are dropped meanwhile.
    var isProcessing: Bool { state.withLock { $0.isProcessing } }

    /// The stream that gets the pictures.
    var stream: ConnectedStream? { state.withLock { $0.stream } }

    nonisolated(nonsending) func start(_ settings: ScreenCaptureSettings, on stream: ConnectedStream) async throws {
        let number = try state.withLockUnchecked { state -> Int in
            switch state.phase {
            case .idle: break
            case .running: throw Self.error("screen capture is already running")
            case .starting, .stopping: throw Self.error("screen capture operation is in progress")
            }
            state.lastNumber += 1
            state.phase = .starting(number: state.lastNumber)
            state.stream = stream
            state.isProcessing = false
            state.pacer = FramePacer(rate: settings.targetFPS)
            return state.lastNumber
        }
        guard owner.acquire(self) else {
            reset(number)
            throw Self.error("screen capture is owned by another connection")
        }
        let transformer = Transfer(settings.videoSampleBufferTransformer)
        let onRuntimeError = Transfer(settings.onRuntimeError)
        let recorder: any ScreenRecorder
        do {
            recorder = try await owner.backend.start(
                targetFPS: ScreenCaptureSettings.clamped(settings.targetFPS),
                onPicture: { [weak self] picture in self?.take(picture, number, transformer) },
                onRuntimeError: { onRuntimeError.value?($0) })
        } catch {
            let wasCancelled = !reset(number)
            throw wasCancelled ? Self.error("screen capture start was cancelled") : error
        }
        let outcome = state.withLock { state -> SoraError? in
            guard case .starting(number) = state.phase else {
                return Self.error("screen capture start was cancelled")
            }
            guard recorder.isRecording else {
                return Self.error("screen capture start succeeded without an active recorder")
            }
            state.phase = .running(number: number, recorder: recorder)
            return nil
        }
        if let outcome {
            await recorder.stop()
            reset(number)
            finishStop()
            throw outcome
        }
    }

    /// Stops the capture, and returns when it has stopped. Several callers wait for the same stop.
    nonisolated(nonsending) func stop() async {
        let recorder = state.withLock { state -> (any ScreenRecorder)? in
            guard case .running(_, let recorder) = state.phase else { return nil }
            state.phase = .stopping(waiters: [])
            return recorder
        }
        if let recorder {
            await recorder.stop()
            finishStop()
            return
        }
        await withCheckedContinuation { continuation in
            let isDone = state.withLock { state in
                switch state.phase {
                case .idle, .running: return true
                case .starting:
                    // The start sees that it was cancelled, stops what it opened and ends the wait.
                    state.phase = .stopping(waiters: [continuation])
                    return false
                case .stopping(let waiters):
                    state.phase = .stopping(waiters: waiters + [continuation])
                    return false
                }
            }
            if isDone { continuation.resume() }
        }
    }

    /// Back to idle if start `number` is still the one in progress; a stop that waits for it ends.
    @discardableResult
    private func reset(_ number: Int) -> Bool {
        let isCurrent = state.withLock { state in
            guard case .starting(number) = state.phase else { return false }
            state.phase = .idle
            return true
        }
        if isCurrent { owner.release(self) } else { finishStop() }
        return isCurrent
    }

    private func finishStop() {
        let waiters = state.withLock { state -> [CheckedContinuation<Void, Never>]? in
            guard case .stopping(let waiters) = state.phase else { return nil }
            state.phase = .idle
            return waiters
        }
        guard let waiters else { return }
        owner.release(self)
        for waiter in waiters { waiter.resume() }
    }

    private func isRunning(_ number: Int) -> Bool {
        state.withLock { state in
            if case .running(number, _) = state.phase { return true }
            return false
        }
    }

    /// One picture of the backend: paced, at most one in processing, changed by the application, sent.
    private func take(
        _ picture: SoraFrames.VideoFrame, _ number: Int,
        _ transformer: Transfer<((CMSampleBuffer) -> CMSampleBuffer?)?>
    ) {
        let arrival = Double(DispatchTime.now().uptimeNanoseconds) / 1e9
        let admitted = state.withLock { state in
            guard case .running(number, _) = state.phase, !state.isProcessing,
                state.pacer.admits(presentation: picture.timestamp, arrival: arrival)
            else { return false }
            state.isProcessing = true
            return true
        }
        guard admitted else { return }
        queue.async { [weak self] in
            guard let self, isRunning(number) else { return }
            let captured = CMSampleBuffer(picture)
            let result = transformer.value.map { $0(captured) } ?? captured
            let stream = state.withLock { state -> ConnectedStream? in
                guard case .running(number, _) = state.phase else { return nil }
                state.isProcessing = false
                return state.stream
            }
            if let result, let frame = VideoFrame(from: result) { stream?.send(videoFrame: frame) }
        }
    }

    private static func error(_ reason: String) -> SoraError { .mediaChannelError(reason: reason) }
}
