#if Media
import Dispatch
internal import SoraDevices
internal import SoraFrames
internal import SoraLocking

/// The screen of the X11 display.
struct SystemScreen: ScreenCaptureBackend {
    func start(
        targetFPS: Int, onPicture: @escaping @Sendable (SoraFrames.VideoFrame) -> Void,
        onRuntimeError: @escaping @Sendable (any Error) -> Void
    ) async throws -> any ScreenRecorder {
        var options = ScreenSource.Options()
        options.framerate = targetFPS
        let recorder = Recorder(ScreenSource(options: options))
        // Opening waits for the first picture: not on a thread of Swift's pool.
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            SoraDispatcher.camera.dispatchQueue.async {
                do {
                    try recorder.start(onPicture, onRuntimeError)
                    continuation.resume()
                } catch {
                    continuation.resume(throwing: error)
                }
            }
        }
        return recorder
    }

    private final class Recorder: ScreenRecorder {
        private let source: ScreenSource
        private let recording = Locked(false)

        init(_ source: ScreenSource) { self.source = source }

        var isRecording: Bool { recording.read() }

        func start(
            _ onPicture: @escaping @Sendable (SoraFrames.VideoFrame) -> Void,
            _ onRuntimeError: @escaping @Sendable (any Error) -> Void
        ) throws {
            do {
                try source.start { [weak self] event in
                    switch event {
                    case .video(let frame): onPicture(frame)
                    case .audio: break
                    case .ended: self?.recording.write(false)
                    case .failed(let error):
                        self?.recording.write(false)
                        onRuntimeError(SoraError.mediaChannelError(reason: error.description))
                    }
                }
                recording.write(true)
            } catch {
                throw SoraError.mediaChannelError(reason: error.description)
            }
        }

        func stop() async {
            await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
                SoraDispatcher.camera.dispatchQueue.async {
                    self.source.stop()
                    self.recording.write(false)
                    continuation.resume()
                }
            }
        }
    }
}
#endif
