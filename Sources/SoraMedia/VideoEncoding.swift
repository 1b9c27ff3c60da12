import SoraFrames
import SoraLocking
import SoraWire

/// What one layer of an outgoing picture is to become.
struct VideoLayerSettings: Sendable, Equatable {
    var rid: RestrictionID?
    var isActive = true
    var scaleDownBy = 1.0
    var maximumFramerate: Double?
    var maximumBitrate: Int?
}

/// What comes out of the encoder for the loop.
struct EncodedLayer: Sendable {
    var layer: Int
    var frame: EncodedVideoFrame
}

/// Encodes pictures in all layers, on a codec thread. At most four pictures wait; the oldest goes.
final class VideoEncoding: Sendable {
    static let mostWaiting = 4
    /// Between the key frames of one layer that are asked for, in nanoseconds.
    static let shortestKeyFrameInterval: Int64 = 100_000_000

    struct Settings: Sendable, Equatable {
        var codec: VideoCodecKind
        var layers: [VideoLayerSettings]
        /// Pictures are turned upright before coding, because their orientation cannot be told in packets.
        var turnsUpright: Bool
        var content = VideoEncoderSettings.Content.motion
    }

    struct Counters: Sendable {
        var framesIn: UInt64 = 0
        var framesDropped: UInt64 = 0
        var errors: UInt64 = 0
        var lastError: CodecError?
        var layers: [Layer] = []
        struct Layer: Sendable {
            var framesEncoded: UInt64 = 0
            var keyFramesEncoded: UInt64 = 0
            var width = 0
            var height = 0
            var targetBitrate = 0
        }
        /// Size of the last picture that came in.
        var inputWidth = 0
        var inputHeight = 0
    }

    private struct Arrival {
        var frame: VideoFrame
        var at: Int64
    }

    private struct Control {
        var settings: Settings
        var targets: [Int]
        var wantsKeyFrame: [Bool]
        /// When the picture of each layer's last key frame came in.
        var lastKeyFrames: [Int64?]
        var waiting: [Arrival] = []
        var counters = Counters()
        var isClosed = false
    }
    private let control: Locked<Control>
    private let worker: Worker
    let output: Mailbox<EncodedLayer>

    init(_ settings: Settings, codecs: any CodecFactory, wake: @escaping @Sendable () -> Void) {
        control = Locked(
            Control(
                settings: settings, targets: settings.layers.map { $0.isActive ? $0.maximumBitrate ?? 500_000 : 0 },
                wantsKeyFrame: settings.layers.map { _ in true }, lastKeyFrames: settings.layers.map { _ in nil }))
        worker = Worker(thread: .assign(), codecs: codecs)
        output = Mailbox(wake: wake)
    }

    var counters: Counters { control.withLock { $0.counters } }
    var settings: Settings { control.withLock { $0.settings } }

    func configure(_ settings: Settings) {
        control.withLock { control in
            guard control.settings != settings else { return }
            let isNew =
                control.settings.codec != settings.codec || control.settings.layers.count != settings.layers.count
            control.settings = settings
            if isNew {
                control.targets = settings.layers.map { $0.isActive ? $0.maximumBitrate ?? 500_000 : 0 }
                control.wantsKeyFrame = settings.layers.map { _ in true }
                control.lastKeyFrames = settings.layers.map { _ in nil }
            }
        }
    }

    /// Bits per second per layer; 0 stops the layer.
    func setTargets(_ targets: [Int]) {
        control.withLock { control in
            guard targets.count == control.targets.count else { return }
            for (index, target) in targets.enumerated() where control.targets[index] == 0 && target > 0 {
                control.wantsKeyFrame[index] = true
            }
            control.targets = targets
        }
    }

    /// The next picture becomes a key frame; but of all who ask within ``shortestKeyFrameInterval`` of the last one, the
    /// first picture after that serves them all. No wish is lost: who asks does so again only much later.
    func requestKeyFrame(layer: Int) {
        control.withLock { control in
            if control.wantsKeyFrame.indices.contains(layer) { control.wantsKeyFrame[layer] = true }
        }
    }

    /// - Parameter now: On ``MediaClock``; a source's own times may stand still or jump.
    func put(_ frame: VideoFrame, now: Int64 = MediaClock.now) {
        let isAccepted = control.withLock { control in
            guard !control.isClosed else { return false }
            control.counters.framesIn &+= 1
            if control.waiting.count >= Self.mostWaiting {
                control.waiting.removeFirst()
                control.counters.framesDropped &+= 1
                control.waiting.append(Arrival(frame: frame, at: now))
                return false  // the work for the one that went serves this one
            }
            control.waiting.append(Arrival(frame: frame, at: now))
            return true
        }
        guard isAccepted else { return }
        worker.thread.submit { [self] in worker.assumeIsolated { encodeNext($0) } }
    }

    /// Frees the encoders; nothing comes out afterwards.
    func close() {
        control.withLock {
            $0.isClosed = true
            $0.waiting = []
        }
        let worker = worker
        worker.thread.submit { worker.assumeIsolated { $0.reset() } }
    }

    private func encodeNext(_ worker: isolated Worker) {
        let next = control.withLock { control -> (Arrival, Settings, [Int], [Bool])? in
            guard !control.isClosed, !control.waiting.isEmpty else { return nil }
            let arrival = control.waiting.removeFirst()
            control.counters.inputWidth = arrival.frame.width
            control.counters.inputHeight = arrival.frame.height
            let keyFrames = zip(control.wantsKeyFrame, control.lastKeyFrames).map { isWanted, last in
                guard isWanted, let last else { return isWanted }
                return arrival.at - last >= Self.shortestKeyFrameInterval
            }
            return (arrival, control.settings, control.targets, keyFrames)
        }
        guard let (arrival, settings, targets, wantsKeyFrame) = next else { return }
        let results = worker.encode(arrival.frame, settings, targets, wantsKeyFrame)
        control.withLock { control in
            if control.counters.layers.count != settings.layers.count {
                control.counters.layers = settings.layers.map { _ in Counters.Layer() }
            }
            for result in results {
                guard control.wantsKeyFrame.indices.contains(result.layer) else { continue }
                if let error = result.error {
                    control.counters.errors &+= 1
                    control.counters.lastError = error
                }
                for frame in result.frames {
                    // A wish that came while this frame was coded is served by it if it is a key frame.
                    if frame.isKeyFrame {
                        control.wantsKeyFrame[result.layer] = false
                        control.lastKeyFrames[result.layer] = arrival.at
                    }
                    control.counters.layers[result.layer].framesEncoded &+= 1
                    if frame.isKeyFrame { control.counters.layers[result.layer].keyFramesEncoded &+= 1 }
                    control.counters.layers[result.layer].width = frame.width
                    control.counters.layers[result.layer].height = frame.height
                }
                control.counters.layers[result.layer].targetBitrate = targets[result.layer]
            }
        }
        for result in results {
            for frame in result.frames where !output.put(EncodedLayer(layer: result.layer, frame: frame)) {
                // The loop stood still for seconds. What was dropped is missing to the frames behind it.
                control.withLock { control in control.wantsKeyFrame = control.wantsKeyFrame.map { _ in true } }
            }
        }
    }

    /// The encoders, confined to one codec thread.
    private actor Worker {
        nonisolated let thread: CodecThread
        nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

        struct Result {
            var layer: Int
            var frames: [EncodedVideoFrame] = []
            var error: CodecError?
        }
        private struct Layer {
            var encoder: (any VideoEncoder)?
            var bitrate = 0
            var framerate = 0.0
            var lastTimestamp: Int64?
            var pool = VideoFrameBufferPool(capacity: 4)
        }
        private let codecs: any CodecFactory
        private var codec: VideoCodecKind?
        private var layers: [Layer] = []
        private var framerate = FramerateMeter()

        init(thread: CodecThread, codecs: any CodecFactory) {
            self.thread = thread
            self.codecs = codecs
        }

        func reset() { layers = [] }

        func encode(_ frame: VideoFrame, _ settings: Settings, _ targets: [Int], _ wantsKeyFrame: [Bool]) -> [Result] {
            if codec != settings.codec || layers.count != settings.layers.count {
                codec = settings.codec
                layers = settings.layers.map { _ in Layer() }
            }
            framerate.note(frame.timestamp)
            var frame = frame
            if settings.turnsUpright, frame.rotation != .none {
                frame.buffer = codecs.rotate(frame.buffer, by: frame.rotation)
                frame.rotation = .none
            }
            var results: [Result] = []
            for index in layers.indices where targets[index] > 0 && settings.layers[index].isActive {
                let layer = settings.layers[index]
                if isTooSoon(frame.timestamp, index, layer.maximumFramerate) { continue }
                var result = Result(layer: index)
                do throws(CodecError) {
                    result.frames = try encode(
                        frame, settings, index, bitrate: targets[index], forceKeyFrame: wantsKeyFrame[index])
                    for position in result.frames.indices { result.frames[position].rid = layer.rid }
                } catch {
                    result.error = error
                    layers[index].encoder = nil
                }
                results.append(result)
            }
            return results
        }

        private func encode(
            _ frame: VideoFrame, _ settings: Settings, _ index: Int, bitrate: Int, forceKeyFrame: Bool
        ) throws(CodecError) -> [EncodedVideoFrame] {
            let layer = settings.layers[index]
            let scale = max(layer.scaleDownBy, 1)
            let rate = min(framerate.rate, layer.maximumFramerate ?? .infinity)
            var scaled = frame
            if scale > 1 {
                // Even sizes: every decoder and every next scaling likes them.
                let width = max(2, Int(Double(frame.width) / scale) & ~1)
                let height = max(2, Int(Double(frame.height) / scale) & ~1)
                scaled.buffer = codecs.scale(frame.buffer, width: width, height: height, pool: layers[index].pool)
            }
            let encoder: any VideoEncoder
            if let existing = layers[index].encoder {
                encoder = existing
                // Small changes of the measured rate are noise.
                if bitrate != layers[index].bitrate || abs(rate - layers[index].framerate) > rate / 8 {
                    try encoder.setBitrate(bitrate, framerate: rate)
                    layers[index].bitrate = bitrate
                    layers[index].framerate = rate
                }
            } else {
                encoder = try codecs.makeVideoEncoder(
                    VideoEncoderSettings(
                        codec: settings.codec, width: scaled.width, height: scaled.height, bitrate: bitrate,
                        framerate: rate, content: settings.content))
                layers[index].encoder = encoder
                layers[index].bitrate = bitrate
                layers[index].framerate = rate
            }
            layers[index].lastTimestamp = frame.timestamp
            return try encoder.encode(scaled, forceKeyFrame: forceKeyFrame)
        }

        private func isTooSoon(_ timestamp: Int64, _ index: Int, _ maximum: Double?) -> Bool {
            guard let maximum, maximum > 0, let last = layers[index].lastTimestamp, timestamp > last else {
                return false
            }
            return Double(timestamp) - Double(last) < 0.9e9 / maximum
        }
    }
}

/// Frames per second of a source, smoothed.
struct FramerateMeter: Sendable {
    private var last: Int64?
    private var interval = 1.0 / 30

    /// 1...120.
    var rate: Double { min(max(1 / interval, 1), 120) }

    mutating func note(_ timestamp: Int64) {
        defer { last = timestamp }
        guard let last, timestamp > last else { return }
        let distance = (Double(timestamp) - Double(last)) / 1e9
        // A pause is no rate.
        guard distance < 2 else { return }
        interval += (distance - interval) / 16
    }
}
