import SoraLocking

@testable import Sora

/// Where what the SDK has to tell waits until a test lets it go.
final class DeliveryGate: Sendable {
    private let drains = Locked<[@Sendable () -> Void]>([])

    func queue() -> DeliveryQueue { DeliveryQueue { [drains] drain in drains.withLock { $0.append(drain) } } }

    func open() {
        while true {
            let all = drains.exchange([])
            if all.isEmpty { return }
            for drain in all { drain() }
        }
    }

    /// Forgets what waits.
    func clear() { drains.write([]) }
}
