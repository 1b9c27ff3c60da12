import SoraMessages
import SoraPeer
import SoraRTP
import SoraSDP
import SoraWire

/// One kind of media of one sender: its layers as they arrive, and everyone who receives it.
///
/// Exists from the sender's answer on. Owned by its ``Member``; used only by the ``Channel``.
final class SenderTrack {
    let sender: Member
    let kind: TrackKind
    let transceiver: Transceiver
    /// Nil for sound, and for video whose payloads we cannot look into.
    private(set) var format: VideoPayloadFormat?
    /// The sender's ids of extensions that the forwarder looks at.
    private(set) var dependencyDescriptorID: UInt8?
    private(set) var audioLevelID: UInt8?
    private(set) var clockRate: Int
    /// Lowest quality first. One without a name if the sender does no simulcast.
    var layers: [SourceLayer]
    /// Those that are negotiated or being negotiated. Packets go through this list, hence an array.
    var subscriptions: [Subscription] = []
    /// Its way into a file, while it is recorded.
    var archive: ArchiveTrack?
    /// When anything came last.
    var lastPacket: Instant?
    /// Some layer waits for a key frame (``Channel/tracksAwaitingKeyFrames``).
    var isAwaitingKeyFrame = false
    var loudness = Loudness()

    init(sender: Member, kind: TrackKind, transceiver: Transceiver, keyFrameInterval: Duration) {
        self.sender = sender
        self.kind = kind
        self.transceiver = transceiver
        clockRate = transceiver.primaryCodec?.clockRate ?? (kind == .audio ? 48_000 : 90_000)
        layers = Self.makeLayers(transceiver.receivingLayers, keyFrameInterval: keyFrameInterval)
        refresh()
    }

    private static func makeLayers(_ rids: [RestrictionID], keyFrameInterval: Duration) -> [SourceLayer] {
        guard !rids.isEmpty else { return [SourceLayer(rid: nil, rank: .r0, keyFrameInterval: keyFrameInterval)] }
        let ranks: [LayerRID] = [.r0, .r1, .r2]
        return rids.prefix(ranks.count).enumerated().map { index, rid in
            SourceLayer(
                rid: rid, rank: LayerRID(rawValue: rid.rawValue) ?? ranks[index], keyFrameInterval: keyFrameInterval)
        }.sorted { $0.order < $1.order }
    }

    /// Takes over what the last negotiation agreed.
    func refresh() {
        let codec = transceiver.primaryCodec
        clockRate = codec?.clockRate ?? clockRate
        format = kind == .video ? codec.flatMap { VideoPayloadFormat(encodingName: $0.name) } : nil
        dependencyDescriptorID = transceiver.extensions[.dependencyDescriptor]
        audioLevelID = transceiver.extensions[.audioLevel]
    }

    var isSimulcast: Bool { layers.count > 1 }

    /// Where a packet belongs. The SSRC is looked at first; a layer's name only when it is new.
    func layerIndex(of received: ReceivedRTP) -> Int? {
        for index in layers.indices where layers[index].ssrc == received.ssrc { return index }
        guard isSimulcast else { return 0 }
        return layers.firstIndex { $0.rid == received.rid }
    }

    /// The name under which receivers know a layer.
    func name(of layer: Int?) -> LayerRID {
        guard let layer, layers.indices.contains(layer) else { return .none }
        return layers[layer].rank
    }

    /// The layer to forward for a wish: the one asked for if it arrives, else the next lower one, else
    /// the lowest of those that do arrive. Nil for `none` and while nothing arrives.
    func layer(for rid: LayerRID) -> Int? {
        guard rid != .none else { return nil }
        let wanted = SourceLayer.order(of: rid)
        return layers.lastIndex { $0.isActive && $0.order <= wanted } ?? layers.firstIndex { $0.isActive }
    }

    /// Whether some receiver, or a recording, gets this layer or is about to.
    func isWanted(_ layer: Int) -> Bool {
        (archive?.wants(layer) ?? false)
            || subscriptions.contains { $0.forwarder?.currentLayer == layer || $0.forwarder?.targetLayer == layer }
    }

    /// The highest layer that arrives.
    var highestActiveLayer: Int? { layers.lastIndex(where: \.isActive) }
}

/// One simulcast layer of a sender as it arrives, or its only stream.
struct SourceLayer {
    let rid: RestrictionID?
    let rank: LayerRID
    var ssrc: SSRC?
    var lastPacket: Instant?
    /// Packets come.
    var isActive = false
    /// Frames of other layers since this one's last packet.
    var framesMissed = 0
    var keyFrames: KeyFrameRequester
    /// Bytes since the rate was last reckoned.
    var bytes = 0
    /// Bits per second, over the last seconds.
    var bitrate = 0
    var packets: UInt64 = 0

    init(rid: RestrictionID?, rank: LayerRID, keyFrameInterval: Duration) {
        self.rid = rid
        self.rank = rank
        keyFrames = KeyFrameRequester(interval: keyFrameInterval)
    }

    var order: Int { Self.order(of: rank) }

    static func order(of rid: LayerRID) -> Int {
        switch rid {
        case .none: -1
        case .r0: 0
        case .r1: 1
        case .r2: 2
        }
    }

    mutating func reckonRate(over elapsed: Duration) {
        let seconds = max(elapsed.inSeconds, 0.05)
        let now = Double(bytes) * 8 / seconds
        bytes = 0
        bitrate = bitrate == 0 ? Int(now) : Int(Double(bitrate) * 0.6 + now * 0.4)
    }
}

enum TrackKind: String, Hashable, Sendable {
    case audio, video
}
