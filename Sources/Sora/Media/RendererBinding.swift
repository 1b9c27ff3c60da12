import Foundation
internal import SoraLocking

/// One assignment of a renderer to a stream: everything for the renderer goes through here, onto the main queue.
///
/// Invariant: at most four frames wait for the main queue; after ``deactivate()`` no frame, size or switch that
/// was queued reaches the renderer.
final class RendererBinding: Sendable {
    static let maximumWaitingFrames = 4

    private struct State {
        weak var renderer: (any VideoRenderer)?
        var isActive = true
        var waitingFrames = 0
        var size: CGSize?
    }
    private let state: Locked<State>

    init(_ renderer: any VideoRenderer) { state = Locked(unchecked: State(renderer: renderer)) }

    /// The renderer if it still lives.
    var renderer: (any VideoRenderer)? { state.withLock { $0.renderer } }

    func deactivate() { state.withLock { $0.isActive = false } }

    /// Queues a frame, preceded by its size when that changed. Frames without pixels are dropped.
    func render(_ frame: VideoFrame) {
        let size = frame.displaySize
        guard size.width > 0, size.height > 0 else { return }
        let target = state.withLock { state -> (any VideoRenderer)? in
            guard state.isActive, state.waitingFrames < Self.maximumWaitingFrames, let renderer = state.renderer else {
                return nil
            }
            state.waitingFrames += 1
            return renderer
        }
        guard let target else { return }
        let payload = Transfer((target, frame))
        MainQueue.shared.async { [self] in
            let (renderer, frame) = payload.value
            let (isActive, sizeChanged) = state.withLock { state -> (Bool, Bool) in
                state.waitingFrames -= 1
                guard state.isActive else { return (false, false) }
                defer { state.size = size }
                return (true, state.size != size)
            }
            guard isActive else { return }
            if sizeChanged { renderer.onChange(size: size) }
            renderer.render(videoFrame: frame)
        }
    }

    /// Queues a call that is void once the binding is inactive.
    func sendWhileActive(_ call: @escaping (any VideoRenderer) -> Void) {
        guard let renderer else { return }
        let payload = Transfer((renderer, call))
        MainQueue.shared.async { [self] in
            guard state.withLock({ $0.isActive }) else { return }
            payload.value.1(payload.value.0)
        }
    }

    /// Queues a call that is made in any case.
    func send(_ call: @escaping (any VideoRenderer) -> Void) {
        guard let renderer else { return }
        let payload = Transfer((renderer, call))
        MainQueue.shared.async { payload.value.1(payload.value.0) }
    }
}
