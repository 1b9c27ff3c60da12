import SoraFrames
import SoraPeer
import SoraRTP
import SoraSDP
import SoraWire

/// A packet on its way to the peer connection.
struct OutgoingPacket {
    var packet: RTPPacket
    var transceiver: Transceiver
    var layer: Int
}

/// Room for a payload in a datagram of 1,200 bytes beside RTP header, extensions, SRTP tag and RTX number.
let payloadLimit = 1_110

/// From a local video track to packets, in one or more layers. Loop-confined.
final class VideoSending {
    let transceiver: Transceiver
    let encoding: VideoEncoding
    private let video: LocalVideo
    private let ntpEpoch: UInt64
    private var layers: [LayerState]
    private var random: RandomSource
    private var orientationID: UInt8?
    private var lastInput = (width: 0, height: 0)
    /// Bits per second of each layer, as allocated last.
    private var targets: [Int] = []

    struct ClockMapping {
        var layer: Int
        var ntp: NTPTime
        var timestamp: RTPTimestamp
        var at: Instant
    }
    private var mappings: [ClockMapping] = []

    private struct LayerState {
        var packetizer: any VideoPacketizer
        var payloadType: PayloadType
        var sequenceNumber: SequenceNumber
        var timestampBase: UInt32
    }

    /// Nil when no codec was agreed that can be encoded here.
    init?(
        _ video: LocalVideo, transceiver: Transceiver, codecs: any CodecFactory, ntpEpoch: UInt64,
        content: VideoEncoderSettings.Content, random: inout RandomSource, wake: @escaping @Sendable () -> Void
    ) {
        guard let agreed = Self.agreedCodec(transceiver, codecs) else { return nil }
        self.video = video
        self.transceiver = transceiver
        self.ntpEpoch = ntpEpoch
        self.random = random.split()
        orientationID = transceiver.extensions[.videoOrientation]
        layers = []
        encoding = VideoEncoding(
            Self.settings(transceiver, agreed.kind, content), codecs: codecs, wake: wake)
        makeLayers(agreed.format, agreed.payloadType)
        let encoding = encoding
        video.setConsumer { encoding.put($0) }
        encoders = codecs.videoEncoders
    }
    private var encoders: [VideoCodecKind] = []

    /// Takes over what a new negotiation agreed. SSRCs, sequence numbers and timestamps go on.
    func configure(_ transceiver: Transceiver, content: VideoEncoderSettings.Content) {
        guard let agreed = Self.agreedCodec(transceiver, encoders) else { return }
        orientationID = transceiver.extensions[.videoOrientation]
        let isNew =
            encoding.settings.codec != agreed.kind || layers.count != transceiver.encodings.count
            || layers.first?.payloadType != agreed.payloadType
        encoding.configure(Self.settings(transceiver, agreed.kind, content))
        if isNew { makeLayers(agreed.format, agreed.payloadType) }
    }

    func close() {
        video.setConsumer(nil)
        encoding.close()
    }

    func requestKeyFrame(layer: Int) { encoding.requestKeyFrame(layer: layer) }

    /// Shares what the path carries among the layers; nil: nothing is known, each gets its maximum.
    /// Returns the sum of the targets.
    func allocate(_ available: Int?) -> Int {
        let settings = encoding.settings
        let input = lastInput
        let layers = settings.layers.enumerated().map { index, layer in
            BitrateAllocator.Layer(
                width: Int(Double(input.width) / max(layer.scaleDownBy, 1)),
                height: Int(Double(input.height) / max(layer.scaleDownBy, 1)), isActive: layer.isActive,
                maximumBitrate: layer.maximumBitrate, isRunning: targets.indices.contains(index) && targets[index] > 0)
        }
        let limit = min(available ?? .max, transceiver.sendBandwidthLimit ?? .max)
        targets = BitrateAllocator.allocate(limit, to: layers)
        encoding.setTargets(targets)
        return targets.reduce(0, +)
    }

    /// Whether pictures of another size come in, so that rates by size are to be shared anew.
    func sizeHasChanged() -> Bool {
        let counters = encoding.counters
        let size = (width: counters.inputWidth, height: counters.inputHeight)
        defer { lastInput = size }
        return size != lastInput
    }

    func takeClockMappings() -> [ClockMapping] {
        defer { mappings = [] }
        return mappings
    }

    func takePackets() -> [OutgoingPacket] {
        var packets: [OutgoingPacket] = []
        for encoded in encoding.output.takeAll() where layers.indices.contains(encoded.layer) {
            let frame = encoded.frame
            let timestamp = RTPTimestamp(layers[encoded.layer].timestampBase &+ Self.ticks(frame.timestamp))
            let captured = Instant(nanoseconds: frame.timestamp)
            mappings.append(
                ClockMapping(
                    layer: encoded.layer, ntp: NTPTime(captured, origin: NTPTime(ntpEpoch)), timestamp: timestamp,
                    at: captured))
            let payloads = layers[encoded.layer].packetizer.packetize(
                frame.payload,
                traits: VideoFrameTraits(
                    isKeyFrame: frame.isKeyFrame, isLayerSync: frame.isLayerSync, isDiscardable: frame.isDiscardable,
                    width: UInt16(clamping: frame.width), height: UInt16(clamping: frame.height)),
                limit: payloadLimit)
            for (index, payload) in payloads.enumerated() {
                let isLast = index == payloads.count - 1
                var packet = RTPPacket(
                    marker: isLast, payloadType: layers[encoded.layer].payloadType,
                    sequenceNumber: layers[encoded.layer].sequenceNumber, timestamp: timestamp, ssrc: SSRC(0),
                    payload: payload)
                // The orientation stands on the last packet of each frame that has one (3GPP TS 26.114, 7.4.5).
                if isLast, let id = orientationID, frame.rotation != .none || frame.isKeyFrame {
                    packet.extensions.append(
                        RTPExtensionElement(
                            id: id, value: RTPExtensionValue.bytes(ofRotation: frame.rotation.rawValue)))
                }
                layers[encoded.layer].sequenceNumber += 1
                packets.append(OutgoingPacket(packet: packet, transceiver: transceiver, layer: encoded.layer))
            }
        }
        return packets
    }

    private func makeLayers(_ format: VideoPayloadFormat, _ payloadType: PayloadType) {
        let old = layers
        layers = transceiver.encodings.indices.map { index in
            LayerState(
                packetizer: format.makePacketizer(random: &random), payloadType: payloadType,
                // Below 32,768, so that SRTP's roll-over count is never guessed wrong at the start.
                sequenceNumber: old.indices.contains(index)
                    ? old[index].sequenceNumber : SequenceNumber(UInt16(truncatingIfNeeded: random.next() & 0x7FFF)),
                timestampBase: old.indices.contains(index)
                    ? old[index].timestampBase : UInt32(truncatingIfNeeded: random.next()))
        }
    }

    /// 90 kHz ticks of a time, modulo 2^32.
    private static func ticks(_ nanoseconds: Int64) -> UInt32 {
        let seconds = nanoseconds / 1_000_000_000
        let rest = nanoseconds % 1_000_000_000
        return UInt32(truncatingIfNeeded: seconds &* 90_000 &+ rest * 90_000 / 1_000_000_000)
    }

    private static func settings(
        _ transceiver: Transceiver, _ codec: VideoCodecKind, _ content: VideoEncoderSettings.Content
    ) -> VideoEncoding.Settings {
        VideoEncoding.Settings(
            codec: codec,
            layers: transceiver.encodings.map { encoding in
                VideoLayerSettings(
                    rid: encoding.rid, isActive: encoding.isActive, scaleDownBy: encoding.scaleResolutionDownBy,
                    maximumFramerate: encoding.maximumFramerate, maximumBitrate: encoding.maximumBitrate)
            }, turnsUpright: transceiver.extensions[.videoOrientation] == nil, content: content)
    }

    private static func agreedCodec(
        _ transceiver: Transceiver, _ codecs: any CodecFactory
    ) -> (kind: VideoCodecKind, format: VideoPayloadFormat, payloadType: PayloadType)? {
        agreedCodec(transceiver, codecs.videoEncoders)
    }

    private static func agreedCodec(
        _ transceiver: Transceiver, _ encoders: [VideoCodecKind]
    ) -> (kind: VideoCodecKind, format: VideoPayloadFormat, payloadType: PayloadType)? {
        for codec in transceiver.codecs where codec.isMedia {
            if let kind = VideoCodecKind(name: codec.name), encoders.contains(kind),
                let format = VideoPayloadFormat(encodingName: codec.name)
            {
                return (kind, format, codec.payloadType)
            }
        }
        return nil
    }
}
