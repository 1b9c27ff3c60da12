import SoraRTP
import SoraWire
import Testing

@Suite struct NACKGeneratorTests {
    private func numbers(_ range: ClosedRange<Int>) -> [SequenceNumber] {
        range.map { SequenceNumber(UInt16(truncatingIfNeeded: $0)) }
    }

    @Test func asksAfterTheReorderingDelay() {
        var generator = NACKGenerator()
        generator.receive(SequenceNumber(65534), now: .zero)
        generator.receive(SequenceNumber(1), now: at(milliseconds: 10))
        #expect(generator.nextTimeout == at(milliseconds: 18))
        #expect(generator.handleTimeout(now: at(milliseconds: 17)).isEmpty)
        #expect(generator.handleTimeout(now: at(milliseconds: 18)).lost == numbers(65535...65536))
        #expect(generator.isMissing(SequenceNumber(0)))
    }

    @Test func newerPacketsProveALoss() {
        var generator = NACKGenerator()
        for number in [1, 3, 4] as [UInt16] { generator.receive(SequenceNumber(number), now: .zero) }
        #expect(generator.handleTimeout(now: .zero).isEmpty)
        generator.receive(SequenceNumber(5), now: .zero)
        #expect(generator.handleTimeout(now: .zero).lost == numbers(2...2))
    }

    @Test func latePacketIsNotAskedFor() {
        var generator = NACKGenerator()
        generator.receive(SequenceNumber(1), now: .zero)
        generator.receive(SequenceNumber(3), now: .zero)
        #expect(generator.receive(SequenceNumber(2), now: at(milliseconds: 3)) == true)
        #expect(generator.receive(SequenceNumber(2), now: at(milliseconds: 4)) == false)
        #expect(generator.nextTimeout == nil)
        #expect(generator.recoveredCount == 1)
    }

    @Test func repeatsOncePerRoundTripThenGivesUp() {
        var configuration = NACKGenerator.Configuration()
        configuration.maximumRetries = 3
        var generator = NACKGenerator(configuration: configuration)
        generator.setRoundTripTime(.milliseconds(50))
        generator.receive(SequenceNumber(1), now: .zero)
        generator.receive(SequenceNumber(3), now: .zero)
        var asked: [Instant] = []
        var broken: [Instant] = []
        while let next = generator.nextTimeout, asked.count < 20 {
            let request = generator.handleTimeout(now: next)
            if !request.lost.isEmpty { asked.append(next) }
            if request.isStreamBroken { broken.append(next) }
        }
        #expect(asked == [8, 63, 118].map { at(milliseconds: $0) })
        #expect(broken == [at(milliseconds: 173)])
        #expect(generator.abandonedCount == 1)
        #expect(generator.requestedCount == 3)
    }

    @Test func answersTeachTheRoundTrip() {
        var generator = NACKGenerator()  // assumes 100 ms
        for step in 0..<40 {
            let start = step * 1000
            generator.receive(SequenceNumber(UInt16(step * 2)), now: at(milliseconds: start))
            _ = generator.handleTimeout(now: at(milliseconds: start + 8))
            if step > 0 { generator.receive(SequenceNumber(UInt16(step * 2 - 1)), now: at(milliseconds: start + 28)) }
        }
        generator.receive(SequenceNumber(82), now: at(milliseconds: 50_000))
        _ = generator.handleTimeout(now: at(milliseconds: 50_008))
        // Twenty milliseconds and five, not the hundred assumed.
        let next = generator.nextTimeout.map { ($0 - at(milliseconds: 50_008)).inMilliseconds } ?? 0
        #expect(next >= 20 && next < 28)
    }

    @Test func hugeGapAsksForAKeyFrameInstead() {
        var generator = NACKGenerator()
        generator.receive(SequenceNumber(1), now: .zero)
        generator.receive(SequenceNumber(20_000), now: .zero)
        let request = generator.handleTimeout(now: .zero)
        #expect(request.isStreamBroken && request.lost.isEmpty)
        #expect(generator.nextTimeout == nil)
    }

    @Test func trackedPacketsAreBounded() {
        var generator = NACKGenerator()
        for step in 0..<2000 { generator.receive(SequenceNumber(UInt16(truncatingIfNeeded: step * 20)), now: .zero) }
        #expect(generator.missingCount <= 600)
        #expect(generator.handleTimeout(now: at(milliseconds: 10)).isStreamBroken)
    }

    @Test func keyFrameMakesOlderPacketsUnnecessary() {
        var generator = NACKGenerator()
        generator.receive(SequenceNumber(1), now: .zero)
        generator.receive(SequenceNumber(10), now: .zero)
        generator.forget(before: SequenceNumber(10))
        #expect(generator.handleTimeout(now: at(milliseconds: 10)).isEmpty)
    }
}

@Suite struct RTXTests {
    static let original = RTPPacket(
        marker: true, payloadType: PayloadType(96), sequenceNumber: SequenceNumber(0xABCD),
        timestamp: RTPTimestamp(77), ssrc: SSRC(5), csrcs: [SSRC(9)],
        extensions: [.init(id: 3, value: Array("r1".utf8))], payload: [1, 2, 3], paddingLength: 4)

    private func sender() -> RTXSender {
        RTXSender(
            ssrc: SSRC(6), payloadTypes: [PayloadType(96): PayloadType(97)], sequenceNumber: SequenceNumber(65535))
    }
    private let receiver = RTXReceiver(originalSSRC: SSRC(5), payloadTypes: [PayloadType(97): PayloadType(96)])

    // RTP11: with CSRCs, extension and padding
    @Test func wrapsAndRestores() throws {
        var sender = sender()
        let wrappedResult = sender.wrap(RTXTests.original.serialized())
        let wrapped = try #require(wrappedResult)
        let packet = try RTPPacket(parsing: wrapped)
        #expect(packet.ssrc == SSRC(6) && packet.payloadType == PayloadType(97))
        #expect(packet.sequenceNumber == SequenceNumber(65535))
        #expect(packet.payload == [0xAB, 0xCD, 1, 2, 3])
        #expect(packet.paddingLength == 0 && packet.marker)
        // The sender of an RTX packet may have padded it.
        var padded = wrapped
        RTPPacketEditing.appendPadding(7, to: &padded)
        var expected = RTXTests.original
        expected.paddingLength = 0
        for bytes in [wrapped, padded] {
            let restored = try #require(receiver.unwrap(bytes, header: try RTPHeader(parsing: bytes)))
            #expect(try RTPPacket(parsing: restored) == expected)
        }
        let secondResult = sender.wrap(RTXTests.original.serialized())
        let second = try #require(secondResult)
        #expect(try RTPHeader(parsing: second).sequenceNumber == SequenceNumber(0))
    }

    // RTP11: 0, 1 and 2 payload bytes
    @Test func shortPayloadIsAProbe() throws {
        for count in 0...2 {
            let bytes = RTPPacket(
                payloadType: PayloadType(97), sequenceNumber: SequenceNumber(1), timestamp: RTPTimestamp(1),
                ssrc: SSRC(6), payload: [UInt8](repeating: 1, count: count), paddingLength: 9
            ).serialized()
            let restored = receiver.unwrap(bytes, header: try RTPHeader(parsing: bytes))
            #expect((restored != nil) == (count == 2))
            if let restored { #expect(try RTPPacket(parsing: restored).payload == []) }
        }
        var sender = sender()
        let probeResult = sender.padding(255, timestamp: RTPTimestamp(1))
        let probe = try #require(probeResult)
        #expect(receiver.unwrap(probe, header: try RTPHeader(parsing: probe)) == nil)
    }

    @Test func ridBecomesRepairedRid() throws {
        var table = (0..<16).map { UInt8($0) }
        table[3] = 4
        var sender = RTXSender(
            ssrc: SSRC(6), payloadTypes: [PayloadType(96): PayloadType(97)], sequenceNumber: SequenceNumber(1),
            extensionTable: table)
        let wrappedResult = sender.wrap(RTXTests.original.serialized())
        let wrapped = try #require(wrappedResult)
        #expect(try RTPPacket(parsing: wrapped).extensions == [.init(id: 4, value: Array("r1".utf8))])
    }

    @Test func unknownPayloadTypesAreLeftAlone() throws {
        var other = RTXTests.original
        other.payloadType = PayloadType(100)
        var sender = sender()
        #expect(sender.wrap(other.serialized()) == nil)
        #expect(sender.wrap([1, 2, 3]) == nil)
        let bytes = other.serialized()
        #expect(receiver.unwrap(bytes, header: try RTPHeader(parsing: bytes)) == nil)
    }
}

@Suite struct RTPSendHistoryTests {
    private func packet(_ number: Int) -> [UInt8] {
        RTPPacket(
            payloadType: PayloadType(96), sequenceNumber: SequenceNumber(UInt16(truncatingIfNeeded: number)),
            timestamp: RTPTimestamp(1), ssrc: SSRC(5), payload: [UInt8](repeating: 7, count: 988)
        ).serialized()
    }
    private func fill(_ history: inout RTPSendHistory, _ range: Range<Int>, every milliseconds: Int = 0) {
        for number in range {
            history.store(
                packet(number), sequenceNumber: SequenceNumber(UInt16(truncatingIfNeeded: number)),
                now: at(milliseconds: (number - range.lowerBound) * milliseconds))
        }
    }

    @Test func answersWithThePacket() {
        var history = RTPSendHistory()
        fill(&history, 65_500..<65_600)
        #expect(
            history.answer([SequenceNumber(65_535), SequenceNumber(10)], now: .zero) == [packet(65_535), packet(10)])
        #expect(history.answer([SequenceNumber(1000)], now: .zero) == [])
    }

    @Test func repeatsAtMostOncePerRoundTripAndTenTimes() {
        var history = RTPSendHistory()
        history.setRoundTripTime(.milliseconds(40))
        fill(&history, 0..<10)
        var times = 0
        for millisecond in 0..<1000 {
            times += history.answer([SequenceNumber(3)], now: at(milliseconds: millisecond)).count
        }
        #expect(times == 10)
        #expect(history.repeatedPackets == 10)
    }

    @Test func forgetsByAgeAndByNumber() {
        var configuration = RTPSendHistory.Configuration()
        configuration.maximumPackets = 128
        var history = RTPSendHistory(configuration: configuration)
        fill(&history, 0..<1000)
        #expect(history.packet(SequenceNumber(871), now: .zero) == nil)
        #expect(history.packet(SequenceNumber(872), now: .zero) == packet(872))
        #expect(history.answer([SequenceNumber(999)], now: at(milliseconds: 2001)) == [])
        history.removeAll()
        #expect(history.packet(SequenceNumber(999), now: .zero) == nil)
    }

    @Test func growsOnlyWhileOldPacketsAreYoung() {
        var history = RTPSendHistory()
        fill(&history, 0..<700)
        #expect(history.packet(SequenceNumber(0), now: .zero) == packet(0))
        var slow = RTPSendHistory()
        fill(&slow, 0..<300, every: 100)
        #expect(slow.packet(SequenceNumber(299), now: at(milliseconds: 29_900)) != nil)
        #expect(slow.packet(SequenceNumber(100), now: at(milliseconds: 29_900)) == nil)
    }

    @Test func forgedNacksCannotMultiplyTraffic() {
        var configuration = RTPSendHistory.Configuration()
        configuration.repeatBytesPerSecond = 100_000
        var history = RTPSendHistory(configuration: configuration)
        fill(&history, 0..<1000)
        let all = (0..<1000).map { SequenceNumber(UInt16($0)) }
        var bytes = 0
        for millisecond in 0...1000 {
            bytes += history.answer(all, now: at(milliseconds: millisecond)).reduce(0) { $0 + $1.count }
        }
        #expect(bytes <= 151_000)
        #expect(bytes >= 140_000)
    }

    @Test func wrapsRepeatsInRTX() throws {
        var history = RTPSendHistory(
            rtx: RTXSender(
                ssrc: SSRC(6), payloadTypes: [PayloadType(96): PayloadType(97)], sequenceNumber: SequenceNumber(1)))
        fill(&history, 0..<4)
        let answer = try #require(history.answer([SequenceNumber(2)], now: .zero).first)
        let receiver = RTXReceiver(originalSSRC: SSRC(5), payloadTypes: [PayloadType(97): PayloadType(96)])
        #expect(receiver.unwrap(answer, header: try RTPHeader(parsing: answer)) == packet(2))
    }
}
