import SoraFrames
import SoraPeer
import SoraRTP
import SoraSDP
import SoraWire

/// From a local audio track to packets. Loop-confined.
final class AudioSending {
    private let transceiver: Transceiver
    private let audio: LocalAudio
    private let encoding: AudioEncoding
    private let timestampBase: UInt32
    private var payloadType: PayloadType?
    private var sequenceNumber: SequenceNumber
    private var levelID: UInt8?
    private var isAfterSilence = true

    init(
        _ audio: LocalAudio, transceiver: Transceiver, codecs: any CodecFactory, settings: AudioEncoderSettings,
        ntpEpoch: UInt64, random: inout RandomSource, wake: @escaping @Sendable () -> Void
    ) {
        self.audio = audio
        self.transceiver = transceiver
        encoding = AudioEncoding(Self.agreed(settings, transceiver), codecs: codecs, wake: wake)
        sequenceNumber = SequenceNumber(UInt16(truncatingIfNeeded: random.next() & 0x7FFF))
        timestampBase = UInt32(truncatingIfNeeded: random.next())
        configure(transceiver)
        let encoding = encoding
        audio.setConsumer { encoding.put($0) }
    }

    func configure(_ transceiver: Transceiver) {
        payloadType = transceiver.codecs.first { $0.name.lowercased() == "opus" }?.payloadType
        levelID = transceiver.extensions[.audioLevel]
        if let limit = transceiver.encodings.first?.maximumBitrate ?? transceiver.sendBandwidthLimit {
            encoding.setBitrate(limit)
        }
    }

    func close() {
        audio.setConsumer(nil)
        encoding.close()
    }

    func takePackets() -> [OutgoingPacket] {
        var packets: [OutgoingPacket] = []
        for sound in encoding.output.takeAll() {
            guard let payloadType, transceiver.encodings.first?.isActive ?? true else { continue }
            let frame = sound.frame
            if frame.isSilence {
                // Not sent: time goes on without packets (RFC 7587, 3.1.3).
                isAfterSilence = true
                continue
            }
            let seconds = frame.timestamp / 1_000_000_000
            // Rounded, so that steps of 20 ms are steps of exactly 960.
            let rest = (frame.timestamp % 1_000_000_000 * 48 + 500_000) / 1_000_000
            var packet = RTPPacket(
                marker: isAfterSilence, payloadType: payloadType, sequenceNumber: sequenceNumber,
                timestamp: RTPTimestamp(timestampBase &+ UInt32(truncatingIfNeeded: seconds &* 48_000 &+ rest)),
                ssrc: SSRC(0), payload: frame.payload)
            isAfterSilence = false
            if let levelID {
                packet.extensions.append(
                    RTPExtensionElement(
                        id: levelID,
                        value: RTPExtensionValue.bytes(ofAudioLevel: sound.level, isVoice: sound.level < 60)))
            }
            sequenceNumber += 1
            packets.append(OutgoingPacket(packet: packet, transceiver: transceiver, layer: 0))
        }
        return packets
    }

    /// What the offer's format parameters say (RFC 7587, 6.1): the receiver's `stereo`, `useinbandfec`, `usedtx`,
    /// `maxaveragebitrate`, `minptime` are wishes about what we send (pitfall COD11).
    private static func agreed(_ settings: AudioEncoderSettings, _ transceiver: Transceiver) -> AudioEncoderSettings {
        var settings = settings
        guard let codec = transceiver.codecs.first(where: { $0.name.lowercased() == "opus" }) else { return settings }
        func parameter(_ key: String) -> String? { codec.formatParameters[key] }
        if parameter("stereo") != "1" { settings.channels = 1 }
        if let fec = parameter("useinbandfec") { settings.usesForwardErrorCorrection = fec == "1" }
        if parameter("usedtx") == "1" { settings.usesDiscontinuousTransmission = true }
        if settings.bitrate == nil, let most = parameter("maxaveragebitrate").flatMap({ Int($0) }) {
            settings.bitrate = most
        }
        return settings
    }
}
