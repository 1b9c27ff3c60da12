import SoraWire
import Testing

@testable import SoraSCTP

/// Layouts of RFC 9260 3.3, RFC 3758 3.2, RFC 6525 3.1 and 4, RFC 9653 as golden bytes; each is written, read
/// again, cut at every length and changed at every byte.
@Suite struct ChunkTests {
    private func written(_ write: (inout ByteWriter) -> Void) -> [UInt8] {
        var writer = ByteWriter()
        write(&writer)
        return writer.bytes
    }

    /// The value of a chunk: what follows its header, without padding.
    private func value(_ chunk: [UInt8]) -> ByteReader {
        ByteReader(chunk, in: 4..<Int(loadUInt16(chunk, 2)))
    }

    /// Calls `parse` with every prefix of the value and with every byte changed; it must not trap.
    private func torture(_ chunk: [UInt8], _ parse: (ByteReader) -> Void) {
        let end = Int(loadUInt16(chunk, 2))
        for length in 4...end { parse(ByteReader(Array(chunk[0..<length]), in: 4..<length)) }
        for index in 4..<end {
            for value in [0, 1, 0x7F, 0xFF] as [UInt8] {
                var changed = chunk
                changed[index] = value
                parse(ByteReader(changed, in: 4..<end))
            }
        }
        parse(ByteReader(chunk + [0, 0, 0, 9], in: 4..<(chunk.count + 4)))
    }

    @Test func commonHeader() {
        let bytes = written {
            CommonHeader(sourcePort: 5_000, destinationPort: 5_001, verificationTag: 0x0102_0304).write(to: &$0)
        }
        #expect(bytes == hex("1388 1389 01020304 00000000"))
        #expect(
            CommonHeader(packet: bytes + [0, 0, 0, 4])
                == CommonHeader(sourcePort: 5_000, destinationPort: 5_001, verificationTag: 0x0102_0304))
        for length in 0..<16 { #expect(CommonHeader(packet: [UInt8](repeating: 0, count: length)) == nil) }
    }

    @Test func data() {
        let chunk = DataChunk(
            flags: [.beginning, .end, .unordered], tsn: TSN(0x1122_3344), stream: 5, ssn: 6, ppid: 53)
        let bytes = written { chunk.write(to: &$0, payload: [9, 8, 7, 6, 5], range: 1..<4) }
        #expect(bytes == hex("00 07 0013 11223344 0005 0006 00000035 080706 00"))
        #expect(DataChunk(packet: bytes, offset: 0, length: 0x13) == chunk)
        #expect(DataChunk(packet: bytes, offset: 0, length: 16) == nil)
        #expect(DataChunk(packet: bytes, offset: 0, length: bytes.count + 1) == nil)
        #expect(DataChunk(packet: bytes, offset: 8, length: 0x13) == nil)
    }

    // SAF5: padding is zero.
    @Test(arguments: 1...9)
    func paddingIsZero(size: Int) {
        let bytes = written {
            DataChunk(flags: [], tsn: TSN(1), stream: 0, ssn: 0, ppid: 0)
                .write(to: &$0, payload: [UInt8](repeating: 0xEE, count: size), range: 0..<size)
        }
        #expect(bytes.count % 4 == 0)
        #expect(bytes[(16 + size)...].allSatisfy { $0 == 0 })
    }

    @Test func initAndInitAck() throws {
        let chunk = InitChunk(
            initiateTag: 0x0A0B_0C0D, receiverWindow: 0x0010_0000, outboundStreams: 1_024, inboundStreams: 2_048,
            initialTSN: TSN(0x0102_0304), features: [.partialReliability, .reconfiguration, .zeroChecksum])
        let bytes = written { chunk.write(to: &$0) }
        #expect(
            bytes
                == hex(
                    """
                    01 00 0026 0a0b0c0d 00100000 0400 0800 01020304
                    8001 0008 00000001
                    c000 0004
                    8008 0006 82c0 0000
                    """))
        #expect(try InitChunk(value: value(bytes), isAck: false) == chunk)
        torture(bytes) { _ = try? InitChunk(value: $0, isAck: false) }

        var ack = chunk
        ack.cookie = [1, 2, 3, 4, 5]
        let ackBytes = written { ack.write(to: &$0) }
        #expect(
            Array(ackBytes[0..<32])
                == hex("02 00 0032 0a0b0c0d 00100000 0400 0800 01020304 0007 0009 01020304 05000000"))
        #expect(try InitChunk(value: value(ackBytes), isAck: true) == ack)
        #expect(try InitChunk(value: value(ackBytes), isAck: false).cookie == nil)
        torture(ackBytes) { _ = try? InitChunk(value: $0, isAck: true) }
    }

    @Test func zeroChecksumOfAnotherMethodIsNotTaken() throws {
        let bytes = hex("01 00 001c 0a0b0c0d 00100000 0400 0800 01020304 8001 0008 00000002")
        #expect(try InitChunk(value: value(bytes), isAck: false).features == [])
    }

    @Test func sack() {
        let bytes = written {
            SackChunk.write(
                cumulative: TSN(0xFFFF_FFFF), receiverWindow: 70_000,
                gaps: [.init(start: 2, end: 3), .init(start: 5, end: 65_535)], duplicates: [TSN(4)], to: &$0)
        }
        #expect(bytes == hex("03 00 001c ffffffff 00011170 0002 0001 0002 0003 0005 ffff 00000004"))
        let chunk = SackChunk(packet: bytes, offset: 0, length: bytes.count)
        #expect(chunk?.cumulative == TSN(0xFFFF_FFFF))
        #expect(chunk?.receiverWindow == 70_000)
        #expect(chunk?.gap(1, in: bytes) == SackChunk.GapBlock(start: 5, end: 65_535))
        for length in 0..<bytes.count { #expect(SackChunk(packet: bytes, offset: 0, length: length) == nil) }
        for index in 12..<16 {
            var changed = bytes
            changed[index] = 0xFF
            #expect(SackChunk(packet: changed, offset: 0, length: bytes.count) == nil)
        }
    }

    @Test func forwardTSN() throws {
        let chunk = ForwardTSNChunk(
            newCumulative: TSN(0x0102_0304), skips: [.init(stream: 1, ssn: 2), .init(stream: 0xFFFE, ssn: 0xFFFF)])
        let bytes = written { chunk.write(to: &$0) }
        #expect(bytes == hex("c0 00 0010 01020304 0001 0002 fffe ffff"))
        #expect(try ForwardTSNChunk(value: value(bytes)) == chunk)
        torture(bytes) { _ = try? ForwardTSNChunk(value: $0) }
        #expect(throws: WireError.self) { try ForwardTSNChunk(value: ByteReader([1, 2, 3])) }
    }

    @Test func heartbeat() throws {
        let chunk = HeartbeatChunk(info: [1, 2, 3])
        let bytes = written { chunk.write(isAck: false, to: &$0) }
        #expect(bytes == hex("04 00 000b 0001 0007 010203 00"))
        #expect(written { chunk.write(isAck: true, to: &$0) }[0] == 5)
        #expect(try HeartbeatChunk(value: value(bytes)) == chunk)
        torture(bytes) { _ = try? HeartbeatChunk(value: $0) }
    }

    @Test func abortAndErrorCauses() {
        let causes = [ErrorCause(code: 13, reason: "why"), ErrorCause(code: 4)]
        let bytes = written { ErrorCause.writeChunk(ChunkType.abort, causes: causes, reflectsTag: true, to: &$0) }
        #expect(bytes == hex("06 01 0010 000d 0007 776879 00 0004 0004"))
        #expect(ErrorCause.list(value: value(bytes)) == causes)
        torture(bytes) { _ = ErrorCause.list(value: $0) }
        #expect(ErrorCause.list(value: ByteReader(hex("0001 0000 0001 0000"))) == [])
    }

    @Test func reconfiguration() throws {
        let parameters: [(ReconfigurationChunk.Parameter, String)] = [
            (
                .outgoingReset(request: 1, response: 2, lastTSN: TSN(3), streams: [4, 5, 6]),
                "82 00 001a 000d 0016 00000001 00000002 00000003 0004 0005 0006 0000"
            ),
            (
                .outgoingReset(request: 1, response: 2, lastTSN: TSN(3), streams: []),
                "82 00 0014 000d 0010 00000001 00000002 00000003"
            ),
            (.incomingReset(request: 7, streams: [8]), "82 00 000e 000e 000a 00000007 0008 0000"),
            (.otherRequest(type: 15, request: 9), "82 00 000c 000f 0008 00000009"),
            (.response(request: 10, result: 1), "82 00 0010 0010 000c 0000000a 00000001"),
        ]
        for (parameter, text) in parameters {
            let chunk = ReconfigurationChunk(parameters: [parameter])
            let bytes = written { chunk.write(to: &$0) }
            #expect(bytes == hex(text))
            #expect(try ReconfigurationChunk(value: value(bytes)) == chunk)
            torture(bytes) { _ = try? ReconfigurationChunk(value: $0) }
        }
        let both = ReconfigurationChunk(parameters: [parameters[0].0, parameters[4].0])
        let bytes = written { both.write(to: &$0) }
        #expect(try ReconfigurationChunk(value: value(bytes)) == both)
        torture(bytes) { _ = try? ReconfigurationChunk(value: $0) }
        #expect(throws: WireError.self) {
            try ReconfigurationChunk(
                value: ByteReader(hex("0010000c0000000a00000001 0010000c0000000a00000001 0010000c0000000a00000001")))
        }
    }

    @Test func cookieIsSealed() {
        let key = SipHash(key0: 1, key1: 2)
        let cookie = StateCookie(
            createdAt: Instant(nanoseconds: 9), localTag: 1, peerTag: 2, tieLocalTag: 3, tiePeerTag: 4,
            localInitialTSN: TSN(5), peerInitialTSN: TSN(6), peerWindow: 7, outboundStreams: 8, inboundStreams: 9,
            peerFeatures: [.reconfiguration])
        let bytes = cookie.sealed(with: key)
        #expect(bytes.count == StateCookie.size)
        #expect(StateCookie(bytes, key: key) == cookie)
        #expect(StateCookie(bytes, key: SipHash(key0: 1, key1: 3)) == nil)
        for length in 0..<bytes.count { #expect(StateCookie(Array(bytes[0..<length]), key: key) == nil) }
        #expect(StateCookie(bytes + [0], key: key) == nil)
        for index in bytes.indices {
            var changed = bytes
            changed[index] ^= 1
            #expect(StateCookie(changed, key: key) == nil)
        }
    }
}

/// Small parts that the machines stand on.
@Suite struct ContainerTests {
    @Test func tsnsCompareAcrossTheWrap() {
        #expect(TSN(3) - TSN(0xFFFF_FFFE) == 5)
        #expect(TSN(0xFFFF_FFFE) - TSN(3) == -5)
        #expect(TSN(0xFFFF_FFFF) + 2 == TSN(1))
        #expect(ssnDistance(1, from: 0xFFFF) == 2)
    }

    @Test func receivedTSNsAgreeWithASet() {
        var random = RandomSource(seed: 21)
        for start in [0, 0xFFFF_FF00] as [UInt32] {
            var received = ReceivedTSNs(initialTSN: TSN(start))
            var set: Set<UInt32> = []
            for _ in 0..<5_000 {
                let tsn = received.cumulative + Int.random(in: 1...600, using: &random)
                if tsn == received.cumulative + 1 {
                    received.advance()
                    while received.hasGaps, received.contains(received.cumulative + 1) {
                        set.remove((received.cumulative + 1).rawValue)
                        received.advance()
                    }
                } else {
                    #expect(received.contains(tsn) == set.contains(tsn.rawValue))
                    if !received.contains(tsn) {
                        _ = received.insert(tsn)
                        set.insert(tsn.rawValue)
                    }
                }
                let blocks = received.gapBlocks(limit: .max)
                #expect(blocks.reduce(0) { $0 + Int($1.end) - Int($1.start) + 1 } == set.count)
            }
        }
    }

    @Test func ringQueueIsFirstInFirstOut() {
        var queue = RingQueue<Int>()
        var next = 0
        var expected = 0
        var random = RandomSource(seed: 3)
        for _ in 0..<10_000 {
            if Bool.random(using: &random) {
                queue.append(next)
                next += 1
            } else if let value = queue.popFirst() {
                #expect(value == expected)
                expected += 1
            }
            #expect(queue.count == next - expected)
        }
    }

    @Test func streamTableHoldsWhatWasSet() {
        var table = StreamTable<Int>()
        for id in [0, 1, 255, 256, 65_534] as [UInt16] { table[id] = Int(id) }
        #expect(table.ids == [0, 1, 255, 256, 65_534])
        #expect(table.count == 5)
        table[255] = nil
        table[300] = nil
        table[255] = nil
        #expect(table.count == 4 && table[255] == nil && table[65_534] == 65_534)
        #expect(table.update(1) { $0 += 5 } != nil)
        #expect(table[1] == 6)
        #expect(table.update(2) { $0 += 5 } == nil)
    }
}
