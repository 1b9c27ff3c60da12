import Foundation
import LocalSora
import Sora
import Testing

/// Each program of `Examples/` does what it says, against a server in this process.
@Suite(.serialized) struct ExampleProgramTests {
    /// Runs `body` with a server of its own.
    private func withServer(_ body: (SoraServer) async throws -> Void) async throws {
        let server = try await SoraServer.start()
        do {
            try await body(server)
        } catch {
            await server.stop()
            throw error
        }
        await server.stop()
    }

    @Test(.timeLimit(.minutes(2))) func theChatBotAnswersUntilItIsSentAway() async throws {
        try await withServer { server in
            var configuration = Configuration(
                url: try #require(URL(string: server.signalingURL)), channelId: "room", role: .sendrecv)
            configuration.audioEnabled = false
            configuration.videoEnabled = false
            configuration.dataChannelSignaling = true
            configuration.dataChannels = [["label": "#chat", "direction": "sendrecv"]]
            let sora = Sora()
            let channel = try await sora.connect(configuration: configuration)
            try await channel.waitUntilOpen(label: "#chat")
            var answers = channel.texts(label: "#chat").makeAsyncIterator()

            let bot = try ExampleProgram("ChatBot", [server.signalingURL, "room"])
            #expect(await answers.next() == "hello, I am a bot; write !help")
            for (question, answer) in [
                ("hi", "you wrote: hi"), ("!add 2 3.5", "5.5"), ("!help", "!time, !add NUMBER NUMBER…, !bye"),
                ("!bye", "goodbye"),
            ] {
                try channel.send(question, label: "#chat")
                #expect(await answers.next() == answer)
            }
            let end = await bot.finish()
            #expect(end.status == 0, "\(end.output)")
            #expect(end.output.contains("< !bye\n> goodbye\n"), "\(end.output)")
            await channel.disconnect()
        }
    }

    @Test func wrongWordsAreAnsweredWithTheUsage() async throws {
        for name in ["ChatBot", "EventLogger", "FramePublisher", "LayerSwitcher", "Recorder"] {
            let end = await (try ExampleProgram(name, [])).finish()
            #expect(end.status == 64)
            #expect(end.output.hasPrefix("usage: Example\(name) SIGNALING-URL CHANNEL"), "\(end.output)")
        }
    }

    @Test(.timeLimit(.minutes(2))) func theEventLoggerWritesEveryEventUntilTheServerEndsIt() async throws {
        try await withServer { server in
            let events = server.events()
            let logger = try ExampleProgram("EventLogger", [server.signalingURL, "room"])
            for await event in events where event.kind == .switched {
                #expect(await server.disconnect(channelID: "room", connectionID: event.connectionID))
                break
            }
            let end = await logger.finish()
            #expect(end.status == 0, "\(end.output)")
            for part in [
                #""event":"mediaChannelAdded","sequence":1,"source":"sora""#, #""type":"offer""#,
                #""event":"connected""#, #""event":"disconnected""#, "ended by 1000 DISCONNECTED-API",
            ] {
                #expect(end.output.contains(part), "\(part) is missing in \(end.output)")
            }
            #expect(!end.output.contains("lost"), "\(end.output)")
        }
    }

    @Test(.timeLimit(.minutes(2))) func theEventLoggerTellsWhyAnAttemptFailed() async throws {
        let logger = try ExampleProgram("EventLogger", ["ws://127.0.0.1:1/signaling", "room"])
        let end = await logger.finish()
        #expect(end.status == 0 && end.output.contains("failed: WebSocket error"), "\(end.output)")
        #expect(end.output.contains(#""event":"connectFailed""#), "\(end.output)")
    }

    #if Media
    @Test(.timeLimit(.minutes(2))) func theLayerSwitcherAsksForEachLayer() async throws {
        try await withServer { server in
            let end = await (try ExampleProgram("LayerSwitcher", [server.signalingURL, "room", "0.1"])).finish()
            #expect(end.status == 0, "\(end.output)")
            #expect(end.output.contains("the others now know that I am curious"), "\(end.output)")
            for rid in ["r0", "r1", "r2"] {
                #expect(
                    end.output.contains("asked for \(rid), answered \(rid), sees nothing"), "\(end.output)")
            }
        }
    }

    @Test(.timeLimit(.minutes(3))) func theRecorderRecordsWhatThePublisherSends() async throws {
        try await withServer { server in
            let folder = FileManager.default.temporaryDirectory.appendingPathComponent("take-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(at: folder) }
            let take = folder.appendingPathComponent("take").path

            let events = server.events()
            let recorder = try ExampleProgram("Recorder", [server.signalingURL, "room", take, "100"])
            for await event in events where event.kind == .joined { break }
            let publisher = try ExampleProgram("FramePublisher", [server.signalingURL, "room", "4"])
            let published = await publisher.finish()
            #expect(published.status == 0, "\(published.output)")
            #expect(published.output.contains(#/sent [1-9]\d+ packets/#), "\(published.output)")
            // It ends because the publisher left.
            let recorded = await recorder.finish(within: 20)
            #expect(recorded.status == 0, "\(recorded.output)")

            let file = try Data(contentsOf: URL(fileURLWithPath: take + ".y4m"))
            let header = "YUV4MPEG2 W320 H180 F30:1 Ip A1:1 C420\n"
            #expect(file.starts(with: Data(header.utf8)))
            let picture = 6 + 320 * 180 * 3 / 2
            let count = (file.count - header.utf8.count) / picture
            #expect(file.count == header.utf8.count + count * picture && count >= 10, "\(count) pictures")
            #expect(recorded.output.contains("recorded \(count) pictures"), "\(recorded.output)")
            // The last picture has the bright bar on the dark ground.
            let luma = file.suffix(picture - 6).prefix(320 * 180)
            #expect(luma.contains { $0 > 180 } && luma.contains { $0 < 80 })
        }
    }
    #endif
}
