import SoraNetwork
import SoraWire

/// Throughput and round trip of ``UDPSocket`` over loopback, both ends on one loop and so on one core.
enum UDPBenchmark {
    struct Result: Sendable {
        /// Datagrams of 1,200 bytes sent and received per second, in bursts of `burst`.
        var burst: Int
        var packetsPerSecond: Double
        /// System calls to send, per datagram.
        var sendCallsPerPacket: Double
        /// Datagrams that the kernel dropped.
        var lost: Int
    }

    /// Sends bursts, each when the last has arrived, for `duration`.
    static func run(burst: Int, duration: Duration = .seconds(1)) async throws -> Result {
        let loop = try EventLoop(name: "udp-benchmark")
        defer { loop.stop() }
        let driver = UDPBenchmarkDriver(loop: loop, burst: burst)
        return try await driver.run(for: duration)
    }
}

private actor UDPBenchmarkDriver {
    nonisolated let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private let burst: Int
    private var source: UDPSocket?
    private var target: SocketAddress?
    private var arrived = 0
    private var total = 0
    private var start = Instant.zero
    private var end = Instant.zero
    private var timer: LoopTimer?
    private var lost = 0
    private var waiter: CheckedContinuation<UDPBenchmark.Result, Never>?

    init(loop: EventLoop, burst: Int) {
        self.loop = loop
        self.burst = burst
    }

    func run(for duration: Duration) async throws -> UDPBenchmark.Result {
        let any = SocketAddress(.loopbackV4, port: 0)
        let sink = try UDPSocket(on: loop, id: SocketID(1), address: any, bufferSize: 8 << 20)
        sink.onDatagrams = { [weak self] batch in self?.assumeIsolated { $0.received(batch.count) } }
        source = try UDPSocket(on: loop, id: SocketID(0), address: any, bufferSize: 8 << 20)
        target = sink.localAddress
        // A lost datagram would stop the clocking: go on with the next burst.
        timer = LoopTimer(on: loop) { [weak self] in self?.assumeIsolated { $0.goOn() } }
        start = EventLoop.clock()
        end = start + duration
        defer { sink.close() }
        return await withCheckedContinuation { continuation in
            waiter = continuation
            sendBurst()
        }
    }

    private func sendBurst() {
        guard let source, let target else { return }
        arrived = 0
        for _ in 0..<burst {
            source.send(Datagram(socket: source.id, remote: target, payload: [UInt8](repeating: 1, count: 1200)))
        }
        timer?.schedule(at: loop.now + .milliseconds(20))
    }

    private func received(_ count: Int) {
        arrived += count
        total += count
        if arrived >= burst { next() }
    }

    private func goOn() {
        lost += burst - arrived
        next()
    }

    private func next() {
        let now = EventLoop.clock()
        guard now >= end else { return sendBurst() }
        timer?.cancel()
        let (calls, sent) = source.map { ($0.statistics.sendCalls, $0.statistics.sent) } ?? (0, 0)
        source?.close()
        waiter?.resume(
            returning: UDPBenchmark.Result(
                burst: burst, packetsPerSecond: Double(total) / (now - start).inSeconds,
                sendCallsPerPacket: Double(calls) / Double(max(1, sent)), lost: lost))
        waiter = nil
    }
}
