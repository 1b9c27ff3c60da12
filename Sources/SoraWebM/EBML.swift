/// Writing EBML elements (RFC 8794): an id, a length, a payload.
struct EBMLWriter {
    private(set) var bytes: [UInt8] = []

    /// "Length unknown": the element ends where its parent's next sibling begins.
    static let unknownSize: [UInt8] = [0x01, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]

    mutating func id(_ id: UInt32) {
        var started = false
        for shift: UInt32 in [24, 16, 8, 0] {
            let byte = UInt8(truncatingIfNeeded: id >> shift)
            if byte != 0 || started {
                bytes.append(byte)
                started = true
            }
        }
    }

    mutating func size(_ size: Int) {
        let value = UInt64(clamping: size)
        // The all-ones pattern of each length means "unknown", hence the -1.
        for length in 1...8 where value < (1 << UInt64(7 * length)) - 1 {
            append(value | 1 << UInt64(7 * length), width: length)
            return
        }
    }

    /// Eight bytes whatever the value, so that it can be set later.
    static func fixedSize(_ size: Int) -> [UInt8] {
        var writer = EBMLWriter()
        writer.append(UInt64(clamping: size) | 1 << 56, width: 8)
        return writer.bytes
    }

    mutating func append(_ value: UInt64, width: Int) {
        for index in stride(from: width - 1, through: 0, by: -1) {
            bytes.append(UInt8(truncatingIfNeeded: value >> UInt64(8 * index)))
        }
    }

    mutating func unsigned(_ id: UInt32, _ value: UInt64) {
        var width = 1
        while width < 8, value >> UInt64(8 * width) != 0 { width += 1 }
        self.id(id)
        size(width)
        append(value, width: width)
    }

    mutating func float(_ id: UInt32, _ value: Double) {
        self.id(id)
        size(8)
        append(value.bitPattern, width: 8)
    }

    mutating func binary(_ id: UInt32, _ payload: [UInt8]) {
        self.id(id)
        size(payload.count)
        bytes += payload
    }

    mutating func text(_ id: UInt32, _ value: String) { binary(id, Array(value.utf8)) }

    mutating func master(_ id: UInt32, _ body: (inout EBMLWriter) -> Void) {
        var inner = EBMLWriter()
        body(&inner)
        binary(id, inner.bytes)
    }

    mutating func raw(_ more: [UInt8]) { bytes += more }

    /// An element that readers skip, of exactly `total` bytes (at least 2).
    static func void(_ total: Int) -> [UInt8] {
        guard total >= 2 else { return [] }
        var output: [UInt8] = [0xEC]
        if total < 10 {
            output.append(UInt8(total - 2) | 0x80)
        } else {
            output += fixedSize(total - 9)
        }
        return output + [UInt8](repeating: 0, count: max(0, total - output.count))
    }
}
