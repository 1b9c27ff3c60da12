import Foundation
import TestSupport
import Testing

@testable import Sora

@Suite(.serialized, .leavesNoObjects) struct DeliveryQueueTests {
    @Test func runsInOrder() async {
        let queue = DeliveryQueue(label: "test")
        let journal = Journal()
        for number in 0..<1_000 { queue.enqueue { journal.add("\(number)") } }
        #expect(await journal.wait { $0.count == 1_000 })
        #expect(journal.entries == (0..<1_000).map(String.init))
        #expect(await journal.wait { _ in queue.pendingCount == 0 } || queue.pendingCount == 0)
    }

    @Test func completionFollowsItsJobDirectly() async {
        let queue = DeliveryQueue(label: "test")
        let journal = Journal()
        queue.enqueue({ journal.add("job") }, completion: { journal.add("completion") })
        queue.enqueue { journal.add("next") }
        #expect(await journal.wait(for: "next"))
        #expect(journal.entries == ["job", "completion", "next"])
    }

    @Test func awaitsWithoutAThread() async {
        let queue = DeliveryQueue(label: "test")
        let journal = Journal()
        await queue.run { journal.add("\(queue.isCurrent)") }
        #expect(journal.entries == ["true"])
        #expect(!queue.isCurrent)
    }

    @Test func aBlockedHandlerHoldsBackOnlyItsOwnQueue() async {
        // More blocked queues than cores, so that a shared pool of threads would starve.
        let blocked = (0..<24).map { DeliveryQueue(label: "blocked \($0)") }
        let gate = DispatchSemaphore(value: 0)
        let journal = Journal()
        for queue in blocked {
            queue.enqueue {
                journal.add("in")
                gate.wait()
            }
            queue.enqueue { journal.add("late") }
        }
        #expect(await journal.wait { entries in entries.filter { $0 == "in" }.count == 24 })
        let free = DeliveryQueue(label: "free")
        await free.run { journal.add("free") }
        #expect(!journal.entries.contains("late"))
        for _ in blocked { gate.signal() }
        #expect(await journal.wait { entries in entries.filter { $0 == "late" }.count == 24 })
    }

    @Test func jobsMayEnqueueFurtherJobs() async {
        let queue = DeliveryQueue(label: "test")
        let journal = Journal()
        queue.enqueue {
            journal.add("outer")
            queue.enqueue { journal.add("inner") }
        }
        #expect(await journal.wait(for: "inner"))
        #expect(journal.entries == ["outer", "inner"])
    }

    @Test func jobsAreLetGoOfOneByOne() async {
        final class Canary: Sendable {
            let journal: Journal
            init(_ journal: Journal) { self.journal = journal }
            deinit { journal.add("released") }
        }
        let queue = DeliveryQueue(label: "test")
        let journal = Journal()
        let gate = DispatchSemaphore(value: 0)
        queue.enqueue { gate.wait() }
        do {
            let canary = Canary(journal)
            queue.enqueue { withExtendedLifetime(canary) {} }
        }
        queue.enqueue { journal.add("next") }
        gate.signal()
        #expect(await journal.wait(for: "next"))
        #expect(journal.entries == ["released", "next"])
    }
}

@Suite(.serialized, .leavesNoObjects) struct OneShotTests {
    // EVT1: three enders in all orders, one outcome.
    @Test func theFirstOutcomeWins() async throws {
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let outcome = OneShot<Int>()
            var winners = 0
            for number in order where outcome.settle(.success(number)) { winners += 1 }
            #expect(winners == 1)
            #expect(try await outcome.value() == order[0])
        }
    }

    @Test func manyEndersResumeOnce() async throws {
        for _ in 0..<200 {
            let outcome = OneShot<Int>()
            async let value = outcome.value()
            await withTaskGroup(of: Bool.self) { group in
                for number in 0..<4 { group.addTask { outcome.settle(.success(number)) } }
                var wins = 0
                for await won in group where won { wins += 1 }
                #expect(wins == 1)
            }
            _ = try await value
        }
    }
}
