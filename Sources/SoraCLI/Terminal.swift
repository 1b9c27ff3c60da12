import Foundation
import Glibc
import LocalSora
import SoraLocking

/// Where words go: results to standard output, everything else to standard error.
enum Terminal {
    /// One result, a line (or a text) on standard output.
    static func result(_ text: String) { write(text + "\n", to: FileHandle.standardOutput) }
    /// One result as a JSON object on one line.
    static func result(_ object: [String: Any]) {
        let options: JSONSerialization.WritingOptions = [.sortedKeys, .withoutEscapingSlashes]
        guard let data = try? JSONSerialization.data(withJSONObject: object, options: options) else { return }
        write(String(decoding: data, as: UTF8.self) + "\n", to: FileHandle.standardOutput)
    }
    /// One line of the log on standard error.
    static func log(_ text: String) { write(text + "\n", to: FileHandle.standardError) }
    /// Text without a line end on standard error, for progress.
    static func raw(_ text: String) { write(text, to: FileHandle.standardError) }
    /// The one sentence that says why the command failed.
    static func error(_ text: String) {
        write("sora: \(text.escapingControlCharacters)\n", to: FileHandle.standardError)
    }

    /// Why standard output has not taken all results: a disk that is full. A reader that went away is no fault.
    static var lostResults: String? { lost.withLock { $0 } }

    private static let lost = Locked<String?>(nil)

    private static func write(_ text: String, to handle: FileHandle) {
        let bytes = Array(text.utf8)
        var done = 0
        while done < bytes.count {
            let count = bytes[done...].withUnsafeBytes { Glibc.write(handle.fileDescriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                done += count
            } else if errno == EAGAIN {
                var wanted = pollfd(fd: handle.fileDescriptor, events: Int16(POLLOUT), revents: 0)
                poll(&wanted, 1, -1)
            } else if errno != EINTR {
                let reason = errno == EPIPE || errno == EBADF ? nil : String(cString: strerror(errno))
                if handle.fileDescriptor == STDOUT_FILENO { lost.withLock { $0 = $0 ?? reason } }
                return
            }
        }
    }
}
