/// Transmission sequence number: 32 bits that wrap (RFC 9260, 1.6).
@frozen
package struct TSN: Hashable, Sendable, CustomStringConvertible {
    package var rawValue: UInt32
    @inlinable package init(_ rawValue: UInt32) { self.rawValue = rawValue }

    /// Steps from `b` forward to `a`; negative if `a` is before `b`.
    @inlinable package static func - (a: TSN, b: TSN) -> Int {
        Int(Int32(bitPattern: a.rawValue &- b.rawValue))
    }
    @inlinable package static func + (tsn: TSN, steps: Int) -> TSN {
        TSN(tsn.rawValue &+ UInt32(truncatingIfNeeded: steps))
    }
    @inlinable package static func += (tsn: inout TSN, steps: Int) { tsn = tsn + steps }
    package var description: String { "TSN \(rawValue)" }
}

/// Order of 16-bit stream sequence numbers: steps from `b` forward to `a`.
@inline(__always)
func ssnDistance(_ a: UInt16, from b: UInt16) -> Int { Int(Int16(bitPattern: a &- b)) }

/// Big-endian loads for the hot path; indices are checked by the array.
@inline(__always)
func loadUInt16(_ bytes: [UInt8], _ at: Int) -> UInt16 { UInt16(bytes[at]) << 8 | UInt16(bytes[at + 1]) }
@inline(__always)
func loadUInt32(_ bytes: [UInt8], _ at: Int) -> UInt32 {
    UInt32(bytes[at]) << 24 | UInt32(bytes[at + 1]) << 16 | UInt32(bytes[at + 2]) << 8 | UInt32(bytes[at + 3])
}
