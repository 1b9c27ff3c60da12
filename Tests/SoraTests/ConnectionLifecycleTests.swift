import Foundation
import SoraLocking
import TestSupport
import Testing

@testable import Sora

/// The order in which an application sees a connection, with a scripted driver in place of the network.
@Suite(.serialized, .leavesNoObjects) struct ConnectionLifecycleTests {
    private struct Connection {
        var stage: Stage
        var driver: ScriptedDriver
        var channel: MediaChannel
        var task: ConnectionTask
    }

    /// Starts an attempt whose callbacks are all written down, and returns when its driver started.
    private func begin(_ change: (inout Configuration) -> Void = { _ in }) async throws -> Connection {
        let stage = Stage()
        stage.recordInstance()
        var configuration = Stage.configuration()
        change(&configuration)
        stage.record(configuration.mediaChannelHandlers)
        let task = stage.sora.connect(configuration: configuration) { channel, error in
            stage.journal.add(
                "completion \(channel == nil ? "nil" : "\(channel!.state)") \(error?.localizedDescription ?? "nil")")
        }
        let channel = try #require(stage.sora.mediaChannels.first)
        let driver = try #require(await stage.driver())
        return Connection(stage: stage, driver: driver, channel: channel, task: task)
    }

    private func entries(_ stage: Stage) -> [String] { stage.journal.entries.filter { $0 != "driver" } }

    private func kinds(_ stream: AsyncStream<SoraEvent>) async -> [String] {
        var kinds: [String] = []
        for await event in stream { kinds.append(event.kind.rawValue) }
        return kinds
    }

    @Test func successIsReportedInTheDocumentedOrder() async throws {
        let connection = try await begin()
        let (stage, driver, channel) = (connection.stage, connection.driver, connection.channel)
        let events = channel.subscribeEvents()
        #expect(channel.state == .connecting && connection.task.state == .connecting)
        #expect(channel.connectionStartTime != nil && channel.native == nil && channel.connectionId == nil)
        driver.core.deliver(.webSocketOpened(URL(string: "wss://first.example.com")!))
        driver.core.deliver(.signalingText("offer"))
        driver.takeOffer()
        driver.core.deliver(.connected)
        #expect(await stage.journal.wait(for: "channel.onConnect nil"))
        #expect(
            entries(stage) == [
                "added connecting", "json offer", "completion connected nil", "sora.onConnect channel nil",
                "channel.onConnect nil",
            ])
        #expect(channel.isAvailable && connection.task.state == .completed)
        #expect(channel.contactUrl?.absoluteString == "wss://first.example.com")
        #expect(channel.connectedUrl?.absoluteString == "wss://offer.example.com")
        #expect(channel.description == "MediaChannel(clientId: client, role: sendrecv)")
        channel.disconnect(error: nil)
        #expect(await stage.journal.wait(for: "channel.onDisconnect ok 1000 NO-ERROR"))
        #expect(await kinds(events) == ["signalingReceivedJSON", "connected", "disconnected"])
    }

    @Test func anEndIsReportedOnceAndLast() async throws {
        let connection = try await begin()
        let (stage, driver, channel) = (connection.stage, connection.driver, connection.channel)
        driver.takeOffer()
        driver.core.deliver(.connected)
        #expect(await stage.journal.wait(for: "channel.onConnect nil"))
        driver.holdsEnd.write(true)
        channel.disconnect(error: nil)
        #expect(channel.state == .disconnecting)
        channel.disconnect(error: SoraError.connectionTimeout)
        driver.fail(SoraError.webSocketClosed(statusCode: .normal, reason: "x"))
        driver.finishEnd()
        #expect(await stage.journal.wait(for: "channel.onDisconnect ok 1000 NO-ERROR"))
        // A late report reaches nobody.
        driver.core.deliver(.dataChannelMessage(label: "#a", data: Data()))
        await driver.core.deliveries.run {}
        #expect(
            Array(entries(stage).suffix(3)) == [
                "removed false", "sora.onDisconnect nil disconnected", "channel.onDisconnect ok 1000 NO-ERROR",
            ])
        #expect(channel.state == .disconnected && channel.streams.isEmpty)
        #expect(channel.contactUrl == nil && channel.connectedUrl == nil && channel.connectionId == "connection")
        #expect(driver.journal.entries.filter { $0 == "end" }.count == 1)
        #expect(stage.sora.mediaChannels.isEmpty)
        #expect(await kinds(channel.subscribeEvents()) == [])
    }

    @Test func failureReportsBothBrackets() async throws {
        let connection = try await begin()
        let (stage, driver) = (connection.stage, connection.driver)
        let events = connection.channel.subscribeEvents()
        driver.fail(SoraError.webSocketClosed(statusCode: .other(4490), reason: "AUTH"))
        #expect(await stage.journal.wait(for: "channel.onDisconnect ok 4490 AUTH"))
        let text = "WebSocket is closed (4490 AUTH)"
        #expect(
            entries(stage) == [
                "added connecting", "completion nil \(text)", "sora.onConnect nil \(text)",
                "channel.onConnect \(text)", "removed false", "sora.onDisconnect \(text) disconnected",
                "channel.onDisconnect ok 4490 AUTH",
            ])
        #expect(connection.task.state == .completed)
        #expect(await kinds(events) == ["connectFailed", "disconnected"])
    }

    @Test func anOrdinaryDisconnectWhileConnectingIsACancellation() async throws {
        let connection = try await begin()
        connection.channel.disconnect(error: nil)
        #expect(await connection.stage.journal.wait(for: "channel.onDisconnect ok 1000 NO-ERROR"))
        #expect(entries(connection.stage).contains("completion nil Connection is cancelled"))
        #expect(connection.task.state == .completed)
    }

    // LIF5: cancelled while connecting, from the completion handler, twice.
    @Test func cancellationWinsOnce() async throws {
        let connection = try await begin()
        connection.task.cancel()
        #expect(connection.task.state == .canceled)
        connection.task.cancel()
        #expect(await connection.stage.journal.wait(for: "channel.onDisconnect error Connection is cancelled"))
        #expect(entries(connection.stage).filter { $0.hasPrefix("completion") }.count == 1)
        #expect(connection.task.state == .canceled)
    }

    @Test func cancellationAfterSuccessDoesNothing() async throws {
        let connection = try await begin()
        connection.driver.takeOffer()
        connection.driver.core.deliver(.connected)
        #expect(await connection.stage.journal.wait(for: "channel.onConnect nil"))
        connection.task.cancel()
        #expect(connection.task.state == .completed && connection.channel.isAvailable)
    }

    // LIF5: ended inside onAddMediaChannel, before any network traffic.
    @Test func anEndInsideTheAddHandlerOpensNothing() async {
        let stage = Stage()
        stage.recordInstance()
        stage.sora.handlers.onAddMediaChannel = { $0.disconnect(error: nil) }
        let configuration = Stage.configuration()
        stage.record(configuration.mediaChannelHandlers)
        stage.sora.connect(configuration: configuration) { _, error in
            stage.journal.add("completion \(error?.localizedDescription ?? "nil")")
        }
        #expect(await stage.journal.wait(for: "channel.onDisconnect ok 1000 NO-ERROR"))
        #expect(!stage.journal.entries.contains("driver"))
        #expect(stage.journal.entries.contains("completion Connection is cancelled"))
    }

    // api 5.8
    @Test func cancellationInTheSameTickReportsOnce() async {
        for _ in 0..<50 {
            let stage = Stage()
            let configuration = Stage.configuration()
            stage.record(configuration.mediaChannelHandlers)
            let task = stage.sora.connect(configuration: configuration) { _, error in
                stage.journal.add("completion \(error?.localizedDescription ?? "nil")")
            }
            task.cancel()
            #expect(await stage.journal.wait(for: "channel.onDisconnect error Connection is cancelled"))
            #expect(
                stage.journal.entries.filter { $0.hasPrefix("completion") } == ["completion Connection is cancelled"])
        }
    }

    // api 5.8
    @Test func cancellationRacesWithSuccess() async throws {
        for _ in 0..<50 {
            let connection = try await begin()
            connection.driver.takeOffer()
            let task = Transfer(connection.task)
            async let cancelled: Void = Task.detached { task.value.cancel() }.value
            connection.driver.core.deliver(.connected)
            await cancelled
            #expect(await connection.stage.journal.wait { $0.contains { $0.hasPrefix("channel.onConnect") } })
            let isConnected = entries(connection.stage).contains("channel.onConnect nil")
            #expect(connection.task.state == (isConnected ? .completed : .canceled))
            #expect(entries(connection.stage).filter { $0.hasPrefix("completion") }.count == 1)
            connection.channel.disconnect(error: nil)
        }
    }

    @Test func unusableSettingsReachNobodyButTheAttempt() async {
        let stage = Stage()
        stage.recordInstance()
        var configuration = Stage.configuration()
        stage.record(configuration.mediaChannelHandlers)
        configuration.signalingConnectMetadata = Double.nan
        let events = stage.sora.subscribeEvents()
        let task = stage.sora.connect(configuration: configuration) { _, error in
            stage.journal.add("completion \(error?.localizedDescription ?? "nil")")
        }
        #expect(task.state == .completed)
        let text = "Configuration error (signaling connect metadata could not be encoded)"
        #expect(await stage.journal.wait(for: "sora.onConnect nil \(text)"))
        #expect(stage.journal.entries == ["completion \(text)", "sora.onConnect nil \(text)"])
        for await event in events {
            #expect(event.kind == .connectFailed && event.connectionId == nil && event.transportEpoch == nil)
            #expect(event.error?.message == text)
            break
        }
        #expect(stage.sora.mediaChannels.isEmpty)
    }

    @Test func noURLFailsAtOnceAfterTheChannelWasAdded() async throws {
        let stage = Stage()
        stage.recordInstance()
        let configuration = Configuration(urlCandidates: [], channelId: "c", role: .recvonly)
        stage.record(configuration.mediaChannelHandlers)
        stage.sora.connect(configuration: configuration) { _, _ in }
        let text = "Configuration error (urlCandidates is empty)"
        #expect(await stage.journal.wait(for: "channel.onDisconnect error \(text)"))
        #expect(stage.journal.entries.first == "added connecting" && !stage.journal.entries.contains("driver"))
    }

    @Test func instanceEventsCarryTheDocumentedFields() async throws {
        let stage = Stage()
        let events = stage.sora.subscribeEvents()
        stage.sora.connect(configuration: Stage.configuration()) { _, _ in }
        let driver = try #require(await stage.driver())
        driver.takeOffer()
        driver.core.deliver(.connected)
        await driver.core.deliveries.run {}
        driver.fail(SoraError.dataChannelClosed(statusCode: 1000, reason: "bye"))
        var seen: [SoraEvent] = []
        for await event in events {
            seen.append(event)
            if event.kind == .disconnected { break }
        }
        #expect(seen.map(\.kind) == [.mediaChannelAdded, .connected, .mediaChannelRemoved, .disconnected])
        #expect(seen.map(\.connectionId) == [nil, "connection", "connection", "connection"])
        #expect(seen.map(\.transportEpoch) == [0, 0, 0, 0])
        #expect(seen.map(\.sequence) == [1, 2, 3, 4])
        #expect(seen.last?.error?.message == "DataChannel is closed (1000 bye)" && seen.last?.closeEvent == nil)
    }

    @Test func redirectsAdvanceTheEpochAndClearTheStreams() async throws {
        let connection = try await begin()
        let (stage, driver, channel) = (connection.stage, connection.driver, connection.channel)
        let events = channel.subscribeEvents()
        let first = driver.takeOffer()
        let stream = Transfer(
            ConnectedStream(streamId: "remote", isLocal: false, core: driver.core, video: nil, audio: nil))
        driver.core.deliver(.streamAdded(stream.value))
        driver.core.deliver(.redirected)
        await driver.core.deliveries.run {}
        #expect(channel.streams.isEmpty && channel.native == nil && channel.connectionId == "connection")
        let second = driver.takeOffer(connectionId: "next")
        driver.core.deliver(.connected)
        #expect(await stage.journal.wait(for: "channel.onConnect nil"))
        #expect(channel.connectionId == "next" && channel.native?.peer === second && first !== second)
        #expect(channel.native === channel.native)
        #expect(!entries(stage).contains("onRemoveStream remote"))
        driver.fail(nil)
        var epochs: [Int?] = []
        for await event in events { epochs.append(event.transportEpoch) }
        #expect(epochs == [0, 1, 1])
    }

    @Test func streamsAreListedBeforeTheyAreAnnounced() async throws {
        let connection = try await begin()
        let (stage, driver, channel) = (connection.stage, connection.driver, connection.channel)
        let journal = stage.journal
        channel.handlers.onAddStream = { [unowned channel] stream in
            journal.add("add \(stream.streamId) \(channel.streams.contains { $0 === stream })")
        }
        channel.handlers.onRemoveStream = { [unowned channel] stream in
            journal.add("remove \(stream.streamId) \(channel.streams.contains { $0 === stream })")
        }
        for (id, isLocal) in [("mainStream", true), ("other", false), ("other", false)] {
            driver.core.deliver(
                .streamAdded(
                    ConnectedStream(streamId: id, isLocal: isLocal, core: driver.core, video: nil, audio: nil)))
        }
        driver.core.deliver(.streamRemoved(id: "unknown"))
        await driver.core.deliveries.run {}
        #expect(channel.senderStream?.streamId == "mainStream" && channel.mainStream?.streamId == "mainStream")
        #expect(channel.receiverStreams.map(\.streamId) == ["other"])
        driver.core.deliver(.streamRemoved(id: "other"))
        await driver.core.deliveries.run {}
        #expect(
            entries(stage).filter { $0.hasPrefix("add ") || $0.hasPrefix("remove ") } == [
                "add mainStream true", "add other true", "remove other false",
            ])
        channel.disconnect(error: nil)
    }

    @Test func handlersRunBeforeTheSDKActs() async throws {
        let connection = try await begin()
        let journal = connection.stage.journal
        connection.driver.core.deliver(.signalingText("a")) { journal.add("act") }
        #expect(await journal.wait(for: "act"))
        #expect(Array(entries(connection.stage).suffix(2)) == ["json a", "act"])
        connection.channel.disconnect(error: nil)
    }

    @Test func aBlockedHandlerDelaysNeitherOtherConnectionsNorTheEnd() async throws {
        let blocked = try await begin()
        let gate = DispatchSemaphore(value: 0)
        blocked.channel.handlers.onReceiveSignalingJSON = { _ in gate.wait() }
        blocked.driver.core.deliver(.signalingText("x"))
        let free = try await begin()
        free.driver.core.deliver(.connected)
        #expect(await free.stage.journal.wait(for: "channel.onConnect nil"))
        blocked.channel.disconnect(error: nil)
        #expect(blocked.channel.state == .disconnecting)
        #expect(await blocked.driver.journal.wait(for: "end"))
        gate.signal()
        #expect(await blocked.stage.journal.wait(for: "channel.onDisconnect ok 1000 NO-ERROR"))
        free.channel.disconnect(error: nil)
    }

    // LIF6: everything is released when the end is reported; connecting again from there works.
    // api 5.6
    @Test func connectingAgainFromTheEndHandlerWorks() async throws {
        let stage = Stage()
        let configuration = Stage.configuration()
        let journal = stage.journal
        let again = Transfer(configuration)
        configuration.mediaChannelHandlers.onDisconnect = { [weak stage] _ in
            guard let stage else { return }
            journal.add("ended \(stage.sora.mediaChannels.count)")
            again.value.mediaChannelHandlers.onDisconnect = nil
            stage.sora.connect(configuration: again.value) { _, _ in }
            journal.add("again \(stage.sora.mediaChannels.count)")
        }
        stage.sora.connect(configuration: configuration) { _, _ in }
        let driver = try #require(await stage.driver())
        driver.fail(SoraError.connectionTimeout)
        #expect(await journal.wait(for: "again 1"))
        #expect(journal.entries.contains("ended 0"))
        #expect(await journal.wait { $0.filter { $0 == "driver" }.count == 2 })
        stage.sora.mediaChannels.first?.disconnect(error: nil)
    }

    // EVT5, MEM3: letting go of everything ends the transport without a word, and frees the objects.
    @Test func lettingGoWithoutAnEndAbandonsTheTransport() async throws {
        let journal = Journal()
        let driverSlot = Locked<ScriptedDriver?>(nil)
        weak var weakChannel: MediaChannel?
        var stream: AsyncStream<SoraEvent>?
        do {
            let sora = Sora(makeDriver: { _, core in
                let driver = ScriptedDriver(core: core)
                driverSlot.write(driver)
                journal.add("driver")
                return driver
            })
            sora.connect(configuration: Stage.configuration()) { _, _ in journal.add("completion") }
            weakChannel = sora.mediaChannels.first
            stream = weakChannel?.subscribeEvents()
            #expect(await journal.wait(for: "driver"))
            let found = driverSlot.read()
            let driver = try #require(found)
            #expect(await driver.journal.wait(for: "start"))
        }
        #expect(weakChannel == nil)
        let kept = driverSlot.exchange(nil)
        let driver = try #require(kept)
        #expect(await driver.journal.wait(for: "abandon"))
        #expect(await kinds(try #require(stream)) == [])
        #expect(!journal.entries.contains("completion"))
    }

    // MEM3: after an ordinary end nothing is left.
    // api 5.15
    @Test func endedConnectionsAreFreed() async throws {
        let journal = Journal()
        weak var weakChannel: MediaChannel?
        weak var weakCore: ChannelCore?
        weak var weakDriver: ScriptedDriver?
        do {
            let stage = Stage()
            let configuration = Stage.configuration()
            configuration.mediaChannelHandlers.onDisconnect = { _ in journal.add("end") }
            stage.sora.connect(configuration: configuration) { _, _ in }
            let driver = try #require(await stage.driver())
            weakChannel = stage.sora.mediaChannels.first
            weakCore = driver.core
            weakDriver = driver
            driver.core.deliver(.connected)
            weakChannel?.disconnect(error: nil)
            #expect(await journal.wait(for: "end"))
            await driver.core.deliveries.run {}
        }
        #expect(await eventually { weakChannel == nil && weakCore == nil && weakDriver == nil })
    }

    @Test func countsComeFromCompleteNotifications() async throws {
        let connection = try await begin()
        #expect(connection.channel.connectionCount == nil)
        connection.driver.core.deliver(.counts(connections: 5, publishers: 3, subscribers: 4))
        await connection.driver.core.deliveries.run {}
        #expect(connection.channel.connectionCount == 5)
        #expect(connection.channel.publisherCount == 3 && connection.channel.subscriberCount == 4)
        connection.channel.disconnect(error: nil)
    }

    @Test func dataChannelReportsReachHandlersAndEvents() async throws {
        let connection = try await begin()
        let events = connection.channel.subscribeEvents(bufferingPolicy: .unbounded)
        let core = connection.driver.core
        core.deliver(.dataChannelOpened(label: "#a"))
        core.deliver(.dataChannelsAvailable)
        core.deliver(.dataChannelMessage(label: "#a", data: Data([1, 2])))
        await core.deliveries.run {}
        #expect(Array(entries(connection.stage).suffix(3)) == ["opened #a", "onDataChannel", "message #a 2"])
        connection.channel.disconnect(error: nil)
        var seen: [SoraEvent] = []
        for await event in events { seen.append(event) }
        #expect(seen.map(\.dataChannelLabel).prefix(3) == ["#a", nil, "#a"])
        #expect(seen[2].dataChannelMessage == Data([1, 2]))
    }

    // EVT3: many overlapping connections.
    @Test func manyOverlappingConnectionsEachEndOnce() async throws {
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<64 {
                group.addTask {
                    let stage = Stage()
                    let configuration = Stage.configuration()
                    stage.record(configuration.mediaChannelHandlers)
                    let task = Transfer(stage.sora.connect(configuration: configuration) { _, _ in })
                    if number % 3 == 0 { task.value.cancel() }
                    if number % 3 == 1 { stage.sora.mediaChannels.first?.disconnect(error: nil) }
                    if number % 3 == 2 { (await stage.driver())?.fail(SoraError.connectionTimeout) }
                    #expect(await stage.journal.wait { $0.contains { $0.hasPrefix("channel.onDisconnect") } })
                    #expect(stage.journal.entries.filter { $0.hasPrefix("channel.onDisconnect") }.count == 1)
                }
            }
        }
    }
}
