import SoraLocking
import Testing

@Suite struct LockedTests {
    struct Refused: Error, Equatable { var number: Int }

    final class Counter: Sendable {
        let count = Locked(0)
    }

    @Test func countsExactlyUnderContention() async {
        let counter = Counter()
        await withTaskGroup { group in
            for _ in 0..<8 {
                group.addTask { for _ in 0..<5_000 { counter.count.withLock { $0 += 1 } } }
            }
        }
        #expect(counter.count.read() == 40_000)
    }

    @Test func throwsTheBodysErrorAndUnlocks() {
        let value = Locked(3)
        #expect(throws: Refused(number: 3)) {
            try value.withLock { number throws(Refused) in throw Refused(number: number) }
        }
        #expect(value.withLock { $0 + 1 } == 4)
    }

    /// Destroys itself by asking the lock that it stood behind.
    final class Asking: Sendable {
        let ask: @Sendable () -> Void
        init(_ ask: @escaping @Sendable () -> Void) { self.ask = ask }
        deinit { ask() }
    }

    final class Slot: Sendable {
        let content = Locked<Asking?>(nil)
        let answers = Locked<[Bool]>([])
    }

    @Test func destroysAReplacedValueAfterTheLockWasReleased() {
        let slot = Slot()
        slot.content.write(Asking { slot.answers.withLock { $0.append(slot.content.read() == nil) } })
        slot.content.write(nil)
        #expect(slot.answers.read() == [true])
    }
}
