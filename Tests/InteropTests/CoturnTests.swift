import Foundation
import Glibc
import SoraICE
import SoraWire
import TestSupport
import Testing

/// Debian's coturn: what the virtual TURN server of the unit tests may have misunderstood.
@Suite(.serialized, .enabled(if: Interop.isEnabled, Interop.reason))
struct CoturnTests {
    /// A relay-only client (0) and a lite server (1), connected through coturn.
    static func connect(_ coturn: Coturn, _ transport: String) throws -> LoopbackAgents {
        let agents = LoopbackAgents()
        let server = try ICEServer(
            url: "turn:127.0.0.1:\(coturn.port)?transport=\(transport)", username: "user", credential: "pass")
        agents.add(.controlling) {
            $0.servers = [server]
            $0.transportPolicy = .relay
        }
        agents.add(.controlled) { $0.mode = .lite }
        agents.join()
        agents.run(for: .seconds(5)) { agents.hosts.allSatisfy { $0.agent.state == .completed } }
        try #require(agents.hosts.allSatisfy { $0.agent.state == .completed })
        return agents
    }

    @Test(arguments: ["udp", "tcp"]) func dataPassesWhileNoncesGoStaleAndLifetimesEnd(_ transport: String) throws {
        // Allocations of four seconds, nonces of two: refreshed every two seconds with a nonce that is stale each time.
        let coturn = try Coturn(
            port: transport == "udp" ? 34_781 : 34_782, ["--stale-nonce=2", "--max-allocate-lifetime=4"])
        let agents = try Self.connect(coturn, transport)
        for round in 0..<100 {
            agents.send(Array(repeating: 128, count: round * 10 + 1), from: 0)
            agents.send(Array(repeating: 129, count: round * 10 + 1), from: 1)
            agents.run(for: .milliseconds(100))
        }
        agents.run(for: .milliseconds(200))
        #expect(agents.hosts[0].received.map(\.count) == (0..<100).map { $0 * 10 + 1 })
        #expect(agents.hosts[1].received.map(\.count) == (0..<100).map { $0 * 10 + 1 })
        #expect(agents.hosts[0].agent.state == .completed)
        #expect(agents.hosts[0].agent.serverReports.map(\.status) == [.succeeded])
    }

    @Test func aWrongPasswordIsNamedAsTheReason() throws {
        let coturn = try Coturn(port: 34_783)
        let agents = LoopbackAgents()
        let server = try ICEServer(url: "turn:127.0.0.1:\(coturn.port)", username: "user", credential: "wrong")
        agents.add(.controlling) {
            $0.servers = [server]
            $0.transportPolicy = .relay
        }
        agents.add(.controlled) { $0.mode = .lite }
        agents.join()
        agents.run(for: .seconds(5)) { agents.hosts[0].agent.state == .failed }
        #expect(agents.hosts[0].agent.failureReason?.contains("401") == true)
    }

    @Test func aKilledServerEndsTheConnectionOverTCPAtOnceAndFailsInBoundedTime() throws {
        let coturn = try Coturn(port: 34_784)
        let agents = try Self.connect(coturn, "tcp")
        coturn.end()
        agents.run(for: .seconds(2)) { agents.hosts[0].agent.state == .disconnected }
        #expect(agents.hosts[0].agent.state == .disconnected)
        let start = LoopbackAgents.now
        agents.run(for: .seconds(35)) { agents.hosts[0].agent.state == .failed }
        #expect(agents.hosts[0].agent.state == .failed)
        #expect(LoopbackAgents.now - start <= .seconds(31))
    }
}
