import Foundation
internal import SoraLocking

/// The main dispatch queue, watched: in a program that never runs it, renderers would wait for ever without a word.
final class MainQueue: Sendable {
    typealias Job = @Sendable () -> Void

    static let shared = MainQueue(
        run: { DispatchQueue.main.async(execute: $0) },
        // A first callback that waits this long is stuck.
        later: { DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(3), execute: $0) })

    private struct State {
        var hasRun = false
        var isWatched = false
        var hasWarned = false
    }
    private let state = Locked(State())
    private let run: @Sendable (@escaping Job) -> Void
    private let later: @Sendable (@escaping Job) -> Void

    /// - Parameters:
    ///   - run: puts a job into the queue.
    ///   - later: runs a job elsewhere, when the queue should have run long ago.
    init(run: @escaping @Sendable (@escaping Job) -> Void, later: @escaping @Sendable (@escaping Job) -> Void) {
        self.run = run
        self.later = later
    }

    func async(_ body: @escaping Job) {
        let startsWatch = state.withLock { state in
            guard !state.hasRun, !state.isWatched else { return false }
            state.isWatched = true
            return true
        }
        if startsWatch { later { self.check() } }
        run {
            self.state.withLock { $0.hasRun = true }
            body()
        }
    }

    private func check() {
        let warns = state.withLock { state in
            guard !state.hasRun, !state.hasWarned else { return false }
            state.hasWarned = true
            return true
        }
        guard warns else { return }
        // A type that is written with the default settings: those who wait need to read it.
        Logger.warn(
            type: .mediaStream,
            message: "VideoRenderer callbacks wait because nothing runs the main queue; call dispatchMain(), "
                + "RunLoop.main.run() or use an async @main")
    }
}
