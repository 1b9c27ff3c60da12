#if Media
import Foundation
import Sora
import SoraDevices
import SoraFrames
import SoraLocking

/// `sora demo`: the main job on real media, each part in a process of its own, and a table of what
/// really happened. `make demo` runs it.
enum DemoCommand {
    static let definition = CommandDefinition(
        name: "demo",
        abstract: "Plays a file through a local server, records it, and shows what happened.",
        discussion: """
            Starts a local server, publishes the file as camera and microphone, watches and records it in a second \
            process, exchanges messages and calls an RPC meanwhile. Exit status 0 only if all of it worked.
            """,
        options: [
            .value("input", "file", short: "i", "Media file; without it a test pattern."),
            .value("seconds", "number", default: "12", "How long to watch."),
            .value("output", "folder", default: "demo", "Where watched.webm and frame.png go."),
        ],
        run: run)

    static func run(_ arguments: ParsedArguments) async throws -> ExitStatus {
        let seconds = try arguments.integer("seconds", in: 3...600) ?? 12
        let folder = arguments.string("output") ?? "demo"
        if let input = arguments.string("input"), !FileManager.default.isReadableFile(atPath: input) {
            throw CommandFailure(.noInput, "cannot read '\(input)'")
        }
        do {
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        } catch {
            throw CommandFailure(.cannotCreate, "cannot create the folder '\(folder)'")
        }
        let recording = folder + "/watched.webm"
        let picture = folder + "/frame.png"
        for old in [recording, picture] { try? FileManager.default.removeItem(atPath: old) }

        // From here on Ctrl-C ends the parts, too: they are processes of their own.
        Interruption.onRequest { Terminal.log("ending the parts of the demo; Ctrl-C once more ends them at once") }
        Interruption.onSecondRequest { Part.killAll() }
        let server = try Part("server", ["serve", "--port", "0", "--video-codec", "VP8", "--json"])
        defer { server.stop() }
        guard
            let url = await server.first(within: 10, where: { $0["event"] as? String == "serving" })?["url"] as? String
        else { throw failure(.unavailable, "the local server did not start: \(server.standardError)") }
        Terminal.log("local server at \(url)")
        let common = ["--url", url, "--channel", "demo", "--json", "--timeout", "15"]
        let total = Double(seconds)

        var publish = ["publish", "--video-codec", "VP8", "--video-bit-rate", "2000", "--duration", String(total + 6)]
        if let input = arguments.string("input") { publish += ["--input", input, "--loop"] }
        let publisher = try Part("publisher", publish + common)
        defer { publisher.stop() }
        guard let published = await publisher.first(within: 20, where: { $0["event"] as? String == "connected" }) else {
            throw failure(.failure, "the publisher did not connect: \(publisher.standardError)")
        }
        Terminal.log("publishing \(arguments.string("input") ?? "a test pattern")")
        let watcher = try Part(
            "watcher",
            [
                "watch", "--record", recording, "--snapshot", picture, "--snapshot-after", "30", "--duration",
                String(total),
            ]
                + common)
        defer { watcher.stop() }
        guard let watched = await watcher.first(within: 20, where: { $0["event"] as? String == "connected" }) else {
            throw failure(.failure, "the watcher did not connect: \(watcher.standardError)")
        }

        let messageCount = 20
        let listener = try Part(
            "listener",
            ["message", "--label", "#demo", "--expect", String(messageCount), "--no-input", "--duration", "20"] + common
        )
        defer { listener.stop() }
        _ = await server.first(within: 10) { ($0["detail"] as? String) == "#demo" }
        var talk = ["message", "--label", "#demo", "--no-input"]
        for number in 1...messageCount { talk += ["--send", "message \(number)"] }
        let speaker = try Part("speaker", talk + common)
        defer { speaker.stop() }
        let caller = try Part(
            "caller", ["rpc", "PutSignalingNotifyMetadata", #"{"metadata":{"name":"demo"}}"#] + common)
        defer { caller.stop() }

        let progress = Progress(arguments)
        let begin = ContinuousClock.now
        while watcher.isRunning, begin.duration(to: .now) < .seconds(total + 15), !Interruption.isRequested {
            let frames = watcher.last("stats")?["frames"] as? Int ?? 0
            progress.show(
                "watching: \(frames) frames, \(listener.count { $0["label"] as? String == "#demo" }) of \(messageCount) messages"
            )
            try? await Task.sleep(for: .milliseconds(250))
        }
        progress.finish()
        if Interruption.isRequested { throw interrupted }
        let messages = listener.count { $0["label"] as? String == "#demo" }
        let answer = caller.all.first { $0["name"] as? String == "demo" }
        let summary = watcher.last("summary") ?? [:]
        publisher.interrupt()
        _ = await publisher.ended(within: 5)
        let sent = publisher.last("summary") ?? publisher.last("stats") ?? [:]

        return report(
            published: published, watched: watched, sent: sent, summary: summary, messages: messages,
            messageCount: messageCount, rpcWorked: answer != nil, seconds: seconds, recording: recording,
            picture: picture)
    }

    private static let interrupted = CommandFailure(.interrupted, "interrupted before the demo was over")

    /// Why the demo cannot go on: Ctrl-C, or what a part lacks.
    private static func failure(_ status: ExitStatus, _ text: String) -> CommandFailure {
        Interruption.isRequested ? interrupted : CommandFailure(status, text)
    }

    private static func report(
        published: [String: Any], watched: [String: Any], sent: [String: Any], summary: [String: Any], messages: Int,
        messageCount: Int, rpcWorked: Bool, seconds: Int, recording: String, picture: String
    ) -> ExitStatus {
        func number(_ values: [String: Any], _ key: String) -> Double { (values[key] as? NSNumber)?.doubleValue ?? 0 }
        let received = number(summary, "frames")
        let recorded = number(summary, "recorded_video_frames")
        let bytes = (try? FileManager.default.attributesOfItem(atPath: recording)[.size] as? NSNumber)?.intValue ?? 0
        let lost = number(summary, "packets_lost")
        let packets = number(summary, "packets_received")
        let pictureBytes =
            (try? FileManager.default.attributesOfItem(atPath: picture)[.size] as? NSNumber)?.intValue ?? 0
        let rows: [(String, String, Bool)] = [
            (
                "connect time",
                "\(Int(number(published, "connect_ms"))) ms publisher, \(Int(number(watched, "connect_ms"))) ms watcher",
                true
            ),
            ("frames sent", "\(Int(number(sent, "frames_sent")))", number(sent, "frames_sent") > 0),
            (
                "frames received", "\(Int(received)), \(Int(number(summary, "picture_changes"))) of them different",
                received >= Double(seconds) * 8 && number(summary, "picture_changes") > received / 4
            ),
            (
                "sound received", "\(Int(number(summary, "audio_seconds"))) s",
                number(summary, "audio_seconds") > Double(seconds) / 2
            ),
            (
                "resolution", "\(Int(number(summary, "width")))x\(Int(number(summary, "height")))",
                number(summary, "width") > 0
            ),
            ("loss", "\(Int(lost)) of \(Int(packets + lost)) packets", lost <= (packets + lost) / 100 && packets > 0),
            ("round trip", "\(Double(Int(number(summary, "round_trip_ms") * 100)) / 100) ms", true),
            ("messages", "\(messages) of \(messageCount)", messages == messageCount),
            ("rpc", rpcWorked ? "answered" : "not answered", rpcWorked),
            ("recording", "\(recording), \(Int(recorded)) frames, \(bytes / 1000) kB", recorded > 0 && bytes > 10_000),
            ("picture", picture, pictureBytes > 1000),
        ]
        for (name, value, isGood) in rows {
            Terminal.result(
                "\(isGood ? "ok  " : "FAIL") \(name.padding(toLength: 16, withPad: " ", startingAt: 0)) \(value)")
        }
        return rows.allSatisfy(\.2) ? .success : .failure
    }
}

/// One process of the demo: this very program with other words, its results read as JSON lines.
private final class Part: Sendable {
    private struct Started {
        var processes: [Process] = []
        /// No more may start.
        var isOver = false
    }
    private static let started = Locked(Started())

    private let process: Process
    private let lines: JSONLines
    private let errorPipe: JSONLines

    init(_ name: String, _ words: [String]) throws {
        process = Process()
        process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = words
        let output = Pipe()
        let errors = Pipe()
        process.standardOutput = output
        process.standardError = errors
        process.standardInput = FileHandle.nullDevice
        lines = JSONLines(output.fileHandleForReading)
        errorPipe = JSONLines(errors.fileHandleForReading)
        do {
            try Self.started.withLock { started in
                guard !started.isOver else { throw CancellationError() }
                try process.run()
                started.processes.append(process)
            }
        } catch {
            throw CommandFailure(.internalError, "cannot start the \(name): \(error.localizedDescription)")
        }
    }

    var isRunning: Bool { process.isRunning }
    var all: [[String: Any]] { lines.objects }
    var standardError: String { errorPipe.text }
    func last(_ event: String) -> [String: Any]? { all.last { $0["event"] as? String == event } }
    func count(_ condition: ([String: Any]) -> Bool) -> Int { all.count(where: condition) }

    func first(within seconds: Double, where condition: ([String: Any]) -> Bool) async -> [String: Any]? {
        let end = ContinuousClock.now + .seconds(seconds)
        while ContinuousClock.now < end, !Interruption.isRequested {
            if let found = all.first(where: condition) { return found }
            if !process.isRunning, all.first(where: condition) == nil { return nil }
            try? await Task.sleep(for: .milliseconds(20))
        }
        return nil
    }

    func ended(within seconds: Double) async -> Bool {
        let end = ContinuousClock.now + .seconds(seconds)
        while process.isRunning, ContinuousClock.now < end { try? await Task.sleep(for: .milliseconds(20)) }
        return !process.isRunning
    }

    /// Ends all parts at once, also one that is about to start, and waits until they are gone: SIGKILL takes no time.
    static func killAll() {
        let processes = started.withLock { started in
            started.isOver = true
            return started.processes
        }
        for process in processes where process.isRunning { kill(process.processIdentifier, SIGKILL) }
        let end = ContinuousClock.now + .seconds(2)
        for process in processes {
            while process.isRunning, ContinuousClock.now < end { usleep(1000) }
        }
    }

    func interrupt() { if process.isRunning { process.interrupt() } }
    /// Ends it and waits: nothing of the demo outlives it.
    func stop() {
        guard process.isRunning else { return }
        process.terminate()
        let end = ContinuousClock.now + .seconds(5)
        while process.isRunning, ContinuousClock.now < end { usleep(10_000) }
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    }
}
#endif
