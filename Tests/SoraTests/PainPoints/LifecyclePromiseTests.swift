import Foundation
import LocalSora
import SoraClient
import SoraLocking
import SoraNetwork
import SoraPeer
import SoraWire
import TestSupport
import Testing

@testable import Sora

/// What applications are promised about the beginning and the end of a connection.
@Suite(.serialized, .leavesNoObjects) struct LifecyclePromiseTests {
    /// The whole account of an attempt that failed.
    private func failure(_ text: String, closing: String? = nil) -> [String] {
        [
            "completion nil \(text)", "sora.onConnect nil \(text)", "channel.onConnect \(text)", "removed false",
            "sora.onDisconnect \(text) disconnected", "channel.onDisconnect \(closing ?? "error \(text)")",
        ]
    }

    // api 5.1
    @Test func aTimeoutEndsTheAttemptAndTellsEveryHandler() async {
        let stages: [(VirtualClient) -> Void] = [
            { _ in }, { client in client.act { $0.openLatestDial() } },
            { client in
                client.act { $0.openLatestDial() }
                client.text(VirtualClient.offer())
            },
        ]
        for stage in stages {
            let client = VirtualClient { $0.connectionTimeout = 12 }
            stage(client)
            client.advance(.milliseconds(11_999))
            #expect(client.channel.state == .connecting)
            _ = client.news()
            client.advance(.milliseconds(1))
            #expect(await client.hasEnded())
            #expect(client.news() == failure("Connection is timeout"))
            #expect(client.task.state == .completed)
        }
    }

    // api 5.2
    @Test func aHostThatDoesNotExistFailsAsAWebSocketError() async throws {
        var configuration = Configuration(
            url: try #require(URL(string: "ws://no-such-host.invalid/signaling")), channelId: "room", role: .recvonly)
        // The attempt fails because of the name, not because of its clock.
        configuration.connectionTimeout = 300
        let client = LiveClient(configuration)
        #expect(await client.journal.wait(seconds: 30) { $0.count == 3 })
        let (told, journal) = (["completion nil", "connect", "disconnect error"], client.journal.entries)
        #expect(journal.count == told.count)
        for (line, beginning) in zip(journal, told) { #expect(line.hasPrefix("\(beginning) WebSocket error (")) }
    }

    private struct OutOfPaper: LocalizedError, CustomStringConvertible {
        var description: String { "the printer is out of paper" }
        var errorDescription: String? { description }
    }

    // api 5.4
    @Test func anOfferThatCannotBeMadeIsReportedInTheEnginesWords() async throws {
        let errors: [(any Error, String)] = [
            (OutOfPaper(), "the printer is out of paper"),
            (PeerError.unusableDescription("no codec"), "\(PeerError.unusableDescription("no codec"))"),
        ]
        for (error, text) in errors {
            let loop = try EventLoop(name: "test")
            defer { loop.stop() }
            let sora = Sora(makeDriver: { settings, core in
                ClientDriver(loop: loop, settings: settings, core: core, capabilityOffer: { _ in throw error })
            })
            let journal = Journal()
            journal.record(sora.handlers, of: sora)
            let configuration = Stage.configuration(.sendonly)
            journal.record(configuration.mediaChannelHandlers)
            sora.connect(configuration: configuration) { _, error in
                journal.add("completion nil \(error?.localizedDescription ?? "nil")")
            }
            #expect(await journal.wait { $0.contains { $0.hasPrefix("channel.onDisconnect") } })
            #expect(journal.entries == ["added connecting"] + failure(text))
        }
    }

    // api 5.5
    @Test func everyPathThatFailsEndsTheAttempt() async {
        let paths: [(name: String, (VirtualClient) -> Void)] = [
            ("dial", { client in client.act { driver in driver.failDial("refused") } }),
            (
                "lost",
                { client in
                    client.act { $0.openLatestDial() }
                    client.act { $0.loseWebSocket() }
                }
            ),
            (
                "closed",
                { client in
                    client.act { $0.openLatestDial() }
                    client.act { $0.closeWebSocket(4401, "x") }
                }
            ),
            (
                "redirect",
                { client in
                    client.act { $0.openLatestDial() }
                    client.text(#"{"type":"redirect","location":"nowhere"}"#)
                }
            ),
            (
                "offer",
                { client in
                    client.act { $0.openLatestDial() }
                    client.text(#"{"type":"offer","client_id":"c","connection_id":"k","sdp":"nonsense"}"#)
                }
            ),
            (
                "peer",
                { client in
                    client.act { $0.openLatestDial() }
                    client.text(VirtualClient.offer())
                    client.peer(.ended(.iceFailed))
                }
            ),
            ("timeout", { $0.advance(.seconds(30)) }), ("cancel", { $0.task.cancel() }),
        ]
        let client = VirtualClient()
        for (index, (name, path)) in paths.enumerated() {
            if index > 0 { client.connect() }
            _ = client.news()
            path(client)
            #expect(await client.hasEnded(), "\(name)")
            #expect(client.news().filter { $0.hasPrefix("channel.onDisconnect error") }.count == 1 || name == "closed")
            // Nothing is held that a later disconnect would wait for.
            client.channel.disconnect(error: nil)
            client.advance(.seconds(3_600))
            #expect(client.news() == [] && client.channel.state == .disconnected, "\(name)")
            #expect(client.sora.mediaChannels.isEmpty && client.task.state != .connecting, "\(name)")
        }
        client.connect()
        client.establish()
        #expect(client.channel.state == .connected)
        client.channel.disconnect(error: nil)
        #expect(await client.hasEnded())
    }

    // api 5.6
    @Test(.needsCodecs, arguments: [false, true]) func theEndIsToldWhenTheServerKnowsNothingMore(isSwitched: Bool)
        async throws
    {
        try await withServer { server in
            var configuration = LiveClient.messaging(server)
            configuration.clientId = "same"
            if !isSwitched {
                configuration.dataChannelSignaling = false
                configuration.dataChannels = nil
                configuration.audioEnabled = true
                configuration.initialMicrophoneEnabled = false
            }
            let first = LiveClient(configuration)
            #expect(await first.connected())
            if isSwitched { #expect(await first.journal.wait(for: "json switched")) }
            let journal = first.journal
            let again = Locked<LiveClient?>(nil)
            let (channel, settings) = (Transfer(first.channel), Transfer(configuration))
            first.channel.handlers.onDisconnect = { _ in
                journal.add("transport \(channel.value.native.map { "\($0.connectionState)" } ?? "nil")")
                var configuration = settings.value
                configuration.mediaChannelHandlers = MediaChannelHandlers()
                again.write(LiveClient(configuration))
                journal.add("again")
            }
            let firstID = try #require(first.channel.connectionId)
            first.channel.disconnect(error: nil)
            #expect(await journal.wait(for: "again"))
            #expect(journal.entries.contains("transport closed"))
            let found = again.read()
            let second = try #require(found)
            #expect(await second.connected())
            #expect(await second.journal.wait(for: "json notify connection.created"))
            let known = await server.connectionIDs(channelID: "room")
            #expect(known.map { $0 == firstID ? "first" : $0 } == [second.channel.connectionId])
            let events = server.recordedEvents
            let left = events.firstIndex { $0.kind == .left && $0.connectionID == firstID }
            let came = events.firstIndex {
                $0.kind == .connectReceived && $0.connectionID == second.channel.connectionId
            }
            #expect(try #require(left) < #require(came))
            await second.leave()
            // It keeps the channel that keeps it.
            first.channel.handlers.onDisconnect = nil
        }
    }

    // api 5.7
    @Test func quickConnectsAndDisconnectsLeaveNoSessionBehind() async throws {
        try await withServer { server in
            for round in 0..<12 {
                let client = LiveClient(LiveClient.messaging(server))
                switch round % 4 {
                case 0: for await event in server.events() where event.kind == .connectReceived { break }
                case 1: #expect(await client.journal.wait(for: "json offer"))
                case 2: #expect(await client.connected())
                default: #expect(await client.journal.wait(for: "json switched"))
                }
                await client.leave()
                #expect(await server.connectionIDs(channelID: "room") == [], "round \(round)")
            }
            let ends = server.recordedEvents.filter { $0.kind == .disconnected }.map(\.detail)
            #expect(ends == Array(repeating: "client: NO-ERROR", count: 12))
        }
    }

    // api 5.16
    @Test(arguments: [false, true]) func whatTheEngineSaysAfterTheReleaseReachesNobody(endsBefore: Bool) async throws {
        let journal = Journal()
        let slot = Locked<ScriptedDriver?>(nil)
        weak var released: MediaChannel?
        do {
            let sora = Sora(makeDriver: { _, core in
                let driver = ScriptedDriver(core: core)
                slot.write(driver)
                return driver
            })
            journal.record(sora.handlers, of: sora)
            let configuration = Stage.configuration()
            journal.record(configuration.mediaChannelHandlers)
            sora.connect(configuration: configuration) { _, _ in }
            #expect(await eventually { slot.read() != nil })
            slot.read()?.takeOffer()
            slot.read()?.core.deliver(.connected)
            #expect(await journal.wait(for: "channel.onConnect nil"))
            released = sora.mediaChannels.first
            if endsBefore {
                released?.disconnect(error: nil)
                #expect(await journal.wait { $0.contains { $0.hasPrefix("channel.onDisconnect") } })
            }
        }
        #expect(await eventually { released == nil })
        let driver = try #require(slot.exchange(nil))
        let core = driver.core
        let before = journal.entries
        let url = try #require(URL(string: "ws://late.example.com"))
        let reports: [ConnectionReport] = [
            .webSocketOpened(url), .webSocketMessage(.text("x")), .signalingText("{}"),
            .signalingProcessed(#"{"type":"ping"}"#), .redirected,
            .counts(connections: 1, publishers: 1, subscribers: 1),
            .streamAdded(ConnectedStream(streamId: "late", isLocal: false, core: core, video: RecordingTrack())),
            .streamRemoved(id: "late"), .connected, .dataChannelOpened(label: "#a"), .dataChannelsAvailable,
            .dataChannelMessage(label: "#a", data: Data([1])),
        ]
        for report in reports { core.deliver(report) }
        driver.takeOffer()
        driver.answerStatistics(.success([]))
        driver.fail(SoraError.connectionTimeout)
        core.outgoing.set(.open, label: "#a")
        core.microphone.close()
        await core.deliveries.run {}
        await CameraSystem.shared.turn()
        await core.deliveries.run {}
        #expect(journal.entries == before)
    }

    // api 5.10
    @Test func theTimerOfAnAttemptEndsWithIt() async {
        let ends: [(VirtualClient) -> Void] = [
            { $0.channel.disconnect(error: nil) }, { $0.task.cancel() },
            { client in client.act { $0.closeWebSocket(1000, nil) } }, { client in client.act { $0.loseWebSocket() } },
            { $0.peer(.ended(.iceFailed)) },
        ]
        for hasConnected in [false, true] {
            for (index, end) in ends.enumerated() where !(hasConnected && index == 1) {
                let client = VirtualClient()
                if hasConnected {
                    client.establish()
                    // The clock of the attempt ran out long ago; the connection stands.
                    client.advance(.seconds(3_600))
                    #expect(client.channel.state == .connected)
                } else {
                    client.act { $0.openLatestDial() }
                    client.text(VirtualClient.offer())
                }
                end(client)
                client.act { $0.closeWebSocket(1000, nil) }
                #expect(await client.hasEnded())
                let account = client.journal.entries
                #expect(client.driver?.connection.nextTimeout == nil)
                client.advance(.seconds(3_600))
                #expect(client.journal.entries == account && !account.contains { $0.contains("timeout") })
            }
        }
    }

    // api 5.11
    @Test func theCompletionHandlerRunsOnceWhateverTheCallbacksDo() async {
        for fails in [false, true] {
            for place in 0..<4 {
                let client = VirtualClient()
                let (channel, task) = (Transfer(client.channel!), Transfer(client.task!))
                let journal = client.journal
                let interfere: @Sendable () -> Void = {
                    journal.add("interfered")
                    channel.value.disconnect(error: nil)
                    task.value.cancel()
                    channel.value.disconnect(error: SoraError.connectionTimeout)
                }
                switch place {
                case 0: client.sora.handlers.onConnect = { _, _ in interfere() }
                case 1: client.channel.handlers.onConnect = { _ in interfere() }
                case 2: client.channel.handlers.onReceiveSignalingJSON = { _ in interfere() }
                default: client.sora.handlers.onRemoveMediaChannel = { _ in interfere() }
                }
                client.act { $0.openLatestDial() }
                if fails {
                    client.text(#"{"type":"mystery"}"#)
                    client.act { $0.closeWebSocket(4401, "x") }
                } else {
                    client.text(VirtualClient.offer())
                    client.peer(.stateChanged(.connected))
                    client.channel.disconnect(error: nil)
                }
                #expect(await client.hasEnded())
                let account = client.journal.entries
                #expect(account.contains("interfered"), "place \(place)")
                #expect(account.filter { $0.hasPrefix("completion") }.count == 1, "place \(place): \(account)")
                #expect(account.filter { $0.hasPrefix("sora.onDisconnect") }.count == 1)
                // They keep the channel that keeps them.
                client.channel.handlers.onConnect = nil
                client.channel.handlers.onReceiveSignalingJSON = nil
            }
        }
    }

    // api 5.12
    @Test func connectingFromInsideOfTheAddAndRemoveHandlersWorks() async {
        let client = VirtualClient()
        let journal = client.journal
        let sora = client.sora
        let rounds = Locked(0)
        let connectAgain: @Sendable (String) -> Void = { [weak sora] place in
            guard rounds.withLock({ rounds in (rounds += 1, rounds <= 2).1 }), let sora else { return }
            sora.connect(configuration: Stage.configuration(.recvonly)) { _, _ in }
            journal.add("\(place) \(sora.mediaChannels.count)")
        }
        sora.handlers.onAddMediaChannel = { _ in connectAgain("inside add") }
        sora.handlers.onRemoveMediaChannel = { _ in connectAgain("inside remove") }
        client.connect()
        // The handlers were entered again for the inner attempt, which then stopped.
        #expect(journal.entries.filter { $0.hasPrefix("inside") } == ["inside add 4", "inside add 4"])
        rounds.write(1)
        let channels = sora.mediaChannels
        for channel in channels { channel.disconnect(error: nil) }
        #expect(
            await eventually {
                client.deliver()
                return journal.entries.contains { $0.hasPrefix("inside remove") }
                    && channels.allSatisfy { $0.state == .disconnected }
            })
        sora.handlers.onAddMediaChannel = nil
        for channel in sora.mediaChannels { channel.disconnect(error: nil) }
        #expect(
            await eventually {
                client.deliver()
                return sora.mediaChannels.isEmpty
            })
    }
}
