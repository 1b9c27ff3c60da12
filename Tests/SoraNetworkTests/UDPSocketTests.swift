import SoraNetwork
import SoraWire
import Testing

@Suite struct UDPSocketTests {
    private func receiver(_ lab: LoopActor, _ inbox: Inbox<[Datagram]>, at address: SocketAddress = loopback)
        async throws
        -> SocketAddress
    {
        try await lab.run { loop in
            let socket = try UDPSocket(on: loop, id: SocketID(9), address: address)
            socket.onDatagrams = { inbox.put($0) }
            return socket.localAddress
        }
    }

    @Test(arguments: [SocketAddress(.loopbackV4, port: 0), SocketAddress(.loopbackV6, port: 0)])
    func datagramsArriveWithTheirSender(_ address: SocketAddress) async throws {
        let lab = try LoopActor()
        defer { lab.stop() }
        let inbox = Inbox<[Datagram]>()
        let target = try await receiver(lab, inbox, at: address)
        #expect(target.port != 0)
        let source = try await lab.run { loop in
            let socket = try UDPSocket(on: loop, id: SocketID(1), address: address)
            socket.send(Datagram(socket: SocketID(1), remote: target, payload: [1, 2, 3]))
            socket.send(Datagram(socket: SocketID(1), remote: target, payload: []))
            return socket.localAddress
        }
        let received = try await inbox.collect { $0.joined().count == 2 }.joined()
        #expect(received.map(\.payload) == [[1, 2, 3], []])
        #expect(received.allSatisfy { $0.remote == source && $0.socket == SocketID(9) })
    }

    @Test func batchesKeepOrderSizesAndContents() async throws {
        let lab = try LoopActor()
        defer { lab.stop() }
        let inbox = Inbox<[Datagram]>()
        let target = try await receiver(lab, inbox)
        var random = RandomSource(seed: 3)
        // Runs of equal size, shorter and longer ones between, empty ones, and a large one.
        let sizes =
            [1200, 1200, 1200, 700, 1200, 1200, 1, 1, 1, 0, 0, 1300, 1300, 20_000, 5, 65_507, 9]
            + Array(repeating: 100, count: 100)
        let payloads = sizes.map { random.bytes($0) }
        let statistics = try await lab.run { loop in
            let socket = try UDPSocket(on: loop, id: SocketID(1), address: loopback)
            for payload in payloads { socket.send(Datagram(socket: SocketID(1), remote: target, payload: payload)) }
            socket.close()  // sends what is queued
            return socket.statistics
        }
        #expect(statistics.sent == payloads.count)
        #expect(statistics.dropped == 0)
        #expect(statistics.sendCalls < 10)
        #expect(statistics.segmentedMessages >= 4)
        let received = try await inbox.collect { $0.joined().count == payloads.count }.joined()
        #expect(received.map(\.payload) == payloads)
    }

    @Test func interleavedDestinationsKeepTheirOwnOrder() async throws {
        let lab = try LoopActor()
        defer { lab.stop() }
        let inboxes = [Inbox<[Datagram]>(), Inbox<[Datagram]>(), Inbox<[Datagram]>()]
        var targets: [SocketAddress] = []
        for inbox in inboxes { targets.append(try await receiver(lab, inbox)) }
        let destinations = targets
        let statistics = try await lab.run { loop in
            let socket = try UDPSocket(on: loop, id: SocketID(1), address: loopback)
            for number in 0..<90 {
                let payload = Array(repeating: UInt8(number), count: number % 7 == 0 ? 300 : 500)
                socket.send(Datagram(socket: SocketID(1), remote: destinations[number % 3], payload: payload))
            }
            socket.close()
            return socket.statistics
        }
        #expect(statistics.sendCalls == 1)
        for (index, inbox) in inboxes.enumerated() {
            let received = try await inbox.collect { $0.joined().count == 30 }.joined()
            #expect(received.map { Int($0.payload[0]) } == stride(from: index, to: 90, by: 3).map { $0 })
        }
    }

    @Test func sendingToAClosedPortHarmsNothing() async throws {
        let lab = try LoopActor()
        defer { lab.stop() }
        let inbox = Inbox<[Datagram]>()
        let target = try await receiver(lab, inbox)
        let socket = Confined<UDPSocket?>(nil)
        let closed = try await lab.run { loop in
            let other = try UDPSocket(on: loop, id: SocketID(2), address: loopback)
            other.close()
            socket.value = try UDPSocket(on: loop, id: SocketID(1), address: loopback)
            return other.localAddress
        }
        for round in 0..<5 {
            await lab.run { _ in
                socket.value?.send(Datagram(socket: SocketID(1), remote: closed, payload: [0]))
                socket.value?.send(Datagram(socket: SocketID(1), remote: target, payload: [UInt8(round)]))
            }
            #expect(try await inbox.next().map(\.payload) == [[UInt8(round)]])
        }
        let dropped = await lab.run { _ in socket.value?.statistics.dropped }
        #expect(dropped == 0)
    }

    /// Sends payloads of these sizes in one turn through a queue of 2500 bytes, each filled with its number. Returns the
    /// statistics of before the turn's end, and what arrives.
    private func send(_ sizes: [Int]) async throws -> (statistics: UDPSocket.Statistics, received: [[UInt8]]) {
        let lab = try LoopActor()
        defer { lab.stop() }
        let inbox = Inbox<[Datagram]>()
        let target = try await receiver(lab, inbox)
        let statistics = try await lab.run { loop in
            let socket = try UDPSocket(on: loop, id: SocketID(1), address: loopback)
            socket.maximumQueuedBytes = 2500
            for (number, size) in sizes.enumerated() {
                let payload = [UInt8](repeating: UInt8(number), count: size)
                socket.send(Datagram(socket: SocketID(1), remote: target, payload: payload))
            }
            return socket.statistics
        }
        let count = sizes.count - Int(statistics.dropped)
        return (statistics, try await inbox.collect { $0.joined().count == count }.joined().map(\.payload))
    }

    @Test func whatIsTooLargeIsDroppedAndCounted() async throws {
        // More than a datagram holds, more than the queue does, and little.
        let (statistics, received) = try await send([65_508, 3000, 1])
        #expect(statistics.dropped == 2)
        #expect(received == [[2]])
    }

    @Test func aFullQueueLeavesBeforeTheTurnEnds() async throws {
        let (statistics, received) = try await send(Array(repeating: 1000, count: 7))
        #expect(statistics.dropped == 0)
        #expect(statistics.sent == 6)
        #expect(received.map { $0[0] } == [0, 1, 2, 3, 4, 5, 6])
    }

    @Test func anUnreachableDestinationDropsOnlyItsOwnDatagrams() async throws {
        let lab = try LoopActor()
        defer { lab.stop() }
        let inbox = Inbox<[Datagram]>()
        let target = try await receiver(lab, inbox)
        let statistics = try await lab.run { loop in
            let socket = try UDPSocket(on: loop, id: SocketID(1), address: loopback)
            // A socket bound to 127.0.0.1 cannot send to the outside: the kernel refuses with EINVAL.
            let outside = SocketAddress(.v4(0xC000_0201), port: 9)
            for number: UInt8 in 0..<6 {
                let remote = number % 2 == 0 ? outside : target
                socket.send(Datagram(socket: SocketID(1), remote: remote, payload: [number, 0]))
            }
            socket.close()
            return socket.statistics
        }
        #expect(statistics.sent == 3)
        #expect(statistics.dropped == 3)
        let received = try await inbox.collect { $0.joined().count == 3 }.joined()
        #expect(received.map { $0.payload[0] } == [1, 3, 5])
    }

    @Test func aTakenPortIsReportedAsSuch() async throws {
        let lab = try LoopActor()
        defer { lab.stop() }
        let error = try await lab.run { loop -> NetworkError? in
            let first = try UDPSocket(on: loop, id: SocketID(1), address: loopback)
            defer { first.close() }
            do throws(NetworkError) {
                _ = try UDPSocket(on: loop, id: SocketID(2), address: first.localAddress)
                return nil
            } catch {
                return error
            }
        }
        guard case .addressUnavailable = error else {
            Issue.record("expected addressUnavailable, got \(String(describing: error))")
            return
        }
    }

    @Test func aFloodIsDeliveredWithoutStarvingTimers() async throws {
        let lab = try LoopActor()
        defer { lab.stop() }
        let inbox = Inbox<String>()
        try await lab.run { loop in
            let sink = try UDPSocket(on: loop, id: SocketID(2), address: loopback)
            let source = try UDPSocket(on: loop, id: SocketID(1), address: loopback)
            // Each batch is answered by another of the same size: the socket is never quiet.
            sink.onDatagrams = { [weak source] batch in
                for datagram in batch {
                    source?.send(Datagram(socket: SocketID(1), remote: sink.localAddress, payload: datagram.payload))
                }
            }
            for _ in 0..<200 {
                source.send(
                    Datagram(
                        socket: SocketID(1), remote: sink.localAddress, payload: [UInt8](repeating: 1, count: 1200)))
            }
            loop.scheduleTimer(at: loop.now + .milliseconds(20)) {
                inbox.put("timer")
                sink.close()
                source.close()
            }
        }
        #expect(try await inbox.next() == "timer")
    }
}
