import SoraFrames
import SoraLocking
import SoraPeer
import SoraRTP
import SoraSDP
import SoraWire

/// Pictures of a remote track, for any thread: who wants them raw, who wants them coded.
///
/// As long as nobody wants any, packets are dropped unread and nothing runs.
package final class RemoteVideo: Sendable {
    package struct Statistics: Sendable, Equatable {
        package var codec: VideoCodecKind?
        package var framesReceived: UInt64 = 0
        package var keyFramesReceived: UInt64 = 0
        package var framesDecoded: UInt64 = 0
        package var framesDropped: UInt64 = 0
        package var decodeErrors: UInt64 = 0
        package var width = 0
        package var height = 0
        /// Frames per second of what was decoded, smoothed.
        package var framerate = 0.0
        package var keyFrameRequests = 0
    }
    private struct State {
        var sinks: [Int: @Sendable (VideoFrame) -> Void] = [:]
        var encodedSinks: [Int: any EncodedSink] = [:]
        var next = 0
        var isEnabled = true
        /// Somebody new needs a key frame to begin with.
        var isNewcomerWaiting = false
        var statistics = Statistics()
    }
    private let state = Locked(State())
    private let wake: @Sendable () -> Void

    init(wake: @escaping @Sendable () -> Void) { self.wake = wake }

    /// Off: nothing is decoded for the sinks of raw pictures.
    package var isEnabled: Bool {
        get { state.withLock { $0.isEnabled } }
        set { change { $0.isEnabled = newValue } }
    }

    package var statistics: Statistics { state.withLock { $0.statistics } }

    /// Gets each picture on a codec thread, at the time when it is to be shown.
    package func addSink(_ sink: @escaping @Sendable (VideoFrame) -> Void) -> Int {
        change { state in
            state.next += 1
            state.sinks[state.next] = sink
            return state.next
        }
    }

    /// Gets each frame as received, in order, with its capture time.
    package func addEncodedSink(_ sink: any EncodedSink) -> Int {
        change { state in
            state.next += 1
            state.encodedSinks[state.next] = sink
            return state.next
        }
    }

    package func removeSink(_ id: Int) {
        state.withLock {
            $0.sinks.removeValue(forKey: id)
            $0.encodedSinks.removeValue(forKey: id)
        }
    }

    /// Asks the sender for a key frame.
    package func requestKeyFrame() { change { _ in } }

    private func change<R>(_ body: (inout State) -> R) -> R {
        let result = state.withLock { state in
            state.isNewcomerWaiting = true
            return body(&state)
        }
        wake()
        return result
    }

    // MARK: For the pipeline

    var isWanted: (raw: Bool, coded: Bool) {
        state.withLock { ($0.isEnabled && !$0.sinks.isEmpty, !$0.encodedSinks.isEmpty) }
    }
    func takeNewcomer() -> Bool {
        state.withLock { state in
            defer { state.isNewcomerWaiting = false }
            return state.isNewcomerWaiting
        }
    }
    func note(_ body: (inout Statistics) -> Void) { state.withLock { body(&$0.statistics) } }
    func deliver(_ frame: VideoFrame) {
        let sinks = state.withLock { $0.isEnabled ? Array($0.sinks.values) : [] }
        for sink in sinks { sink(frame) }
    }
    func deliver(_ frame: EncodedVideoFrame) {
        for sink in state.withLock({ Array($0.encodedSinks.values) }) { sink.consume(frame) }
    }
    func removeAll() {
        state.withLock {
            $0.sinks = [:]
            $0.encodedSinks = [:]
        }
    }
}

/// From packets to pictures: order, completeness, key-frame requests, lip sync. Loop-confined.
final class VideoReceiving {
    /// A picture is never held back longer for the sake of its sound.
    static let longestHold: Duration = .milliseconds(500)

    let port: RemoteVideo
    private let sender: PlayoutClock
    private let decoding: VideoDecoding
    private var jitter: VideoJitterBuffer?
    private var codec: VideoCodecKind?
    private var clock = TrackClock(clockRate: 90_000)
    private var requester = KeyFrameRequester()
    private var ssrc: SSRC?
    /// Frames whose sound is not played yet.
    private var held: [(due: Instant, frame: EncodedVideoFrame)] = []

    init(port: RemoteVideo, sender: PlayoutClock, codecs: any CodecFactory, wake: @escaping @Sendable () -> Void) {
        self.port = port
        self.sender = sender
        decoding = VideoDecoding(port: port, codecs: codecs, wake: wake)
    }

    func close() {
        decoding.close()
        held = []
        jitter = nil
    }

    func receive(_ packet: ReceivedRTP, transceiver: Transceiver, now: Instant) {
        if ssrc != packet.ssrc {
            // Another layer or a sender that began anew: nothing of the old stream fits.
            ssrc = packet.ssrc
            jitter = nil
            clock = TrackClock(clockRate: 90_000)
        }
        let wanted = port.isWanted
        guard wanted.raw || wanted.coded else {
            jitter = nil
            requester.cancel()
            return
        }
        guard let description = transceiver.codecs.first(where: { $0.payloadType == packet.header.payloadType }),
            let format = VideoPayloadFormat(encodingName: description.name),
            let kind = VideoCodecKind(name: description.name)
        else { return }
        if jitter?.format != format {
            jitter = VideoJitterBuffer(format: format)
            codec = kind
            port.note { $0.codec = kind }
            requester.request(now: now)
        }
        var rotation: Int?
        if let id = transceiver.extensions[.videoOrientation],
            let range = packet.header.extensionRange(id: id, in: packet.packet)
        {
            rotation = RTPExtensionValue.rotation(packet.packet, range)
        }
        jitter?.insert(packet.packet, header: packet.header, rotation: rotation, now: now)
        drain(now)
    }

    func receive(ntp: NTPTime, timestamp: RTPTimestamp, now: Instant) {
        clock.receive(ntp: ntp, timestamp: timestamp, arrival: now, sender: sender)
    }

    func keyFrameNeeded(now: Instant) { requester.request(now: now) }

    /// After a wake-up: a new reader, or a frame that could not be decoded.
    func process(now: Instant) {
        if port.takeNewcomer() || decoding.takeKeyFrameWish(), jitter != nil { requester.request(now: now) }
    }

    var nextTimeout: Instant? {
        var earliest = jitter?.nextTimeout
        for other in [requester.nextTimeout, held.first?.due] {
            if let other { earliest = earliest.map { min($0, other) } ?? other }
        }
        return earliest
    }

    /// Returns the stream to ask for a key frame, if one is due.
    func handleTimeout(now: Instant) -> SSRC? {
        if let due = jitter?.nextTimeout, due <= now {
            jitter?.handleTimeout(now: now)
            drain(now)
        }
        while let first = held.first, first.due <= now {
            held.removeFirst()
            decoding.put(first.frame)
        }
        if let due = requester.nextTimeout, due <= now, requester.handleTimeout(now: now) {
            port.note { $0.keyFrameRequests += 1 }
            return ssrc
        }
        return nil
    }

    private func drain(_ now: Instant) {
        while let output = jitter?.poll() {
            switch output {
            case .keyFrameNeeded: requester.request(now: now)
            case .frame(let received): deliver(received, now)
            }
        }
    }

    private func deliver(_ received: ReceivedVideoFrame, _ now: Instant) {
        guard let codec else { return }
        let time = clock.local(received.timestamp, arrival: received.firstArrival, sender: sender)
        let size = received.isKeyFrame ? CodedSize.of(codec, received.data) : nil
        let frame = EncodedVideoFrame(
            codec: codec, isKeyFrame: received.isKeyFrame, width: size?.width ?? 0, height: size?.height ?? 0,
            timestamp: time, payload: received.data,
            rotation: received.rotation.flatMap { VideoRotation(rawValue: $0) } ?? .none,
            temporalLayer: Int(received.temporalLayer ?? 0))
        if received.isKeyFrame { requester.keyFrameArrived() }
        port.note {
            $0.framesReceived &+= 1
            if received.isKeyFrame { $0.keyFramesReceived &+= 1 }
        }
        port.deliver(frame)
        guard port.isWanted.raw else { return }
        let due = dueTime(time, now)
        // Never overtake: a decoder wants its frames in order.
        guard due > now || !held.isEmpty else { return decoding.put(frame) }
        held.append((max(due, held.last?.due ?? due), frame))
    }

    /// When the sound of the same moment leaves the speaker.
    private func dueTime(_ captured: Int64, _ now: Instant) -> Instant {
        guard let delay = sender.playoutDelay, let at = sender.playoutDelayAt, now - at < .seconds(2) else {
            return now
        }
        let due = Instant(nanoseconds: captured &+ delay)
        return min(max(due, now), now + Self.longestHold)
    }
}

/// Decodes on a codec thread. A decoder that falls behind drops up to the next key frame.
final class VideoDecoding: Sendable {
    private static let mostWaiting = 12
    private struct Control {
        var waiting: [EncodedVideoFrame] = []
        var skipsToKeyFrame = false
        var wantsKeyFrame = false
        var isClosed = false
    }
    private let control = Locked(Control())
    private let port: RemoteVideo
    private let worker: Worker
    private let wake: @Sendable () -> Void

    init(port: RemoteVideo, codecs: any CodecFactory, wake: @escaping @Sendable () -> Void) {
        self.port = port
        self.wake = wake
        worker = Worker(thread: .assign(), codecs: codecs)
    }

    func put(_ frame: EncodedVideoFrame) {
        let (isAccepted, isBehind) = control.withLock { control -> (Bool, Bool) in
            guard !control.isClosed else { return (false, false) }
            if frame.isKeyFrame { control.skipsToKeyFrame = false }
            if control.skipsToKeyFrame { return (false, false) }
            if control.waiting.count >= Self.mostWaiting {
                control.waiting = []
                if !frame.isKeyFrame {
                    control.skipsToKeyFrame = true
                    control.wantsKeyFrame = true
                    return (false, true)
                }
            }
            control.waiting.append(frame)
            return (true, false)
        }
        if !isAccepted { port.note { $0.framesDropped &+= 1 } }
        if isBehind { wake() }
        guard isAccepted else { return }
        worker.thread.submit { [self] in worker.assumeIsolated { decodeNext($0) } }
    }

    func takeKeyFrameWish() -> Bool {
        control.withLock { control in
            defer { control.wantsKeyFrame = false }
            return control.wantsKeyFrame
        }
    }

    func close() {
        control.withLock {
            $0.isClosed = true
            $0.waiting = []
        }
        let worker = worker
        worker.thread.submit { worker.assumeIsolated { $0.reset() } }
    }

    private func decodeNext(_ worker: isolated Worker) {
        let next = control.withLock { control -> EncodedVideoFrame? in
            guard !control.isClosed, !control.waiting.isEmpty else { return nil }
            return control.waiting.removeFirst()
        }
        guard let next else { return }
        do throws(CodecError) {
            for frame in try worker.decode(next) {
                let rate = worker.note(frame)
                port.note {
                    $0.framesDecoded &+= 1
                    $0.width = frame.width
                    $0.height = frame.height
                    $0.framerate = rate
                }
                port.deliver(frame)
            }
        } catch {
            port.note { $0.decodeErrors &+= 1 }
            control.withLock {
                $0.wantsKeyFrame = true
                $0.skipsToKeyFrame = true
            }
            wake()
        }
    }

    private actor Worker {
        nonisolated let thread: CodecThread
        nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }
        private let codecs: any CodecFactory
        private var decoder: (any VideoDecoder)?
        private var meter = FramerateMeter()

        init(thread: CodecThread, codecs: any CodecFactory) {
            self.thread = thread
            self.codecs = codecs
        }

        func reset() { decoder = nil }

        func note(_ frame: VideoFrame) -> Double {
            meter.note(frame.timestamp)
            return meter.rate
        }

        func decode(_ frame: EncodedVideoFrame) throws(CodecError) -> [VideoFrame] {
            if decoder?.codec != frame.codec { decoder = try codecs.makeVideoDecoder(frame.codec) }
            guard let decoder else { return [] }
            return try decoder.decode(frame)
        }
    }
}
