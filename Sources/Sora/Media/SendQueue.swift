import Foundation
internal import SoraLocking

/// Takes the application's frames off its thread: at most four wait, one is filtered at a time, in order.
final class SendQueue: Sendable {
    static let maximumWaitingFrames = 4

    private struct State {
        var frames: [VideoFrame] = []
        var isDraining = false
        var isTerminated = false
    }
    private let state = Locked(State())
    private let queue = DispatchQueue(label: "sora.stream.send")
    private let process: @Sendable (Transfer<VideoFrame>) -> Void

    /// - Parameter process: called on the queue's own thread for one frame after the other.
    init(process: @escaping @Sendable (Transfer<VideoFrame>) -> Void) { self.process = process }

    /// Queues a frame; drops it when four wait already.
    func put(_ frame: VideoFrame) {
        let starts = state.withLockUnchecked { state in
            guard !state.isTerminated, state.frames.count < Self.maximumWaitingFrames else { return false }
            state.frames.append(frame)
            defer { state.isDraining = true }
            return !state.isDraining
        }
        if starts { queue.async { self.drain() } }
    }

    /// Drops what waits and everything that comes.
    func terminate() {
        let dropped = state.withLock { state in
            state.isTerminated = true
            defer { state.frames = [] }
            return state.frames
        }
        withExtendedLifetime(dropped) {}
    }

    private func drain() {
        while true {
            let next = state.withLock { state -> Transfer<VideoFrame>? in
                guard !state.frames.isEmpty else {
                    state.isDraining = false
                    return nil
                }
                return Transfer(state.frames.removeFirst())
            }
            guard let next else { return }
            process(next)
        }
    }
}
