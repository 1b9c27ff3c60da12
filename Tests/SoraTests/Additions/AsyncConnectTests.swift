import Foundation
import SoraLocking
import TestSupport
import Testing

@testable import Sora

/// `connect` as an async function, with a scripted driver in place of the network.
@Suite(.serialized, .leavesNoObjects) struct AsyncConnectTests {
    private func begin(_ stage: Stage) -> Task<Transfer<MediaChannel>, any Error> {
        Task { Transfer(try await stage.sora.connect(configuration: Stage.configuration())) }
    }

    @Test func returnsTheConnectedChannel() async throws {
        let stage = Stage()
        let attempt = begin(stage)
        let driver = try #require(await stage.driver())
        driver.takeOffer()
        driver.core.deliver(.connected)
        let channel = try await attempt.value.value
        #expect(channel.isAvailable && channel === stage.sora.mediaChannels.first)
        await channel.disconnect()
    }

    @Test func throwsWhatTheHandlerWouldGet() async throws {
        let stage = Stage()
        let attempt = begin(stage)
        let driver = try #require(await stage.driver())
        driver.fail(SoraError.webSocketClosed(statusCode: .other(4490), reason: "AUTH"))
        await #expect {
            _ = try await attempt.value
        } throws: {
            $0.localizedDescription == "WebSocket is closed (4490 AUTH)"
        }
    }

    @Test func unusableSettingsThrowWithoutAConnection() async {
        let stage = Stage()
        var configuration = Stage.configuration()
        configuration.signalingConnectMetadata = ["bad": Double.nan]
        await #expect {
            _ = try await stage.sora.connect(configuration: configuration) { _ in stage.journal.add("prepared") }
        } throws: {
            $0.localizedDescription == "Configuration error (signaling connect metadata could not be encoded)"
        }
        #expect(stage.journal.entries == [])
    }

    @Test func cancellingTheTaskCancelsTheAttemptAndWaitsForItsEnd() async throws {
        let stage = Stage()
        let attempt = begin(stage)
        let driver = try #require(await stage.driver())
        driver.holdsEnd.write(true)
        attempt.cancel()
        #expect(await driver.journal.wait(for: "end"))
        #expect(stage.sora.mediaChannels.count == 1)
        driver.finishEnd()
        await #expect(throws: CancellationError.self) { _ = try await attempt.value }
    }

    @Test func aTaskCancelledBeforehandStartsNothing() async {
        let stage = Stage()
        let attempt = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return Transfer(try await stage.sora.connect(configuration: Stage.configuration()))
        }
        await #expect(throws: CancellationError.self) { _ = try await attempt.value }
        #expect(stage.journal.entries == [] && stage.sora.mediaChannels.isEmpty)
    }

    @Test func anOrdinaryEndWhileConnectingIsNoCancellationOfTheTask() async throws {
        let stage = Stage()
        let attempt = begin(stage)
        _ = try #require(await stage.driver())
        stage.sora.mediaChannels.first?.disconnect(error: nil)
        await #expect {
            _ = try await attempt.value
        } throws: {
            if case SoraError.connectionCancelled = $0 { true } else { false }
        }
    }

    @Test func prepareSeesTheConnectionBeforeItStarts() async throws {
        let stage = Stage()
        stage.sora.handlers.onAddMediaChannel = { [journal = stage.journal] _ in journal.add("added") }
        let attempt = Task {
            var events: AsyncStream<SoraEvent>?
            _ = try await stage.sora.connect(configuration: Stage.configuration()) { channel in
                events = channel.subscribeEvents()
                stage.journal.add("prepared \(channel.state)")
            }
            return events
        }
        let driver = try #require(await stage.driver())
        driver.core.deliver(.signalingText("offer"))
        driver.takeOffer()
        driver.core.deliver(.connected)
        let events = try #require(try await attempt.value)
        #expect(stage.journal.entries == ["added", "prepared connecting", "driver"])
        driver.fail(nil)
        var kinds: [String] = []
        for await event in events { kinds.append(event.kind.rawValue) }
        #expect(kinds == ["signalingReceivedJSON", "connected", "disconnected"])
    }

    @Test func disconnectReturnsWhenEverythingIsReleased() async throws {
        let stage = Stage()
        stage.recordInstance()
        let attempt = begin(stage)
        let driver = try #require(await stage.driver())
        driver.core.deliver(.connected)
        let channel = try await attempt.value.value
        await channel.disconnect()
        #expect(channel.state == .disconnected)
        #expect(stage.journal.entries.contains("sora.onDisconnect nil disconnected"))
        await channel.disconnect()
    }
}

/// A `@MainActor` object that stores the connection and awaits its members: that this compiles in Swift 6 mode is the
/// test; it runs, too.
@MainActor private final class Screen {
    var channel: MediaChannel?
    var lines: [String] = []
    let journal = Journal()

    func connect(_ sora: Sora) async throws {
        var texts: AsyncStream<String>?
        channel = try await sora.connect(configuration: Stage.configuration()) { [self] in
            texts = $0.texts(label: "#chat")
            lines.append("\($0.state)")
        }
        journal.add("stored")
        for await text in texts! { lines.append(text) }
    }

    func ask() async throws -> RequestSimulcastRidResult? {
        guard let channel else { return nil }
        try await channel.waitUntilOpen(label: "rpc")
        return try await channel.rpc(
            method: RequestSimulcastRid.self, params: RequestSimulcastRidParams(rid: .r1))?.result
    }

    /// Every other asynchronous member: that this compiles is the test.
    func everythingElse() async throws {
        _ = try await channel?.sendableRPC(
            method: RequestSimulcastRid.self, params: RequestSimulcastRidParams(rid: .r1))
        _ = try await channel?.rpc(
            method: RequestSimulcastRid.self, params: RequestSimulcastRidParams(rid: .r1), isNotificationRequest: true)
        try await channel?.setVideoHardMute(true)
        try await channel?.startScreenCapture()
        await channel?.stopScreenCapture()
    }

    func statistics() async throws -> Int? { try await channel?.getStatsSnapshot().entries.count }

    func firstPicture() async -> Int? {
        guard let channel else { return nil }
        for await stream in channel.remoteStreams() {
            for await frame in stream.frames() { return frame.width }
        }
        return nil
    }

    func leave() async { await channel?.disconnect() }
}

@Suite(.serialized, .leavesNoObjects) struct MainActorTests {
    @Test @MainActor func anObjectOfTheMainActorMayStoreAndAwaitTheChannel() async throws {
        let stage = Stage()
        let screen = Screen()
        let connecting = Task { try await screen.connect(stage.sora) }
        let driver = try #require(await stage.driver())
        driver.takeOffer()
        driver.core.deliver(.connected)
        driver.core.deliver(.dataChannelMessage(label: "#chat", data: Data("hello".utf8)))
        driver.core.outgoing.set(.open, label: "rpc")
        await driver.core.deliveries.run {}
        #expect(await screen.journal.wait(for: "stored"))

        let asking = Task { try await screen.ask() }
        #expect(await driver.journal.wait(for: "call 1"))
        let result = #"{"channel_id":"room","receiver_connection_id":"c","rid":"r1"}"#
        driver.answer(1, .success(RPCAnswer(id: 1, result: Data(result.utf8))))
        #expect(try await asking.value?.rid == .r1)

        let counting = Task { try await screen.statistics() }
        #expect(await driver.journal.wait(for: "statistics"))
        driver.answerStatistics(.success([]))
        #expect(try await counting.value == 0)

        let looking = Task { await screen.firstPicture() }
        await screen.leave()
        #expect(await looking.value == nil)
        try await connecting.value
        #expect(screen.lines == ["connecting", "hello"])
    }
}
