// Newtypes for what would otherwise be bare integers and strings. Each is shared by several layers.

/// Synchronization source of an RTP stream (RFC 3550, 5.1).
@frozen
public struct SSRC: Hashable, Sendable, CustomStringConvertible {
    public var rawValue: UInt32
    @inlinable public init(_ rawValue: UInt32) { self.rawValue = rawValue }
    public var description: String { String(rawValue) }
}

/// RTP payload type, 0...127 (RFC 3550, 5.1).
@frozen
public struct PayloadType: Hashable, Sendable, CustomStringConvertible {
    public var rawValue: UInt8
    /// Keeps the low seven bits.
    @inlinable public init(_ rawValue: UInt8) { self.rawValue = rawValue & 0x7F }
    public var description: String { String(rawValue) }
}

/// RTP sequence number: 16 bits that wrap (RFC 3550, 5.1).
///
/// "Newer" is meant modulo 2^16: of two numbers less than half the circle apart, the one ahead.
/// It is not a total order, hence no `Comparable`.
@frozen
public struct SequenceNumber: Hashable, Sendable, CustomStringConvertible {
    public var rawValue: UInt16
    @inlinable public init(_ rawValue: UInt16) { self.rawValue = rawValue }

    @inlinable public func isNewer(than other: SequenceNumber) -> Bool {
        distance(from: other) > 0
    }
    /// Steps forward from `other` to this number, -32768...32767.
    @inlinable public func distance(from other: SequenceNumber) -> Int {
        Int(Int16(bitPattern: rawValue &- other.rawValue))
    }
    @inlinable public static func + (number: SequenceNumber, steps: Int) -> SequenceNumber {
        SequenceNumber(number.rawValue &+ UInt16(truncatingIfNeeded: steps))
    }
    @inlinable public static func += (number: inout SequenceNumber, steps: Int) {
        number = number + steps
    }
    public var description: String { String(rawValue) }
}

/// Extends 16-bit sequence numbers to 64 bits that never wrap.
@frozen
public struct SequenceUnwrapper: Sendable {
    public private(set) var highest: Int64?
    public init() { highest = nil }

    /// The extended number nearest to the highest seen so far. Remembers it if it is newer.
    public mutating func unwrap(_ number: SequenceNumber) -> Int64 {
        guard let last = highest else {
            let first = Int64(number.rawValue) + 0x1_0000  // leaves room for reordering before the first
            highest = first
            return first
        }
        let delta = Int64(
            number.distance(from: SequenceNumber(UInt16(truncatingIfNeeded: last))))
        let extended = last + delta
        if extended > last { highest = extended }
        return extended
    }
}

/// RTP timestamp: 32 bits that wrap, in units of the stream's clock rate.
@frozen
public struct RTPTimestamp: Hashable, Sendable, CustomStringConvertible {
    public var rawValue: UInt32
    @inlinable public init(_ rawValue: UInt32) { self.rawValue = rawValue }
    /// Ticks forward from `other` to this timestamp.
    @inlinable public func distance(from other: RTPTimestamp) -> Int32 {
        Int32(bitPattern: rawValue &- other.rawValue)
    }
    @inlinable public static func + (stamp: RTPTimestamp, ticks: Int) -> RTPTimestamp {
        RTPTimestamp(stamp.rawValue &+ UInt32(truncatingIfNeeded: ticks))
    }
    public var description: String { String(rawValue) }
}

/// Media identification tag of an m-line (RFC 5888; RFC 8843 for its header extension).
public struct Mid: Hashable, Sendable, CustomStringConvertible {
    public var rawValue: String
    public init(_ rawValue: String) { self.rawValue = rawValue }
    public var description: String { rawValue }
}

/// Restriction identifier of a simulcast layer, such as `r0` (RFC 8851).
public struct RestrictionID: Hashable, Sendable, CustomStringConvertible {
    public var rawValue: String
    public init(_ rawValue: String) { self.rawValue = rawValue }
    public var description: String { rawValue }
}

/// SCTP stream identifier, which is a data channel's id (RFC 8831, 6.5).
@frozen
public struct StreamID: Hashable, Sendable, CustomStringConvertible {
    public var rawValue: UInt16
    @inlinable public init(_ rawValue: UInt16) { self.rawValue = rawValue }
    public var description: String { String(rawValue) }
}
