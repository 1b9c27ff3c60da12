import SoraLocking
import SoraMessages
import SoraNetwork
import SoraSecureTransport
import SoraWire

/// Carries out a ``LoadPlan``: connects, sends, counts, leaves.
package final class LoadRun: Sendable {
    private let plan: LoadPlan
    private let loops: [EventLoop]
    private let certificate: DTLSCertificate
    private let tls: TLSContext?

    private struct State {
        var members: [Int: SoraMember] = [:]
        var failures: [String: Int] = [:]
        var connecting = LatencyHistogram()
        var lastConnect: Instant?
    }
    private let state = Locked(State())

    package init(_ plan: LoadPlan) throws {
        self.plan = plan
        certificate = try DTLSCertificate.selfSigned()
        tls = try TLSContext(client: TLSClientConfiguration(trust: plan.trust))
        loops = try (0..<max(1, plan.loops)).map { try EventLoop(name: "load-\($0)") }
    }

    /// Runs to the end, or until the task is cancelled; then the report tells what there was.
    package func run(onSecond: @escaping @Sendable (LoadSecond) -> Void = { _ in }) async -> LoadReport {
        defer { for loop in loops { loop.stop() } }
        let ticker = Task { await self.tick(onSecond) }
        let start = EventLoop.clock()
        await connectAll()
        var report = LoadReport()
        if !Task.isCancelled, await isReady() {
            await measure(&report)
        }
        ticker.cancel()
        await ticker.value
        await close(&report, start: start)
        return report
    }

    // MARK: Connecting

    private func connectAll() async {
        let clock = ContinuousClock()
        let start = clock.now
        await withTaskGroup(of: Void.self) { group in
            for index in 0..<plan.connections {
                group.addTask {
                    let due = start + .nanoseconds(Int64(Double(index) / self.plan.rampPerSecond * 1e9))
                    guard (try? await clock.sleep(until: due)) != nil else { return }
                    await self.connect(index)
                }
            }
        }
    }

    private func connect(_ index: Int) async {
        let isMedia = if case .video = plan.traffic { true } else { false }
        let member = SoraMember(
            loop: loops[index % loops.count], certificate: certificate, tls: tls,
            bufferSize: isMedia ? 1 << 20 : 256 << 10)
        let start = EventLoop.clock()
        do {
            try await member.join(plan.url, plan.connect(index), within: plan.connectTimeout)
            let now = EventLoop.clock()
            state.withLock { state in
                state.members[index] = member
                state.connecting.record(now - start)
                state.lastConnect = now
            }
        } catch {
            await member.leave()
            state.withLock { $0.failures["\(error)", default: 0] += 1 }
        }
    }

    /// Waits until everybody can hear everybody, at most ten seconds.
    private func isReady() async -> Bool {
        let clock = ContinuousClock()
        let end = clock.now + .seconds(10)
        let members = state.withLock { $0.members }
        while clock.now < end {
            var isReady = true
            for (index, member) in members where isReady {
                guard let node = await member.node else { continue }
                switch plan.traffic {
                case .none: break
                case .messages: isReady = await node.hasLoadChannel
                case .video: isReady = await node.inboundStreams >= publishers(heardBy: index, of: members)
                }
            }
            guard (try? await clock.sleep(for: .milliseconds(isReady ? 300 : 50))) != nil else { return false }
            if isReady { break }
        }
        return true
    }

    /// How many streams this member gets.
    private func publishers(heardBy index: Int, of members: [Int: SoraMember]) -> Int {
        // Who sends only does not hear.
        guard !plan.sends(index) || plan.publishers == nil else { return 0 }
        return members.keys.count {
            $0 != index && plan.sends($0) && plan.channelID(of: $0) == plan.channelID(of: index)
        }
    }

    // MARK: Traffic

    private func measure(_ report: inout LoadReport) async {
        let members = state.withLock { $0.members }
        if case .video = plan.traffic {
            // Streams are bound, key frames asked for, estimates made.
            await send(for: .seconds(1), members)
        }
        let before = await counts(members)
        report.seconds = await send(for: plan.duration, members).inSeconds
        let after = await counts(members)
        for (index, count) in after {
            let part = count - (before[index] ?? .init())
            report.traffic = report.traffic + part
            report.expected += part.sent * receivers(of: index, in: members)
        }
    }

    /// How many get what this member sends.
    private func receivers(of index: Int, in members: [Int: SoraMember]) -> Int {
        let all = members.keys.count { $0 != index && plan.channelID(of: $0) == plan.channelID(of: index) }
        guard case .video = plan.traffic, plan.publishers != nil else { return all }
        return members.keys.count {
            $0 != index && !plan.sends($0) && plan.channelID(of: $0) == plan.channelID(of: index)
        }
    }

    /// Sends for a while, and waits until what is under way has arrived. Returns how long was sent.
    @discardableResult
    private func send(for duration: Duration, _ members: [Int: SoraMember]) async -> Duration {
        let start = EventLoop.clock()
        let senders = members.filter { plan.sends($0.key) }.sorted { $0.key < $1.key }
        for (order, sender) in senders.enumerated() {
            guard let node = await sender.value.node else { continue }
            // Cameras and people do not all begin at the same moment.
            let share = Double(order) / Double(senders.count)
            switch plan.traffic {
            case .none: break
            case .video(let bitrate):
                let pause = 1 / Double(VP8Stream.framesPerSecond)
                await node.startSending(bitrate: bitrate, after: .nanoseconds(Int64(share * pause * 1e9)))
            case .messages(let rate, let size):
                let pause = min(1 / rate, duration.inSeconds)
                await node.startMessages(perSecond: rate, size: size, after: .nanoseconds(Int64(share * pause * 1e9)))
            }
        }
        // Cancelling ends the traffic, not the counting.
        try? await Task.sleep(for: duration)
        for member in members.values { await member.node?.stopSending() }
        let sent = EventLoop.clock() - start
        await Task { await self.drain(members) }.value
        return sent
    }

    /// Waits until nothing has arrived for half a second, at most twenty.
    private func drain(_ members: [Int: SoraMember]) async {
        var received = -1
        for _ in 0..<40 {
            let now = await counts(members).values.reduce(0) { $0 + $1.received }
            if now == received { return }
            received = now
            try? await Task.sleep(for: .milliseconds(500))
        }
    }

    private func counts(_ members: [Int: SoraMember]) async -> [Int: LoadNode.Count] {
        var counts: [Int: LoadNode.Count] = [:]
        for (index, member) in members { counts[index] = await member.node?.count }
        return counts
    }

    // MARK: Reporting

    private func tick(_ onSecond: @Sendable (LoadSecond) -> Void) async {
        var previous = LoadNode.Count()
        var second = 0
        while (try? await Task.sleep(for: .seconds(1))) != nil {
            second += 1
            let (members, failed) = state.withLock { ($0.members, $0.failures.values.reduce(0, +)) }
            let total = await counts(members).values.reduce(LoadNode.Count()) { $0 + $1 }
            var lost = 0
            for member in members.values where await member.end != nil { lost += 1 }
            onSecond(
                LoadSecond(
                    second: second, connected: members.count, failed: failed, lost: lost, traffic: total - previous))
            previous = total
        }
    }

    private func close(_ report: inout LoadReport, start: Instant) async {
        let end = state.withLock { $0 }
        report.connected = end.members.count
        report.failures = end.failures
        report.connecting = end.connecting
        report.rampSeconds = end.lastConnect.map { ($0 - start).inSeconds } ?? 0
        for member in end.members.values where await member.end != nil { report.lost += 1 }
        for member in end.members.values { await member.leave() }
    }
}
