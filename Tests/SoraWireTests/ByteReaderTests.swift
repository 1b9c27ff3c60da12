import SoraWire
import Testing

@Suite struct ByteReaderTests {
    @Test func readsNetworkByteOrder() throws {
        var reader = ByteReader([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18])
        #expect(try reader.readUInt8() == 1)
        #expect(try reader.readUInt16() == 0x0203)
        #expect(try reader.readUInt24() == 0x040506)
        #expect(try reader.readUInt32() == 0x0708_090A)
        #expect(try reader.readUInt64() == 0x0B0C_0D0E_0F10_1112)
        #expect(reader.isAtEnd)
    }

    @Test func failedReadLeavesThePosition() throws {
        var reader = ByteReader([1, 2, 3])
        #expect(throws: WireError.truncated(needed: 4, available: 3, offset: 0)) { try reader.readUInt32() }
        #expect(reader.position == 0)
        #expect(throws: WireError.self) { try reader.readBytes(-1) }
        #expect(throws: WireError.self) { try reader.skip(Int.max) }
        #expect(reader.readRemaining() == [1, 2, 3])
    }

    @Test func subreaderIsBounded() throws {
        var reader = ByteReader([1, 2, 3, 4])
        var inner = try reader.readSubreader(2)
        #expect(try inner.readUInt16() == 0x0102)
        #expect(throws: WireError.self) { try inner.readUInt8() }
        #expect(try reader.readUInt16() == 0x0304)
    }

    @Test func rangeIsClamped() {
        #expect(ByteReader([1, 2], in: 1..<9).remaining == 1)
        #expect(ByteReader([1, 2], in: 5..<9).remaining == 0)
        #expect(ByteReader([1, 2], in: -5..<1).remaining == 1)
    }

    @Test func writerRoundTrips() throws {
        var writer = ByteWriter()
        writer.write(UInt8(1))
        writer.write(UInt16(0x0203))
        writer.writeUInt24(0x040506)
        writer.write(UInt32(0x0708_090A))
        writer.write(UInt64(0x0B0C_0D0E_0F10_1112))
        writer.pad(toMultipleOf: 4)
        #expect(writer.bytes == (1...18).map { UInt8($0) } + [0, 0])
        writer.patchUInt16(0xFFFF, at: 18)
        writer.patchUInt16(0xEEEE, at: 19)
        #expect(writer.bytes.suffix(2) == [0xFF, 0xFF])
    }
}
