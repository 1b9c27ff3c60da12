import SoraWire
import Testing

@testable import SoraEmulator

@Suite struct LinkTests {
    static func arrivals(
        _ conditions: LinkConditions, count: Int = 10_000, seed: UInt64 = 1, link: UInt64 = 0,
        size: (Int) -> Int = { _ in 100 }
    )
        -> [[Instant]]
    {
        var link = LinkScheduler(conditions, seed: seed, link: link)
        return (0..<count).map { link.arrivals(size: size($0), now: .zero + .milliseconds(10) * $0) }
    }

    @Test func aPerfectLinkDeliversAtOnceAndInOrder() {
        var link = EmulatedLink<[UInt8]>(seed: 1)
        for value in 0..<10 as Range<UInt8> { link.send([value], now: .zero) }
        #expect(link.nextTimeout == .zero)
        var received: [UInt8] = []
        while let packet = link.receive(now: .zero) { received += packet }
        #expect(received == Array(0..<10))
        #expect(link.nextTimeout == nil)
    }

    @Test func delayIsExact() {
        var link = EmulatedLink<[UInt8]>(LinkConditions(delay: .milliseconds(30)), seed: 1)
        link.send([1], now: .zero + .milliseconds(5))
        #expect(link.receive(now: .zero + .nanoseconds(34_999_999)) == nil)
        #expect(link.nextTimeout == .zero + .milliseconds(35))
        #expect(link.receive(now: .zero + .milliseconds(35)) == [1])
    }

    @Test func lossIsNearItsShare() {
        for loss in [0.01, 0.1, 0.5] {
            let lost = Self.arrivals(LinkConditions(loss: loss)).count { $0.isEmpty }
            #expect(abs(Double(lost) / 10_000 - loss) < 0.02)
        }
        #expect(Self.arrivals(LinkConditions(loss: 1)).count { $0.isEmpty } == 10_000)
        #expect(Self.arrivals(LinkConditions(loss: 0)).count { $0.count == 1 } == 10_000)
    }

    @Test func burstsHaveTheirMeanLengthAndKeepTheShare() {
        let fates = Self.arrivals(LinkConditions(loss: 0.1, meanLossBurst: 5), count: 100_000).map(\.isEmpty)
        let lost = fates.count { $0 }
        var bursts = 0
        for (before, here) in zip([false] + fates, fates) where here && !before { bursts += 1 }
        #expect(abs(Double(lost) / 100_000 - 0.1) < 0.02)
        #expect(abs(Double(lost) / Double(bursts) - 5) < 0.7)
    }

    @Test func jitterSpreadsArrivalsAndKeepsOrder() {
        let times = Self.arrivals(LinkConditions(delay: .milliseconds(5), jitter: .milliseconds(40))).compactMap(
            \.first)
        #expect(zip(times, times.dropFirst()).allSatisfy { $0 <= $1 })
        let delays = times.enumerated().map { (index: Int, time: Instant) -> Duration in
            time - (Instant.zero + .milliseconds(10) * index)
        }
        #expect(delays.allSatisfy { $0 >= .milliseconds(5) && $0 <= .milliseconds(45) })
        #expect(Set(delays).count > 1_000)
    }

    @Test func reorderingAndDuplicationHappenAtTheirShares() {
        let fates = Self.arrivals(LinkConditions(reordering: 0.1, reorderingDelay: .milliseconds(15), duplication: 0.2))
        let times = fates.compactMap(\.first)
        let overtaken = zip(times, times.dropFirst()).count { $0 > $1 }
        #expect((700...1_200).contains(overtaken))
        #expect((1_700...2_300).contains(fates.count { $0.count == 2 }))
    }

    @Test func theRateLimitSpacesPacketsAndTheQueueOverflows() {
        // 972 bytes with 28 of header are 8,000 bits: 8 ms at 1 Mbit/s.
        let conditions = LinkConditions(delay: .milliseconds(1), bitsPerSecond: 1_000_000, queueBytes: 10_000)
        var link = LinkScheduler(conditions, seed: 1)
        let fates = (0..<100).map { _ in link.arrivals(size: 972, now: .zero) }
        let times = fates.compactMap(\.first)
        #expect(times.first == .zero + .milliseconds(9))
        #expect(zip(times, times.dropFirst()).allSatisfy { $1 - $0 == .milliseconds(8) })
        #expect((9...12).contains(times.count))
        #expect(link.counts.overflowed == 100 - times.count)
        // Once drained, it takes packets again.
        #expect(link.arrivals(size: 972, now: .zero + .seconds(1)) == [.zero + .milliseconds(1_009)])
    }

    @Test func fatesDependOnSeedAndLinkAndNotOnSizes() {
        let conditions = LinkConditions(
            delay: .milliseconds(1), jitter: .milliseconds(20), loss: 0.2, reordering: 0.1, duplication: 0.1)
        let reference = Self.arrivals(conditions, count: 500)
        #expect(reference == Self.arrivals(conditions, count: 500))
        #expect(reference == Self.arrivals(conditions, count: 500, size: { $0 * 7 % 1_200 }))
        #expect(reference != Self.arrivals(conditions, count: 500, seed: 2))
        #expect(reference != Self.arrivals(conditions, count: 500, link: 1))
    }

    @Test func conditionsMayChangeOnTheWay() {
        var link = EmulatedLink<[UInt8]>(seed: 1)
        link.conditions.loss = 1
        link.send([1], now: .zero)
        link.conditions.loss = 0
        link.send([2], now: .zero)
        #expect(link.inFlight == 1)
        #expect(link.receive(now: .zero) == [2])
        #expect(link.counts.lost == 1)
    }

    @Test func packetsLongerThanTheMaximumAreDropped() {
        let fates = Self.arrivals(LinkConditions(maximumPayload: 1_200), count: 2, size: { 1_200 + $0 })
        #expect(fates.map(\.count) == [1, 0])
    }
}
