import Foundation
internal import SoraLocking

/// Where the sound of the microphone comes from.
protocol MicrophoneBackend: Sendable {
    /// False: there is nothing that could be switched on and off.
    var isControllable: Bool { get }
    /// Opens the microphone; blocks until sound comes or it has failed.
    ///
    /// - Parameter processesVoice: whether echo, noise and loudness are to be dealt with, as far as the machine can.
    func start(
        processesVoice: Bool, onSound: @escaping @Sendable (AudioChunk) -> Void
    ) throws -> any MicrophoneCapture
}

/// An open microphone.
protocol MicrophoneCapture: AnyObject, Sendable {
    /// Closes the device; blocks until no sound comes any more.
    func stop()
}

/// A system without sound.
struct NoMicrophone: MicrophoneBackend {
    var isControllable: Bool { false }
    func start(
        processesVoice: Bool, onSound: @escaping @Sendable (AudioChunk) -> Void
    ) throws -> any MicrophoneCapture {
        throw SoraError.mediaChannelError(reason: "no microphone support in this build")
    }
}

/// The microphone of one sending connection: open while it is wanted, not muted, and the audio session permits it.
final class ConnectionMicrophone: Sendable {
    /// The backend of the process. Replaced when the devices of a build are there, and in tests.
    static let backend = Locked<any MicrophoneBackend>(DeviceBackends.microphone)

    private struct State {
        var isHardMuted: Bool
        weak var stream: ConnectedStream?
        var isWanted = false
        var capture: (any MicrophoneCapture)?
        var observer: Int?
        var isClosed = false
    }
    private let state: Locked<State>
    /// Opening and closing, one after the other.
    private let operations = NSLock()
    private let session: any AudioPolicy
    private let processesVoice: Bool
    private let ownBackend: (any MicrophoneBackend)?
    private var device: any MicrophoneBackend { ownBackend ?? Self.backend.read() }

    /// - Parameters:
    ///   - processesVoice: whether the session may ask for it; fixed for the life of the connection.
    ///   - backend: nil stands for that of the process.
    init(
        isHardMuted: Bool, processesVoice: Bool = true, session: any AudioPolicy = ProcessAudio.policy,
        backend: (any MicrophoneBackend)? = nil
    ) {
        state = Locked(State(isHardMuted: isHardMuted))
        self.session = session
        self.processesVoice = processesVoice
        ownBackend = backend
    }

    /// The local stream is there: opens the microphone in the background. A failure is logged and concerns nobody else.
    func open(for stream: ConnectedStream) {
        state.withLockUnchecked { state in
            state.stream = stream
            state.isWanted = true
        }
        if state.withLock({ $0.observer == nil && !$0.isClosed }) {
            let id = session.addObserver { [weak self] in
                guard let self else { return }
                SoraDispatcher.audio.dispatchQueue.async { self.apply() }
            }
            state.withLock { $0.observer = id }
        }
        SoraDispatcher.audio.dispatchQueue.async { self.apply() }
    }

    /// Closes or opens the device itself, and returns when that is done.
    func setHardMute(_ isMuted: Bool) -> SoraError? {
        guard device.isControllable else {
            return .mediaChannelError(reason: "setAudioHardMute is not supported")
        }
        let before = state.withLock { state in
            defer { state.isHardMuted = isMuted }
            return state.isHardMuted
        }
        guard apply() else {
            state.withLock { $0.isHardMuted = before }
            return .mediaChannelError(reason: "AudioDeviceModuleWrapper::setAudioHardMute failed")
        }
        return nil
    }

    /// The connection ended.
    ///
    /// - Parameter done: runs when no device of the connection for sound is open any more.
    func close(done: @escaping @Sendable () -> Void = {}) {
        let observer = state.withLock { state in
            state.isClosed = true
            state.isWanted = false
            return state.observer
        }
        if let observer { session.removeObserver(observer) }
        // Its speakers, which were closed before, have their turn before it.
        SoraDispatcher.audio.dispatchQueue.async {
            self.apply()
            done()
        }
    }

    /// True while the device is open.
    var isOpen: Bool { state.withLock { $0.capture != nil } }

    /// Brings the device to where it should be. False if it refused.
    @discardableResult
    private func apply() -> Bool {
        guard let problem = bringAbout() else { return true }
        // No lock is held: the log's handler may mute, too.
        Logger.error(type: .mediaStream, message: "cannot open the microphone: \(problem)")
        return false
    }

    /// Why the device refused, or nil.
    private func bringAbout() -> String? {
        operations.lock()
        defer { operations.unlock() }
        let shouldRun = state.withLock { state in
            state.isWanted && !state.isHardMuted && session.allowsDevices && session.allowsCapture
        }
        let running = state.withLock { $0.capture }
        if shouldRun == (running != nil) { return nil }
        if let running {
            running.stop()
            state.withLock { $0.capture = nil }
            return nil
        }
        do {
            let capture = try device.start(processesVoice: processesVoice && session.wantsVoiceProcessing) {
                [weak self] chunk in
                self?.state.withLock { $0.stream }?.send(audio: chunk)
            }
            state.withLock { $0.capture = capture }
            return nil
        } catch {
            return error.localizedDescription
        }
    }
}
