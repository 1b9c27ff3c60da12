import SoraEmulator
import SoraWire
import Testing

@testable import SoraICE

/// ICE5
@Suite struct ConsentTests {
    static func isRequest(_ packet: EmulatedNetwork.Packet) -> Bool {
        (try? STUNMessage(parsing: packet.payload))?.messageClass == .request
    }

    @Test func checksComeEveryFiveSecondsWithinAFifth() {
        let (world, client, server) = ConnectTests.client()
        world.connect(client, server)
        world.run(for: .seconds(1))
        var times: [Instant] = []
        world.loses = {
            if Self.isRequest($0) { times.append(world.now) }
            return false
        }
        world.run(for: .seconds(3_600))
        let gaps = zip(times.dropFirst(), times).map { $0 - $1 }
        #expect(gaps.count > 600)
        #expect(gaps.allSatisfy { $0 >= .seconds(4) && $0 <= .seconds(6) })
        #expect(Set(gaps).count > 100)
        #expect(client.agent.state == .completed)
        #expect(server.agent.state == .completed)
    }

    @Test func everySecondCheckLostForAnHourChangesNothing() {
        let (world, a, b) = ConnectTests.pair()
        world.run(for: .seconds(1))
        let before = a.states.count + b.states.count
        var count: [SocketAddress: Int] = [:]
        world.loses = { packet in
            guard Self.isRequest(packet) else { return false }
            count[packet.source, default: 0] += 1
            return count[packet.source, default: 0] % 2 == 0
        }
        world.run(for: .seconds(3_600))
        #expect(a.states.count + b.states.count == before)
    }

    @Test func aSilenceOf26SecondsIsSurvived() throws {
        let (world, a, _) = ConnectTests.pair()
        world.run(for: .seconds(1))
        let start = world.now
        world.loses = { _ in true }
        world.run(for: .seconds(26))
        #expect(a.agent.state == .disconnected)
        world.loses = nil
        world.run(for: .seconds(10))
        #expect(a.agent.state == .completed)
        #expect(a.states.filter { $0.time > start }.map(\.state) == [.disconnected, .connected, .completed])
        #expect(a.agent.datagram(for: [1]) != nil)
    }

    @Test func endlessSilenceFailsAtExpiryNotEarlier() throws {
        let (world, a, b) = ConnectTests.pair()
        var lastAnswer = world.now
        world.loses = {
            if let m = try? STUNMessage(parsing: $0.payload), m.messageClass == .success,
                $0.source == b.sockets[SocketID(1)]?.address
            {
                lastAnswer = world.now + .milliseconds(10)
            }
            return false
        }
        world.run(for: .seconds(17))
        world.loses = { _ in true }
        let cut = world.now
        world.run(for: .seconds(100))
        let failed = try #require(a.time(of: .failed))
        #expect(failed - lastAnswer == .seconds(30))
        #expect(failed > cut)
        #expect(a.agent.datagram(for: [1]) == nil)
        let sent = a.sentDatagrams
        world.run(for: .seconds(100))
        #expect(a.sentDatagrams == sent)
        #expect(!a.states.contains { $0.state == .closed })
    }

    @Test func answersOfAStrangerAreNoConsent() throws {
        let (world, a, _) = ConnectTests.pair()
        world.run(for: .seconds(1))
        // Every request is answered, unsigned.
        world.loses = { packet in
            if let message = try? STUNMessage(parsing: packet.payload), message.messageClass == .request {
                let answer = STUNMessage(
                    .success, .binding, transactionID: message.transactionID,
                    attributes: [.xorMappedAddress(packet.source)])
                world.network.send(
                    answer.serialized(fingerprint: true), from: packet.destination, to: packet.source, now: world.now)
            }
            return true
        }
        world.run(for: .seconds(40))
        #expect(a.agent.state == .failed)
    }

    @Test func aLiteServerNoticesThatItsPeerIsGone() throws {
        let (world, client, server) = ConnectTests.client()
        world.connect(client, server)
        world.run(for: .seconds(20))
        var heard = world.now
        world.loses = {
            if $0.source == client.sockets[SocketID(1)]?.address { heard = world.now + .milliseconds(10) }
            return false
        }
        world.run(for: .seconds(20))
        client.agent.close(now: world.now)
        world.run(for: .seconds(60))
        let disconnected = try #require(server.time(of: .disconnected))
        let failed = try #require(server.time(of: .failed))
        #expect(disconnected - heard == .milliseconds(7_500))
        #expect(failed - heard == .milliseconds(17_500))
    }

    @Test func authenticTrafficKeepsALiteServerContent() {
        let (world, client, server) = ConnectTests.client()
        world.connect(client, server)
        world.run(for: .seconds(2))
        client.agent.close(now: world.now)
        for _ in 0..<60 {
            world.run(for: .seconds(1))
            server.agent.noteAuthenticTraffic(now: world.now)
        }
        #expect(server.agent.state == .completed)
    }

    @Test func nextTimeoutAlwaysMakesProgress() {
        let (world, a, _) = ConnectTests.pair()
        world.run(for: .seconds(1))
        world.loses = { _ in true }
        var now = world.now
        var last = a.agent.nextTimeout
        var repeats = 0
        while let timeout = a.agent.nextTimeout {
            now = max(now, timeout)
            a.agent.handleTimeout(now: now)
            while a.agent.poll() != nil {}
            repeats = a.agent.nextTimeout == last ? repeats + 1 : 0
            last = a.agent.nextTimeout
            #expect(repeats < 3)
            if repeats >= 3 { break }
        }
        #expect(a.agent.state == .failed)
    }
}
