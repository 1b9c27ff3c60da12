import CLinux
import Glibc
import SoraWire

/// A TCP connection: dialled, or accepted by a ``TCPListener``. Confined to its loop.
///
/// TCP_NODELAY is on: writes are collected per turn of the loop anyway. Keep-alive and TCP_USER_TIMEOUT
/// bound how long a vanished peer goes unnoticed (``TCPOptions``).
package final class TCPConnection: ByteStream {
    package let loop: EventLoop
    package let remoteAddress: SocketAddress
    /// Unspecified while connecting.
    package private(set) var localAddress: SocketAddress
    package var lowWaterMark = 64 * 1024
    package var onEvent: ((StreamEvent) -> Void)? {
        didSet {
            interestChanged()
            if undelivered != nil, onEvent != nil { loop.flushAtEndOfTurn(self) }
        }
    }
    package var isReadingPaused = false {
        didSet { interestChanged() }
    }

    private enum State {
        /// → open, closed
        case connecting
        /// → closed
        case open
        /// Final.
        case closed
    }
    private var state: State
    private var descriptor: Int32
    private var output = OutputQueue()
    private var isFlushScheduled = false
    private var waitsForSpace = false
    private var isAboveLowWater = false
    /// ``finish()`` was called; the FIN is sent once the queue is empty.
    private var isFinishing = false
    private var isFinSent = false
    private var peerEnded = false
    private var watched: LoopEvents = []
    private var deadlineTimer: LoopTimer?
    /// The end came while nobody listened: told to the next who does.
    private var undelivered: StreamEvent?

    /// Starts to connect. ``StreamEvent/opened`` or ``StreamEvent/closed(_:)`` follows, never before this
    /// initializer has returned.
    /// - Parameter deadline: When to give up connecting, with ``NetworkError/timedOut(stage:)``.
    package init(
        on loop: EventLoop, to address: SocketAddress, deadline: Instant? = nil, options: TCPOptions = TCPOptions()
    ) throws(NetworkError) {
        loop.assertOnLoop()
        self.loop = loop
        remoteAddress = address
        localAddress = SocketAddress(address.ip.isV4 ? .anyV4 : .anyV6, port: 0)
        state = .connecting
        descriptor = -1
        descriptor = try system("socket", clinux_tcp_open(address.ip.isV4 ? 4 : 6))
        options.apply(to: descriptor)
        var target = clinux_address(address)
        let code = -clinux_connect(descriptor, &target)
        // Connected at once is reported through the loop as well: the socket is writable.
        if code != 0, code != EINPROGRESS {
            closeDescriptor()
            throw NetworkError(connection: address, code: code, call: "connect")
        }
        try watchFirst(.writable)
        if let deadline {
            deadlineTimer = loop.scheduleTimer(at: deadline) { [weak self] in
                self?.fail(.timedOut(stage: "connecting to \(address)"))
            }
        }
    }

    /// Takes over an accepted socket.
    init(
        on loop: EventLoop, accepted descriptor: Int32, from address: SocketAddress, options: TCPOptions
    ) throws(NetworkError) {
        self.loop = loop
        self.descriptor = descriptor
        remoteAddress = address
        localAddress = address
        state = .open
        options.apply(to: descriptor)
        learnLocalAddress()
        try watchFirst([])
    }

    private func watchFirst(_ events: LoopEvents) throws(NetworkError) {
        watched = events
        do throws(NetworkError) {
            try loop.register(descriptor, self, events: events)
        } catch {
            _ = clinux_close(descriptor)
            descriptor = -1
            state = .closed
            throw error
        }
    }

    private func learnLocalAddress() {
        var local = clinux_address()
        if clinux_local_address(descriptor, &local) == 0 { localAddress = local.socketAddress }
    }

    package var isOpen: Bool { state == .open }
    package var bufferedAmount: Int { output.count }

    package func write(_ bytes: [UInt8]) {
        loop.assertOnLoop()
        guard state != .closed, !isFinishing, !bytes.isEmpty else { return }
        output.append(bytes)
        if output.count > lowWaterMark { isAboveLowWater = true }
        scheduleFlush()
    }

    package func finish() {
        loop.assertOnLoop()
        guard state != .closed, !isFinishing else { return }
        isFinishing = true
        scheduleFlush()
    }

    package func close() {
        loop.assertOnLoop()
        undelivered = nil
        guard state != .closed else { return }
        if state == .open, !waitsForSpace { _ = writeQueue() }
        shut()
    }

    /// Closes with a reset, so that the peer sees a failure and the port is free at once.
    package func abort() {
        loop.assertOnLoop()
        guard state != .closed else { return }
        _ = clinux_set_abortive(descriptor)
        shut()
    }

    private func shut() {
        state = .closed
        deadlineTimer?.cancel()
        deadlineTimer = nil
        onEvent = nil
        output = OutputQueue()
        closeDescriptor()
    }

    private func closeDescriptor() {
        guard descriptor >= 0 else { return }
        loop.unregister(descriptor)
        _ = clinux_close(descriptor)
        descriptor = -1
    }

    private func fail(_ error: NetworkError?) {
        guard state != .closed else { return }
        let handler = onEvent
        shut()
        if let handler { handler(.closed(error)) } else { undelivered = .closed(error) }
    }

    private func scheduleFlush() {
        guard state == .open, !waitsForSpace, !isFlushScheduled else { return }
        isFlushScheduled = true
        loop.flushAtEndOfTurn(self)
    }

    private func interestChanged() {
        guard state == .open else { return }
        var wanted: LoopEvents = []
        if onEvent != nil, !isReadingPaused, !peerEnded { wanted.insert(.readable) }
        if waitsForSpace { wanted.insert(.writable) }
        if wanted != watched {
            watched = wanted
            loop.update(descriptor, events: wanted)
        }
    }
}

// MARK: Events

extension TCPConnection: LoopSource {
    func handle(_ events: LoopEvents) {
        // The handler may drop the last other reference.
        withExtendedLifetime(self) {
            switch state {
            case .connecting: finishConnecting()
            case .open:
                if events.contains(.writable) { flush() }
                if events.contains(.readable), state == .open { read() }
                // Reset or dead while reading is paused: nobody would read the error otherwise.
                if !events.contains(.readable), !events.isDisjoint(with: [.error, .hangUp]), state == .open {
                    let code = clinux_socket_error(descriptor)
                    fail(code == 0 ? .reset : NetworkError(connection: remoteAddress, code: code, call: "recv"))
                }
            case .closed: break
            }
        }
    }

    func loopStops() { shut() }

    private func finishConnecting() {
        let code = clinux_socket_error(descriptor)
        guard code == 0 else {
            return fail(NetworkError(connection: remoteAddress, code: code, call: "connect"))
        }
        state = .open
        deadlineTimer?.cancel()
        deadlineTimer = nil
        learnLocalAddress()
        onEvent?(.opened)
        interestChanged()
        if !output.isEmpty || isFinishing { scheduleFlush() }
    }

    /// A bounded number of reads a turn, so that one fast peer does not hold up the others.
    private func read() {
        for _ in 0..<4 {
            guard state == .open, let handler = onEvent, !isReadingPaused, !peerEnded else { return }
            let buffer = loop.buffers.stream
            let count = Int(clinux_receive(descriptor, buffer.baseAddress, buffer.count))
            if count > 0 {
                handler(.data(Array(buffer[..<count])))
                if count < buffer.count { return }
            } else if count == 0 {
                peerEnded = true
                interestChanged()
                handler(.ended)
                closeIfBothEnded()
                return
            } else {
                let code = Int32(clamping: -count)
                if code == EINTR { continue }
                if code != EAGAIN { fail(NetworkError(connection: remoteAddress, code: code, call: "recv")) }
                return
            }
        }
    }

    private func closeIfBothEnded() {
        if peerEnded, isFinSent { fail(nil) }
    }
}

extension TCPConnection: TurnFlushing {
    func flush() {
        isFlushScheduled = false
        if let event = undelivered, let handler = onEvent {
            undelivered = nil
            onEvent = nil
            handler(event)
        }
        guard state == .open else { return }
        waitsForSpace = false
        if let code = writeQueue() {
            return fail(NetworkError(connection: remoteAddress, code: code, call: "send"))
        }
        waitsForSpace = !output.isEmpty
        interestChanged()
        if output.isEmpty, isFinishing, !isFinSent {
            isFinSent = true
            _ = clinux_shutdown_write(descriptor)
            closeIfBothEnded()
            if state == .closed { return }
        }
        if isAboveLowWater, output.count <= lowWaterMark {
            isAboveLowWater = false
            onEvent?(.writable)
        }
    }

    /// Writes until the queue is empty or the kernel is full. Returns an errno on failure.
    private func writeQueue() -> Int32? {
        while !output.isEmpty {
            let sent = output.withFront(scratch: loop.buffers.send) { front in
                clinux_send(descriptor, front.baseAddress, front.count)
            }
            if sent > 0 {
                output.removeFirst(Int(sent))
            } else {
                let code = Int32(clamping: -sent)
                if code == EINTR { continue }
                return code == EAGAIN || sent == 0 ? nil : code
            }
        }
        return nil
    }
}

/// How a TCP connection notices a vanished peer.
package struct TCPOptions: Sendable, Equatable {
    /// Idle time after which the kernel probes the peer. Default 15 s; nil turns keep-alive off.
    package var keepAliveIdle: Duration? = .seconds(15)
    /// Between unanswered probes, and how many end the connection. Default 5 s and 3.
    package var keepAliveInterval: Duration = .seconds(5)
    package var keepAliveProbes = 3
    /// How long written bytes may stay unacknowledged, or unsent because the peer's window is shut
    /// (TCP_USER_TIMEOUT). Default 30 s; nil: the kernel's own limit of many minutes.
    package var userTimeout: Duration? = .seconds(30)

    package init() {}

    func apply(to descriptor: Int32) {
        _ = clinux_set_nodelay(descriptor)
        if let idle = keepAliveIdle {
            _ = clinux_set_keepalive(
                descriptor, seconds(idle), seconds(keepAliveInterval), Int32(clamping: max(1, keepAliveProbes)))
        }
        if let userTimeout {
            _ = clinux_set_user_timeout(descriptor, Int32(clamping: Int(userTimeout.inMilliseconds.rounded(.up))))
        }
    }

    private func seconds(_ duration: Duration) -> Int32 {
        Int32(clamping: max(1, Int(duration.inSeconds.rounded(.up))))
    }
}
