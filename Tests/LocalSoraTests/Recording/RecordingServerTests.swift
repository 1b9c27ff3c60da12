import Foundation
import LocalSora
import SoraMessages
import SoraWire
import Testing

/// Recordings on a real server: the API, the webhooks, and files on a disk.
@Suite("Server: recordings", .serialized, .leavesNoObjects) struct RecordingServerTests {
    private func withDirectory(_ body: (String) async throws -> Void) async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "recordings-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        try await body(directory.path)
    }

    /// Whether that many packets of the first sender's sound have come, asking a bounded number of times.
    private func hasReceived(_ packets: Int, _ server: SoraServer) async throws -> Bool {
        for _ in 0..<1000 {
            let all = try await server.call("Sora_20171101.GetStatsAllConnections").json.arrayValue?.first?.objectValue
            let audio = all?["sent_tracks"]?.arrayValue?.first?.objectValue
            let count = audio?["layers"]?.arrayValue?.first?.objectValue?["packets"]?.intValue ?? 0
            if count >= packets { return true }
        }
        return false
    }

    @Test func apiRecordsAndWebhooksTell() async throws {
        let hook = try await HookServer.start { _, _ in [:] }
        defer { hook.stop() }
        try await withDirectory { directory in
            try await withServer {
                $0.recordingDirectory = directory
                $0.eventWebhook = hook.url
            } _: { server in
                try await withClient { client in
                    try await client.join(server.signalingURL, ChannelHarness.connect(.sendonly))
                    #expect(await client.isUp())
                    let started = try await server.call(
                        "Sora_20231220.StartRecording", ["channel_id": "sora", "metadata": ["a": 1]])
                    let id = try #require(started.json.objectValue?["recording_id"]?.stringValue)
                    await client.play(20)
                    #expect(await client.wait { !($0.peer?.keyFrameRequests.isEmpty ?? true) })
                    await client.play(20)
                    #expect(try await hasReceived(40, server))
                    let session = try await server.call("Sora_20231220.GetSession", ["channel_id": "sora"])
                    #expect(session.json.objectValue?["recording_id"]?.stringValue == id)
                    let again = try await server.call("Sora_20231220.StartRecording", ["channel_id": "sora"])
                    #expect(again.json.objectValue?["error_type"] == "ALREADY-RECORDING")
                    let stopped = try await server.call("Sora_20231220.StopRecording", ["channel_id": "sora"])
                    #expect(stopped.json.objectValue?["recording_id"]?.stringValue == id)
                    #expect(await hook.wait { bodies in bodies.contains { $0["type"] == "archive.available" } })
                    let types = hook.bodies.compactMap { $0["type"]?.stringValue }
                    #expect(types.prefix(3) == ["connection.created", "recording.started", "archive.started"])
                    #expect(types.contains("recording.report"))
                    let body = hook.bodies.first { $0["type"] == "archive.available" }
                    let data = try #require(body?["data"]?.objectValue)
                    #expect(data["recording_metadata"] == ["a": 1])
                    let path = "\(directory)/\(data["filename"]?.stringValue ?? "")"
                    let file = try #require(FileManager.default.contents(atPath: path))
                    #expect(data["size"]?.intValue == file.count)
                    let reading = MatroskaReading(Array(file))
                    #expect(!reading.isBroken)
                    #expect(Set(reading.codecs).contains("A_OPUS"))
                    #expect(reading.blocks.count > 20)
                }
            }
        }
    }

    /// Pieces of no length would keep the loop busy with nothing but files.
    @Test func piecesAreAtLeastASecondLong() async throws {
        try await withDirectory { directory in
            try await withServer {
                $0.recordingDirectory = directory
            } _: { server in
                try await withClient { client in
                    try await client.join(server.signalingURL, ChannelHarness.connect(.sendonly))
                    #expect(await client.isUp())
                    for wrong: JSONValue in [0.0001, 0.999, 0, -1, "1"] {
                        let answer = try await server.call(
                            "Sora_20231220.StartRecording", ["channel_id": "sora", "split_duration": wrong])
                        #expect(answer.status == 400)
                        #expect(answer.json.objectValue?["error_type"] == "INVALID-PARAMETER")
                    }
                    let right = try await server.call(
                        "Sora_20231220.StartRecording", ["channel_id": "sora", "split_duration": 1])
                    #expect(right.status == 200)
                }
            }
        }
    }

    @Test func sessionWebhookAsksForARecording() async throws {
        let hook = try await HookServer.start { _, body in
            body["type"] == "session.created" ? ["recording": true, "recording_metadata": "all"] : [:]
        }
        defer { hook.stop() }
        try await withDirectory { directory in
            try await withServer {
                $0.recordingDirectory = directory + "/is-not-there"
                $0.sessionWebhook = hook.url
                $0.eventWebhook = hook.url
            } _: { server in
                try await withClient { client in
                    try await client.join(server.signalingURL, ChannelHarness.connect(.sendonly))
                    #expect(await client.isUp())
                    #expect(await hook.wait { bodies in bodies.contains { $0["type"] == "archive.started" } })
                    await client.play(20)
                    // Everything has arrived once the server counted the sound.
                    #expect(try await hasReceived(20, server))
                    _ = try await server.call("Sora_20151104.DisconnectChannel", ["channel_id": "sora"])
                }
                // The directory is missing: the file failed, and that is told.
                #expect(await hook.wait { bodies in bodies.contains { $0["type"] == "archive.failed" } })
                let body = hook.bodies.first { $0["type"] == "archive.failed" }
                #expect(body?["data"]?.objectValue?["reason"] == "No such file or directory")
                #expect(body?["data"]?.objectValue?["recording_metadata"] == "all")
            }
        }
    }

    @Test func recordingNeedsADirectory() async throws {
        try await withServer { server in
            try await withClient { client in
                try await client.join(server.signalingURL, ChannelHarness.messaging())
                #expect(await client.isUp())
                let started = try await server.call("Sora_20231220.StartRecording", ["channel_id": "sora"])
                #expect(started.status == 400)
                #expect(started.json.objectValue?["error_type"] == "RECORDING-IS-OFF")
                for bad in [0, -1, 1e12] {
                    let wrong = try await server.call(
                        "Sora_20231220.StartRecording", ["channel_id": "sora", "expire_time": .double(bad)])
                    #expect(wrong.json.objectValue?["error_type"] == "INVALID-PARAMETER")
                }
                let stopped = try await server.call("Sora_20231220.StopRecording", ["channel_id": "sora"])
                #expect(stopped.json.objectValue?["error_type"] == "NOT-RECORDING")
            }
        }
    }
}
