import SoraLocking

/// Keeps the newest events and hands them to whoever watches.
final class EventRecorder: Sendable {
    private struct State {
        var events: [ServerEvent] = []
        var watchers: [Int: AsyncStream<ServerEvent>.Continuation] = [:]
        var nextWatcher = 0
        var isFinished = false
    }
    private let state = Locked(State())
    private let handler: (@Sendable (ServerEvent) -> Void)?
    private static let limit = 10_000

    init(handler: (@Sendable (ServerEvent) -> Void)?) { self.handler = handler }

    var events: [ServerEvent] { state.withLock { $0.events } }

    func record(_ event: ServerEvent) {
        let watchers = state.withLock { state in
            if state.events.count >= Self.limit { state.events.removeFirst(Self.limit / 10) }
            state.events.append(event)
            return Array(state.watchers.values)
        }
        for watcher in watchers { watcher.yield(event) }
        handler?(event)
    }

    func subscribe() -> AsyncStream<ServerEvent> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: ServerEvent.self, bufferingPolicy: .bufferingNewest(Self.limit))
        let number: Int? = state.withLock { state in
            guard !state.isFinished else { return nil }
            let number = state.nextWatcher
            state.nextWatcher += 1
            state.watchers[number] = continuation
            return number
        }
        guard let number else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in
            self?.state.withLock { _ = $0.watchers.removeValue(forKey: number) }
        }
        return stream
    }

    /// The `count`-th event that fits, past ones included; nil after `limit`.
    func event(
        count: Int, within limit: Duration, where fits: @escaping @Sendable (ServerEvent) -> Bool
    ) async -> ServerEvent? {
        // Watch first, then look: what happens in between is seen by both, so the watch only says when to look.
        let changes = subscribe()
        @Sendable func look() -> ServerEvent? {
            let fitting = events.lazy.filter(fits)
            return fitting.dropFirst(max(count, 1) - 1).first
        }
        if let found = look() { return found }
        return await withTaskGroup(of: ServerEvent?.self) { group in
            group.addTask {
                for await event in changes where fits(event) {
                    if let found = look() { return found }
                }
                return nil
            }
            group.addTask {
                try? await Task.sleep(for: limit)
                return nil
            }
            let first = await group.next() ?? nil
            group.cancelAll()
            return first
        }
    }

    func finish() {
        let watchers = state.withLock { state in
            state.isFinished = true
            let all = Array(state.watchers.values)
            state.watchers.removeAll()
            return all
        }
        for watcher in watchers { watcher.finish() }
    }
}
