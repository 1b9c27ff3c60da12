import Dispatch
import Glibc
import SoraFrames
import SoraLocking
import SoraWebM
import Synchronization

/// Records received coded frames, as they are, to a WebM file (Matroska for H.264).
///
/// Pictures and sound are placed by their capture times. The file is complete after `stop`; after a kill everything
/// up to the last frame can be played, only the length and the index are missing.
package final class WebMRecorder: EncodedSink {
    package struct Summary: Sendable, Equatable {
        package var path: String
        package var videoFrames = 0
        package var audioFrames = 0
        package var bytes = 0
        package var duration: Duration = .zero
        /// Frames that could not be placed: delta frames before the first key frame, kinds that no file holds.
        package var skippedFrames = 0
        /// Why writing stopped early (a full disk).
        package var failure: DeviceError?
    }

    private struct State {
        var writer: MatroskaWriter
        var summary: Summary
        /// -1 once closed.
        var descriptor: Int32
        var isStopped = false
        var lastRequest: Int64?
    }
    /// Only `queue` uses this; the lock is for the final summary.
    private let state: Locked<State>
    private let queue = DispatchQueue(label: "sora.recorder")
    /// Bytes handed in and not yet written.
    private let waiting = Atomic<Int>(0)
    private static let mostWaiting = 64 << 20
    private let audioChannels: Int
    private let onKeyFrameNeeded: (@Sendable () -> Void)?
    private let onFailure: (@Sendable (DeviceError) -> Void)?

    /// Creates (or empties) the file. `onKeyFrameNeeded` is called, at most once a second, while delta frames come
    /// in and no key frame has; `onFailure` once, when the file cannot be written any more.
    package init(
        path: String, audioChannels: Int = 2, onKeyFrameNeeded: (@Sendable () -> Void)? = nil,
        onFailure: (@Sendable (DeviceError) -> Void)? = nil
    ) throws(DeviceError) {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else {
            throw .fileNotWritable(path: path, reason: String(cString: strerror(errno)))
        }
        self.audioChannels = audioChannels
        self.onKeyFrameNeeded = onKeyFrameNeeded
        self.onFailure = onFailure
        state = Locked(
            State(
                writer: MatroskaWriter(application: "Sora for Swift"), summary: Summary(path: path),
                descriptor: descriptor))
    }

    deinit {
        let descriptor = state.withLock { $0.descriptor }
        if descriptor >= 0 { close(descriptor) }
    }

    package func consume(_ frame: EncodedVideoFrame) {
        enqueue(frame.payload.count) { recorder in
            recorder.update { state in
                guard let picture = WebMVideoFrame(frame) else {
                    state.summary.skippedFrames += 1
                    return false
                }
                if state.writer.write(picture) {
                    state.summary.videoFrames += 1
                    return false
                }
                state.summary.skippedFrames += 1
                guard !frame.isKeyFrame, !state.writer.hasTrack(for: picture.codec) else { return false }
                if let last = state.lastRequest, (0..<1_000_000_000).contains(frame.timestamp &- last) { return false }
                state.lastRequest = frame.timestamp
                return true
            }
        }
    }

    package func consume(_ frame: EncodedAudioFrame) {
        enqueue(frame.payload.count) { recorder in
            let channels = recorder.audioChannels
            recorder.update { state in
                let sound = WebMOpusFrame(
                    timestamp: frame.timestamp, duration: frame.duration, payload: frame.payload)
                if frame.codec == .opus, state.writer.write(sound, channels: channels) {
                    state.summary.audioFrames += 1
                } else {
                    state.summary.skippedFrames += 1
                }
                return false
            }
        }
    }

    /// Completes and closes the file, and tells what is in it. Further frames are ignored. May be called again.
    @discardableResult
    package func stop() -> Summary {
        queue.sync {
            update { state in
                guard !state.isStopped else { return false }
                state.isStopped = true
                state.writer.finish()
                return false
            }
            return state.withLock { state in
                if state.descriptor >= 0 {
                    close(state.descriptor)
                    state.descriptor = -1
                }
                return state.summary
            }
        }
    }

    /// What has been written so far.
    package var summary: Summary { state.withLock { $0.summary } }

    /// Waits until everything that was handed in before has been written, and says what that is. Not to be called from
    /// what the recorder calls, which runs where the writing is done.
    package func flush() -> Summary { queue.sync { summary } }

    private func enqueue(_ size: Int, _ work: @escaping @Sendable (WebMRecorder) -> Void) {
        // A disk that stands still must not take all memory.
        guard waiting.load(ordering: .relaxed) < Self.mostWaiting else {
            state.withLock { $0.summary.skippedFrames += 1 }
            return
        }
        waiting.add(size, ordering: .relaxed)
        queue.async {
            defer { self.waiting.subtract(size, ordering: .relaxed) }
            if self.state.withLock({ $0.isStopped || $0.summary.failure != nil }) { return }
            work(self)
        }
    }

    /// Changes the state, then writes what the writer put out. `change` returns whether a key frame is needed.
    private func update(_ change: (inout State) -> Bool) {
        let result: (needsKeyFrame: Bool, failure: DeviceError?) = state.withLock { state in
            let needsKeyFrame = change(&state)
            for output in state.writer.takeOutputs() where state.summary.failure == nil {
                if let reason = Self.write(output, to: state.descriptor) {
                    state.summary.failure = .fileNotWritable(path: state.summary.path, reason: reason)
                    return (false, state.summary.failure)
                }
            }
            state.summary.bytes = state.writer.length
            state.summary.duration = .milliseconds(state.writer.duration)
            return (needsKeyFrame, nil)
        }
        if result.needsKeyFrame { onKeyFrameNeeded?() }
        if let failure = result.failure { onFailure?(failure) }
    }

    private static func write(_ output: MatroskaWriter.Output, to descriptor: Int32) -> String? {
        output.bytes.withUnsafeBytes { bytes in
            var done = 0
            while done < bytes.count {
                let count = pwrite(
                    descriptor, bytes.baseAddress?.advanced(by: done), bytes.count - done,
                    off_t(output.offset + done))
                if count > 0 {
                    done += count
                } else if errno != EINTR {
                    return String(cString: strerror(errno))
                }
            }
            return nil
        }
    }
}

extension WebMVideoFrame {
    /// Nil for H.265, which no WebM file holds.
    fileprivate init?(_ frame: EncodedVideoFrame) {
        let codec: WebMVideoCodec
        switch frame.codec {
        case .vp8: codec = .vp8
        case .vp9: codec = .vp9
        case .av1: codec = .av1
        case .h264: codec = .h264
        case .h265: return nil
        }
        self.init(
            codec: codec, isKeyFrame: frame.isKeyFrame, width: frame.width, height: frame.height,
            timestamp: frame.timestamp, payload: frame.payload, rotation: frame.rotation.rawValue)
    }
}
