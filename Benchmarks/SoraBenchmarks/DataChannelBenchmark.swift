import Foundation
import SoraNetwork
import SoraSecureTransport
import SoraWire

/// Data channels between two peer connections in one process over loopback UDP, each on its own
/// thread: measured as the peers in Benchmarks/peers measure themselves.
enum DataChannelBenchmark {
    static func run(seconds: Double, only tests: Set<String>) async throws {
        let loops = [try EventLoop(name: "bench-a"), try EventLoop(name: "bench-b")]
        defer { for loop in loops { loop.stop() } }
        let certificates = [try DTLSCertificate.selfSigned(), try DTLSCertificate.selfSigned()]
        if tests.contains("connect") { try await connect(loops, certificates) }
        if tests.contains("throughput") {
            for ordered in [true, false] {
                for size in [1024, 16_384, 65_536, 262_144] {
                    try await throughput(loops, certificates, ordered: ordered, size: size, seconds: seconds)
                }
            }
        }
        if tests.contains("rtt") { try await roundTrip(loops, certificates) }
        if tests.contains("rss") { try await memory(loops, certificates) }
    }

    private static func connect(_ loops: [EventLoop], _ certificates: [DTLSCertificate]) async throws {
        for _ in 0..<5 { await (try await NodePair.open(loops, certificates: certificates)).close() }
        var times: [Double] = []
        let cpu = Usage.cpuSeconds
        for _ in 0..<50 {
            let pair = try await NodePair.open(loops, certificates: certificates)
            times.append(pair.connectMilliseconds)
            await pair.close()
        }
        let used = (Usage.cpuSeconds - cpu) / 50 * 1000
        times.sort()
        Report.emit(
            "connect", ["n": 50, "p50_ms": times[25], "p95_ms": times[47], "cpu_ms_per_pair": used])
    }

    private static func throughput(
        _ loops: [EventLoop], _ certificates: [DTLSCertificate], ordered: Bool, size: Int, seconds: Double
    ) async throws {
        let pair = try await NodePair.open(loops, certificates: certificates, ordered: ordered)
        await pair.a.startFlood(size: size)
        try await Task.sleep(for: .seconds(1))
        let before = await pair.b.received
        let begin = EventLoop.clock()
        let cpu = Usage.cpuSeconds
        try await Task.sleep(for: .seconds(seconds))
        let elapsed = (EventLoop.clock() - begin).inSeconds
        let after = await pair.b.received
        let used = Usage.cpuSeconds - cpu
        await pair.a.stopFlood()
        await pair.close()
        Report.emit(
            "throughput",
            [
                "unordered": ordered ? 0 : 1, "size": Double(size),
                "mbps": Double(after.bytes - before.bytes) * 8 / elapsed / 1e6,
                "msgs": Double(after.messages - before.messages) / elapsed, "cpu_cores": used / elapsed,
            ])
    }

    private static func roundTrip(_ loops: [EventLoop], _ certificates: [DTLSCertificate]) async throws {
        let pair = try await NodePair.open(loops, certificates: certificates)
        await pair.b.setEchoes(true)
        _ = try await pair.a.pingPong(count: 200)
        var times = try await pair.a.pingPong(count: 3000)
        await pair.close()
        times.sort()
        Report.emit("rtt100", ["n": 3000, "p50_us": times[1500], "p99_us": times[2970]])
    }

    private static func memory(_ loops: [EventLoop], _ certificates: [DTLSCertificate]) async throws {
        let before = Usage.residentKiB
        var pairs: [NodePair] = []
        let begin = EventLoop.clock()
        for _ in 0..<100 { pairs.append(try await NodePair.open(loops, certificates: certificates)) }
        let setup = (EventLoop.clock() - begin).inSeconds
        let after = Usage.residentKiB
        let cpu = Usage.cpuSeconds
        try await Task.sleep(for: .seconds(2))
        Report.emit(
            "rss",
            [
                "pairs": 100, "kib_per_pc": (after - before) / 200, "setup_s": setup,
                "idle_cpu_pct": (Usage.cpuSeconds - cpu) / 2 * 100, "threads": Double(Usage.threads),
            ])
        for pair in pairs { await pair.close() }
    }
}

/// What the kernel says of this process.
enum Usage {
    static var cpuSeconds: Double {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
        return seconds(usage.ru_utime) + seconds(usage.ru_stime)
    }
    static var residentKiB: Double { Double(field("VmRSS") ?? 0) }
    static var threads: Int { field("Threads") ?? 0 }

    private static func field(_ name: String) -> Int? {
        let text = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
        for line in text.split(separator: "\n") where line.hasPrefix(name + ":") {
            return Int(line.dropFirst(name.count + 1).split(whereSeparator: { $0 == " " || $0 == "\t" }).first ?? "")
        }
        return nil
    }
}

/// One JSON line per result, as the peers print theirs.
enum Report {
    /// - Parameter words: fields that are no numbers; without quotation marks.
    static func emit(
        _ test: String, _ values: [String: Double], words: [String: String] = [:], anchor: String = "sora"
    ) {
        let rounded = values.mapValues { ($0 * 10).rounded() / 10 }
        let fields =
            words.sorted { $0.key < $1.key }.map { "\"\($0.key)\": \"\($0.value)\"" }
            + rounded.sorted { $0.key < $1.key }.map { "\"\($0.key)\": \($0.value)" }
        let line = "{\"anchor\": \"\(anchor)\", \"test\": \"\(test)\", \(fields.joined(separator: ", "))}\n"
        FileHandle.standardOutput.write(Data(line.utf8))
    }
}
