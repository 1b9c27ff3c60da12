import Foundation
import Testing

@testable import LocalSora

/// The files of recordings on a disk that misbehaves.
@Suite(.serialized, .leavesNoObjects) struct RecordingFilesTests {
    /// Why a file is not whole, once everything before has been written.
    private func close(_ path: String, in files: RecordingFiles) async -> String? {
        await withCheckedContinuation { continuation in files.close(path) { continuation.resume(returning: $0) } }
    }

    @Test func diskThatStallsFailsWhatItCannotTake() async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "stalled-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        // Opening a pipe for writing waits for a reader: the disk stands still.
        let pipe = directory.appending(path: "pipe").path
        try #require(mkfifo(pipe, 0o600) == 0)
        let files = RecordingFiles(directory: directory.path)
        files.write(FileOutput(path: "pipe", offset: 0, bytes: [1]))
        let (size, count) = (1 << 20, 80)
        let piece = [UInt8](repeating: 7, count: size)
        for number in 0..<count { files.write(FileOutput(path: "file", offset: number * size, bytes: piece)) }
        let reader = open(pipe, O_RDONLY | O_NONBLOCK)
        defer { Foundation.close(reader) }
        #expect(await close("file", in: files) == "the disk is too slow")
        // What had been taken on until then was written.
        let written = try FileManager.default.attributesOfItem(atPath: directory.appending(path: "file").path)
        let length = try #require(written[.size] as? Int)
        #expect(length >= 64 * size && length < count * size)
        // The next file is whole again.
        files.write(FileOutput(path: "next", offset: 0, bytes: [1, 2, 3]))
        #expect(await close("next", in: files) == nil)
        files.stop()
    }
}
