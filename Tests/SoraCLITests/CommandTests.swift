import Foundation
import Testing

/// The built `sora` program from outside: words, exit statuses, what goes where.
@Suite struct CommandTests {
    struct Outcome {
        var status: Int32
        var output: String
        var errors: String
    }

    static let program: URL? = {
        // SwiftPM puts the program beside the test bundle.
        for path in [CommandLine.arguments.first ?? "", "/proc/self/exe"] {
            let folder = URL(fileURLWithPath: path).resolvingSymlinksInPath().deletingLastPathComponent()
            let candidate = folder.appending(path: "sora")
            if FileManager.default.isExecutableFile(atPath: candidate.path) { return candidate }
        }
        return nil
    }()

    struct Missing: Error, CustomStringConvertible {
        var description: String { "the sora program is not built beside the tests" }
    }

    static func start(_ words: [String], input: String? = nil) throws -> (Process, Pipe, Pipe) {
        let process = Process()
        guard let program else { throw Missing() }
        process.executableURL = program
        process.arguments = words
        let output = Pipe()
        let errors = Pipe()
        process.standardOutput = output
        process.standardError = errors
        if let input {
            let pipe = Pipe()
            process.standardInput = pipe
            try pipe.fileHandleForWriting.write(contentsOf: Data(input.utf8))
            try pipe.fileHandleForWriting.close()
        } else {
            process.standardInput = FileHandle.nullDevice
        }
        try process.run()
        return (process, output, errors)
    }

    /// Runs to the end; a program that hangs is killed after `limit` and shows as status -1.
    static func run(_ words: String..., input: String? = nil, limit: Duration = .seconds(40)) throws -> Outcome {
        let (process, output, errors) = try start(words, input: input)
        let killer = DispatchWorkItem { kill(process.processIdentifier, SIGKILL) }
        DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(Int(limit.components.seconds)), execute: killer)
        let out = output.fileHandleForReading.readDataToEndOfFile()
        let err = errors.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        killer.cancel()
        return Outcome(
            status: process.terminationReason == .uncaughtSignal ? -1 : process.terminationStatus,
            output: String(decoding: out, as: UTF8.self), errors: String(decoding: err, as: UTF8.self))
    }

    /// One line on standard error, beginning with the program's name.
    static func isOneSentence(_ text: String) -> Bool {
        let lines = text.split(separator: "\n")
        return lines.count == 1 && lines[0].hasPrefix("sora: ")
    }

    /// A result that a full disk did not take is no success.
    @Test func resultsThatCannotBeWrittenAreAnError() throws {
        let process = Process()
        process.executableURL = Self.program
        process.arguments = ["--version"]
        process.standardOutput = FileHandle(forWritingAtPath: "/dev/full")
        let errors = Pipe()
        process.standardError = errors
        try process.run()
        let text = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        #expect(process.terminationStatus == 73)
        #expect(text == "sora: standard output cannot be written: No space left on device\n")
    }

    #if Media
    /// The parts of the demo are processes of their own, which Ctrl-C does not reach.
    @Test(.timeLimit(.minutes(1))) func interruptedDemoLeavesNoProcessBehind() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "demo-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let (process, _, errors) = try Self.start(["demo", "--output", folder.path])
        var text = ""
        while !text.contains("/signaling\n") {
            let more = errors.fileHandleForReading.availableData
            try #require(!more.isEmpty, "\(text)")
            text += String(decoding: more, as: UTF8.self)
        }
        let url = try #require(text.firstMatch(of: /ws:\S+/)).output
        process.interrupt()
        text += String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        #expect(process.terminationReason == .exit && process.terminationStatus == 130, "\(text)")
        #expect(text.hasSuffix("sora: interrupted before the demo was over\n"))
        #expect(try Self.run("message", "--url", String(url), "--send", "x").status == 69)
    }

    /// The first Ctrl-C waits for parts that hang, here because they are stopped; the second does not.
    @Test(.timeLimit(.minutes(1))) func secondInterruptOfTheDemoEndsItsPartsAtOnce() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "demo-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let (process, _, errors) = try Self.start(["demo", "--output", folder.path])
        defer { if process.isRunning { process.terminate() } }
        var text = ""
        func read(until end: String) throws {
            while !text.contains(end) {
                let more = errors.fileHandleForReading.availableData
                try #require(!more.isEmpty, "\(text)")
                text += String(decoding: more, as: UTF8.self)
            }
        }
        try read(until: "/signaling\n")
        let parts = Self.children(of: process.processIdentifier)
        defer { for part in parts where kill(part, 0) == 0 { kill(part, SIGKILL) } }
        #expect(!parts.isEmpty)
        for part in parts { kill(part, SIGSTOP) }
        process.interrupt()
        try read(until: "Ctrl-C once more")
        let begin = ContinuousClock.now
        process.interrupt()
        process.waitUntilExit()
        // Without the second one a part that hangs is waited for, 5 s each.
        #expect(ContinuousClock.now - begin < .seconds(4))
        #expect(process.terminationReason == .exit && process.terminationStatus == 130)
        for part in parts { #expect(kill(part, 0) == -1 && errno == ESRCH) }
        let url = try #require(text.firstMatch(of: /ws:\S+/)).output
        for number in Self.processes {
            #expect(!Self.text(of: number, "cmdline").contains(url))
        }
    }

    private static var processes: [Int32] {
        ((try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []).compactMap { Int32($0) }
    }

    private static func children(of parent: Int32) -> [Int32] {
        processes.filter { text(of: $0, "status").contains("\nPPid:\t\(parent)\n") }
    }

    /// A file of the kernel's about a process; empty when that is gone. (`String(contentsOfFile:)` leaks its buffer when
    /// such a file is empty.)
    private static func text(of process: Int32, _ name: String) -> String {
        let file = FileHandle(forReadingAtPath: "/proc/\(process)/\(name)")
        return String(decoding: (try? file?.readToEnd()) ?? Data(), as: UTF8.self)
    }
    #endif

    /// What a server says in a close reason, and what stands on the command line, stays one sentence.
    @Test func complaintsStayOnTheirLine() throws {
        let outcome = try Self.run("serve\nsora: all is well\u{1B}[31m")
        #expect(outcome.status == 64)
        #expect(Self.isOneSentence(outcome.errors))
        #expect(outcome.errors.contains(#"serve\nsora: all is well\u{1B}[31m"#))
    }

    @Test func wrongParametersOfAnRPCAreNamedAsTheHelpNamesThem() throws {
        let outcome = try Self.run("rpc", "Method", "{bad")
        #expect(outcome.status == 64)
        #expect(outcome.errors.hasPrefix("sora: <params> is not JSON"))
    }

    @Test func helpGoesToStandardOutput() throws {
        let help = try Self.run("--help")
        #expect(help.status == 0)
        #expect(help.output.contains("serve") && help.output.contains("message"))
        #expect(help.errors.isEmpty)
        for command in ["serve", "message", "rpc"] {
            let help = try Self.run(command, "--help")
            #expect(help.status == 0 && help.output.contains("USAGE: sora \(command)"))
        }
    }

    @Test(arguments: [
        ["frobnicate"], ["serve", "--prot", "5"], ["serve", "--port", "70000"], ["message", "--label", "chat"],
        ["message", "--url", "http://x"], ["rpc"], ["rpc", "M", "{\"a\":}"], ["message", "--metadata", "{"],
        ["message", "--role"],
    ])
    func wrongWordsAreUsageErrors(words: [String]) throws {
        let (process, output, errors) = try Self.start(words)
        let out = output.fileHandleForReading.readDataToEndOfFile()
        let err = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        #expect(process.terminationStatus == 64, "\(err)")
        #expect(Self.isOneSentence(err), "\(err)")
        #expect(out.isEmpty)
    }

    @Test func closedPortIsUnavailable() throws {
        let outcome = try Self.run("message", "--url", "ws://127.0.0.1:1/signaling", "--send", "x")
        #expect(outcome.status == 69, "\(outcome)")
        #expect(Self.isOneSentence(outcome.errors), "\(outcome.errors)")
    }

    @Test func unknownHostIsNamed() throws {
        let outcome = try Self.run("message", "--url", "ws://no-such-host.invalid/signaling", "--send", "x")
        #expect(outcome.status == 68, "\(outcome)")
        #expect(Self.isOneSentence(outcome.errors), "\(outcome.errors)")
    }

    @Test func tlsToAPlainPortIsATLSFailure() async throws {
        let server = try await RunningServer.start()
        defer { server.stop() }
        let url = server.url.replacing("ws://", with: "wss://")
        let outcome = try Self.run("message", "--url", url, "--send", "x", "--timeout", "10")
        #expect(outcome.status == 80, "\(outcome)")
        #expect(Self.isOneSentence(outcome.errors), "\(outcome.errors)")
    }

    @Test func wrongPathIsAProtocolError() async throws {
        let server = try await RunningServer.start()
        defer { server.stop() }
        let url = server.url.replacing("/signaling", with: "/nothing")
        let outcome = try Self.run("message", "--url", url, "--send", "x", "--timeout", "10")
        #expect(outcome.status == 76, "\(outcome)")
        #expect(Self.isOneSentence(outcome.errors), "\(outcome.errors)")
    }

    @Test func messagesGoFromOneProgramToAnother() async throws {
        let server = try await RunningServer.start()
        defer { server.stop() }
        let (listener, output, _) = try Self.start([
            "message", "--url", server.url, "--expect", "3", "--no-input", "--json", "--duration", "20",
        ])
        try #require(await server.sees("#sora"))
        let speaker = try Self.run("message", "--url", server.url, input: "eins\nzwei\n\u{1F600}\n")
        #expect(speaker.status == 0, "\(speaker)")
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        listener.waitUntilExit()
        #expect(listener.terminationStatus == 0)
        let texts = try text.split(separator: "\n").map { line in
            (try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])?["text"] as? String
        }
        #expect(texts == ["eins", "zwei", "\u{1F600}"])
    }

    @Test func rpcPrintsItsResult() async throws {
        let server = try await RunningServer.start()
        defer { server.stop() }
        let call = try Self.run(
            "rpc", "--url", server.url, "PutSignalingNotifyMetadata", #"{"metadata":{"n":1.5,"s":"x"}}"#)
        #expect(call.status == 0, "\(call)")
        #expect(call.output == "{\"n\":1.5,\"s\":\"x\"}\n")
        let unknown = try Self.run("rpc", "--url", server.url, "Nothing")
        #expect(unknown.status == 1)
        #expect(unknown.errors.contains("-32601"), "\(unknown.errors)")
    }

    @Test func interruptClosesInOrder() async throws {
        let server = try await RunningServer.start()
        defer { server.stop() }
        let (process, _, _) = try Self.start(["message", "--url", server.url, "--no-input"])
        try #require(await server.sees("#sora"))
        process.interrupt()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
        #expect(await server.sees("client: NO-ERROR"))
    }
}

/// `sora serve` in a process of its own.
final class RunningServer: @unchecked Sendable {
    // Written once in `start`, before anybody else has it.
    private let process: Process
    private let lines: LineLog
    let url: String

    private init(process: Process, lines: LineLog, url: String) {
        self.process = process
        self.lines = lines
        self.url = url
    }

    struct Missing: Error, CustomStringConvertible {
        var description: String { "the sora program is not built beside the tests" }
    }

    static func start(_ words: [String] = []) async throws -> RunningServer {
        let (process, output, _) = try CommandTests.start(["serve", "--port", "0", "--json"] + words)
        let lines = LineLog(output.fileHandleForReading)
        let serving = await lines.first { $0.contains("\"serving\"") }
        let line = try #require(serving, "the server did not start")
        let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
        return RunningServer(process: process, lines: lines, url: try #require(object?["url"] as? String))
    }

    /// Whether an event holds this text, now or within ten seconds.
    func sees(_ text: String) async -> Bool { await lines.first { $0.contains(text) } != nil }
    func stop() { if process.isRunning { process.terminate() } }
}

/// Lines of another process, with waiting for one of them.
final class LineLog: @unchecked Sendable {
    // `lines` and `isEnded` are used under `condition` only.
    private let condition = NSCondition()
    private var lines: [String] = []
    private var isEnded = false

    init(_ handle: FileHandle) {
        Thread.detachNewThread { [weak self] in
            var buffer = Data()
            while true {
                let chunk = handle.availableData
                guard !chunk.isEmpty else { break }
                buffer.append(chunk)
                while let end = buffer.firstIndex(of: 0x0A) {
                    self?.add(String(decoding: buffer[buffer.startIndex..<end], as: UTF8.self))
                    buffer = Data(buffer[buffer.index(after: end)...])
                }
            }
            self?.end()
        }
    }

    private func add(_ line: String) {
        condition.lock()
        lines.append(line)
        condition.broadcast()
        condition.unlock()
    }

    private func end() {
        condition.lock()
        isEnded = true
        condition.broadcast()
        condition.unlock()
    }

    /// The first line that satisfies `match`; nil after `limit` seconds or at the end.
    func first(within limit: Double = 10, _ match: @escaping @Sendable (String) -> Bool) async -> String? {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { [self] in
                let end = Date() + limit
                condition.lock()
                defer { condition.unlock() }
                while true {
                    if let found = lines.first(where: match) { return continuation.resume(returning: found) }
                    if isEnded || !condition.wait(until: end) { return continuation.resume(returning: nil) }
                }
            }
        }
    }
}
