#if Media
import Foundation
import LocalSora
import Sora
import SoraFrames
import SoraLocking

/// What viewers of a running 720p simulcast stream wait for: local server, publisher and viewers in this one process, over
/// real sockets, everything decoded.
///
/// - `first-picture`: from `connect` to the first decoded picture, of viewers that come at any distance from the key frame
///   that the one before was given.
/// - `layer-switch`: the longest time between two decoded pictures around switches by request.
enum FirstPictureBenchmark {
    private struct Failure: Error, CustomStringConvertible { var description: String }

    static func run(viewers: Int = 20) async throws {
        // Standard output is for figures.
        Sora.logLevel = .warn
        for codec in [VideoCodec.vp8, .vp9, .h264] { try await measure(codec, viewers: viewers) }
    }

    private static func measure(_ codec: VideoCodec, viewers: Int) async throws {
        let server = try await SoraServer.start()
        let publisher = try await Sora.shared.connect(configuration: configuration(server, .sendonly, codec))
        guard let sending = publisher.senderStream else { throw Failure(description: "no stream to send") }
        // Handed over: from here on the task alone uses it.
        nonisolated(unsafe) let stream = sending
        let source = Task.detached { await send(to: stream) }
        var waits: [Double] = []
        // The first ones see the stream rise to its full size.
        for number in -3..<viewers {
            let viewer = try await Viewer(configuration(server, .recvonly, codec))
            if number >= 0 { waits.append(viewer.wait) }
            await viewer.leave()
            // 0 to 0.6 s, in an order that is the same in each run.
            try await Task.sleep(for: .milliseconds((number + 3) * 7 % 13 * 50))
        }
        report("first-picture", codec, waits)
        let viewer = try await Viewer(configuration(server, .recvonly, codec))
        var gaps: [Double] = []
        for rid in [Rid.r0, .r2, .r1, .r0, .r1, .r2] { gaps.append(try await viewer.longestGap(switchingTo: rid)) }
        report("layer-switch", codec, gaps)
        await viewer.leave()
        source.cancel()
        await source.value
        await publisher.disconnect()
        await server.stop()
    }

    private static func report(_ test: String, _ codec: VideoCodec, _ milliseconds: [Double]) {
        let sorted = milliseconds.sorted()
        Report.emit(
            test, ["count": Double(sorted.count), "p50_ms": sorted[sorted.count / 2], "worst_ms": sorted.last ?? 0],
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
        configuration.dataChannelSignaling = true
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

    /// One who watches, and when each picture was decoded.
    private final class Viewer {
        private let channel: MediaChannel
        private let arrivals: AsyncStream<ContinuousClock.Instant>
        private let sink = Locked<AnyObject?>(nil)
        /// From `connect` to the first decoded picture, in milliseconds.
        let wait: Double

        init(_ configuration: Configuration) async throws {
            let (arrivals, arrival) = AsyncStream.makeStream(of: ContinuousClock.Instant.self)
            let sink = sink
            configuration.mediaChannelHandlers.onAddStream = { stream in
                let handle = stream.addVideoSink { _ in arrival.yield(ContinuousClock.now) }
                sink.withLockUnchecked { $0 = handle }
            }
            let begin = ContinuousClock.now
            channel = try await Sora.shared.connect(configuration: configuration)
            let bound = Task {
                try await Task.sleep(for: .seconds(10))
                arrival.finish()
            }
            defer { bound.cancel() }
            guard let first = await arrivals.first(where: { _ in true }) else {
                throw Failure(description: "no picture within 10 s")
            }
            wait = (first - begin) / .milliseconds(1)
            self.arrivals = arrivals
        }

        /// Over the second from the request on, in milliseconds.
        func longestGap(switchingTo rid: Rid) async throws -> Double {
            let begin = ContinuousClock.now
            _ = try await channel.rpc(
                method: RequestSimulcastRid.self, params: RequestSimulcastRidParams(rid: rid), timeout: 10)
            var last: ContinuousClock.Instant?
            var longest = Duration.zero
            for await arrival in arrivals {
                if let last, arrival >= begin { longest = max(longest, arrival - last) }
                last = arrival
                if arrival - begin > .seconds(1) { break }
            }
            return longest / .milliseconds(1)
        }

        func leave() async {
            await channel.disconnect()
            sink.withLockUnchecked { $0 = nil }
        }
    }
}
#endif
