import LocalSora
import SoraClient
import SoraMessages
import SoraPeer
import SoraWire
import TestSupport
import Testing

/// The real client against the real channel, every layer between them, in virtual time.
@Suite(.serialized, .leavesNoObjects) struct WorldTests {
    // sig 10.2 A
    @Test func messagingConnectionFromConnectToDisconnect() {
        let world = World()
        let alice = world.join()
        let bob = world.join()
        #expect(world.run(for: .seconds(10)) { alice.isSwitched && bob.isSwitched })
        #expect(alice.connection.state == .connected && bob.connection.state == .connected)
        #expect(world.run(for: .seconds(5)) { alice.opened("#dev") && bob.opened("#dev") })
        #expect(alice.events.contains(.dataChannelsAvailable))
        for payload in [[], [0], Array("hello".utf8), [UInt8](repeating: 7, count: 262_144)] as [[UInt8]] {
            #expect(world.send(payload, from: alice) == nil)
        }
        #expect(world.run(for: .seconds(30)) { bob.messages("#dev").count == 4 })
        #expect(bob.messages("#dev").map(\.count) == [0, 1, 5, 262_144])
        #expect(alice.messages("#dev").isEmpty)
        #expect(world.run(for: .seconds(5)) { bob.notifications("connection.created").count >= 1 })

        alice.connection.disconnect(now: world.now)
        let left = world.now
        #expect(world.run(for: .seconds(10)) { alice.end != nil })
        #expect(alice.end == ClientEnd(error: nil, wasConnected: true))
        // The server let go: no waiting time ran out.
        #expect(world.now - left < .seconds(1))
        #expect(!world.channel.hasMember(alice.connectionID))
        #expect(world.run(for: .seconds(5)) { !bob.notifications("connection.destroyed").isEmpty })
        #expect(alice.openSockets.isEmpty && alice.connection.nextTimeout == nil)
    }

    /// LIF27: connecting is bounded by round trips, not by timers. TCP, upgrade, offer, ICE check and two
    /// for DTLS.
    @Test func connectTakesSixRoundTrips() throws {
        let world = World(delay: .milliseconds(50))
        let client = world.join()
        #expect(world.run(for: .seconds(10)) { client.connectedAt != nil })
        let connectedAt = try #require(client.connectedAt)
        #expect(connectedAt - .zero <= .milliseconds(610), "\(connectedAt)")
    }

    // sig 10.2 E
    @Test func webSocketIsDroppedAfterTheSwitchAndSignalingGoesOn() {
        let world = World()
        let client = world.join(World.messaging(ignore: true))
        #expect(world.run(for: .seconds(10)) { client.isSwitched })
        world.cutWebSocket(of: client)
        world.run(for: .seconds(1))
        #expect(client.connection.state == .connected && client.end == nil)
        let other = world.join()
        #expect(
            world.run(for: .seconds(10)) { other.isSwitched && client.notifications("connection.created").count >= 2 })
        #expect(world.send([1], from: other) == nil)
        #expect(world.run(for: .seconds(5)) { client.messages("#dev") == [[1]] })
        client.connection.disconnect(now: world.now)
        #expect(world.run(for: .seconds(10)) { client.end != nil })
        #expect(client.end?.error == nil)
        #expect(!world.channel.hasMember(client.connectionID))
    }

    // LIF21, sig 4.6
    @Test func serverEndsTheConnectionOnEveryCarrier() {
        for ignoring in [false, true] {
            let world = World()
            let client = world.join(World.messaging(ignore: ignoring))
            #expect(world.run(for: .seconds(10)) { client.isSwitched })
            if ignoring { world.cutWebSocket(of: client) }
            world.run(for: .seconds(1))
            world.channel.disconnect(client.connectionID, code: 1000, reason: "DISCONNECTED-API", now: world.now)
            #expect(world.run(for: .seconds(10)) { client.end != nil })
            let expected: ClientError =
                ignoring
                ? .dataChannelClosed(code: 1000, reason: "DISCONNECTED-API")
                : .webSocketClosed(code: 1000, reason: "DISCONNECTED-API")
            #expect(client.end?.error == expected)
            #expect(client.end?.closeCode?.code == 1000 && client.end?.closeCode?.reason == "DISCONNECTED-API")
        }
    }

    @Test func refusedConnectIsReportedWithTheReason() {
        let world = World()
        let client = world.join(World.messaging { $0.spotlightFocusRID = .r1 })
        #expect(world.run(for: .seconds(5)) { client.end != nil })
        guard case .webSocketClosed(4490, let reason?)? = client.end?.error else {
            Issue.record("\(String(describing: client.end))")
            return
        }
        #expect(reason.contains("SPOTLIGHT"))
    }

    // sig 10.2 F
    @Test func redirectLeadsToTheOtherNode() {
        let world = World()
        world.redirects = ["ws://node-1/signaling": "ws://node-2/signaling"]
        let client = world.join(urls: ["ws://node-1/signaling"])
        #expect(world.run(for: .seconds(10)) { client.isSwitched })
        #expect(client.connection.epoch == 1 && client.connection.contactURL == "ws://node-1/signaling")
        #expect(client.connection.connectedURL == "ws://node-2/signaling")
        #expect(client.records.last?.epoch == 1)
        #expect(client.sent.filter { $0.contains("\"redirect\":true") }.count == 1)
    }

    @Test func rpcReachesTheServerAndComesBack() {
        let world = World()
        let client = world.join()
        #expect(world.run(for: .seconds(10)) { client.opened("rpc") && client.isSwitched })
        let call = RPCCall.putSignalingNotifyMetadata(metadata: ["a": nil], push: nil)
        _ = client.connection.call(method: call.method, params: call.params?.utf8, now: world.now)
        _ = client.connection.call(method: "2099.1/Unknown", params: nil, now: world.now)
        #expect(world.run(for: .seconds(5)) { client.outcomes.count == 2 })
        guard case .result(1, let metadata, _)? = client.outcomes.first else {
            Issue.record("\(client.outcomes)")
            return
        }
        // LIF16: nulls survive.
        #expect(metadata == ["a": nil])
        guard case .serverError(let error, _)? = client.outcomes.last else {
            Issue.record("\(client.outcomes)")
            return
        }
        #expect(error.code == RPCErrorObject.methodNotFound)
    }

    @Test func notifyMetadataKeepsItsNulls() {
        let world = World()
        let alice = world.join()
        #expect(world.run(for: .seconds(10)) { alice.isSwitched })
        world.join(World.messaging { $0.signalingNotifyMetadata = ["a": nil, "b": [nil]] })
        #expect(world.run(for: .seconds(10)) { alice.notifications("connection.created").count == 2 })
        #expect(alice.notifications("connection.created").last?.authnMetadata == ["a": nil, "b": [nil]])
    }

    @Test func everyMessageArrivesOnceAndInOrderOverALossyPath() {
        let world = World(delay: .milliseconds(25), loss: 0.05)
        let alice = world.join()
        let bob = world.join()
        #expect(
            world.run(for: .seconds(30)) {
                alice.isSwitched && bob.isSwitched && alice.opened("#dev") && bob.opened("#dev")
            })
        var expected: [[UInt8]] = []
        for number in 0..<200 {
            let payload = Array("message \(number)".utf8) + [UInt8](repeating: 0, count: number * 10)
            expected.append(payload)
            #expect(world.send(payload, from: alice) == nil)
            world.run(for: .milliseconds(50))
        }
        #expect(world.run(for: .seconds(60)) { bob.messages("#dev").count >= 200 })
        #expect(bob.messages("#dev") == expected)
        #expect(alice.end == nil && bob.end == nil)
    }

    // api 3.6; sig 8.2
    @Test func vanishedServerEndsTheConnectionWithinItsBound() {
        let world = World()
        let client = world.join()
        #expect(world.run(for: .seconds(10)) { client.isSwitched })
        client.isCut = true
        let cut = world.now
        #expect(world.run(for: .seconds(60)) { client.end != nil })
        #expect(client.end != nil && world.now - cut < .seconds(40), "\(world.now - cut)")
    }

    // sig 10.2 B: own sections are answered sendonly, others' streams appear and go.
    @Test func streamsOfOthersComeAndGo() {
        let world = World { $0.videoCodec = "VP8" }
        func media(_ role: ConnectionRole) -> ConnectMessage {
            var connect = ConnectMessage(role: role, channelID: "room")
            connect.dataChannelSignaling = false
            return connect
        }
        let viewer = world.join(media(.recvonly))
        #expect(world.run(for: .seconds(10)) { viewer.connection.state == .connected })
        let sender = world.join(media(.sendonly))
        #expect(
            world.run(for: .seconds(10)) { sender.connection.state == .connected && !viewer.connection.streams.isEmpty }
        )
        #expect(viewer.connection.streams.map(\.id) == [sender.connectionID.rawValue])
        #expect(viewer.connection.streams.first?.tracks.count == 2)
        let attached = sender.events.compactMap { if case .sendersAttached(let senders) = $0 { senders } else { nil } }
        #expect(attached.count == 1 && attached.first?.audio != nil && attached.first?.video != nil)
        sender.connection.disconnect(now: world.now)
        #expect(world.run(for: .seconds(10)) { viewer.connection.streams.isEmpty })
        #expect(viewer.events.contains(.streamRemoved(id: sender.connectionID.rawValue)))
        #expect(sender.end == ClientEnd(error: nil, wasConnected: true))
    }

    /// MEM3: nothing keeps a connection or its peer alive after the end, however it came.
    @Test func everythingIsReleasedAfterTheEnd() {
        final class Watched {
            weak var connection: ClientConnection?
            weak var peer: PeerConnection?
        }
        let endings: [(World, World.Client) -> Void] = [
            { world, client in client.connection.disconnect(now: world.now) },
            { world, client in world.cutWebSocket(of: client) },
            { world, client in
                world.channel.disconnect(client.connectionID, code: 1000, reason: "DISCONNECTED-API", now: world.now)
            },
        ]
        for ending in endings {
            let watched = Watched()
            do {
                let world = World()
                let client = world.join()
                #expect(world.run(for: .seconds(10)) { client.isSwitched })
                watched.connection = client.connection
                watched.peer = client.connection.peerConnection
                #expect(watched.peer != nil)
                ending(world, client)
                #expect(world.run(for: .seconds(10)) { client.end != nil })
                // The peer goes with the end, not only with the connection.
                #expect(watched.peer == nil)
            }
            #expect(watched.connection == nil)
        }
    }

    /// LIF6: reconnecting from the end event is no duplicate: the server has let go.
    @Test func serverHasLetGoWhenTheEndIsTold() {
        for ignoring in [false, true] {
            let world = World()
            let client = world.join(World.messaging(ignore: ignoring))
            #expect(world.run(for: .seconds(10)) { client.isSwitched })
            client.connection.disconnect(now: world.now)
            #expect(world.run(for: .seconds(10)) { client.end != nil })
            #expect(!world.channel.hasMember(client.connectionID))
        }
    }
}
