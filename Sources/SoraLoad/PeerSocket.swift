import SoraNetwork
import SoraPeer
import SoraWire

/// Ties a peer connection to a UDP socket and a timer: what an application's driver is, and nothing more.
///
/// Belongs to one actor on the loop, which calls ``flush(_:)`` after whatever it does with the connection.
package final class PeerSocket {
    package let peer: PeerConnection
    private let loop: EventLoop
    private var socket: UDPSocket?
    private var timer: LoopTimer?
    private var isFlushing = false

    package init(_ peer: PeerConnection, on loop: EventLoop) {
        self.peer = peer
        self.loop = loop
    }

    /// - Parameter onInput: Called on the loop when the connection has handled packets or a timeout: there may be
    ///   something to flush.
    package func open(
        at address: IPAddress, bufferSize: Int, onInput: @escaping () -> Void
    ) throws(NetworkError) {
        let socket = try UDPSocket(
            on: loop, id: SocketID(0), address: SocketAddress(address, port: 0), bufferSize: bufferSize)
        socket.onDatagrams = { [peer, loop] batch in
            let now = loop.now
            for datagram in batch { peer.handle(datagram, now: now) }
            onInput()
        }
        self.socket = socket
        timer = LoopTimer(on: loop) { [peer, loop] in
            peer.handleTimeout(now: loop.now)
            onInput()
        }
        peer.addLocalSocket(SocketID(0), address: socket.localAddress, now: loop.now)
    }

    /// To be called once the connection is closed and flushed.
    package func close() {
        timer?.cancel()
        socket?.close()
        socket = nil
    }

    /// Sends what the connection has to send, and gives everything else that it says to `handle`.
    package func flush(_ handle: (PeerConnection.Output) -> Void) {
        // What `handle` wakes may come back here.
        guard !isFlushing else { return }
        isFlushing = true
        defer { isFlushing = false }
        while let output = peer.poll() {
            if case .transmit(let datagram) = output { socket?.send(datagram) } else { handle(output) }
        }
        timer?.schedule(at: peer.nextTimeout)
    }
}
