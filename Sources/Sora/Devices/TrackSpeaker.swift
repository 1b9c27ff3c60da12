import Foundation
internal import SoraFrames
internal import SoraLocking
internal import SoraMedia

/// Plays one remote track, as long as the audio session permits it. A speaker that cannot be opened is logged once in
/// the process and concerns nothing else.
final class TrackSpeaker: Sendable {
    /// The backend of the process. Replaced in tests.
    static let backend = Locked<any SpeakerBackend>(DeviceBackends.speaker)
    private static let hasWarned = Locked(false)

    private struct State {
        var sink: Int?
        var observer: Int?
        var isClosed = false
    }
    private let audio: RemoteAudio
    private let session: any AudioPolicy
    private let state = Locked(State())
    /// Opening and closing, one after the other.
    private let operations = NSLock()

    init(_ audio: RemoteAudio, session: any AudioPolicy = ProcessAudio.policy) {
        self.audio = audio
        self.session = session
        let id = session.addObserver { [weak self] in
            guard let self else { return }
            SoraDispatcher.audio.dispatchQueue.async { self.apply() }
        }
        state.withLock { $0.observer = id }
        SoraDispatcher.audio.dispatchQueue.async { self.apply() }
    }

    /// The track is gone.
    func close() {
        let observer = state.withLock { state in
            state.isClosed = true
            return state.observer
        }
        if let observer { session.removeObserver(observer) }
        SoraDispatcher.audio.dispatchQueue.async { self.apply() }
    }

    private func apply() {
        guard let problem = bringAbout(), !Self.hasWarned.exchange(true) else { return }
        Logger.warn(type: .mediaStream, message: "remote sound is not played: \(problem)")
    }

    /// Opens or closes the stream on the speaker. Returns why that failed, or nil.
    private func bringAbout() -> String? {
        operations.lock()
        defer { operations.unlock() }
        let (isClosed, sink) = state.withLock { ($0.isClosed, $0.sink) }
        let shouldPlay = !isClosed && session.allowsDevices && session.allowsPlayout
        guard shouldPlay != (sink != nil) else { return nil }
        if let sink {
            audio.removeSink(sink)
            state.withLock { $0.sink = nil }
            return nil
        }
        do {
            let stream = try Self.backend.read().open()
            let id = audio.addSink { stream.play(AudioChunk($0)) }
            state.withLock { $0.sink = id }
            return nil
        } catch {
            return error.localizedDescription
        }
    }
}
