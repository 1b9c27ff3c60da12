import SoraClient
import SoraEmulator
import SoraWire
import TestSupport
import Testing

/// Whole clients behind every kind of NAT, and clients that move, against the real channel in virtual time.
@Suite(.serialized, .leavesNoObjects) struct NATWorldTests {
    static let kinds: [NATBehavior] = NATBehavior.Dependence.allCases.flatMap { mapping in
        NATBehavior.Dependence.allCases.map { filtering in
            var behavior = NATBehavior(mapping: mapping, filtering: filtering)
            behavior.mappingLifetime = .seconds(30)
            return behavior
        }
    }

    private func exchange(_ world: World, _ one: World.Client, _ other: World.Client, within limit: Duration) -> Bool {
        let counts = (one.messages("#dev").count, other.messages("#dev").count)
        return world.send([1, 2, 3], from: one) == nil && world.send([4, 5], from: other) == nil
            && world.run(for: limit) {
                one.messages("#dev").count > counts.0 && other.messages("#dev").count > counts.1
            }
    }

    /// The server is on the public network: it is reached from behind any NAT, at once, and stays so although the NAT
    /// forgets what is silent for 30 s.
    @Test(arguments: kinds) func connectsFromBehindAnyNATAndStays(_ kind: NATBehavior) throws {
        let world = World()
        let one = world.join(nat: kind)
        let other = world.join(nat: kind)
        #expect(world.run(for: .seconds(5)) { one.connectedAt != nil && other.connectedAt != nil })
        #expect(world.run(for: .seconds(5)) { [one, other].allSatisfy { $0.isSwitched && $0.opened("#dev") } })
        #expect(exchange(world, one, other, within: .seconds(1)))
        // Nothing but what keeps the path alive.
        world.run(for: .seconds(600))
        #expect(one.end == nil && other.end == nil)
        #expect(exchange(world, one, other, within: .seconds(1)))
    }

    /// ICE6: the NAT restarts, and the same client comes from another port.
    @Test(arguments: [NATBehavior.portRestricted, .symmetric]) func survivesARebindingNAT(_ kind: NATBehavior) {
        let world = World()
        let one = world.join(nat: kind)
        let other = world.join()
        #expect(world.run(for: .seconds(10)) { [one, other].allSatisfy { $0.isSwitched && $0.opened("#dev") } })
        for _ in 0..<3 {
            one.nat?.rebind()
            #expect(exchange(world, one, other, within: .seconds(10)))
        }
        #expect(one.end == nil && other.end == nil)
        #expect(!one.events.contains { if case .redirected = $0 { true } else { false } })
    }

    /// ICE6: another address under the same credentials, without a new connection.
    @Test func movesToAnotherNetwork() {
        let world = World()
        let one = world.join(World.messaging(ignore: true), nat: .symmetric)
        let other = world.join()
        #expect(world.run(for: .seconds(10)) { [one, other].allSatisfy { $0.isSwitched && $0.opened("#dev") } })
        for number in 1...3 {
            let address = SocketAddress(.v4(0x0A01_0000 + UInt32(number)), port: 4000)
            world.move(one, to: address, socket: SocketID(100 + number))
            #expect(exchange(world, one, other, within: .seconds(3)), "move \(number)")
        }
        #expect(one.end == nil && one.connection.state == .connected)
    }

    /// Without any address the connection ends when the grace time is over, not earlier and not much later.
    @Test func endsWithoutANetwork() throws {
        let world = World()
        let one = world.join(World.messaging(ignore: true))
        #expect(world.run(for: .seconds(10)) { one.isSwitched })
        let start = world.now
        one.connection.removeLocalSocket(SocketID(0), epoch: 0, now: world.now)
        one.addresses = [:]
        world.collect()
        #expect(world.run(for: .seconds(20)) { one.end != nil })
        #expect(world.now - start == .seconds(5))
        guard case .peerChannel(let reason)? = one.end?.error else {
            Issue.record("\(String(describing: one.end))")
            return
        }
        #expect(reason == "peer connection state: disconnected")
    }
}
