import Foundation
import SoraLocking

/// Reads lines from another process as they come; those that are JSON objects are kept as such.
final class JSONLines: Sendable {
    private struct State: @unchecked Sendable {
        // Parsed JSON: built once here, only read afterwards, always under the lock.
        var objects: [[String: Any]] = []
        var text = ""
    }
    private let state = Locked(State())

    init(_ handle: FileHandle) {
        Thread.detachNewThread { [weak self] in
            var buffer = Data()
            while true {
                let chunk = handle.availableData
                guard !chunk.isEmpty else { return }
                buffer.append(chunk)
                while let end = buffer.firstIndex(of: 0x0A) {
                    self?.take(Data(buffer[buffer.startIndex..<end]))
                    buffer = Data(buffer[buffer.index(after: end)...])
                }
            }
        }
    }

    private func take(_ line: Data) {
        let object = SendableReport(values: (try? JSONSerialization.jsonObject(with: line)) as? [String: Any] ?? [:])
        let text = String(decoding: line, as: UTF8.self)
        state.withLock { state in
            if object.values.isEmpty { state.text += text + "\n" } else { state.objects.append(object.values) }
        }
    }

    var objects: [[String: Any]] { state.withLock { SendableObjects(values: $0.objects) }.values }
    var text: String { state.withLock { $0.text } }

    private struct SendableObjects: @unchecked Sendable {
        // A copy on its way out of the lock.
        let values: [[String: Any]]
    }
}
