internal import SoraNetwork
internal import SoraWire

/// Tells the connections of one event loop when addresses of the machine come and go: one watch for all of them.
/// Confined to its loop.
final class InterfaceWatch {
    private let loop: EventLoop
    private var monitor: NetworkChangeMonitor?
    private var listeners: [Int: ([NetworkInterface]) -> Void] = [:]
    private var nextListener = 0

    init(loop: EventLoop) { self.loop = loop }

    /// Calls `listener` with the addresses after each change, until ``remove(_:)``.
    func add(_ listener: @escaping ([NetworkInterface]) -> Void) -> Int {
        loop.assertOnLoop()
        nextListener += 1
        listeners[nextListener] = listener
        if monitor == nil {
            monitor = try? NetworkChangeMonitor(on: loop, includesLoopback: true)
            monitor?.onChange = { [weak self] interfaces in
                guard let self else { return }
                for listener in listeners.values { listener(interfaces) }
            }
        }
        return nextListener
    }

    func remove(_ id: Int) {
        loop.assertOnLoop()
        listeners[id] = nil
        guard listeners.isEmpty else { return }
        monitor?.close()
        monitor = nil
    }
}
