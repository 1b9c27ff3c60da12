#if Media
import Foundation
import Sora
import SoraDevices
import SoraFrames

/// `sora publish`: a file, a test pattern, a camera or a screen as a sender.
enum PublishCommand {
    static let definition = CommandDefinition(
        name: "publish",
        abstract: "Publishes a media file, a test pattern, a camera or a screen.",
        discussion: """
            Without --input, --camera or --screen a moving test pattern with a tone is sent. A file is played at its \
            real pace and ends the command at its end.
             sora publish --channel room --input clip.mp4 --loop
             sora publish --channel room --video-codec VP8 --video-bit-rate 1500
            """,
        options: [
            .value("input", "file", short: "i", "A media file as camera and microphone."),
            .flag("loop", "Plays the file again and again."),
            .value("camera", "id", "A camera: its id, or 'default'."),
            .value("microphone", "id", "A microphone: its id, or 'default'."),
            .flag("screen", "The X11 screen."),
            .value("size", "WxH", default: "640x360", "Size of the test pattern or the camera's picture."),
            .value("fps", "number", default: "30", "Frames per second of test pattern, camera or screen."),
            .flag("no-video", "Sends no video."),
            .flag("no-audio", "Sends no audio."),
            .value("video-codec", "codec", "VP8, VP9, AV1, H264 or H265."),
            .value("video-bit-rate", "kbit/s", "Bit rate to ask for, 1 to 50000."),
            .value("audio-bit-rate", "kbit/s", "Bit rate to ask for, 6 to 510."),
            .flag("simulcast", "Sends three sizes."),
        ] + ConnectionOptions.definitions,
        run: run)

    static func run(_ arguments: ParsedArguments) async throws -> ExitStatus {
        ConnectionOptions.applyLogLevel(arguments)
        Sora.shared.usesManualAudio = true
        let source = try source(arguments)
        var configuration = try ConnectionOptions.configuration(arguments, role: .sendonly)
        configuration.videoEnabled = source.hasVideo && !arguments.has("no-video")
        configuration.audioEnabled = source.hasAudio && !arguments.has("no-audio")
        guard configuration.videoEnabled || configuration.audioEnabled else {
            throw CommandFailure(.usage, "there is nothing to send: no video and no audio")
        }
        configuration.initialMicrophoneEnabled = false
        if let name = arguments.string("video-codec") { configuration.videoCodec = try codec(name) }
        configuration.videoBitRate = try arguments.integer("video-bit-rate", in: 1...50_000)
        configuration.audioBitRate = try arguments.integer("audio-bit-rate", in: 6...510)
        configuration.simulcastEnabled = arguments.has("simulcast")
        let duration = try arguments.number("duration", in: 0...1e9)

        let begin = ContinuousClock.now
        let session = try await Session.open(configuration)
        let connectTime = begin.duration(to: .now)
        let isJSON = arguments.has("json")
        let progress = Progress(arguments)
        if isJSON {
            Terminal.result([
                "event": "connected", "connection_id": session.channel.value.connectionId ?? "",
                "connect_ms": milliseconds(connectTime),
            ])
        } else if !arguments.has("quiet") {
            Terminal.log("publishing as \(session.channel.value.connectionId ?? "?")")
        }
        guard let stream = session.channel.value.senderStream else {
            _ = await session.close()
            throw CommandFailure(.failure, "the connection has no stream to send on")
        }
        let sender = StreamBox(stream: stream)
        let frames = FrameCounter()
        do {
            try source.start { [weak session] event in
                switch event {
                case .video(let frame):
                    frames.video()
                    sender.stream.send(frame: frame)
                case .audio(let frame): sender.stream.send(audio: frame)
                case .ended:
                    // What is in the encoder and on the way still leaves.
                    Task {
                        try await Task.sleep(for: .milliseconds(500))
                        session?.channel.value.disconnect(error: nil)
                    }
                case .failed(let error):
                    Terminal.error("\(error)")
                    session?.channel.value.disconnect(error: nil)
                }
            }
        } catch {
            _ = await session.close()
            throw CommandFailure(.noInput, "\(error)")
        }
        let reporter = Task {
            var last: [String: Any] = [:]
            while !Task.isCancelled, !session.hasEnded {
                try? await Task.sleep(for: .seconds(1))
                guard let report = await StreamReport.sending(session.channel) else { continue }
                last = report
                if isJSON {
                    Terminal.result(report.merging(["event": "stats"]) { $1 })
                } else {
                    progress.show(StreamReport.line(report))
                }
            }
            return SendableReport(values: last)
        }
        let ending = await session.run(for: duration)
        source.stop()
        reporter.cancel()
        let last = await reporter.value.values
        progress.finish()
        if isJSON {
            Terminal.result(last.merging(["event": "summary", "frames_produced": frames.videoCount]) { $1 })
        } else if !arguments.has("quiet") {
            Terminal.log(StreamReport.line(last))
        }
        return Session.status(of: ending)
    }

    private static func source(_ arguments: ParsedArguments) throws -> any MediaSource {
        let size = try self.size(arguments.string("size") ?? "640x360")
        let fps = try arguments.integer("fps", in: 1...120) ?? 30
        do throws(DeviceError) {
            if let path = arguments.string("input") {
                var options = MediaFileSource.Options()
                options.loops = arguments.has("loop")
                options.usesVideo = !arguments.has("no-video")
                options.usesAudio = !arguments.has("no-audio")
                return try MediaFileSource(path: path, options: options)
            }
            if arguments.has("screen") {
                var options = ScreenSource.Options()
                options.framerate = fps
                return ScreenSource(options: options)
            }
            if let id = arguments.string("camera") {
                let cameras = DeviceMonitor.list(.camera)
                guard let camera = id == "default" ? cameras.first : cameras.first(where: { $0.id == id }) else {
                    throw .noSuchDevice(id)
                }
                return try CameraSource(camera, width: size.width, height: size.height, framerate: fps)
            }
            if let id = arguments.string("microphone") {
                return MicrophoneSource(deviceID: id == "default" ? nil : id)
            }
        } catch {
            throw CommandFailure(.noInput, "\(error)")
        }
        return TestPatternSource(
            pattern: arguments.has("no-video")
                ? nil : TestPattern(width: size.width, height: size.height, framerate: Double(fps)),
            tone: arguments.has("no-audio") ? nil : TestTone())
    }

    private static func size(_ text: String) throws -> (width: Int, height: Int) {
        let parts = text.lowercased().split(separator: "x").compactMap { Int($0) }
        guard parts.count == 2, (16...7680).contains(parts[0]), (16...4320).contains(parts[1]) else {
            throw CommandFailure(.usage, "--size takes WIDTHxHEIGHT, not '\(text)'")
        }
        return (parts[0] & ~1, parts[1] & ~1)
    }

    /// CLI2: any case; an unknown name lists the known ones.
    static func codec(_ name: String) throws -> VideoCodec {
        switch name.lowercased() {
        case "vp8": return .vp8
        case "vp9": return .vp9
        case "av1": return .av1
        case "h264", "h.264": return .h264
        case "h265", "h.265", "hevc": return .h265
        default:
            throw CommandFailure(.usage, "unknown video codec '\(name)'; known are VP8, VP9, AV1, H264, H265")
        }
    }

    static func milliseconds(_ duration: Duration) -> Double {
        Double(duration.components.seconds) * 1000 + Double(duration.components.attoseconds) / 1e15
    }
}
#endif
