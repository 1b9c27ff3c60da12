import SoraRTP
import SoraWire
import Testing

@Suite struct DependencyDescriptorTests {
    private func parse(_ bytes: [UInt8], _ structure: FrameDependencyStructure? = nil) throws -> DependencyDescriptor {
        try DependencyDescriptor(parsing: bytes, in: 0..<bytes.count, structure: structure)
    }

    @Test func threeBytesAreEnoughForMostPackets() throws {
        let descriptor = try parse(hex("c51234"))
        #expect(
            descriptor == DependencyDescriptor(startsFrame: true, endsFrame: true, templateID: 5, frameNumber: 0x1234))
        #expect(hexText(descriptor.serialized()) == "c51234")
    }

    @Test func singleLayerStructureIsGolden() throws {
        var writer = DependencyDescriptorWriter(frameNumber: 0xFFFF)
        let key = writer.values(isKeyFrame: true, resolution: .init(width: 640, height: 360), packetCount: 2)
        // Flags 10000; offset 000000; one target 00000; layers same 00, end 11; indications 10 10;
        // differences 0, 1 0000 0; one chain 1; protected by it (no bits); chain differences 0000 0001; resolution 1.
        #expect(hexText(key[0]) == "80ffff" + "80003a4101" + "813f80b380")
        #expect(hexText(key[1]) == "40ffff")
        let next = writer.values(isKeyFrame: false, packetCount: 1)
        #expect(next.map(hexText) == ["c10000"])
        let read = try parse(key[0])
        #expect(read.structure == .singleLayer(.init(width: 640, height: 360)))
        #expect(read.structure?.template(1)?.frameDiffs == [1])
        #expect(read.structure?.template(2) == nil)
    }

    static func random(_ random: inout RandomSource) -> DependencyDescriptor {
        let targets = Int.random(in: 1...6, using: &random)
        let chains = Int.random(in: 0...targets, using: &random)
        func indications() -> [DecodeTargetIndication] {
            (0..<targets).map { _ in
                DecodeTargetIndication(rawValue: UInt8.random(in: 0...3, using: &random)) ?? .required
            }
        }
        var templates: [FrameDependencyStructure.Template] = []
        for spatial in 0..<UInt8.random(in: 1...3, using: &random) {
            for temporal in 0..<UInt8.random(in: 1...3, using: &random) {
                for _ in 0..<Int.random(in: 1...2, using: &random) {
                    templates.append(
                        .init(
                            spatialLayer: spatial, temporalLayer: temporal, indications: indications(),
                            frameDiffs: (0..<Int.random(in: 0...3, using: &random)).map { _ in
                                Int.random(in: 1...16, using: &random)
                            },
                            chainDiffs: (0..<chains).map { _ in UInt8.random(in: 0...15, using: &random) }))
                }
            }
        }
        var structure = FrameDependencyStructure(
            templateIDOffset: UInt8.random(in: 0...63, using: &random), decodeTargetCount: targets, chainCount: chains,
            protectingChains: chains == 0
                ? [] : (0..<targets).map { _ in UInt8.random(in: 0..<UInt8(chains), using: &random) },
            templates: templates)
        if Bool.random(using: &random) {
            structure.resolutions = (0..<structure.spatialLayerCount).map { _ in
                .init(
                    width: Int.random(in: 1...65_536, using: &random), height: Int.random(in: 1...4000, using: &random))
            }
        }
        var descriptor = DependencyDescriptor(
            startsFrame: Bool.random(using: &random), endsFrame: Bool.random(using: &random),
            templateID: structure.templateIDOffset &+ UInt8.random(in: 0..<UInt8(templates.count), using: &random),
            frameNumber: UInt16.random(in: 0...(.max), using: &random), structure: structure)
        if Bool.random(using: &random) {
            descriptor.activeDecodeTargets = UInt32.random(in: 0..<(1 << UInt32(targets)), using: &random)
        }
        if Bool.random(using: &random) { descriptor.indications = indications() }
        if Bool.random(using: &random) {
            descriptor.frameDiffs = (0..<Int.random(in: 0...4, using: &random)).map { _ in
                Int.random(in: 1...4096, using: &random)
            }
        }
        if chains > 0, Bool.random(using: &random) {
            descriptor.chainDiffs = (0..<chains).map { _ in UInt8.random(in: 0...(.max), using: &random) }
        }
        return descriptor
    }

    @Test func randomDescriptorsRoundTrip() throws {
        var random = RandomSource(seed: 21)
        for _ in 0..<500 {
            let descriptor = DependencyDescriptorTests.random(&random)
            #expect(try parse(descriptor.serialized()) == descriptor)
            // A later packet refers to the structure by template and carries only what differs.
            var later = descriptor
            later.structure = nil
            #expect(try parse(later.serialized(structure: descriptor.structure), descriptor.structure) == later)
        }
    }

    @Test func everyVariationIsAValueOrAnError() {
        var random = RandomSource(seed: 22)
        for seed in 0..<10 {
            let good = DependencyDescriptorTests.random(&random)
            for input in variations(of: good.serialized(), seed: UInt64(seed), random: 100) {
                for known in [nil, good.structure] {
                    guard let read = try? parse(input, known), let structure = read.structure else { continue }
                    #expect(structure.templates.count <= 64 && structure.decodeTargetCount <= 32)
                }
            }
        }
    }

    @Test func customFieldsNeedAStructure() {
        #expect(throws: RTPError.self) { try parse(hex("c0000020ff")) }
        #expect(throws: RTPError.self) { try parse(hex("c000")) }
        #expect(throws: RTPError.self) { try parse(hex("c50000"), .singleLayer()) }  // template 5 of 2
    }
}
