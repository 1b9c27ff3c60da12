import SoraWire

/// LEB128 numbers of AV1 (AV1 specification, 4.10.5).
enum LEB128 {
    /// Reads at `offset`, before `end`; nil if it is longer than eight bytes, not below 2^32, or cut.
    static func read(_ bytes: [UInt8], _ offset: inout Int, end: Int) -> Int? {
        var value: UInt64 = 0
        for index in 0..<8 {
            guard offset < end, offset < bytes.count else { return nil }
            let byte = bytes[offset]
            offset += 1
            value |= UInt64(byte & 0x7F) << UInt64(index * 7)
            if byte & 0x80 == 0 { return value < 1 << 32 ? Int(value) : nil }
        }
        return nil
    }

    /// Bytes of the shortest form.
    static func length(_ value: Int) -> Int {
        var rest = max(value, 0) >> 7
        var count = 1
        while rest > 0 {
            rest >>= 7
            count += 1
        }
        return count
    }

    /// Appends the shortest form.
    static func write(_ value: Int, to bytes: inout [UInt8]) {
        var rest = UInt64(max(value, 0))
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }
}

/// AV1 payloads (RTP Payload Format For AV1, version 1.0): aggregation header and OBU elements.
package enum AV1Payload {
    enum OBUType {
        static let sequenceHeader: UInt8 = 1
        static let temporalDelimiter: UInt8 = 2
        static let tileList: UInt8 = 8
        static let padding: UInt8 = 15
    }

    private static func malformed(_ reason: String) -> RTPError { .malformedPayload(format: "AV1", reason: reason) }

    /// Aggregation header and where the OBU elements lie.
    struct Elements {
        /// The first element continues one of the packet before.
        var continuesFirst: Bool
        /// The last element goes on in the next packet.
        var lastContinues: Bool
        var startsSequence: Bool
        var ranges: [Range<Int>]

        init(_ packet: [UInt8], _ range: Range<Int>) throws(RTPError) {
            guard range.count >= 2, range.lowerBound >= 0, range.upperBound <= packet.count else {
                throw malformed("no element")
            }
            let head = packet[range.lowerBound]
            continuesFirst = head & 0x80 != 0
            lastContinues = head & 0x40 != 0
            startsSequence = head & 0x08 != 0
            let count = Int(head >> 4 & 0x03)
            guard !(continuesFirst && startsSequence) else {
                throw malformed("a new sequence begins with a continuation")
            }
            ranges = []
            var offset = range.lowerBound + 1
            let end = range.upperBound
            while offset < end {
                if count != 0, ranges.count == count - 1 {
                    ranges.append(offset..<end)
                    offset = end
                    break
                }
                guard let length = LEB128.read(packet, &offset, end: end) else { throw malformed("element length") }
                guard length <= end - offset else {
                    throw malformed("element of \(length) bytes with \(end - offset) there")
                }
                ranges.append(offset..<(offset + length))
                offset += length
            }
            guard count == 0 || ranges.count == count else {
                throw malformed("\(count) elements promised, \(ranges.count) there")
            }
        }
    }

    static func inspect(_ packet: [UInt8], _ range: Range<Int>) throws(RTPError) -> VideoPayloadInfo {
        let elements = try Elements(packet, range)
        var info = VideoPayloadInfo()
        info.startsKeyFrame = elements.startsSequence
        return info
    }

    /// Joins a temporal unit's payloads to OBUs with size fields, delimiters and padding left out.
    static func assemble(_ payloads: [VideoPayloadSlice], into frame: inout [UInt8]) throws(RTPError) {
        var open: [UInt8]?
        for slice in payloads {
            let elements = try Elements(slice.packet, slice.range)
            guard elements.continuesFirst == (open != nil) else {
                throw malformed(open == nil ? "continuation without start" : "element without its end")
            }
            for (index, range) in elements.ranges.enumerated() {
                var element = open ?? []
                open = nil
                element.append(contentsOf: slice.packet[range])
                if index == elements.ranges.count - 1, elements.lastContinues {
                    open = element
                } else {
                    try append(element, to: &frame)
                }
            }
        }
        guard open == nil else { throw malformed("element without its end") }
    }

    /// Appends an OBU element with a size field, whether it had one or not.
    private static func append(_ element: [UInt8], to frame: inout [UInt8]) throws(RTPError) {
        guard let first = element.first else { throw malformed("empty element") }
        guard first & 0x80 == 0 else { throw malformed("forbidden bit") }
        let type = first >> 3 & 0x0F
        let headLength = first & 0x04 != 0 ? 2 : 1
        guard element.count >= headLength else { throw malformed("element ends inside its header") }
        var offset = headLength
        var end = element.count
        if first & 0x02 != 0 {
            guard let size = LEB128.read(element, &offset, end: end), size <= end - offset else {
                throw malformed("size field of an element")
            }
            end = offset + size
        }
        if type == OBUType.temporalDelimiter || type == OBUType.padding { return }
        frame.append(first | 0x02)
        if headLength == 2 { frame.append(element[1]) }
        LEB128.write(end - offset, to: &frame)
        frame.append(contentsOf: element[offset..<end])
    }

    /// The OBUs of a temporal unit in low-overhead form: header bytes without size field, and payload place.
    static func units(in stream: [UInt8]) -> [(header: [UInt8], payload: Range<Int>)]? {
        var units: [(header: [UInt8], payload: Range<Int>)] = []
        var offset = 0
        while offset < stream.count {
            let first = stream[offset]
            let headLength = first & 0x04 != 0 ? 2 : 1
            guard first & 0x80 == 0, offset + headLength <= stream.count else { return nil }
            var header = [first & ~0x02]
            if headLength == 2 { header.append(stream[offset + 1]) }
            offset += headLength
            var size = stream.count - offset
            if first & 0x02 != 0 {
                guard let read = LEB128.read(stream, &offset, end: stream.count), read <= stream.count - offset else {
                    return nil
                }
                size = read
            }
            units.append((header, offset..<(offset + size)))
            offset += size
        }
        return units
    }
}

/// Cuts AV1 temporal units (low-overhead form) into payloads. Delimiters, padding and tile lists are left out.
package struct AV1Packetizer: VideoPacketizer {
    package init() {}

    package mutating func packetize(_ frame: [UInt8], traits: VideoFrameTraits, limit: Int) -> [[UInt8]] {
        // Room for the aggregation header, a length and one byte.
        guard limit >= 4, let units = AV1Payload.units(in: frame) else { return [] }
        var payloads: [[UInt8]] = []
        var elements: [[UInt8]] = []
        var size = 1
        var continues = false  // the first element of the packet in work continues one
        func flush(lastContinues: Bool) {
            guard !elements.isEmpty else { return }
            let isFirst = payloads.isEmpty
            // Up to three elements are counted, and the last one needs no length; more carry all lengths.
            let count = elements.count <= 3 ? UInt8(elements.count) : 0
            var payload: [UInt8] = []
            payload.reserveCapacity(size)
            payload.append(
                (continues ? 0x80 : 0) | (lastContinues ? 0x40 : 0) | count << 4
                    | (isFirst && traits.isKeyFrame ? 0x08 : 0))
            for (index, element) in elements.enumerated() {
                if count == 0 || index + 1 < elements.count { LEB128.write(element.count, to: &payload) }
                payload += element
            }
            payloads.append(payload)
            elements.removeAll()
            size = 1
            continues = lastContinues
        }
        for unit in units {
            let type = unit.header[0] >> 3 & 0x0F
            switch type {
            case AV1Payload.OBUType.temporalDelimiter, AV1Payload.OBUType.padding, AV1Payload.OBUType.tileList:
                continue
            default: break
            }
            let whole = unit.header + frame[unit.payload]
            var offset = 0
            while offset < whole.count {
                var room = limit - size
                // A length byte and one byte at least, and no crumbs at a packet's end.
                if room < min(whole.count - offset, 16) + 2, !elements.isEmpty {
                    flush(lastContinues: false)
                    room = limit - size
                }
                var part = min(whole.count - offset, room - 1)
                while part > 1, LEB128.length(part) + part > room { part -= 1 }
                elements.append(Array(whole[offset..<(offset + part)]))
                size += LEB128.length(part) + part
                offset += part
                if offset < whole.count { flush(lastContinues: true) }
            }
        }
        flush(lastContinues: false)
        return payloads
    }
}
