import CLinux
import Glibc
import SoraWire

/// A bound UDP socket. Confined to its loop.
///
/// Datagrams arrive in batches, in order of arrival. Sent datagrams are queued and leave at the end of
/// the loop's turn, in as few system calls as possible: datagrams to one destination of equal size (the
/// last may be shorter) go as one message that the kernel segments (UDP_SEGMENT), where it can. Order
/// is kept per destination, not between destinations.
///
/// UDP is lossy: when the kernel's buffer and the queue of ``maximumQueuedBytes`` are full, the newest
/// datagrams are dropped and counted. ICMP errors are ignored: nobody is authenticated by them, and ICE's
/// checks and consent tell what is reachable.
package final class UDPSocket {
    package let loop: EventLoop
    /// Put into each received datagram; ``send(_:)`` does not check it.
    package let id: SocketID
    /// With the port that the kernel chose if none was given.
    package let localAddress: SocketAddress
    /// Called on the loop with what arrived. Nil: it is dropped.
    package var onDatagrams: (([Datagram]) -> Void)?
    /// Bytes that may wait for the kernel, beyond its own buffer. Default 1 MiB.
    package var maximumQueuedBytes = 1 << 20
    /// Counters since creation.
    package private(set) var statistics = Statistics()

    package struct Statistics: Sendable, Equatable {
        package var received = 0
        package var sent = 0
        /// Datagrams dropped because the queue was full, or refused by the kernel.
        package var dropped = 0
        /// System calls made to send, and how many messages of these were segmented by the kernel.
        package var sendCalls = 0
        package var segmentedMessages = 0
    }

    private var descriptor: Int32
    private var queue: [Datagram] = []
    private var queuedBytes = 0
    private var isFlushScheduled = false
    private var waitsForSpace = false
    private var usesSegmentation = true
    private var planner = UDPSendPlanner()

    /// Opens and binds a socket. To be called on the loop.
    /// - Parameters:
    ///   - address: Port 0 lets the kernel choose. An IPv6 socket does not carry IPv4.
    ///   - sharesPort: Several sockets, one per loop, may bind the port; the kernel spreads senders over them.
    ///   - bufferSize: Bytes wished for the kernel's receive and send buffers; it may grant less.
    package init(
        on loop: EventLoop, id: SocketID, address: SocketAddress, sharesPort: Bool = false, bufferSize: Int = 1 << 20
    ) throws(NetworkError) {
        loop.assertOnLoop()
        self.loop = loop
        self.id = id
        var wanted = clinux_address(address)
        let descriptor = clinux_udp_open(&wanted, sharesPort ? 1 : 0)
        guard descriptor >= 0 else { throw NetworkError(binding: address, code: -descriptor) }
        self.descriptor = descriptor
        var actual = clinux_address()
        _ = clinux_local_address(descriptor, &actual)
        localAddress = actual.socketAddress
        var granted: (Int32, Int32) = (0, 0)
        let size = Int32(clamping: bufferSize)
        _ = clinux_set_buffers(descriptor, size, size, &granted.0, &granted.1)
        _ = clinux_udp_enable_gro(descriptor)  // without it the kernel delivers one by one
        do throws(NetworkError) {
            try loop.register(descriptor, self, events: .readable)
        } catch {
            _ = clinux_close(descriptor)
            self.descriptor = -1
            throw error
        }
    }

    package var isOpen: Bool { descriptor >= 0 }
    /// Bytes that wait in the queue.
    package var bufferedAmount: Int { queuedBytes }

    /// Queues a datagram; it leaves at the end of the turn, or when the queue is full. After ``close()`` it is
    /// dropped, and so it is while the kernel takes no more.
    package func send(_ datagram: Datagram) {
        loop.assertOnLoop()
        // A key frame for a hundred viewers is more than the queue holds.
        if queuedBytes + datagram.payload.count > maximumQueuedBytes, !waitsForSpace { flush() }
        guard isOpen, datagram.payload.count <= UDPSendPlanner.maximumMessageSize,
            queuedBytes + datagram.payload.count <= maximumQueuedBytes
        else {
            statistics.dropped += 1
            return
        }
        queuedBytes += datagram.payload.count
        queue.append(datagram)
        if !isFlushScheduled && !waitsForSpace {
            isFlushScheduled = true
            loop.flushAtEndOfTurn(self)
        }
    }

    /// Sends what is queued, as far as the kernel takes it, and closes. No handler is called any more.
    package func close() {
        loop.assertOnLoop()
        guard isOpen else { return }
        if !waitsForSpace { writeQueue() }
        closeDescriptor()
    }

    private func closeDescriptor() {
        loop.unregister(descriptor)
        _ = clinux_close(descriptor)
        descriptor = -1
        onDatagrams = nil
        queue = []
        queuedBytes = 0
    }
}

// MARK: Receiving

extension UDPSocket: LoopSource {
    func handle(_ events: LoopEvents) {
        if events.contains(.error) { _ = clinux_socket_error(descriptor) }
        if events.contains(.writable) { flush() }
        if events.contains(.readable) { receive() }
    }

    func loopStops() { closeDescriptor() }

    /// Two reads a turn at most, so that one busy socket does not hold up the others.
    private func receive() {
        for _ in 0..<2 {
            guard isOpen else { return }
            var received = [clinux_received](repeating: clinux_received(), count: LoopBuffers.slots)
            let slab = loop.buffers.receive
            let count = Int(
                clinux_udp_receive(
                    descriptor, slab.baseAddress, LoopBuffers.slotSize, &received, Int32(LoopBuffers.slots)))
            // EAGAIN: nothing there. ECONNREFUSED and the like: an ICMP error, consumed by the call.
            guard count > 0 else { return }
            var batch: [Datagram] = []
            batch.reserveCapacity(count)
            for index in 0..<count {
                let entry = received[index]
                guard entry.truncated == 0 else { continue }
                let start = index * LoopBuffers.slotSize
                let end = start + min(Int(entry.length), LoopBuffers.slotSize)
                let remote = entry.from.socketAddress
                let step = entry.segment > 0 ? Int(entry.segment) : max(1, end - start)
                var position = start
                repeat {
                    let next = min(position + step, end)
                    batch.append(Datagram(socket: id, remote: remote, payload: Array(slab[position..<next])))
                    position = next
                } while position < end
            }
            statistics.received += batch.count
            onDatagrams?(batch)
            if count < LoopBuffers.slots { return }
        }
    }
}

// MARK: Sending

extension UDPSocket: TurnFlushing {
    func flush() {
        isFlushScheduled = false
        guard isOpen else { return }
        let wasWaiting = waitsForSpace
        writeQueue()
        if waitsForSpace != wasWaiting {
            loop.update(descriptor, events: waitsForSpace ? [.readable, .writable] : .readable)
        }
    }

    private func writeQueue() {
        waitsForSpace = false
        while !queue.isEmpty {
            let taken = planner.plan(queue, into: loop.buffers.send, segments: usesSegmentation)
            let (outcome, done) = send()
            // What was not sent, in the order in which it would have left.
            let unsent = planner.datagramIndices(fromMessage: done)
            statistics.sent += taken - unsent.count
            queue = unsent.map { queue[$0] } + queue[taken...]
            queuedBytes = queue.reduce(0) { $0 + $1.payload.count }
            switch outcome {
            case .all, .withoutSegmentation: continue
            case .refused:  // this message cannot be sent at all: the next may
                let failed = planner.datagramCount(ofMessage: done)
                statistics.dropped += failed
                queuedBytes -= queue[..<failed].reduce(0) { $0 + $1.payload.count }
                queue.removeFirst(failed)
            case .full:
                waitsForSpace = true
                return
            }
        }
    }

    private enum Outcome { case all, full, refused, withoutSegmentation }

    /// Sends the planned messages. Returns how it ended and how many messages went.
    private func send() -> (Outcome, Int) {
        var done = 0
        while done < planner.messages.count {
            let start = done
            let count = Int32(clamping: planner.messages.count - start)
            let sent = planner.messages.withUnsafeBufferPointer { messages in
                planner.pieces.withUnsafeBufferPointer { pieces in
                    messages.baseAddress.map {
                        clinux_udp_send(
                            descriptor, loop.buffers.send.baseAddress, pieces.baseAddress, $0 + start, count)
                    } ?? 0
                }
            }
            statistics.sendCalls += 1
            if sent > 0 {
                for message in planner.messages[start..<(start + Int(sent))] where message.segment > 0 {
                    statistics.segmentedMessages += 1
                }
                done += Int(sent)
                continue
            }
            switch -sent {
            case EAGAIN, ENOBUFS: return (.full, done)
            case EINTR, ECONNREFUSED: continue  // ECONNREFUSED: of an earlier datagram, now consumed
            case EINVAL where planner.messages[start].segment > 0, EIO where planner.messages[start].segment > 0,
                EMSGSIZE where planner.messages[start].segment > 0,
                EOPNOTSUPP where planner.messages[start].segment > 0:
                // The device or the kernel cannot segment, or the path's MTU is smaller: one by one.
                usesSegmentation = false
                return (.withoutSegmentation, done)
            default: return (.refused, done)
            }
        }
        return (.all, done)
    }
}
