import Foundation
internal import SoraLocking

/// The one serial way from the SDK to the application for one connection: handlers and events of the connection
/// run here in the order in which they were put in.
///
/// A queue that is idle has no thread. A queue that runs uses one thread of Dispatch's overcommitting pool, so a
/// handler that blocks holds back the later deliveries of its own connection and nothing else: not the event loop,
/// not the cooperative pool, not the queue of another connection.
///
/// Where the API says that a handler runs before the SDK acts, the action is the job's `completion`: it runs on
/// the delivery thread directly after the job, and usually hops back to the event loop.
final class DeliveryQueue: Sendable {
    private struct Job {
        var body: () -> Void
        var completion: (@Sendable () -> Void)?
    }
    private struct State {
        var jobs: [Job] = []
        var isDraining = false
        /// Jobs taken out by the drain that runs now but not yet finished.
        var inProgress = 0
    }

    private let state = Locked(State())
    /// Runs a drain on a thread of its own, some time.
    private let schedule: @Sendable (@escaping @Sendable () -> Void) -> Void
    /// Identifies the queue to ``isCurrent``; Dispatch's own key is shared by all queues.
    private static let currentKey = DispatchSpecificKey<ObjectIdentifier>()

    init(label: String) {
        let queue = DispatchQueue(label: label)
        schedule = { drain in queue.async(execute: drain) }
        queue.setSpecific(key: Self.currentKey, value: ObjectIdentifier(self))
    }

    /// A queue whose drains run when and where the caller says, one at a time.
    init(schedule: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void) { self.schedule = schedule }

    /// True on the thread that runs a job of this queue right now.
    var isCurrent: Bool { DispatchQueue.getSpecific(key: Self.currentKey) == ObjectIdentifier(self) }

    /// Deliveries that wait or run. The driver slows the source of bulk deliveries by it.
    var pendingCount: Int { state.withLock { $0.jobs.count + $0.inProgress } }

    /// Puts a delivery at the end.
    ///
    /// - Parameters:
    ///   - completion: runs right after `body`, also when `body` was the last reference to its owner.
    func enqueue(_ body: @escaping () -> Void, completion: (@Sendable () -> Void)? = nil) {
        let starts = state.withLockUnchecked { state in
            state.jobs.append(Job(body: body, completion: completion))
            defer { state.isDraining = true }
            return !state.isDraining
        }
        if starts { schedule { self.drain() } }
    }

    /// Puts a delivery at the end and waits, without holding a thread, until it has run.
    nonisolated(nonsending) func run(_ body: @escaping () -> Void) async {
        await withCheckedContinuation { continuation in
            enqueue(body) { continuation.resume() }
        }
    }

    private func drain() {
        while true {
            // Newest first, so that each job is let go of, with all it captured, as soon as it has run.
            var batch: [Job] = state.withLock { state in
                guard !state.jobs.isEmpty else {
                    state.isDraining = false
                    return []
                }
                let jobs = state.jobs
                state.jobs = []
                state.inProgress = jobs.count
                return jobs.reversed()
            }
            if batch.isEmpty { return }
            while let job = batch.popLast() {
                job.body()
                job.completion?()
                state.withLock { $0.inProgress -= 1 }
            }
        }
    }
}
