import SoraEmulator
import SoraWire
import Testing

@testable import SoraICE

/// ICE1
@Suite struct RoleConflictTests {
    @Test(arguments: [ICEAgent.Role.controlling, .controlled]) func equalRolesAreSettled(_ role: ICEAgent.Role) {
        for seed in 1...20 as ClosedRange<UInt64> {
            let world = VirtualWorld(seed: seed)
            let a = world.addHost("a", role: role, seed: seed)
            let b = world.addHost("b", role: role, seed: seed + 50)
            world.addSocket(1, of: a, at: "192.0.2.1")
            world.addSocket(1, of: b, at: "192.0.2.2")
            world.connect(a, b)
            world.run(for: .seconds(2))
            #expect(a.agent.role != b.agent.role)
            #expect(a.agent.state == .completed && b.agent.state == .completed, "seed \(seed)")
        }
    }

    @Test(arguments: [ICEAgent.Role.controlling, .controlled]) func equalTieBreakersAreSettled(_ role: ICEAgent.Role) {
        let (world, a, b) = ConnectTests.pair(roles: (role, role), connect: false)
        a.agent.tieBreaker = 42
        b.agent.tieBreaker = 42
        world.connect(a, b)
        world.run(for: .seconds(4))
        #expect(a.agent.role != b.agent.role)
        #expect(a.agent.state == .completed && b.agent.state == .completed)
    }

    @Test(arguments: [true, false]) func aLostOrUnsignedAnswerDelaysOnly(_ unsigned: Bool) {
        let (world, a, b) = ConnectTests.pair(roles: (.controlling, .controlling), connect: false)
        var spoiled = 0
        world.loses = { packet in
            guard let message = try? STUNMessage(parsing: packet.payload), message.errorCode?.code == 487, spoiled == 0
            else {
                return false
            }
            spoiled += 1
            if unsigned {
                world.network.send(
                    message.serialized(fingerprint: true), from: packet.source, to: packet.destination, now: world.now)
            }
            return true
        }
        world.connect(a, b)
        world.run(for: .seconds(4))
        #expect(spoiled == 1)
        #expect(a.agent.role != b.agent.role)
        #expect(a.agent.state == .completed && b.agent.state == .completed)
    }

    @Test func aConflictFoundWhileChecksAreInFlightIsSettled() {
        // b's checks are on their way for 200 ms when a's arrive.
        let world = VirtualWorld()
        let a = world.addHost("a", role: .controlled, seed: 1)
        let b = world.addHost("b", role: .controlled, seed: 2)
        world.addSocket(1, of: a, at: "192.0.2.1", delay: .milliseconds(20))
        world.addSocket(1, of: b, at: "192.0.2.2", delay: .milliseconds(200))
        world.connect(a, b)
        world.run(for: .seconds(5))
        #expect(a.agent.role != b.agent.role)
        #expect(a.agent.state == .completed && b.agent.state == .completed)
    }

    @Test func aLiteAgentKeepsItsRole() {
        let (world, client, server) = ConnectTests.client()
        world.connect(client, server)
        world.run(for: .seconds(1))
        #expect(server.agent.role == .controlled)
        #expect(client.agent.role == .controlling)
    }
}
