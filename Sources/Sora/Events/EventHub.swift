import Foundation

/// Numbers the events of one source and hands each to every subscription.
///
/// Invariant: numbers start with 1 and have no gap, also while nobody listens. A number is taken under the lock, the
/// event is handed out outside of it; nothing waits for a consumer.
final class EventHub: Sendable {
    typealias Continuation = AsyncStream<SoraEvent>.Continuation

    private struct State {
        var nextSequence: UInt64 = 1
        var nextSubscriber = 0
        var subscribers: [Int: Continuation] = [:]
        var isFinished = false
    }
    private let state = Locked(State())

    init() {}
    deinit { finish() }

    /// Gives the event the next number and hands it to all who are subscribed now.
    func publish(_ event: SoraEvent) {
        let (sequence, listeners) = state.withLock { state -> (UInt64, [Continuation]) in
            let sequence = state.nextSequence
            state.nextSequence &+= 1
            return (sequence, state.subscribers.isEmpty ? [] : Array(state.subscribers.values))
        }
        guard !listeners.isEmpty else { return }
        let numbered = event.numbered(sequence)
        for listener in listeners { listener.yield(numbered) }
    }

    /// A new subscription with a buffer of its own; already finished if the source has ended.
    func subscribe(bufferingPolicy: Continuation.BufferingPolicy) -> AsyncStream<SoraEvent> {
        let (stream, continuation) = AsyncStream<SoraEvent>.makeStream(bufferingPolicy: bufferingPolicy)
        let id = state.withLock { state -> Int? in
            guard !state.isFinished else { return nil }
            let id = state.nextSubscriber
            state.nextSubscriber += 1
            state.subscribers[id] = continuation
            return id
        }
        if let id {
            continuation.onTermination = { [weak self] _ in self?.remove(id) }
        } else {
            continuation.finish()
        }
        return stream
    }

    /// Ends all subscriptions after what they have buffered. Further calls do nothing.
    func finish() {
        let listeners = state.withLock { state -> [Continuation] in
            state.isFinished = true
            defer { state.subscribers = [:] }
            return Array(state.subscribers.values)
        }
        for listener in listeners { listener.finish() }
    }

    /// How many subscriptions are alive.
    var subscriberCount: Int { state.withLock { $0.subscribers.count } }

    private func remove(_ id: Int) {
        let removed = state.withLock { $0.subscribers.removeValue(forKey: id) }
        withExtendedLifetime(removed) {}
    }
}
