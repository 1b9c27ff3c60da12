import Foundation
import Glibc

/// A program that runs beside a test, and is killed with this object.
package final class Companion: Sendable {
    /// By what a program tells that it is ready.
    package enum Sign: Sendable {
        /// It is ready at once.
        case none
        /// This text on its standard output.
        case output(String)
        /// `READY=1` to the socket that NOTIFY_SOCKET names, as for a service of systemd (sd_notify(3)).
        case notification
    }
    package struct NotReady: Error { package var program: String }

    package let identifier: Int32
    private let process: Process

    /// Returns when the program is ready.
    package init(_ program: String, _ arguments: [String], ready sign: Sign = .none) throws {
        process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [program] + arguments
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        switch sign {
        case .none:
            try process.run()
            identifier = process.processIdentifier
        case .output(let text):
            let output = Pipe()
            process.standardOutput = output
            try process.run()
            identifier = process.processIdentifier
            let handle = output.fileHandleForReading
            guard Self.hears(text, from: handle.fileDescriptor) else {
                end()
                throw NotReady(program: program)
            }
            // What else it says must not fill the pipe: it would stand still.
            handle.readabilityHandler = { handle in
                if handle.availableData.isEmpty { handle.readabilityHandler = nil }
            }
        case .notification:
            let socket = try NotificationSocket()
            process.environment = ProcessInfo.processInfo.environment.merging(["NOTIFY_SOCKET": socket.path]) { $1 }
            try process.run()
            identifier = process.processIdentifier
            guard Self.hears("READY=1", from: socket.descriptor) else {
                end()
                throw NotReady(program: program)
            }
        }
    }

    deinit { end() }

    package func end() {
        guard process.isRunning else { return }
        kill(identifier, SIGKILL)
        process.waitUntilExit()
    }

    /// Whether a text comes within the bound, before the end.
    private static func hears(_ text: String, from descriptor: Int32) -> Bool {
        let deadline = ContinuousClock.now + .seconds(20 * RealTime.factor)
        var heard: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let rest = Int32(clamping: Int((deadline - .now) / .milliseconds(1)))
            guard rest > 0 else { return false }
            var watched = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            let ready = poll(&watched, 1, rest)
            if ready < 0, errno == EINTR { continue }
            guard ready > 0 else { return false }
            let count = read(descriptor, &buffer, buffer.count)
            guard count > 0 else { return false }
            heard += buffer.prefix(count)
            if String(decoding: heard, as: UTF8.self).contains(text) { return true }
        }
    }
}

/// Where a service says that it is ready.
private final class NotificationSocket {
    struct Failure: Error { var status: Int32 }
    let path = FileManager.default.temporaryDirectory.appending(path: "ready-\(UUID().uuidString)").path
    let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)

    init() throws {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
        let status = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard status == 0 else { throw Failure(status: errno) }
    }

    deinit {
        close(descriptor)
        unlink(path)
    }
}
