import Foundation
import Glibc
import SoraLoad
import SoraMessages
import SoraNetwork
import SoraSecureTransport
import SoraWire

/// Servers in processes of their own under real load on loopback: what forwarding costs ours and Janus, and what
/// a thousand idle clients cost ours.
struct ForwardingLoad {
    let seconds: Double
    private let loops: [EventLoop]
    private let certificate: DTLSCertificate
    private let address: IPAddress
    private let folder: URL

    init(seconds: Double) throws {
        self.seconds = seconds
        loops = [try EventLoop(name: "load-a"), try EventLoop(name: "load-b")]
        certificate = try DTLSCertificate.selfSigned()
        // Janus gathers no loopback candidates: scripts/in-netns.sh makes this address.
        let wanted = "10.99.0.1"
        address = ServerProcess.has(wanted) ? IPAddress(wanted) ?? .loopbackV4 : .loopbackV4
        folder = FileManager.default.temporaryDirectory.appendingPathComponent("sora-bench-\(getpid())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        // Two sockets for each of a thousand clients here, one in the server, which inherits the limit.
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }

    func close() {
        for loop in loops { loop.stop() }
        try? FileManager.default.removeItem(at: folder)
    }

    // MARK: Tests

    /// One publisher of 1 Mbit/s to 100 viewers: ours, then Janus, then the ratio.
    func forward(viewers: Int = 100, bitrate: Int = 1_000_000) async throws {
        let ours = try await withSora { port in
            let publisher = try await join(port, .sendonly, "load", bitrate: bitrate)
            let watchers = try await joinAll(viewers, port, .recvonly, "load", bitrate: bitrate)
            return ([publisher], watchers)
        } measure: { server, publishers, viewers in
            try await measure(server, publishers, viewers, bitrate: bitrate, copies: viewers.count)
        }
        report(ours, anchor: "sora-server", test: "forward", viewers: viewers, bitrate: bitrate)
        guard FileManager.default.isExecutableFile(atPath: "/usr/bin/janus") else {
            return notice("forward: skipped Janus, which is not installed (scripts/setup.sh bench installs it)")
        }
        guard address != .loopbackV4 else {
            return notice("forward: skipped Janus, which needs an interface beside loopback: scripts/in-netns.sh")
        }
        let theirs = try await janus(viewers: viewers, bitrate: bitrate)
        report(theirs, anchor: "janus", test: "forward", viewers: viewers, bitrate: bitrate)
        Report.emit(
            "forward-ratio", ["packets_per_core_second": theirs.microsecondsPerPacket / ours.microsecondsPerPacket],
            anchor: "sora-server/janus")
    }

    /// 20 members, each of whom sends to all others.
    func allToAll(members: Int = 20, bitrate: Int = 200_000) async throws {
        let result = try await withSora { port in
            let all = try await joinAll(members, port, .sendrecv, "load", bitrate: bitrate)
            return (all, all)
        } measure: { server, publishers, viewers in
            // The last to join is known to all when the server's re-offers have been answered.
            try await Task.sleep(for: .seconds(2))
            for viewer in viewers where await viewer.inboundStreams < members - 1 {
                throw ServerProcess.Failure(description: "a member was not offered the streams of all others")
            }
            return try await measure(server, publishers, viewers, bitrate: bitrate, copies: members - 1)
        }
        report(result, anchor: "sora-server", test: "all-to-all", viewers: members, bitrate: bitrate)
    }

    /// A thousand connected messaging clients that say nothing, in channels of 50.
    func idle(clients: Int = 1000, perChannel: Int = 50) async throws {
        let port = try ServerProcess.freePort()
        let server = try startSora(port)
        defer { server.stop() }
        try await listening(port, server)
        let before = server.residentMiB
        var members: [SoraMember] = []
        for first in stride(from: 0, to: clients, by: perChannel) {
            members += try await joinAll(
                min(perChannel, clients - first), port, .sendrecv, "idle-\(first / perChannel)", bitrate: nil)
        }
        try await Task.sleep(for: .seconds(5))
        let cpu = server.cpuSeconds
        try await Task.sleep(for: .seconds(seconds))
        let used = server.cpuSeconds - cpu
        var alive = 0
        for member in members {
            let channels = await member.node?.openChannels ?? 0
            if await member.end == nil, channels > 0 { alive += 1 }
        }
        Report.emit(
            "idle",
            [
                "clients": Double(alive), "resident_mb": server.residentMiB, "resident_mb_before": before,
                "cpu_percent": used / seconds * 100,
            ], anchor: "sora-server")
        for member in members { await member.leave() }
    }

    // MARK: Measuring

    struct Result: Sendable {
        var seconds: Double
        var cpu: Double
        /// Packets that should have arrived, that did, and of these by retransmission.
        var expected: Int
        var received: Int
        var repaired: Int
        var microsecondsPerPacket: Double { cpu / Double(max(1, received)) * 1e6 }
    }

    private func measure(
        _ server: ServerProcess, _ publishers: [LoadNode], _ viewers: [LoadNode], bitrate: Int, copies: Int
    ) async throws -> Result {
        // Warm: streams are bound, key frames asked for, estimates made.
        try await send(publishers, bitrate: bitrate, for: 2)
        let before = (await total(publishers), await total(viewers), server.cpuSeconds, EventLoop.clock())
        try await send(publishers, bitrate: bitrate, for: seconds)
        let (sent, received) = (await total(publishers) - before.0, await total(viewers) - before.1)
        return Result(
            seconds: (EventLoop.clock() - before.3).inSeconds, cpu: server.cpuSeconds - before.2,
            expected: sent.sent * copies, received: received.received, repaired: received.repaired)
    }

    /// Sends for a while, and waits until what is under way has arrived.
    private func send(_ publishers: [LoadNode], bitrate: Int, for seconds: Double) async throws {
        for publisher in publishers {
            await publisher.startSending(bitrate: bitrate)
            // Cameras do not take their pictures at the same moment.
            if publishers.count > 1 { try await Task.sleep(for: .milliseconds(33 / publishers.count)) }
        }
        try await Task.sleep(for: .seconds(seconds))
        for publisher in publishers { await publisher.stopSending() }
        try await Task.sleep(for: .milliseconds(500))
    }

    private func total(_ nodes: [LoadNode]) async -> LoadNode.Count {
        var sum = LoadNode.Count()
        for node in nodes { sum = sum + (await node.count) }
        return sum
    }

    private func report(_ result: Result, anchor: String, test: String, viewers: Int, bitrate: Int) {
        let lost = result.expected - result.received
        Report.emit(
            test,
            [
                "viewers": Double(viewers), "kbit_s": Double(bitrate) / 1000, "seconds": result.seconds,
                "packets": Double(result.received), "packets_per_second": Double(result.received) / result.seconds,
                "lost": Double(lost), "loss_percent": Double(lost) / Double(max(1, result.expected)) * 100,
                "repaired": Double(result.repaired), "cpu_percent": result.cpu / result.seconds * 100,
                "us_per_packet": result.microsecondsPerPacket,
                "packets_per_core_second": 1e6 / result.microsecondsPerPacket,
            ], anchor: anchor)
    }

    private func notice(_ text: String) { FileHandle.standardError.write(Data((text + "\n").utf8)) }

    // MARK: Our server

    private func startSora(_ port: UInt16) throws -> ServerProcess {
        let own = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let executable = URL(fileURLWithPath: own).deletingLastPathComponent().appendingPathComponent("sora").path
        guard FileManager.default.isExecutableFile(atPath: executable) else {
            throw ServerProcess.Failure(description: "no \(executable); build it with --product sora")
        }
        return try ServerProcess(
            executable,
            ["serve", "--host", "127.0.0.1", "--port", String(port), "--media-address", "\(address)", "--loops", "1"],
            log: folder.appendingPathComponent("sora.log").path)
    }

    private func listening(_ port: UInt16, _ server: ServerProcess) async throws {
        for _ in 0..<100 where server.isRunning {
            if let descriptor = try? JanusSession.connect(port) {
                Glibc.close(descriptor)
                return
            }
            try await Task.sleep(for: .milliseconds(100))
        }
        let logs = ["sora.log", "janus.log"].compactMap {
            try? String(contentsOf: folder.appendingPathComponent($0), encoding: .utf8)
        }
        throw ServerProcess.Failure(description: "the server did not start: \(logs.joined().suffix(2000))")
    }

    private func withSora(
        _ setUp: (UInt16) async throws -> ([SoraMember], [SoraMember]),
        measure: (ServerProcess, [LoadNode], [LoadNode]) async throws -> Result
    ) async throws -> Result {
        let port = try ServerProcess.freePort()
        let server = try startSora(port)
        defer { server.stop() }
        try await listening(port, server)
        let (publishers, viewers) = try await setUp(port)
        let result = try await measure(server, await nodes(of: publishers), await nodes(of: viewers))
        // To the end they answer what the server says.
        for member in publishers + viewers {
            if let end = await member.end { throw ServerProcess.Failure(description: "a member was lost: \(end)") }
        }
        for member in publishers + viewers { await member.leave() }
        return result
    }

    private func nodes(of members: [SoraMember]) async -> [LoadNode] {
        var nodes: [LoadNode] = []
        for member in members { if let node = await member.node { nodes.append(node) } }
        return nodes
    }

    /// - Parameter bitrate: nil: messaging alone.
    private func join(
        _ port: UInt16, _ role: ConnectionRole, _ channel: String, bitrate: Int?, loop index: Int = 0
    ) async throws -> SoraMember {
        var connect = ConnectMessage(role: role, channelID: channel)
        connect.audio = .enabled(false)
        if let bitrate {
            connect.dataChannelSignaling = false
            var wishes = JSONObject()
            wishes["codec_type"] = "VP8"
            // What is sent is bounded by our stream; the server's bound lies above it.
            if role.sends { wishes["bit_rate"] = .integer(Int64(bitrate / 1000 * 2)) }
            connect.video = MediaSetting(json: .object(wishes))
        } else {
            connect.video = .enabled(false)
            connect.dataChannelSignaling = true
            connect.dataChannels = [DataChannelDefinition(label: "#load", direction: .sendrecv)]
        }
        let member = SoraMember(
            loop: loops[index % loops.count], certificate: certificate, bufferSize: bitrate == nil ? 64 << 10 : 1 << 20)
        try await member.join("ws://127.0.0.1:\(port)/signaling", connect, address: address)
        return member
    }

    /// Ten at a time.
    private func joinAll(_ count: Int, _ port: UInt16, _ role: ConnectionRole, _ channel: String, bitrate: Int?)
        async throws -> [SoraMember]
    {
        var members: [SoraMember] = []
        for first in stride(from: 0, to: count, by: 10) {
            try await withThrowingTaskGroup(of: SoraMember.self) { group in
                for index in first..<min(first + 10, count) {
                    group.addTask { try await join(port, role, channel, bitrate: bitrate, loop: index) }
                }
                for try await member in group { members.append(member) }
            }
        }
        return members
    }

    // MARK: Janus

    private func janus(viewers count: Int, bitrate: Int) async throws -> Result {
        let port = try ServerProcess.freePort()
        try writeJanusConfiguration(port)
        let server = try ServerProcess(
            "/usr/bin/janus", ["-F", folder.path], log: folder.appendingPathComponent("janus.log").path)
        defer { server.stop() }
        try await listening(port, server)
        let session = JanusSession(port: port)
        try session.open(publishers: 1)

        let publisher = LoadNode(loop: loops[0], certificate: certificate)
        try await publisher.open(at: address)
        let published = try session.publish(try session.attach(), offer: await publisher.makeOffer())
        try await publisher.accept(answer: published.answer)
        guard await publisher.connected() else {
            throw ServerProcess.Failure(description: "no connection to Janus to publish")
        }
        var viewers: [LoadNode] = []
        for index in 0..<count {
            let viewer = LoadNode(loop: loops[index % loops.count], certificate: certificate)
            try await viewer.open(at: address)
            let handle = try session.attach()
            let offer = try session.subscribe(handle, to: published.feed)
            try session.start(handle, answer: await viewer.answer(offer))
            guard await viewer.connected() else {
                throw ServerProcess.Failure(description: "viewer \(index) did not connect to Janus")
            }
            viewers.append(viewer)
        }
        let result = try await measure(server, [publisher], viewers, bitrate: bitrate, copies: count)
        for node in [publisher] + viewers { await node.close() }
        return result
    }

    /// The plug-in and the interface that are needed, on loopback and the benchmark's address alone; the rest as
    /// Janus has it, with ICE lite as our server has it.
    private func writeJanusConfiguration(_ port: UInt16) throws {
        let plugins = [
            "audiobridge", "duktape", "echotest", "lua", "nosip", "recordplay", "sip", "streaming", "textroom",
            "videocall", "voicemail",
        ].map { "libjanus_\($0).so" }.joined(separator: ",")
        let transports = ["mqtt", "nanomsg", "pfunix", "rabbitmq", "websockets"].map { "libjanus_\($0).so" }
            .joined(separator: ",")
        let files = [
            "janus.jcfg": """
            general: { debug_level = 2, session_timeout = 0 }
            nat: { ice_lite = true, ice_enforce_list = "\(address)" }
            plugins: { disable = "\(plugins)" }
            transports: { disable = "\(transports)" }
            """,
            "janus.plugin.videoroom.jcfg": "general: { }\n",
            "janus.transport.http.jcfg": """
            general: { json = "compact", base_path = "/janus", http = true, port = \(port), ip = "127.0.0.1", https = false }
            admin: { admin_http = false }
            """,
        ]
        for (name, text) in files {
            try text.write(to: folder.appendingPathComponent(name), atomically: true, encoding: .utf8)
        }
    }
}
