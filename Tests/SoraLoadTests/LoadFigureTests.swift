import SoraLoad
import SoraRTP
import SoraWire
import Testing

@Suite struct LoadFigureTests {
    @Test func stampsAreReadFromTheEndOfAnyPayload() {
        let stamp = Stamp(sequence: 77, time: Instant(nanoseconds: 1_234_567_890_123))
        for size in [Stamp.length, 21, 1100] {
            var payload = [UInt8](repeating: 9, count: size)
            stamp.write(to: &payload)
            #expect(payload.count == size)
            #expect(Stamp(endOf: payload[...]) == stamp)
            #expect(Stamp(endOf: ([1, 2, 3] + payload)[3...]) == stamp)
        }
        var short = [UInt8](repeating: 9, count: Stamp.length - 1)
        stamp.write(to: &short)
        #expect(short == [UInt8](repeating: 9, count: Stamp.length - 1))
        #expect(Stamp(endOf: short[...]) == nil)
        #expect(Stamp(endOf: [UInt8](repeating: 9, count: 100)[...]) == nil)
    }

    @Test func percentilesAreWithinThreePercent() throws {
        var histogram = LatencyHistogram()
        #expect(histogram.percentile(0.5) == nil)
        for microseconds in 1...10_000 { histogram.record(.microseconds(microseconds)) }
        #expect(histogram.count == 10_000)
        for (share, exact) in [(0.5, 5000.0), (0.9, 9000), (0.99, 9900), (1, 10_000)] {
            let value = try #require(histogram.percentile(share)) / .microseconds(1)
            #expect(abs(value / exact - 1) < 0.035, "\(share): \(value)")
        }
    }

    @Test func extremesStayInTheOutermostBuckets() throws {
        var histogram = LatencyHistogram()
        histogram.record(.zero)
        histogram.record(.seconds(-1))
        histogram.record(.seconds(100_000))
        #expect(histogram.count == 3)
        #expect(try #require(histogram.percentile(0.5)) < .microseconds(2))
        #expect(try #require(histogram.percentile(1)) > .seconds(30))
    }

    @Test func histogramsAddUpAndTellWhatIsNew() {
        var early = LatencyHistogram()
        for _ in 0..<10 { early.record(.milliseconds(1)) }
        var late = early
        for _ in 0..<5 { late.record(.milliseconds(100)) }
        let new = late - early
        #expect(new.count == 5)
        #expect(new.percentile(0) ?? .zero > .milliseconds(90))
        #expect((new + early) == late)
        #expect(late - LatencyHistogram() == late)
        #expect(LatencyHistogram() + late == late)
    }

    @Test func pictureStreamKeepsItsRateAndItsStamps() throws {
        var stream = VP8Stream()
        let start = Instant(nanoseconds: 5_000_000_000)
        stream.start(bitrate: 880_000, at: start)
        var packets: [RTPPacket] = []
        for millisecond in 0...1000 {
            let now = start + .milliseconds(millisecond)
            while let packet = stream.next(payloadType: PayloadType(96), now: now) {
                #expect(Stamp(endOf: packet.payload[...])?.time == now)
                packets.append(packet)
            }
        }
        // 100 packets of 1,100 bytes are 880 kbit.
        #expect((97...104).contains(packets.count), "\(packets.count)")
        #expect(packets.allSatisfy { $0.payload.count == VP8Stream.payloadLength })
        #expect(packets.filter { $0.marker }.count >= 30)
        stream.stop()
        #expect(stream.next(payloadType: PayloadType(96), now: start + .seconds(9)) == nil)
    }
}
