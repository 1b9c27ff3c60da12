import Foundation
import LocalSora
import TestSupport
import Testing

@testable import Sora

/// Ways to begin and to end, on the real engine against the local server.
@Suite(.serialized, .leavesNoObjects) struct LiveConnectionTests {
    private func client(
        _ urls: [String], _ change: (inout Configuration) -> Void = { _ in }
    ) -> LiveClient {
        LiveClient(LiveClient.settings(urls, change))
    }

    private func end(_ client: LiveClient, seconds: Double = 15) async -> String {
        let ended = await client.journal.wait(seconds: seconds) { $0.contains { $0.hasPrefix("disconnect") } }
        return ended ? client.journal.entries.last ?? "" : "no end"
    }

    // No handler is left waiting when there is no such host.
    // api 5.2
    @Test func unreachableServersFailPromptly() async {
        let refused = client(["ws://127.0.0.1:1/signaling"])
        #expect(await end(refused).hasPrefix("disconnect error WebSocket error ("))
        #expect(refused.journal.entries.first?.hasPrefix("completion nil WebSocket error") == true)
        let nowhere = client(["ws://no-such-host.invalid/signaling"])
        #expect(await end(nowhere, seconds: 30).hasPrefix("disconnect error WebSocket error ("))
        let unusable = client(["http://127.0.0.1:1/signaling"])
        #expect(await end(unusable).hasPrefix("disconnect error WebSocket error ("))
    }

    // LIF13: the first that opens wins; those that fail do not matter.
    @Test func theFirstServerThatOpensWins() async throws {
        try await withServer { server in
            let client = client(["ws://127.0.0.1:1/signaling", server.signalingURL, server.signalingURL])
            #expect(await client.connected())
            #expect(client.channel.contactUrl?.absoluteString == server.signalingURL)
            #expect(client.channel.connectedUrl == client.channel.contactUrl)
            #expect(client.channel.connectionId != nil && client.channel.native?.connectionState == .connected)
            await client.leave()
            #expect(client.channel.contactUrl == nil && client.channel.connectionId != nil)
            #expect(client.channel.native?.connectionState == .closed)
        }
    }

    @Test func aRefusalKeepsCodeAndReason() async throws {
        try await withServer({ $0.maximumConnectionsPerChannel = 1 }) { server in
            let first = client([server.signalingURL])
            #expect(await first.connected())
            let second = client([server.signalingURL])
            let text = await end(second)
            #expect(text.hasPrefix("disconnect ok 4"), "\(text)")
            #expect(second.journal.entries.first?.hasPrefix("completion nil WebSocket is closed (4") == true)
            await first.leave()
        }
    }

    // api 5.1
    @Test func aServerThatSaysNothingTimesOut() async throws {
        try await withServer({ $0.script = { $0.type == "offer" ? [.drop] : [.pass] } }) { server in
            let client = client([server.signalingURL]) { $0.connectionTimeout = 1 }
            #expect(await end(client) == "disconnect error Connection is timeout")
            #expect(client.task.state == .completed)
        }
    }

    @Test func cancellingWhileWaitingForTheOfferEndsTheAttempt() async throws {
        try await withServer({ $0.script = { $0.type == "offer" ? [.drop] : [.pass] } }) { server in
            let client = client([server.signalingURL])
            // The attempt is under way once the server knows of it.
            for await event in server.events() where event.kind == .connectReceived { break }
            client.task.cancel()
            #expect(client.task.state == .canceled)
            #expect(await end(client) == "disconnect error Connection is cancelled")
        }
    }

    // api 5.18
    @Test func closeFramesKeepCodeAndReason() async throws {
        try await withServer({
            $0.script = { $0.type == "offer" ? [.closeWebSocket(code: 4401, reason: "WHY")] : [.pass] }
        }) { server in
            #expect(await end(client([server.signalingURL])) == "disconnect ok 4401 WHY")
        }
    }

    // A lost WebSocket is no close frame.
    // api 5.18
    @Test func aLostWebSocketIsAnError() async throws {
        try await withServer({ $0.script = { $0.type == "offer" ? [.resetWebSocket] : [.pass] } }) { server in
            #expect(await end(client([server.signalingURL])).hasPrefix("disconnect error WebSocket error ("))
        }
    }

    // LIF7: an offer that cannot be used fails at once with the engine's words.
    // api 5.3
    @Test func anUnusableOfferFailsAtOnce() async throws {
        let offer = #"{"type":"offer","client_id":"c","connection_id":"k","sdp":"nonsense"}"#
        try await withServer({ $0.script = { $0.type == "offer" ? [.send(offer)] : [.pass] } }) { server in
            let client = client([server.signalingURL])
            let text = await end(client)
            #expect(text.hasPrefix("disconnect error the session description cannot be used"), "\(text)")
            #expect(client.channel.connectionId == "k")
        }
    }

    // LIF28: what cannot be understood is told and changes nothing.
    @Test func unknownMessagesAreToldAndIgnored() async throws {
        try await withServer({
            $0.script = { message in
                message.type == "offer"
                    ? [.send("not JSON"), .send("[1]"), .send(#"{"type":"mystery"}"#), .pass] : [.pass]
            }
        }) { server in
            let client = client([server.signalingURL])
            #expect(await client.connected())
            #expect(Array(client.journal.entries.prefix(4)) == ["json ?", "json ?", "json mystery", "json offer"])
            await client.leave()
        }
    }

    @Test func theServersAPIEndsInOrder() async throws {
        try await withServer { server in
            let client = client([server.signalingURL])
            #expect(await client.connected())
            #expect(await client.journal.wait(for: "json switched"))
            let id = try #require(client.channel.connectionId)
            await server.disconnect(channelID: "room", connectionID: id)
            let text = await end(client)
            #expect(text.hasPrefix("disconnect ok 1000"), "\(text)")
        }
    }

    @Test func closingThePeerConnectionEndsTheConnection() async throws {
        try await withServer { server in
            let client = client([server.signalingURL])
            #expect(await client.connected())
            client.channel.native?.close()
            #expect(await end(client) == "disconnect ok 1000 NO-ERROR")
        }
    }

    @Test func redirectsAreFollowed() async throws {
        try await withServer { target in
            try await withServer({ $0.redirectLocation = target.signalingURL }) { first in
                let client = client([first.signalingURL])
                let events = client.channel.subscribeEvents(bufferingPolicy: .unbounded)
                #expect(await client.connected())
                #expect(client.channel.contactUrl?.absoluteString == first.signalingURL)
                #expect(client.channel.connectedUrl?.absoluteString == target.signalingURL)
                #expect(client.journal.entries.prefix(2) == ["json redirect", "json offer"])
                await client.leave()
                var epochs: [String: Int?] = [:]
                var sequence: UInt64 = 0
                for await event in events {
                    if sequence != 0 { #expect(event.sequence == sequence + 1) }
                    sequence = event.sequence
                    epochs[event.kind.rawValue] = event.transportEpoch
                }
                #expect(epochs["connected"] == 1 && epochs["disconnected"] == 1)
            }
        }
    }

    @Test func caCertificatesAreCheckedWhenTheSocketIsToBeOpened() async throws {
        let client = client(["wss://127.0.0.1:1/signaling"]) { $0.caCertificate = "nothing" }
        let text = "Configuration error (caCertificate contains no valid PEM blocks)"
        #expect(await end(client) == "disconnect error \(text)")
        #expect(client.journal.entries.first == "completion nil \(text)")
    }

    // api 5.31
    @Test func aProxyThatFailsIsNoWebSocketError() async throws {
        try await withServer { server in
            // The server is no proxy: it refuses CONNECT.
            let client = client(["ws://example.invalid/signaling"]) {
                $0.proxy = Proxy(host: "127.0.0.1", port: Int(server.port), username: "u", password: "p")
            }
            let text = await end(client)
            #expect(text.hasPrefix("disconnect error SignalingChannel error (the proxy "), "\(text)")
        }
    }

    // LIF6: the same client may connect again from the end handler.
    @Test func reconnectingWithTheSameClientIdIsNoDuplicate() async throws {
        try await withServer { server in
            for _ in 0..<3 {
                let client = client([server.signalingURL]) { $0.clientId = "same" }
                #expect(await client.connected())
                #expect(client.channel.clientId == "same")
                await client.leave()
                #expect(await server.connectionIDs(channelID: "room").isEmpty)
            }
        }
    }

    // api 5.32
    @Test func countsComeFromNotifications() async throws {
        try await withServer { server in
            let first = client([server.signalingURL])
            #expect(await first.connected())
            let second = client([server.signalingURL]) { $0.role = .recvonly }
            #expect(await second.connected())
            #expect(
                await first.journal.wait { $0.filter { $0 == "json notify connection.created" }.count >= 2 })
            // The notification is acted upon after its handler: one turn of the loop, then one delivery.
            await first.channel.core.deliveries.run {}
            _ = try await first.channel.getStatsSnapshot()
            await first.channel.core.deliveries.run {}
            #expect(first.channel.connectionCount == 2)
            #expect(first.channel.publisherCount == 1 && first.channel.subscriberCount == 2)
            await second.leave()
            await first.leave()
        }
    }

    // A handler that blocks delays its own later deliveries only: the server's pings are answered meanwhile.
    @Test func pingsAreAnsweredWhileAHandlerBlocks() async throws {
        try await withServer({ $0.pingInterval = .milliseconds(100) }) { server in
            let client = client([server.signalingURL])
            #expect(await client.connected())
            let gate = DispatchSemaphore(value: 0)
            client.channel.handlers.onReceiveSignalingJSON = { _ in gate.wait() }
            let other = LiveClient(LiveClient.messaging(server))
            #expect(await other.connected())
            #expect(client.channel.isAvailable)
            for _ in 0..<1_000 { gate.signal() }
            await other.leave()
            await client.leave()
        }
    }

    // MEM3: nothing of a connection is left after its end.
    // api 5.15
    @Test func everythingIsFreed() async throws {
        weak var weakChannel: MediaChannel?
        weak var weakCore: ChannelCore?
        try await withServer { server in
            do {
                let client = client([server.signalingURL])
                #expect(await client.connected())
                weakChannel = client.channel
                weakCore = client.channel.core
                await client.leave()
            }
        }
        // The thread that told the end lets go of the last reference right after.
        #expect(await eventually { weakChannel == nil && weakCore == nil })
    }
}

extension LoggingTests {
    private func client(_ urls: [String], _ change: (inout Configuration) -> Void) -> LiveClient {
        var configuration = Configuration(
            urlCandidates: urls.compactMap { URL(string: $0) }, channelId: "room", role: .sendrecv)
        configuration.videoEnabled = false
        configuration.audioEnabled = false
        configuration.dataChannelSignaling = true
        change(&configuration)
        return LiveClient(configuration)
    }

    // SAF4: a whole connection at the highest level, with marked secrets everywhere. Of a proxy: LiveTransportTests.
    // api 5.36
    @Test func secretsNeverReachTheLog() async throws {
        let marker = "S3CRETMARK"
        let wire = Interjection()
        try await withWholeLog { lines in
            try await withServer({
                wire.install(in: &$0)
                $0.turnServers = [
                    .init(urls: ["turn:127.0.0.1:9?transport=udp"], username: "u", credential: "\(marker)turn")
                ]
            }) { server in
                let client = self.client([server.signalingURL + "?token=\(marker)query"]) {
                    $0.signalingConnectMetadata = ["access_token": "\(marker)metadata"]
                    $0.signalingConnectNotifyMetadata = ["note": "\(marker)notify"]
                    $0.forwardingFilters = [ForwardingFilter(rules: [], metadata: ["token": "\(marker)filter"])]
                    $0.webRTCConfiguration.iceServerInfos = [
                        ICEServerInfo(urls: ["turn:127.0.0.1:9"], userName: "u", credential: "\(marker)own")
                    ]
                    $0.audioEnabled = true
                    $0.initialMicrophoneEnabled = false
                }
                #expect(await client.connected())
                let target = "\(server.signalingURL)?token=\(marker)redirect"
                wire.say(.send(#"{"type":"redirect","location":"\#(target)"}"#))
                #expect(await client.journal.wait(seconds: 20) { $0.filter { $0 == "json offer" }.count == 2 })
                await client.leave()
                let locked = server.signalingURL.replacingOccurrences(of: "ws://", with: "ws://me:\(marker)password@")
                let named = self.client([locked]) { $0.signalingConnectMetadata = "\(marker)text" }
                #expect(await named.journal.wait(seconds: 15) { $0.contains { $0.hasPrefix("connect ") } })
                named.channel.disconnect(error: nil)
                #expect(await named.journal.wait(seconds: 15) { $0.contains { $0.hasPrefix("disconnect") } })
                let failing = self.client(["ws://example.invalid/signaling?x=\(marker)failing"]) {
                    $0.proxy = Proxy(host: "127.0.0.1", port: 1, username: "u", password: "\(marker)proxy")
                }
                #expect(await failing.journal.wait(seconds: 15) { $0.contains { $0.hasPrefix("disconnect") } })
            }
            // The engine's own lines are among them.
            #expect(lines.entries.contains { $0.contains("path:") })
            #expect(!lines.entries.contains { $0.contains(marker) })
        }
    }
}

/// RPC and statistics on the real engine.
@Suite(.serialized, .leavesNoObjects) struct LiveRPCTests {
    private enum Unknown: RPCMethodProtocol {
        typealias Params = [String: Int]
        typealias Result = JSONValue
        static let name = "2025.2.0/NoSuchMethod"
    }

    @Test func methodsOfTheServerAnswer() async throws {
        try await withServer { server in
            var configuration = LiveClient.messaging(server)
            configuration.signalingConnectNotifyMetadata = ["old": "a"]
            let client = LiveClient(configuration)
            #expect(await client.journal.wait(for: "opened rpc", seconds: 20))
            let channel = client.channel
            let whole = try await channel.rpc(
                method: PutSignalingNotifyMetadata<[String: String]>.self,
                params: PutSignalingNotifyMetadataParams(metadata: ["seat": "7"]))
            #expect(whole?.result == ["seat": "7"])
            let item = try await channel.rpc(
                method: PutSignalingNotifyMetadataItem<[String: String], String>.self,
                params: PutSignalingNotifyMetadataItemParams(key: "mood", value: "good"), timeout: 3)
            #expect(item?.result == ["seat": "7", "mood": "good"])
            #expect(item?.id == (whole?.id ?? 0) + 1)
            do {
                _ = try await channel.rpc(method: Unknown.self, params: ["a": 1])
                Issue.record("an unknown method succeeded")
            } catch SoraError.rpcServerError(let detail) {
                #expect(detail.code == -32601)
            }
            let nothing = try await channel.rpc(method: Unknown.self, params: [:], isNotificationRequest: true)
            #expect(nothing == nil)
            do {
                _ = try await channel.rpc(method: Unknown.self, params: [:], timeout: 0)
                Issue.record("a call without time succeeded")
            } catch SoraError.rpcTimeout {}
            await client.leave()
        }
    }

    @Test func statisticsDescribeTheTransport() async throws {
        try await withServer { server in
            let client = LiveClient(LiveClient.messaging(server))
            #expect(await client.isReadyForMessages())
            let snapshot = try await client.channel.getStatsSnapshot()
            let types = Set(snapshot.entries.map(\.type))
            #expect(
                types.isSuperset(of: [
                    "transport", "candidate-pair", "local-candidate", "remote-candidate", "data-channel", "certificate",
                ]), "\(types)")
            let transport = try #require(snapshot.entries.first { $0.type == "transport" })
            let labels = snapshot.entries.filter { $0.type == "data-channel" }.map { $0.values["label"] }
            #expect(labels.contains(.string("#spam")) && labels.contains(.string("signaling")))
            let certificates = snapshot.entries.filter { $0.type == "certificate" }
            for key in ["localCertificateId", "remoteCertificateId"] {
                #expect(certificates.contains { transport.values[key] == .string($0.id) })
            }
            #expect(certificates.allSatisfy { $0.values["fingerprintAlgorithm"] == .string("sha-256") })
            let journal = Journal()
            client.channel.getStats { result in
                if case .success(let statistics) = result {
                    journal.add("\(JSONSerialization.isValidJSONObject(statistics.jsonObject))")
                }
            }
            #expect(await journal.wait(for: "true"))
            await client.leave()
        }
    }
}

/// What lasts beyond one connection.
@Suite(.serialized, .leavesNoObjects) struct LiveEnduranceTests {
    // MEM1: connect, exchange a message, leave, over and over.
    @Test func manyConnectionsLeaveNothingBehind() async throws {
        var cores: [ChannelCore.Weak<ChannelCore>] = []
        try await withServer { server in
            let partner = LiveClient(LiveClient.messaging(server))
            #expect(await partner.isReadyForMessages())
            for round in 0..<40 {
                let client = LiveClient(LiveClient.messaging(server))
                #expect(await client.isReadyForMessages())
                cores.append(ChannelCore.Weak(object: client.channel.core))
                #expect(client.send("#spam", "round \(round)") == nil)
                #expect(await partner.journal.wait { $0.contains { $0.hasPrefix("message #spam round \(round) ") } })
                await client.leave()
            }
            await partner.leave()
        }
        #expect(await eventually { cores.allSatisfy { $0.object == nil } })
    }

    // api 3.8: once the server said so, losing the WebSocket ends nothing.
    // api 5.20
    @Test func anIgnoredWebSocketMayGo() async throws {
        try await withServer({
            $0.ignoreDisconnectWebSocket = true
            $0.script = { $0.type == "push" ? [.pass, .resetWebSocket] : [.pass] }
        }) { server in
            let alice = LiveClient(LiveClient.messaging(server))
            let bob = LiveClient(LiveClient.messaging(server))
            for client in [alice, bob] { #expect(await client.isReadyForMessages()) }
            try await server.push(channelID: "room", json: "{}")
            for client in [alice, bob] { #expect(await client.journal.wait(for: "json push")) }
            #expect(alice.send("#spam", "still here") == nil)
            #expect(await bob.journal.wait(for: "message #spam still here 10"))
            #expect(alice.channel.isAvailable && bob.channel.isAvailable)
            await alice.leave()
            await bob.leave()
        }
    }

    // api 3.6: a WebSocket that is lost and not ignored ends the connection, whichever end is noticed first.
    @Test func aWebSocketLostAfterTheSwitchEndsTheConnection() async throws {
        try await withServer({
            $0.script = { $0.type == "push" ? [.pass, .resetWebSocket] : [.pass] }
        }) { server in
            let client = LiveClient(LiveClient.messaging(server))
            #expect(await client.isReadyForMessages())
            try await server.push(channelID: "room", json: "{}")
            #expect(await client.journal.wait(seconds: 15) { $0.contains { $0.hasPrefix("disconnect") } })
        }
    }

    @Test func aServerThatStopsEndsItsConnections() async throws {
        let server = try await SoraServer.start()
        let client = LiveClient(LiveClient.messaging(server))
        #expect(await client.connected())
        await server.stop()
        #expect(await client.journal.wait(seconds: 15) { $0.contains { $0.hasPrefix("disconnect") } })
    }

    @Test func finishingTwiceHarmsNothing() async throws {
        Sora.finish()
        Sora.finish()
        try await withServer { server in
            let client = LiveClient(LiveClient.messaging(server))
            #expect(await client.connected())
            // A connection lives: nothing is taken away.
            Sora.finish()
            await client.leave()
        }
    }
}
