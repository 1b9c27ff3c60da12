import SoraRTP
import SoraWebM
import SoraWire

/// One track of a sender on its way into a file: one continuous stream of its best layer, joined to coded frames.
/// Nothing is decoded.
final class ArchiveTrack {
    enum Frame {
        case video(WebMVideoFrame)
        case audio(WebMOpusFrame)
    }

    let track: SenderTrack
    var forwarder: StreamForwarder
    /// The layer chosen; the forwarder follows at its next key frame.
    private(set) var selected: Int?
    private var jitter: VideoJitterBuffer?
    private var lastTimestamp: RTPTimestamp?
    /// Ticks of the RTP clock since the first packet.
    private var ticks: Int64 = 0
    /// When the first packet came.
    private var origin = Instant.zero
    private var sequence = SequenceUnwrapper()
    private var lastAudio: Int64 = .min

    init(_ track: SenderTrack, random: inout RandomSource) {
        self.track = track
        forwarder = StreamForwarder(
            ssrc: SSRC(1), payloadType: nil, clockRate: track.clockRate, isVideo: track.kind == .video,
            random: &random)
        jitter = track.kind == .video ? track.format.map { VideoJitterBuffer(format: $0) } : nil
    }

    /// The layer of which a key frame is needed now.
    var layerNeedingKeyFrame: Int? { forwarder.layerNeedingKeyFrame }
    func wants(_ layer: Int) -> Bool { forwarder.currentLayer == layer || forwarder.targetLayer == layer }

    /// Goes for the best layer that arrives. Returns whether that is another one than before.
    func followBestLayer() -> Bool {
        let best = track.kind == .video ? track.highestActiveLayer : track.layers[0].isActive ? 0 : nil
        // A layer that pauses may come back; nothing is gained by forgetting it.
        guard let best, best != selected else { return false }
        selected = best
        forwarder.select(best)
        return true
    }

    /// Takes a packet of one of the sender's layers.
    /// - Returns: frames that are complete now, and whether a key frame is needed to go on.
    func take(_ packet: ForwardablePacket, layer: Int, now: Instant) -> (frames: [Frame], needsKeyFrame: Bool) {
        var frames: [Frame] = []
        if let bytes = forwarder.forward(packet, layer: layer, now: now) { insert(bytes, &frames, now) }
        while let held = forwarder.poll() { insert(held, &frames, now) }
        let needsKeyFrame = drain(&frames)
        return (frames, needsKeyFrame)
    }

    /// Gives gaps up whose time has come.
    func handleTimeout(now: Instant) -> (frames: [Frame], needsKeyFrame: Bool) {
        var frames: [Frame] = []
        if let due = jitter?.nextTimeout, due <= now { jitter?.handleTimeout(now: now) }
        let needsKeyFrame = drain(&frames)
        return (frames, needsKeyFrame)
    }

    private func insert(_ bytes: [UInt8], _ frames: inout [Frame], _ now: Instant) {
        guard let header = try? RTPHeader(parsing: bytes) else { return }
        guard track.kind == .audio else {
            jitter?.insert(bytes, header: header, now: now)
            return
        }
        let number = sequence.unwrap(header.sequenceNumber)
        let range = header.payloadRange
        // A file has no place for what comes late.
        guard number > lastAudio, !range.isEmpty, range.upperBound <= bytes.count else { return }
        lastAudio = number
        let payload = Array(bytes[range])
        guard let info = OpusPacketInfo(payload) else { return }
        frames.append(
            .audio(
                WebMOpusFrame(
                    timestamp: time(of: header.timestamp, now: now), duration: info.samples, payload: payload)))
    }

    private func drain(_ frames: inout [Frame]) -> Bool {
        var needsKeyFrame = false
        while let output = jitter?.poll() {
            switch output {
            case .keyFrameNeeded: needsKeyFrame = true
            case .frame(let received):
                guard let codec = track.format?.fileCodec else { continue }
                let size = received.isKeyFrame ? CodedPictureSize.of(codec, received.data) : nil
                frames.append(
                    .video(
                        WebMVideoFrame(
                            codec: codec, isKeyFrame: received.isKeyFrame, width: size?.width ?? 0,
                            height: size?.height ?? 0,
                            timestamp: time(of: received.timestamp, now: received.firstArrival),
                            payload: received.data)))
            }
        }
        return needsKeyFrame
    }

    /// Nanoseconds on the server's clock: from the first packet's arrival on by the sender's clock.
    private func time(of timestamp: RTPTimestamp, now: Instant) -> Int64 {
        guard let last = lastTimestamp else {
            lastTimestamp = timestamp
            origin = now
            return origin.nanoseconds
        }
        ticks += Int64(Int32(bitPattern: timestamp.rawValue &- last.rawValue))
        lastTimestamp = timestamp
        return origin.nanoseconds &+ Int64(Double(ticks) / Double(max(track.clockRate, 1)) * 1e9)
    }
}

extension VideoPayloadFormat {
    /// Nil for H.265, which no WebM file holds.
    fileprivate var fileCodec: WebMVideoCodec? {
        switch self {
        case .vp8: .vp8
        case .vp9: .vp9
        case .av1: .av1
        case .h264: .h264
        case .h265: nil
        }
    }
}
