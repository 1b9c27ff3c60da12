import SoraCrypto
import SoraEmulator
import SoraWire
import Testing

@testable import SoraICE

/// TURN over connections, and TCP candidates.
@Suite struct StreamTests {
    /// Brings a host's streams to a TURN server, 10 ms each way, in pieces of `chunk` bytes.
    final class Connections {
        unowned let world: VirtualWorld
        unowned let host: VirtualHost
        let server: FakeTURNServer
        var opened: [ICEStreamRequest] = []
        var closed: [ICEStreamID] = []
        var framers: [ICEStreamID: StreamFramer] = [:]
        /// Reasons for which addresses refuse connections.
        var refused: [SocketAddress: String] = [:]
        var chunk = Int.max

        init(_ world: VirtualWorld, _ host: VirtualHost, _ server: FakeTURNServer) {
            self.world = world
            self.host = host
            self.server = server
            world.companions.append(self)
            host.onStream = { [unowned self] output, _ in handle(output) }
            server.writeStream = { [unowned self] id, bytes in give(id, bytes) }
        }

        private func give(_ id: ICEStreamID, _ bytes: [UInt8]) {
            for start in stride(from: 0, to: bytes.count, by: min(chunk, max(bytes.count, 1))) {
                let piece = Array(bytes[start..<min(bytes.count, start + min(chunk, bytes.count))])
                report(id, .data(piece), after: .milliseconds(10))
            }
        }

        func report(_ id: ICEStreamID, _ event: ICEStreamEvent, after delay: Duration) {
            world.after(delay) { [unowned self] in
                guard !closed.contains(id) else { return }
                for data in host.agent.handleStream(id, event, now: world.now) {
                    host.received.append((world.now, data))
                }
                world.drain(host)
            }
        }

        private func handle(_ output: ICEAgent.Output) {
            switch output {
            case .openStream(let request):
                opened.append(request)
                if let reason = refused[request.address] {
                    report(request.id, .closed(reason: reason), after: .milliseconds(20))
                } else if request.address == server.address {
                    framers[request.id] = StreamFramer(.turn)
                    report(
                        request.id, .connected(local: SocketAddress(.v4(0xC000_0201), port: 40_000)),
                        after: .milliseconds(20))
                }
            case .writeStream(let id, let bytes):
                world.after(.milliseconds(10)) { [unowned self] in
                    framers[id]?.append(bytes)
                    while let packet = try? framers[id]?.next() {
                        // The framer cuts padding off, which the server wants to see.
                        let padded =
                            TURNChannelData.isChannelData(packet)
                            ? packet + Array(repeating: 0, count: -packet.count & 3) : packet
                        for answer in server.receiveStream(padded, from: id, now: world.now) {
                            world.network.send(
                                answer.payload, from: answer.source, to: answer.destination, now: world.now)
                        }
                    }
                }
            case .closeStream(let id): closed.append(id)
            default: break
            }
        }
    }

    static func client(_ urls: [String], policy: ICETransportPolicy = .relay) throws
        -> (VirtualWorld, VirtualHost, VirtualHost, FakeTURNServer, Connections)
    {
        let world = VirtualWorld()
        let turn = FakeTURNServer("198.51.100.5")
        world.addServer(turn)
        let servers = try urls.map { try TURNTests.server($0) }
        let client = world.addHost("client", role: .controlling, seed: 11) {
            $0.servers = servers
            $0.transportPolicy = policy
        }
        client.resolver = { _ in [.v4(0xC633_6405)] }
        let connections = Connections(world, client, turn)
        let peer = world.addHost("peer", role: .controlled, seed: 22) { $0.mode = .lite }
        world.addSocket(1, of: client, at: "192.0.2.1")
        world.addSocket(1, of: peer, at: "192.0.2.2")
        world.connect(client, peer)
        return (world, client, peer, turn, connections)
    }

    @Test(arguments: [Int.max, 1, 7, 1_000]) func turnOverTCPCarriesDataWhateverTheReadsAre(_ chunk: Int) throws {
        let (world, client, peer, turn, connections) = try Self.client(["turn:198.51.100.5?transport=tcp"])
        connections.chunk = chunk
        world.run(for: .seconds(2))
        #expect(client.agent.state == .completed)
        #expect(connections.opened.map(\.tlsServerName) == [nil])
        for size in [1, 2, 3, 4, 5, 100, 1_200] {
            _ = world.send(Array(repeating: 128, count: size), from: client)
            _ = world.send(Array(repeating: 129, count: size), from: peer)
            world.run(for: .milliseconds(100))
        }
        #expect(peer.received.map(\.payload.count) == [1, 2, 3, 4, 5, 100, 1_200])
        #expect(client.received.map(\.payload.count) == [1, 2, 3, 4, 5, 100, 1_200])
        #expect(turn.violations.isEmpty)
        // An hour: refreshes go over the connection, each request once.
        world.run(for: .seconds(3_600))
        #expect(client.agent.state == .completed)
        #expect(turn.violations.isEmpty)
    }

    @Test func turnOverTLSAsksForTheServersName() throws {
        let (world, client, _, _, connections) = try Self.client(["turns:relay.example.com:3478?transport=tcp"])
        world.run(for: .seconds(2))
        #expect(client.agent.state == .completed)
        #expect(connections.opened.map(\.tlsServerName) == ["relay.example.com"])
    }

    // ICE12
    @Test func aRefusedCertificateDisablesThatServerOnly() throws {
        let urls = ["turns:relay.example.com:5349", "turn:198.51.100.5?transport=tcp"]
        let (world, client, _, turn, connections) = try Self.client(urls)
        connections.refused[SocketAddress(turn.address.ip, port: 5_349)] = "certificate is for another name"
        world.run(for: .seconds(2))
        #expect(client.agent.state == .completed)
        #expect(client.agent.serverReports.contains { $0.status == .failed(reason: "certificate is for another name") })
    }

    // ICE12
    @Test func withNoServerLeftTheAttemptEndsWithTheReason() throws {
        let (world, client, _, turn, connections) = try Self.client(["turns:relay.example.com"])
        connections.refused[SocketAddress(turn.address.ip, port: 5_349)] = "unknown CA"
        let start = world.now
        world.run(for: .seconds(60))
        #expect(client.agent.state == .failed)
        #expect(try #require(client.time(of: .failed)) - start < .seconds(1))
        #expect(client.agent.serverReports.map(\.status) == [.failed(reason: "unknown CA")])
        #expect(client.agent.failureReason?.contains("unknown CA") == true)
    }

    @Test func aNameWithSeveralAddressesIsTriedAtEach() throws {
        let world = VirtualWorld()
        let turn = FakeTURNServer("198.51.100.5")
        world.addServer(turn)
        let server = try TURNTests.server("turn:relay.example.com?transport=tcp")
        let client = world.addHost("client", role: .controlling, seed: 11) { $0.servers = [server] }
        client.resolver = { _ in [.v4(0xC633_6401), .v4(0xC633_6402), .v4(0xC633_6405)] }
        let connections = Connections(world, client, turn)
        for last in 1...2 as ClosedRange<UInt32> {
            connections.refused[SocketAddress(.v4(0xC633_6400 + last), port: 3_478)] = "refused"
        }
        world.addSocket(1, of: client, at: "192.0.2.1")
        world.run(for: .seconds(2))
        #expect(client.candidates.map(\.type) == [.host, .relayed])
        #expect(connections.opened.count == 3)
    }

    @Test func aLostConnectionIsMadeAnewAndDataGoesOn() throws {
        let (world, client, peer, _, connections) = try Self.client(["turn:198.51.100.5?transport=tcp"])
        world.run(for: .seconds(2))
        let first = try #require(connections.opened.first)
        connections.report(first.id, .closed(reason: "reset by peer"), after: .zero)
        world.run(for: .milliseconds(10))
        #expect(client.agent.state == .disconnected)
        world.run(for: .seconds(3))
        #expect(client.agent.state == .completed)
        #expect(connections.opened.count == 2)
        _ = world.send([128], from: client)
        world.run(for: .seconds(1))
        #expect(peer.received.count == 1)
    }

    // ICE18
    @Test func aStreamOutOfStepClosesThatAllocation() throws {
        let (world, client, _, _, connections) = try Self.client(["turn:198.51.100.5?transport=tcp"])
        world.run(for: .seconds(2))
        let first = try #require(connections.opened.first)
        connections.report(first.id, .data([0x77, 1, 2, 3]), after: .zero)
        world.run(for: .milliseconds(10))
        #expect(connections.closed == [first.id])
        #expect(client.agent.selectedPair == nil)
        world.run(for: .seconds(3))
        #expect(client.agent.state == .completed)
    }

    @Test func udpIsPreferredToTCPAndTCPToTLS() throws {
        let (world, client, _, _, _) = try Self.client([
            "turns:relay.example.com:3478", "turn:198.51.100.5?transport=tcp", "turn:198.51.100.5",
        ])
        world.run(for: .seconds(2))
        let relays = client.candidates.sorted { $0.priority > $1.priority }
        #expect(relays.count == 3)
        let transports = client.agent.attempts.sorted { ($0.candidate?.priority ?? 0) > ($1.candidate?.priority ?? 0) }
        #expect(transports.map(\.report.server.transport) == [.udp, .tcp, .tls])
        #expect(client.agent.state == .completed)
    }

    @Test func closingClosesConnectionsAndReleasesTheRelay() throws {
        let (world, client, _, turn, connections) = try Self.client(["turn:198.51.100.5?transport=tcp"])
        world.run(for: .seconds(2))
        client.agent.close(now: world.now)
        world.drain(client)
        world.run(for: .seconds(1))
        #expect(turn.allocations.isEmpty)
        #expect(connections.closed == connections.opened.map(\.id))
        #expect(client.agent.handleStream(ICEStreamID(1), .data([1]), now: world.now).isEmpty)
    }

    @Test func aConnectionToAPassiveCandidateCarriesChecksAndData() throws {
        // A lite peer without UDP: its TCP listener is a stream that the test joins to its agent by hand.
        var configuration = ICEConfiguration()
        configuration.usesTCPCandidates = true
        let client = ICEAgent(
            configuration: configuration, role: .controlling, random: RandomSource(seed: 1), now: .zero)
        let theirs = ICECredentials(usernameFragment: "peer", password: "0123456789012345678901")
        client.addLocalSocket(SocketID(1), address: SocketAddress(.v4(0xC000_0201), port: 1), now: .zero)
        client.setRemote(credentials: theirs, isLite: true, now: .zero)
        client.addRemoteCandidate(
            try ICECandidate(parsing: "candidate:1 1 tcp 1518280447 192.0.2.2 443 typ host tcptype passive"), now: .zero
        )
        var opened: ICEStreamRequest?
        var lines: [ICECandidate] = []
        while let output = client.poll() {
            if case .openStream(let request) = output { opened = request }
            if case .localCandidate(let candidate) = output { lines.append(candidate) }
        }
        #expect(lines.contains { $0.tcpType == .active && $0.address.port == 9 })
        let request = try #require(opened)
        #expect(request.address == SocketAddress("192.0.2.2", port: 443))
        var now = Instant.zero + .milliseconds(20)
        #expect(
            client.handleStream(request.id, .connected(local: SocketAddress(.v4(0xC000_0201), port: 999)), now: now)
                .isEmpty)
        let key = STUNMessage.Integrity.sha1(HMACKey(.sha1, key: Array(theirs.password.utf8)))
        var framer = StreamFramer(.lengthPrefixed)
        func answerChecks() throws {
            while let output = client.poll() {
                guard case .writeStream(let id, let bytes) = output, id == request.id else { continue }
                framer.append(bytes)
            }
            while let packet = try framer.next() {
                let message = try STUNMessage(parsing: packet)
                #expect(message.isAuthentic(key))
                let answer = STUNMessage(
                    .success, .binding, transactionID: message.transactionID,
                    attributes: [.xorMappedAddress(SocketAddress(.v4(0xC000_0201), port: 999))])
                let framed = StreamFramer.frame(answer.serialized(integrity: key, fingerprint: true)) ?? []
                #expect(client.handleStream(request.id, .data(framed), now: now).isEmpty)
            }
        }
        for _ in 0..<3 {
            now += .milliseconds(20)
            try answerChecks()
        }
        #expect(client.state == .completed)
        #expect(client.datagram(for: [128, 1]) == nil)
        #expect(client.poll() == .writeStream(request.id, [0, 2, 128, 1]))
        #expect(client.handleStream(request.id, .data([0, 3, 129, 1]), now: now).isEmpty)
        #expect(client.handleStream(request.id, .data([2, 0, 1, 130]), now: now) == [[129, 1, 2], [130]])
        _ = client.handleStream(request.id, .closed(reason: "gone"), now: now)
        #expect(client.state == .disconnected)
    }
}

extension StreamTests {
    @Test func aNewInterfaceBringsALostConnectionBackAtOnce() throws {
        let (world, client, peer, turn, connections) = try Self.client(["turn:198.51.100.5?transport=tcp"])
        world.run(for: .seconds(5))
        // The interface goes down: the connection ends, and new ones are refused until another is up.
        connections.refused[turn.address] = "network is unreachable"
        client.agent.removeLocalSocket(SocketID(1), now: world.now)
        connections.report(try #require(connections.opened.first).id, .closed(reason: "network is down"), after: .zero)
        world.run(for: .seconds(8))
        #expect(client.agent.state == .disconnected)
        connections.refused = [:]
        let start = world.now
        world.addSocket(2, of: client, at: "203.0.113.50")
        world.run(
            until: world.now + .seconds(5), while: { !peer.agent.hasSelectedPair || client.agent.state != .completed })
        #expect(world.now - start <= .milliseconds(300))
        _ = world.send([128], from: client)
        world.run(for: .seconds(1))
        #expect(peer.received.count == 1)
    }
}
