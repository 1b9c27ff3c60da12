import Foundation
import SoraLoad
import SoraMessages
import SoraNetwork

/// `sora load`: many connections to a Sora server, with figures.
enum LoadCommand {
    static let definition = CommandDefinition(
        name: "load",
        abstract: "Puts a server under load with many connections and measures.",
        discussion: """
            Connects, sends for --duration, and prints connects a second, latencies and what was lost. Use it on \
            servers of your own only.
             sora load --connections 200 --channels 20 --traffic messages --rate 20 --size 500
             sora load --connections 101 --publishers 1 --traffic video --bit-rate 1000
            Each connection is a whole one (WebSocket, ICE, DTLS, SCTP, SRTP), also through the server's TURN over \
            UDP. Latencies are those of this process: from sending to receiving.
            """,
        options: [
            .value("url", "url", short: "u", default: "ws://127.0.0.1:5000/signaling", "Signaling URL (ws or wss)."),
            .value("channel", "id", short: "c", default: "load", "Channel; with several a number is added."),
            .value("channels", "number", default: "1", "Channels over which the connections are spread."),
            .value("connections", "number", short: "n", default: "10", "Connections in all."),
            .value("publishers", "number", "In each channel so many send, the others receive; without it all send."),
            .value(
                "traffic", "kind", default: "messages", allowed: ["messages", "video", "none"],
                "What publishers send."),
            .value("rate", "number", default: "10", "Messages a second of each publisher."),
            .value("size", "bytes", default: "200", "Bytes of a message, at least 20."),
            .flag("unreliable", "Messages may be lost and overtake each other."),
            .value("bit-rate", "kbit/s", default: "500", "Video of each publisher."),
            .value("ramp", "number", default: "50", "Connections begun in a second."),
            .value("duration", "seconds", default: "10", "Of the traffic, when all are connected."),
            .value("timeout", "seconds", default: "30", "Limit for each connection."),
            .value("metadata", "json", "Metadata of each connect: JSON, or @FILE."),
            .value("ca", "file", "PEM file with certificate authorities to trust instead of the system's."),
            .flag("insecure", "Accepts any server certificate. For tests only."),
            .value("loops", "number", default: "2", "Event loops, each a thread."),
            .flag("json", "One JSON object a second, and one at the end."),
            .flag("quiet", short: "q", "Nothing but the result."),
        ],
        run: run)

    static func run(_ arguments: ParsedArguments) async throws -> ExitStatus {
        let plan = try plan(arguments)
        raiseDescriptorLimit()
        let run: LoadRun
        do {
            run = try LoadRun(plan)
        } catch {
            throw CommandFailure(.usage, "\(error)")
        }
        let isJSON = arguments.has("json")
        let isQuiet = arguments.has("quiet")
        let job = Task {
            await run.run { second in
                if isJSON { Terminal.result(object(second)) } else if !isQuiet { Terminal.log(line(second)) }
            }
        }
        Interruption.onRequest { job.cancel() }
        let report = await job.value
        if isJSON { Terminal.result(object(report)) } else { Terminal.result(text(report, plan)) }
        for (reason, count) in report.failures.sorted(by: { $0.value > $1.value }).prefix(5) {
            Terminal.error("\(count) connections failed: \(reason)")
        }
        if report.connected == 0 { return .unavailable }
        if Interruption.isRequested { return .interrupted }
        return report.failures.isEmpty && report.lost == 0 ? .success : .failure
    }

    static func plan(_ arguments: ParsedArguments) throws -> LoadPlan {
        var plan = LoadPlan(url: arguments.string("url") ?? "ws://127.0.0.1:5000/signaling")
        guard let url = URL(string: plan.url), ["ws", "wss"].contains(url.scheme?.lowercased()),
            url.host?.isEmpty == false
        else { throw CommandFailure(.usage, "--url takes a ws or wss URL, not '\(plan.url)'") }
        plan.channel = arguments.string("channel") ?? plan.channel
        plan.channels = try arguments.integer("channels", in: 1...100_000) ?? 1
        plan.connections = try arguments.integer("connections", in: 1...100_000) ?? 10
        plan.publishers = try arguments.integer("publishers", in: 0...100_000)
        if let publishers = plan.publishers, publishers > plan.connections {
            throw CommandFailure(
                .usage,
                "--publishers \(publishers) are more than --connections \(plan.connections), whose part they are")
        }
        switch arguments.string("traffic") {
        case "none": plan.traffic = .none
        case "video":
            plan.traffic = .video(bitrate: (try arguments.integer("bit-rate", in: 10...50_000) ?? 500) * 1000)
        default:
            plan.traffic = .messages(
                perSecond: try arguments.number("rate", in: 0.01...100_000) ?? 10,
                size: try arguments.integer("size", in: Stamp.length...262_144) ?? 200)
        }
        plan.isUnreliable = arguments.has("unreliable")
        plan.rampPerSecond = try arguments.number("ramp", in: 0.01...100_000) ?? 50
        plan.duration = .milliseconds(Int64((try arguments.number("duration", in: 0...1e7) ?? 10) * 1000))
        plan.connectTimeout = .milliseconds(Int64((try arguments.number("timeout", in: 0.1...3600) ?? 30) * 1000))
        if let text = arguments.string("metadata") ?? ProcessInfo.processInfo.environment["SORA_METADATA"] {
            let source = text.hasPrefix("@") ? try ConnectionOptions.text(ofFile: String(text.dropFirst())) : text
            guard let value = try? JSONValue(parsing: source) else {
                throw CommandFailure(.usage, "--metadata is not JSON")
            }
            plan.metadata = value
        }
        if arguments.has("insecure") {
            plan.trust = .anything
        } else if let path = arguments.string("ca") {
            guard let bundle = try? CertificateBundle(pem: try ConnectionOptions.text(ofFile: path)) else {
                throw CommandFailure(.usage, "--ca '\(path)' holds no certificate (PEM)")
            }
            plan.trust = .authorities(bundle)
        }
        plan.loops = try arguments.integer("loops", in: 1...64) ?? 2
        return plan
    }

    /// Two sockets for each connection.
    private static func raiseDescriptorLimit() {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }

    // MARK: Output

    private static func milliseconds(_ histogram: LatencyHistogram, _ share: Double) -> Double? {
        histogram.percentile(share).map { ($0 / .microseconds(1)).rounded() / 1000 }
    }

    private static func percentiles(_ histogram: LatencyHistogram) -> [String: Any] {
        var object: [String: Any] = [:]
        for (name, share) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)] {
            if let value = milliseconds(histogram, share) { object["\(name)_ms"] = value }
        }
        return object
    }

    private static func object(_ second: LoadSecond) -> [String: Any] {
        [
            "event": "second", "second": second.second, "connected": second.connected, "failed": second.failed,
            "lost_connections": second.lost, "sent": second.traffic.sent, "received": second.traffic.received,
            "latency": percentiles(second.traffic.latency),
        ]
    }

    private static func object(_ report: LoadReport) -> [String: Any] {
        [
            "event": "result", "connected": report.connected, "failures": report.failures,
            "lost_connections": report.lost, "connects_per_second": round(report.connectsPerSecond * 10) / 10,
            "connect": percentiles(report.connecting), "seconds": round(report.seconds * 1000) / 1000,
            "sent": report.traffic.sent, "skipped": report.traffic.skipped, "received": report.traffic.received,
            "repaired": report.traffic.repaired, "expected": report.expected, "missing": report.missing,
            "latency": percentiles(report.traffic.latency),
        ]
    }

    private static func words(_ histogram: LatencyHistogram) -> String {
        let parts = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("max", 1.0)].compactMap { name, share in
            milliseconds(histogram, share).map { "\(name) \(String(format: "%.2f", $0))" }
        }
        return parts.isEmpty ? "-" : parts.joined(separator: "  ") + " ms"
    }

    private static func line(_ second: LoadSecond) -> String {
        "\(second.second) s: \(second.connected) connected, \(second.failed) failed, \(second.traffic.sent) sent, "
            + "\(second.traffic.received) received, \(words(second.traffic.latency))"
    }

    private static func text(_ report: LoadReport, _ plan: LoadPlan) -> String {
        let share = report.expected > 0 ? Double(report.missing) / Double(report.expected) * 100 : 0
        let failed = report.failures.values.reduce(0, +)
        return """
            connections  \(report.connected) of \(plan.connections), \(failed) failed, \(report.lost) lost
            connecting   \(String(format: "%.1f", report.connectsPerSecond)) a second  \(words(report.connecting))
            sent         \(report.traffic.sent) in \(String(format: "%.1f", report.seconds)) s, \
            \(report.traffic.skipped) held back
            received     \(report.traffic.received) of \(report.expected), \(report.missing) missing \
            (\(String(format: "%.3f", share)) %), \(report.traffic.repaired) by retransmission
            latency      \(words(report.traffic.latency))
            """
    }
}
