import Foundation
import TestSupport
import Testing

@testable import Sora

@Suite(.serialized, .leavesNoObjects) struct EventHubTests {
    private func numbers(_ stream: AsyncStream<SoraEvent>) async -> [UInt64] {
        var numbers: [UInt64] = []
        for await event in stream { numbers.append(event.sequence) }
        return numbers
    }

    @Test func numbersCountWhileNobodyListens() async {
        let hub = EventHub()
        for _ in 0..<5 { hub.publish(SoraEvent(.connected)) }
        let stream = hub.subscribe(bufferingPolicy: .unbounded)
        for _ in 0..<3 { hub.publish(SoraEvent(.connected)) }
        hub.finish()
        #expect(await numbers(stream) == [6, 7, 8])
    }

    @Test func theNewestStayInABoundedBuffer() async {
        let hub = EventHub()
        let stream = hub.subscribe(bufferingPolicy: .bufferingNewest(2))
        let oldest = hub.subscribe(bufferingPolicy: .bufferingOldest(2))
        for _ in 0..<10 { hub.publish(SoraEvent(.connected)) }
        hub.finish()
        #expect(await numbers(stream) == [9, 10])
        #expect(await numbers(oldest) == [1, 2])
    }

    @Test func theDefaultKeeps256() async {
        let stage = Stage()
        let stream = stage.sora.subscribeEvents()
        for _ in 0..<300 { stage.sora.events.publish(SoraEvent(.connected)) }
        stage.sora.events.finish()
        let kept = await numbers(stream)
        #expect(kept.count == 256 && kept.first == 45 && kept.last == 300)
    }

    @Test func subscribersDoNotDisturbEachOther() async {
        let hub = EventHub()
        let cancelled = hub.subscribe(bufferingPolicy: .unbounded)
        let kept = hub.subscribe(bufferingPolicy: .unbounded)
        let journal = Journal()
        let task = Task {
            for await event in cancelled { journal.add("\(event.sequence)") }
            journal.add("ended")
        }
        hub.publish(SoraEvent(.connected))
        #expect(await journal.wait(for: "1"))
        task.cancel()
        #expect(await journal.wait(for: "ended"))
        hub.publish(SoraEvent(.disconnected))
        hub.finish()
        #expect(await numbers(kept) == [1, 2])
    }

    @Test func lettingGoOfTheStreamUnsubscribes() {
        let hub = EventHub()
        var stream: AsyncStream<SoraEvent>? = hub.subscribe(bufferingPolicy: .unbounded)
        #expect(hub.subscriberCount == 1)
        withExtendedLifetime(stream) {}
        stream = nil
        #expect(hub.subscriberCount == 0)
    }

    @Test func finishedHubsGiveFinishedStreams() async {
        let hub = EventHub()
        hub.finish()
        hub.finish()
        #expect(await numbers(hub.subscribe(bufferingPolicy: .unbounded)) == [])
    }

    @Test func theReleaseOfTheSourceEndsItsStreams() async {
        var hub: EventHub? = EventHub()
        let stream = hub!.subscribe(bufferingPolicy: .unbounded)
        hub?.publish(SoraEvent(.connected))
        hub = nil
        #expect(await numbers(stream) == [1])
    }

    @Test func concurrentPublishersLeaveNoGap() async {
        let hub = EventHub()
        let stream = hub.subscribe(bufferingPolicy: .unbounded)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask { for _ in 0..<250 { hub.publish(SoraEvent(.dataChannelMessage)) } }
            }
        }
        hub.finish()
        #expect(await numbers(stream).sorted() == (1...2000).map(UInt64.init))
    }

    @Test func kindsCarryTheirNames() {
        #expect(SoraEventKind(rawValue: "unknown").rawValue == "unknown")
        #expect(SoraEventKind.dataChannelAvailable == SoraEventKind(rawValue: "dataChannelAvailable"))
    }
}
