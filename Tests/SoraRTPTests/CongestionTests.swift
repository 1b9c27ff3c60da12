import SoraEmulator
import SoraRTP
import SoraWire
import Testing

@Suite struct TransportFeedbackGeneratorTests {
    /// Sends packets through, with what arrives when, and gives what the sender learns.
    private func learn(
        first: UInt16, _ arrivals: [(step: Int, ms: Int)], count: Int, start: Int = 0
    ) throws -> (lost: [Int], received: [Int: Int]) {
        var history = SentPacketHistory(firstNumber: first)
        for _ in 0..<count { _ = history.register(size: 100, now: .zero) }
        var generator = TransportFeedbackGenerator(senderSSRC: SSRC(1))
        var lost: [Int] = []
        var received: [Int: Int] = [:]
        func deliver(_ now: Instant) throws {
            for feedback in generator.handleTimeout(now: now) {
                let parsed = try RTCP.parse(compound: RTCP.serialize([.transportFeedback(feedback)]))
                guard case .transportFeedback(let read) = parsed[0] else { continue }
                for result in history.process(read, now: now) {
                    let step = Int(result.sequence) - 0x1_0000 - Int(first)
                    if let at = result.receivedAt {
                        received[step] = Int(at.nanoseconds / 1_000_000)
                        lost.removeAll { $0 == step }
                    } else {
                        lost.append(step)
                    }
                }
            }
        }
        for arrival in arrivals.sorted(by: { $0.ms < $1.ms }) {
            let now = at(milliseconds: start + arrival.ms)
            while let next = generator.nextTimeout, next <= now { try deliver(next) }
            generator.receive(SequenceNumber(first) + arrival.step, mediaSSRC: SSRC(2), now: now)
        }
        while let next = generator.nextTimeout { try deliver(next) }
        return (lost.sorted(), received)
    }

    @Test func senderLearnsArrivalsAndLosses() throws {
        let (lost, received) = try learn(
            first: 65_530, [(0, 5), (1, 6), (3, 7), (2, 30), (8, 90), (9, 200)], count: 12, start: 1000)
        #expect(lost == [4, 5, 6, 7])
        #expect(received == [0: 1005, 1: 1006, 3: 1007, 2: 1030, 8: 1090, 9: 1200])
    }

    @Test func latePacketIsReportedAfterAll() throws {
        let (lost, received) = try learn(first: 0, [(0, 5), (2, 6), (1, 150), (3, 151)], count: 4)
        #expect(lost == [])
        #expect(received == [0: 5, 1: 150, 2: 6, 3: 151])
    }

    // RTP5: random arrivals, with wraps of number, time and count
    @Test func randomArrivalsAreLearnt() throws {
        var random = RandomSource(seed: 12)
        for round in 0..<20 {
            let count = Int.random(in: 1...1500, using: &random)
            var arrivals: [(step: Int, ms: Int)] = []
            for step in 0..<count where Int.random(in: 0..<10, using: &random) > 0 {
                arrivals.append((step, step * 2 + Int.random(in: 0...60, using: &random)))
            }
            // Near the wrap of the 24-bit reference time of 64 ms.
            let start = round % 2 == 0 ? 0 : (1 << 24) * 64 - 500
            let (lost, received) = try learn(first: 65_000, arrivals, count: count, start: start)
            let period = (1 << 24) * 64
            for arrival in arrivals {
                let learnt = try #require(received[arrival.step])
                #expect((learnt - arrival.ms - start) % period == 0)
            }
            #expect(Set(lost).isDisjoint(with: received.keys))
        }
    }

    @Test func longGapsAreSplit() throws {
        let (_, received) = try learn(first: 0, [(0, 0), (1, 40), (1900, 45)], count: 2000)
        #expect(received == [0: 0, 1: 40, 1900: 45])
        // A pause longer than a delta can say.
        let (_, slow) = try learn(first: 0, [(0, 0), (1, 20_000)], count: 2)
        #expect(slow == [0: 0, 1: 20_000])
    }

    // RTP5: forgotten packets are ignored, and nothing is told twice
    @Test func feedbackOnForgottenPacketsIsIgnored() {
        var history = SentPacketHistory()
        for _ in 0..<10_000 { _ = history.register(size: 10, now: .zero) }
        let old = TransportFeedback(
            senderSSRC: SSRC(1), mediaSSRC: SSRC(1), baseSequence: SequenceNumber(100), statusCount: 50,
            referenceTime: 0,
            feedbackCount: 0, arrivals: [.init(offset: 3, delta: 1)])
        #expect(history.process(old, now: .zero) == [])
        let future = TransportFeedback(
            senderSSRC: SSRC(1), mediaSSRC: SSRC(1), baseSequence: SequenceNumber(10_100), statusCount: 50,
            referenceTime: 0, feedbackCount: 0, arrivals: [.init(offset: 3, delta: 1)])
        #expect(history.process(future, now: .zero) == [])
        let good = TransportFeedback(
            senderSSRC: SSRC(1), mediaSSRC: SSRC(1), baseSequence: SequenceNumber(9990), statusCount: 60_000,
            referenceTime: 0, feedbackCount: 0, arrivals: [.init(offset: 3, delta: 1)])
        #expect(history.process(good, now: .zero).count == 10)
        #expect(history.process(good, now: .zero).count == 0)
        #expect(history.bytesInFlight == (2048 - 10) * 10)
    }
}

/// A sender with an estimator, a bottleneck, and a receiver that gives feedback.
private struct Path {
    var history = SentPacketHistory()
    var estimator: BandwidthEstimator
    var generator = TransportFeedbackGenerator(senderSSRC: SSRC(1))
    /// Sizes of packets that wait, and bytes that may leave: frames are spread at two and a half times the rate.
    var queue: [Int] = []
    var budget = 0
    var forth: EmulatedLink<(number: UInt16, sentAt: Instant)>
    var back: EmulatedLink<TransportFeedback>
    var delays: [(at: Int, delay: Double)] = []
    var rates: [Int] = []
    var millisecond = 0

    init(_ conditions: LinkConditions, seed: UInt64) {
        var configuration = BandwidthEstimator.Configuration()
        configuration.start = 300_000
        configuration.maximum = 5_000_000
        estimator = BandwidthEstimator(configuration: configuration)
        forth = EmulatedLink(conditions, seed: seed, link: 1)
        back = EmulatedLink(LinkConditions(delay: .milliseconds(20)), seed: seed, link: 2)
    }

    mutating func run(seconds: Int) {
        for _ in 0..<(seconds * 1000) {
            let now = at(milliseconds: millisecond)
            if millisecond % 33 == 0 {
                // An encoder that keeps to the target.
                var bytes = estimator.targetBitrate / 8 / 30
                while bytes > 0 {
                    queue.append(min(bytes, 1200))
                    bytes -= 1200
                }
            }
            budget = min(budget, 0) + estimator.targetBitrate * 5 / 2 / 8000
            while budget > 0, !queue.isEmpty {
                let size = queue.removeFirst()
                budget -= size
                let number = history.register(size: size, now: now)
                forth.send((number, now), size: size, now: now)
            }
            while let packet = forth.receive(now: now) {
                delays.append((millisecond, (now - packet.sentAt).inMilliseconds))
                generator.receive(SequenceNumber(packet.number), mediaSSRC: SSRC(1), now: now)
            }
            for feedback in generator.handleTimeout(now: now) { back.send(feedback, size: 60, now: now) }
            while let feedback = back.receive(now: now) {
                estimator.handle(history.process(feedback, now: now), now: now)
            }
            rates.append(estimator.targetBitrate)
            millisecond += 1
        }
    }

    func meanRate(lastSeconds: Int) -> Double {
        let recent = rates.suffix(lastSeconds * 1000)
        return Double(recent.reduce(0, +)) / Double(recent.count)
    }
    func meanDelay(lastSeconds: Int) -> Double {
        let recent = delays.filter { $0.at >= millisecond - lastSeconds * 1000 }
        return recent.reduce(0) { $0 + $1.delay } / Double(max(recent.count, 1))
    }
}

@Suite struct BandwidthEstimatorTests {
    private func link(_ kilobits: Int, loss: Double = 0, jitter: Int = 0) -> LinkConditions {
        LinkConditions(
            delay: .milliseconds(30), jitter: .milliseconds(jitter), loss: loss, bitsPerSecond: kilobits * 1000,
            queueBytes: kilobits * 1000 / 8)  // a second's worth: too large, as home routers have it
    }

    @Test(arguments: 1...4) func findsTheCapacityWithoutFillingTheQueue(seed: Int) {
        var path = Path(link(1500, jitter: seed - 1), seed: UInt64(seed))
        path.run(seconds: 25)
        let rate = path.meanRate(lastSeconds: 10)
        #expect(rate > 900_000 && rate < 1_600_000, "rate \(rate)")
        let delay = path.meanDelay(lastSeconds: 10)
        #expect(delay < 150, "delay \(delay)")
    }

    @Test func followsTheCapacityDownAndUp() {
        var path = Path(link(2000), seed: 7)
        path.run(seconds: 15)
        #expect(path.meanRate(lastSeconds: 3) > 1_000_000)
        path.forth.conditions = link(500)
        path.run(seconds: 8)
        let low = path.meanRate(lastSeconds: 4)
        #expect(low > 250_000 && low < 560_000, "low \(low)")
        #expect(path.meanDelay(lastSeconds: 3) < 150, "delay \(path.meanDelay(lastSeconds: 3))")
        path.forth.conditions = link(2000)
        path.run(seconds: 30)
        #expect(path.meanRate(lastSeconds: 3) > 900_000, "high \(path.meanRate(lastSeconds: 3))")
    }

    @Test func littleLossDoesNotMatterAndMuchDoes() {
        var path = Path(link(3000, loss: 0.015), seed: 3)
        path.run(seconds: 15)
        #expect(path.meanRate(lastSeconds: 3) > 1_200_000, "\(path.meanRate(lastSeconds: 3))")
        var lossy = Path(link(3000, loss: 0.3), seed: 4)
        lossy.run(seconds: 15)
        #expect(lossy.meanRate(lastSeconds: 3) < 300_000, "\(lossy.meanRate(lastSeconds: 3))")
        #expect(lossy.estimator.lossFraction > 0.15)
    }

    @Test func bitrateRisesWithinSecondsOnAGoodPath() {
        var path = Path(LinkConditions(delay: .milliseconds(20)), seed: 5)
        path.run(seconds: 6)
        #expect(path.estimator.targetBitrate > 2_500_000, "\(path.estimator.targetBitrate)")
        #expect(path.estimator.isStartingUp)
        path.run(seconds: 6)
        #expect(path.estimator.targetBitrate == 5_000_000)
        #expect((35...80).contains(path.estimator.roundTripTime.inMilliseconds))
    }

    @Test func probeRaisesTheEstimate() {
        var estimator = BandwidthEstimator()
        let before = estimator.targetBitrate
        // Ten packets of 1,200 bytes, 3 ms apart: 3.2 Mbit/s, arriving as they were sent.
        let results = (0..<10).map { index in
            PacketResult(
                sequence: Int64(index), sentAt: at(milliseconds: index * 3), size: 1200,
                receivedAt: at(milliseconds: 5000 + index * 3), wasReportedLost: false, probe: 1)
        }
        estimator.handle(results, now: at(milliseconds: 100))
        #expect(estimator.targetBitrate > before * 5)
        #expect(estimator.targetBitrate < 3_300_000)
    }

    @Test func rembAndReportsLimitTheTarget() {
        var estimator = BandwidthEstimator()
        estimator.handleREMB(200_000)
        #expect(estimator.targetBitrate == 200_000)
        estimator.handleREMB(.max)
        #expect(estimator.targetBitrate == 20_000_000)
        var second = BandwidthEstimator()
        for index in 0..<20 {
            let block = ReportBlock(ssrc: SSRC(1), fractionLost: 100)
            second.handle(
                block, roundTripTime: .milliseconds(50), packetsSinceLast: 200, now: at(milliseconds: index * 1000))
        }
        #expect(second.targetBitrate < 200_000)
        #expect(second.roundTripTime < .milliseconds(60))
    }

    @Test func receiverSideEstimateFollowsTheBottleneck() {
        var estimator = ReceiverBandwidthEstimator(start: 4_000_000)
        var forth = EmulatedLink<(sendTime: UInt32, size: Int)>(link(1000), seed: 9)
        var told: [UInt64] = []
        var target = 2_000_000
        for millisecond in 0..<10_000 {
            // Across the wrap of the 64 s circle.
            let now = at(milliseconds: 60_000 + millisecond)
            if millisecond % 5 == 0 {
                let size = max(target / 8 / 200, 50)
                forth.send((RTPExtensionValue.absoluteSendTime(now), size), size: size, now: now)
            }
            while let packet = forth.receive(now: now) {
                estimator.receive(sendTime: packet.sendTime, size: packet.size, now: now)
            }
            if let rate = estimator.handleTimeout(now: now) {
                told.append(rate)
                target = Int(min(rate, 2_000_000))
            }
        }
        let last = told.suffix(3).max() ?? 0
        #expect(told.count >= 8)
        #expect(last > 300_000 && last < 1_300_000, "\(told)")
    }
}

@Suite struct SendSideEstimatorTests {
    private func feedback(_ base: UInt16, _ count: Int, reference: Int32, number: UInt8) -> TransportFeedback {
        TransportFeedback(
            senderSSRC: SSRC(1), mediaSSRC: SSRC(1), baseSequence: SequenceNumber(base), statusCount: UInt16(count),
            referenceTime: reference, feedbackCount: number,
            arrivals: (0..<count).map { .init(offset: UInt16($0), delta: 80) })
    }

    @Test func tellsChangesOnce() {
        var estimator = SendSideEstimator()
        #expect(estimator.takeChangedEstimate() == nil)
        estimator.receive(
            ReceiverEstimatedMaximumBitrate(senderSSRC: SSRC(1), bitrate: 123_000, ssrcs: []), now: .zero)
        #expect(estimator.takeChangedEstimate() == 123_000)
        #expect(estimator.takeChangedEstimate() == nil)
        #expect(estimator.targetBitrate == 123_000)
    }

    @Test func silenceHalvesTheRateUntilFeedbackComes() {
        var estimator = SendSideEstimator()
        let start = estimator.targetBitrate
        for _ in 0..<50 { _ = estimator.assignSequence(size: 1000, now: .zero) }
        #expect(estimator.nextTimeout == nil)  // nothing is expected from a peer that never gave feedback
        estimator.receive(feedback(1, 25, reference: 0, number: 0), now: at(milliseconds: 500))
        #expect(estimator.nextTimeout == at(milliseconds: 2500))
        estimator.handleTimeout(now: at(milliseconds: 2500))
        #expect(estimator.targetBitrate <= start / 2 + 1)
        #expect(estimator.nextTimeout == at(milliseconds: 3500))
        estimator.handleTimeout(now: at(milliseconds: 3500))
        #expect(estimator.targetBitrate <= start / 4 + 1)
        #expect(estimator.takeChangedEstimate() == estimator.targetBitrate)
        estimator.receive(feedback(26, 25, reference: 60, number: 1), now: at(milliseconds: 4000))
        #expect(estimator.nextTimeout == nil)  // nothing is in flight
    }

    @Test func reportBlocksCountLossBySequenceProgress() {
        var estimator = SendSideEstimator()
        for index in 1...20 {
            let block = ReportBlock(
                ssrc: SSRC(5), fractionLost: 128, extendedHighestSequence: UInt32(index * 300), jitter: 0)
            estimator.receive(block, roundTripTime: .milliseconds(40), now: at(milliseconds: index * 1000))
        }
        #expect(estimator.targetBitrate < 100_000)
    }
}
