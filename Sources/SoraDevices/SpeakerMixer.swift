#if Media
import SoraFrames
import SoraLocking

/// Several streams of sound on one speaker, so that all of them can be taken out of the microphone's echo.
///
/// Each input holds up to 200 ms; what is more loses its oldest. The speaker is opened with the first input and closed
/// after the last.
package final class SpeakerMixer: Sendable {
    /// One stream. Dropping it ends it.
    package final class Input: AudioSink {
        fileprivate struct Buffer {
            var samples: [Int16] = []
            var converter = AudioConverter(sampleRate: 48_000, channels: 2)
        }
        fileprivate let buffer = Locked(Buffer())
        private let id: Int
        private let mixer: SpeakerMixer

        fileprivate init(id: Int, mixer: SpeakerMixer) {
            self.id = id
            self.mixer = mixer
        }
        deinit { mixer.remove(id) }

        package func consume(_ frame: AudioFrame) {
            buffer.withLock { buffer in
                buffer.samples += buffer.converter.convert(frame).samples
                let surplus = buffer.samples.count - SpeakerMixer.mostWaiting
                if surplus > 0 { buffer.samples.removeFirst(surplus) }
            }
        }
    }

    fileprivate static let piece = 960  // 10 ms of stereo
    fileprivate static let mostWaiting = piece * 20
    private struct Weak {
        weak var input: Input?
    }
    private struct State {
        var inputs: [Int: Weak] = [:]
        var next = 0
        var thread: DeviceThread?
        var isStopped = Flag()
    }
    private let state = Locked(State())
    private let speaker: SpeakerSink

    package init(
        deviceID: String? = nil, feedsEchoCancellation: Bool = true,
        onFailure: (@Sendable (DeviceError) -> Void)? = nil
    ) {
        speaker = SpeakerSink(deviceID: deviceID, feedsEchoCancellation: feedsEchoCancellation, onFailure: onFailure)
    }

    deinit { speaker.stop() }

    /// A new stream. Throws when the speaker cannot be opened.
    package func addInput() throws(DeviceError) -> Input {
        let (id, isFirst) = state.withLock { state in
            state.next += 1
            return (state.next, state.inputs.isEmpty)
        }
        if isFirst {
            do throws(DeviceError) {
                try speaker.start()
            } catch .alreadyRunning {
                // Another first input was faster.
            }
        }
        let input = Input(id: id, mixer: self)
        state.withLock { state in
            state.inputs[id] = Weak(input: input)
            guard state.thread == nil else { return }
            let isStopped = Flag()
            state.isStopped = isStopped
            state.thread = DeviceThread { [weak self] in
                var time = MonotonicClock.now
                while !isStopped.isRaised {
                    time += 10_000_000
                    MonotonicClock.sleep(until: time)
                    // After a long sleep the missed pieces are not made up for.
                    if MonotonicClock.now - time > 100_000_000 { time = MonotonicClock.now }
                    guard let self else { return }
                    self.mix()
                }
            }
        }
        return input
    }

    private func mix() {
        let inputs = state.withLock { $0.inputs.values.compactMap(\.input) }
        var sum = [Int32](repeating: 0, count: Self.piece)
        var isSounding = false
        for input in inputs {
            input.buffer.withLock { buffer in
                guard buffer.samples.count >= Self.piece else { return }
                isSounding = true
                for index in 0..<Self.piece { sum[index] &+= Int32(buffer.samples[index]) }
                buffer.samples.removeFirst(Self.piece)
            }
        }
        guard isSounding else { return }
        speaker.consume(
            AudioFrame(
                samples: sum.map { Int16(clamping: $0) }, sampleRate: 48_000, channels: 2,
                timestamp: MonotonicClock.now))
    }

    private func remove(_ id: Int) {
        let (thread, isStopped): (DeviceThread?, Flag?) = state.withLock { state in
            state.inputs[id] = nil
            guard state.inputs.isEmpty else { return (nil, nil) }
            defer { state.thread = nil }
            return (state.thread, state.isStopped)
        }
        guard let thread else { return }
        isStopped?.raise()
        thread.join()
        // Unless somebody came meanwhile.
        if state.withLock({ $0.inputs.isEmpty }) { speaker.stop() }
    }
}
#endif
