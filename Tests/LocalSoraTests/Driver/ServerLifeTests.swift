import Foundation
import LocalSora
import SoraMessages
import SoraNetwork
import SoraWire
import Testing

@Suite("Server: start and stop", .serialized) struct ServerLifeTests {
    private static func count(_ path: String) -> Int {
        (try? FileManager.default.contentsOfDirectory(atPath: path).count) ?? 0
    }

    @Test func startsInUnder50Milliseconds() async throws {
        // The machine may be busy with other tests: the best of fifty.
        var best = Duration.seconds(10)
        for _ in 0..<50 where best >= .milliseconds(50) {
            let clock = ContinuousClock()
            let start = clock.now
            let server = try await SoraServer.start()
            best = min(best, clock.now - start)
            await server.stop()
        }
        #expect(best < .milliseconds(50))
    }

    /// MEM (pitfalls 12): descriptors and threads return to base.
    @Test func hundredStartsAndStopsLeaveNothingBehind() async throws {
        try await withServer { _ in }
        let (descriptors, threads) = (Self.count("/proc/self/fd"), Self.count("/proc/self/task"))
        for round in 0..<100 {
            try await withServer { configuration in
                configuration.eventLoops = 1 + round % 2
                configuration.apiPort = 0
            } _: { server in
                #expect(server.port > 0)
                if round % 10 == 0 {
                    try await withClient { client in
                        try await client.open(server.signalingURL)
                    }
                }
            }
        }
        // Other suites run beside this one and have a few of their own.
        #expect(Self.count("/proc/self/fd") < descriptors + 60)
        #expect(Self.count("/proc/self/task") < threads + 40)
    }

    @Test func stopEndsConnectionsAndRefusesNewOnes() async throws {
        let server = try await SoraServer.start()
        let client = try WireClient()
        defer { client.close() }
        try await client.join(server.signalingURL, ChannelHarness.messaging())
        #expect(await client.isUp())
        await server.stop()
        #expect(await client.wait { $0.isGone })
        let late = try WireClient()
        defer { late.close() }
        await #expect(throws: (any Error).self) { try await late.dial(port: server.port) }
        await server.stop()
    }

    @Test func twoServersHaveTheirOwnPorts() async throws {
        try await withServer { first in
            try await withServer { second in
                #expect(first.port != second.port)
            }
        }
    }

    @Test func takenPortIsNamedInTheError() async throws {
        try await withServer { first in
            var configuration = ServerConfiguration()
            configuration.port = first.port
            await #expect(throws: ServerError.self) { try await SoraServer.start(configuration) }
        }
    }

    @Test func wrongAddressesAndURLsAreRefused() async throws {
        var configuration = ServerConfiguration()
        configuration.host = "example.com"
        await #expect(throws: ServerError.invalidAddress("example.com")) { try await SoraServer.start(configuration) }
        configuration = ServerConfiguration()
        configuration.authWebhook = "ftp://127.0.0.1/"
        await #expect(throws: ServerError.invalidURL("ftp://127.0.0.1/")) { try await SoraServer.start(configuration) }
        configuration = ServerConfiguration()
        configuration.transportSecurity = .files(certificate: "/nowhere.pem", key: "/nowhere.key")
        await #expect(throws: ServerError.certificate("'/nowhere.pem' cannot be read")) {
            try await SoraServer.start(configuration)
        }
    }

    @Test func seedRepeatsIdentifiers() async throws {
        var ids: [String] = []
        for _ in 0..<2 {
            try await withServer {
                $0.seed = 42
            } _: { server in
                try await withClient { client in
                    try await client.join(server.signalingURL, ChannelHarness.messaging())
                    ids.append(await client.message("offer")?["connection_id"]?.stringValue ?? "")
                }
            }
        }
        #expect(ids[0].count == 26)
        #expect(ids[0] == ids[1])
    }

    // MARK: Addresses

    @Test func wildcardHostAdvertisesEveryAddressOfItsFamily() async throws {
        try await withServer {
            $0.host = "0.0.0.0"
        } _: { server in
            try await withClient { client in
                try await client.join(server.signalingURL, ChannelHarness.messaging())
                let sdp = await client.message("offer")?["sdp"]?.stringValue ?? ""
                let expected = NetworkInterfaces.current(includesLoopback: true).map(\.address)
                    .filter { $0.isV4 && !$0.isLinkLocal }
                for address in expected { #expect(sdp.contains(" \(address) "), "\(address)") }
                #expect(!sdp.contains(" 0.0.0.0 \(server.port)"))
                #expect(await client.isUp())
            }
        }
    }

    @Test func choosesReachableAddresses() throws {
        let all = try ["127.0.0.1", "10.0.0.5", "169.254.1.1", "fe80::1", "2001:db8::1", "::1", "10.0.0.5"].map {
            try #require(IPAddress($0))
        }
        #expect(SoraServer.reachableAddresses(all, like: .anyV4).map(\.description) == ["10.0.0.5", "127.0.0.1"])
        #expect(
            SoraServer.reachableAddresses(all, like: .anyV6).map(\.description)
                == ["10.0.0.5", "2001:db8::1", "127.0.0.1", "::1"])
        #expect(SoraServer.reachableAddresses([], like: .anyV4) == [.loopbackV4])
    }

    // MARK: Several loops

    @Test func channelsSpreadOverLoopsAndMembersMeet() async throws {
        try await withServer {
            $0.eventLoops = 3
        } _: { server in
            for channel in ["a", "b", "c", "d", "e"] {
                let first = try WireClient()
                let second = try WireClient()
                defer {
                    first.close()
                    second.close()
                }
                var connect = ChannelHarness.messaging([DataChannelDefinition(label: "#x", direction: .sendrecv)])
                connect.channelID = channel
                try await first.join(server.signalingURL, connect)
                #expect(await first.isUp())
                try await second.join(server.signalingURL, connect)
                #expect(await second.isUp())
                #expect(await server.connectionIDs(channelID: channel).count == 2)
                _ = await first.withPeer { $0.send(data: [1, 2, 3], label: "#x", now: $1) }
                #expect(await second.wait { $0.peer?.data("#x") == [[1, 2, 3]] })
            }
        }
    }
}
