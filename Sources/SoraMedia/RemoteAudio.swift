import SoraFrames
import SoraLocking
import SoraPeer
import SoraRTP
import SoraSDP
import SoraWire
import Synchronization

/// Sound of a remote track, for any thread: who wants it raw, who wants it coded.
package final class RemoteAudio: Sendable {
    package struct Statistics: Sendable, Equatable {
        package var packetsReceived: UInt64 = 0
        package var totalSamples: UInt64 = 0
        package var concealedSamples: UInt64 = 0
        package var concealmentEvents: UInt64 = 0
        package var recoveredPackets: UInt64 = 0
        package var droppedPackets: UInt64 = 0
        /// The delay aimed at, in seconds.
        package var targetDelay = 0.0
        /// Loudness of the latest piece, 0...1.
        package var level = 0.0
    }
    private struct State {
        var sinks: [Int: @Sendable (AudioFrame) -> Void] = [:]
        var encodedSinks: [Int: any EncodedSink] = [:]
        var next = 0
        var isEnabled = true
        var volume = 1.0
        var statistics = Statistics()
    }
    private let state = Locked(State())
    private let wake: @Sendable () -> Void

    init(wake: @escaping @Sendable () -> Void) { self.wake = wake }

    /// Off: sinks get nothing.
    package var isEnabled: Bool {
        get { state.withLock { $0.isEnabled } }
        set { state.withLock { $0.isEnabled = newValue } }
    }
    /// Linear gain for the sinks, 0...10.
    package var volume: Double {
        get { state.withLock { $0.volume } }
        set { state.withLock { $0.volume = newValue.isNaN ? 1 : min(max(newValue, 0), 10) } }
    }
    package var statistics: Statistics { state.withLock { $0.statistics } }

    /// Gets 10 ms of 48 kHz stereo at a time, at the pace of playing, on a codec thread.
    package func addSink(_ sink: @escaping @Sendable (AudioFrame) -> Void) -> Int {
        let id = state.withLock { state in
            state.next += 1
            state.sinks[state.next] = sink
            return state.next
        }
        wake()
        return id
    }
    /// Gets each packet as received, in order, with its capture time.
    package func addEncodedSink(_ sink: any EncodedSink) -> Int {
        let id = state.withLock { state in
            state.next += 1
            state.encodedSinks[state.next] = sink
            return state.next
        }
        wake()
        return id
    }
    package func removeSink(_ id: Int) {
        state.withLock {
            $0.sinks.removeValue(forKey: id)
            $0.encodedSinks.removeValue(forKey: id)
        }
    }

    // MARK: For the pipeline

    var isWanted: (raw: Bool, coded: Bool) { state.withLock { (!$0.sinks.isEmpty, !$0.encodedSinks.isEmpty) } }
    func note(_ body: (inout Statistics) -> Void) { state.withLock { body(&$0.statistics) } }
    func deliver(_ frame: AudioFrame) {
        let (sinks, volume) = state.withLock { ($0.isEnabled ? Array($0.sinks.values) : [], $0.volume) }
        guard !sinks.isEmpty else { return }
        var frame = frame
        if volume != 1 {
            for index in frame.samples.indices {
                frame.samples[index] = Int16(clamping: Int(Double(frame.samples[index]) * volume))
            }
        }
        for sink in sinks { sink(frame) }
    }
    func deliver(_ frame: EncodedAudioFrame) {
        for sink in state.withLock({ Array($0.encodedSinks.values) }) { sink.consume(frame) }
    }
    func removeAll() {
        state.withLock {
            $0.sinks = [:]
            $0.encodedSinks = [:]
        }
    }
}

/// From packets to sound at the pace of playing. Loop-confined.
final class AudioReceiving {
    let port: RemoteAudio
    private let sender: PlayoutClock
    private let decoding: AudioDecoding
    private var jitter = AudioJitterBuffer()
    private var clock = TrackClock(clockRate: 48_000)
    private var relay = SequenceRelay()
    private var ssrc: SSRC?
    /// When the next piece is to be played; nil while nobody listens.
    private var nextPull: Instant?

    init(port: RemoteAudio, sender: PlayoutClock, codecs: any CodecFactory) {
        self.port = port
        self.sender = sender
        decoding = AudioDecoding(port: port, codecs: codecs)
    }

    func close() {
        decoding.close()
        nextPull = nil
        jitter.reset()
    }

    func receive(_ packet: ReceivedRTP, transceiver: Transceiver, now: Instant) {
        guard let description = transceiver.codecs.first(where: { $0.payloadType == packet.header.payloadType }),
            description.name.lowercased() == "opus"
        else { return }
        if ssrc != packet.ssrc {
            ssrc = packet.ssrc
            jitter.reset()
            relay = SequenceRelay()
            clock = TrackClock(clockRate: 48_000)
        }
        let range = packet.header.payloadRange
        guard !range.isEmpty, range.upperBound <= packet.packet.count else { return }
        let payload = Array(packet.packet[range])
        port.note { $0.packetsReceived &+= 1 }
        // Keeps the clock's wrap count right even while nobody listens.
        let time = clock.local(packet.header.timestamp, arrival: now, sender: sender)
        let wanted = port.isWanted
        if wanted.coded, let info = OpusPacketInfo(payload) {
            let frame = EncodedAudioFrame(
                codec: .opus, timestamp: time, duration: info.samples, payload: payload, isSilence: info.isSilence)
            relay.insert(frame, packet.header.sequenceNumber, now: now)
            drainRelay()
        }
        if wanted.raw {
            jitter.insert(payload, header: packet.header, now: now)
            if nextPull == nil { nextPull = now }
        } else if nextPull != nil {
            nextPull = nil
            sender.playoutDelay = nil
            jitter.reset()
        }
    }

    func receive(ntp: NTPTime, timestamp: RTPTimestamp, now: Instant) {
        clock.receive(ntp: ntp, timestamp: timestamp, arrival: now, sender: sender)
    }

    var nextTimeout: Instant? {
        guard let due = relay.nextTimeout else { return nextPull }
        return nextPull.map { min($0, due) } ?? due
    }

    func handleTimeout(now: Instant) {
        if let due = relay.nextTimeout, due <= now {
            relay.handleTimeout(now: now)
            drainRelay()
        }
        guard var due = nextPull, due <= now else { return }
        guard port.isWanted.raw else {
            nextPull = nil
            sender.playoutDelay = nil
            jitter.reset()
            return
        }
        // A loop that slept long does not play everything at once.
        if now - due > .milliseconds(200) { due = now }
        while due <= now {
            let time = jitter.nextTimestamp.map { clock.local($0, arrival: now, sender: sender) }
            let piece = jitter.pull(now: now)
            if let time, case .packet = piece {
                sender.playoutDelay = due.nanoseconds &- time
                sender.playoutDelayAt = now
            }
            let samples = decoding.put(piece, timestamp: time ?? due.nanoseconds)
            due = due + .nanoseconds(Int64(samples) * 1_000_000_000 / 48_000)
        }
        nextPull = due
        let jitter = jitter
        port.note {
            $0.totalSamples = jitter.totalSamples
            $0.concealedSamples = jitter.concealedSamples
            $0.concealmentEvents = jitter.concealmentEvents
            $0.recoveredPackets = jitter.recoveredPackets
            $0.droppedPackets = jitter.droppedPackets
            $0.targetDelay = jitter.targetDelay.inSeconds
        }
    }

    private func drainRelay() { while let frame = relay.poll() { port.deliver(frame) } }
}

/// Brings packets into order for those who want them coded. No packet waits longer than `patience` for what is missing
/// before it.
struct SequenceRelay {
    private static let patience: Duration = .milliseconds(150)
    private static let mostWaiting = 64
    private var unwrapper = SequenceUnwrapper()
    private var waiting: [(sequence: Int64, frame: EncodedAudioFrame, arrival: Instant)] = []
    private var next: Int64?

    mutating func insert(_ frame: EncodedAudioFrame, _ number: SequenceNumber, now: Instant) {
        let sequence = unwrapper.unwrap(number)
        if let next, sequence < next { return }
        var index = waiting.count
        while index > 0, waiting[index - 1].sequence >= sequence { index -= 1 }
        if index < waiting.count, waiting[index].sequence == sequence { return }
        waiting.insert((sequence, frame, now), at: index)
        if next == nil || waiting.count > Self.mostWaiting { next = waiting.first?.sequence }
    }

    var nextTimeout: Instant? {
        guard waiting.first?.sequence != next else { return nil }
        return waiting.map(\.arrival).min().map { $0 + Self.patience }
    }

    /// Leaves the gap, once it was waited for.
    mutating func handleTimeout(now: Instant) {
        guard let due = nextTimeout, due <= now else { return }
        next = waiting.first?.sequence
    }

    mutating func poll() -> EncodedAudioFrame? {
        guard let first = waiting.first, first.sequence == next else { return nil }
        waiting.removeFirst()
        next = first.sequence + 1
        return first.frame
    }
}

/// Decodes on a codec thread and cuts the sound into pieces of 10 ms.
final class AudioDecoding: Sendable {
    private let port: RemoteAudio
    private let worker: Worker
    private let isClosed = Atomic<Bool>(false)

    init(port: RemoteAudio, codecs: any CodecFactory) {
        self.port = port
        worker = Worker(thread: .assign(), codecs: codecs)
    }

    /// Returns how many samples (per channel) the piece lasts as played.
    func put(_ piece: AudioPlayout, timestamp: Int64) -> Int {
        var length = piece.samples
        if case .packet(_, let samples, let pace) = piece {
            // Four percent are hardly heard and win back a delay within seconds.
            switch pace {
            case .normal: break
            case .faster: length = samples - samples / 25
            case .slower: length = samples + samples / 25
            }
        }
        let wanted = length
        worker.thread.submit { [self] in
            guard !isClosed.load(ordering: .relaxed) else { return }
            worker.assumeIsolated { worker in
                for frame in worker.decode(piece, length: wanted, timestamp: timestamp) {
                    port.note { $0.level = frame.level }
                    port.deliver(frame)
                }
            }
        }
        return max(length, 1)
    }

    func close() {
        isClosed.store(true, ordering: .relaxed)
        let worker = worker
        worker.thread.submit { worker.assumeIsolated { $0.reset() } }
    }

    private actor Worker {
        nonisolated let thread: CodecThread
        nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }
        private let codecs: any CodecFactory
        private var decoder: (any AudioDecoder)?
        private var packer = AudioPacker(samplesPerPacket: 480, sampleRate: 48_000, channels: 2)

        init(thread: CodecThread, codecs: any CodecFactory) {
            self.thread = thread
            self.codecs = codecs
        }

        func reset() { decoder = nil }

        func decode(_ piece: AudioPlayout, length: Int, timestamp: Int64) -> [AudioFrame] {
            // Stereo always: Opus makes two channels of one without loss.
            if decoder == nil { decoder = try? codecs.makeAudioDecoder(.opus, channels: 2) }
            guard let decoder else { return [] }
            var sound: AudioFrame?
            switch piece {
            case .packet(let payload, let samples, _):
                sound = try? decoder.decode(
                    EncodedAudioFrame(codec: .opus, timestamp: timestamp, duration: samples, payload: payload))
            case .recover(let next, let samples):
                sound = try? decoder.recoverLoss(
                    before: EncodedAudioFrame(codec: .opus, timestamp: timestamp, duration: samples, payload: next),
                    samplesPerChannel: samples)
            case .conceal(let samples): sound = try? decoder.conceal(samplesPerChannel: samples, timestamp: timestamp)
            case .silence: break
            }
            let whole = sound ?? .silence(samplesPerChannel: length, channels: 2, timestamp: timestamp)
            var frame = Self.stretch(whole, to: length)
            frame.timestamp = timestamp
            packer.append(frame)
            var output: [AudioFrame] = []
            while let packet = packer.next() { output.append(packet) }
            return output
        }

        /// Linear interpolation over a few percent.
        private static func stretch(_ frame: AudioFrame, to length: Int) -> AudioFrame {
            let count = frame.samplesPerChannel
            guard count != length, count > 1, length > 1, frame.channels == 2 else { return frame }
            var samples: [Int16] = []
            samples.reserveCapacity(length * 2)
            for index in 0..<length {
                let position = index * (count - 1) * 256 / (length - 1)
                let left = min(position / 256, count - 2)
                let fraction = position - left * 256
                for channel in 0..<2 {
                    let a = Int(frame.samples[left * 2 + channel])
                    let b = Int(frame.samples[(left + 1) * 2 + channel])
                    samples.append(Int16(clamping: a + (b - a) * fraction / 256))
                }
            }
            return AudioFrame(samples: samples, sampleRate: frame.sampleRate, channels: 2, timestamp: frame.timestamp)
        }
    }
}
