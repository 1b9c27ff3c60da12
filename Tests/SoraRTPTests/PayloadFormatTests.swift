import SoraRTP
import SoraWire
import Testing

private func slices(_ payloads: [[UInt8]]) -> [VideoPayloadSlice] {
    payloads.map { VideoPayloadSlice(packet: $0, range: 0..<$0.count) }
}

private func inspect(_ format: VideoPayloadFormat, _ text: String) throws -> VideoPayloadInfo {
    let bytes = hex(text)
    return try format.inspect(bytes, 0..<bytes.count)
}

@Suite struct VideoPayloadFormatTests {
    @Test func namesAreKnownInAnyCase() {
        #expect(VideoPayloadFormat(encodingName: "vp8") == .vp8)
        #expect(VideoPayloadFormat(encodingName: "H265") == .h265)
        #expect(VideoPayloadFormat(encodingName: "rtx") == nil)
    }

    /// Good payloads of each format, as seeds for variations.
    static let seeds: [(VideoPayloadFormat, String)] = [
        (.vp8, "b0f0812345a70011223344"),
        (.vp9, "8f8123 18 0140 00b4 11"), (.vp9, "f8 8123 24 05 07 11 22"), (.vp9, "aa0108 05 18 02 14 01 36 0102 99"),
        (.h264, "58000467640c1f000268ee"), (.h264, "7c85888401"), (.h264, "6588840100"),
        (.h265, "6001000440010c01000342010101"), (.h265, "620193af0102"), (.h265, "26 01 af 01"),
        (.av1, "1830010a0b0211223344"), (.av1, "28020a0b32010203"), (.av1, "c8aabb"), (.av1, "00020a01010a"),
    ]

    @Test func everyVariationIsAValueOrAnError() {
        for (index, seed) in VideoPayloadFormatTests.seeds.enumerated() {
            for input in variations(of: hex(seed.1), seed: UInt64(index)) {
                for format in VideoPayloadFormat.allCases {
                    let info = try? format.inspect(input, 0..<input.count)
                    if let info {
                        #expect(info.pictureIDPosition < input.count && info.tl0PictureIndexPosition < input.count)
                    }
                    if let frame = try? format.assemble(slices([input, input])) {
                        #expect(frame.count <= 2 * input.count * 5)  // start codes, size fields: bounded
                    }
                }
            }
        }
    }

    // COD3 and COD7: frames at all limits come out as they went in, within the limit, none empty.
    @Test(arguments: VideoPayloadFormat.allCases) func framesSurviveAllLimits(format: VideoPayloadFormat) throws {
        var random = RandomSource(seed: 77)
        for round in 0..<150 {
            let limit = [60, 61, 98, 100, 500, 898, 900, 1200, 1400][round % 9]
            let isKey = round % 4 == 0
            let frame = makeFrame(format, isKey: isKey, &random)
            var packetizer = format.makePacketizer(random: &random)
            let payloads = packetizer.packetize(
                frame, traits: .init(isKeyFrame: isKey, width: 640, height: 360), limit: limit)
            #expect(payloads.allSatisfy { !$0.isEmpty && $0.count <= limit })
            for (index, payload) in payloads.enumerated() {
                let info = try format.inspect(payload, 0..<payload.count)
                if index == 0 { #expect(info.startsKeyFrame == isKey) }
            }
            #expect(try format.assemble(slices(payloads)) == frame)
        }
    }

    private func makeFrame(_ format: VideoPayloadFormat, isKey: Bool, _ random: inout RandomSource) -> [UInt8] {
        switch format {
        case .vp8:
            var frame = random.bytes(Int.random(in: 1...5000, using: &random))
            frame[0] = frame[0] & 0xFE | (isKey ? 0 : 1)
            return frame
        case .vp9: return random.bytes(Int.random(in: 1...5000, using: &random))
        case .h264:
            let heads: [[UInt8]] =
                isKey ? [[0x67], [0x68], [0x06], [0x65, 0x88], [0x65, 0x08]] : [[0x41, 0x9A], [0x41, 0x0A]]
            return annexB(heads, &random)
        case .h265:
            let heads: [[UInt8]] =
                isKey
                ? [[0x40, 1], [0x42, 1], [0x44, 1], [0x26, 1, 0xAF], [0x26, 1, 0x2F]]
                : [[0x02, 1, 0xD0], [0x02, 1, 0x50]]
            return annexB(heads, &random)
        case .av1:
            var frame: [UInt8] = []
            var types: [UInt8] = isKey ? [1, 6] : [3, 4]
            for _ in 0..<Int.random(in: 0...4, using: &random) { types.append(4) }
            for type in types {
                let size = Int.random(in: 1...(Bool.random(using: &random) ? 3000 : 40), using: &random)
                let hasExtension = Bool.random(using: &random)
                frame.append(type << 3 | (hasExtension ? 0x04 : 0) | 0x02)
                if hasExtension { frame.append(0x20) }
                frame += leb128(size)
                frame += random.bytes(size)
            }
            return frame
        }
    }

    private func annexB(_ heads: [[UInt8]], _ random: inout RandomSource) -> [UInt8] {
        heads.reduce(into: []) { frame, head in
            frame += [0, 0, 0, 1]
            frame += head
            let size = Int.random(in: 1...(Bool.random(using: &random) ? 3000 : 30), using: &random)
            for _ in 0..<size { frame.append(UInt8.random(in: 4...255, using: &random)) }
        }
    }

    private func leb128(_ value: Int) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = value
        repeat {
            bytes.append(UInt8(rest & 0x7F) | (rest > 0x7F ? 0x80 : 0))
            rest >>= 7
        } while rest > 0
        return bytes
    }
}

@Suite struct H264PayloadTests {
    // COD1
    @Test func aggregatesAreCheckedPartByPart() throws {
        #expect(throws: RTPError.self) { try inspect(.h264, "5800036588") }
        #expect(throws: RTPError.self) { try inspect(.h264, "5800016500") }
        #expect(throws: RTPError.self) { try inspect(.h264, "58000067") }
        #expect(throws: RTPError.self) { try inspect(.h264, "58") }
        #expect(try inspect(.h264, "58000467640c1f000268ee").startsKeyFrame)
        let frame = try VideoPayloadFormat.h264.assemble(slices([hex("58000467640c1f000268ee")]))
        #expect(hexText(frame) == "0000000167640c1f" + "0000000168ee")
    }

    // COD2
    @Test(arguments: ["5a0001", "5d85", "590001", "5b00", "40", "5e01", "5f01"])
    func otherKindsAreUnsupported(payload: String) {
        do {
            _ = try inspect(.h264, payload)
            Issue.record("accepted")
        } catch {
            guard let error = error as? RTPError, case .unsupportedPayload = error else {
                Issue.record("\(error)")
                return
            }
        }
    }

    // COD3
    @Test(arguments: [98, 898]) func fragmentsDivideEvenly(size: Int) throws {
        for k in 1...5 {
            for extra in -1...1 {
                let body = (0..<(k * size + extra)).map { UInt8($0 % 250 + 4) }
                let frame: [UInt8] = [0, 0, 0, 1, 0x65] + body
                var packetizer = H264Packetizer()
                let payloads = packetizer.packetize(frame, traits: .init(isKeyFrame: true), limit: size + 2)
                if body.count + 1 > size + 2 {
                    #expect(payloads.count == (body.count + size - 1) / size)
                    for (index, payload) in payloads.enumerated() {
                        #expect(payload[0] == 0x7C && payload.count > 2 && payload.count <= size + 2)
                        #expect((payload[1] & 0x80 != 0) == (index == 0))
                        #expect((payload[1] & 0x40 != 0) == (index == payloads.count - 1))
                    }
                } else {
                    #expect(payloads.count == 1)
                }
                #expect(try VideoPayloadFormat.h264.assemble(slices(payloads)) == frame)
            }
        }
    }

    // COD4
    @Test func oddFragments() throws {
        #expect(try hexText(VideoPayloadFormat.h264.assemble(slices([hex("5cc141")]))) == "000000014141")
        #expect(throws: RTPError.self) { try inspect(.h264, "5c85") }
        var packetizer = H264Packetizer()
        let frame: [UInt8] = [0, 0, 0, 1, 0x41] + [UInt8](repeating: 7, count: 900)
        let payloads = packetizer.packetize(frame, traits: .init(isKeyFrame: false), limit: 202)
        #expect(payloads.count == 5)
        for missing in [0, 4] {
            var rest = payloads
            rest.remove(at: missing)
            #expect(throws: RTPError.self) { try VideoPayloadFormat.h264.assemble(slices(rest)) }
        }
        #expect(throws: RTPError.self) { try VideoPayloadFormat.h264.assemble(slices(payloads + [payloads[2]])) }
    }

    // COD5
    @Test func aggregateTakesTheHighestImportance() throws {
        var packetizer = H264Packetizer()
        let frame = hex("0000000106 05 04" + "00000001 67640c1f" + "000001 68ee")
        let payloads = packetizer.packetize(frame, traits: .init(isKeyFrame: true), limit: 1200)
        #expect(payloads == [hex("78 0003060504 000467640c1f 000268ee")])
    }

    @Test func parameterSetsStandInFrontOfEachKeyFrame() throws {
        var packetizer = H264Packetizer()
        _ = packetizer.packetize(
            hex("00000001 67640c1f 00000001 68ee 00000001 6588"), traits: .init(isKeyFrame: true), limit: 1200)
        let second = packetizer.packetize(
            hex("00000001 09f0 00000001 6589"), traits: .init(isKeyFrame: true), limit: 1200)
        #expect(
            try hexText(VideoPayloadFormat.h264.assemble(slices(second))) == "0000000167640c1f0000000168ee000000016589")
        #expect(packetizer.packetize([], traits: .init(isKeyFrame: false), limit: 1200) == [])
    }

    @Test func keyFrameStartIsTheFirstSliceOrTheParameterSet() throws {
        #expect(try inspect(.h264, "6588").startsKeyFrame)
        #expect(try inspect(.h264, "6588").mayFollowOthersOfItsFrame)
        #expect(try !inspect(.h264, "6508").startsKeyFrame)  // a later slice
        #expect(try inspect(.h264, "7c858801").startsKeyFrame)
        #expect(try !inspect(.h264, "7c058801").startsKeyFrame)  // a later fragment
        #expect(try !inspect(.h264, "6742").mayFollowOthersOfItsFrame)
        #expect(try !inspect(.h264, "419a").startsKeyFrame)
    }
}

@Suite struct VP9PayloadTests {
    // COD9: both modes
    @Test func readsFlexibleAndNonFlexibleDescriptors() throws {
        let flexible = hex("f8 8123 25 03 04 11")
        let first = try VP9PayloadDescriptor(parsing: flexible, in: 0..<flexible.count)
        #expect(first.isFlexible && first.isInterPredicted && first.startsLayerFrame && !first.endsLayerFrame)
        #expect(first.pictureID == 0x123 && first.temporalLayer == 1 && first.spatialLayer == 2)
        #expect(first.usesInterLayerPrediction && first.referenceDifferences == [1, 2] && first.tl0PictureIndex == nil)
        let plain = hex("a4 17 50 63 11")
        let second = try VP9PayloadDescriptor(parsing: plain, in: 0..<plain.count)
        #expect(second.pictureID == 0x17 && second.temporalLayer == 2 && second.isSwitchingUpPoint)
        #expect(second.tl0PictureIndex == 0x63 && second.tl0PictureIndexOffset == 3 && second.length == 4)
        let none = hex("0c 11")
        #expect(try VP9PayloadDescriptor(parsing: none, in: 0..<2).pictureID == nil)
    }

    // COD9: structures with 0 pictures, with pictures without references, with 3 layers and no sizes
    @Test func readsScalabilityStructures() throws {
        func structure(_ text: String) throws -> VP9ScalabilityStructure? {
            let bytes = hex("0a" + text + "99")
            let descriptor = try VP9PayloadDescriptor(parsing: bytes, in: 0..<bytes.count)
            #expect(descriptor.length == bytes.count - 1)
            return descriptor.scalability
        }
        #expect(try structure("0800") == .init(spatialLayerCount: 1, sizes: [], pictures: []))
        #expect(try structure("40") == .init(spatialLayerCount: 3, sizes: [], pictures: nil))
        #expect(
            try structure("18 0280 0168 02 00 34 01")
                == .init(
                    spatialLayerCount: 1, sizes: [.init(width: 640, height: 360)],
                    pictures: [
                        .init(temporalLayer: 0, isSwitchingUpPoint: false, referenceDifferences: []),
                        .init(temporalLayer: 1, isSwitchingUpPoint: true, referenceDifferences: [1]),
                    ]))
    }

    // COD9: reference chain past the end, more references than three, counts that lie
    @Test(arguments: [
        "0a08ff", "0a0801", "0a08020c01", "0a50028001", "5801", "58030303 03 03", "80", "8081", "a08123", "",
    ])
    func falseCountsAreErrors(text: String) {
        #expect(throws: RTPError.self) {
            let bytes = hex(text)
            return try VP9PayloadDescriptor(parsing: bytes, in: 0..<bytes.count)
        }
    }

    @Test func descriptorsRoundTrip() throws {
        var random = RandomSource(seed: 3)
        for _ in 0..<300 {
            var descriptor = VP9PayloadDescriptor()
            descriptor.isFlexible = Bool.random(using: &random)
            descriptor.isInterPredicted = Bool.random(using: &random)
            descriptor.startsLayerFrame = Bool.random(using: &random)
            descriptor.pictureID = Bool.random(using: &random) ? UInt16.random(in: 0...0x7FFF, using: &random) : nil
            if Bool.random(using: &random) {
                descriptor.temporalLayer = UInt8.random(in: 0...7, using: &random)
                descriptor.spatialLayer = UInt8.random(in: 0...7, using: &random)
                if !descriptor.isFlexible { descriptor.tl0PictureIndex = UInt8.random(in: 0...255, using: &random) }
            }
            if descriptor.isFlexible, descriptor.isInterPredicted {
                descriptor.referenceDifferences = (0..<Int.random(in: 1...3, using: &random)).map { UInt8($0 + 1) }
            }
            var bytes: [UInt8] = []
            descriptor.write(to: &bytes)
            let length = bytes.count
            let read = try VP9PayloadDescriptor(parsing: bytes + [1], in: 0..<(length + 1))
            var again: [UInt8] = []
            read.write(to: &again)
            #expect(again == bytes && read.length == length)
            #expect(read.pictureID == descriptor.pictureID && read.temporalLayer == descriptor.temporalLayer)
            #expect(read.referenceDifferences == descriptor.referenceDifferences)
        }
    }

    @Test func keyFramesAnnounceTheirSize() throws {
        var packetizer = VP9Packetizer(pictureID: 1, tl0PictureIndex: 0)
        let payloads = packetizer.packetize(
            [UInt8](repeating: 3, count: 100), traits: .init(isKeyFrame: true, width: 640, height: 360), limit: 60)
        #expect(hexText(Array(payloads[0].prefix(8))) == "8a80011002800168")
        #expect(payloads[0][0] == 0x8A && payloads.last?[0] == 0x84)
        let second = packetizer.packetize(
            [1], traits: .init(isKeyFrame: false, temporalLayer: 1, isLayerSync: true), limit: 60)
        #expect(second == [hex("ec8002300001")])
    }
}

@Suite struct AV1PayloadTests {
    // COD7: 30010a7e08 (second element too long), 90aabb (continuation without start)
    @Test func falseLengthsAndContinuationsAreErrors() {
        #expect(throws: RTPError.self) { try inspect(.av1, "30010a7e08") }
        #expect(throws: RTPError.self) { try VideoPayloadFormat.av1.assemble(slices([hex("90aabb")])) }
        #expect(throws: RTPError.self) { try inspect(.av1, "98aabb") }  // continuation that starts a sequence
        #expect(throws: RTPError.self) { try inspect(.av1, "30020a01") }  // three elements promised, one there
        #expect(throws: RTPError.self) { try VideoPayloadFormat.av1.assemble(slices([hex("50aabb")])) }  // no end
        #expect(throws: RTPError.self) { try inspect(.av1, "00ffffffff1f0a") }  // COD6: 2^32 and above
        #expect(throws: RTPError.self) { try inspect(.av1, "00808080808080808000") }  // more than eight bytes
        #expect(throws: RTPError.self) { try inspect(.av1, "10") }
    }

    // COD7: size fields are normalised, also across packets; extension byte kept; delimiter and padding left out
    @Test func sizeFieldsAreNormalised() throws {
        // Element 1: delimiter with size field. Element 2: sequence header without one. Element 3: frame with an
        // extension byte and a size field, cut in two packets. Padding OBU at the end.
        let first = hex("78" + "021200" + "03080b0c" + "36200504 0102".replacing(" ", with: ""))
        let second = hex("a0" + "020304" + "7899")
        let frame = try VideoPayloadFormat.av1.assemble(slices([first, second]))
        #expect(hexText(frame) == "0a020b0c" + "3620" + "05" + "0401020304")
    }

    @Test func delimitersAreNotSent() throws {
        var packetizer = AV1Packetizer()
        let payloads = packetizer.packetize(
            hex("1200" + "0a020b0c" + "3203010203" + "7a0155"), traits: .init(isKeyFrame: true), limit: 1200)
        #expect(payloads == [hex("28" + "03080b0c" + "30010203")])
        let plain = packetizer.packetize(hex("3203010203"), traits: .init(isKeyFrame: false), limit: 1200)
        #expect(plain == [hex("1030010203")])
        #expect(packetizer.packetize(hex("32ff01"), traits: .init(isKeyFrame: false), limit: 1200) == [])
    }

    // COD6: around the borders of the length field
    @Test(arguments: [126, 127, 128, 16_382, 16_383, 16_384, 2_097_151, 2_097_152])
    func lengthsAreShortest(size: Int) throws {
        var packetizer = AV1Packetizer()
        let body = [UInt8](repeating: 0x42, count: size)
        var frame: [UInt8] = [0x32]
        var rest = size
        repeat {
            frame.append(UInt8(rest & 0x7F) | (rest > 0x7F ? 0x80 : 0))
            rest >>= 7
        } while rest > 0
        let lengthBytes = frame.count - 1
        frame += body
        #expect(lengthBytes == (size < 128 ? 1 : size < 16_384 ? 2 : size < 2_097_152 ? 3 : 4))
        let payloads = packetizer.packetize(frame, traits: .init(isKeyFrame: false), limit: 1200)
        #expect(payloads.allSatisfy { $0.count <= 1200 })
        #expect(try VideoPayloadFormat.av1.assemble(slices(payloads)) == frame)
    }
}
