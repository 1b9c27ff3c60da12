import SoraFrames
import SoraLocking

/// What comes out of the audio encoder, with how loud it was.
struct EncodedSound: Sendable {
    var frame: EncodedAudioFrame
    /// -dBov, 0 (loudest) to 127 (silence), as RFC 6464 wants it.
    var level: UInt8
}

/// Encodes sound on a codec thread. At most half a second waits; the oldest goes.
final class AudioEncoding: Sendable {
    private static let mostWaiting = 50
    private struct Control {
        var waiting: [AudioFrame] = []
        var bitrate: Int?
        var loss: Int?
        var dropped: UInt64 = 0
        var isClosed = false
    }
    private let control = Locked(Control())
    private let worker: Worker
    let output: Mailbox<EncodedSound>

    init(_ settings: AudioEncoderSettings, codecs: any CodecFactory, wake: @escaping @Sendable () -> Void) {
        worker = Worker(thread: .assign(), settings: settings, codecs: codecs)
        output = Mailbox(wake: wake)
    }

    func setBitrate(_ bitrate: Int) { control.withLock { $0.bitrate = bitrate } }
    /// Percent.
    func setExpectedPacketLoss(_ percent: Int) { control.withLock { $0.loss = percent } }

    func put(_ frame: AudioFrame) {
        let isAccepted = control.withLock { control in
            guard !control.isClosed else { return false }
            control.waiting.append(frame)
            if control.waiting.count > Self.mostWaiting {
                control.waiting.removeFirst()
                control.dropped &+= 1
                return false
            }
            return true
        }
        guard isAccepted else { return }
        worker.thread.submit { [self] in worker.assumeIsolated { encodeNext($0) } }
    }

    func close() {
        control.withLock {
            $0.isClosed = true
            $0.waiting = []
        }
        let worker = worker
        worker.thread.submit { worker.assumeIsolated { $0.reset() } }
    }

    private func encodeNext(_ worker: isolated Worker) {
        let next = control.withLock { control -> (AudioFrame, Int?, Int?)? in
            guard !control.isClosed, !control.waiting.isEmpty else { return nil }
            defer {
                control.bitrate = nil
                control.loss = nil
            }
            return (control.waiting.removeFirst(), control.bitrate, control.loss)
        }
        guard let (frame, bitrate, loss) = next else { return }
        for sound in worker.encode(frame, bitrate: bitrate, loss: loss) { output.put(sound) }
    }

    private actor Worker {
        nonisolated let thread: CodecThread
        nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }
        private let settings: AudioEncoderSettings
        private let codecs: any CodecFactory
        private var encoder: (any AudioEncoder)?
        private var hasFailed = false

        init(thread: CodecThread, settings: AudioEncoderSettings, codecs: any CodecFactory) {
            self.thread = thread
            self.settings = settings
            self.codecs = codecs
        }

        func reset() { encoder = nil }

        func encode(_ frame: AudioFrame, bitrate: Int?, loss: Int?) -> [EncodedSound] {
            if encoder == nil, !hasFailed {
                encoder = try? codecs.makeAudioEncoder(settings)
                hasFailed = encoder == nil
            }
            guard let encoder else { return [] }
            if let bitrate { try? encoder.setBitrate(bitrate) }
            if let loss { try? encoder.setExpectedPacketLoss(loss) }
            let level = Self.level(frame)
            return ((try? encoder.encode(frame)) ?? []).map { EncodedSound(frame: $0, level: level) }
        }

        private static func level(_ frame: AudioFrame) -> UInt8 {
            // 20·log10 without a mathematical library: steps of one decibel.
            var ratio = frame.level
            guard ratio > 0 else { return 127 }
            var decibels = 0
            while ratio < 1, decibels < 127 {
                ratio *= 1.122018454
                decibels += 1
            }
            return UInt8(decibels)
        }
    }
}
