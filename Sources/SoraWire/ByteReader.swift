/// Reads network byte order integers and byte runs from a bounded region, and never past it.
///
/// Every parser of bytes that came from the network goes through this type, so that lengths are
/// checked in one place. Each read either succeeds entirely or throws ``WireError/truncated(needed:available:offset:)``
/// and leaves the position unchanged.
///
/// The reader shares the array's storage (no copy). It is a value: a copy of the reader is a
/// bookmark.
@frozen
public struct ByteReader: Sendable {
    @usableFromInline let bytes: [UInt8]
    @usableFromInline var cursor: Int
    /// Index of the next byte to read, counted from the start of the whole array.
    @inlinable public var position: Int { cursor }
    /// Index one past the last byte that may be read.
    public let end: Int

    /// Reads all of `bytes`.
    @inlinable
    public init(_ bytes: [UInt8]) {
        self.bytes = bytes
        self.cursor = 0
        self.end = bytes.count
    }

    /// Reads `range` of `bytes`, clamped to what exists.
    @inlinable
    public init(_ bytes: [UInt8], in range: Range<Int>) {
        self.bytes = bytes
        let upper = min(max(range.upperBound, 0), bytes.count)
        self.cursor = min(max(range.lowerBound, 0), upper)
        self.end = upper
    }

    /// Number of bytes not yet read.
    @inlinable public var remaining: Int { end - position }
    @inlinable public var isAtEnd: Bool { position == end }

    @inlinable
    mutating func advance(_ count: Int) throws(WireError) -> Int {
        guard count >= 0, count <= end - position else {
            throw .truncated(needed: count, available: end - cursor, offset: cursor)
        }
        let start = position
        cursor = start + count
        return start
    }

    @inlinable
    public mutating func readUInt8() throws(WireError) -> UInt8 {
        bytes[try advance(1)]
    }

    @inlinable
    public mutating func readUInt16() throws(WireError) -> UInt16 {
        let i = try advance(2)
        return UInt16(bytes[i]) << 8 | UInt16(bytes[i + 1])
    }

    /// A 24-bit unsigned integer.
    @inlinable
    public mutating func readUInt24() throws(WireError) -> UInt32 {
        let i = try advance(3)
        return UInt32(bytes[i]) << 16 | UInt32(bytes[i + 1]) << 8 | UInt32(bytes[i + 2])
    }

    @inlinable
    public mutating func readUInt32() throws(WireError) -> UInt32 {
        let i = try advance(4)
        return UInt32(bytes[i]) << 24 | UInt32(bytes[i + 1]) << 16 | UInt32(bytes[i + 2]) << 8
            | UInt32(bytes[i + 3])
    }

    @inlinable
    public mutating func readUInt64() throws(WireError) -> UInt64 {
        let i = try advance(8)
        var value: UInt64 = 0
        for k in 0..<8 { value = value << 8 | UInt64(bytes[i + k]) }
        return value
    }

    /// A copy of the next `count` bytes.
    @inlinable
    public mutating func readBytes(_ count: Int) throws(WireError) -> [UInt8] {
        let i = try advance(count)
        return Array(bytes[i..<(i + count)])
    }

    /// A copy of everything that is left.
    @inlinable
    public mutating func readRemaining() -> [UInt8] {
        let slice = Array(bytes[position..<end])
        cursor = end
        return slice
    }

    /// A reader bounded to the next `count` bytes; this reader continues behind them.
    @inlinable
    public mutating func readSubreader(_ count: Int) throws(WireError) -> ByteReader {
        let i = try advance(count)
        return ByteReader(bytes, in: i..<(i + count))
    }

    @inlinable
    public mutating func skip(_ count: Int) throws(WireError) {
        _ = try advance(count)
    }

    /// The byte `offset` bytes ahead without reading it, or nil past the end.
    @inlinable
    public func peekUInt8(at offset: Int = 0) -> UInt8? {
        guard offset >= 0, offset < end - position else { return nil }
        return bytes[position + offset]
    }
}

/// Why bytes could not be read or written.
public enum WireError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The input ended: `needed` bytes were asked for at `offset` where only `available` were left.
    case truncated(needed: Int, available: Int, offset: Int)
    /// A field holds a value that its format forbids.
    case invalid(field: String, value: UInt64)

    public var description: String {
        switch self {
        case .truncated(let needed, let available, let offset):
            "truncated: \(needed) bytes needed at offset \(offset), \(available) available"
        case .invalid(let field, let value):
            "invalid \(field): \(value)"
        }
    }
}
