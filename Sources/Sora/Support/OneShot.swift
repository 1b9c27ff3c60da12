import Foundation
internal import SoraLocking

/// A continuation that several enders compete for: the first takes it, all others get nothing.
///
/// Taken under the lock, resumed outside of it. An outcome that comes before the continuation was installed is kept
/// for it.
final class OneShot<Success: Sendable>: Sendable {
    private enum State {
        case empty
        case waiting(CheckedContinuation<Success, any Error>)
        case settled(Result<Success, any Error>)
        case done
    }
    private let state = Locked(State.empty)

    /// Waits for the first outcome.
    nonisolated(nonsending) func value() async throws -> Success {
        try await withCheckedThrowingContinuation { continuation in
            let early: Result<Success, any Error>? = state.withLock { state in
                if case .settled(let result) = state {
                    state = .done
                    return result
                }
                state = .waiting(continuation)
                return nil
            }
            if let early { continuation.resume(with: early) }
        }
    }

    /// Ends the wait. Only the first call has an effect; it returns true.
    @discardableResult
    func settle(_ result: Result<Success, any Error>) -> Bool {
        var taken: CheckedContinuation<Success, any Error>?
        let won = state.withLock { state -> Bool in
            switch state {
            case .empty:
                state = .settled(result)
                return true
            case .waiting(let continuation):
                taken = continuation
                state = .done
                return true
            case .settled, .done:
                return false
            }
        }
        taken?.resume(with: result)
        return won
    }
}
