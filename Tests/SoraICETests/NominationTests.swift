import SoraCrypto
import SoraEmulator
import SoraWire
import Testing

@testable import SoraICE

@Suite struct NominationTests {
    @Test func exactlyOneSideNominatesAndOnlyAPairThatWorks() {
        let (world, a, b) = ConnectTests.pair()
        var nominating: [SocketAddress] = []
        world.loses = {
            if let m = try? STUNMessage(parsing: $0.payload), m.nominates { nominating.append($0.source) }
            return false
        }
        world.run(for: .seconds(1))
        #expect(nominating == [a.sockets[SocketID(1)]?.address])
        #expect(b.agent.statistics.pairs.first?.isNominated == true)
    }

    @Test func aBetterPairThatIsSlowIsWaitedForBriefly() throws {
        // The first interface is preferred and 150 ms slower.
        let world = VirtualWorld()
        let a = world.addHost("a", role: .controlling, seed: 1)
        let b = world.addHost("b", role: .controlled, seed: 2)
        world.addSocket(1, of: a, at: "192.0.2.1", delay: .milliseconds(70))
        world.addSocket(2, of: a, at: "192.0.2.3", delay: .milliseconds(2))
        world.addSocket(1, of: b, at: "192.0.2.2", delay: .milliseconds(2))
        let start = world.now
        world.connect(a, b)
        world.run(for: .seconds(2))
        #expect(try #require(a.time(of: .connected)) - start < .milliseconds(10))
        #expect(a.agent.selectedPair?.local.socketAddress?.ip == .v4(0xC000_0201))
        #expect(b.agent.selectedPair?.remote.socketAddress?.ip == .v4(0xC000_0201))
    }

    @Test func aBetterPairThatNeverAnswersDelaysNominationByTheLimitOnly() throws {
        let world = VirtualWorld()
        let a = world.addHost("a", role: .controlling, seed: 1)
        let b = world.addHost("b", role: .controlled, seed: 2)
        world.addSocket(1, of: a, at: "192.0.2.1")
        world.addSocket(2, of: a, at: "192.0.2.3")
        world.addSocket(1, of: b, at: "192.0.2.2")
        world.loses = { $0.source.ip == .v4(0xC000_0201) || $0.destination.ip == .v4(0xC000_0201) }
        let start = world.now
        world.connect(a, b)
        world.run(for: .seconds(2))
        #expect(try #require(a.time(of: .connected)) - start == .milliseconds(20))
        #expect(a.agent.statistics.pairs.contains { $0.isNominated && $0.isSelected })
        #expect(b.agent.selectedPair?.remote.socketAddress?.ip == .v4(0xC000_0203))
        #expect(try #require(b.selections.last).time - start <= .milliseconds(250))
    }

    /// A peer that puts USE-CANDIDATE into every check (RFC 5245, 8.1.1.2).
    @Test(arguments: [ICEAgent.Mode.lite, .full]) func anAggressivePeerEndsAtTheBestPair(_ mode: ICEAgent.Mode) throws {
        var configuration = ICEConfiguration()
        configuration.mode = mode
        let agent = ICEAgent(configuration: configuration, role: .controlled, random: RandomSource(seed: 1), now: .zero)
        agent.addLocalSocket(SocketID(1), address: SocketAddress(.v4(0xC000_0202), port: 1), now: .zero)
        let theirs = ICECredentials(usernameFragment: "peer", password: "0123456789012345678901")
        agent.setRemote(credentials: theirs, isLite: false, now: .zero)
        let key = HMACKey(.sha1, key: Array(agent.localCredentials.password.utf8))
        var now = Instant.zero
        func check(_ port: UInt16, priority: UInt32) {
            let request = STUNMessage(
                .request, .binding, transactionID: STUNTransactionID(high: UInt32(port), low: UInt64(now.nanoseconds)),
                attributes: [
                    .username(Array("\(agent.localCredentials.usernameFragment):peer".utf8)), .priority(priority),
                    .iceControlling(tieBreaker: 5), .useCandidate,
                ])
            let remote = SocketAddress(.v4(0xC000_0201), port: port)
            _ = agent.handle(
                Datagram(socket: SocketID(1), remote: remote, payload: request.serialized(integrity: .sha1(key))),
                now: now)
            // Answer what it asks back.
            while let output = agent.poll() {
                guard case .transmit(let datagram) = output, let message = try? STUNMessage(parsing: datagram.payload),
                    message.messageClass == .request
                else { continue }
                let answer = STUNMessage(
                    .success, .binding, transactionID: message.transactionID,
                    attributes: [.xorMappedAddress(SocketAddress(.v4(0xC000_0202), port: 1))])
                let signed = answer.serialized(integrity: .sha1(HMACKey(.sha1, key: Array(theirs.password.utf8))))
                _ = agent.handle(Datagram(socket: SocketID(1), remote: datagram.remote, payload: signed), now: now)
            }
        }
        check(1_000, priority: 100)
        #expect(agent.selectedPair?.remote.address.port == 1_000)
        now += .milliseconds(50)
        check(3_000, priority: 300)
        now += .milliseconds(50)
        check(2_000, priority: 200)
        #expect(agent.selectedPair?.remote.address.port == 3_000)
        // Keep-alives by all pairs change nothing.
        for _ in 0..<20 {
            now += .seconds(1)
            check(1_000, priority: 100)
            check(2_000, priority: 200)
            check(3_000, priority: 300)
            #expect(agent.selectedPair?.remote.address.port == 3_000)
        }
        // It moves to a pair of lower priority, later.
        now += .seconds(1)
        check(500, priority: 50)
        #expect(agent.selectedPair?.remote.address.port == 500)
        // And back to one that was nominated before, once the newer one is silent.
        for _ in 0..<4 {
            now += .seconds(1)
            check(3_000, priority: 300)
        }
        #expect(agent.selectedPair?.remote.address.port == 3_000)
    }

    @Test func statisticsCountWhatHappened() throws {
        let (world, a, b) = ConnectTests.pair()
        world.run(for: .seconds(1))
        for _ in 0..<10 { #expect(world.send(Array(repeating: 128, count: 100), from: a)) }
        world.run(for: .seconds(1))
        let sender = try #require(a.agent.statistics.pairs.first)
        let receiver = try #require(b.agent.statistics.pairs.first)
        #expect(sender.counters.packetsSent == 10 && sender.counters.bytesSent == 1_000)
        #expect(receiver.counters.packetsReceived == 10 && receiver.counters.bytesReceived == 1_000)
        #expect(sender.counters.currentRoundTripTime == .milliseconds(20))
        #expect(sender.counters.requestsSent >= 2 && sender.counters.responsesReceived >= 2)
        #expect(receiver.counters.requestsReceived == sender.counters.requestsSent)
        #expect(receiver.counters.responsesSent == sender.counters.responsesReceived)
        #expect(sender.state == "succeeded" && sender.isSelected && sender.isNominated)
    }
}
