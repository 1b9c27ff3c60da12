import Foundation

/// Runs one test of this bundle in a process of its own in which dictionaries keep one order.
///
/// One check of the examples compares the text of two encodings of the same object, and `JSONEncoder` writes keys in the
/// order of a dictionary, which differs from one instance to the next unless this variable is set when the process starts.
enum DeterministicRun {
    private static let variable = "SWIFT_DETERMINISTIC_HASHING"

    static var isActive: Bool { ProcessInfo.processInfo.environment[variable] != nil }

    /// - Returns: the exit status and the output of the process.
    static func repeatTests(of suite: String) throws -> (status: Int32, output: String) {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        process.arguments = ["--testing-library", "swift-testing", "--filter", suite]
        process.environment = ProcessInfo.processInfo.environment.merging([variable: "1"]) { $1 }
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = pipe
        try process.run()
        let output = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return (process.terminationStatus, String(decoding: output, as: UTF8.self))
    }
}
