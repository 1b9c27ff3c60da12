import CLinux
import SoraWire

/// One address of one network interface.
package struct NetworkInterface: Sendable, Hashable {
    package struct Flags: OptionSet, Sendable, Hashable {
        package let rawValue: UInt32
        package init(rawValue: UInt32) { self.rawValue = rawValue }
        package static let up = Flags(rawValue: UInt32(CLINUX_INTERFACE_UP))
        /// Has a carrier.
        package static let running = Flags(rawValue: UInt32(CLINUX_INTERFACE_RUNNING))
        package static let loopback = Flags(rawValue: UInt32(CLINUX_INTERFACE_LOOPBACK))
        package static let pointToPoint = Flags(rawValue: UInt32(CLINUX_INTERFACE_POINT_TO_POINT))
        package static let multicast = Flags(rawValue: UInt32(CLINUX_INTERFACE_MULTICAST))
    }

    /// `eth0` and the like.
    package var name: String
    package var index: UInt32
    package var address: IPAddress
    package var prefixLength: Int
    package var flags: Flags
}

package enum NetworkInterfaces {
    /// The addresses of interfaces that are up, in the kernel's order. Empty if they cannot be read.
    /// - Parameter includesLoopback: Also 127.0.0.1 and ::1.
    package static func current(includesLoopback: Bool = false) -> [NetworkInterface] {
        var capacity: Int32 = 64
        while true {
            var found = [clinux_interface](repeating: clinux_interface(), count: Int(capacity))
            let count = clinux_interfaces(&found, capacity)
            guard count > 0 else { return [] }
            if count > capacity {
                capacity = count + 16
                continue
            }
            return found[..<Int(count)].map(NetworkInterface.init).filter {
                $0.flags.contains(.up) && (includesLoopback || !$0.flags.contains(.loopback))
            }
        }
    }
}

extension NetworkInterface {
    init(_ system: clinux_interface) {
        let name = withUnsafeBytes(of: system.name) { Array($0.prefix { $0 != 0 }) }
        self.init(
            name: String(decoding: name, as: UTF8.self), index: system.index, address: system.address.socketAddress.ip,
            prefixLength: Int(system.prefix_length), flags: Flags(rawValue: system.flags))
    }
}

/// Tells when the machine's addresses change: a cable pulled, another Wi-Fi, a VPN. Confined to its loop.
///
/// The kernel reports changes in bursts; they are gathered for 100 ms, and a burst that leaves the
/// addresses as they were is not told.
package final class NetworkChangeMonitor {
    package let loop: EventLoop
    /// Called on the loop with the new addresses.
    package var onChange: (([NetworkInterface]) -> Void)?
    /// As last seen.
    package private(set) var interfaces: [NetworkInterface]
    private let includesLoopback: Bool
    private var descriptor: Int32
    private var timer: LoopTimer?

    package init(on loop: EventLoop, includesLoopback: Bool = false) throws(NetworkError) {
        loop.assertOnLoop()
        self.loop = loop
        self.includesLoopback = includesLoopback
        descriptor = try system("netlink", clinux_netlink_open())
        // Behind the subscription, so that nothing between the two is missed.
        interfaces = NetworkInterfaces.current(includesLoopback: includesLoopback)
        do throws(NetworkError) {
            try loop.register(descriptor, self, events: .readable)
        } catch {
            _ = clinux_close(descriptor)
            descriptor = -1
            throw error
        }
        timer = LoopTimer(on: loop) { [weak self] in self?.compare() }
    }

    package func close() {
        loop.assertOnLoop()
        guard descriptor >= 0 else { return }
        loop.unregister(descriptor)
        _ = clinux_close(descriptor)
        descriptor = -1
        timer?.cancel()
        timer = nil
        onChange = nil
    }

    private func compare() {
        let now = NetworkInterfaces.current(includesLoopback: includesLoopback)
        guard Set(now) != Set(interfaces) else { return }
        interfaces = now
        onChange?(now)
    }
}

extension NetworkChangeMonitor: LoopSource {
    func handle(_ events: LoopEvents) {
        guard clinux_netlink_drain(descriptor) != 0, timer?.deadline == nil else { return }
        timer?.schedule(at: loop.now + .milliseconds(100))
    }

    func loopStops() { close() }
}
