import Foundation
import LocalSora
import SoraMessages
import SoraNetwork
import SoraWire
import TestSupport
import Testing

@Suite("Server: start and stop", .serialized, .leavesNoObjects) struct ServerLifeTests {
    private static func count(_ path: String) -> Int {
        (try? FileManager.default.contentsOfDirectory(atPath: path).count) ?? 0
    }

    @Test func startsInUnder50Milliseconds() async throws {
        let clock = ContinuousClock()
        let bound = Duration.milliseconds(50) * RealTime.factor
        // The machine may be busy with other things: the median of twenty, in one of three series.
        var medians: [Duration] = []
        while medians.count < 3, medians.last.map({ $0 >= bound }) ?? true {
            var durations: [Duration] = []
            for _ in 0..<20 {
                let start = clock.now
                let server = try await SoraServer.start()
                durations.append(clock.now - start)
                await server.stop()
            }
            medians.append(durations.sorted()[10])
        }
        #expect(medians.contains { $0 < bound }, "\(medians)")
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
        // Alone, a few: threads of the runtime's pool come and go. Beside other suites, which have some of their own,
        // less than one that is left behind by each round.
        let bound = LiveObjects.isAlone ? 5 : 95
        #expect(Self.count("/proc/self/fd") < descriptors + bound)
        #expect(Self.count("/proc/self/task") < threads + bound)
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

    // MARK: Cleanliness

    /// SRV3 (pitfalls 11): at whichever step clients vanish, everything is given back.
    @Test func vanishedClientsLeaveNothingInTheServer() async throws {
        var bad = Fault.NetworkConditions()
        bad.delay = .milliseconds(1)
        let faults = [
            Fault(.network(upload: bad, download: bad), clientID: "impaired"),
            Fault(.delayMessages(types: ["switched"], by: .milliseconds(1)), clientID: "impaired"),
        ]
        try await withServer {
            $0.faults = faults
            $0.answerTimeout = .seconds(2)
        } _: { server in
            let base = await server.liveObjects()
            for step in ["tcp", "websocket", "connect", "up", "impaired", "left"] {
                try await withClient { client in
                    switch step {
                    case "tcp": try await client.dial(port: server.port)
                    case "websocket": try await client.open(server.signalingURL)
                    case "connect":
                        try await client.open(server.signalingURL)
                        await client.send(ChannelHarness.messaging().json.text)
                        #expect(await client.message("offer") != nil)
                    default:
                        try await client.join(server.signalingURL, ChannelHarness.messaging { $0.clientID = step })
                        #expect(await client.isUp(), "\(step)")
                    }
                    if step == "left" {
                        _ = await client.withPeer { $0.send(["type": "disconnect"], label: "signaling", now: $1) }
                        #expect(await client.closed()?.code == 1000)
                    }
                    await client.hangUp()
                }
                var now = await server.liveObjects()
                for _ in 0..<300 where now != base {
                    // When the kernel tells the server that a client has vanished, nobody else hears of it: the tables
                    // can only be looked at again.
                    try await Task.sleep(for: .milliseconds(20))
                    now = await server.liveObjects()
                }
                #expect(now == base, "\(step)")
            }
        }
    }

    // MARK: Addresses

    @Test(.enabled(if: NetworkInterfaces.current(includesLoopback: true).contains { $0.address == .loopbackV6 }))
    func servesOverIPv6() async throws {
        try await withServer {
            $0.host = "::1"
        } _: { server in
            #expect(server.signalingURL == "ws://[::1]:\(server.port)/signaling")
            try await withClient { client in
                try await client.join(server.signalingURL, ChannelHarness.messaging(), host: .loopbackV6)
                #expect(await client.isUp())
            }
        }
    }

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
