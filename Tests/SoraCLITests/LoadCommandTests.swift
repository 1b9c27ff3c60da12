import Foundation
import LocalSora
import SoraLoad
import SoraMessages
import SoraNetwork
import Testing

@testable import SoraCLI

/// `sora load`: its words, and the built program against a server in this process.
@Suite(.serialized) struct LoadCommandTests {
    private func plan(_ words: String...) throws -> LoadPlan {
        let root = CommandDefinition(name: "sora", abstract: "", subcommands: [LoadCommand.definition])
        guard case .run(_, _, let arguments) = try ArgumentParser(root: root).parse(["load"] + words) else {
            throw CommandFailure(.usage, "no run")
        }
        return try LoadCommand.plan(arguments)
    }

    @Test func wordsReachThePlan() throws {
        let messages = try plan(
            "--url", "wss://example.com/signaling", "--channel", "c", "--channels", "3", "-n", "30", "--rate", "2.5",
            "--size", "64", "--unreliable", "--ramp", "7", "--duration", "1.5", "--timeout", "4", "--metadata",
            #"{"access_token": "t"}"#, "--insecure", "--loops", "1")
        #expect(messages.url == "wss://example.com/signaling")
        #expect((messages.channel, messages.channels, messages.connections) == ("c", 3, 30))
        #expect(messages.traffic == .messages(perSecond: 2.5, size: 64))
        #expect(messages.isUnreliable && messages.publishers == nil && messages.rampPerSecond == 7)
        #expect(messages.duration == .milliseconds(1500) && messages.connectTimeout == .seconds(4))
        #expect(messages.metadata == ["access_token": "t"])
        #expect(messages.trust == .anything && messages.loops == 1)
        let video = try plan("--traffic", "video", "--bit-rate", "750", "--publishers", "2")
        #expect(video.traffic == .video(bitrate: 750_000))
        #expect(video.publishers == 2 && video.connections == 10 && video.trust == .system)
        #expect(try plan("--traffic", "none").traffic == LoadPlan.Traffic.none)
    }

    @Test(arguments: [
        ["--url", "http://x/"], ["--connections", "0"], ["--size", "19"], ["--metadata", "{"], ["--ca", "/nowhere"],
        ["--rate", "0"], ["--connections", "3", "--publishers", "4"],
    ])
    func wrongWordsAreRefused(words: [String]) {
        #expect(throws: CommandFailure.self) {
            let root = CommandDefinition(name: "sora", abstract: "", subcommands: [LoadCommand.definition])
            guard case .run(_, _, let arguments) = try ArgumentParser(root: root).parse(["load"] + words) else {
                return
            }
            _ = try LoadCommand.plan(arguments)
        }
    }

    private func objects(_ text: String) -> [[String: Any]] {
        text.split(separator: "\n").compactMap {
            try? JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any]
        }
    }

    @Test(.timeLimit(.minutes(2))) func tellsEachSecondAndTheResultAsJSON() async throws {
        let server = try await SoraServer.start()
        let outcome = try CommandTests.run(
            "load", "--url", server.signalingURL, "--connections", "4", "--duration", "2", "--rate", "10", "--json")
        await server.stop()
        #expect(outcome.status == 0, "\(outcome.errors)")
        let lines = objects(outcome.output)
        #expect(lines.count >= 3)
        #expect(lines.dropLast().allSatisfy { $0["event"] as? String == "second" })
        let result = try #require(lines.last)
        #expect(result["event"] as? String == "result")
        #expect(result["connected"] as? Int == 4)
        #expect(result["missing"] as? Int == 0)
        let (sent, expected) = (result["sent"] as? Int ?? 0, result["expected"] as? Int)
        #expect(sent >= 60 && expected == sent * 3)
        #expect((result["latency"] as? [String: Double])?["p99_ms"] ?? 0 > 0)
        #expect((result["connect"] as? [String: Double])?["p50_ms"] ?? 0 > 0)
    }

    @Test(.timeLimit(.minutes(2))) func writesATableForPeople() async throws {
        let server = try await SoraServer.start()
        let outcome = try CommandTests.run(
            "load", "--url", server.signalingURL, "--connections", "3", "--publishers", "1", "--traffic", "video",
            "--bit-rate", "200", "--duration", "1")
        await server.stop()
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(outcome.output.contains("connections  3 of 3, 0 failed, 0 lost\n"), "\(outcome.output)")
        for word in ["connecting  ", "sent  ", "received  ", "latency  ", "p99 "] {
            #expect(outcome.output.contains(word), "\(outcome.output)")
        }
        #expect(outcome.errors.contains(" s: "))
    }

    @Test(.timeLimit(.minutes(2))) func failuresShowInTheExitStatus() async throws {
        var configuration = ServerConfiguration()
        configuration.faults = [Fault(.refuse(.connect, reason: "BUSY"), times: 1)]
        let server = try await SoraServer.start(configuration)
        let partly = try CommandTests.run(
            "load", "--url", server.signalingURL, "--connections", "3", "--duration", "0.1", "--quiet")
        await server.stop()
        #expect(partly.status == 1)
        #expect(partly.errors == "sora: 1 connections failed: closed with 4490 BUSY\n", "\(partly.errors)")
        let nobody = try CommandTests.run("load", "--url", "ws://127.0.0.1:1/signaling", "--duration", "0.1", "--quiet")
        #expect(nobody.status == 69)
    }
}
