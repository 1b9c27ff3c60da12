import Foundation
import SoraLocking
import TestSupport

@testable import Sora

/// What happened, in order, from any thread, and a way to wait for it with a bound.
final class Journal: Sendable {
    private struct State {
        var entries: [String] = []
        var waiters: [Int: (predicate: @Sendable ([String]) -> Bool, continuation: CheckedContinuation<Bool, Never>)] =
            [:]
        var nextWaiter = 0
    }
    private let state = Locked(State())

    var entries: [String] { state.withLock { $0.entries } }

    func add(_ entry: String) {
        let ready = state.withLock { state -> [CheckedContinuation<Bool, Never>] in
            state.entries.append(entry)
            let done = state.waiters.filter { $0.value.predicate(state.entries) }
            for id in done.keys { state.waiters[id] = nil }
            return done.values.map(\.continuation)
        }
        for continuation in ready { continuation.resume(returning: true) }
    }

    /// True as soon as the predicate holds; false when it does not within the bound. The predicate is asked on the
    /// thread of whoever adds an entry.
    nonisolated(nonsending) func wait(seconds: Double = 10, until predicate: @escaping @Sendable ([String]) -> Bool)
        async -> Bool
    {
        await withCheckedContinuation { continuation in
            let id = state.withLockUnchecked { state -> Int? in
                if predicate(state.entries) { return nil }
                state.nextWaiter += 1
                state.waiters[state.nextWaiter] = (predicate, continuation)
                return state.nextWaiter
            }
            guard let id else { return continuation.resume(returning: true) }
            DispatchQueue.global().asyncAfter(deadline: .now() + seconds * RealTime.factor) { [self] in
                let late = state.withLock { $0.waiters.removeValue(forKey: id) }
                late?.continuation.resume(returning: false)
            }
        }
    }

    nonisolated(nonsending) func wait(for entry: String, seconds: Double = 10) async -> Bool {
        await wait(seconds: seconds) { $0.contains(entry) }
    }
}

/// Returns after everything that was put into the main queue before.
func mainQueueTurn() async {
    await withCheckedContinuation { continuation in DispatchQueue.main.async { continuation.resume() } }
}

private let mainQueueKey: DispatchSpecificKey<Bool> = {
    let key = DispatchSpecificKey<Bool>()
    DispatchQueue.main.setSpecific(key: key, value: true)
    return key
}()

/// True inside a job of the main queue, which need not be on the main thread.
func isOnMainQueue() -> Bool { DispatchQueue.getSpecific(key: mainQueueKey) == true }

/// Whether the condition comes true within the bound. For what no event announces, such as a release.
nonisolated(nonsending) func eventually(seconds: Double = 10, _ condition: () -> Bool) async -> Bool {
    let deadline = ContinuousClock.now + .milliseconds(Int(seconds * 1000 * RealTime.factor))
    while !condition() {
        if ContinuousClock.now > deadline { return condition() }
        await Task.yield()
    }
    return true
}
