/// Appends network byte order integers and byte runs to a growing array.
///
/// Lengths that are known only later are written as zero first and set by ``patchUInt16(_:at:)``.
@frozen
public struct ByteWriter: Sendable {
    /// What was written so far.
    public var bytes: [UInt8]

    @inlinable
    public init(capacity: Int = 64) {
        bytes = []
        bytes.reserveCapacity(capacity)
    }

    @inlinable public var count: Int { bytes.count }

    @inlinable public mutating func write(_ value: UInt8) { bytes.append(value) }

    @inlinable
    public mutating func write(_ value: UInt16) {
        bytes.append(UInt8(truncatingIfNeeded: value >> 8))
        bytes.append(UInt8(truncatingIfNeeded: value))
    }

    /// The low 24 bits of `value`.
    @inlinable
    public mutating func writeUInt24(_ value: UInt32) {
        bytes.append(UInt8(truncatingIfNeeded: value >> 16))
        bytes.append(UInt8(truncatingIfNeeded: value >> 8))
        bytes.append(UInt8(truncatingIfNeeded: value))
    }

    @inlinable
    public mutating func write(_ value: UInt32) {
        write(UInt16(truncatingIfNeeded: value >> 16))
        write(UInt16(truncatingIfNeeded: value))
    }

    @inlinable
    public mutating func write(_ value: UInt64) {
        write(UInt32(truncatingIfNeeded: value >> 32))
        write(UInt32(truncatingIfNeeded: value))
    }

    @inlinable public mutating func write(_ run: [UInt8]) { bytes.append(contentsOf: run) }
    @inlinable public mutating func write(_ run: ArraySlice<UInt8>) { bytes.append(contentsOf: run) }

    /// Appends zero bytes until `count` is a multiple of `alignment` (which must be positive).
    @inlinable
    public mutating func pad(toMultipleOf alignment: Int) {
        while bytes.count % alignment != 0 { bytes.append(0) }
    }

    /// Overwrites two bytes that were written earlier. Does nothing outside what was written.
    @inlinable
    public mutating func patchUInt16(_ value: UInt16, at offset: Int) {
        guard offset >= 0, offset + 2 <= bytes.count else { return }
        bytes[offset] = UInt8(truncatingIfNeeded: value >> 8)
        bytes[offset + 1] = UInt8(truncatingIfNeeded: value)
    }

    /// Overwrites four bytes that were written earlier. Does nothing outside what was written.
    @inlinable
    public mutating func patchUInt32(_ value: UInt32, at offset: Int) {
        patchUInt16(UInt16(truncatingIfNeeded: value >> 16), at: offset)
        patchUInt16(UInt16(truncatingIfNeeded: value), at: offset + 2)
    }
}
