import SoraEmulator
import SoraWire
import Testing

@testable import SoraICE

/// Machines under hostile input: nothing traps, nothing grows, nothing unauthenticated has an effect.
@Suite struct FuzzTests {
    /// A packet like those that were recorded, changed a little, or noise.
    static func mutate(_ corpus: [[UInt8]], _ random: inout RandomSource) -> [UInt8] {
        guard var packet = corpus.randomElement(using: &random), !packet.isEmpty,
            Int.random(in: 0..<8, using: &random) > 0
        else { return random.bytes(Int.random(in: 0...80, using: &random)) }
        switch Int.random(in: 0..<5, using: &random) {
        case 0: packet = Array(packet.prefix(Int.random(in: 0...packet.count, using: &random)))
        case 1: packet += random.bytes(Int.random(in: 1...8, using: &random))
        case 2:
            let index = Int.random(in: 0..<packet.count, using: &random)
            packet.replaceSubrange(index..<index, with: random.bytes(4))
        default:
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                packet[Int.random(in: 0..<packet.count, using: &random)] = UInt8(truncatingIfNeeded: random.next())
            }
        }
        return packet
    }

    /// A change that MESSAGE-INTEGRITY covers, in a packet whose FINGERPRINT is cut off.
    static func changeOneByte(_ corpus: [[UInt8]], _ random: inout RandomSource) -> [UInt8] {
        guard var packet = corpus.randomElement(using: &random), packet.count > 52 else { return [] }
        packet.removeLast(8)
        packet[3] &-= 8
        let index = Int.random(in: 0..<(packet.count - 24), using: &random)
        packet[index == 3 ? 4 : index] ^= UInt8.random(in: 1...255, using: &random)
        return packet
    }

    /// Everything that crossed the network while two agents connected.
    static func recording(seeds: (UInt64, UInt64)) -> [[UInt8]] {
        let world = VirtualWorld()
        for (index, seed) in [seeds.0, seeds.1].enumerated() {
            let host = world.addHost("\(index)", role: index == 0 ? .controlling : .controlled, seed: seed)
            world.addSocket(1, of: host, at: "192.0.2.\(index + 1)")
        }
        var packets: [[UInt8]] = []
        world.loses = {
            packets.append($0.payload)
            return false
        }
        let (one, two) = (world.hosts[0], world.hosts[1])
        world.connect(one, two)
        world.run(for: .seconds(20))
        return packets
    }

    @Test(arguments: [ICEAgent.Mode.full, .lite]) func changedPacketsHaveNoEffectOnAConnection(_ mode: ICEAgent.Mode) {
        // Of other agents, and of these two: what their like said, and what they said themselves.
        let strangers = Self.recording(seeds: (500, 501))
        let corpus = Self.recording(seeds: (11, 22))
        var random = RandomSource(seed: 77)
        let (world, client, server) = ConnectTests.client(of: mode)
        world.connect(client, server)
        world.run(for: .seconds(2))
        for victim in [client, server] {
            let pairs = victim.agent.checklist.pairs.count
            let selected = victim.agent.selectedPair?.remote
            for _ in 0..<5_000 {
                let from = SocketAddress(.v4(UInt32(truncatingIfNeeded: random.next())), port: 7)
                let packet =
                    Bool.random(using: &random) ? Self.mutate(strangers, &random) : Self.changeOneByte(corpus, &random)
                let datagram = Datagram(
                    socket: SocketID(Int.random(in: 0...2, using: &random)), remote: from, payload: packet)
                #expect(victim.agent.handle(datagram, now: world.now) == nil)
                #expect(victim.agent.poll() == nil)
            }
            #expect(victim.agent.checklist.pairs.count == pairs)
            #expect(victim.agent.selectedPair?.remote == selected)
        }
        world.run(for: .seconds(60))
        #expect(client.agent.state == .completed && server.agent.state == .completed)
    }

    @Test func aTURNClientSurvivesWhateverItsServerSays() {
        // The corpus: what a real exchange had the server say.
        var corpus: [[UInt8]] = []
        if let (world, client, peer, turn) = try? TURNTests.relayed() {
            for _ in 0..<40 {
                _ = world.send([128, 1], from: client)
                _ = world.send([129, 1], from: peer)
                world.run(for: .milliseconds(50))
            }
            let allocate = STUNMessage(.request, .allocate, transactionID: STUNTransactionID(high: 1, low: 1))
                .serialized()
            corpus = turn.handle(
                EmulatedNetwork.Packet(source: turn.address, destination: turn.address, payload: allocate),
                now: world.now
            ).map(\.payload)
        }
        corpus += [
            TURNChannelData.wrap([1, 2, 3, 4], channel: 0x4000, padded: true) ?? [],
            STUNMessage(
                .indication, .data, transactionID: STUNTransactionID(high: 1, low: 1),
                attributes: [.xorPeerAddress(SocketAddress(.v4(7), port: 7)), .data([128, 1])]
            ).serialized(),
        ]
        for seed in 1...20 as ClosedRange<UInt64> {
            var random = RandomSource(seed: seed)
            let allocation = TURNAllocation(
                username: "user", credential: "pass", isStream: seed % 2 == 0, random: RandomSource(seed: seed))
            var now = Instant.zero
            allocation.start(now: now)
            var outputs = 0
            for _ in 0..<300 {
                // Answers with the transaction in flight, so that they are looked at.
                var packet = Self.mutate(corpus, &random)
                if let id = allocation.transactions.keys.first, packet.count >= 20 {
                    var writer = ByteWriter()
                    writer.write(id.high)
                    writer.write(id.low)
                    packet.replaceSubrange(8..<20, with: writer.bytes)
                }
                _ = allocation.receive(packet, now: now)
                now += .milliseconds(Int64.random(in: 0...500, using: &random))
                if let due = allocation.nextTimeout, due <= now { allocation.handleTimeout(now: now) }
                while allocation.poll() != nil { outputs += 1 }
                #expect(allocation.transactions.count <= 4)
            }
            #expect(outputs < 2_000)
        }
    }

    @Test func agentsDrivenAtRandomKeepTheirBounds() throws {
        for seed in 1...15 as ClosedRange<UInt64> {
            var random = RandomSource(seed: seed)
            let world = VirtualWorld(seed: seed)
            world.addServer(FakeTURNServer("198.51.100.5"))
            let servers = [
                try TURNTests.server(), try ICEServer(url: "stun:198.51.100.5", username: nil, credential: nil),
            ]
            let a = world.addHost("a", role: .controlling, seed: seed) { $0.servers = servers }
            let b = world.addHost("b", role: seed % 3 == 0 ? .controlling : .controlled, seed: seed + 100) {
                $0.servers = servers
                if seed % 4 == 0 { $0.mode = .lite }
            }
            world.loses = { _ in Int.random(in: 0..<5, using: &random) == 0 }
            var number = 0
            for _ in 0..<60 {
                let host = Bool.random(using: &random) ? a : b
                switch Int.random(in: 0..<8, using: &random) {
                case 0,
                    1 where host.sockets.count < 4:
                    number += 1
                    world.addSocket(number, of: host, at: "192.0.2.\(number % 250 + 1)", port: 6_000)
                case 2:
                    if let id = host.sockets.keys.sorted(by: { $0.rawValue < $1.rawValue }).first {
                        host.sockets[id] = nil
                        host.agent.removeLocalSocket(id, now: world.now)
                        world.drain(host)
                    }
                case 3: world.connect(a, b)
                case 4:
                    if Int.random(in: 0..<4, using: &random) == 0 {
                        a.agent.restart(now: world.now)
                        b.agent.restart(now: world.now)
                        world.drain(a)
                        world.drain(b)
                    }
                default: world.run(for: .milliseconds(Int64.random(in: 1...4_000, using: &random)))
                }
                // What is due is done at once, and then lies ahead.
                world.run(for: .zero)
                for host in [a, b] {
                    #expect(host.agent.checklist.pairs.count <= 128)
                    #expect(host.agent.remoteCandidates.count <= 64)
                    #expect(host.agent.transactions.count <= 512)
                    #expect(host.agent.attempts.count <= ICEAgent.attemptLimit)
                    if let due = host.agent.nextTimeout { #expect(due > world.now) }
                }
            }
            // With the network left alone and a restart, the two find each other again.
            world.loses = nil
            world.addSocket(900, of: a, at: "192.0.2.251")
            world.addSocket(900, of: b, at: "192.0.2.252")
            a.candidates = a.agent.localCandidates
            b.candidates = b.agent.localCandidates
            a.agent.restart(now: world.now)
            b.agent.restart(now: world.now)
            world.drain(a)
            world.drain(b)
            world.connect(a, b)
            world.run(for: .seconds(10))
            #expect(
                a.agent.state == .completed && b.agent.state == .completed,
                "seed \(seed): \(a.agent.state) \(b.agent.state)")
        }
    }

    @Test func serverURIsChangedAtRandomAreValuesOrErrors() throws {
        let corpus = ["turns:relay.example.com:443?transport=tcp", "turn:[2001:db8::5]:99", "stun:192.0.2.1"].map {
            Array($0.utf8)
        }
        var random = RandomSource(seed: 5)
        for _ in 0..<5_000 {
            let text = String(decoding: Self.mutate(corpus, &random), as: UTF8.self)
            guard let uri = try? ICEServerURI(parsing: text) else { continue }
            let again = try ICEServerURI(parsing: uri.description)
            #expect(again == uri)
        }
    }

    @Test func streamsOfNoiseStayBounded() {
        var random = RandomSource(seed: 6)
        for _ in 0..<2_000 {
            var framer = StreamFramer(Bool.random(using: &random) ? .turn : .lengthPrefixed)
            for _ in 0..<10 {
                framer.append(random.bytes(Int.random(in: 0...50, using: &random)))
                var count = 0
                while let message = try? framer.next() {
                    count += 1
                    #expect(message.count <= 65_555)
                    if count > 100 { break }
                }
                #expect(count <= 100)
                #expect(framer.pending <= 500)
            }
        }
    }
}
