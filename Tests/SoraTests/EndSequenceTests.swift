import Foundation
import LocalSora
import Testing

@testable import Sora

/// How a connection that stands ends (api 3.4 to 3.8), on the real engine.
@Suite(.serialized, .leavesNoObjects) struct EndSequenceTests {
    // 3.4: whatever is under way, the end is one; what comes after it is refused.
    @Test func theApplicationEndsAConnection() async throws {
        let wire = Interjection()
        try await withServer({ wire.install(in: &$0) { $0.type == "rpc" ? [.drop] : [.pass] } }) { server in
            let outcomes = Journal()
            let witness = Witness(LiveClient.messaging(server)) { entry, channel in
                // Everything is released when the last handlers run.
                guard entry.hasPrefix("removed") || entry.hasPrefix("disconnect ") else { return }
                outcomes.add("\(entry) \(channel.state) \(channel.native?.connectionState.description ?? "-")")
                outcomes.add("send \(channel.sendMessage(label: "#spam", data: Data())?.localizedDescription ?? "nil")")
            }
            await expectReady(witness)
            #expect(await witness.journal.wait(for: "opened rpc"))
            let channel = Transfer(witness.channel)
            async let call: Void = {
                do {
                    _ = try await channel.value.sendableRPC(
                        method: RequestSimulcastRid.self, params: RequestSimulcastRidParams(rid: .r0), timeout: 60)
                } catch { outcomes.add("call \(error.localizedDescription)") }
            }()
            for await event in server.events() where event.kind == .rpc { break }
            channel.value.disconnect(error: SoraError.rpcTimeout)
            #expect(channel.value.state == .disconnecting)
            #expect(
                channel.value.sendMessage(label: "#spam", data: Data())?.localizedDescription
                    == "Messaging error: DataChannel is not open yet")
            channel.value.disconnect(error: nil)
            await call
            await expectEnd(witness, "RPC response timeout")
            #expect(
                outcomes.entries == [
                    "call RPC DataChannel is closed: user", "removed disconnected closed",
                    "send Messaging error: DataChannel is not open yet",
                    "disconnect error RPC response timeout disconnected closed",
                    "send Messaging error: DataChannel is not open yet",
                ])
            #expect(await server.connectionIDs(channelID: "room").isEmpty)
        }
    }

    // 3.5, first row: the WebSocket decides as long as signaling has not moved.
    @Test(.needsCodecs) func aCloseFrameEndsAConnectionWithoutDataChannels() async throws {
        let wire = Interjection()
        try await withServer({ wire.install(in: &$0) }) { server in
            let witness = Witness(
                LiveClient.messaging(server) {
                    $0.dataChannelSignaling = false
                    $0.dataChannels = nil
                    $0.audioEnabled = true
                    $0.role = .recvonly
                })
            #expect(await witness.connected())
            wire.say(.closeWebSocket(code: 4490, reason: "OVERLOADED"))
            await expectEnd(witness, "WebSocket is closed (4490 OVERLOADED)", close: "ok 4490 OVERLOADED")
        }
    }

    // 3.5: a close frame in the hybrid state ends the connection.
    @Test func aCloseFrameThatIsNotIgnoredEndsASwitchedConnection() async throws {
        let wire = Interjection()
        try await withServer({ wire.install(in: &$0) }) { server in
            let witness = Witness(LiveClient.messaging(server))
            await expectReady(witness)
            wire.say(.closeWebSocket(code: 1000, reason: "BYE"))
            await expectEnd(witness, "WebSocket is closed (1000 BYE)", close: "ok 1000 BYE")
        }
    }

    // 3.5: the server hears of it over the data channel. This one has told the client that the WebSocket counts, and
    // itself listens on: else the end of the WebSocket and the message would race.
    @Test func theServerHearsOverTheDataChannelOfACloseFrame() async throws {
        let wire = Interjection()
        try await withServer({
            wire.install(in: &$0) { message in
                message.type == "switched"
                    ? [.send(edited(message.text) { $0["ignore_disconnect_websocket"] = false })] : [.pass]
            }
            $0.ignoreDisconnectWebSocket = true
        }) { server in
            let witness = Witness(LiveClient.messaging(server))
            await expectReady(witness)
            wire.say(.closeWebSocket(code: 1000, reason: "BYE"))
            await expectEnd(witness, "WebSocket is closed (1000 BYE)", close: "ok 1000 BYE")
            let heard = await server.waitForEvent(.disconnected, within: .seconds(30))
            #expect(heard?.detail == "client: WEBSOCKET-ONCLOSE")
        }
    }

    // 3.6: without a close frame it is an error.
    @Test func aLostWebSocketThatIsNotIgnoredIsAnError() async throws {
        let wire = Interjection()
        try await withServer({ wire.install(in: &$0) }) { server in
            let witness = Witness(LiveClient.messaging(server))
            await expectReady(witness)
            wire.say(.resetWebSocket)
            await expectEnd(witness, "WebSocket error (", isPrefix: true)
        }
    }

    // 3.5, second row and 3.8: once the server said so the WebSocket may go, by a close frame or without.
    @Test func anIgnoredWebSocketMayGoEitherWay() async throws {
        for action in [ScriptAction.closeWebSocket(code: 1000, reason: "BYE"), .resetWebSocket] {
            let wire = Interjection()
            try await withServer({
                wire.install(in: &$0)
                $0.ignoreDisconnectWebSocket = true
            }) { server in
                let witness = Witness(LiveClient.messaging(server) { $0.ignoreDisconnectWebSocket = true })
                await expectReady(witness)
                wire.say(action)
                for await event in server.events() where event.kind == .webSocketClosed { break }
                // Signaling goes on over its data channel.
                try await server.push(channelID: "room", json: #"{"a":1}"#)
                #expect(await witness.journal.wait(for: "signaling push"))
                #expect(witness.channel.isAvailable)
                let id = try #require(witness.channel.connectionId)
                await server.disconnect(channelID: "room", connectionID: id, code: 4000, reason: "API")
                await expectEnd(witness, "DataChannel is closed (4000 API)", close: "ok 4000 API")
                #expect(witness.entries.contains("json close") && witness.entries.contains("signaling close"))
            }
        }
    }

    // 3.8: the setting alone ignores nothing; the server's word counts.
    @Test func theSettingAloneIgnoresNothing() async throws {
        let wire = Interjection()
        try await withServer({
            wire.install(in: &$0) { message in
                message.type == "switched"
                    ? [.send(edited(message.text) { $0["ignore_disconnect_websocket"] = nil })] : [.pass]
            }
        }) { server in
            let witness = Witness(LiveClient.messaging(server) { $0.ignoreDisconnectWebSocket = true })
            await expectReady(witness)
            wire.say(.closeWebSocket(code: 4001, reason: "X"))
            await expectEnd(witness, "WebSocket is closed (4001 X)", close: "ok 4001 X")
        }
    }

    // 3.5, last row
    @Test func channelsThatCloseWithoutAWordAreAnOrdinaryEnd() async throws {
        try await withServer { server in
            let witness = Witness(LiveClient.messaging(server))
            await expectReady(witness)
            await server.inject(Fault(.closeDataChannel(label: "#egg", after: .zero)))
            await expectEnd(witness, "nil", close: "ok 1000 NO-ERROR")
        }
    }

    // 3.6: silence of the network is noticed, waited for, and then an error with the documented text.
    @Test(.timeLimit(.minutes(2))) func aLostNetworkEndsAfterItsGrace() async throws {
        try await withServer { server in
            let witness = Witness(LiveClient.messaging(server))
            await expectReady(witness)
            await server.inject(Fault(.vanish(after: .zero)))
            await expectEnd(
                witness, "PeerChannel error (peer connection state: disconnected)", seconds: 60)
        }
    }

    // 3.6
    @Test func closingThePeerConnectionIsAnOrdinaryEnd() async throws {
        try await withServer { server in
            let witness = Witness(LiveClient.messaging(server))
            await expectReady(witness)
            witness.channel.native?.close()
            await expectEnd(witness, "nil", close: "ok 1000 NO-ERROR")
        }
    }
}
