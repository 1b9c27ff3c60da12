import Foundation
import Glibc

/// A server in a process of its own, and what the kernel says of it.
final class ServerProcess {
    struct Failure: Error, CustomStringConvertible {
        var description: String
    }

    private let process = Process()
    var id: Int32 { process.processIdentifier }

    /// - Parameter log: A file for what the server prints.
    init(_ executable: String, _ arguments: [String], log: String) throws {
        _ = FileManager.default.createFile(atPath: log, contents: nil)
        guard let output = FileHandle(forWritingAtPath: log) else { throw Failure(description: "cannot write \(log)") }
        process.executableURL = URL(fileURLWithPath: executable)
        process.arguments = arguments
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = output
        try process.run()
    }

    func stop() {
        guard process.isRunning else { return }
        process.terminate()
        for _ in 0..<50 where process.isRunning { usleep(100_000) }
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        process.waitUntilExit()
    }

    var isRunning: Bool { process.isRunning }

    /// User and system time of all threads so far.
    var cpuSeconds: Double {
        let text = (try? String(contentsOfFile: "/proc/\(id)/stat", encoding: .utf8)) ?? ""
        // The name in parentheses may hold anything.
        guard let end = text.lastIndex(of: ")") else { return 0 }
        let fields = text[text.index(after: end)...].split(separator: " ")
        guard fields.count > 12, let user = Double(fields[11]), let system = Double(fields[12]) else { return 0 }
        return (user + system) / Double(sysconf(Int32(_SC_CLK_TCK)))
    }

    var residentMiB: Double {
        let text = (try? String(contentsOfFile: "/proc/\(id)/status", encoding: .utf8)) ?? ""
        for line in text.split(separator: "\n") where line.hasPrefix("VmRSS:") {
            let words = line.split(whereSeparator: { $0 == " " || $0 == "\t" })
            if words.count > 1, let kibibytes = Double(words[1]) { return kibibytes / 1024 }
        }
        return 0
    }

    /// A TCP port that nobody has.
    static func freePort() throws -> UInt16 {
        guard let port = bound(to: "127.0.0.1") else { throw Failure(description: "no free port") }
        return port
    }

    /// Whether this machine has the address.
    static func has(_ address: String) -> Bool { bound(to: address) != nil }

    private static func bound(to text: String) -> UInt16? {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr(text)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        return withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { raw in
                guard bind(descriptor, raw, length) == 0, getsockname(descriptor, raw, &length) == 0 else {
                    return false
                }
                return true
            }
        } ? UInt16(bigEndian: address.sin_port) : nil
    }
}
