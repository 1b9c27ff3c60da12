import SoraRTP
import SoraWire
import Testing

@Suite struct RTPHeaderTests {
    @Test func readsTheFixedHeader() throws {
        let packet = hex("80e004d200abcdef3141592664617461")
        let header = try RTPHeader(parsing: packet)
        #expect(header.marker)
        #expect(header.payloadType == PayloadType(96))
        #expect(header.sequenceNumber == SequenceNumber(1234))
        #expect(header.timestamp == RTPTimestamp(0x00AB_CDEF))
        #expect(header.ssrc == SSRC(0x3141_5926))
        #expect(header.payloadRange == 12..<16)
        #expect(header.extensionProfile == nil)
    }

    // RTP1
    @Test(arguments: [
        "846004d200abcdef314159266162636471727374",  // rtp-csrc-4-with-2
        "906004d200abcdef31415926bede000310aa0000",  // rtp-extension-longer-than-packet
        "906004d200abcdef31415926bede000157aabbcc64617461",  // rtp-extension-element-overruns (RTP2)
        "906004d200abcdef31415926100000010509aabb64617461",  // rtp-two-byte-element-overruns (RTP2)
        "a06004d200abcdef3141592601020300",  // rtp-padding-byte-zero
        "a06004d200abcdef3141592601020305",  // rtp-padding-exceeds-payload
        "c06004d200abcdef3141592664617461",  // rtp-version-3
    ])
    func refusesLengthsThatPromiseTooMuch(packet: String) {
        #expect(throws: RTPError.self) { try RTPHeader(parsing: hex(packet)) }
        #expect(throws: RTPError.self) { try RTPPacket(parsing: hex(packet)) }
    }

    // RTP1: rtp-padding-only
    @Test func paddingOnlyIsALegalEmptyPacket() throws {
        let header = try RTPHeader(parsing: hex("a06004d200abcdef314159260000000000000008"))
        #expect(header.paddingLength == 8)
        #expect(header.payloadRange.isEmpty)
    }

    // RTP2: rtp-id-15-ends-the-list
    @Test func identifier15EndsTheList() throws {
        let packet = hex("906004d200abcdef31415926bede000231a1b2f040c3000064617461")
        let header = try RTPHeader(parsing: packet)
        #expect(header.extensions(in: packet).map(\.id) == [3])
        #expect(header.extensionRange(id: 3, in: packet).map { Array(packet[$0]) } == [0xA1, 0xB2])
        #expect(header.extensionRange(id: 4, in: packet) == nil)
        #expect(Array(packet[header.payloadRange]) == hex("64617461"))
    }

    // RTP2: the figures of RFC 8285, 4.2 and 4.3
    @Test func readsTheExamplesOfRFC8285() throws {
        let one = hex("9060 0001 00000000 00000001 bede0003 10aa 21bbcc 0000 33ddeeff11")
        let oneHeader = try RTPHeader(parsing: one)
        #expect(oneHeader.extensions(in: one).map { Array(one[$0.range]) } == [[0xAA], [0xBB, 0xCC], hex("ddeeff11")])
        let two = hex("9060 0001 00000000 00000001 10000003 0100 0201bb 00 0304ccddeeff")
        let twoHeader = try RTPHeader(parsing: two)
        #expect(twoHeader.extensions(in: two).map(\.id) == [1, 2, 3])
        #expect(twoHeader.extensions(in: two).map { Array(two[$0.range]) } == [[], [0xBB], hex("ccddeeff")])
        // 0x1000 to 0x100f are the two-byte form; application bits do not matter.
        for low: UInt8 in 0...15 {
            var packet = two
            packet[13] = low
            #expect(try RTPHeader(parsing: packet).extensions(in: packet).map(\.id) == [1, 2, 3])
        }
        var opaque = two
        opaque[12] = 0x20
        #expect(try RTPHeader(parsing: opaque).extensions(in: opaque).map(\.id) == [])
    }

    @Test func everyVariationIsAValueOrAnError() throws {
        let good = RTPPacket(
            marker: true, payloadType: PayloadType(96), sequenceNumber: SequenceNumber(7),
            timestamp: RTPTimestamp(9), ssrc: SSRC(5), csrcs: [SSRC(1), SSRC(2)],
            extensions: [.init(id: 1, value: [1, 2]), .init(id: 14, value: [3])], payload: [1, 2, 3, 4],
            paddingLength: 3
        ).serialized()
        for input in variations(of: good) {
            guard let packet = try? RTPPacket(parsing: input) else { continue }
            let header = try RTPHeader(parsing: input)
            #expect(header.payloadRange.upperBound <= input.count)
            // Writing what was read and reading it again gives the same.
            #expect(try RTPPacket(parsing: packet.serialized()) == packet)
        }
    }

    @Test func writesTheTwoByteFormOnlyWhenNeeded() throws {
        var packet = RTPPacket(
            payloadType: PayloadType(96), sequenceNumber: SequenceNumber(1), timestamp: RTPTimestamp(1), ssrc: SSRC(1),
            extensions: [.init(id: 4, value: [0x30])], payload: [0xFF])
        #expect(hexText(packet.serialized()) == "906000010000000100000001bede00014030" + "0000" + "ff")
        packet.extensions.append(.init(id: 15, value: []))
        #expect(hexText(packet.serialized()) == "90600001000000010000000110000002040130" + "0f00" + "000000" + "ff")
        #expect(try RTPPacket(parsing: packet.serialized()) == packet)
        #expect(packet.headerLength == 24)
    }

    @Test func editsInPlace() throws {
        var bytes = RTPPacket(
            payloadType: PayloadType(96), sequenceNumber: SequenceNumber(1), timestamp: RTPTimestamp(1), ssrc: SSRC(1),
            extensions: [.init(id: 1, value: [0, 0]), .init(id: 2, value: [9, 9, 9]), .init(id: 3, value: [7])],
            payload: [1, 2, 3], paddingLength: 5
        ).serialized()
        let header = try RTPHeader(parsing: bytes)
        RTPPacketEditing.setMarker(true, in: &bytes)
        RTPPacketEditing.setPayloadType(PayloadType(101), in: &bytes)
        RTPPacketEditing.setSequenceNumber(SequenceNumber(65535), in: &bytes)
        RTPPacketEditing.setTimestamp(RTPTimestamp(0xDEAD_BEEF), in: &bytes)
        RTPPacketEditing.setSSRC(SSRC(0xCAFE_BABE), in: &bytes)
        #expect(RTPPacketEditing.setExtension(id: 1, uint16: 0x1234, in: &bytes, header: header))
        #expect(RTPPacketEditing.setExtension(id: 2, uint24: 0x56789A, in: &bytes, header: header))
        #expect(!RTPPacketEditing.setExtension(id: 4, uint16: 0, in: &bytes, header: header))
        #expect(!RTPPacketEditing.setExtension(id: 3, value: [1, 2], in: &bytes, header: header))
        RTPPacketEditing.stripPadding(in: &bytes, header: header)
        var table = [UInt8](repeating: 0, count: 16)
        table[1] = 5
        table[3] = 6
        RTPPacketEditing.remapExtensions(table, in: &bytes, header: header)
        let packet = try RTPPacket(parsing: bytes)
        #expect(
            packet
                == RTPPacket(
                    marker: true, payloadType: PayloadType(101), sequenceNumber: SequenceNumber(65535),
                    timestamp: RTPTimestamp(0xDEAD_BEEF), ssrc: SSRC(0xCAFE_BABE),
                    extensions: [.init(id: 5, value: [0x12, 0x34]), .init(id: 6, value: [7])], payload: [1, 2, 3]))
        RTPPacketEditing.replaceExtensions(with: [], in: &bytes, header: try RTPHeader(parsing: bytes))
        #expect(try RTPHeader(parsing: bytes).headerLength == 12)
        RTPPacketEditing.appendPadding(4, to: &bytes)
        let padded = try RTPPacket(parsing: bytes)
        #expect(padded.extensions.isEmpty && padded.payload == [1, 2, 3] && padded.paddingLength == 4)
    }

    @Test func forwardedExtensionsKeepTheMediaAndRewriteTheHop() throws {
        let incoming = RTPExtensionMap([
            .mid: 1, .audioLevel: 2, .rid: 3, .transportSequenceNumber: 4, .playoutDelay: 5,
        ])
        let outgoing = RTPExtensionMap([.mid: 7, .audioLevel: 6, .transportSequenceNumber: 1, .absoluteSendTime: 2])
        #expect(incoming.kind(of: 2) == .audioLevel)
        #expect(outgoing[.rid] == nil)
        var bytes = RTPPacket(
            payloadType: PayloadType(111), sequenceNumber: SequenceNumber(1), timestamp: RTPTimestamp(1), ssrc: SSRC(1),
            extensions: [
                .init(id: 1, value: Array("0".utf8)), .init(id: 2, value: [0x85]), .init(id: 4, value: [1, 1]),
                .init(id: 3, value: Array("r0".utf8)), .init(id: 5, value: [0, 0, 0]),
            ], payload: [1, 2, 3]
        ).serialized()
        var rewriter = ForwardedExtensions(incoming: incoming, outgoing: outgoing, mid: Mid("video1"))
        let header = try RTPHeader(parsing: bytes)
        let shift = rewriter.rewrite(&bytes, header: header, transportSequence: 0xABCD, sendTime: 0x010203)
        let packet = try RTPPacket(parsing: bytes)
        #expect(try RTPHeader(parsing: bytes).headerLength == header.headerLength + (shift ?? -999))
        #expect(
            packet.extensions == [
                .init(id: 1, value: [0xAB, 0xCD]), .init(id: 2, value: [1, 2, 3]),
                .init(id: 7, value: Array("video1".utf8)), .init(id: 6, value: [0x85]),
            ])
        #expect(packet.payload == [1, 2, 3])
        var nothing = ForwardedExtensions(incoming: incoming, outgoing: RTPExtensionMap(), mid: nil)
        nothing.rewrite(&bytes, header: try RTPHeader(parsing: bytes))
        #expect(try RTPHeader(parsing: bytes).extensionProfile == nil)
        #expect(try RTPPacket(parsing: bytes).payload == [1, 2, 3])
    }

    @Test func extensionValuesRoundTrip() {
        #expect(RTPExtensionValue.rotation(RTPExtensionValue.bytes(ofRotation: 270), 0..<1) == 270)
        #expect(RTPExtensionValue.bytes(ofRotation: -90) == [3])
        let level = RTPExtensionValue.audioLevel(RTPExtensionValue.bytes(ofAudioLevel: 30, isVoice: true), 0..<1)
        #expect(level?.level == 30 && level?.isVoice == true)
        #expect(RTPExtensionValue.absoluteSendTime(at(milliseconds: 1500)) == 3 << 17)
        #expect(RTPExtensionValue.absoluteSendTime(at(milliseconds: 64_000)) == 0)
        #expect(RTPExtensionValue.text([0x72, 0x30], 0..<2) == "r0")
        #expect(RTPExtensionValue.text([0x72, 0x00], 0..<2) == nil)
        #expect(RTPExtensionValue.text([0x72], 0..<2) == nil)
        for kind in RTPExtensionKind.allCases { #expect(RTPExtensionKind(uri: kind.uri) == kind) }
    }
}
