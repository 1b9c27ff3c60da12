import SoraNetwork
import SoraWire
import Testing

/// The intended pattern: an actor whose executor is the loop owns its sockets as plain state. Its methods
/// run on the loop without a hop, handlers enter it with `assumeIsolated`, and nothing else can reach the
/// sockets.
private actor Driver {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    private var udp: UDPSocket?
    private var tcp: TCPConnection?
    private var timer: LoopTimer?
    private let log: Inbox<String>

    init(loop: EventLoop, log: Inbox<String>) {
        self.loop = loop
        self.log = log
    }

    deinit { log.put("driver gone") }

    func start(tcp target: SocketAddress) throws -> SocketAddress {
        let udp = try UDPSocket(on: loop, id: SocketID(1), address: loopback)
        udp.onDatagrams = { [weak self] batch in self?.assumeIsolated { $0.receive(batch) } }
        self.udp = udp
        let tcp = try TCPConnection(on: loop, to: target, deadline: loop.now + .seconds(5))
        tcp.onEvent = { [weak self] event in self?.assumeIsolated { $0.handle(event) } }
        self.tcp = tcp
        timer = loop.scheduleTimer(at: loop.now + .milliseconds(1)) { [weak self] in
            self?.assumeIsolated { $0.tick() }
        }
        return udp.localAddress
    }

    func send(_ payload: [UInt8], to remote: SocketAddress) {
        udp?.send(Datagram(socket: SocketID(1), remote: remote, payload: payload))
    }

    func close() {
        udp?.close()
        tcp?.close()
        timer?.cancel()
    }

    private func receive(_ batch: [Datagram]) {
        for datagram in batch {
            tcp?.write(datagram.payload)  // from one socket to the other: a plain call
        }
    }

    private func handle(_ event: StreamEvent) {
        switch event {
        case .opened: log.put("opened")
        case .data(let data): log.put(String(decoding: data, as: UTF8.self))
        case .writable, .ended, .closed: break
        }
    }

    private func tick() { log.put("tick") }
}

@Suite struct PinnedDriverTests {
    // EVT5: handlers hold the driver weakly; dropping it ends it, and late events find nobody.
    @Test func anActorOnTheLoopOwnsItsSockets() async throws {
        let lab = try LoopActor()
        defer { lab.stop() }
        let target = try await lab.run { try TCPTests.startEcho(on: $0) }
        let log = Inbox<String>()
        var driver: Driver? = Driver(loop: lab.loop, log: log)
        let address = try await #require(driver).start(tcp: target)
        let first = try await log.collect { $0.count == 2 }
        #expect(Set(first) == ["opened", "tick"])
        await driver?.send(bytes("through both"), to: address)
        #expect(try await log.next() == "through both")
        await driver?.close()
        driver = nil
        #expect(try await log.next() == "driver gone")
    }

    // A hop between two actors of one loop crosses no thread.
    @Test func actorsOfOneLoopCallEachOtherOnIt() async throws {
        let loop = try EventLoop(name: "shared-loop")
        defer { loop.stop() }
        actor Counter {
            nonisolated let loop: EventLoop
            nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
            var count = 0
            init(loop: EventLoop) { self.loop = loop }
            func add() -> Bool {
                count += 1
                return loop.isOnLoop
            }
            func pass(to other: Counter, times: Int) async -> Bool {
                for _ in 0..<times { guard await other.add() else { return false } }
                return loop.isOnLoop
            }
        }
        let (a, b) = (Counter(loop: loop), Counter(loop: loop))
        #expect(await a.pass(to: b, times: 2000))
        #expect(await b.count == 2000)
    }
}
