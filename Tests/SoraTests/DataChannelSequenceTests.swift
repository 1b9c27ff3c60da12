import Foundation
import LocalSora
import Testing

@testable import Sora

/// How data channels come and signaling moves to them (api 3.8, 3.10, 3.11 and 1.3.4, rules 8 and 9), on the real engine.
@Suite(.serialized, .leavesNoObjects) struct DataChannelSequenceTests {
    @Test func dataChannelsOpenInTheDocumentedOrder() async throws {
        try await withServer { server in
            let calls = Journal()
            let witness = Witness(LiveClient.messaging(server)) { entry, channel in
                guard entry == "opened rpc" else { return }
                let channel = Transfer(channel)
                Task {
                    do {
                        let answer = try await channel.value.sendableRPC(
                            method: SendablePutSignalingNotifyMetadata<[String: Int]>.self,
                            params: PutSignalingNotifyMetadataParams(metadata: ["a": 1]))
                        calls.add("\(answer?.result["a"] ?? 0)")
                    } catch { calls.add(error.localizedDescription) }
                }
            }
            await expectReady(witness)
            let other = Witness(LiveClient.messaging(server))
            await expectReady(other)
            #expect(other.channel.sendMessage(label: "#spam", data: Data([1])) == nil)
            #expect(await witness.journal.wait(for: "e:dataChannelMessage #spam 1"))
            // Usable from the moment it is reported.
            #expect(await calls.wait { !$0.isEmpty })
            #expect(calls.entries == ["1"])
            let entries = witness.entries
            let labels = ["signaling", "notify", "push", "stats", "rpc", "#spam", "#egg"]
            for label in labels {
                #expect(entries.filter { $0 == "opened \(label)" }.count == 1, "\(label)")
                let opened = try #require(entries.firstIndex(of: "opened \(label)"))
                if let message = entries.firstIndex(where: { $0.hasPrefix("message \(label) ") }) {
                    #expect(opened < message)
                }
            }
            // Once, directly after the last of the application's labels.
            #expect(entries.filter { $0 == "available" }.count == 1)
            let last = try #require(entries.lastIndex { $0.hasPrefix("opened #") })
            #expect(entries[last + 2] == "available")
            for one in [witness, other] { one.channel.disconnect(error: nil) }
            await expectEnd(witness, "nil", close: "ok 1000 NO-ERROR")
            #expect(await other.ended())
        }
    }

    // 3.11: without labels of the application there is nothing to be available.
    @Test func withoutApplicationLabelsNothingBecomesAvailable() async throws {
        try await withServer { server in
            let witness = Witness(LiveClient.messaging(server) { $0.dataChannels = nil })
            #expect(await witness.connected())
            try await witness.channel.waitUntilOpen(label: "rpc")
            #expect(await witness.journal.wait(for: "signaling switched"))
            #expect(
                witness.channel.sendMessage(label: "#spam", data: Data())?.localizedDescription
                    == "Messaging error: no DataChannel found: label => #spam")
            witness.channel.disconnect(error: nil)
            await expectEnd(witness, "nil", close: "ok 1000 NO-ERROR")
            #expect(!witness.entries.contains("available"))
        }
    }

    // 3.8, 3.10: a re-offer that comes over its data channel before `switched` has come is answered there.
    @Test(.needsCodecs) func aReOfferDuringTheSwitchIsAnswered() async throws {
        try await withServer({
            $0.script = {
                $0.type == "switched" && $0.connectionID != "" && $0.index == 0 ? [.hold("switch")] : [.pass]
            }
        }) { server in
            let witness = Witness(
                LiveClient.messaging(server) {
                    $0.audioEnabled = true
                    $0.role = .recvonly
                })
            #expect(await witness.connected())
            #expect(await witness.journal.wait(for: "opened #egg"))
            // Its own hold is let go at once.
            let sender = Witness(
                LiveClient.messaging(server) {
                    $0.audioEnabled = true
                    $0.role = .sendonly
                    $0.initialMicrophoneEnabled = false
                })
            #expect(await sender.connected())
            #expect(await witness.journal.wait { $0.contains { $0.hasPrefix("e:streamAdded ") } })
            #expect(
                witness.channel.sendMessage(label: "#spam", data: Data())?.localizedDescription
                    == "Messaging error: DataChannel is not open yet")
            await server.release("switch")
            try await witness.channel.waitUntilOpen(label: "#spam")
            try await sender.channel.waitUntilOpen(label: "#spam")
            // Messages may be sent before the handler of `switched` has its turn.
            #expect(await witness.journal.wait(for: "signaling switched"))
            let entries = witness.entries
            let reOffer = try #require(entries.firstIndex(of: "json re-offer"))
            let added = try #require(entries.firstIndex { $0.hasPrefix("stream+ ") })
            let switched = try #require(entries.firstIndex(of: "json switched"))
            #expect(reOffer < added && added < switched)
            #expect(entries[added] == "stream+ \(sender.channel.connectionId ?? "")")
            // The stream goes with its sender, and is told.
            sender.channel.disconnect(error: nil)
            #expect(await sender.ended())
            #expect(await witness.journal.wait { $0.contains { $0.hasPrefix("e:streamRemoved ") } })
            #expect(witness.channel.streams.isEmpty)
            witness.channel.disconnect(error: nil)
            await expectEnd(witness, "nil", close: "ok 1000 NO-ERROR")
        }
    }
}
