import SoraEmulator
import SoraWire
import Testing

@testable import SoraICE

@Suite struct GatheringTests {
    static let home = EmulatedNAT(outerAddress: .v4(0xCB00_7101), behavior: .portRestricted)

    // ICE10
    @Test func deadSlowAndGoodServersSideBySide() throws {
        let world = VirtualWorld()
        let good = FakeTURNServer("198.51.100.5")
        let slow = FakeTURNServer("198.51.100.6")
        world.addServer(good)
        world.addServer(slow, delay: .seconds(3))
        let site = world.network.addNAT(Self.home)
        let servers = try ["stun:198.51.100.99", "stun:198.51.100.6", "stun:198.51.100.5"].map {
            try ICEServer(url: $0, username: nil, credential: nil)
        }
        let host = world.addHost("a", role: .controlling, seed: 1) { $0.servers = servers }
        let start = world.now
        world.addSocket(1, of: host, at: "10.0.0.2", in: site)
        #expect(host.candidates.map(\.type) == [.host])
        world.run(for: .milliseconds(100))
        #expect(host.candidates.map(\.type) == [.host, .serverReflexive])
        #expect(host.candidates.last?.socketAddress?.ip == Self.home.outerAddress)
        #expect(host.candidates.last?.relatedAddress == host.candidates.first?.address)
        world.run(for: .seconds(60))
        // The slow one shows the same address: nothing new.
        #expect(host.candidates.count == 2)
        #expect(try #require(host.gatheringFinishedAt) - start < .seconds(20))
        #expect(host.agent.serverReports.count { $0.status == .succeeded } == 2)
        #expect(host.agent.serverReports.contains { $0.status == .failed(reason: "no answer from the STUN server") })
    }

    @Test func gatheringWithoutServersEndsAtOnce() {
        let world = VirtualWorld()
        let host = world.addHost("a", role: .controlling, seed: 1)
        world.addSocket(1, of: host, at: "192.0.2.1")
        #expect(host.gatheringFinishedAt == world.now)
    }

    @Test func aPublicAddressHasNoReflexiveCandidate() throws {
        let world = VirtualWorld()
        world.addServer(FakeTURNServer("198.51.100.5"))
        let server = try ICEServer(url: "stun:198.51.100.5", username: nil, credential: nil)
        let host = world.addHost("a", role: .controlling, seed: 1) { $0.servers = [server] }
        world.addSocket(1, of: host, at: "192.0.2.1")
        world.run(for: .seconds(1))
        #expect(host.candidates.map(\.type) == [.host])
        #expect(host.agent.serverReports.first?.status == .succeeded)
    }

    @Test func namesAreResolvedByTheDriver() throws {
        let world = VirtualWorld()
        world.addServer(FakeTURNServer("198.51.100.5"))
        let servers = [
            try ICEServer(url: "turn:relay.example.com", username: "user", credential: "pass"),
            try ICEServer(url: "turn:gone.example.com", username: "user", credential: "pass"),
            try ICEServer(url: "turn:mute.example.com", username: "user", credential: "pass"),
        ]
        let host = world.addHost("a", role: .controlling, seed: 1) { $0.servers = servers }
        host.resolver = {
            switch $0 {
            case "relay.example.com": [.v6(high: 1, low: 1, scope: 0), .v4(0xC633_6405)]
            case "gone.example.com": []
            default: nil
            }
        }
        world.addSocket(1, of: host, at: "192.0.2.1")
        world.run(for: .seconds(1))
        #expect(host.candidates.map(\.type) == [.host, .relayed])
        #expect(host.gatheringFinishedAt == nil)
        #expect(host.agent.serverReports.contains { $0.status == .resolving })
        world.run(for: .seconds(20))
        #expect(host.gatheringFinishedAt != nil)
        #expect(host.agent.serverReports.count { $0.status == .failed(reason: "the name has no address") } == 2)
    }

    @Test func aNewInterfaceGathersItsOwnCandidates() throws {
        let world = VirtualWorld()
        let turn = FakeTURNServer("198.51.100.5")
        world.addServer(turn)
        let server = try TURNTests.server()
        let site = world.network.addNAT(Self.home)
        let host = world.addHost("a", role: .controlling, seed: 1) { $0.servers = [server] }
        world.addSocket(1, of: host, at: "192.0.2.1")
        world.run(for: .seconds(1))
        #expect(host.candidates.map(\.type) == [.host, .relayed])
        world.addSocket(2, of: host, at: "10.0.0.2", in: site)
        world.run(for: .seconds(1))
        #expect(host.candidates.map(\.type) == [.host, .relayed, .host, .serverReflexive, .relayed])
        host.sockets[SocketID(1)] = nil
        host.agent.removeLocalSocket(SocketID(1), now: world.now)
        #expect(host.agent.localCandidates.map(\.type) == [.host, .serverReflexive, .relayed])
    }

    @Test func theNumberOfAttemptsIsBounded() throws {
        let world = VirtualWorld()
        let servers = try (0..<100).map {
            try ICEServer(url: "stun:198.51.100.\($0 + 1)", username: nil, credential: nil)
        }
        let host = world.addHost("a", role: .controlling, seed: 1) { $0.servers = servers }
        world.addSocket(1, of: host, at: "192.0.2.1")
        #expect(host.agent.serverReports.count == ICEAgent.attemptLimit)
    }

    @Test func aLiteAgentAsksNoServer() throws {
        let world = VirtualWorld()
        let server = try TURNTests.server()
        let host = world.addHost("a", role: .controlled, seed: 1) {
            $0.servers = [server]
            $0.mode = .lite
        }
        world.addSocket(1, of: host, at: "192.0.2.1")
        #expect(host.sentDatagrams == 0)
        #expect(host.gatheringFinishedAt != nil)
    }
}

extension GatheringTests {
    @Test func aDeadFirstAddressOfANameDelaysALittle() throws {
        let world = VirtualWorld()
        world.addServer(FakeTURNServer("198.51.100.5"))
        let server = try TURNTests.server("turn:relay.example.com")
        let host = world.addHost("a", role: .controlling, seed: 1) { $0.servers = [server] }
        host.resolver = { _ in [.v4(0xC633_6401), .v6(high: 1, low: 1, scope: 0), .v4(0xC633_6405), .v4(0xC633_6406)] }
        let start = world.now
        world.addSocket(1, of: host, at: "192.0.2.1")
        world.run(for: .seconds(3))
        #expect(host.candidates.map(\.type) == [.host, .relayed])
        let report = try #require(host.agent.serverReports.first { $0.status == .succeeded })
        #expect(try #require(report.endedAt) - start < .seconds(1))
        // The third was not needed.
        #expect(host.agent.serverReports.count == 2)
    }
}
