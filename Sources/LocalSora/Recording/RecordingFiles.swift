import Dispatch
import Glibc
import SoraLocking
import SoraWire
import Synchronization

/// The files of recordings: written in order on a queue of their own, so that no disk holds up a loop.
///
/// Invariant: at most ``mostWaiting`` bytes and one more output of each loop wait. A file that loses a piece is closed and counts as failed.
final class RecordingFiles: Sendable {
    private struct State {
        /// -1: it failed.
        var descriptors: [String: Int32] = [:]
        var failures: [String: String] = [:]
    }

    private let directory: String
    private let queue = DispatchQueue(label: "sora.recordings")
    private let state = Locked(State())
    private let waiting = Atomic<Int>(0)
    private static let mostWaiting = 64 << 20

    init(directory: String) { self.directory = directory }

    func write(_ output: FileOutput) {
        guard waiting.load(ordering: .relaxed) <= Self.mostWaiting else {
            // The path alone waits: the bytes would do so beyond the bound.
            let path = output.path
            queue.async { self.state.withLock { self.fail(path, "the disk is too slow", &$0) } }
            return
        }
        let size = output.bytes.count
        waiting.add(size, ordering: .relaxed)
        queue.async {
            self.state.withLock { self.store(output, &$0) }
            self.waiting.subtract(size, ordering: .relaxed)
        }
    }

    /// Closes a file when everything before has been written.
    /// - Parameter completion: gets nil, or why the file is not whole. Called on the queue.
    func close(_ path: String, completion: @escaping @Sendable (String?) -> Void) {
        queue.async {
            let failure = self.state.withLock { state -> String? in
                let descriptor = state.descriptors.removeValue(forKey: path)
                if let descriptor, descriptor >= 0 { Glibc.close(descriptor) }
                return state.failures.removeValue(forKey: path) ?? (descriptor == nil ? "no media came" : nil)
            }
            completion(failure)
        }
    }

    /// Closes everything, and waits for it.
    func stop() {
        queue.sync {
            state.withLock { state in
                for descriptor in state.descriptors.values where descriptor >= 0 { Glibc.close(descriptor) }
                state = State()
            }
        }
    }

    private func store(_ output: FileOutput, _ state: inout State) {
        var descriptor = state.descriptors[output.path]
        if descriptor == nil {
            guard let opened = open(output.path, &state) else { return }
            descriptor = opened
        }
        guard let descriptor, descriptor >= 0 else { return }
        var done = 0
        while done < output.bytes.count {
            let count = output.bytes.withUnsafeBytes {
                pwrite(
                    descriptor, $0.baseAddress?.advanced(by: done), output.bytes.count - done,
                    off_t(output.offset + done))
            }
            if count > 0 {
                done += count
            } else if errno != EINTR {
                return fail(output.path, String(cString: strerror(errno)), &state)
            }
        }
    }

    private func open(_ path: String, _ state: inout State) -> Int32? {
        if let end = path.lastIndex(of: "/") { mkdir("\(directory)/\(path[..<end])", 0o755) }
        let descriptor = Glibc.open("\(directory)/\(path)", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else {
            fail(path, String(cString: strerror(errno)), &state)
            return nil
        }
        state.descriptors[path] = descriptor
        return descriptor
    }

    private func fail(_ path: String, _ reason: String, _ state: inout State) {
        if let descriptor = state.descriptors[path], descriptor >= 0 { Glibc.close(descriptor) }
        state.descriptors[path] = -1
        if state.failures[path] == nil { state.failures[path] = reason }
    }
}
