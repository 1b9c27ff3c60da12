internal import SoraLocking

/// One connection attempt, to watch or to cancel.
public final class ConnectionTask {
    /// Where an attempt stands.
    public enum State: Sendable {
        /// The attempt goes on.
        case connecting
        /// Over in any way but ``ConnectionTask/cancel()``.
        case completed
        /// Ended by ``ConnectionTask/cancel()``.
        case canceled
    }

    private let progress: AttemptProgress
    private let onCancel: @Sendable () -> Void

    init(progress: AttemptProgress, onCancel: @escaping @Sendable () -> Void) {
        self.progress = progress
        self.onCancel = onCancel
    }

    /// Where the attempt stands. Leaves ``State/connecting`` once.
    public var state: State { progress.state }

    /// Ends an attempt that is not over yet; does nothing otherwise. The attempt fails with
    /// ``SoraError/connectionCancelled``.
    public func cancel() {
        if progress.settle(.canceled) { onCancel() }
    }
}

/// The state of an attempt, shared by the task and the connection.
///
/// Invariant: leaves `connecting` once; of success, failure and cancellation exactly one wins.
final class AttemptProgress: Sendable {
    private let value = Locked(ConnectionTask.State.connecting)

    var state: ConnectionTask.State { value.read() }

    /// True if this call decided the attempt.
    @discardableResult
    func settle(_ state: ConnectionTask.State) -> Bool {
        value.withLock { value in
            guard case .connecting = value else { return false }
            value = state
            return true
        }
    }
}
