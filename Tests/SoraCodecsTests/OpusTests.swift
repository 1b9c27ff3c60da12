#if Media
import SoraCodecs
import SoraFrames
import Testing

@Suite struct OpusTests {
    let tone = TestTone()

    func packets(
        _ settings: AudioEncoderSettings, seconds: Int = 2, channels: Int = 1, silent: Bool = false
    ) throws -> [EncodedAudioFrame] {
        let encoder = try MediaCodecs().makeAudioEncoder(settings)
        let source = TestTone(channels: channels)
        var output: [EncodedAudioFrame] = []
        for piece in 0..<(seconds * 100) {
            let time = Int64(piece) * 10_000_000
            let frame =
                silent
                ? AudioFrame.silence(samplesPerChannel: 480, channels: channels, timestamp: time)
                : source.frame(from: piece * 480, count: 480, timestamp: time)
            output += try encoder.encode(frame)
        }
        return output
    }

    @Test(arguments: [10, 20, 40, 60], [1, 2])
    func toneComesBack(milliseconds: Int, channels: Int) throws {  // COD10, COD11
        let coded = try packets(
            AudioEncoderSettings(channels: channels, frameMilliseconds: milliseconds), channels: channels)
        #expect(coded.count == 2_000 / milliseconds)
        for (index, packet) in coded.enumerated() {
            #expect(packet.duration == 48 * milliseconds)
            #expect(packet.timestamp == Int64(index * milliseconds) * 1_000_000)
        }
        let decoder = try MediaCodecs().makeAudioDecoder(.opus, channels: channels)
        var samples: [Int16] = []
        for packet in coded {
            let frame = try decoder.decode(packet)
            #expect(frame.samplesPerChannel == packet.duration && frame.channels == channels)
            samples += stride(from: 0, to: frame.samples.count, by: channels).map { frame.samples[$0] }
        }
        var crossings = 0
        for i in 57_600..<91_200 where samples[i - 1] < 0 && samples[i] >= 0 { crossings += 1 }
        #expect(abs(crossings - 308) <= 6, "440 Hz for 0.7 s")
    }

    @Test func lossIsConcealedAndRecovered() throws {
        let coded = try packets(
            AudioEncoderSettings(bitrate: 32_000, expectedPacketLoss: 30, isVoice: true), seconds: 3)
        let decoder = try MediaCodecs().makeAudioDecoder(.opus, channels: 1)
        var recovered = 0.0
        var concealed = 0.0
        var index = 20
        for packet in coded.prefix(20) { _ = try decoder.decode(packet) }
        while index + 2 < coded.count {
            let frame = try decoder.recoverLoss(before: coded[index + 1], samplesPerChannel: 960)
            #expect(frame.samplesPerChannel == 960)
            #expect(frame.timestamp == coded[index].timestamp)
            recovered = max(recovered, frame.level)
            _ = try decoder.decode(coded[index + 1])
            let guess = try decoder.conceal(samplesPerChannel: 960, timestamp: coded[index + 2].timestamp)
            #expect(guess.samplesPerChannel == 960)
            concealed = max(concealed, guess.level)
            index += 3
        }
        #expect(recovered > 0.02 && concealed > 0.02)
    }

    @Test func silenceNeedsNextToNothingWithDTX() throws {
        let quiet = try packets(
            AudioEncoderSettings(usesDiscontinuousTransmission: true), seconds: 3, silent: true)
        #expect(quiet.count == 150)
        #expect(quiet.filter(\.isSilence).count > 100)
        // Time goes on.
        #expect(quiet.last?.timestamp == 2_980_000_000)
        let loud = try packets(AudioEncoderSettings(usesDiscontinuousTransmission: true))
        #expect(loud.filter(\.isSilence).isEmpty)
    }

    @Test func bitrateChangesLive() throws {
        let encoder = try MediaCodecs().makeAudioEncoder(
            AudioEncoderSettings(channels: 2, bitrate: 128_000, isVoice: false))
        var noise = Noise(width: 98, height: 10)
        func bytes(_ pieces: Range<Int>) throws -> Int {
            var sum = 0
            for piece in pieces {
                let samples = noise.next().withPlanes { planes in
                    (0..<960).map { Int16(Int(planes.y[$0 % 98 + $0 / 98 % 10 * planes.strideY]) - 128) * 100 }
                }
                let frame = AudioFrame(
                    samples: samples, sampleRate: 48_000, channels: 2, timestamp: Int64(piece) * 10_000_000)
                for packet in try encoder.encode(frame) { sum += packet.payload.count }
            }
            return sum
        }
        let high = try bytes(0..<100)
        try encoder.setBitrate(24_000)
        let low = try bytes(100..<200)
        #expect(high * 8 > 90_000 && low * 8 < 40_000, "\(high * 8) \(low * 8)")
        try encoder.setBitrate(1)
        try encoder.setBitrate(.max)
        try encoder.setExpectedPacketLoss(1_000)
        #expect(try bytes(200..<210) > 0)
    }

    @Test func garbageIsAnErrorNotACrash() throws {
        let decoder = try MediaCodecs().makeAudioDecoder(.opus, channels: 2)
        func decode(_ payload: [UInt8]) throws -> AudioFrame {
            try decoder.decode(EncodedAudioFrame(codec: .opus, timestamp: 0, duration: 960, payload: payload))
        }
        #expect(throws: CodecError.self) { try decode([]) }
        #expect(throws: CodecError.self) { try decode([0xFF]) }
        let good = try packets(AudioEncoderSettings())[10].payload
        for length in 1...good.count {
            _ = try? decode(Array(good.prefix(length)))
            var changed = good
            changed[length - 1] ^= 0x81
            _ = try? decode(changed)
        }
        #expect(try decode(good).samplesPerChannel == 960)
        #expect(try decoder.conceal(samplesPerChannel: .max / 4, timestamp: 0).samplesPerChannel == 5_760)
        #expect(try decoder.conceal(samplesPerChannel: -1, timestamp: 0).samplesPerChannel == 120)
    }
}
#endif
