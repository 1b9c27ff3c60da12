#if Media
import Foundation
import SoraFrames
import SoraLocking

@testable import SoraDevices

/// Device services of the tests' own: PipeWire for cameras and sound, an X server without a screen.
enum DeviceServices {
    static let programs = [
        "bash", "dbus-daemon", "pipewire", "wireplumber", "wpctl", "pipewire-pulse", "pactl", "Xvfb",
    ]
    /// The services end when this process, and with it the writing end, is gone.
    private static let lifeline = Pipe()
    static var missing: [String] { programs.filter { Program.path($0) == nil } }

    /// Started once, for all suites; nil if the programs are not there. They end with the test process.
    static let display: String? = {
        guard missing.isEmpty, let bash = Program.path("bash") else { return nil }
        let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appendingPathComponent("Scripts/device-services.sh").path
        let process = Process()
        process.executableURL = URL(fileURLWithPath: bash)
        process.arguments = [
            script,
            NSTemporaryDirectory() + "sora-services-\(ProcessInfo.processInfo.processIdentifier)",
        ]
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = FileHandle.nullDevice
        process.standardInput = lifeline
        guard (try? process.run()) != nil else { return nil }
        // Only the script keeps the reading end; ours closes with this process.
        try? lifeline.fileHandleForReading.close()
        var display: String?
        var text = ""
        while true {
            let data = pipe.fileHandleForReading.availableData
            if data.isEmpty { return nil }
            text += String(decoding: data, as: UTF8.self)
            if text.hasSuffix("ready\n") { break }
        }
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: "=", maxSplits: 1)
            guard parts.count == 2 else { continue }
            setenv(String(parts[0]), String(parts[1]), 1)
            if parts[0] == "DISPLAY" { display = String(parts[1]) }
        }
        return display
    }()

    static var areThere: Bool { missing.isEmpty }
}

/// A camera that PipeWire offers: a moving ball in one format, at real pace.
final class VirtualCamera: Sendable {
    private let pipeline: GStreamerPipeline

    init(name: String, width: Int = 320, height: Int = 180, framerate: Int = 30) throws {
        pipeline = try GStreamerPipeline(
            "videotestsrc is-live=true pattern=ball ! "
                + "video/x-raw,format=I420,width=\(width),height=\(height),framerate=\(framerate)/1 ! "
                + "pipewiresink mode=provide stream-properties=\"p,media.class=Video/Source,"
                + "node.name=\(name),node.description=\(name),media.role=Camera\"", device: name)
        guard pipeline.run({ _ in }) else { throw DeviceError.deviceFailed(device: name, reason: "no start") }
    }

    func unplug() { pipeline.close() }
}

/// Waits for a list of devices that a condition accepts.
final class DeviceList: Sendable {
    private let devices = Locked<[MediaDevice]>([])
    private let changed = DispatchSemaphore(value: 0)
    func set(_ list: [MediaDevice]) {
        devices.withLock { $0 = list }
        changed.signal()
    }
    func wait(_ seconds: Double = 15, until condition: ([MediaDevice]) -> Bool) -> Bool {
        let deadline = DispatchTime.now() + seconds
        while !condition(devices.withLock { $0 }) {
            if changed.wait(timeout: deadline) == .timedOut { return condition(devices.withLock { $0 }) }
        }
        return true
    }
}
#endif
