import SoraWire

/// H.264 payloads (RFC 6184): single NAL units, STAP-A and FU-A; the other aggregation and fragmentation kinds need
/// the interleaved mode, which is never negotiated.
package enum H264Payload {
    enum UnitType {
        static let idr: UInt8 = 5
        static let sequenceParameterSet: UInt8 = 7
        static let pictureParameterSet: UInt8 = 8
        static let accessUnitDelimiter: UInt8 = 9
        static let stapA: UInt8 = 24
        static let fuA: UInt8 = 28
    }

    private static func malformed(_ reason: String) -> RTPError { .malformedPayload(format: "H264", reason: reason) }

    /// Checks the payload's structure and looks for the start of a key frame: a sequence parameter set or the first
    /// slice of an IDR picture.
    static func inspect(_ packet: [UInt8], _ range: Range<Int>) throws(RTPError) -> VideoPayloadInfo {
        let slice = VideoPayloadSlice(packet: packet, range: range)
        guard let first = slice.packet[slice.range].first else { throw malformed("empty") }
        var info = VideoPayloadInfo()
        switch first & 0x1F {
        case 1...23: note(packet, slice.range, &info)
        case UnitType.stapA:
            for unit in try units(ofAggregate: slice) { note(packet, unit, &info) }
        case UnitType.fuA:
            guard slice.range.count >= 3 else { throw malformed("fragment without payload") }
            let head = packet[slice.range.lowerBound + 1]
            if head & 0x80 != 0 { note(head & 0x1F, packet[slice.range.lowerBound + 2], &info) }
        default: throw .unsupportedPayload(format: "H264", kind: Int(first & 0x1F))
        }
        return info
    }

    private static func note(_ packet: [UInt8], _ unit: Range<Int>, _ info: inout VideoPayloadInfo) {
        guard unit.count > 1 else { return }
        note(packet[unit.lowerBound] & 0x1F, packet[unit.lowerBound + 1], &info)
    }

    /// Looks at one unit by its type and the first byte behind its header.
    private static func note(_ type: UInt8, _ first: UInt8, _ info: inout VideoPayloadInfo) {
        switch type {
        case UnitType.sequenceParameterSet:
            info.startsKeyFrame = true
            info.mayFollowOthersOfItsFrame = false
        // The first bit of a slice header is set in the picture's first slice (first_mb_in_slice is 0).
        case UnitType.idr where !info.startsKeyFrame && first & 0x80 != 0:
            info.startsKeyFrame = true
            info.mayFollowOthersOfItsFrame = true
        default: break
        }
    }

    /// The parts of a STAP-A, each of at least one byte and inside.
    private static func units(ofAggregate slice: VideoPayloadSlice) throws(RTPError) -> [Range<Int>] {
        var units: [Range<Int>] = []
        var offset = slice.range.lowerBound + 1
        let end = slice.range.upperBound
        while offset < end {
            guard offset + 2 <= end else { throw malformed("aggregate ends inside a length") }
            let length = Int(slice.packet[offset]) << 8 | Int(slice.packet[offset + 1])
            offset += 2
            guard length > 0, length <= end - offset else {
                throw malformed("aggregated unit of \(length) bytes with \(end - offset) there")
            }
            units.append(offset..<(offset + length))
            offset += length
        }
        guard !units.isEmpty else { throw malformed("empty aggregate") }
        return units
    }

    /// Joins a frame's payloads to an access unit with start codes.
    static func assemble(_ payloads: [VideoPayloadSlice], into frame: inout [UInt8]) throws(RTPError) {
        var isInsideFragments = false
        for slice in payloads {
            guard let first = slice.packet[slice.range].first else { throw malformed("empty") }
            let type = first & 0x1F
            if isInsideFragments, type != UnitType.fuA { throw malformed("fragments without end") }
            switch type {
            case 1...23: AnnexB.append(slice.packet[slice.range], to: &frame)
            case UnitType.stapA:
                for unit in try units(ofAggregate: slice) { AnnexB.append(slice.packet[unit], to: &frame) }
            case UnitType.fuA:
                guard slice.range.count >= 3 else { throw malformed("fragment without payload") }
                let head = slice.packet[slice.range.lowerBound + 1]
                let starts = head & 0x80 != 0
                guard starts != isInsideFragments else {
                    throw malformed(starts ? "fragment starts inside another" : "fragment without start")
                }
                if starts { AnnexB.append([first & 0xE0 | head & 0x1F], to: &frame) }
                frame.append(contentsOf: slice.packet[(slice.range.lowerBound + 2)..<slice.range.upperBound])
                isInsideFragments = head & 0x40 == 0
            default: throw .unsupportedPayload(format: "H264", kind: Int(type))
            }
        }
        guard !isInsideFragments else { throw malformed("fragments without end") }
    }
}

/// Cuts H.264 access units with start codes into payloads for packetization mode 1.
///
/// Parameter sets are remembered and put in front of an IDR picture that comes without them, so that any key frame can
/// be decoded by a receiver who joins there. Small units in a row share a STAP-A; large ones become FU-A fragments.
package struct H264Packetizer: VideoPacketizer {
    private var sequenceParameterSet: [UInt8]?
    private var pictureParameterSet: [UInt8]?

    package init() {}

    package mutating func packetize(_ frame: [UInt8], traits: VideoFrameTraits, limit: Int) -> [[UInt8]] {
        guard limit >= 4 else { return [] }
        var units: [ArraySlice<UInt8>] = []
        var hasSets = false
        for range in AnnexB.units(in: frame) {
            switch frame[range.lowerBound] & 0x1F {
            case H264Payload.UnitType.accessUnitDelimiter: continue  // says nothing that packets do not say
            case H264Payload.UnitType.sequenceParameterSet:
                sequenceParameterSet = Array(frame[range])
                hasSets = true
            case H264Payload.UnitType.pictureParameterSet: pictureParameterSet = Array(frame[range])
            case H264Payload.UnitType.idr where !hasSets:
                if let sps = sequenceParameterSet, let pps = pictureParameterSet { units += [sps[...], pps[...]] }
                hasSets = true
            default: break
            }
            units.append(frame[range])
        }
        return H26xPacketization.payloads(
            units, limit: limit,
            aggregateHead: { units in
                // NRI is the maximum of the parts', F their OR (RFC 6184, 5.7.1).
                var head = H264Payload.UnitType.stapA
                var importance: UInt8 = 0
                for unit in units {
                    let first = unit.first ?? 0
                    head |= first & 0x80
                    importance = max(importance, first & 0x60)
                }
                return [head | importance]
            },
            fragmentHead: { unit, isFirst, isLast in
                let first = unit.first ?? 0
                return [
                    first & 0xE0 | H264Payload.UnitType.fuA,
                    (isFirst ? 0x80 : 0) | (isLast ? 0x40 : 0) | first & 0x1F,
                ]
            }, unitHeadLength: 1)
    }
}

/// What the payload formats of H.264 and H.265 share: aggregation of small units, fragmentation of large ones.
enum H26xPacketization {
    static func payloads(
        _ units: [ArraySlice<UInt8>], limit: Int, aggregateHead: ([ArraySlice<UInt8>]) -> [UInt8],
        fragmentHead: (ArraySlice<UInt8>, Bool, Bool) -> [UInt8], unitHeadLength: Int
    ) -> [[UInt8]] {
        var payloads: [[UInt8]] = []
        var group: [ArraySlice<UInt8>] = []
        var groupSize = unitHeadLength
        func flush() {
            if group.count == 1 {
                payloads.append(Array(group[0]))
            } else if group.count > 1 {
                var payload = aggregateHead(group)
                for unit in group {
                    payload.append(UInt8(truncatingIfNeeded: unit.count >> 8))
                    payload.append(UInt8(truncatingIfNeeded: unit.count))
                    payload.append(contentsOf: unit)
                }
                payloads.append(payload)
            }
            group.removeAll()
            groupSize = unitHeadLength
        }
        for unit in units where unit.count >= unitHeadLength {
            if unit.count > limit {
                flush()
                let head = unitHeadLength + 1
                let body = unit.dropFirst(unitHeadLength)
                let parts = evenParts(body.count, limit: limit - head)
                for (index, part) in parts.enumerated() {
                    var payload = fragmentHead(unit, index == 0, index == parts.count - 1)
                    payload.append(
                        contentsOf: body[(body.startIndex + part.lowerBound)..<(body.startIndex + part.upperBound)])
                    payloads.append(payload)
                }
                continue
            }
            if groupSize + 2 + unit.count > limit || unit.count > 0xFFFF { flush() }
            group.append(unit)
            groupSize += 2 + unit.count
        }
        flush()
        return payloads
    }
}
