#if Media
import Foundation
import Sora
import SoraDevices
import SoraFrames
import SoraLocking

/// `sora watch`: receives a channel's media, records it, takes a picture.
enum WatchCommand {
    static let definition = CommandDefinition(
        name: "watch",
        abstract: "Receives a channel's media; records it or takes a picture.",
        discussion: """
            Of several senders the first that has video is recorded. The recording is not coded again; it survives \
            the end of the process at any moment.
             sora watch --channel room --record room.webm --duration 60
             sora watch --channel room --snapshot frame.png
            """,
        options: [
            .value("record", "file", "Writes picture and sound to a WebM file."),
            .value(
                "snapshot", "file", "Writes one picture as PNG; without --record and --duration that ends the command."),
            .value("snapshot-after", "frames", default: "30", "Which frame to take."),
            .value("frames", "count", "Ends once this many frames were received."),
            .flag("no-audio", "Receives no audio."),
            .flag("no-video", "Receives no video."),
            .flag("simulcast", "Receives a simulcast layer."),
            .value("rid", "rid", allowed: ["none", "r0", "r1", "r2"], "Simulcast layer to ask for."),
        ] + ConnectionOptions.definitions,
        run: run)

    static func run(_ arguments: ParsedArguments) async throws -> ExitStatus {
        ConnectionOptions.applyLogLevel(arguments)
        // Watching needs no speaker.
        Sora.shared.usesManualAudio = true
        var configuration = try ConnectionOptions.configuration(arguments, role: .recvonly)
        configuration.audioEnabled = !arguments.has("no-audio")
        configuration.videoEnabled = !arguments.has("no-video")
        if arguments.has("simulcast") || arguments.string("rid") != nil { configuration.simulcastEnabled = true }
        switch arguments.string("rid") {
        case "none": configuration.simulcastRequestRid = SimulcastRequestRid.none
        case "r0": configuration.simulcastRequestRid = .r0
        case "r1": configuration.simulcastRequestRid = .r1
        case "r2": configuration.simulcastRequestRid = .r2
        default: break
        }
        let duration = try arguments.number("duration", in: 0...1e9)
        let snapshot = arguments.string("snapshot")
        let recording = arguments.string("record")
        if let snapshot {
            // The picture comes late: a place that is not there is told now.
            let folder = URL(fileURLWithPath: snapshot).deletingLastPathComponent().path
            guard FileManager.default.isWritableFile(atPath: folder) else {
                throw CommandFailure(
                    .cannotCreate, "\(snapshot) cannot be written: \(folder) is no directory to write to")
            }
        }
        let watcher = try Watcher(
            recording: recording, snapshot: snapshot,
            snapshotAfter: try arguments.integer("snapshot-after", in: 1...Int.max) ?? 30,
            frameLimit: try arguments.integer("frames", in: 1...Int.max),
            endsWithSnapshot: snapshot != nil && recording == nil && duration == nil)

        let begin = ContinuousClock.now
        let session = try await Session.open(configuration) { handlers, _ in
            handlers.onAddStream = { stream in watcher.added(stream) }
        }
        let connectTime = begin.duration(to: .now)
        watcher.onDone = { [weak session] in session?.channel.value.disconnect(error: nil) }
        let isJSON = arguments.has("json")
        let progress = Progress(arguments)
        if isJSON {
            Terminal.result([
                "event": "connected", "connection_id": session.channel.value.connectionId ?? "",
                "connect_ms": PublishCommand.milliseconds(connectTime),
            ])
        } else if !arguments.has("quiet") {
            Terminal.log("watching as \(session.channel.value.connectionId ?? "?")")
        }
        let reporter = Task {
            var last: [String: Any] = [:]
            while !Task.isCancelled, !session.hasEnded {
                try? await Task.sleep(for: .seconds(1))
                guard let report = await StreamReport.receiving(session.channel) else { continue }
                last = report
                if isJSON {
                    Terminal.result(report.merging(["event": "stats", "frames": watcher.frames]) { $1 })
                } else {
                    progress.show(StreamReport.line(report))
                }
            }
            return SendableReport(values: last)
        }
        let ending = await session.run(for: duration)
        reporter.cancel()
        var summary = await reporter.value.values
        progress.finish()
        let outcome = watcher.finish()
        summary["frames"] = outcome.frames
        summary["audio_seconds"] = outcome.audioSeconds
        summary["picture_changes"] = outcome.changes
        if let recorded = outcome.recording {
            summary["recording"] = recorded.path
            summary["recorded_video_frames"] = recorded.videoFrames
            summary["recorded_audio_frames"] = recorded.audioFrames
            summary["recorded_bytes"] = recorded.bytes
        }
        if let picture = outcome.snapshot { summary["snapshot"] = picture }
        if isJSON {
            Terminal.result(summary.merging(["event": "summary"]) { $1 })
        } else if !arguments.has("quiet") {
            Terminal.log(StreamReport.line(summary))
        }
        if let failure = outcome.failure { throw failure }
        let status = Session.status(of: ending)
        if status == .success, snapshot != nil, outcome.snapshot == nil {
            Terminal.error("no picture arrived to take a snapshot of")
            return .failure
        }
        return status
    }
}

/// What a watching command does with the streams of its connection. Thread-safe.
final class Watcher: Sendable {
    struct Outcome: Sendable {
        var frames = 0
        var changes = 0
        var audioSeconds = 0.0
        var recording: WebMRecorder.Summary?
        var snapshot: String?
        var failure: CommandFailure?
    }

    private struct State {
        var outcome = Outcome()
        var lastDigest: UInt64 = 0
        var recordedStream: String?
        /// Streams hold their renderers weakly.
        var kept: [Kept] = []
        var hasSnapshot = false
        var onDone: (@Sendable () -> Void)?
        var isDone = false
    }

    private let state = Locked(State())
    private let recorder: WebMRecorder?
    private let snapshot: String?
    private let snapshotAfter: Int
    private let frameLimit: Int?
    private let endsWithSnapshot: Bool

    init(recording: String?, snapshot: String?, snapshotAfter: Int, frameLimit: Int?, endsWithSnapshot: Bool) throws {
        self.snapshot = snapshot
        self.snapshotAfter = snapshotAfter
        self.frameLimit = frameLimit
        self.endsWithSnapshot = endsWithSnapshot
        do throws(DeviceError) {
            recorder = try recording.map { path throws(DeviceError) in try WebMRecorder(path: path) }
        } catch {
            throw CommandFailure(.cannotCreate, "\(error)")
        }
    }

    var frames: Int { state.withLock { $0.outcome.frames } }
    var onDone: (@Sendable () -> Void)? {
        get { state.withLock { $0.onDone } }
        set {
            let isLate = state.withLock { state in
                state.onDone = newValue
                return state.isDone
            }
            if isLate { newValue?() }
        }
    }

    func added(_ stream: any MediaStream) {
        let counter = stream.addVideoSink { [weak self] frame in self?.received(frame) }
        let kept = Kept(object: counter)
        let isRecorded = state.withLock { state in
            state.kept.append(kept)
            guard state.recordedStream == nil else { return false }
            state.recordedStream = stream.streamId
            return true
        }
        if isRecorded, let recorder { stream.addEncodedSink(recorder) }
        stream.addSoundMeter { [weak self] seconds in self?.heard(seconds) }
    }

    private func heard(_ seconds: Double) { state.withLock { $0.outcome.audioSeconds += seconds } }

    private func received(_ frame: SoraFrames.VideoFrame) {
        let digest = Self.digest(frame)
        let (takesSnapshot, isDone) = state.withLock { state in
            state.outcome.frames += 1
            if digest != state.lastDigest { state.outcome.changes += 1 }
            state.lastDigest = digest
            let takes = snapshot != nil && !state.hasSnapshot && state.outcome.frames >= snapshotAfter
            if takes { state.hasSnapshot = true }
            let done = (frameLimit.map { state.outcome.frames >= $0 } ?? false) || (takes && endsWithSnapshot)
            return (takes, done)
        }
        if takesSnapshot, let snapshot {
            do {
                try PNGWriter.write(frame, to: snapshot)
                state.withLock { $0.outcome.snapshot = snapshot }
            } catch {
                state.withLock { $0.outcome.failure = CommandFailure(.cannotCreate, "\(error)") }
            }
        }
        if isDone {
            let done = state.withLock { state in
                state.isDone = true
                return state.onDone
            }
            done?()
        }
    }

    func finish() -> Outcome {
        let summary = recorder?.stop()
        return state.withLock { state in
            state.outcome.recording = summary
            if let failure = summary?.failure { state.outcome.failure = CommandFailure(.cannotCreate, "\(failure)") }
            return state.outcome
        }
    }

    /// A number that tells whether the picture changed: sums over a coarse grid of the luma plane.
    private static func digest(_ frame: SoraFrames.VideoFrame) -> UInt64 {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        frame.buffer.withPlanes { planes in
            for row in stride(from: 0, to: planes.height, by: 16) {
                for column in stride(from: 0, to: planes.width, by: 16) {
                    hash = (hash ^ UInt64(planes.y[row * planes.strideY + column])) &* 0x0000_0100_0000_01b3
                }
            }
        }
        return hash
    }
}

/// Keeps an object alive; nothing else is done with it.
private struct Kept: @unchecked Sendable {
    // The reference is only held and let go, never used; reference counts are atomic.
    let object: AnyObject
}
#endif
