import Foundation
import SoraLocking

/// A value that handlers change on any thread, and that a test waits for.
final class Watched<Value: Sendable>: Sendable {
    private struct State {
        var value: Value
        /// Those who wait: each is told of every change.
        var waiters: [UUID: AsyncStream<Void>.Continuation] = [:]
    }
    private let state: Locked<State>

    init(_ value: Value) { state = Locked(State(value: value)) }

    var value: Value { state.withLock { $0.value } }

    func change(_ body: (inout Value) -> Void) {
        let waiters = state.withLock { state in
            body(&state.value)
            return Array(state.waiters.values)
        }
        for waiter in waiters { waiter.yield() }
    }

    /// What `look` finds in the value, as it is or becomes; nil when it does not within the limit.
    func wait<T>(within limit: Duration, _ look: (inout Value) -> T?) async -> T? {
        let id = UUID()
        let (changes, waiter) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        state.withLock { $0.waiters[id] = waiter }
        defer { state.withLock { _ = $0.waiters.removeValue(forKey: id) } }
        // The bound of the wait: it ends it only when what is waited for has not come; changes end it at once.
        let bound = Task {
            try await Task.sleep(for: limit)
            waiter.finish()
        }
        defer { bound.cancel() }
        // It may be there already.
        waiter.yield()
        for await _ in changes {
            if let found = state.withLock({ look(&$0.value) }) { return found }
        }
        return nil
    }
}
