import Foundation
import SoraLocking
import Testing

/// A real peer in a process of its own (Tests/Interop/peers), driven by JSON lines.
final class PeerProcess: Sendable {
    enum Kind: String {
        case pythonSDK = "sora_sdk_peer.py"
        case browser = "browser_peer.py"
    }

    struct Event: @unchecked Sendable {
        // Immutable after parsing; JSONSerialization's values are safe to read from any thread.
        let fields: [String: Any]
        var name: String { fields["event"] as? String ?? "" }
        subscript(key: String) -> Any? { fields[key] }
        func string(_ key: String) -> String? { fields[key] as? String }
        func int(_ key: String) -> Int? { (fields[key] as? NSNumber)?.intValue }
        func object(_ key: String) -> [String: Any]? { fields[key] as? [String: Any] }
        func objects(_ key: String) -> [[String: Any]] { fields[key] as? [[String: Any]] ?? [] }
    }

    struct Timeout: Error, CustomStringConvertible {
        var peer: String
        var what: String
        var seen: [String]
        var standardError: String
        var description: String {
            "\(peer): no \(what) in time; events so far: \(seen.joined(separator: ", "))\n\(standardError)"
        }
    }

    private struct State {
        var events: [Event] = []
        /// Events already handed out by ``next(_:within:where:)``.
        var taken = Set<Int>()
        var waiters: [Int: (condition: @Sendable (Event) -> Bool, continuation: CheckedContinuation<Event?, Never>)] =
            [:]
        var nextWaiter = 0
        var hasEnded = false
    }

    let name: String
    private let state = Locked(State())
    private let process: Process
    private let input: FileHandle
    private let errorFile: URL

    init(_ kind: Kind, name: String, arguments: [String] = []) throws {
        self.name = name
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "Interop/peers")
        let python = try #require(
            ProcessInfo.processInfo.environment["SORA_TEST_PYTHON"],
            "SORA_TEST_PYTHON must name the Python of the test peers; `make test-interop` sets it")
        process = Process()
        process.executableURL = URL(fileURLWithPath: python)
        process.arguments = ["-u", folder.appending(path: kind.rawValue).path] + arguments
        let stdin = Pipe()
        let stdout = Pipe()
        errorFile = FileManager.default.temporaryDirectory.appending(path: "peer-\(name)-\(UUID().uuidString).log")
        try Data().write(to: errorFile)
        process.standardInput = stdin
        process.standardOutput = stdout
        process.standardError = try FileHandle(forWritingTo: errorFile)
        input = stdin.fileHandleForWriting
        // Writing to a peer that has crashed is an error, not the end of the tests.
        signal(SIGPIPE, SIG_IGN)
        try process.run()
        let reader = stdout.fileHandleForReading
        Thread { [weak self] in
            var buffer = Data()
            while true {
                let chunk = reader.availableData
                if chunk.isEmpty { break }
                buffer.append(chunk)
                while let end = buffer.firstIndex(of: 0x0A) {
                    let line = buffer[buffer.startIndex..<end]
                    buffer = Data(buffer[buffer.index(after: end)...])
                    if let object = try? JSONSerialization.jsonObject(with: line) as? [String: Any] {
                        self?.received(Event(fields: object))
                    }
                }
            }
            self?.ended()
        }.start()
    }

    deinit {
        if process.isRunning { process.terminate() }
        try? FileManager.default.removeItem(at: errorFile)
    }

    private func received(_ event: Event) {
        let waiter = state.withLock { state -> CheckedContinuation<Event?, Never>? in
            state.events.append(event)
            for (number, waiter) in state.waiters.sorted(by: { $0.key < $1.key }) where waiter.condition(event) {
                state.waiters.removeValue(forKey: number)
                state.taken.insert(state.events.count - 1)
                return waiter.continuation
            }
            return nil
        }
        waiter?.resume(returning: event)
    }

    private func ended() {
        let waiters = state.withLock { state in
            state.hasEnded = true
            defer { state.waiters.removeAll() }
            return state.waiters.values.map(\.continuation)
        }
        for waiter in waiters { waiter.resume(returning: nil) }
    }

    func send(_ command: [String: Any]) throws {
        let line = try JSONSerialization.data(withJSONObject: command, options: [.sortedKeys])
        try input.write(contentsOf: line + [0x0A])
    }

    /// The next event of this name that satisfies `condition` and was not handed out before.
    func next(
        _ event: String, within limit: Duration = .seconds(20),
        where condition: @escaping @Sendable (Event) -> Bool = { _ in true }
    ) async throws -> Event {
        let matches: @Sendable (Event) -> Bool = { $0.name == event && condition($0) }
        let found: Event? = await withCheckedContinuation { continuation in
            let (early, number): (Event?, Int?) = state.withLock { state in
                for (index, event) in state.events.enumerated() where !state.taken.contains(index) && matches(event) {
                    state.taken.insert(index)
                    return (event, nil)
                }
                if state.hasEnded { return (nil, nil) }
                let number = state.nextWaiter
                state.nextWaiter += 1
                state.waiters[number] = (matches, continuation)
                return (nil, number)
            }
            guard let number else {
                continuation.resume(returning: early)
                return
            }
            // The bound of the wait; it fires only if the event did not come.
            let milliseconds = Int(
                limit.components.seconds * 1000 + limit.components.attoseconds / 1_000_000_000_000_000)
            DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(milliseconds)) { [weak self] in
                self?.state.withLock { $0.waiters.removeValue(forKey: number) }?.continuation.resume(returning: nil)
            }
        }
        guard let found else {
            let log = (try? String(contentsOf: errorFile, encoding: .utf8)) ?? ""
            throw Timeout(peer: name, what: event, seen: all.map(\.name), standardError: String(log.suffix(2000)))
        }
        return found
    }

    /// Everything that was received so far.
    var all: [Event] { state.withLock { $0.events } }

    var isRunning: Bool { process.isRunning }

    func waitUntilExit() { process.waitUntilExit() }

    /// SIGKILL: the peer vanishes without a word.
    func kill() { Foundation.kill(process.processIdentifier, SIGKILL) }

    /// Asks the process to end, which it may have done by itself, and waits for that.
    func exit() {
        try? send(["do": "exit"])
        // It may also hang where it might crash.
        let end = DispatchWorkItem { [process] in
            if process.isRunning { Foundation.kill(process.processIdentifier, SIGKILL) }
        }
        DispatchQueue.global().asyncAfter(deadline: .now() + 20, execute: end)
        process.waitUntilExit()
        end.cancel()
    }

    /// Asks the peer to leave its channel, and its process to end.
    func leave() async throws {
        try send(["do": "disconnect"])
        _ = try await next("ended")
        exit()
    }
}
