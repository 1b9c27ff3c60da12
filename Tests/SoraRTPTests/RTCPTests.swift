import SoraRTP
import SoraWire
import Testing

@Suite struct RTCPTests {
    // RTP3, RTP4, RTP5, RTP6
    @Test(arguments: [
        "8fce00050a0b0c0d0000000052454d42090bd09031415926",  // rtcp-remb-count-9-with-1
        "8fcd00050a0b0c0d314159260fa0012c00012e0500140000",  // rtcp-twcc-300-statuses-in-one-run-of-20
        "8fcd00050a0b0c0d31415926fffa000700012e06eaaa0140",  // rtcp-twcc-deltas-missing
        "81ca00023141592601c86162",  // rtcp-sdes-item-beyond-chunk
        "82c900070a0b0c0d3141592600000000000111700000000c0000000000000000",  // rtcp-rr-2-blocks-claimed-1-present
        "83cb00020a0b0c0d31415926",  // rtcp-bye-3-sources-claimed-2-present
        "81cb00020a0b0c0d40627965",  // rtcp-bye-reason-too-long
        "80cf00040a0b0c0d040001f40000000000000000",  // rtcp-xr-block-500-words
        "a1cb00020a0b0c0d00000000",  // rtcp-padding-count-zero
        "a1cb00020a0b0c0d000000fc",  // rtcp-padding-larger-than-packet
        "80c900280a0b0c0d",  // rtcp-length-beyond-datagram
        "41cb00010a0b0c0d",  // rtcp-version-1
        "a0c900020a0b0c0d00000004" + "81cb00010a0b0c0d",  // padded RR in front of a BYE
        "",
    ])
    func refusesFalseLengths(compound: String) {
        #expect(throws: RTPError.self) { try RTCP.parse(compound: hex(compound)) }
    }

    @Test func nackWithoutEntriesHasNoEffect() throws {
        let packets = try RTCP.parse(compound: hex("81cd00020a0b0c0d31415926"))  // rtcp-nack-without-entries
        #expect(
            packets == [
                .genericNack(.init(senderSSRC: SSRC(0x0A0B_0C0D), mediaSSRC: SSRC(0x3141_5926), lost: []))
            ])
    }

    static let block = ReportBlock(
        ssrc: SSRC(0x3141_5926), fractionLost: 64, cumulativeLost: -2, extendedHighestSequence: 0x0001_0203,
        jitter: 77, lastSenderReport: 0xAABB_CCDD, delaySinceLastSenderReport: 0x0001_0000)

    // RTP12: golden bytes
    static let golden: [(RTCPPacket, String)] = [
        (
            .senderReport(
                .init(
                    ssrc: SSRC(0x0A0B_0C0D), ntpTime: NTPTime(0x0102_0304_8000_0000),
                    rtpTimestamp: RTPTimestamp(90_000),
                    packetCount: 5, octetCount: 600)),
            "80c800060a0b0c0d010203048000000000015f900000000500000258"
        ),
        (
            .receiverReport(.init(ssrc: SSRC(0x0A0B_0C0D), reports: [block])),
            "81c900070a0b0c0d3141592640fffffe000102030000004daabbccdd00010000"
        ),
        (
            .sourceDescription(.init(chunks: [.init(ssrc: SSRC(0x0A0B_0C0D), cname: "ab")])),
            "81ca00030a0b0c0d0102616200000000"
        ),
        (
            // A list that ends on the boundary needs four more zero bytes, not none.
            .sourceDescription(.init(chunks: [.init(ssrc: SSRC(0x0A0B_0C0D), cname: "abcdef")])),
            "81ca00040a0b0c0d010661626364656600000000"
        ),
        (.bye(.init(sources: [SSRC(0x0A0B_0C0D)])), "81cb00010a0b0c0d"),
        (.bye(.init(sources: [SSRC(0x0A0B_0C0D)], reason: Array("bye".utf8))), "81cb00020a0b0c0d03627965"),
        (
            .genericNack(
                .init(
                    senderSSRC: SSRC(0x0A0B_0C0D), mediaSSRC: SSRC(0x3141_5926),
                    lost: [65534, 65535, 0, 14, 17].map { SequenceNumber($0) })),
            "81cd00040a0b0c0d31415926fffe800300110000"
        ),
        (
            .pictureLossIndication(.init(senderSSRC: SSRC(0x0A0B_0C0D), mediaSSRC: SSRC(0x3141_5926))),
            "81ce00020a0b0c0d31415926"
        ),
        (
            .fullIntraRequest(
                .init(senderSSRC: SSRC(0x0A0B_0C0D), entries: [.init(ssrc: SSRC(0x3141_5926), sequenceNumber: 7)])),
            "84ce00040a0b0c0d000000003141592607000000"
        ),
        (
            // RTP4: exponent 2, mantissa 250,000
            .receiverEstimatedMaximumBitrate(
                .init(senderSSRC: SSRC(0x0A0B_0C0D), bitrate: 1_000_000, ssrcs: [SSRC(0x3141_5926)])),
            "8fce00050a0b0c0d0000000052454d42010bd09031415926"
        ),
        (
            .transportFeedback(
                .init(
                    senderSSRC: SSRC(0x0A0B_0C0D), mediaSSRC: SSRC(0x3141_5926), baseSequence: SequenceNumber(65534),
                    statusCount: 4, referenceTime: -2, feedbackCount: 9,
                    arrivals: [.init(offset: 0, delta: 4), .init(offset: 2, delta: -1), .init(offset: 3, delta: 300)])),
            "8fcd00060a0b0c0d31415926fffe0004fffffe09" + "d280" + "04ffff012c" + "00"
        ),
        (
            .extendedReport(
                .init(
                    ssrc: SSRC(0x0A0B_0C0D),
                    blocks: [
                        .receiverReferenceTime(NTPTime(0x0102_0304_0506_0708)),
                        .delaySinceLastReceiverReport([
                            .init(ssrc: SSRC(1), lastReceiverReport: 2, delaySinceLastReceiverReport: 3)
                        ]),
                        .unknown(type: 42, typeSpecific: 1, content: [1, 2, 3, 4]),
                    ])),
            "80cf000a0a0b0c0d040000020102030405060708050000030000000100000002000000032a01000101020304"
        ),
        (
            .unknown(.init(packetType: 204, format: 3, body: hex("0a0b0c0d6e616d65"))),
            "83cc00020a0b0c0d6e616d65"
        ),
    ]

    @Test(arguments: golden.indices) func writesAndReadsGoldenBytes(index: Int) throws {
        let (packet, bytes) = RTCPTests.golden[index]
        #expect(hexText(RTCP.serialize([packet])) == bytes)
        #expect(try RTCP.parse(compound: hex(bytes)) == [packet])
    }

    // RTP12
    @Test(arguments: [0, 1, 31]) func reportsOfAnyCountRoundTrip(count: Int) throws {
        let blocks = (0..<count).map { ReportBlock(ssrc: SSRC(UInt32($0)), fractionLost: UInt8($0)) }
        let packets: [RTCPPacket] = [
            .receiverReport(.init(ssrc: SSRC(1), reports: blocks)),
            .senderReport(
                .init(
                    ssrc: SSRC(1), ntpTime: NTPTime(1), rtpTimestamp: RTPTimestamp(2), packetCount: 3, octetCount: 4,
                    reports: blocks)),
        ]
        #expect(try RTCP.parse(compound: RTCP.serialize(packets)) == packets)
    }

    // RTP7
    @Test func unknownPacketsDoNotEndACompound() throws {
        let compound = hex(
            "80c800060a0b0c0d010203048000000000015f900000000500000258"  // SR
                + "9fce00020a0b0c0d31415926"  // unknown payload-specific format 31
                + "83cc00020a0b0c0d6e616d65"  // APP
                + "81ce00020a0b0c0d31415926")  // PLI
        let packets = try RTCP.parse(compound: compound)
        #expect(packets.count == 4)
        guard case .senderReport = packets[0], case .unknown = packets[1], case .unknown = packets[2],
            case .pictureLossIndication = packets[3]
        else {
            Issue.record("wrong kinds: \(packets)")
            return
        }
        #expect(RTCP.isRTCP(compound))
        #expect(!RTCP.isRTCP(hex("80600001")))
    }

    // RTP4
    @Test func hugeREMBSaturates() throws {
        let packets = try RTCP.parse(compound: hex("8fce00050a0b0c0d0000000052454d4201ffffff31415926"))
        guard case .receiverEstimatedMaximumBitrate(let estimate) = packets[0] else {
            Issue.record("no REMB")
            return
        }
        #expect(estimate.bitrate == .max)
        for bitrate: UInt64 in [0, 1, 262_143, 262_144, 1_500_000, .max] {
            let written = RTCP.serialize([
                .receiverEstimatedMaximumBitrate(.init(senderSSRC: SSRC(1), bitrate: bitrate, ssrcs: []))
            ])
            guard case .receiverEstimatedMaximumBitrate(let read) = try RTCP.parse(compound: written)[0] else {
                Issue.record("no REMB")
                return
            }
            #expect(read.bitrate <= bitrate && bitrate - read.bitrate <= bitrate >> 17)
        }
    }

    @Test func paddingOfTheLastPacketIsRemoved() throws {
        let packets = try RTCP.parse(compound: hex("80c900010a0b0c0d" + "a1cb00020a0b0c0d00000004"))
        #expect(
            packets == [.receiverReport(.init(ssrc: SSRC(0x0A0B_0C0D))), .bye(.init(sources: [SSRC(0x0A0B_0C0D)]))])
    }

    @Test func everyVariationIsAValueOrAnError() throws {
        for (index, entry) in RTCPTests.golden.enumerated() {
            for input in variations(of: hex(entry.1), seed: UInt64(index)) {
                guard let packets = try? RTCP.parse(compound: input) else { continue }
                // Overlapping NACK entries are joined when written, hence bytes are compared, not values.
                let written = RTCP.serialize(packets)
                #expect(try RTCP.serialize(RTCP.parse(compound: written)) == written)
            }
        }
    }

    @Test func splitsCompoundsAtTheLimit() throws {
        let pli = RTCPPacket.pictureLossIndication(.init(senderSSRC: SSRC(1), mediaSSRC: SSRC(2)))
        let compounds = RTCP.serialize([RTCPPacket](repeating: pli, count: 7), limit: 40)
        #expect(compounds.map(\.count) == [36, 36, 12])
    }

    // RTP5: our encoder's output for random arrivals, with wraps, reads back.
    @Test func randomTransportFeedbackReadsBack() throws {
        var random = RandomSource(seed: 5)
        for round in 0..<300 {
            let count = Int.random(in: 1...400, using: &random)
            let lossPercent = [0, 2, 50, 98, 100][round % 5]
            var arrivals: [TransportFeedback.Arrival] = []
            for offset in 0..<count where Int.random(in: 0..<100, using: &random) >= lossPercent {
                let large = Int.random(in: 0..<(round % 3 == 0 ? 2 : 40), using: &random) == 0
                arrivals.append(
                    .init(
                        offset: UInt16(offset),
                        delta: large
                            ? Int16.random(in: .min...(.max), using: &random)
                            : Int16.random(in: 0...255, using: &random)))
            }
            let packet = RTCPPacket.transportFeedback(
                .init(
                    senderSSRC: SSRC(1), mediaSSRC: SSRC(2),
                    baseSequence: SequenceNumber(UInt16.random(in: 65_000...65_535, using: &random)),
                    statusCount: UInt16(count), referenceTime: Int32.random(in: -0x80_0000...0x7F_FFFF, using: &random),
                    feedbackCount: UInt8.random(in: 0...255, using: &random), arrivals: arrivals))
            #expect(try RTCP.parse(compound: RTCP.serialize([packet])) == [packet])
        }
    }

    // RTP5: a short packet that promises 65,535 arrivals is refused without a large array.
    @Test func promisedArrivalsNeedTheirBytes() {
        let lying = hex("8fcd00080a0b0c0d314159260000ffff00000100" + String(repeating: "3fff", count: 8))
        #expect(throws: RTPError.self) { try RTCP.parse(compound: lying) }
    }

    @Test func ntpArithmetic() {
        let start = NTPTime(0xFFFF_FFFF_8000_0000)
        let later = start + .milliseconds(1500)
        #expect(later.duration(since: start).inMilliseconds.rounded() == 1500)
        #expect(start.duration(since: later).inMilliseconds.rounded() == -1500)
        #expect(NTPTime(at(milliseconds: 2500)).rawValue == 0x2_8000_0000)
        #expect(NTPTime(0x0102_0304_0506_0708).compact == 0x0304_0506)
        #expect(CompactDuration.encode(.milliseconds(500)) == 0x8000)
        #expect(CompactDuration.encode(.seconds(-1)) == 0)
        #expect(CompactDuration.encode(.seconds(1_000_000)) == .max)
        #expect(CompactDuration.decode(0x0001_8000) == .milliseconds(1500))
    }
}
