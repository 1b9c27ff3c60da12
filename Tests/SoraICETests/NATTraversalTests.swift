import SoraEmulator
import SoraWire
import Testing

@testable import SoraICE

/// Two clients behind NATs of every kind, with one TURN server: a direct way wherever there is one, else the relay,
/// and never later than five seconds.
@Suite struct NATTraversalTests {
    enum Kind: String, CaseIterable {
        case open, fullCone, addressRestricted, portRestricted, symmetric, blocked

        var behavior: NATBehavior? {
            switch self {
            case .open, .blocked: nil
            case .fullCone: .fullCone
            case .addressRestricted: .addressRestricted
            case .portRestricted: .portRestricted
            case .symmetric: .symmetric
            }
        }
    }

    /// Hole punching works unless one side's port cannot be foreseen and the other's filter insists on it.
    static func isDirect(_ a: Kind, _ b: Kind) -> Bool {
        if a == .blocked || b == .blocked { return false }
        if a == .symmetric && (b == .symmetric || b == .portRestricted) { return false }
        if b == .symmetric && a == .portRestricted { return false }
        return true
    }

    static func addClient(_ name: String, _ kind: Kind, number: UInt32, role: ICEAgent.Role, to world: VirtualWorld)
        throws -> VirtualHost
    {
        let servers = [
            try ICEServer(url: "stun:198.51.100.5", username: nil, credential: nil), try TURNTests.server(),
        ]
        let host = world.addHost(name, role: role, seed: UInt64(number)) { $0.servers = servers }
        let link = Duration.milliseconds(40)
        if let behavior = kind.behavior {
            let site = world.network.addNAT(EmulatedNAT(outerAddress: .v4(0xCB00_7100 + number), behavior: behavior))
            world.addSocket(1, of: host, at: "10.0.\(number).2", in: site, delay: link)
        } else {
            world.addSocket(1, of: host, at: "192.0.2.\(number)", delay: link)
        }
        return host
    }

    @Test(arguments: Kind.allCases, Kind.allCases) func connects(_ a: Kind, _ b: Kind) throws {
        for flipped in [false, true] {
            let world = VirtualWorld(seed: 3)
            world.signalingDelay = .milliseconds(60)
            let turn = FakeTURNServer("198.51.100.5")
            world.addServer(turn)
            let one = try Self.addClient("a", a, number: 1, role: flipped ? .controlled : .controlling, to: world)
            let two = try Self.addClient("b", b, number: 2, role: flipped ? .controlling : .controlled, to: world)
            // Blocked: no UDP but to the TURN server.
            for (host, kind) in [(one, a), (two, b)] where kind == .blocked {
                let own = host.sockets[SocketID(1)]?.address
                let previous = world.loses
                world.loses = { packet in
                    if previous?(packet) == true { return true }
                    let isOwn = packet.source == own || packet.destination == own
                    return isOwn && packet.source != turn.address && packet.destination != turn.address
                }
            }
            let start = world.now
            world.connect(one, two)
            world.run(for: .seconds(8))
            for host in [one, two] {
                let connected = try #require(host.time(of: .connected), "\(a)-\(b) \(host.name) did not connect")
                #expect(connected - start <= .seconds(5))
                #expect(!host.states.contains { $0.state == .failed || $0.state == .disconnected })
                let pair = try #require(host.agent.selectedPair)
                let isRelayed = pair.local.type == .relayed || pair.remote.socketAddress?.ip == turn.address.ip
                #expect(isRelayed != Self.isDirect(a, b), "\(a)-\(b): \(pair.local) \(pair.remote)")
            }
            // Both ways carry data.
            #expect(world.send([128, 1], from: one))
            #expect(world.send([128, 2], from: two))
            world.run(for: .seconds(1))
            #expect(one.received.map(\.payload) == [[128, 2]])
            #expect(two.received.map(\.payload) == [[128, 1]])
            #expect(turn.violations.isEmpty)
        }
    }

    @Test func neighboursBehindOneNATConnectDirectly() throws {
        let world = VirtualWorld(seed: 3)
        let turn = FakeTURNServer("198.51.100.5")
        world.addServer(turn)
        let site = world.network.addNAT(EmulatedNAT(outerAddress: .v4(0xCB00_7101), behavior: .symmetric))
        let servers = [try TURNTests.server()]
        let one = world.addHost("a", role: .controlling, seed: 1) { $0.servers = servers }
        let two = world.addHost("b", role: .controlled, seed: 2) { $0.servers = servers }
        world.addSocket(1, of: one, at: "10.0.0.2", in: site)
        world.addSocket(1, of: two, at: "10.0.0.3", in: site)
        world.connect(one, two)
        world.run(for: .seconds(3))
        #expect(one.agent.selectedPair?.local.type == .host)
        #expect(one.agent.selectedPair?.remote.type == .host)
        #expect(one.agent.state == .completed)
    }

    @Test func everyKindReachesALiteServerWithoutARelay() throws {
        for kind in Kind.allCases where kind != .blocked {
            let world = VirtualWorld(seed: 3)
            let client = try Self.addClient("client", kind, number: 1, role: .controlling, to: world)
            let server = world.addHost("server", role: .controlled, seed: 9) { $0.mode = .lite }
            world.addSocket(1, of: server, at: "192.0.2.99")
            let start = world.now
            world.connect(client, server)
            world.run(for: .seconds(3))
            #expect(try #require(client.time(of: .connected)) - start <= .milliseconds(60))
            #expect(world.send([128], from: server))
            world.run(for: .seconds(1))
            #expect(client.received.count == 1)
        }
    }
}
