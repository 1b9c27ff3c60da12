import SoraWire

/// The last 20 bytes of whatever is sent under load: a mark, a number and the time of sending, so that the process that
/// sent it can tell how long it took.
package struct Stamp: Equatable, Sendable {
    package static let length = 20
    private static let mark: UInt32 = 0x534F_5241

    package var sequence: UInt64
    package var time: Instant

    package init(sequence: UInt64, time: Instant) {
        self.sequence = sequence
        self.time = time
    }

    /// Reads it from the end of a payload; nil if there is none.
    package init?(endOf payload: ArraySlice<UInt8>) {
        guard payload.count >= Self.length else { return nil }
        var values: [UInt64] = []
        for range in [0..<4, 4..<12, 12..<20] {
            let start = payload.endIndex - Self.length
            values.append(
                payload[(start + range.lowerBound)..<(start + range.upperBound)].reduce(0) { $0 << 8 | UInt64($1) })
        }
        guard values[0] == UInt64(Self.mark) else { return nil }
        self.init(sequence: values[1], time: Instant(nanoseconds: Int64(bitPattern: values[2])))
    }

    /// Overwrites the end of a payload that is long enough.
    package func write(to payload: inout [UInt8]) {
        guard payload.count >= Self.length else { return }
        var writer = ByteWriter()
        writer.write(Self.mark)
        writer.write(sequence)
        writer.write(UInt64(bitPattern: time.nanoseconds))
        payload.replaceSubrange((payload.count - Self.length)..., with: writer.bytes)
    }
}
