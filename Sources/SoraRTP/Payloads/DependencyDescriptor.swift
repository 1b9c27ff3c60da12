import SoraWire

/// What a frame is to a decode target (RTP Payload Format For AV1, A.8.2).
package enum DecodeTargetIndication: UInt8, Sendable {
    case notPresent, discardable, switching, required
}

/// Layers and dependencies that a stream's frames refer to by template, sent with each key frame
/// (RTP Payload Format For AV1, A.8.3).
package struct FrameDependencyStructure: Equatable, Sendable {
    package struct Template: Equatable, Sendable {
        package var spatialLayer: UInt8
        package var temporalLayer: UInt8
        /// One per decode target.
        package var indications: [DecodeTargetIndication]
        /// Frames that this one depends on, counted back: 1...16 in a template.
        package var frameDiffs: [Int]
        /// One per chain: how many frames back the chain's previous frame is, 0...15.
        package var chainDiffs: [UInt8]

        package init(
            spatialLayer: UInt8 = 0, temporalLayer: UInt8 = 0, indications: [DecodeTargetIndication],
            frameDiffs: [Int], chainDiffs: [UInt8]
        ) {
            self.spatialLayer = spatialLayer
            self.temporalLayer = temporalLayer
            self.indications = indications
            self.frameDiffs = frameDiffs
            self.chainDiffs = chainDiffs
        }
    }
    package struct Resolution: Equatable, Sendable {
        /// 1...65,536.
        package var width: Int
        package var height: Int
        package init(width: Int, height: Int) {
            self.width = width
            self.height = height
        }
    }

    package static let maximumTemplates = 64

    /// Template identifiers count from here, modulo 64.
    package var templateIDOffset: UInt8
    /// 1...32.
    package var decodeTargetCount: Int
    package var chainCount: Int
    /// The chain that protects each decode target; empty without chains.
    package var protectingChains: [UInt8]
    /// In the order of layers: temporal first, then spatial.
    package var templates: [Template]
    /// One per spatial layer, or none.
    package var resolutions: [Resolution]

    package init(
        templateIDOffset: UInt8 = 0, decodeTargetCount: Int, chainCount: Int, protectingChains: [UInt8],
        templates: [Template], resolutions: [Resolution] = []
    ) {
        self.templateIDOffset = templateIDOffset & 0x3F
        self.decodeTargetCount = decodeTargetCount
        self.chainCount = chainCount
        self.protectingChains = protectingChains
        self.templates = templates
        self.resolutions = resolutions
    }

    /// One spatial and one temporal layer: key frames, and frames that depend on the one before.
    package static func singleLayer(_ resolution: Resolution? = nil) -> FrameDependencyStructure {
        FrameDependencyStructure(
            decodeTargetCount: 1, chainCount: 1, protectingChains: [0],
            templates: [
                Template(indications: [.switching], frameDiffs: [], chainDiffs: [0]),
                Template(indications: [.switching], frameDiffs: [1], chainDiffs: [1]),
            ], resolutions: resolution.map { [$0] } ?? [])
    }

    package var spatialLayerCount: Int { Int(templates.map(\.spatialLayer).max() ?? 0) + 1 }

    /// The template that a descriptor's template identifier means.
    package func template(_ id: UInt8) -> Template? {
        let index = Int((id &+ 64 &- templateIDOffset) & 0x3F)
        return index < templates.count ? templates[index] : nil
    }
}

/// The AV1 dependency descriptor, a header extension by which an SFU forwards without looking into the payload.
package struct DependencyDescriptor: Equatable, Sendable {
    package var startsFrame: Bool
    package var endsFrame: Bool
    /// 0...63.
    package var templateID: UInt8
    package var frameNumber: UInt16
    /// Comes with key frames.
    package var structure: FrameDependencyStructure?
    /// Bit per decode target, lowest first; nil: as before (all, with a new structure).
    package var activeDecodeTargets: UInt32?
    /// Instead of the template's; nil: as the template says.
    package var indications: [DecodeTargetIndication]?
    /// 1...4096 each.
    package var frameDiffs: [Int]?
    package var chainDiffs: [UInt8]?

    package init(
        startsFrame: Bool, endsFrame: Bool, templateID: UInt8, frameNumber: UInt16,
        structure: FrameDependencyStructure? = nil, activeDecodeTargets: UInt32? = nil,
        indications: [DecodeTargetIndication]? = nil, frameDiffs: [Int]? = nil, chainDiffs: [UInt8]? = nil
    ) {
        self.startsFrame = startsFrame
        self.endsFrame = endsFrame
        self.templateID = templateID & 0x3F
        self.frameNumber = frameNumber
        self.structure = structure
        self.activeDecodeTargets = activeDecodeTargets
        self.indications = indications
        self.frameDiffs = frameDiffs
        self.chainDiffs = chainDiffs
    }
}

// MARK: Reading

extension DependencyDescriptor {
    private static func malformed(_ reason: String) -> RTPError {
        .malformedPayload(format: "dependency descriptor", reason: reason)
    }

    /// - Parameter structure: the newest structure of the stream; what a descriptor without one refers to.
    package init(parsing packet: [UInt8], in range: Range<Int>, structure known: FrameDependencyStructure?)
        throws(RTPError)
    {
        var bits = BitReader(packet, in: range)
        guard let starts = bits.readFlag(), let ends = bits.readFlag(), let template = bits.read(6),
            let number = bits.read(16)
        else { throw DependencyDescriptor.malformed("shorter than three bytes") }
        self.init(
            startsFrame: starts, endsFrame: ends, templateID: UInt8(template), frameNumber: UInt16(number))
        var customIndications = false
        var customDiffs = false
        var customChains = false
        if range.count > 3 {
            guard let hasStructure = bits.readFlag(), let hasActive = bits.readFlag(),
                let indications = bits.readFlag(),
                let diffs = bits.readFlag(), let chains = bits.readFlag()
            else { throw DependencyDescriptor.malformed("flags") }
            (customIndications, customDiffs, customChains) = (indications, diffs, chains)
            if hasStructure {
                guard let read = FrameDependencyStructure(&bits) else {
                    throw DependencyDescriptor.malformed("structure")
                }
                structure = read
            }
            if hasActive {
                guard let current = structure ?? known, let mask = bits.read(current.decodeTargetCount) else {
                    throw DependencyDescriptor.malformed("active decode targets")
                }
                activeDecodeTargets = mask
            }
        }
        guard let current = structure ?? known else {
            if customIndications || customDiffs || customChains {
                throw DependencyDescriptor.malformed("no structure known")
            }
            return
        }
        guard current.template(templateID) != nil else { throw DependencyDescriptor.malformed("unknown template") }
        if customIndications {
            indications = DependencyDescriptor.readIndications(&bits, current.decodeTargetCount)
            if indications == nil { throw DependencyDescriptor.malformed("indications") }
        }
        if customDiffs {
            var diffs: [Int] = []
            while true {
                guard let size = bits.read(2) else { throw DependencyDescriptor.malformed("frame differences") }
                if size == 0 { break }
                guard let value = bits.read(4 * Int(size)) else {
                    throw DependencyDescriptor.malformed("frame differences")
                }
                diffs.append(Int(value) + 1)
            }
            frameDiffs = diffs
        }
        if customChains {
            var diffs: [UInt8] = []
            for _ in 0..<current.chainCount {
                guard let value = bits.read(8) else { throw DependencyDescriptor.malformed("chains") }
                diffs.append(UInt8(value))
            }
            chainDiffs = diffs
        }
    }

    fileprivate static func readIndications(_ bits: inout BitReader, _ count: Int) -> [DecodeTargetIndication]? {
        var result: [DecodeTargetIndication] = []
        for _ in 0..<count {
            guard let value = bits.read(2), let indication = DecodeTargetIndication(rawValue: UInt8(value)) else {
                return nil
            }
            result.append(indication)
        }
        return result
    }
}

extension FrameDependencyStructure {
    fileprivate init?(_ bits: inout BitReader) {
        guard let offset = bits.read(6), let targets = bits.read(5) else { return nil }
        self.init(
            templateIDOffset: UInt8(offset), decodeTargetCount: Int(targets) + 1, chainCount: 0, protectingChains: [],
            templates: [])
        var spatial: UInt8 = 0
        var temporal: UInt8 = 0
        var next: UInt32
        repeat {
            guard templates.count < FrameDependencyStructure.maximumTemplates else { return nil }
            templates.append(
                Template(
                    spatialLayer: spatial, temporalLayer: temporal, indications: [], frameDiffs: [], chainDiffs: []))
            guard let code = bits.read(2) else { return nil }
            next = code
            if next == 1 { temporal &+= 1 }
            if next == 2 {
                temporal = 0
                spatial &+= 1
            }
            guard spatial < 8, temporal < 8 else { return nil }
        } while next != 3
        for index in templates.indices {
            guard let indications = DependencyDescriptor.readIndications(&bits, decodeTargetCount) else { return nil }
            templates[index].indications = indications
        }
        for index in templates.indices {
            while true {
                guard let follows = bits.readFlag() else { return nil }
                if !follows { break }
                guard let value = bits.read(4) else { return nil }
                templates[index].frameDiffs.append(Int(value) + 1)
            }
        }
        guard let chains = bits.readNonSymmetric(UInt32(decodeTargetCount) + 1) else { return nil }
        chainCount = Int(chains)
        if chains > 0 {
            for _ in 0..<decodeTargetCount {
                guard let chain = bits.readNonSymmetric(chains) else { return nil }
                protectingChains.append(UInt8(chain))
            }
            for index in templates.indices {
                for _ in 0..<chains {
                    guard let diff = bits.read(4) else { return nil }
                    templates[index].chainDiffs.append(UInt8(diff))
                }
            }
        }
        guard let hasResolutions = bits.readFlag() else { return nil }
        guard hasResolutions else { return }
        for _ in 0..<spatialLayerCount {
            guard let width = bits.read(16), let height = bits.read(16) else { return nil }
            resolutions.append(Resolution(width: Int(width) + 1, height: Int(height) + 1))
        }
    }
}

// MARK: Writing

extension DependencyDescriptor {
    /// The extension's value: three bytes, or more with a structure or with differences from the template.
    /// - Parameter known: the stream's structure, for a descriptor without one of its own that changes the active
    ///   decode targets; without it that change is left out.
    package func serialized(structure known: FrameDependencyStructure? = nil) -> [UInt8] {
        let targets = (structure ?? known)?.decodeTargetCount
        let active = targets == nil ? nil : activeDecodeTargets
        var bits = BitWriter()
        bits.write(startsFrame)
        bits.write(endsFrame)
        bits.write(UInt32(templateID), 6)
        bits.write(UInt32(frameNumber), 16)
        let isExtended =
            structure != nil || active != nil || indications != nil || frameDiffs != nil
            || chainDiffs != nil
        guard isExtended else { return bits.bytes }
        bits.write(structure != nil)
        bits.write(active != nil)
        bits.write(indications != nil)
        bits.write(frameDiffs != nil)
        bits.write(chainDiffs != nil)
        structure?.write(to: &bits)
        if let active, let targets { bits.write(active, min(max(targets, 1), 32)) }
        for indication in indications ?? [] { bits.write(UInt32(indication.rawValue), 2) }
        if let frameDiffs {
            for diff in frameDiffs where (1...4096).contains(diff) {
                let value = UInt32(diff - 1)
                let size = value < 16 ? 1 : value < 256 ? 2 : 3
                bits.write(UInt32(size), 2)
                bits.write(value, 4 * size)
            }
            bits.write(0, 2)
        }
        for diff in chainDiffs ?? [] { bits.write(UInt32(diff), 8) }
        return bits.bytes
    }
}

extension FrameDependencyStructure {
    /// Templates must stand in the order of layers, as they are read.
    fileprivate func write(to bits: inout BitWriter) {
        bits.write(UInt32(templateIDOffset), 6)
        bits.write(UInt32(min(max(decodeTargetCount, 1), 32) - 1), 5)
        for (index, template) in templates.enumerated() {
            guard index + 1 < templates.count else { break }
            let next = templates[index + 1]
            if next.spatialLayer != template.spatialLayer {
                bits.write(2, 2)
            } else {
                bits.write(next.temporalLayer == template.temporalLayer ? 0 : 1, 2)
            }
        }
        bits.write(3, 2)
        for template in templates {
            for indication in template.indications { bits.write(UInt32(indication.rawValue), 2) }
        }
        for template in templates {
            for diff in template.frameDiffs where (1...16).contains(diff) {
                bits.write(true)
                bits.write(UInt32(diff - 1), 4)
            }
            bits.write(false)
        }
        bits.writeNonSymmetric(UInt32(max(chainCount, 0)), limit: UInt32(decodeTargetCount) + 1)
        if chainCount > 0 {
            for chain in protectingChains { bits.writeNonSymmetric(UInt32(chain), limit: UInt32(chainCount)) }
            for template in templates {
                for diff in template.chainDiffs { bits.write(UInt32(min(diff, 15)), 4) }
            }
        }
        bits.write(!resolutions.isEmpty)
        for resolution in resolutions {
            bits.write(UInt32(min(max(resolution.width, 1), 65_536) - 1), 16)
            bits.write(UInt32(min(max(resolution.height, 1), 65_536) - 1), 16)
        }
    }
}

/// Makes the descriptors of a stream with one spatial and one temporal layer.
package struct DependencyDescriptorWriter: Sendable {
    private var frameNumber: UInt16

    package init(frameNumber: UInt16 = 0) { self.frameNumber = frameNumber }

    /// Extension values for each of a frame's packets; the structure goes with the first packet of a key frame.
    package mutating func values(
        isKeyFrame: Bool, resolution: FrameDependencyStructure.Resolution? = nil, packetCount: Int
    ) -> [[UInt8]] {
        defer { frameNumber &+= 1 }
        return (0..<max(packetCount, 0)).map { index in
            DependencyDescriptor(
                startsFrame: index == 0, endsFrame: index == packetCount - 1, templateID: isKeyFrame ? 0 : 1,
                frameNumber: frameNumber,
                structure: isKeyFrame && index == 0 ? .singleLayer(resolution) : nil
            ).serialized()
        }
    }
}
