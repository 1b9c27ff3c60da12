import Foundation
import SoraFrames
import SoraLocking
import TestSupport

/// Takes what a source gives, and lets a test wait for it.
final class Collector: Sendable {
    struct Content: Sendable {
        var video: [VideoFrame] = []
        var videoCount = 0
        var counters: [UInt32?] = []
        var audio: [AudioFrame] = []
        var isEnded = false
        var failure: DeviceError?
    }
    private let content = Locked(Content())
    private let changed = DispatchSemaphore(value: 0)
    private let keepsPictures: Bool

    init(keepsPictures: Bool = false) { self.keepsPictures = keepsPictures }

    var now: Content { content.withLock { $0 } }

    func take(_ event: MediaSourceEvent) {
        // Reading a counter takes time in a debug build: not under the lock.
        var counter: UInt32?
        if case .video(let frame) = event { counter = FrameCounter.read(from: frame) }
        content.withLock { content in
            switch event {
            case .video(let frame):
                content.videoCount += 1
                content.counters.append(counter)
                if keepsPictures { content.video.append(frame) } else { content.video = [frame] }
            case .audio(let frame): content.audio.append(frame)
            case .ended: content.isEnded = true
            case .failed(let error): content.failure = error
            }
        }
        changed.signal()
    }

    /// True as soon as the condition holds; false after `seconds`.
    func wait(_ seconds: Double = 20, until condition: (Content) -> Bool) -> Bool {
        let deadline = DispatchTime.now() + seconds * RealTime.factor
        while !condition(now) {
            if changed.wait(timeout: deadline) == .timedOut { return condition(now) }
        }
        return true
    }
}

/// A directory of its own for one test, removed afterwards.
final class Scratch {
    let path: String
    init() {
        path = NSTemporaryDirectory() + "sora-devices-\(UUID().uuidString)"
        try? FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }
    deinit { try? FileManager.default.removeItem(atPath: path) }
    func file(_ name: String) -> String { path + "/" + name }
    func write(_ name: String, _ bytes: [UInt8]) -> String {
        _ = FileManager.default.createFile(atPath: file(name), contents: Data(bytes))
        return file(name)
    }
}

enum Samples {
    static let movie = "/usr/share/forensics-samples/original-files/movie2/movie-hello.mp4"
    static var hasMovie: Bool { FileManager.default.fileExists(atPath: movie) }
}

enum Program {
    static func path(_ name: String) -> String? {
        ["/usr/bin/", "/bin/", "/usr/sbin/", "/usr/local/bin/"].map { $0 + name }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// Standard output of a program; nil if it is not installed.
    static func output(_ name: String, _ arguments: [String]) -> String? {
        guard let path = path(name) else { return nil }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = arguments
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = FileHandle.nullDevice
        process.standardInput = FileHandle.nullDevice
        guard (try? process.run()) != nil else { return nil }
        let data = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return String(decoding: data, as: UTF8.self)
    }
}

enum ProcessUse {
    static var threads: Int {
        (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count) ?? -1
    }
    static var descriptors: Int {
        (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count) ?? -1
    }
}
