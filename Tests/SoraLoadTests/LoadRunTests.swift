import LocalSora
import SoraLoad
import SoraLocking
import SoraMessages
import SoraNetwork
import SoraWire
import Testing

/// Against a server in this process.
@Suite(.serialized, .leavesNoObjects) struct LoadRunTests {
    private func load(
        _ configure: (inout ServerConfiguration) -> Void = { _ in }, _ change: (inout LoadPlan) -> Void,
        onSecond: @escaping @Sendable (LoadSecond) -> Void = { _ in }
    ) async throws -> (report: LoadReport, events: [ServerEvent]) {
        var configuration = ServerConfiguration()
        configure(&configuration)
        let server = try await SoraServer.start(configuration)
        var plan = LoadPlan(url: server.signalingURL)
        plan.duration = .seconds(1)
        change(&plan)
        let report = await (try LoadRun(plan)).run(onSecond: onSecond)
        let events = server.recordedEvents
        await server.stop()
        return (report, events)
    }

    @Test(.timeLimit(.minutes(2))) func messagesReachEverybodyElseInTheirChannel() async throws {
        let seconds = Locked<[LoadSecond]>([])
        let (report, events) = try await load {
            $0.maximumConnectionsPerChannel = 100
        } _: {
            $0.connections = 9
            $0.channels = 3
            $0.rampPerSecond = 100
            $0.duration = .milliseconds(1200)
            $0.traffic = .messages(perSecond: 20, size: 100)
        } onSecond: { second in
            seconds.withLock { $0.append(second) }
        }
        #expect(report.connected == 9)
        #expect(report.failures.isEmpty && report.lost == 0)
        #expect(report.connecting.count == 9)
        #expect((150...260).contains(report.traffic.sent), "\(report.traffic.sent)")
        #expect(report.expected == report.traffic.sent * 2)
        #expect(report.traffic.received == report.expected)
        #expect(report.missing == 0 && report.traffic.skipped == 0)
        #expect(report.traffic.latency.count == report.traffic.received)
        #expect(Set(events.filter { $0.kind == .joined }.map(\.channelID)) == ["load-0", "load-1", "load-2"])
        let told = seconds.withLock { $0 }
        #expect(told.first?.second == 1)
        #expect(told.contains { $0.connected == 9 && $0.traffic.received > 0 })
    }

    @Test(.timeLimit(.minutes(2))) func videoOfOnePublisherReachesTheViewers() async throws {
        let (report, _) = try await load { _ in
        } _: {
            $0.connections = 4
            $0.publishers = 1
            $0.traffic = .video(bitrate: 300_000)
        }
        #expect(report.connected == 4)
        #expect(report.traffic.sent > 20)
        #expect(report.expected == report.traffic.sent * 3)
        #expect(report.missing == 0, "\(report.traffic.received) of \(report.expected)")
        #expect(report.traffic.latency.count > 0)
    }

    @Test(.timeLimit(.minutes(2))) func lossIsCounted() async throws {
        var bad = Fault.NetworkConditions()
        bad.loss = 0.3
        let fault = Fault(.network(upload: bad, download: .init()), times: 1)
        let (report, _) = try await load {
            $0.faults = [fault]
        } _: {
            $0.connections = 3
            $0.isUnreliable = true
            $0.duration = .seconds(2)
            $0.traffic = .messages(perSecond: 50, size: 100)
        }
        #expect(report.connected == 3)
        #expect(report.missing > 20, "\(report.missing)")
        #expect(report.missing < report.expected / 3)
    }

    @Test(.timeLimit(.minutes(2))) func refusalsAreCountedByReason() async throws {
        let (report, _) = try await load {
            $0.maximumConnectionsPerChannel = 2
        } _: {
            $0.connections = 5
            $0.rampPerSecond = 20
            $0.traffic = .none
            $0.duration = .milliseconds(100)
        }
        #expect(report.connected == 2)
        #expect(report.failures.values.reduce(0, +) == 3)
        #expect(report.failures.keys.allSatisfy { $0.contains("4490 TOO-MANY-CONNECTIONS") }, "\(report.failures)")
    }

    @Test(.timeLimit(.minutes(2))) func followsRedirectsAndSpeaksTLSWithMetadata() async throws {
        var configuration = ServerConfiguration()
        configuration.transportSecurity = .selfSigned()
        configuration.tokenSecret = "secret"
        let target = try await SoraServer.start(configuration)
        configuration.redirectLocation = target.signalingURL
        let front = try await SoraServer.start(configuration)
        var plan = LoadPlan(url: front.signalingURL)
        plan.trust = .anything
        plan.connections = 2
        plan.duration = .milliseconds(200)
        var report = await (try LoadRun(plan)).run()
        #expect(report.connected == 0)
        #expect(report.failures.keys.allSatisfy { $0.contains("ACCESS-TOKEN-REQUIRED") }, "\(report.failures)")
        // {"alg":"HS256"}.{} signed with "secret".
        plan.metadata = ["access_token": "eyJhbGciOiJIUzI1NiJ9.e30.XmNK3GpH3Ys_7wsYBfq4C3M6goz71I7dTgUkuIa5lyQ"]
        report = await (try LoadRun(plan)).run()
        #expect(report.connected == 2, "\(report.failures)")
        await front.stop()
        await target.stop()
    }

    @Test(.timeLimit(.minutes(1))) func cancellingEndsWithWhatThereWas() async throws {
        let server = try await SoraServer.start()
        var plan = LoadPlan(url: server.signalingURL)
        plan.connections = 2
        plan.duration = .seconds(600)
        let run = try LoadRun(plan)
        let job = Task { await run.run() }
        #expect(await server.waitForEvent(.messageRelayed, count: 3, within: .seconds(30)) != nil)
        job.cancel()
        let report = await job.value
        #expect(report.connected == 2)
        #expect(report.traffic.received > 0)
        await server.stop()
    }
}
