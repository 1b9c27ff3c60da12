import Foundation
import LocalSora
import SoraLocking
import Testing

@testable import Sora

/// What a redirect leaves and what it voids (api 3.9), on the real engine.
@Suite(.serialized, .leavesNoObjects) struct RedirectSequenceTests {
    /// A connection that is sent elsewhere while everything is under way.
    @Test func aLateRedirectVoidsWhatIsUnderWay() async throws {
        let wire = Interjection()
        try await withServer { target in
            try await withServer({ wire.install(in: &$0) { $0.type == "rpc" ? [.drop] : [.pass] } }) { first in
                let outcomes = Journal()
                let witness = Witness(LiveClient.messaging(first) { $0.audioEnabled = true })
                await expectReady(witness)
                #expect(await witness.journal.wait(for: "opened rpc"))
                let channel = Transfer(witness.channel)
                let (oldPeer, oldId) = (channel.value.native, channel.value.connectionId)
                let old = try #require(channel.value.senderStream)
                async let call: Void = {
                    do {
                        _ = try await channel.value.sendableRPC(
                            method: RequestSimulcastRid.self, params: RequestSimulcastRidParams(rid: .r0), timeout: 60)
                    } catch { outcomes.add("call \(error.localizedDescription)") }
                }()
                for await event in first.events() where event.kind == .rpc { break }
                wire.say(.send(#"{"type":"redirect","location":"\#(target.signalingURL)"}"#))
                // Messages go on all the while: each is accepted by one of the transports or refused at once. An answer of
                // the engine sets the pace while it runs.
                let sending = Task.detached {
                    var accepted = 0
                    while !Task.isCancelled {
                        if channel.value.sendMessage(label: "#spam", data: Data([1])) == nil { accepted += 1 }
                        _ = try? await channel.value.getStatsSnapshot()
                        await Task.yield()
                    }
                    return accepted
                }
                await call
                #expect(outcomes.entries == ["call RPC DataChannel is closed: redirect"])
                #expect(await witness.journal.wait { $0.filter { $0 == "available" }.count == 2 })
                try await channel.value.waitUntilOpen(label: "#spam")
                sending.cancel()
                _ = await sending.value
                #expect(channel.value.state == .connected && channel.value.native !== oldPeer)
                #expect(channel.value.connectionId != oldId && oldPeer?.connectionState == .closed)
                #expect(channel.value.contactUrl?.absoluteString == first.signalingURL)
                #expect(channel.value.connectedUrl?.absoluteString == target.signalingURL)
                // The streams of before are gone without a word.
                #expect(channel.value.senderStream != nil && channel.value.senderStream !== old)
                #expect(channel.value.streams.count == 1)
                #expect(!witness.entries.contains { $0.hasPrefix("stream- ") })
                // Calls count from one again.
                let answer = try await channel.value.rpc(
                    method: PutSignalingNotifyMetadata<[String: Int]>.self,
                    params: PutSignalingNotifyMetadataParams(metadata: ["a": 1]))
                #expect(answer?.id == 1)
                channel.value.disconnect(error: nil)
                await expectEnd(witness, "nil", close: "ok 1000 NO-ERROR")
                let entries = witness.entries
                let redirect = try #require(entries.firstIndex(of: "json redirect"))
                #expect(entries[(redirect + 1)...].contains("signaling redirect"))
                #expect(entries.filter { $0 == "json offer" }.count == 2)
                // Once per label and offer.
                #expect(entries.filter { $0 == "opened #spam" }.count == 2)
                let epochs = Set(witness.events.read().map(\.transportEpoch))
                #expect(epochs == [0, 1])
                #expect(await first.connectionIDs(channelID: "room").isEmpty)
            }
        }
    }

    // 3.9: a disconnect or a cancellation during the redirect wins; the new server is not asked for anything.
    @Test(arguments: ["json redirect", "signaling redirect"], [true, false])
    func anEndDuringARedirectWins(_ moment: String, _ isCancelled: Bool) async throws {
        try await withServer { target in
            try await withServer({ $0.redirectLocation = target.signalingURL }) { first in
                let task = Locked<Transfer<ConnectionTask>?>(nil)
                let hasTask = DispatchSemaphore(value: 0)
                let witness = Witness(LiveClient.messaging(first)) { entry, channel in
                    guard entry == moment else { return }
                    hasTask.wait()
                    if isCancelled { task.read()?.value.cancel() } else { channel.disconnect(error: nil) }
                }
                task.write(Transfer(witness.task))
                hasTask.signal()
                #expect(await witness.ended())
                let raw = isCancelled ? "Connection is cancelled" : "nil"
                #expect(
                    witness.bracket == Witness.beginning
                        + Witness.failure("Connection is cancelled", isCancelled ? "canceled" : "completed")
                        + Witness.end(raw, isCancelled ? "error \(raw)" : "ok 1000 NO-ERROR"))
                #expect(witness.faults == [])
                // An offer that was on its way is told and changes nothing.
                #expect(!witness.entries.contains { $0.hasPrefix("stream+") || $0.hasPrefix("opened") })
                #expect(witness.channel.native.map { $0.connectionState == .closed } ?? true)
                #expect(await target.connectionIDs(channelID: "room").isEmpty)
            }
        }
    }

    // 3.9: a redirect that leads nowhere ends as a failed attempt, or as a connection if it stood already.
    @Test func aRedirectThatLeadsNowhere() async throws {
        let nowhere = "ws://127.0.0.1:1/signaling"
        try await withServer({ $0.redirectLocation = nowhere }) { first in
            let witness = Witness(LiveClient.messaging(first))
            #expect(await witness.ended())
            let raw = witness.entries.first { $0.hasPrefix("legacy ") }.map { String($0.dropFirst(7)) } ?? ""
            #expect(raw.hasPrefix("WebSocket error ("))
            #expect(
                witness.bracket == Witness.beginning + Witness.failure(raw, "completed")
                    + Witness.end(raw, "error \(raw)"))
            #expect(witness.events.read().last?.transportEpoch == 1)
        }
        let wire = Interjection()
        try await withServer({ wire.install(in: &$0) }) { first in
            let witness = Witness(LiveClient.messaging(first))
            await expectReady(witness)
            wire.say(.send(#"{"type":"redirect","location":"\#(nowhere)"}"#))
            await expectEnd(witness, "WebSocket error (", isPrefix: true)
        }
    }
}
