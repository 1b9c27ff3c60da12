internal import SoraFrames
internal import SoraLocking

/// Where pictures of the screen come from.
protocol ScreenCaptureBackend: Sendable {
    /// Opens the capture; may wait for a person to permit it.
    ///
    /// - Parameters:
    ///   - onPicture: gets each picture, on a thread of the backend.
    ///   - onRuntimeError: is told about trouble while it runs.
    func start(
        targetFPS: Int, onPicture: @escaping @Sendable (SoraFrames.VideoFrame) -> Void,
        onRuntimeError: @escaping @Sendable (any Error) -> Void
    ) async throws -> any ScreenRecorder
}

/// A running capture of the screen.
protocol ScreenRecorder: AnyObject, Sendable {
    var isRecording: Bool { get }
    /// Returns when no picture comes any more.
    func stop() async
}

/// A system whose screen cannot be captured.
struct NoScreen: ScreenCaptureBackend {
    func start(
        targetFPS: Int, onPicture: @escaping @Sendable (SoraFrames.VideoFrame) -> Void,
        onRuntimeError: @escaping @Sendable (any Error) -> Void
    ) async throws -> any ScreenRecorder {
        throw SoraError.mediaChannelError(reason: "screen capture is not available on this system")
    }
}

/// Who in the process captures the screen: one connection at a time.
final class ScreenCaptureOwner: Sendable {
    static let shared = ScreenCaptureOwner(backend: DeviceBackends.screen)

    private struct State {
        var backend: any ScreenCaptureBackend
        weak var owner: ScreenCapture?
    }
    private let state: Locked<State>

    init(backend: any ScreenCaptureBackend) { state = Locked(State(backend: backend)) }

    var backend: any ScreenCaptureBackend {
        get { state.withLock { $0.backend } }
        set { state.write(newValue, to: \.backend) }
    }

    /// True if `capture` holds the screen from now on.
    func acquire(_ capture: ScreenCapture) -> Bool {
        state.withLock { state in
            guard state.owner == nil || state.owner === capture else { return false }
            state.owner = capture
            return true
        }
    }

    func release(_ capture: ScreenCapture) {
        state.withLock { if $0.owner === capture { $0.owner = nil } }
    }

    /// True if the screen is sent on `stream`, or is about to be.
    func captures(_ stream: any MediaStream) -> Bool {
        guard let owner = state.withLock({ $0.owner }) else { return false }
        return owner.isActive && owner.stream === stream
    }
}
