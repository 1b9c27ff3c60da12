import SoraWire
import Testing

@testable import SoraEmulator

@Suite struct NATTests {
    static let outer = IPAddress.v4(0xCB00_7101)
    static let inner = SocketAddress(.v4(0x0A00_0002), port: 5_000)
    static let one = SocketAddress(.v4(0xC000_0201), port: 1)
    static let onePort2 = SocketAddress(.v4(0xC000_0201), port: 2)
    static let two = SocketAddress(.v4(0xC000_0202), port: 1)

    static func nat(_ behavior: NATBehavior) -> EmulatedNAT { EmulatedNAT(outerAddress: outer, behavior: behavior) }

    @Test func mappingDependsOnWhatItShould() {
        for (mapping, expected) in [
            (NATBehavior.Dependence.endpointIndependent, 1), (.addressDependent, 2), (.addressAndPortDependent, 3),
        ] {
            var nat = Self.nat(NATBehavior(mapping: mapping, filtering: .endpointIndependent))
            let ports = [Self.one, Self.onePort2, Self.two].map {
                nat.outbound(from: Self.inner, to: $0, now: .zero).port
            }
            #expect(Set(ports).count == expected)
            #expect(nat.outbound(from: Self.inner, to: Self.one, now: .zero).port == ports[0])
        }
    }

    @Test func filteringDependsOnWhatItShould() {
        for (filtering, expected) in [
            (NATBehavior.Dependence.endpointIndependent, [true, true, true]),
            (.addressDependent, [true, true, false]), (.addressAndPortDependent, [true, false, false]),
        ] {
            var nat = Self.nat(NATBehavior(mapping: .endpointIndependent, filtering: filtering))
            let port = nat.outbound(from: Self.inner, to: Self.one, now: .zero).port
            let passed = [Self.one, Self.onePort2, Self.two].map {
                nat.inbound(to: port, from: $0, now: .zero) == Self.inner
            }
            #expect(passed == expected)
        }
    }

    @Test func mappingsExpireUnlessUsed() {
        var nat = Self.nat(.fullCone)
        let port = nat.outbound(from: Self.inner, to: Self.one, now: .zero).port
        #expect(nat.outbound(from: Self.inner, to: Self.two, now: .zero + .seconds(100)).port == port)
        #expect(nat.inbound(to: port, from: Self.one, now: .zero + .seconds(219)) == Self.inner)
        #expect(nat.inbound(to: port, from: Self.one, now: .zero + .seconds(221)) == nil)
        #expect(nat.mappingCount == 0)
    }

    @Test func rebindingChangesThePort() {
        var nat = Self.nat(.fullCone)
        let port = nat.outbound(from: Self.inner, to: Self.one, now: .zero).port
        nat.rebind()
        #expect(nat.inbound(to: port, from: Self.one, now: .zero) == nil)
        #expect(nat.outbound(from: Self.inner, to: Self.one, now: .zero).port != port)
    }

    @Test func portsArePreservedWhileTheyAreFree() {
        var nat = Self.nat(
            NATBehavior(mapping: .endpointIndependent, filtering: .endpointIndependent, preservesPorts: true))
        #expect(nat.outbound(from: Self.inner, to: Self.one, now: .zero).port == 5_000)
        let other = SocketAddress(.v4(0x0A00_0003), port: 5_000)
        #expect(nat.outbound(from: other, to: Self.one, now: .zero).port != 5_000)
    }
}

@Suite struct NetworkTests {
    static func receiveAll(_ network: inout EmulatedNetwork, until end: Instant) -> [EmulatedNetwork.Packet] {
        var packets: [EmulatedNetwork.Packet] = []
        while let time = network.nextTimeout, time <= end {
            while let (packet, _) = network.receive(now: time) { packets.append(packet) }
        }
        return packets
    }

    @Test func packetsCrossNATsBothWays() throws {
        var network = EmulatedNetwork(seed: 1)
        let home = network.addNAT(NATTests.nat(.portRestricted))
        network.addHost(NATTests.inner.ip, in: home)
        network.addHost(NATTests.one.ip, uplink: LinkConditions(delay: .milliseconds(7)))
        network.send([1], from: NATTests.inner, in: home, to: NATTests.one, now: .zero)
        let out = try #require(Self.receiveAll(&network, until: .zero).first)
        #expect(out.source.ip == NATTests.outer && out.destination == NATTests.one)
        network.send([2], from: NATTests.one, to: out.source, now: .zero)
        let back = try #require(Self.receiveAll(&network, until: .zero + .milliseconds(7)).first)
        #expect(back.destination == NATTests.inner && back.source == NATTests.one && back.payload == [2])
        network.send([3], from: NATTests.onePort2, to: out.source, now: .zero)
        #expect(Self.receiveAll(&network, until: .zero + .seconds(1)).isEmpty)
        #expect(network.undeliverable == 1)
    }

    @Test func neighboursBehindANATReachEachOtherDirectly() throws {
        var network = EmulatedNetwork(seed: 1)
        let home = network.addNAT(NATTests.nat(.symmetric))
        let neighbour = SocketAddress(.v4(0x0A00_0003), port: 9)
        network.addHost(NATTests.inner.ip, in: home)
        network.addHost(neighbour.ip, in: home)
        network.send([1], from: NATTests.inner, in: home, to: neighbour, now: .zero)
        #expect(Self.receiveAll(&network, until: .zero).first?.source == NATTests.inner)
    }

    @Test(arguments: [true, false]) func hairpinningIsTheNATsChoice(_ hairpins: Bool) {
        var network = EmulatedNetwork(seed: 1)
        var behavior = NATBehavior.fullCone
        behavior.hairpins = hairpins
        let home = network.addNAT(NATTests.nat(behavior))
        let neighbour = SocketAddress(.v4(0x0A00_0003), port: 9)
        network.addHost(NATTests.inner.ip, in: home)
        network.addHost(neighbour.ip, in: home)
        network.addHost(NATTests.one.ip)
        network.send([0], from: neighbour, in: home, to: NATTests.one, now: .zero)
        let mapped = Self.receiveAll(&network, until: .zero)[0].source
        network.send([1], from: NATTests.inner, in: home, to: mapped, now: .zero)
        let received = Self.receiveAll(&network, until: .zero)
        #expect(received.count == (hairpins ? 1 : 0))
        if hairpins { #expect(received[0].source.ip == NATTests.outer && received[0].destination == neighbour) }
    }

    @Test func nestedNATsTranslateTwice() throws {
        var network = EmulatedNetwork(seed: 1)
        let carrier = network.addNAT(NATTests.nat(.fullCone))
        let home = network.addNAT(
            EmulatedNAT(outerAddress: .v4(0x6440_0001), behavior: .fullCone), within: carrier)
        network.addHost(NATTests.inner.ip, in: home)
        network.addHost(NATTests.one.ip)
        network.send([1], from: NATTests.inner, in: home, to: NATTests.one, now: .zero)
        let out = try #require(Self.receiveAll(&network, until: .zero).first)
        #expect(out.source.ip == NATTests.outer)
        network.send([2], from: NATTests.one, to: out.source, now: .zero)
        #expect(Self.receiveAll(&network, until: .zero).first?.destination == NATTests.inner)
    }

    @Test func hostsThatAreDownOrBlockUDPReceiveAndSendNothing() {
        var network = EmulatedNetwork(seed: 1)
        network.addHost(NATTests.one.ip)
        network.addHost(NATTests.two.ip)
        network.setHost(NATTests.one.ip, isUp: false)
        network.send([1], from: NATTests.two, to: NATTests.one, now: .zero)
        network.send([1], from: NATTests.one, to: NATTests.two, now: .zero)
        #expect(Self.receiveAll(&network, until: .zero).isEmpty)
        network.setHost(NATTests.one.ip, isUp: true)
        network.setHost(NATTests.two.ip, blocksUDP: true)
        network.send([1], from: NATTests.two, to: NATTests.one, now: .zero)
        network.send([1], from: NATTests.one, to: NATTests.two, now: .zero)
        #expect(Self.receiveAll(&network, until: .zero).isEmpty)
        network.setHost(NATTests.two.ip, blocksUDP: false)
        network.send([1], from: NATTests.two, to: NATTests.one, now: .zero)
        #expect(Self.receiveAll(&network, until: .zero).count == 1)
    }
}
