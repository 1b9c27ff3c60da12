import SoraRTP
import SoraWire
import Testing

@Suite struct VP8Tests {
    private func parse(_ text: String) throws -> VP8PayloadDescriptor {
        let bytes = hex(text)
        return try VP8PayloadDescriptor(parsing: bytes, in: 0..<bytes.count)
    }

    @Test func readsEveryField() throws {
        let full = try parse("b0f0 8123 45 a7 00")
        #expect(full.isNonReference && full.startsFrame)
        #expect(full.pictureID == 0x123 && full.hasLongPictureID && full.pictureIDOffset == 2)
        #expect(full.tl0PictureIndex == 0x45 && full.tl0PictureIndexOffset == 4)
        #expect(full.temporalLayer == 2 && full.isLayerSync && full.keyIndex == 7)
        #expect(full.length == 6)
        let short = try parse("9080 17 00")
        #expect(short.pictureID == 0x17 && !short.hasLongPictureID && short.length == 3)
        let plain = try parse("02 00")
        #expect(plain.partitionIndex == 2 && !plain.startsFrame && plain.pictureID == nil && plain.length == 1)
    }

    // COD8
    @Test(arguments: ["908081", "90", "9080", "90f0810203", "908001", ""])
    func truncatedDescriptorsAreErrors(text: String) {
        #expect(throws: RTPError.self) { try parse(text) }
    }

    // COD8: a key frame in one packet, and frames of one byte
    @Test func tinyFramesAreOnePacket() throws {
        var packetizer = VP8Packetizer(pictureID: 0x7FFF, tl0PictureIndex: 9)
        let first = packetizer.packetize([0x00], traits: .init(isKeyFrame: true), limit: 1200)
        #expect(first == [hex("9080ffff00")])
        let second = packetizer.packetize([0x01], traits: .init(isKeyFrame: false), limit: 1200)
        #expect(second == [hex("9080800001")])
        #expect(packetizer.packetize([], traits: .init(isKeyFrame: false), limit: 1200) == [])
        #expect(packetizer.packetize([1, 2], traits: .init(isKeyFrame: false), limit: 4) == [])
    }

    // COD3's rule holds here too: frames that divide evenly, and one either side.
    @Test func cutsEvenlyAndWithinTheLimit() throws {
        for limit in [5, 100, 1200] {
            for size in [1, limit - 5, limit - 4, limit - 3, 3 * (limit - 4), 3 * (limit - 4) + 1] where size > 0 {
                var packetizer = VP8Packetizer(pictureID: 5, tl0PictureIndex: 0)
                let frame = (0..<size).map { UInt8(truncatingIfNeeded: $0) }
                let payloads = packetizer.packetize(frame, traits: .init(isKeyFrame: true), limit: limit)
                #expect(payloads.count == (size + limit - 5) / (limit - 4))
                var joined: [UInt8] = []
                for (index, payload) in payloads.enumerated() {
                    #expect(payload.count <= limit && payload.count > 4)
                    let descriptor = try VP8PayloadDescriptor(parsing: payload, in: 0..<payload.count)
                    #expect(descriptor.startsFrame == (index == 0))
                    #expect(descriptor.pictureID == 5)
                    joined += payload[descriptor.length...]
                }
                #expect(joined == frame)
                #expect((payloads.map(\.count).max() ?? 0) - (payloads.map(\.count).min() ?? 0) <= 1)
            }
        }
    }

    @Test func temporalLayersCarryTheBaseIndex() throws {
        var packetizer = VP8Packetizer(pictureID: 1, tl0PictureIndex: 255)
        var indexes: [UInt8?] = []
        for layer: UInt8 in [0, 2, 1, 2, 0] {
            let payload = packetizer.packetize(
                [1, 2, 3], traits: .init(isKeyFrame: false, temporalLayer: layer, isLayerSync: layer == 1), limit: 100)[
                    0]
            let descriptor = try VP8PayloadDescriptor(parsing: payload, in: 0..<payload.count)
            #expect(descriptor.temporalLayer == layer && descriptor.isLayerSync == (layer == 1))
            indexes.append(descriptor.tl0PictureIndex)
        }
        #expect(indexes == [0, 0, 0, 0, 1])
    }

    @Test func everyVariationIsAValueOrAnError() {
        for input in variations(of: hex("b0f0812345a70011223344")) {
            if let descriptor = try? VP8PayloadDescriptor(parsing: input, in: 0..<input.count) {
                #expect(descriptor.length < input.count)
            }
        }
        #expect(throws: RTPError.self) { try VP8PayloadDescriptor(parsing: [0x10, 0], in: 5..<9) }
    }
}

@Suite struct OpusTests {
    // COD10: the clock is 48 kHz whatever is captured
    @Test func samplesFollowTheTableOfContents() {
        #expect(OpusPacketInfo([0 << 3, 1, 2])?.samples == 480)  // SILK 10 ms
        #expect(OpusPacketInfo([3 << 3, 1, 2])?.samples == 2880)  // SILK 60 ms
        #expect(OpusPacketInfo([13 << 3, 1, 2])?.samples == 960)  // hybrid 20 ms
        #expect(OpusPacketInfo([16 << 3, 1, 2])?.samples == 120)  // CELT 2.5 ms
        #expect(OpusPacketInfo([31 << 3 | 4, 1, 2])?.samples == 960)
        #expect(OpusPacketInfo([31 << 3 | 4, 1, 2])?.isStereo == true)
        #expect(OpusPacketInfo([31 << 3 | 1, 1, 2])?.samples == 1920)
        #expect(OpusPacketInfo([31 << 3 | 2, 1, 9, 9])?.samples == 1920)
        #expect(OpusPacketInfo([31 << 3 | 3, 6, 1, 2, 3, 4, 5, 6])?.samples == 5760)
    }

    @Test func refusesWhatIsNoOpus() {
        #expect(OpusPacketInfo([]) == nil)
        #expect(OpusPacketInfo([31 << 3 | 3, 7, 0, 0]) == nil)  // 140 ms
        #expect(OpusPacketInfo([31 << 3 | 3, 0]) == nil)  // no frames
        #expect(OpusPacketInfo([31 << 3 | 1, 1]) == nil)  // two frames of equal size in an odd number of bytes
        #expect(OpusPacketInfo([31 << 3 | 2, 9, 1]) == nil)  // first frame longer than the packet
    }

    @Test func everyVariationIsAValueOrNil() {
        for seed: [UInt8] in [[0x0B, 0x83, 2, 1, 1, 5, 5], [0xFA, 0xFC, 1, 2, 3], [0x78, 0x40, 0x20]] {
            for input in variations(of: seed) {
                if let info = OpusPacketInfo(input) { #expect(info.samples > 0 && info.samples <= 5760) }
            }
        }
    }

    // COD10: silence is known from the frame, not from one odd length
    @Test func silenceIsKnownFromTheFrames() {
        #expect(OpusPacketInfo([0x78])?.isSilence == true)
        #expect(OpusPacketInfo([0x78, 0])?.isSilence == true)
        #expect(OpusPacketInfo([0x78, 0, 0])?.isSilence == false)
        #expect(OpusPacketInfo([0x79, 0, 0])?.isSilence == true)
    }

    @Test func errorCorrectionFlagIsRead() {
        // 20 ms SILK: activity flag, then the redundancy flag.
        #expect(OpusPacketInfo([1 << 3, 0x40, 9, 9])?.carriesForwardErrorCorrection == true)
        #expect(OpusPacketInfo([1 << 3, 0x80, 9, 9])?.carriesForwardErrorCorrection == false)
        // 60 ms: three activity flags first. Side channel of stereo: one further.
        #expect(OpusPacketInfo([3 << 3, 0x10, 9, 9])?.carriesForwardErrorCorrection == true)
        #expect(OpusPacketInfo([1 << 3 | 4, 0x10, 9, 9])?.carriesForwardErrorCorrection == true)
        #expect(OpusPacketInfo([31 << 3, 0xFF, 9, 9])?.carriesForwardErrorCorrection == false)
    }

    // COD10: time goes on through discontinuous transmission
    @Test func markerBeginsATalkSpurt() {
        var packetizer = OpusPacketizer(timestamp: RTPTimestamp(.max - 959))
        let speech: [UInt8] = [0x78, 1, 2, 3]
        #expect(packetizer.packetize(speech)?.marker == true)
        let second = packetizer.packetize(speech)
        #expect(second?.marker == false && second?.timestamp == RTPTimestamp(0))
        #expect(packetizer.packetize([0x78])?.marker == false)
        packetizer.skip(samples: 96_000)
        let resumed = packetizer.packetize(speech)
        #expect(resumed?.marker == true && resumed?.timestamp == RTPTimestamp(97_920))
        #expect(packetizer.packetize([]) == nil)
    }
}
