import SoraWire

/// A reliable stream of bytes in both directions: a TCP connection, or TLS over any other stream.
/// WebSocket, HTTP and TURN ride on it. Confined to its loop.
///
/// Events come through ``onEvent`` only, always from the loop and never from within a call to the
/// stream. While `onEvent` is nil nothing is read, so a stream can be handed from one owner to the next
/// (proxy, then TLS, then WebSocket) without losing a byte: set the new handler in the same turn.
package protocol ByteStream: AnyObject {
    var loop: EventLoop { get }
    var remoteAddress: SocketAddress { get }
    /// Our end of the TCP connection underneath; unspecified while connecting.
    var localAddress: SocketAddress { get }
    /// From ``StreamEvent/opened`` on, until it is closed.
    var isOpen: Bool { get }
    var onEvent: ((StreamEvent) -> Void)? { get set }
    /// Queues bytes; they leave at the end of the turn. Allowed before ``StreamEvent/opened``. Ignored
    /// after ``finish()`` and ``close()``.
    func write(_ bytes: [UInt8])
    /// Bytes queued and not yet taken by the kernel. There is no limit in the stream: writers that can
    /// outrun the peer watch it and wait for ``StreamEvent/writable``.
    var bufferedAmount: Int { get }
    /// ``StreamEvent/writable`` is sent when `bufferedAmount` falls to this or below, after it was above.
    var lowWaterMark: Int { get set }
    /// Stops and resumes reading, to slow the peer down. While paused the peer's orderly end stays
    /// unnoticed; a reset is reported at once.
    var isReadingPaused: Bool { get set }
    /// Ends our direction behind what is queued (FIN; for TLS close_notify first). Reading goes on.
    func finish()
    /// Closes at once; what is still queued is tried once and then dropped. No event follows.
    func close()
}

/// What happens on a ``ByteStream``, in this order: `opened`, any number of `data` and `writable`, at
/// most one `ended`, and at most one `closed`, which is the last.
package enum StreamEvent: Sendable {
    /// Ready: connected, and for TLS the handshake is done and the certificate accepted.
    case opened
    /// At least one byte.
    case data([UInt8])
    case writable
    /// The peer sends no more (FIN or close_notify). We still may.
    case ended
    /// Gone, not by our ``ByteStream/close()``: nil after both directions ended in order.
    case closed(NetworkError?)
}

extension ByteStream {
    /// Ends our direction and closes when the peer ends its own or `deadline` comes, discarding what it
    /// still sends. For a server that wants its last answer to arrive: closing at once could reset it.
    /// The loop keeps the stream until then. `onEvent` is replaced.
    package func finishAndClose(by deadline: Instant) {
        // Timer and handler keep each other, and the stream; the stream may have been closed before, then its own
        // closing does not let go of the handler.
        let timer = LoopTimer(on: loop) {
            self.onEvent = nil
            self.close()
        }
        timer.schedule(at: deadline)
        isReadingPaused = false
        onEvent = { [weak self] event in
            switch event {
            case .ended, .closed:
                timer.cancel()
                self?.onEvent = nil
                self?.close()
            case .opened, .data, .writable: break
            }
        }
        finish()
    }
}
