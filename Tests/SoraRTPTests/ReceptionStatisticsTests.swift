import SoraRTP
import SoraWire
import Testing

@Suite struct ReceptionStatisticsTests {
    private func header(_ number: Int, _ timestamp: UInt32) throws -> RTPHeader {
        try RTPHeader(
            parsing: RTPPacket(
                payloadType: PayloadType(96), sequenceNumber: SequenceNumber(UInt16(truncatingIfNeeded: number)),
                timestamp: RTPTimestamp(timestamp), ssrc: SSRC(1), payload: [1, 2, 3]
            ).serialized())
    }

    @Test func countsLossOverTheWrap() throws {
        var statistics = ReceptionStatistics(ssrc: SSRC(1), clockRate: 90_000)
        #expect(statistics.makeReport(now: .zero) == nil)
        for number in 65_530..<65_550 where number % 4 != 0 {
            statistics.receive(try header(number, 0), now: .zero)
        }
        let report = try #require(Optional(statistics.makeReport(now: .zero)) ?? nil)
        #expect(report.extendedHighestSequence == 0x1_000D)
        #expect(report.cumulativeLost == 5)
        #expect(report.fractionLost == 5 * 256 / 20)
        statistics.receive(try header(65_550, 0), now: .zero)
        let second = try #require(Optional(statistics.makeReport(now: .zero)) ?? nil)
        #expect(second.fractionLost == 0 && second.cumulativeLost == 5)
        #expect(statistics.packetsReceived == 16 && statistics.payloadBytesReceived == 48)
    }

    // STA4
    @Test func duplicatesMakeTheCumulativeLossNegativeAndNeverTheFraction() throws {
        var statistics = ReceptionStatistics(ssrc: SSRC(1), clockRate: 90_000)
        for _ in 0..<10 { statistics.receive(try header(5, 0), now: .zero) }
        statistics.receive(try header(7, 0), now: .zero)
        let report = try #require(Optional(statistics.makeReport(now: .zero)) ?? nil)
        #expect(report.cumulativeLost == -8 && report.fractionLost == 0)
        #expect(ReportBlock(ssrc: SSRC(1), cumulativeLost: .max).cumulativeLost == 8_388_607)
        #expect(ReportBlock(ssrc: SSRC(1), cumulativeLost: .min).cumulativeLost == -8_388_608)
    }

    // STA1: RFC 3550 A.8, in clock units, over the timestamp's wrap
    @Test func jitterIsInClockUnits() throws {
        var statistics = ReceptionStatistics(ssrc: SSRC(1), clockRate: 8000)
        for index in 0..<400 {
            // 20 ms apart, every other packet 10 ms late: each difference is 80 units.
            let arrival = index * 20 + (index % 2) * 10
            let timestamp = UInt32.max &- 1600 &+ UInt32(index * 160)
            statistics.receive(try header(index, timestamp), now: at(milliseconds: arrival))
        }
        #expect((78...80).contains(statistics.jitter))
        // A packet by retransmission says nothing of jitter.
        let before = statistics.jitter
        statistics.receive(try header(400, 64_000), now: at(milliseconds: 9900), isRecovered: true)
        #expect(statistics.jitter == before)
        var steady = ReceptionStatistics(ssrc: SSRC(1), clockRate: 48_000)
        for index in 0..<100 {
            steady.receive(try header(index, UInt32(index * 960)), now: at(milliseconds: index * 20))
        }
        #expect(steady.jitter == 0)
    }

    // STA1: the example of RFC 3550, 6.4.1
    @Test func roundTripOfTheRFCsExample() {
        let block = ReportBlock(ssrc: SSRC(1), lastSenderReport: 0xB705_2000, delaySinceLastSenderReport: 0x0005_4000)
        let arrival = NTPTime(0xB44D_B710_8000_0000 as UInt64)
        #expect(block.roundTripTime(now: arrival) == .milliseconds(6125))
        // Never negative, and none without a report.
        #expect(block.roundTripTime(now: NTPTime(0xB44D_B705_0000_0000 as UInt64)) == .zero)
        #expect(ReportBlock(ssrc: SSRC(1)).roundTripTime(now: arrival) == nil)
    }

    @Test func reportsCarryTheLastSenderReport() throws {
        var statistics = ReceptionStatistics(ssrc: SSRC(1), clockRate: 90_000)
        statistics.receive(try header(1, 0), now: .zero)
        let sent = SenderReport(
            ssrc: SSRC(1), ntpTime: NTPTime(0x0102_0304_0506_0708), rtpTimestamp: RTPTimestamp(90_000), packetCount: 1,
            octetCount: 1)
        statistics.receive(sent, now: at(milliseconds: 1000))
        let report = try #require(Optional(statistics.makeReport(now: at(milliseconds: 1500))) ?? nil)
        #expect(report.lastSenderReport == 0x0304_0506 && report.delaySinceLastSenderReport == 0x8000)
        let clock = try #require(statistics.clock)
        let time = clock.ntpTime(of: RTPTimestamp(45_000))
        #expect(sent.ntpTime.duration(since: time).inMilliseconds.rounded() == 500)
        #expect(clock.timestamp(of: sent.ntpTime + .seconds(-1)).distance(from: RTPTimestamp(0)).magnitude <= 1)
    }

    // STA2: counters wrap on the wire only
    @Test func sendCountersWrapOnTheWire() throws {
        var statistics = SendStatistics(packetsSent: 0xFFFF_FFFA)
        #expect(statistics.makeReport(ssrc: SSRC(1), clockRate: 90_000, now: .zero, origin: NTPTime(0)) == nil)
        for index in 0..<10 { statistics.send(try header(index, 90_000), now: at(milliseconds: 1000)) }
        #expect(statistics.packetsSent == 0x1_0000_0004)
        let built = statistics.makeReport(
            ssrc: SSRC(1), clockRate: 90_000, now: at(milliseconds: 1500), origin: NTPTime(0))
        let report = try #require(built)
        #expect(report.packetCount == 4 && report.octetCount == 30)
        #expect(report.rtpTimestamp == RTPTimestamp(135_000))
        #expect(report.ntpTime == NTPTime(0x1_8000_0000))
    }
}
