#if Media
import COpus
import SoraFrames
import SoraWire

private func text(_ code: Int32) -> String { String(cString: opus_strerror(code)) }

/// Opus (RFC 6716). The clock is 48 kHz, whatever is captured (pitfall COD10).
package final class OpusEncoder: AudioEncoder {
    package let codec = AudioCodecKind.opus
    package let settings: AudioEncoderSettings
    private let encoder: OpaquePointer
    private var converter: AudioConverter
    private var packer: AudioPacker

    package init(_ settings: AudioEncoderSettings) throws(CodecError) {
        var settings = settings
        settings.channels = settings.channels >= 2 ? 2 : 1
        settings.frameMilliseconds = [10, 20, 40, 60].last { $0 <= settings.frameMilliseconds } ?? 10
        self.settings = settings
        var code: Int32 = 0
        let application = settings.isVoice ? OPUS_APPLICATION_VOIP : OPUS_APPLICATION_AUDIO
        guard let encoder = opus_encoder_create(48_000, Int32(settings.channels), application, &code) else {
            throw .openingFailed(codec: codec.rawValue, detail: text(code))
        }
        self.encoder = encoder
        converter = AudioConverter(sampleRate: 48_000, channels: settings.channels)
        packer = AudioPacker(
            samplesPerPacket: 48 * settings.frameMilliseconds, sampleRate: 48_000, channels: settings.channels)
        set(SORA_OPUS_FEC, settings.usesForwardErrorCorrection ? 1 : 0)
        set(SORA_OPUS_DTX, settings.usesDiscontinuousTransmission ? 1 : 0)
        set(SORA_OPUS_LOSS, min(max(settings.expectedPacketLoss, 0), 100))
        set(SORA_OPUS_COMPLEXITY, 9)
        if let bitrate = settings.bitrate { try setBitrate(bitrate) }
    }

    deinit { opus_encoder_destroy(encoder) }

    package func encode(_ frame: AudioFrame) throws(CodecError) -> [EncodedAudioFrame] {
        var output: [EncodedAudioFrame] = []
        packer.append(converter.convert(frame))
        while let packet = packer.next() {
            // 1,275 bytes is the largest Opus frame; three of 20 ms make 60 ms.
            let capacity = 4_000
            var code: Int32 = 0
            let payload = [UInt8](unsafeUninitializedCapacity: capacity) { buffer, count in
                guard let output = buffer.baseAddress else { return }
                code = opus_encode(
                    encoder, packet.samples, Int32(packet.samplesPerChannel), output, Int32(capacity))
                count = max(0, Int(code))
            }
            guard code > 0 else { throw .encodingFailed(codec: codec.rawValue, detail: text(code)) }
            // Two bytes or less say nothing but "silence goes on" (opus_encode's documentation).
            let isSilence = payload.count <= 2 && settings.usesDiscontinuousTransmission
            output.append(
                EncodedAudioFrame(
                    codec: .opus, timestamp: packet.timestamp, duration: packet.samplesPerChannel, payload: payload,
                    isSilence: isSilence))
        }
        return output
    }

    /// Clamped to 6,000...510,000 bit/s.
    package func setBitrate(_ bitsPerSecond: Int) throws(CodecError) {
        let code = sora_opus_encoder_set(
            encoder, Int32(SORA_OPUS_BITRATE), Int32(min(max(bitsPerSecond, 6_000), 510_000)))
        guard code == OPUS_OK else { throw .encodingFailed(codec: codec.rawValue, detail: text(code)) }
    }

    package func setExpectedPacketLoss(_ percent: Int) throws(CodecError) {
        set(SORA_OPUS_LOSS, min(max(percent, 0), 100))
    }

    private func set(_ request: Int, _ value: Int) {
        _ = sora_opus_encoder_set(encoder, Int32(request), Int32(value))
    }
}

/// Opus to 48 kHz sound, with concealment of losses.
package final class OpusDecoder: AudioDecoder {
    package let codec = AudioCodecKind.opus
    package let sampleRate = 48_000
    package let channels: Int
    private let decoder: OpaquePointer
    /// 120 ms, the longest Opus packet.
    private static let longestPacket = 5_760

    package init(channels: Int) throws(CodecError) {
        self.channels = channels >= 2 ? 2 : 1
        var code: Int32 = 0
        guard let decoder = opus_decoder_create(48_000, Int32(self.channels), &code) else {
            throw .openingFailed(codec: codec.rawValue, detail: text(code))
        }
        self.decoder = decoder
    }

    deinit { opus_decoder_destroy(decoder) }

    package func decode(_ frame: EncodedAudioFrame) throws(CodecError) -> AudioFrame {
        guard !frame.payload.isEmpty else {
            throw .decodingFailed(codec: codec.rawValue, detail: "it is empty")
        }
        return try run(frame.payload, samples: Self.longestPacket, fec: false, timestamp: frame.timestamp)
    }

    package func conceal(samplesPerChannel: Int, timestamp: Int64) throws(CodecError) -> AudioFrame {
        try run(nil, samples: whole(samplesPerChannel), fec: false, timestamp: timestamp)
    }

    package func recoverLoss(
        before next: EncodedAudioFrame, samplesPerChannel: Int
    ) throws(CodecError) -> AudioFrame {
        let samples = whole(samplesPerChannel)
        let earlier = next.timestamp - Int64(samples) * 1_000_000_000 / 48_000
        guard !next.payload.isEmpty else { return try conceal(samplesPerChannel: samples, timestamp: earlier) }
        return try run(next.payload, samples: samples, fec: true, timestamp: earlier)
    }

    /// Opus conceals whole multiples of 2.5 ms, up to 120 ms.
    private func whole(_ samples: Int) -> Int { min(max(samples / 120, 1) * 120, Self.longestPacket) }

    private func run(_ payload: [UInt8]?, samples: Int, fec: Bool, timestamp: Int64) throws(CodecError) -> AudioFrame {
        var code: Int32 = 0
        let pcm = [Int16](unsafeUninitializedCapacity: samples * channels) { buffer, count in
            guard let output = buffer.baseAddress else { return }
            if let payload {
                code = opus_decode(decoder, payload, Int32(payload.count), output, Int32(samples), fec ? 1 : 0)
            } else {
                code = opus_decode(decoder, nil, 0, output, Int32(samples), 0)
            }
            count = max(0, Int(code)) * channels
        }
        guard code >= 0 else { throw .decodingFailed(codec: codec.rawValue, detail: text(code)) }
        return AudioFrame(samples: pcm, sampleRate: sampleRate, channels: channels, timestamp: timestamp)
    }
}
#endif
