import Glibc
import SoraICE
import SoraWire

/// Brings two ICE agents together over real sockets of 127.0.0.1, in one thread that waits with `poll`: just enough to
/// let them talk to a real TURN server.
final class LoopbackAgents {
    struct Host {
        var agent: ICEAgent
        var isLite: Bool
        var udp: Int32
        var streams: [ICEStreamID: Int32] = [:]
        var received: [[UInt8]] = []
    }
    var hosts: [Host] = []

    deinit {
        for host in hosts {
            close(host.udp)
            for stream in host.streams.values { close(stream) }
        }
    }

    static var now: Instant {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Instant(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    static func address(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }

    static func withAddress<T>(_ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> T) -> T {
        var address = Self.address(port)
        return withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
        }
    }

    func add(_ role: ICEAgent.Role, _ configure: (inout ICEConfiguration) -> Void) {
        var configuration = ICEConfiguration()
        configure(&configuration)
        let udp = socket(AF_INET, Int32(SOCK_DGRAM.rawValue), 0)
        _ = Self.withAddress(0) { bind(udp, $0, $1) }
        var bound = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        _ = withUnsafeMutablePointer(to: &bound) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(udp, $0, &length) }
        }
        let agent = ICEAgent(configuration: configuration, role: role, random: .system, now: Self.now)
        hosts.append(Host(agent: agent, isLite: configuration.mode == .lite, udp: udp))
        agent.addLocalSocket(
            SocketID(1), address: SocketAddress(.loopbackV4, port: UInt16(bigEndian: bound.sin_port)), now: Self.now)
    }

    func join() {
        for (one, other) in [(0, 1), (1, 0)] {
            hosts[one].agent.setRemote(
                credentials: hosts[other].agent.localCredentials, isLite: hosts[other].isLite,
                now: Self.now)
        }
    }

    func send(_ payload: [UInt8], from host: Int) {
        if let datagram = hosts[host].agent.datagram(for: payload) { transmit(datagram, host) }
        drain(host)
    }

    private func transmit(_ datagram: Datagram, _ host: Int) {
        _ = Self.withAddress(datagram.remote.port) {
            sendto(hosts[host].udp, datagram.payload, datagram.payload.count, 0, $0, $1)
        }
    }

    private func drain(_ host: Int) {
        while let output = hosts[host].agent.poll() {
            switch output {
            case .transmit(let datagram): transmit(datagram, host)
            case .localCandidate(let candidate): hosts[1 - host].agent.addRemoteCandidate(candidate, now: Self.now)
            case .openStream(let request):
                let stream = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
                let result = Self.withAddress(request.address.port) { connect(stream, $0, $1) }
                hosts[host].streams[request.id] = stream
                let event: ICEStreamEvent =
                    result == 0 ? .connected(local: SocketAddress(.loopbackV4, port: 1)) : .closed(reason: "refused")
                hosts[host].received += hosts[host].agent.handleStream(request.id, event, now: Self.now)
            case .writeStream(let id, let bytes):
                if let stream = hosts[host].streams[id] { _ = write(stream, bytes, bytes.count) }
            case .closeStream(let id):
                if let stream = hosts[host].streams.removeValue(forKey: id) { close(stream) }
            default: break
            }
        }
    }

    /// Runs until the condition holds, at most for the time given.
    func run(for limit: Duration, until condition: () -> Bool = { false }) {
        let end = Self.now + limit
        while !condition(), Self.now < end {
            for host in hosts.indices {
                drain(host)
                if let due = hosts[host].agent.nextTimeout, due <= Self.now {
                    hosts[host].agent.handleTimeout(now: Self.now)
                }
                drain(host)
            }
            var descriptors = hosts.flatMap { [$0.udp] + $0.streams.values }.map {
                pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
            }
            guard poll(&descriptors, nfds_t(descriptors.count), 5) > 0 else { continue }
            for host in hosts.indices { read(host) }
        }
    }

    private func read(_ host: Int) {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            var from = sockaddr_in()
            var length = socklen_t(MemoryLayout<sockaddr_in>.size)
            let count = withUnsafeMutablePointer(to: &from) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    recvfrom(hosts[host].udp, &buffer, buffer.count, Int32(MSG_DONTWAIT), $0, &length)
                }
            }
            guard count >= 0 else { break }
            let remote = SocketAddress(.loopbackV4, port: UInt16(bigEndian: from.sin_port))
            let datagram = Datagram(socket: SocketID(1), remote: remote, payload: Array(buffer[..<count]))
            if let data = hosts[host].agent.handle(datagram, now: Self.now) { hosts[host].received.append(data) }
        }
        for (id, stream) in hosts[host].streams {
            let count = recv(stream, &buffer, buffer.count, Int32(MSG_DONTWAIT))
            if count > 0 {
                hosts[host].received += hosts[host].agent.handleStream(
                    id, .data(Array(buffer[..<count])), now: Self.now)
            } else if count == 0 {
                hosts[host].streams[id] = nil
                close(stream)
                hosts[host].received += hosts[host].agent.handleStream(
                    id, .closed(reason: "closed by the server"), now: Self.now)
            }
        }
        drain(host)
    }
}
