import Dispatch
import SoraLocking
import TestSupport
import Testing

@testable import Sora

/// The check of `.leavesNoObjects` itself: it sees what is alive, and that it goes.
@Suite(.serialized, .enabled(if: LiveObjects.isAlone, "counts the whole process's objects; run with --no-parallel"))
struct LiveObjectsTests {
    /// Runs a delivery that keeps its own queue, and gives back the way to break the circle.
    private func leak() -> () -> Void {
        final class Hold { var queue: DeliveryQueue? }
        let hold = Hold()
        // Its jobs are never run: they keep the queue that keeps them.
        let queue = DeliveryQueue { _ in }
        hold.queue = queue
        queue.enqueue { _ = hold.queue }
        return { hold.queue = nil }
    }

    @Test func aCircleOfReferencesIsSeenUntilItIsBroken() {
        LiveObjects.start()
        defer { LiveObjects.stop() }
        let breakCircle = leak()
        #expect(LiveObjects.made > 0)
        #expect(LiveObjects.leftovers(within: 0.05) == ["Sora.DeliveryQueue": 1])
        #expect(LiveObjects.leftovers(lasting: ["Sora.DeliveryQueue": 1], within: 0.05).isEmpty)
        breakCircle()
        #expect(LiveObjects.leftovers(within: 10).isEmpty)
        #expect(LiveObjects.counts.isEmpty)
    }

    @Test func aTestThatLeaksFails() async throws {
        let test = try #require(Test.current)
        let broken = Locked<(() -> Void)?>(unchecked: nil)
        try await withKnownIssue {
            try await LeavesNoObjects(patience: 0.05).provideScope(for: test, testCase: Test.Case.current) {
                broken.write(leak())
            }
        } matching: { issue in
            "\(issue)".contains("alive after the test: 1 × Sora.DeliveryQueue")
        }
        broken.exchange(nil)?()
    }

    @Test func whatEndsWithinTheBoundIsNoLeak() async throws {
        let test = try #require(Test.current)
        try await LeavesNoObjects().provideScope(for: test, testCase: Test.Case.current) {
            let breakCircle = Transfer(leak())
            // Runs when the test is over and the trait waits, or just before: both must do.
            DispatchQueue.global().async { breakCircle.value() }
        }
    }
}
