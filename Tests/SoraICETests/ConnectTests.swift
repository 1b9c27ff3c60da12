import SoraEmulator
import SoraWire
import Testing

@testable import SoraICE

@Suite struct ConnectTests {
    /// Two full agents, one host candidate each, 10 ms apart each way.
    static func pair(
        roles: (ICEAgent.Role, ICEAgent.Role) = (.controlling, .controlled), connect: Bool = true
    ) -> (VirtualWorld, VirtualHost, VirtualHost) {
        let world = VirtualWorld()
        let a = world.addHost("a", role: roles.0, seed: 11)
        let b = world.addHost("b", role: roles.1, seed: 22)
        world.addSocket(1, of: a, at: "192.0.2.1")
        world.addSocket(1, of: b, at: "192.0.2.2")
        if connect { world.connect(a, b) }
        return (world, a, b)
    }

    static func client(of mode: ICEAgent.Mode = .lite) -> (VirtualWorld, VirtualHost, VirtualHost) {
        let world = VirtualWorld()
        let client = world.addHost("client", role: .controlling, seed: 11)
        let server = world.addHost("server", role: .controlled, seed: 22) { $0.mode = mode }
        world.addSocket(1, of: client, at: "192.0.2.1")
        world.addSocket(1, of: server, at: "192.0.2.2")
        return (world, client, server)
    }

    @Test func fullAgentsConnectInOneRoundTripAndCompleteInTwo() throws {
        let (world, a, b) = Self.pair()
        let start = world.now
        world.run(for: .seconds(3))
        for host in [a, b] {
            #expect(host.states.map(\.state) == [.checking, .connected, .completed])
            #expect(try #require(host.time(of: .connected)) - start == .milliseconds(20))
            #expect(try #require(host.time(of: .completed)) - start <= .milliseconds(50))
        }
        #expect(world.send([200, 1, 2], from: a))
        #expect(world.send([201, 3], from: b))
        world.run(for: .milliseconds(50))
        #expect(b.received.map(\.payload) == [[200, 1, 2]])
        #expect(a.received.map(\.payload) == [[201, 3]])
    }

    @Test func aClientConnectsToALiteServerInOneRoundTrip() throws {
        // ICE2: we answer a lite offer, controlled by mistake.
        let world = VirtualWorld()
        let client = world.addHost("client", role: .controlled, seed: 11)
        let server = world.addHost("server", role: .controlling, seed: 22) { $0.mode = .lite }
        world.addSocket(1, of: client, at: "192.0.2.1")
        world.addSocket(1, of: server, at: "192.0.2.2")
        client.signalsCandidates = false
        let start = world.now
        world.connect(client, server)
        #expect(client.agent.role == .controlling)
        #expect(server.agent.role == .controlled)
        world.run(for: .seconds(1))
        #expect(try #require(client.time(of: .connected)) - start == .milliseconds(20))
        #expect(try #require(server.time(of: .connected)) - start == .milliseconds(10))
        #expect(try #require(server.time(of: .completed)) - start == .milliseconds(30))
        #expect(server.agent.selectedPair?.remote.type == .peerReflexive)
        // ICE2: a lite agent sends no checks: as many packets as the client sent requests.
        #expect(server.sentDatagrams == client.sentDatagrams)
        #expect(world.send([20], from: server))
        world.run(for: .milliseconds(20))
        #expect(client.received.count == 1)
    }

    @Test func candidatesBeforeCredentialsAndCredentialsBeforeCandidatesBothWork() {
        for candidatesFirst in [true, false] {
            let (world, a, b) = Self.pair(connect: false)
            func candidates() {
                for c in a.candidates { b.agent.addRemoteCandidate(c, now: world.now) }
                for c in b.candidates { a.agent.addRemoteCandidate(c, now: world.now) }
            }
            if candidatesFirst { candidates() }
            a.agent.setRemote(credentials: b.agent.localCredentials, isLite: false, now: world.now)
            b.agent.setRemote(credentials: a.agent.localCredentials, isLite: false, now: world.now)
            if !candidatesFirst { candidates() }
            world.drain(a)
            world.drain(b)
            world.run(for: .seconds(1))
            #expect(a.agent.state == .completed)
            #expect(b.agent.state == .completed)
        }
    }

    @Test func checksBeforeTheCredentialsAreAnsweredAndCountLater() {
        let (world, a, b) = Self.pair(connect: false)
        a.agent.setRemote(credentials: b.agent.localCredentials, isLite: false, now: world.now)
        for c in b.candidates { a.agent.addRemoteCandidate(c, now: world.now) }
        world.drain(a)
        world.run(for: .milliseconds(300))
        #expect(a.agent.state == .completed || a.agent.state == .connected)
        #expect(b.agent.state == .new)
        b.agent.setRemote(credentials: a.agent.localCredentials, isLite: false, now: world.now)
        world.drain(b)
        world.run(for: .milliseconds(300))
        #expect(b.agent.state == .completed)
        #expect(b.agent.selectedPair?.remote.type == .peerReflexive)
    }

    @Test func checksOfAnotherPeerBeforeTheCredentialsAreForgotten() {
        let (world, a, b) = Self.pair(connect: false)
        a.agent.setRemote(credentials: b.agent.localCredentials, isLite: false, now: world.now)
        for c in b.candidates { a.agent.addRemoteCandidate(c, now: world.now) }
        world.drain(a)
        world.run(for: .milliseconds(300))
        var random = RandomSource(seed: 5)
        b.agent.setRemote(credentials: ICECredentials(random: &random), isLite: false, now: world.now)
        world.run(for: .milliseconds(300))
        #expect(b.agent.state == .checking)
        #expect(b.agent.selectedPair == nil)
    }

    @Test func connectsUnderHeavyLossWithinSeconds() throws {
        for seed in 1...20 as ClosedRange<UInt64> {
            let world = VirtualWorld(seed: seed)
            let a = world.addHost("a", role: .controlling, seed: seed)
            let b = world.addHost("b", role: .controlled, seed: seed + 100)
            world.addSocket(1, of: a, at: "192.0.2.1")
            world.addSocket(1, of: b, at: "192.0.2.2")
            world.network.setConditions(
                of: .v4(0xC000_0201), uplink: LinkConditions(delay: .milliseconds(5), loss: 0.3))
            world.network.setConditions(
                of: .v4(0xC000_0202), uplink: LinkConditions(delay: .milliseconds(5), loss: 0.3))
            world.connect(a, b)
            world.run(for: .seconds(16))
            #expect(a.time(of: .connected) != nil && b.time(of: .connected) != nil, "seed \(seed)")
        }
    }

    @Test func ipv6IsPreferredAndBothFamiliesPairAmongThemselves() throws {
        let (world, a, b) = Self.pair(connect: false)
        world.addSocket(2, of: a, at: "2001:db8::1")
        world.addSocket(2, of: b, at: "2001:db8::2")
        world.connect(a, b)
        world.run(for: .seconds(1))
        #expect(a.agent.state == .completed)
        #expect(a.agent.statistics.pairs.count == 2)
        let selected = try #require(a.agent.selectedPair)
        #expect(selected.local.socketAddress?.ip.isV4 == selected.remote.socketAddress?.ip.isV4)
    }

    @Test func loopbackIsLeftOutOnRequestOnly() {
        let world = VirtualWorld()
        let with = world.addHost("with", role: .controlling, seed: 1)
        let without = world.addHost("without", role: .controlling, seed: 2) { $0.includesLoopback = false }
        world.addSocket(1, of: with, at: "127.0.0.1")
        world.addSocket(1, of: without, at: "127.0.0.1")
        #expect(with.candidates.count == 1)
        #expect(without.candidates.isEmpty)
    }

    @Test func failsAfterTheConnectTimeoutAndNotBefore() throws {
        let (world, a, b) = Self.pair(connect: false)
        world.loses = { _ in true }
        let start = world.now
        world.connect(a, b)
        world.run(for: .seconds(120))
        let failed = try #require(a.time(of: .failed))
        #expect(failed - start == .milliseconds(39_500))
        #expect(a.states.map(\.state) == [.checking, .failed])
        #expect(a.agent.nextTimeout == nil)
    }

    @Test func lateCandidatesConnect() {
        let (world, a, b) = Self.pair(connect: false)
        a.signalsCandidates = false
        b.signalsCandidates = false
        world.connect(a, b)
        world.run(for: .seconds(20))
        #expect(a.agent.state == .checking)
        for c in b.candidates { a.agent.addRemoteCandidate(c, now: world.now) }
        world.drain(a)
        let start = world.now
        world.run(for: .seconds(1))
        #expect(a.agent.state == .completed)
        #expect(a.time(of: .connected).map { $0 - start <= .milliseconds(25) } == true)
    }

    @Test func theNumberOfCandidatesAndPairsIsBounded() {
        let (world, a, b) = Self.pair()
        for index in 0..<2_000 {
            let address = SocketAddress(.v4(0x0A00_0000 + UInt32(index)), port: 9_000)
            a.agent.addRemoteCandidate(
                ICECandidate(foundation: "1", priority: UInt32(index), address: .ip(address), type: .host),
                now: world.now)
        }
        #expect(a.agent.remoteCandidates.count <= 64)
        #expect(a.agent.checklist.pairs.count <= 128)
        world.run(for: .seconds(1))
        #expect(a.agent.selectedPair != nil)
        #expect(b.agent.selectedPair != nil)
    }

    @Test func ordinaryChecksKeepTheirPace() {
        let (world, a, _) = Self.pair(connect: false)
        for index in 0..<40 {
            let address = SocketAddress(.v4(0x0A00_0000 + UInt32(index)), port: 9_000)
            a.agent.addRemoteCandidate(
                ICECandidate(foundation: "1", priority: UInt32(index), address: .ip(address), type: .host),
                now: world.now)
        }
        var times: [Instant] = []
        world.loses = { _ in
            times.append(world.now)
            return true
        }
        let start = world.now
        a.agent.setRemote(
            credentials: ICECredentials(usernameFragment: "abcd", password: "0123456789012345678901"), isLite: false,
            now: world.now)
        world.drain(a)
        world.run(for: .milliseconds(450))
        // ten at once, then one each 50 ms
        #expect(times.count { $0 == start } == 10)
        #expect(times.count == 10 + 9)
    }

    @Test func aCloseEndsEverything() {
        let (world, a, _) = Self.pair()
        world.run(for: .seconds(1))
        a.agent.close(now: world.now)
        world.drain(a)
        #expect(a.agent.state == .closed)
        #expect(a.agent.nextTimeout == nil)
        #expect(a.agent.datagram(for: [1]) == nil)
        let sent = a.sentDatagrams
        world.run(for: .seconds(60))
        #expect(a.sentDatagrams == sent)
    }
}
