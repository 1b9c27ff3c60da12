import Dispatch
import Foundation
import SoraLocking

/// Ctrl-C and SIGTERM: the first ends the command in order, the second at once.
enum Interruption {
    private struct State {
        var sources: [any DispatchSourceSignal] = []
        var waiters: [CheckedContinuation<Void, Never>] = []
        var handlers: [@Sendable () -> Void] = []
        var lastHandlers: [@Sendable () -> Void] = []
        var count = 0
    }
    private static let state = Locked(State())

    /// Starts listening. Called before the job begins; repeated calls do nothing.
    static func listen() {
        state.withLock { state in
            guard state.sources.isEmpty else { return }
            // A reader of our output that went away must not kill us.
            signal(SIGPIPE, SIG_IGN)
            for number in [SIGINT, SIGTERM] {
                signal(number, SIG_IGN)
                let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
                source.setEventHandler { received() }
                source.resume()
                state.sources.append(source)
            }
        }
    }

    static var isRequested: Bool { state.withLock { $0.count > 0 } }

    /// Calls `handler` at the first signal, at once if it has come already.
    static func onRequest(_ handler: @escaping @Sendable () -> Void) {
        listen()
        let isLate = state.withLock { state in
            if state.count > 0 { return true }
            state.handlers.append(handler)
            return false
        }
        if isLate { handler() }
    }

    /// Calls `handler` at the second signal, right before the command ends. It must not take long.
    static func onSecondRequest(_ handler: @escaping @Sendable () -> Void) {
        listen()
        state.withLock { $0.lastHandlers.append(handler) }
    }

    /// Returns at the first signal.
    static func wait() async {
        listen()
        await withCheckedContinuation { continuation in
            let isLate = state.withLock { state in
                if state.count > 0 { return true }
                state.waiters.append(continuation)
                return false
            }
            if isLate { continuation.resume() }
        }
    }

    private static func received() {
        let (count, waiters, handlers) = state.withLock { state in
            state.count += 1
            defer {
                state.waiters = []
                state.handlers = []
            }
            return (state.count, state.waiters, state.handlers)
        }
        if count > 1 {
            guard count == 2 else { return }
            for handler in state.withLock({ $0.lastHandlers }) { handler() }
            // Not exit(): the end of the command may be there at the same time.
            _exit(ExitStatus.interrupted.rawValue)
        }
        for handler in handlers { handler() }
        for waiter in waiters { waiter.resume() }
    }
}
