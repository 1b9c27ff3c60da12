import Foundation

/// One of the programs of `Examples/`, as built beside this test bundle, in a process of its own.
final class ExampleProgram: Sendable {
    struct Failure: Error, CustomStringConvertible {
        var description: String
    }
    struct Outcome: Sendable {
        var status: Int32
        var output: String
    }

    private let process: Process
    private let end: AsyncStream<Int32>
    private let outputFile: URL

    /// - Parameter name: without its prefix `Example`.
    init(_ name: String, _ arguments: [String]) throws {
        let products = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
        let program = products.appendingPathComponent("Example\(name)")
        guard FileManager.default.isExecutableFile(atPath: program.path) else {
            throw Failure(description: "\(program.path) is missing; build all with 'swift build --build-tests'")
        }
        outputFile = FileManager.default.temporaryDirectory.appendingPathComponent("\(name)-\(UUID().uuidString).out")
        try Data().write(to: outputFile)
        let output = try FileHandle(forWritingTo: outputFile)
        process = Process()
        process.executableURL = program
        process.arguments = arguments
        process.standardOutput = output
        process.standardError = output
        let (end, continuation) = AsyncStream<Int32>.makeStream()
        self.end = end
        process.terminationHandler = { process in
            continuation.yield(process.terminationStatus)
            continuation.finish()
        }
        try process.run()
    }

    deinit { try? FileManager.default.removeItem(at: outputFile) }

    /// Waits for the end of the program; after `seconds` it is stopped, which shows in the status.
    func finish(within seconds: Double = 60) async -> Outcome {
        let limit = Task { [process] in
            try await Task.sleep(for: .seconds(seconds))
            process.terminate()
        }
        defer { limit.cancel() }
        var status: Int32 = -1
        for await value in end { status = value }
        let output = (try? String(contentsOf: outputFile, encoding: .utf8)) ?? ""
        return Outcome(status: status, output: output)
    }
}
