import CLinux
import Glibc
import SoraWire

/// Accepts TCP connections. Confined to its loop.
package final class TCPListener {
    package let loop: EventLoop
    /// With the port that the kernel chose if none was given.
    package let localAddress: SocketAddress
    /// Called on the loop with each new connection, which is open and reads nothing until its `onEvent`
    /// is set. Whoever drops it closes nothing: call ``TCPConnection/close()``. Nil: closed at once.
    package var onConnection: ((TCPConnection) -> Void)?
    private let options: TCPOptions
    private var descriptor: Int32
    private var retryTimer: LoopTimer?

    /// - Parameters:
    ///   - address: Port 0 lets the kernel choose. An IPv6 listener does not accept IPv4.
    ///   - sharesPort: Several listeners, one per loop, may bind the port; the kernel spreads connections.
    package init(
        on loop: EventLoop, address: SocketAddress, sharesPort: Bool = false, backlog: Int = 1024,
        options: TCPOptions = TCPOptions()
    ) throws(NetworkError) {
        loop.assertOnLoop()
        self.loop = loop
        self.options = options
        var wanted = clinux_address(address)
        let descriptor = clinux_tcp_listen(&wanted, Int32(clamping: backlog), sharesPort ? 1 : 0)
        guard descriptor >= 0 else { throw NetworkError(binding: address, code: -descriptor) }
        self.descriptor = descriptor
        var actual = clinux_address()
        _ = clinux_local_address(descriptor, &actual)
        localAddress = actual.socketAddress
        do throws(NetworkError) {
            try loop.register(descriptor, self, events: .readable)
        } catch {
            _ = clinux_close(descriptor)
            self.descriptor = -1
            throw error
        }
    }

    /// Stops accepting. Connections already accepted live on.
    package func close() {
        loop.assertOnLoop()
        guard descriptor >= 0 else { return }
        loop.unregister(descriptor)
        _ = clinux_close(descriptor)
        descriptor = -1
        onConnection = nil
        retryTimer?.cancel()
        retryTimer = nil
    }
}

extension TCPListener: LoopSource {
    func handle(_ events: LoopEvents) {
        for _ in 0..<64 where descriptor >= 0 {
            var from = clinux_address()
            let accepted = clinux_accept(descriptor, &from)
            if accepted < 0 {
                switch -accepted {
                case EMFILE, ENFILE, ENOBUFS, ENOMEM: pause()
                case EINTR, ECONNABORTED: continue
                default: return
                }
                return
            }
            // A connection that cannot be watched was closed by its initializer.
            guard
                let connection = try? TCPConnection(
                    on: loop, accepted: accepted, from: from.socketAddress, options: options)
            else { continue }
            if let onConnection { onConnection(connection) } else { connection.close() }
        }
    }

    func loopStops() { close() }

    /// Out of descriptors or memory: a level-triggered loop would spin, so look again a little later.
    private func pause() {
        loop.update(descriptor, events: [])
        let timer =
            retryTimer
            ?? LoopTimer(on: loop) { [weak self] in
                guard let self, self.descriptor >= 0 else { return }
                self.loop.update(self.descriptor, events: .readable)
            }
        retryTimer = timer
        timer.schedule(at: loop.now + .milliseconds(100))
    }
}
