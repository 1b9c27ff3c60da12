import SoraWire

/// H.265 payloads (RFC 7798) without decoding order numbers (`sprop-max-don-diff` 0): single NAL units, aggregation
/// packets and fragmentation units.
package enum H265Payload {
    enum UnitType {
        static let firstRandomAccess: UInt8 = 16
        static let lastRandomAccess: UInt8 = 23
        static let videoParameterSet: UInt8 = 32
        static let sequenceParameterSet: UInt8 = 33
        static let pictureParameterSet: UInt8 = 34
        static let accessUnitDelimiter: UInt8 = 35
        static let aggregate: UInt8 = 48
        static let fragment: UInt8 = 49
    }

    static func type(_ first: UInt8) -> UInt8 { first >> 1 & 0x3F }

    private static func malformed(_ reason: String) -> RTPError { .malformedPayload(format: "H265", reason: reason) }

    static func inspect(_ packet: [UInt8], _ range: Range<Int>) throws(RTPError) -> VideoPayloadInfo {
        let slice = VideoPayloadSlice(packet: packet, range: range)
        guard slice.range.count >= 3 else { throw malformed("less than three bytes") }
        var info = VideoPayloadInfo()
        switch type(packet[slice.range.lowerBound]) {
        case 0..<UnitType.aggregate: note(packet, slice.range, &info)
        case UnitType.aggregate:
            for unit in try units(ofAggregate: slice) { note(packet, unit, &info) }
        case UnitType.fragment:
            guard slice.range.count >= 4 else { throw malformed("fragment without payload") }
            let head = packet[slice.range.lowerBound + 2]
            if head & 0x80 != 0 { note(head & 0x3F, packet[slice.range.lowerBound + 3], &info) }
        case let kind: throw .unsupportedPayload(format: "H265", kind: Int(kind))
        }
        return info
    }

    private static func note(_ packet: [UInt8], _ unit: Range<Int>, _ info: inout VideoPayloadInfo) {
        guard unit.count > 2 else { return }
        note(type(packet[unit.lowerBound]), packet[unit.lowerBound + 2], &info)
    }

    /// Looks at one unit by its type and the first byte behind its header.
    private static func note(_ type: UInt8, _ first: UInt8, _ info: inout VideoPayloadInfo) {
        switch type {
        case UnitType.videoParameterSet:
            info.startsKeyFrame = true
            info.mayFollowOthersOfItsFrame = false
        case UnitType.sequenceParameterSet where !info.startsKeyFrame:
            info.startsKeyFrame = true
            info.mayFollowOthersOfItsFrame = true
        // A slice header's first bit tells the picture's first slice.
        case UnitType.firstRandomAccess...UnitType.lastRandomAccess where !info.startsKeyFrame && first & 0x80 != 0:
            info.startsKeyFrame = true
            info.mayFollowOthersOfItsFrame = true
        default: break
        }
    }

    private static func units(ofAggregate slice: VideoPayloadSlice) throws(RTPError) -> [Range<Int>] {
        var units: [Range<Int>] = []
        var offset = slice.range.lowerBound + 2
        let end = slice.range.upperBound
        while offset < end {
            guard offset + 2 <= end else { throw malformed("aggregate ends inside a length") }
            let length = Int(slice.packet[offset]) << 8 | Int(slice.packet[offset + 1])
            offset += 2
            guard length >= 2, length <= end - offset else {
                throw malformed("aggregated unit of \(length) bytes with \(end - offset) there")
            }
            units.append(offset..<(offset + length))
            offset += length
        }
        return units
    }

    static func assemble(_ payloads: [VideoPayloadSlice], into frame: inout [UInt8]) throws(RTPError) {
        var isInsideFragments = false
        for slice in payloads {
            guard slice.range.count >= 3 else { throw malformed("less than three bytes") }
            let first = slice.packet[slice.range.lowerBound]
            let second = slice.packet[slice.range.lowerBound + 1]
            let kind = type(first)
            if isInsideFragments, kind != UnitType.fragment { throw malformed("fragments without end") }
            switch kind {
            case 0..<UnitType.aggregate: AnnexB.append(slice.packet[slice.range], to: &frame)
            case UnitType.aggregate:
                for unit in try units(ofAggregate: slice) { AnnexB.append(slice.packet[unit], to: &frame) }
            case UnitType.fragment:
                guard slice.range.count >= 4 else { throw malformed("fragment without payload") }
                let head = slice.packet[slice.range.lowerBound + 2]
                let starts = head & 0x80 != 0
                guard starts != isInsideFragments else {
                    throw malformed(starts ? "fragment starts inside another" : "fragment without start")
                }
                if starts { AnnexB.append([first & 0x81 | (head & 0x3F) << 1, second], to: &frame) }
                frame.append(contentsOf: slice.packet[(slice.range.lowerBound + 3)..<slice.range.upperBound])
                isInsideFragments = head & 0x40 == 0
            default: throw .unsupportedPayload(format: "H265", kind: Int(kind))
            }
        }
        guard !isInsideFragments else { throw malformed("fragments without end") }
    }
}

/// Cuts H.265 access units with start codes into payloads. Parameter sets are repeated in front of random access
/// pictures that come without them.
package struct H265Packetizer: VideoPacketizer {
    private var parameterSets: [UInt8: [UInt8]] = [:]

    package init() {}

    package mutating func packetize(_ frame: [UInt8], traits: VideoFrameTraits, limit: Int) -> [[UInt8]] {
        guard limit >= 5 else { return [] }
        var units: [ArraySlice<UInt8>] = []
        var hasSets = false
        for range in AnnexB.units(in: frame) where range.count >= 2 {
            let type = H265Payload.type(frame[range.lowerBound])
            switch type {
            case H265Payload.UnitType.accessUnitDelimiter: continue
            case H265Payload.UnitType.videoParameterSet...H265Payload.UnitType.pictureParameterSet:
                parameterSets[type] = Array(frame[range])
                hasSets = true
            case H265Payload.UnitType.firstRandomAccess...H265Payload.UnitType.lastRandomAccess where !hasSets:
                for kind in H265Payload.UnitType.videoParameterSet...H265Payload.UnitType.pictureParameterSet {
                    if let set = parameterSets[kind] { units.append(set[...]) }
                }
                hasSets = true
            default: break
            }
            units.append(frame[range])
        }
        return H26xPacketization.payloads(
            units, limit: limit,
            aggregateHead: { units in
                // F is the OR, layer and temporal id the minimum of the parts' (RFC 7798, 4.4.2).
                var forbidden: UInt8 = 0
                var layer: UInt16 = .max
                var temporal: UInt8 = 7
                for unit in units {
                    let first = unit.first ?? 0
                    let second = unit.dropFirst().first ?? 1
                    forbidden |= first & 0x80
                    layer = min(layer, UInt16(first & 0x01) << 5 | UInt16(second >> 3))
                    temporal = min(temporal, second & 0x07)
                }
                return [
                    forbidden | H265Payload.UnitType.aggregate << 1 | UInt8(truncatingIfNeeded: layer >> 5) & 0x01,
                    UInt8(truncatingIfNeeded: layer & 0x1F) << 3 | temporal,
                ]
            },
            fragmentHead: { unit, isFirst, isLast in
                let first = unit.first ?? 0
                return [
                    first & 0x81 | H265Payload.UnitType.fragment << 1, unit.dropFirst().first ?? 1,
                    (isFirst ? 0x80 : 0) | (isLast ? 0x40 : 0) | H265Payload.type(first),
                ]
            }, unitHeadLength: 2)
    }
}
