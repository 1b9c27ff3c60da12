#if Media
import Foundation
import LocalSora
import Sora
import SoraFrames
import SoraLocking

/// How long it takes from `connect` until a new viewer of a running 720p simulcast stream has a decoded picture: local
/// server, publisher and viewers in this one process, over real sockets.
///
/// Viewers come at any distance from the key frame that the one before was given.
enum FirstPictureBenchmark {
    /// 20 viewers for each codec.
    static func run(viewers: Int = 20) async throws {
        for codec in [VideoCodec.vp8, .vp9, .h264] { try await measure(codec, viewers: viewers) }
    }

    private static func measure(_ codec: VideoCodec, viewers: Int) async throws {
        let server = try await SoraServer.start()
        let source = Task.detached {
            let publisher = try await Sora.shared.connect(configuration: configuration(server, .sendonly, codec))
            if let stream = publisher.senderStream { await send(to: stream) }
            await publisher.disconnect()
        }
        var waits: [Double] = []
        // The first ones see the stream rise to its full size.
        for number in -3..<viewers {
            let wait = try await watch(server, codec)
            if number >= 0 { waits.append(wait) }
            // 0 to 0.6 s, in an order that is the same in each run.
            try await Task.sleep(for: .milliseconds((number + 3) * 7 % 13 * 50))
        }
        source.cancel()
        try await source.value
        await server.stop()
        waits.sort()
        Report.emit(
            "first-picture",
            ["viewers": Double(viewers), "p50_ms": waits[waits.count / 2], "worst_ms": waits.last ?? 0],
            words: ["codec": codec.description])
    }

    private static func configuration(_ server: SoraServer, _ role: Role, _ codec: VideoCodec) -> Configuration {
        var configuration = Configuration(
            urlCandidates: [server.signalingURL].compactMap { URL(string: $0) }, channelId: "first-picture", role: role)
        configuration.videoCodec = codec
        configuration.videoBitRate = 3000
        configuration.audioEnabled = false
        configuration.simulcastEnabled = true
        configuration.simulcastRequestRid = .r2
        configuration.initialCameraEnabled = false
        configuration.initialMicrophoneEnabled = false
        return configuration
    }

    private static func send(to stream: any MediaStream) async {
        let pattern = TestPattern(width: 1280, height: 720)
        let clock = ContinuousClock()
        let begin = clock.now
        var number: UInt32 = 0
        while !Task.isCancelled {
            stream.send(frame: VideoFrame(buffer: pattern.draw(number), timestamp: pattern.time(of: number)))
            number += 1
            try? await clock.sleep(until: begin + .nanoseconds(pattern.time(of: number)))
        }
    }

    /// In milliseconds.
    private static func watch(_ server: SoraServer, _ codec: VideoCodec) async throws -> Double {
        let (pictures, arrival) = AsyncStream.makeStream(of: ContinuousClock.Instant.self)
        let sink = Locked<AnyObject?>(nil)
        let configuration = configuration(server, .recvonly, codec)
        configuration.mediaChannelHandlers.onAddStream = { stream in
            let handle = stream.addVideoSink { _ in arrival.yield(ContinuousClock.now) }
            sink.withLockUnchecked { $0 = handle }
        }
        let begin = ContinuousClock.now
        let viewer = try await Sora.shared.connect(configuration: configuration)
        let first = await pictures.first { _ in true }
        await viewer.disconnect()
        sink.withLockUnchecked { $0 = nil }
        guard let first else { return .infinity }
        return (first - begin) / .milliseconds(1)
    }
}
#endif
