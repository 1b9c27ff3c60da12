import Foundation
internal import SoraLocking

/// Numbers the events of one source and hands each to every subscription.
///
/// Invariant: numbers start with 1 and have no gap, also while nobody listens. A number is taken under the lock, the
/// event is handed out outside of it; nothing waits for a consumer.
final class EventHub: Sendable {
    typealias Continuation = AsyncStream<SoraEvent>.Continuation

    /// Who gets the events. Both members are called outside of the lock and must return at once.
    struct Listener: Sendable {
        var receive: @Sendable (SoraEvent) -> Void
        var finish: @Sendable () -> Void
    }

    private struct State {
        var nextSequence: UInt64 = 1
        var nextListener = 0
        var listeners: [Int: Listener] = [:]
        var isFinished = false
    }
    private let state = Locked(State())

    init() {}
    deinit { finish() }

    /// Gives the event the next number and hands it to all who are subscribed now.
    func publish(_ event: SoraEvent) {
        let (sequence, listeners) = state.withLock { state -> (UInt64, [Listener]) in
            let sequence = state.nextSequence
            state.nextSequence &+= 1
            return (sequence, state.listeners.isEmpty ? [] : Array(state.listeners.values))
        }
        guard !listeners.isEmpty else { return }
        let numbered = event.numbered(sequence)
        for listener in listeners { listener.receive(numbered) }
    }

    /// A new subscription with a buffer of its own; already finished if the source has ended.
    func subscribe(bufferingPolicy: Continuation.BufferingPolicy) -> AsyncStream<SoraEvent> {
        let (stream, continuation) = AsyncStream<SoraEvent>.makeStream(bufferingPolicy: bufferingPolicy)
        subscribe(continuation) { $0 }
        return stream
    }

    /// Feeds a stream with what `transform` makes of the events from now on, and finishes it after them. What it makes
    /// nil of takes no place in the buffer.
    func subscribe<Element: Sendable>(
        _ continuation: AsyncStream<Element>.Continuation,
        _ transform: @escaping @Sendable (SoraEvent) -> Element?
    ) {
        let listener = Listener(
            receive: { event in if let element = transform(event) { continuation.yield(element) } },
            finish: { continuation.finish() })
        guard let id = listen(listener) else { return }
        continuation.onTermination = { [weak self] _ in self?.remove(id) }
    }

    /// - Returns: the number of the listener; nil if the source has ended, which the listener was then told.
    private func listen(_ listener: Listener) -> Int? {
        let id = state.withLock { state -> Int? in
            guard !state.isFinished else { return nil }
            let id = state.nextListener
            state.nextListener += 1
            state.listeners[id] = listener
            return id
        }
        if id == nil { listener.finish() }
        return id
    }

    /// Ends all subscriptions after what they have buffered. Further calls do nothing.
    func finish() {
        let listeners = state.withLock { state -> [Listener] in
            state.isFinished = true
            defer { state.listeners = [:] }
            return Array(state.listeners.values)
        }
        for listener in listeners { listener.finish() }
    }

    /// How many subscriptions are alive.
    var subscriberCount: Int { state.withLock { $0.listeners.count } }

    private func remove(_ id: Int) {
        let removed = state.withLock { $0.listeners.removeValue(forKey: id) }
        withExtendedLifetime(removed) {}
    }
}
