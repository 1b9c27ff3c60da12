import SoraEmulator
import SoraWire
import Testing

@testable import SoraICE

@Suite struct TURNTests {
    static func server(_ url: String = "turn:198.51.100.5", password: String = "pass") throws -> ICEServer {
        try ICEServer(url: url, username: "user", credential: password)
    }

    /// A relay-only client, a TURN server, and a lite server that is the peer.
    static func relayed(
        servers: [ICEServer]? = nil, mode: ICEAgent.Mode = .lite, _ configure: (FakeTURNServer) -> Void = { _ in }
    ) throws -> (VirtualWorld, VirtualHost, VirtualHost, FakeTURNServer) {
        let world = VirtualWorld()
        let turn = FakeTURNServer("198.51.100.5")
        configure(turn)
        world.addServer(turn)
        let list = try servers ?? [server()]
        let client = world.addHost("client", role: .controlling, seed: 11) {
            $0.servers = list
            $0.transportPolicy = .relay
        }
        let peer = world.addHost("peer", role: .controlled, seed: 22) { $0.mode = mode }
        world.addSocket(1, of: client, at: "192.0.2.1")
        world.addSocket(1, of: peer, at: "192.0.2.2")
        world.connect(client, peer)
        return (world, client, peer, turn)
    }

    @Test func aRelayOnlyClientConnectsAndUsesAChannel() throws {
        let (world, client, peer, turn) = try Self.relayed()
        let start = world.now
        world.run(for: .seconds(2))
        #expect(client.agent.state == .completed)
        #expect(client.candidates.map(\.type) == [.relayed])
        #expect(client.candidates.first?.relatedAddress == .ip(SocketAddress(.anyV4, port: 0)))
        // Allocate twice, then permission and check behind each other: three round trips to the server, one on to the peer.
        #expect(try #require(client.time(of: .connected)) - start <= .milliseconds(100))
        #expect(peer.agent.selectedPair?.remote.socketAddress?.ip == turn.address.ip)
        let before = turn.channelDataReceived
        for index in 0..<50 as Range<UInt8> {
            #expect(world.send([128, index], from: client))
            #expect(world.send([129, index], from: peer))
            world.run(for: .milliseconds(10))
        }
        world.run(for: .milliseconds(100))
        #expect(peer.received.map(\.payload) == (0..<50).map { [128, $0] })
        #expect(client.received.map(\.payload) == (0..<50).map { [129, $0] })
        #expect(turn.channelDataReceived >= before + 50)
        #expect(turn.violations.isEmpty)
        let report = try #require(client.agent.serverReports.first)
        #expect(report.status == .succeeded)
        #expect(report.relayedAddress?.ip == turn.address.ip)
    }

    @Test func aRelayOnlyAgentAnswersNothingElsewhere() throws {
        let (world, client, peer, _) = try Self.relayed(mode: .full)
        world.run(for: .seconds(2))
        #expect(client.agent.state == .completed)
        #expect(client.agent.statistics.pairs.allSatisfy { $0.local.type == .relayed })
        // A direct check with the right credentials.
        let sent = client.sentDatagrams
        let key = peer.agent.remoteKey
        let check = STUNMessage(
            .request, .binding, transactionID: STUNTransactionID(high: 9, low: 9),
            attributes: [.username(peer.agent.outgoingUsername), .priority(1), .iceControlled(tieBreaker: 1)])
        let packet = check.serialized(integrity: key.map { .sha1($0) }, fingerprint: true)
        #expect(
            client.agent.handle(
                Datagram(socket: SocketID(1), remote: SocketAddress(.v4(0xC000_0202), port: 5_000), payload: packet),
                now: world.now) == nil)
        world.drain(client)
        #expect(client.sentDatagrams == sent)
    }

    // ICE8
    @Test func fiveHoursWithChangingNoncesAndARealmChangeLeaveNoGap() throws {
        let (world, client, peer, turn) = try Self.relayed {
            $0.nonceLifetime = .seconds(60)
            $0.realmChange = (.zero + .seconds(1_000) + .seconds(5_000), "other.example")
        }
        world.run(for: .seconds(2))
        #expect(client.agent.state == .completed)
        let statesBefore = client.states.count
        var sent = 0
        for _ in 0..<(5 * 3_600 / 5) {
            sent += 1
            #expect(world.send([130, 1], from: client))
            #expect(world.send([131, 1], from: peer))
            world.run(for: .seconds(5))
        }
        #expect(peer.received.count == sent)
        #expect(client.received.count == sent)
        #expect(client.states.count == statesBefore)
        #expect(turn.violations.isEmpty)
        #expect(turn.realm == "other.example")
        // Every kind of request met a stale nonce, and went through.
        for method in ["Refresh", "CreatePermission", "ChannelBind"] {
            #expect((turn.staleNonces[method] ?? 0) > 10, "\(method)")
        }
        #expect((turn.requests["Allocate"] ?? 0) == 2)
        #expect(turn.sendIndicationsReceived < 10)
    }

    @Test(arguments: [4, 30, 60, 3_600]) func shortAndLongLifetimesAreRefreshedInTime(_ seconds: UInt32) throws {
        let (world, client, _, turn) = try Self.relayed { $0.lifetime = seconds }
        world.run(for: .seconds(7_200))
        #expect(client.agent.state == .completed)
        #expect(turn.violations.isEmpty)
        #expect((turn.requests["Allocate"] ?? 0) == 2)
    }

    @Test func sha256IsUsedWhereItIsOffered() throws {
        let (world, client, _, turn) = try Self.relayed { $0.offersSHA256 = true }
        world.run(for: .seconds(1_200))
        #expect(client.agent.state == .completed)
        #expect(turn.violations.isEmpty)
    }

    @Test func wrongCredentialsEndARelayOnlyAgentWithTheReason() throws {
        let (world, client, _, turn) = try Self.relayed(servers: [Self.server(password: "wrong")])
        let start = world.now
        world.run(for: .seconds(5))
        #expect(client.agent.state == .failed)
        #expect(try #require(client.time(of: .failed)) - start < .milliseconds(200))
        guard case .failed(let reason) = try #require(client.agent.serverReports.first).status else {
            Issue.record("not failed")
            return
        }
        #expect(reason.contains("401"))
        // SAF4
        #expect(!reason.contains("wrong") && !reason.contains("pass"))
        #expect((turn.requests["Allocate"] ?? 0) <= 3)
    }

    @Test(arguments: [486, 508, 403, 500]) func aRefusedAllocationIsReported(_ code: Int) throws {
        let (world, client, _, _) = try Self.relayed { $0.allocateError = STUNErrorCode(code, "No") }
        world.run(for: .seconds(2))
        #expect(client.agent.state == .failed)
        guard case .failed(let reason)? = client.agent.serverReports.first?.status else {
            Issue.record("not failed")
            return
        }
        #expect(reason.contains("\(code)"))
    }

    // ICE9
    @Test func refusedChannelsLeaveSendIndications() throws {
        let (world, client, peer, turn) = try Self.relayed { $0.refusesChannels = true }
        world.run(for: .seconds(2))
        #expect(client.agent.state == .completed)
        #expect(world.send([128, 1], from: client))
        world.run(for: .milliseconds(100))
        #expect(peer.received.count == 1)
        #expect(turn.channelDataReceived == 0)
        turn.refusesChannels = false
        world.run(for: .seconds(400))
        #expect(world.send([128, 2], from: client))
        world.run(for: .milliseconds(100))
        #expect(peer.received.count == 2)
        #expect(turn.channelDataReceived >= 1)
    }

    // ICE9
    @Test func anExpiredChannelIsWantedAgainForItsOldPeerAndForANewOne() throws {
        var now = Instant.zero
        let server = FakeTURNServer("198.51.100.5")
        let here = SocketAddress(.v4(0xC000_0201), port: 5)
        let allocation = TURNAllocation(
            username: "user", credential: "pass", isStream: false, random: RandomSource(seed: 1))
        func exchange() {
            while let output = allocation.poll() {
                guard case .send(let packet) = output else { continue }
                for answer in server.handle(
                    EmulatedNetwork.Packet(source: here, destination: server.address, payload: packet), now: now)
                {
                    _ = allocation.receive(answer.payload, now: now)
                }
            }
        }
        func advance(_ duration: Duration) {
            let end = now + duration
            while let next = allocation.nextTimeout, next <= end {
                now = max(now, next)
                allocation.handleTimeout(now: now)
                exchange()
            }
            now = end
        }
        let one = SocketAddress(.v4(0xC000_0301), port: 1)
        let two = SocketAddress(.v4(0xC000_0302), port: 1)
        let three = SocketAddress(.v4(0xC000_0303), port: 1)
        allocation.start(now: now)
        exchange()
        allocation.bind(one, now: now)
        exchange()
        #expect(allocation.channels.boundNumber(of: one) == 0x4000)
        allocation.bind(two, now: now)
        exchange()
        #expect(allocation.channels.boundNumber(of: two) == 0x4001)
        // The first expires after ten minutes, the second is kept up.
        advance(.seconds(660))
        #expect(allocation.channels.boundNumber(of: one) == nil)
        #expect(allocation.channels.boundNumber(of: two) == 0x4001)
        allocation.bind(one, now: now)
        exchange()
        #expect(allocation.channels.boundNumber(of: one) == 0x4000)
        allocation.bind(three, now: now)
        exchange()
        #expect(allocation.channels.boundNumber(of: three) == 0x4002)
        #expect(server.violations.isEmpty)
    }

    @Test func aLostAllocationIsMadeAnewAndTheConnectionGoesOn() throws {
        let (world, client, peer, turn) = try Self.relayed()
        world.run(for: .seconds(2))
        turn.dropAllocations()
        world.run(for: .seconds(620))
        #expect(client.agent.state == .completed)
        #expect(!client.states.contains { $0.state == .failed })
        #expect(world.send([128], from: client))
        #expect(world.send([128], from: peer))
        world.run(for: .seconds(1))
        #expect(peer.received.count == 1)
        #expect(client.received.count == 1)
    }

    @Test func aServerThatDiesEndsTheConnectionInBoundedTime() throws {
        let (world, client, _, turn) = try Self.relayed()
        world.run(for: .seconds(20))
        turn.isSilent = true
        let start = world.now
        world.run(for: .seconds(200))
        #expect(try #require(client.time(of: .failed)) - start <= .seconds(30))
    }

    @Test func redirectsAreFollowedAndCirclesAreNot() throws {
        let world = VirtualWorld()
        let first = FakeTURNServer("198.51.100.5")
        let second = FakeTURNServer("198.51.100.6")
        first.alternate = second.address
        for server in [first, second] { world.addServer(server) }
        let list = [try Self.server()]
        func host(_ name: String, _ ip: String) -> VirtualHost {
            let host = world.addHost(name, role: .controlling, seed: 1) {
                $0.servers = list
                $0.transportPolicy = .relay
            }
            world.addSocket(1, of: host, at: ip)
            return host
        }
        let client = host("client", "192.0.2.1")
        world.run(for: .seconds(1))
        #expect(client.candidates.first?.socketAddress?.ip == second.address.ip)
        #expect(client.agent.serverReports.first?.address == second.address)
        second.alternate = first.address
        let other = host("other", "192.0.2.3")
        world.run(for: .seconds(1))
        #expect(other.candidates.isEmpty)
        guard case .failed(let reason)? = other.agent.serverReports.first?.status else {
            Issue.record("not failed")
            return
        }
        #expect(reason.contains("300"))
    }

    @Test func aPeerThatTheServerDoesNotRelayForFailsItsPairsOnly() throws {
        let (world, client, peer, turn) = try Self.relayed(mode: .full) { $0.refusesPeers = [.v4(0xC000_0299)] }
        client.agent.addRemoteCandidate(
            try ICECandidate(parsing: "candidate:1 1 udp 2130706431 192.0.2.153 9 typ host"), now: world.now)
        world.run(for: .seconds(3))
        #expect(client.agent.state == .completed)
        #expect(peer.agent.state == .completed)
        let pair = client.agent.statistics.pairs.first { $0.remote.socketAddress?.ip == .v4(0xC000_0299) }
        #expect(pair?.state == "failed")
        #expect(turn.violations.isEmpty)
    }

    // SAF2
    @Test func unsignedErrorsDoNotEndAnAllocation() throws {
        let (world, client, _, turn) = try Self.relayed()
        world.run(for: .seconds(2))
        var forged = 0
        world.loses = { packet in
            guard packet.destination == turn.address, let message = try? STUNMessage(parsing: packet.payload),
                message.messageClass == .request
            else { return false }
            forged += 1
            for code in [437, 403, 500] {
                let answer = STUNMessage(
                    .error, message.method, transactionID: message.transactionID,
                    attributes: [.errorCode(STUNErrorCode(code, ""))])
                world.network.send(
                    answer.serialized(), from: turn.address, to: packet.source, now: world.now - .milliseconds(0))
            }
            return false
        }
        world.run(for: .seconds(3_600))
        #expect(forged > 10)
        #expect(client.agent.state == .completed)
        #expect(!client.states.contains { $0.state == .disconnected })
    }

    @Test func anIPv6OnlyRelayIsAskedForOnRequest() throws {
        let (world, client, _, turn) = try Self.relayed {
            $0.relayIP = .v6(high: 0x2001_0DB8_0000_0000, low: 5, scope: 0)
        }
        world.run(for: .seconds(1))
        #expect(client.candidates.first?.socketAddress?.ip == turn.relayIP)
    }

    @Test func closingGivesTheAllocationBack() throws {
        let (world, client, _, turn) = try Self.relayed()
        world.run(for: .seconds(2))
        #expect(turn.allocations.count == 1)
        client.agent.close(now: world.now)
        world.drain(client)
        world.run(for: .seconds(1))
        #expect(turn.allocations.isEmpty)
    }

    // DTL6
    @Test func oversizedPayloadsAreDroppedNotTrapped() throws {
        let (world, client, peer, _) = try Self.relayed()
        world.run(for: .seconds(2))
        _ = world.send(Array(repeating: 22, count: 20_000), from: client)
        _ = world.send(Array(repeating: 22, count: 70_000), from: client)
        world.run(for: .seconds(1))
        #expect(peer.received.allSatisfy { $0.payload.count <= 65_535 })
        #expect(client.agent.state == .completed)
    }
}
