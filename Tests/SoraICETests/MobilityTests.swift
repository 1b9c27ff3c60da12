import SoraEmulator
import SoraWire
import Testing

@testable import SoraICE

/// ICE6 and interface changes.
@Suite struct MobilityTests {
    static let natAddress = IPAddress.v4(0xCB00_7101)

    /// Data from `host` to its peer each 20 ms; returns the longest gap at the peer within the time.
    static func longestGap(in world: VirtualWorld, from host: VirtualHost, to peer: VirtualHost, for seconds: Int)
        -> Duration
    {
        let start = world.now
        for _ in 0..<(seconds * 50) {
            _ = world.send([128, 7], from: host)
            world.run(for: .milliseconds(20))
        }
        let times = [start] + peer.received.map(\.time).filter { $0 >= start } + [world.now]
        return zip(times.dropFirst(), times).map { $0 - $1 }.max() ?? .zero
    }

    @Test(arguments: [ICEAgent.Mode.lite, .full]) func aNATThatRebindsIsFollowed(_ mode: ICEAgent.Mode) throws {
        let world = VirtualWorld()
        let client = world.addHost("client", role: .controlling, seed: 1)
        let server = world.addHost("server", role: .controlled, seed: 2) { $0.mode = mode }
        let site = world.network.addNAT(EmulatedNAT(outerAddress: Self.natAddress, behavior: .portRestricted))
        world.addSocket(1, of: client, at: "10.0.0.2", in: site)
        world.addSocket(1, of: server, at: "192.0.2.2")
        world.connect(client, server)
        world.run(for: .seconds(1))
        let old = try #require(server.agent.selectedPair?.remote.socketAddress)
        let statesBefore = server.states.count
        world.network.rebindNAT(of: site)
        let gap = Self.longestGap(in: world, from: server, to: client, for: 12)
        let new = try #require(server.agent.selectedPair?.remote.socketAddress)
        #expect(new != old)
        #expect(gap < .milliseconds(6_500))
        #expect(server.states.count == statesBefore)
        #expect(client.agent.state == .completed)
    }

    @Test(arguments: [ICEAgent.Mode.lite, .full]) func anInterfaceThatGoesDownIsReplacedByAnother(_ mode: ICEAgent.Mode)
    {
        let (world, client, server) = ConnectTests.client(of: mode)
        world.connect(client, server)
        world.run(for: .seconds(5))
        // The interface goes down first, a new one comes up 200 ms later.
        client.sockets[SocketID(1)] = nil
        client.agent.removeLocalSocket(SocketID(1), now: world.now)
        world.drain(client)
        #expect(client.agent.state == .disconnected)
        #expect(client.agent.datagram(for: [1]) == nil)
        world.run(for: .milliseconds(200))
        let start = world.now
        world.addSocket(2, of: client, at: "198.51.100.1")
        world.run(
            until: world.now + .seconds(3),
            while: {
                !(client.agent.selectedPair != nil
                    && server.agent.selectedPair?.remote.socketAddress?.ip == .v4(0xC633_6401))
            })
        #expect(world.now - start <= .milliseconds(100))
        world.run(for: .seconds(1))
        #expect(client.agent.state == .completed)
        #expect(Self.longestGap(in: world, from: server, to: client, for: 2) < .milliseconds(100))
    }

    @Test func aSecondInterfaceTakesOverAtOnceWhenTheFirstIsRemoved() {
        let (world, client, server) = ConnectTests.client()
        world.addSocket(2, of: client, at: "198.51.100.1")
        world.connect(client, server)
        world.run(for: .seconds(5))
        client.sockets[SocketID(1)] = nil
        client.agent.removeLocalSocket(SocketID(1), now: world.now)
        world.drain(client)
        world.run(for: .milliseconds(100))
        #expect(client.agent.state == .completed)
        #expect(server.agent.selectedPair?.remote.socketAddress?.ip == .v4(0xC633_6401))
    }

    @Test func aWayThatDiesUnnoticedIsReplacedByAnotherThatWorks() {
        let (world, client, server) = ConnectTests.client()
        world.addSocket(2, of: client, at: "198.51.100.1")
        world.connect(client, server)
        world.run(for: .seconds(5))
        let dead = client.agent.selectedPair?.local.socketAddress
        world.loses = { $0.source == dead || $0.destination == dead }
        world.run(for: .seconds(12))
        #expect(client.agent.selectedPair?.local.socketAddress != dead)
        #expect(client.agent.state == .completed)
        #expect(server.agent.selectedPair?.remote.socketAddress == client.agent.selectedPair?.local.socketAddress)
        #expect(!client.states.contains { $0.state == .failed })
    }

    @Test func noNewInterfaceEndsInFailed() throws {
        let (world, client, server) = ConnectTests.client()
        world.connect(client, server)
        world.run(for: .seconds(5))
        client.agent.removeLocalSocket(SocketID(1), now: world.now)
        world.drain(client)
        world.run(for: .seconds(60))
        let failed = try #require(client.time(of: .failed))
        let down = try #require(client.time(of: .disconnected))
        #expect(failed - down <= .seconds(30))
        #expect(failed - down >= .seconds(24))
    }

    @Test func aPeerThatMovesAThousandTimesStaysBounded() {
        let (world, client, server) = ConnectTests.client()
        world.connect(client, server)
        world.run(for: .seconds(1))
        for index in 0..<300 {
            let old = SocketID(index + 1)
            client.sockets[old] = nil
            client.agent.removeLocalSocket(old, now: world.now)
            world.addSocket(index + 2, of: client, at: "10.1.\(index / 200).\(index % 200 + 1)")
            world.run(for: .seconds(3))
        }
        #expect(client.agent.state == .completed)
        #expect(server.agent.remoteCandidates.count <= 64)
        #expect(server.agent.checklist.pairs.count <= 128)
        #expect(server.agent.selectedPair?.remote.socketAddress?.ip == IPAddress("10.1.1.100"))
    }

    // ICE17
    @Test func aPeerReflexiveCandidateThatIsSignalledLaterKeepsItsPair() throws {
        let (world, a, b) = ConnectTests.pair(connect: false)
        a.signalsCandidates = false
        world.connect(a, b)
        world.run(for: .seconds(2))
        #expect(b.agent.selectedPair?.remote.type == .peerReflexive)
        let before = try #require(b.agent.statistics.pairs.first)
        let line = try #require(a.candidates.first)
        for _ in 0..<2 { b.agent.addRemoteCandidate(line, now: world.now) }
        let after = try #require(b.agent.statistics.pairs.first)
        #expect(b.agent.statistics.pairs.count == 1)
        #expect(b.agent.remoteCandidates.count == 1)
        #expect(after.id == before.id)
        #expect(after.isNominated && after.isSelected)
        #expect(after.remote.type == .host)
        #expect(after.remote.priority == line.priority)
        #expect(after.remote.foundation == line.foundation)
        #expect(b.agent.state == .completed)
    }

    // ICE7
    @Test(arguments: [0, 1, 2]) func unresolvableNamesDelayNothing(_ resolution: Int) throws {
        let (world, a, b) = ConnectTests.pair(connect: false)
        switch resolution {
        case 0: a.resolver = nil
        case 1: a.resolver = { _ in [] }
        default: a.resolver = { _ in [.v4(0xC000_0202)] }
        }
        b.signalsCandidates = false
        world.connect(a, b)
        let start = world.now
        a.agent.addRemoteCandidate(
            try ICECandidate(
                parsing: "candidate:7 1 udp 2122194687 0f6c1d2e-55aa-4c3b-9b1e-7d2f4a6b8c90.local 40311 typ host"),
            now: world.now)
        a.agent.addRemoteCandidate(try #require(b.candidates.first), now: world.now)
        world.drain(a)
        world.run(for: .seconds(5))
        #expect(try #require(a.time(of: .connected)) - start == .milliseconds(20))
    }

    @Test func aRestartUsesNewCredentialsAndKeepsDataFlowing() throws {
        let (world, a, b) = ConnectTests.pair()
        world.run(for: .seconds(2))
        let old = a.agent.localCredentials
        a.agent.restart(now: world.now)
        b.agent.restart(now: world.now)
        #expect(a.agent.localCredentials != old)
        #expect(a.agent.datagram(for: [1]) != nil)
        world.connect(a, b)
        let gap = Self.longestGap(in: world, from: a, to: b, for: 2)
        #expect(gap < .milliseconds(100))
        #expect(a.agent.state == .completed)
        #expect(b.agent.state == .completed)
        world.run(for: .seconds(120))
        #expect(a.agent.state == .completed)
    }

    @Test func aRestartRevivesAFailedAgent() {
        let (world, a, b) = ConnectTests.pair()
        world.run(for: .seconds(2))
        world.loses = { _ in true }
        world.run(for: .seconds(60))
        #expect(a.agent.state == .failed && b.agent.state == .failed)
        world.loses = nil
        a.agent.restart(now: world.now)
        b.agent.restart(now: world.now)
        world.connect(a, b)
        world.run(for: .seconds(2))
        #expect(a.agent.state == .completed && b.agent.state == .completed)
    }
}

extension MobilityTests {
    @Test func aRestartWithAPeerThatHasMovedFindsItsNewPlace() {
        let (world, a, b) = ConnectTests.pair()
        world.run(for: .seconds(2))
        // b moves and loses its old address, both restart.
        b.sockets[SocketID(1)] = nil
        b.agent.removeLocalSocket(SocketID(1), now: world.now)
        b.candidates = []
        world.addSocket(2, of: b, at: "198.51.100.77")
        a.agent.restart(now: world.now)
        b.agent.restart(now: world.now)
        world.drain(a)
        world.drain(b)
        world.connect(a, b)
        world.run(for: .seconds(1))
        #expect(a.agent.state == .completed && b.agent.state == .completed)
        #expect(a.agent.selectedPair?.remote.socketAddress?.ip == IPAddress("198.51.100.77"))
    }

    @Test func aRelayOnlyClientMovesToANewInterface() throws {
        let (world, client, peer, turn) = try TURNTests.relayed()
        world.run(for: .seconds(5))
        let old = client.agent.selectedPair?.local.socketAddress
        client.sockets[SocketID(1)] = nil
        client.agent.removeLocalSocket(SocketID(1), now: world.now)
        world.drain(client)
        #expect(client.agent.state == .disconnected)
        world.run(for: .milliseconds(200))
        #expect(client.agent.state == .disconnected)
        world.addSocket(2, of: client, at: "203.0.113.50")
        world.run(for: .seconds(1))
        #expect(client.agent.state == .completed)
        #expect(client.agent.selectedPair?.local.socketAddress != old)
        #expect(peer.agent.selectedPair?.remote.socketAddress == client.agent.selectedPair?.local.socketAddress)
        #expect(Self.longestGap(in: world, from: peer, to: client, for: 2) < .milliseconds(100))
        #expect(turn.violations.isEmpty)
    }

    @Test func linkLocalAddressesPairOnTheirLink() throws {
        var agent: [ICEAgent] = []
        for (role, low) in [(ICEAgent.Role.controlling, UInt64(1)), (.controlled, 2)] {
            let one = ICEAgent(
                configuration: ICEConfiguration(), role: role, random: RandomSource(seed: low), now: .zero)
            let address = SocketAddress(.v6(high: 0xFE80_0000_0000_0000, low: low, scope: 3), port: 5)
            one.addLocalSocket(SocketID(1), address: address, now: .zero)
            agent.append(one)
        }
        for (one, other) in [(0, 1), (1, 0)] {
            agent[one].setRemote(credentials: agent[other].localCredentials, isLite: false, now: .zero)
            while let output = agent[other].poll() {
                guard case .localCandidate(let candidate) = output else { continue }
                #expect(!candidate.attributeValue.contains("%"))
                agent[one].addRemoteCandidate(try ICECandidate(parsing: candidate.attributeValue), now: .zero)
            }
        }
        for _ in 0..<10 {
            for (one, other) in [(0, 1), (1, 0)] {
                while let output = agent[one].poll() {
                    guard case .transmit(let datagram) = output else { continue }
                    let from = SocketAddress(.v6(high: 0xFE80_0000_0000_0000, low: UInt64(one + 1), scope: 3), port: 5)
                    #expect(datagram.remote.ip == .v6(high: 0xFE80_0000_0000_0000, low: UInt64(other + 1), scope: 3))
                    _ = agent[other].handle(
                        Datagram(socket: SocketID(1), remote: from, payload: datagram.payload), now: .zero)
                }
            }
        }
        #expect(agent[0].state == .completed && agent[1].state == .completed)
    }

    @Test func aSocketBoundToAllAddressesAdvertisesEach() {
        let world = VirtualWorld()
        let host = world.addHost("a", role: .controlled, seed: 1) { $0.mode = .lite }
        for text in ["127.0.0.1", "192.0.2.1"] {
            if let address = SocketAddress(text, port: 5_000) {
                host.agent.addLocalSocket(SocketID(1), address: address, now: world.now)
                host.agent.addLocalSocket(SocketID(1), address: address, now: world.now)
            }
        }
        world.drain(host)
        #expect(host.candidates.count == 2)
        host.agent.removeLocalSocket(SocketID(1), now: world.now)
        #expect(host.agent.localCandidates.isEmpty)
    }
}
