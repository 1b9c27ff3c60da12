import Foundation
import LocalSora
import Sora
import Testing

/// The SDK and the unmodified Python SDK (libwebrtc) in one channel of the local server.
@Suite(.serialized, .enabled(if: Interop.isEnabled, Interop.reason))
struct SwiftClientTests {
    static let program = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().appending(
        path: "sora")

    /// Byte for byte, from nothing to the limit, both ways, compressed and not.
    @Test func messagesWithPython() async throws {
        let server = try await Interop.startServer()
        defer { Task { await server.stop() } }
        let python = try PeerProcess(.pythonSDK, name: "python")
        try python.send(["do": "connect", "options": PythonSDKTests.messagingOptions(server, channel: "mixed")])
        _ = try await python.next("switched")

        let swift = try await SwiftPeer.connect(server, channel: "mixed", role: .sendrecv) { configuration in
            configuration.audioEnabled = false
            configuration.videoEnabled = false
            configuration.dataChannelSignaling = true
            configuration.dataChannels = [
                ["label": "#plain", "direction": "sendrecv"],
                ["label": "#zipped", "direction": "sendrecv", "compress": true],
            ]
        }
        try await swift.opened("#plain")
        try await swift.opened("#zipped")
        for label in ["#plain", "#zipped"] {
            for size in [0, 1, 27, 1200, 65_536, 262_144] {
                let bytes = SwiftPeer.bytes(size)
                // Random bytes grow under zlib: the largest fits only uncompressed.
                if label == "#zipped", size > 262_000 { continue }
                try await swift.send(label, bytes)
                let received = try await python.next("message") { $0.string("label") == label }
                #expect(received.int("size") == size)
                #expect(received.string("sha256") == SwiftPeer.sha256(bytes))

                try python.send(["do": "send", "label": label, "base64": bytes.base64EncodedString()])
                let back = try await swift.message(label)
                #expect(back == bytes, "\(label) \(size): \(back.count) bytes came back")
            }
        }
        try await swift.leave()
        try await python.leave()
    }

    /// Python publishes VP8 and Opus; the recording is playable and its frames differ over time.
    @Test func recordsWhatPythonPublishes() async throws {
        let server = try await Interop.startServer()
        defer { Task { await server.stop() } }
        let python = try PeerProcess(.pythonSDK, name: "python")
        try python.send([
            "do": "connect", "send_video": Interop.videoFeed, "send_audio": true,
            "options": Interop.pythonOptions(server, channel: "rec", ["role": "sendonly", "video_codec_type": "VP8"]),
        ])
        _ = try await python.next("notify")
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "rec.webm").path
        let watch = try Tool.run([
            "watch", "--url", server.signalingURL, "--channel", "rec", "--record", file, "--duration", "8", "--json",
        ])
        #expect(watch.status == 0, "\(watch.errors)")
        let summary = try #require(watch.objects.last { $0["event"] as? String == "summary" })
        #expect((summary["frames"] as? Int ?? 0) > 100)
        #expect((summary["picture_changes"] as? Int ?? 0) > 50)
        #expect((summary["audio_seconds"] as? Double ?? 0) > 4)

        let probe = try Tool.command(
            "ffprobe",
            ["-v", "error", "-count_frames", "-show_entries", "stream=codec_name,nb_read_frames", "-of", "json", file])
        let streams = (probe.object?["streams"] as? [[String: Any]]) ?? []
        let video = streams.first { $0["codec_name"] as? String == "vp8" }
        #expect(Int(video?["nb_read_frames"] as? String ?? "") ?? 0 > 100, "\(probe.output) \(probe.errors)")
        #expect(streams.contains { $0["codec_name"] as? String == "opus" })
        try await python.leave()
    }

    /// The real clip: nearly every frame reaches Python, pictures differ, and there is sound.
    ///
    /// What arrived is what libwebrtc counted as received whole. How many of these it decodes and the sink gets to see
    /// depends on how busy the machine is, and only has to be a stream.
    @Test func pythonReceivesWhatSwiftPublishes() async throws {
        let server = try await Interop.startServer()
        defer { Task { await server.stop() } }
        let python = try PeerProcess(.pythonSDK, name: "python")
        try python.send([
            "do": "connect", "options": Interop.pythonOptions(server, channel: "pub", ["role": "recvonly"]),
        ])
        _ = try await python.next("notify")
        let clip = try Tool.command("dpkg", ["-L", "forensics-samples-files"]).output.split(separator: "\n")
            .first { $0.hasSuffix("/movie-hello.mp4") }.map(String.init)
        let input = try #require(clip, "the clip of forensics-samples-files is not installed")
        let words = [
            "publish", "--url", server.signalingURL, "--channel", "pub", "--input", input, "--video-codec", "VP8",
            "--video-bit-rate", "1500", "--duration", "13", "--loop", "--json",
        ]
        let publishing = Task.detached { try Tool.run(words) }
        defer { publishing.cancel() }
        // The track and its statistics go when the publisher leaves: they are read until then.
        _ = try await python.next("track", within: .seconds(30)) { $0.string("kind") == "video" }
        var received = 0
        let isGone = try await eventually(within: .seconds(60), every: .milliseconds(250)) {
            try python.send(["do": "stats"])
            let reports = try await python.next("stats").objects("reports")
            let video = reports.first { $0["type"] as? String == "inbound-rtp" && $0["kind"] as? String == "video" }
            received = max(received, (video?["framesReceived"] as? NSNumber)?.intValue ?? 0)
            return python.all.contains {
                $0.object("message")?["event_type"] as? String == "connection.destroyed"
            }
        }
        #expect(isGone)
        let publish = try await publishing.value
        #expect(publish.status == 0, "\(publish.errors)")
        let summary = try #require(publish.objects.last { $0["event"] as? String == "summary" })
        let sent = summary["frames_sent"] as? Double ?? 0
        try python.send(["do": "media"])
        let tracks = try await python.next("media").objects("tracks")
        let video = tracks.first { $0["kind"] as? String == "video" }
        let loud = tracks.first { $0["kind"] as? String == "audio" }?["loud"] as? Int ?? 0
        #expect(sent > 60)
        // The last quarter of a second may be missing in the statistics.
        #expect(Double(received) >= sent * 0.95 - 8, "\(received) of \(sent) frames arrived")
        #expect((video?["distinct"] as? Int ?? 0) > 30)
        #expect(loud > 16_000, "\(loud) loud samples of speech")
        try await python.leave()
    }

    /// A server that is killed ends the connection with a clear error in bounded time.
    @Test func killedServerIsNoticed() async throws {
        let (server, lines) = try Tool.startServer(host: Interop.host)
        let url = try #require(await lines())
        let swift = try await SwiftPeer.connect(url: url, channel: "k", role: .sendrecv) { configuration in
            configuration.audioEnabled = false
            configuration.videoEnabled = false
            configuration.dataChannelSignaling = true
            configuration.ignoreDisconnectWebSocket = true
            configuration.dataChannels = [["label": "#a", "direction": "sendrecv"]]
        }
        try await swift.opened("#a")
        kill(server.processIdentifier, SIGKILL)
        let ending = try await swift.ended(within: .seconds(60))
        guard case .error = ending else {
            Issue.record("ended as \(ending)")
            return
        }
    }
}
