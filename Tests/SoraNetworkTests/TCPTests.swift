import CLinux
import SoraNetwork
import SoraWire
import Testing

@Suite struct TCPTests {
    /// Listens and answers each byte run with itself; ends when the peer ends.
    static func startEcho(on loop: EventLoop, at address: SocketAddress = loopback) throws -> SocketAddress {
        let listener = try TCPListener(on: loop, address: address)
        listener.onConnection = { connection in
            connection.onEvent = { [unowned connection] event in
                switch event {
                case .data(let bytes): connection.write(bytes)
                case .ended: connection.finish()
                case .opened, .writable, .closed: break
                }
            }
        }
        return listener.localAddress
    }

    @Test(arguments: [SocketAddress(.loopbackV4, port: 0), SocketAddress(.loopbackV6, port: 0)])
    func echoesMegabytesAndEndsInOrder(_ address: SocketAddress) async throws {
        let lab = try LoopActor()
        defer { lab.stop() }
        var random = RandomSource(seed: 11)
        let payload = random.bytes(3_000_000)
        let inbox = Inbox<StreamEvent>()
        try await lab.run { loop in
            let target = try Self.startEcho(on: loop, at: address)
            let client = try TCPConnection(on: loop, to: target, deadline: loop.now + .seconds(5))
            client.onEvent = { inbox.put($0) }
            client.write(payload)  // before it is open
            client.finish()
        }
        var seen: [UInt8] = []
        var order: [String] = []
        while order.last != "closed" {
            switch try await inbox.next() {
            case .opened: order.append("opened")
            case .data(let bytes): seen += bytes
            case .ended: order.append("ended")
            case .closed(let error):
                order.append("closed")
                #expect(error == nil)
            case .writable: break
            }
        }
        #expect(seen == payload)
        #expect(order == ["opened", "ended", "closed"])
        #expect(await lab.run { $0.sourceCount } == 1)  // the listener
    }

    @Test func refusalIsTold() async throws {
        let lab = try LoopActor()
        defer { lab.stop() }
        let inbox = Inbox<StreamEvent>()
        let target = try await lab.run { loop in
            let listener = try TCPListener(on: loop, address: loopback)
            listener.close()
            let client = try TCPConnection(on: loop, to: listener.localAddress, deadline: loop.now + .seconds(5))
            client.onEvent = { inbox.put($0) }
            return listener.localAddress
        }
        guard case .closed(let error) = try await inbox.next() else {
            Issue.record("expected closed")
            return
        }
        #expect(error == .refused(target))
    }

    @Test func silenceWhileConnectingTimesOut() async throws {
        let lab = try LoopActor()
        defer { lab.stop() }
        // Nobody accepts, and once the backlog of one is full the kernel drops further SYNs.
        var address = clinux_address()
        address.family = 4
        address.v4 = 0x7F00_0001
        let silent = clinux_tcp_listen(&address, 0, 0)
        #expect(silent >= 0)
        defer { _ = clinux_close(silent) }
        _ = clinux_local_address(silent, &address)
        let target = SocketAddress(.loopbackV4, port: address.port)
        let filled = Inbox<Int>()
        try await lab.run { loop in
            let first = try TCPConnection(on: loop, to: target)
            first.onEvent = { if case .opened = $0 { filled.put(1) } }
        }
        _ = try await filled.next()
        let inbox = Inbox<StreamEvent>()
        try await lab.run { loop in
            let late = try TCPConnection(on: loop, to: target, deadline: loop.now + .milliseconds(60))
            late.onEvent = { inbox.put($0) }
        }
        guard case .closed(let error) = try await inbox.next() else {
            Issue.record("expected closed")
            return
        }
        #expect(error == .timedOut(stage: "connecting to \(target)"))
    }

    @Test func resetIsToldEvenWhileReadingIsPaused() async throws {
        let lab = try LoopActor()
        defer { lab.stop() }
        for pauses in [false, true] {
            let inbox = Inbox<StreamEvent>()
            try await lab.run { loop in
                let listener = try TCPListener(on: loop, address: loopback)
                listener.onConnection = { connection in
                    connection.onEvent = { event in
                        if case .data = event { connection.abort() }
                    }
                }
                let client = try TCPConnection(on: loop, to: listener.localAddress)
                client.onEvent = { event in
                    if case .opened = event { client.isReadingPaused = pauses }
                    inbox.put(event)
                }
                client.write([1])
            }
            _ = try await inbox.next("opened")
            guard case .closed(let error) = try await inbox.next("closed") else {
                Issue.record("expected closed")
                return
            }
            #expect(error == .reset)
        }
    }

    @Test func writableComesOnceWhenTheQueueHasDrained() async throws {
        let lab = try LoopActor()
        defer { lab.stop() }
        let inbox = Inbox<String>()
        let server = Confined<TCPConnection?>(nil)
        let client = Confined<TCPConnection?>(nil)
        try await lab.run { loop in
            // A reader that stands still is no failure here, however slow the machine.
            var options = TCPOptions()
            options.userTimeout = nil
            let listener = try TCPListener(on: loop, address: loopback)
            listener.onConnection = { connection in
                server.value = connection  // does not read yet
                inbox.put("accepted")
            }
            let connection = try TCPConnection(on: loop, to: listener.localAddress, options: options)
            client.value = connection
            connection.onEvent = { event in
                if case .writable = event {
                    inbox.put("writable \(connection.bufferedAmount <= connection.lowWaterMark)")
                }
            }
            connection.write([UInt8](repeating: 7, count: 20_000_000))
        }
        #expect(try await inbox.next() == "accepted")
        let waiting = await lab.run { _ in client.value?.bufferedAmount ?? 0 }
        #expect(waiting > 1_000_000)
        await lab.run { _ in server.value?.onEvent = { _ in } }
        #expect(try await inbox.next() == "writable true")
        #expect(inbox.waiting == 0)
    }

    @Test func halfCloseLetsTheOtherDirectionGoOn() async throws {
        let lab = try LoopActor()
        defer { lab.stop() }
        let inbox = Inbox<String>()
        try await lab.run { loop in
            let listener = try TCPListener(on: loop, address: loopback)
            listener.onConnection = { connection in
                connection.onEvent = { [unowned connection] event in
                    guard case .ended = event else { return }
                    connection.write(bytes("after your end"))
                    connection.finish()
                }
            }
            let client = try TCPConnection(on: loop, to: listener.localAddress)
            client.onEvent = { event in
                switch event {
                case .data(let data): inbox.put(String(decoding: data, as: UTF8.self))
                case .ended: inbox.put("ended")
                case .closed(let error): inbox.put("closed \(String(describing: error))")
                case .opened, .writable: break
                }
            }
            client.finish()
        }
        #expect(try await inbox.collect { $0.count == 3 } == ["after your end", "ended", "closed nil"])
    }

    @Test func finishAndCloseDeliversTheLastAnswer() async throws {
        let lab = try LoopActor()
        defer { lab.stop() }
        let inbox = Inbox<StreamEvent>()
        try await lab.run { loop in
            let listener = try TCPListener(on: loop, address: loopback)
            listener.onConnection = { connection in
                connection.write([UInt8](repeating: 5, count: 500_000))
                connection.finishAndClose(by: loop.now + .seconds(5))
            }
            let client = try TCPConnection(on: loop, to: listener.localAddress)
            client.onEvent = { event in
                if case .ended = event { client.finish() }
                inbox.put(event)
            }
            client.write([UInt8](repeating: 1, count: 300_000))  // never read by the application
        }
        var total = 0
        while true {
            let event = try await inbox.next()
            if case .data(let data) = event { total += data.count }
            if case .closed(let error) = event {
                #expect(error == nil)
                break
            }
        }
        #expect(total == 500_000)
    }

    @Test func nothingIsReadUntilSomebodyListens() async throws {
        let lab = try LoopActor()
        defer { lab.stop() }
        let inbox = Inbox<[UInt8]>()
        let held = Confined<TCPConnection?>(nil)
        let accepted = Inbox<Int>()
        try await lab.run { loop in
            let listener = try TCPListener(on: loop, address: loopback)
            listener.onConnection = {
                held.value = $0
                accepted.put(1)
            }
            let client = try TCPConnection(on: loop, to: listener.localAddress)
            client.onEvent = { _ in }
            client.write([1, 2, 3])
        }
        _ = try await accepted.next()
        await lab.run { _ in
            held.value?.onEvent = { if case .data(let data) = $0 { inbox.put(data) } }
        }
        #expect(try await inbox.next() == [1, 2, 3])
    }

    // MEM1: descriptors return to base.
    @Test func stoppingTheLoopClosesEverythingSilently() async throws {
        let lab = try LoopActor()
        let inbox = Inbox<StreamEvent>()
        let opened = Inbox<Int>()
        try await lab.run { loop in
            let target = try Self.startEcho(on: loop)
            for _ in 0..<20 {
                let client = try TCPConnection(on: loop, to: target)
                client.onEvent = { event in
                    if case .opened = event { opened.put(1) } else { inbox.put(event) }
                }
            }
        }
        _ = try await opened.collect { $0.count == 20 }
        lab.stop()
        #expect(await lab.run { $0.sourceCount } == 0)
        #expect(inbox.waiting == 0)
    }

    // LIF12: a peer that takes nothing more is found dead within the bound, though nobody resets.
    @Test func aPeerThatAcknowledgesNothingEndsWithinTheUserTimeout() async throws {
        let lab = try LoopActor()
        defer { lab.stop() }
        let inbox = Inbox<NetworkError?>()
        let server = Confined<TCPConnection?>(nil)
        try await lab.run { loop in
            let listener = try TCPListener(on: loop, address: loopback)
            listener.onConnection = { server.value = $0 }  // never reads: its window shuts
            var options = TCPOptions()
            options.userTimeout = .milliseconds(300)
            let client = try TCPConnection(on: loop, to: listener.localAddress, options: options)
            client.onEvent = { if case .closed(let error) = $0 { inbox.put(error) } }
            client.write([UInt8](repeating: 7, count: 20_000_000))
        }
        guard case .timedOut = try await inbox.next() else {
            Issue.record("expected a timeout")
            return
        }
    }
}
