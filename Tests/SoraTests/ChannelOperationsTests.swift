import Foundation
import SoraLocking
import TestSupport
import Testing

@testable import Sora

/// Messages, RPC, statistics and mute of a connection with a scripted driver.
@Suite(.serialized, .leavesNoObjects) struct ChannelOperationsTests {
    private func connected(
        _ change: (inout Configuration) -> Void = { _ in }
    ) async throws -> (stage: Stage, driver: ScriptedDriver, channel: MediaChannel) {
        let stage = Stage()
        var configuration = Stage.configuration()
        change(&configuration)
        stage.record(configuration.mediaChannelHandlers)
        stage.sora.connect(configuration: configuration) { _, _ in }
        let channel = try #require(stage.sora.mediaChannels.first)
        let driver = try #require(await stage.driver())
        driver.takeOffer()
        driver.core.deliver(.connected)
        #expect(await stage.journal.wait(for: "channel.onConnect nil"))
        return (stage, driver, channel)
    }

    // MARK: Messages

    @Test func messagesAreCheckedInOrder() async throws {
        let (_, driver, channel) = try await connected()
        func send(_ label: String, _ data: Data = Data([1])) -> String? {
            channel.sendMessage(label: label, data: data)?.localizedDescription
        }
        let outgoing = driver.core.outgoing
        #expect(send("x") == "Messaging error: DataChannel is not open yet")
        outgoing.markSwitched()
        // LIF22: labels are compared as exact bytes.
        for label in ["e2ee", " #log", "＃log", ""] {
            #expect(send(label) == "Messaging error: label should start with #", "\(label)")
        }
        #expect(send("#") == "Messaging error: no DataChannel found: label => #")
        for state in [OutgoingMessages.ChannelState.connecting, .closing, .closed] {
            outgoing.set(state, label: "#a")
            #expect(
                send("#a")
                    == "Messaging error: readyState of the DataChannel is not open: label => #a, readyState => \(state)"
            )
        }
        outgoing.set(.open, label: "#a")
        #expect(
            send("#a", Data(count: OutgoingMessages.maximumMessageSize + 1))
                == "Messaging error: failed to send message: label => #a")
        #expect(send("#a") == nil)
        #expect(send("#a", Data()) == nil)
        #expect(outgoing.takeAll().map(\.data.count) == [1, 0])
        #expect(driver.journal.entries.filter { $0 == "wake" }.count == 1)
        channel.disconnect(error: nil)
        #expect(send("#a") == "Messaging error: DataChannel is not open yet")
    }

    @Test func aRedirectVoidsWhatWaits() async throws {
        let (_, driver, channel) = try await connected()
        let outgoing = driver.core.outgoing
        outgoing.markSwitched()
        outgoing.set(.open, label: "#a")
        #expect(channel.sendMessage(label: "#a", data: Data([1])) == nil)
        outgoing.reset()
        #expect(outgoing.takeAll().isEmpty)
        #expect(channel.sendMessage(label: "#a", data: Data([1])) != nil)
        channel.disconnect(error: nil)
    }

    @Test func theQueueIsBounded() {
        let outgoing = OutgoingMessages()
        outgoing.markSwitched()
        outgoing.set(.open, label: "#a")
        let message = Data(count: OutgoingMessages.maximumMessageSize)
        var accepted = 0
        while case .queued = outgoing.put(message, label: "#a") {
            accepted += 1
            if accepted > 1_000 { break }
        }
        #expect(accepted == OutgoingMessages.maximumQueuedBytes / OutgoingMessages.maximumMessageSize)
        _ = outgoing.takeAll()
        guard case .refused = outgoing.put(message, label: "#a") else {
            Issue.record("taken is not sent")
            return
        }
        outgoing.didSend(bytes: message.count)
        guard case .queued = outgoing.put(message, label: "#a") else {
            Issue.record("there is room again")
            return
        }
    }

    // MARK: RPC

    private func openRPC(_ driver: ScriptedDriver) { driver.core.outgoing.set(.open, label: "rpc") }

    private func code(_ body: () async throws -> Void) async -> String {
        do {
            try await body()
            return "success"
        } catch {
            return error is CancellationError ? "cancelled" : error.localizedDescription
        }
    }

    @Test func callsNeedAnOpenChannel() async throws {
        let (_, driver, channel) = try await connected()
        let call: () async throws -> Void = {
            _ = try await channel.rpc(method: RequestSimulcastRid.self, params: RequestSimulcastRidParams(rid: .r0))
        }
        #expect(await code(call) == "RPC unavailable: rpc channel is not available")
        driver.core.outgoing.set(.connecting, label: "rpc")
        #expect(await code(call) == "RPC unavailable: DataChannel is not open")
        channel.disconnect(error: nil)
        #expect(await code(call) == "RPC unavailable: rpc channel is not available")
    }

    // api 2.20: the channel was there when the call began and is gone when it should be sent.
    @Test func aChannelThatGoesMeanwhileIsInvalidated() async throws {
        let (_, driver, channel) = try await connected()
        openRPC(driver)
        async let answering: Void = {
            #expect(await driver.journal.wait(for: "call 1"))
            driver.answer(1, .failure(SoraError.rpcUnavailable(reason: "rpc channel is not available")))
        }()
        let text = await code {
            _ = try await channel.rpc(method: RequestSimulcastRid.self, params: RequestSimulcastRidParams(rid: .r0))
        }
        await answering
        #expect(text == "RPC DataChannel is closed: RPC channel is invalidated")
        channel.disconnect(error: nil)
    }

    @Test func answersAreDecoded() async throws {
        let (_, driver, channel) = try await connected()
        openRPC(driver)
        async let answering: Void = {
            #expect(await driver.journal.wait(for: "call 1"))
            driver.answer(
                1,
                .success(
                    RPCAnswer(
                        id: 7,
                        result: Data(#"{"channel_id":"c","receiver_connection_id":"r","rid":"r1"}"#.utf8))))
        }()
        let response = try await channel.rpc(
            method: RequestSimulcastRid.self, params: RequestSimulcastRidParams(rid: .r1))
        await answering
        #expect(response?.id == 7 && response?.jsonrpc == "2.0" && response?.result.receiverConnectionId == "r")
        let call = try #require(driver.callsMade.first)
        #expect(call.method == "2025.2.0/RequestSimulcastRid" && call.params.text == #"{"rid":"r1"}"#)
        #expect(call.timeout == 5 && !call.isNotification)
        channel.disconnect(error: nil)
    }

    @Test func notificationsHaveNoAnswer() async throws {
        let (_, driver, channel) = try await connected()
        openRPC(driver)
        let answer = try await channel.sendableRPC(
            method: ResetSpotlightRid.self, params: ResetSpotlightRidParams(), isNotificationRequest: true)
        #expect(answer == nil && driver.callsMade[0].isNotification && driver.callsMade[0].params.text == "{}")
        channel.disconnect(error: nil)
    }

    private enum Scalar: RPCMethodProtocol {
        typealias Params = Double
        typealias Result = JSONValue
        static let name = "scalar"
    }
    private struct Thrower: Encodable {
        func encode(to encoder: any Encoder) throws {
            throw EncodingError.invalidValue(1, EncodingError.Context(codingPath: [], debugDescription: "not today"))
        }
    }
    private enum Throwing: RPCMethodProtocol {
        typealias Params = Thrower
        typealias Result = JSONValue
        static let name = "throwing"
    }

    @Test func parametersMustBeJSON() async throws {
        let (_, driver, channel) = try await connected()
        openRPC(driver)
        #expect(
            await code { _ = try await channel.rpc(method: Scalar.self, params: .nan) }
                == "RPC encoding error: invalid JSON payload")
        let text = await code { _ = try await channel.rpc(method: Throwing.self, params: Thrower()) }
        #expect(text.hasPrefix("RPC encoding error: ") && text.contains("not today"))
        async let answering: Void = {
            #expect(await driver.journal.wait(for: "call 1"))
            driver.answer(1, .success(RPCAnswer(id: 1, result: Data("null".utf8))))
        }()
        let response = try await channel.rpc(method: Scalar.self, params: 1.5)
        await answering
        #expect(response?.result == .null && driver.callsMade[0].params.text == "1.5")
        channel.disconnect(error: nil)
    }

    @Test func unexpectedResultsAreDecodingErrors() async throws {
        let (_, driver, channel) = try await connected()
        openRPC(driver)
        async let answering: Void = {
            #expect(await driver.journal.wait(for: "call 1"))
            driver.answer(1, .success(RPCAnswer(id: 1, result: Data("[]".utf8))))
        }()
        let text = await code {
            _ = try await channel.rpc(method: ResetSpotlightRid.self, params: ResetSpotlightRidParams())
        }
        await answering
        #expect(text.hasPrefix("RPC decoding error: "))
        channel.disconnect(error: nil)
    }

    // EVT2: cancelled calls return at once.
    // api 5.65
    @Test func cancelledCallsEnd() async throws {
        let (_, driver, channel) = try await connected()
        openRPC(driver)
        let shared = Transfer(channel)
        let tasks = (0..<50).map { _ in
            Task {
                await code {
                    _ = try await shared.value.rpc(
                        method: ResetSpotlightRid.self, params: ResetSpotlightRidParams(), timeout: 60)
                }
            }
        }
        #expect(await driver.journal.wait { $0.filter { $0.hasPrefix("call") }.count == 50 })
        for task in tasks { task.cancel() }
        for task in tasks { #expect(await task.value == "cancelled") }
        let early = Task {
            await code {
                _ = try await shared.value.rpc(method: ResetSpotlightRid.self, params: ResetSpotlightRidParams())
            }
        }
        early.cancel()
        _ = await early.value
        channel.disconnect(error: nil)
    }

    // api 5.64
    @Test func aDisconnectEndsWaitingCalls() async throws {
        let (_, driver, channel) = try await connected()
        openRPC(driver)
        let shared = Transfer(channel)
        let task = Task {
            await code {
                _ = try await shared.value.rpc(method: ResetSpotlightRid.self, params: ResetSpotlightRidParams())
            }
        }
        #expect(await driver.journal.wait(for: "call 1"))
        channel.disconnect(error: nil)
        #expect(await task.value == "RPC DataChannel is closed: user")
    }

    // MARK: Statistics

    // api 5.67
    @Test func statisticsNeedAConnectedChannel() async throws {
        let stage = Stage()
        stage.sora.connect(configuration: Stage.configuration()) { _, _ in }
        let channel = try #require(stage.sora.mediaChannels.first)
        let journal = Journal()
        channel.getStats { result in
            if case .failure(let error) = result { journal.add(error.localizedDescription) }
        }
        #expect(journal.entries == ["PeerChannel error (MediaChannel is not connected (state: connecting))"])
        let driver = try #require(await stage.driver())
        driver.core.deliver(.connected)
        await driver.core.deliveries.run {}
        channel.getStatsSnapshot { result in
            if case .failure(let error) = result { journal.add(error.localizedDescription) }
        }
        #expect(journal.entries.last == "PeerChannel error (RTCPeerConnection is unavailable (nativeChannel: nil))")
        channel.disconnect(error: nil)
    }

    @Test func statisticsArrive() async throws {
        let (_, driver, channel) = try await connected()
        async let answering: Void = {
            #expect(await driver.journal.wait(for: "statistics"))
            driver.answerStatistics(
                .success([StatisticsRecord(id: "t", type: "transport", timestamp: 9, values: ["n": .decimal(1)])]))
        }()
        let snapshot = try await channel.getStatsSnapshot()
        await answering
        #expect(snapshot.entries.first?.id == "t" && snapshot.timestamp == 9)
        channel.disconnect(error: nil)
    }

    // EVT9: what comes too late is no answer.
    // api 5.67
    @Test func lateStatisticsBecomeErrors() async throws {
        let (_, driver, channel) = try await connected()
        let journal = Journal()
        let ask: () -> Void = {
            channel.getStats { result in
                if case .failure(let error) = result { journal.add(error.localizedDescription) }
            }
        }
        ask()
        driver.takeOffer(connectionId: "second")
        await driver.core.deliveries.run {}
        driver.answerStatistics(.success([]))
        #expect(
            journal.entries == ["PeerChannel error (RTCPeerConnection is unavailable (nativeChannel changed))"])
        ask()
        driver.holdsEnd.write(true)
        channel.disconnect(error: nil)
        driver.answerStatistics(.success([]))
        #expect(
            journal.entries.last == "PeerChannel error (MediaChannel is not connected (state: disconnecting))")
        driver.finishEnd()
    }

    @Test func cancelledStatisticsEnd() async throws {
        let (_, driver, channel) = try await connected()
        let shared = Transfer(channel)
        let task = Task { await code { _ = try await shared.value.getStatsSnapshot() } }
        #expect(await driver.journal.wait(for: "statistics"))
        task.cancel()
        #expect(await task.value == "cancelled")
        channel.disconnect(error: nil)
    }

    // MARK: Mute

    @Test func muteChecksComeInOrder() async throws {
        func texts(_ channel: MediaChannel) async -> [String] {
            let hardVideo = await code { try await channel.setVideoHardMute(true) }
            let screen = await code { try await channel.startScreenCapture() }
            return [
                channel.setAudioHardMute(true), channel.setAudioSoftMute(true), channel.setVideoSoftMute(true),
            ].map { $0?.localizedDescription ?? "nil" } + [hardVideo, screen]
        }
        func all(_ reason: String) -> [String] { Array(repeating: "MediaChannel error (\(reason))", count: 5) }

        let (_, driver, channel) = try await connected()
        let noStream = "MediaChannel error (senderStream is unavailable)"
        #expect(await texts(channel) == ["nil", noStream, noStream, noStream, noStream])
        #expect(driver.journal.entries.contains("microphone true"))
        driver.core.deliver(
            .streamAdded(
                ConnectedStream(streamId: "mainStream", isLocal: true, core: driver.core, video: nil, audio: nil)))
        await driver.core.deliveries.run {}
        let noVideo = "MediaChannel error (senderStream has no VideoTrack)"
        #expect(
            await texts(channel) == [
                "nil", "MediaChannel error (senderStream has no AudioTrack)", noVideo, noVideo, noVideo,
            ])
        driver.holdsEnd.write(true)
        channel.disconnect(error: nil)
        #expect(await texts(channel) == all("MediaChannel is not connected (state: disconnecting)"))
        driver.finishEnd()

        let receiver = try await connected { $0.role = .recvonly }
        #expect(await texts(receiver.channel) == all("role is not sender"))
        receiver.channel.disconnect(error: nil)

        let bare = try await connected {
            $0.audioEnabled = false
            $0.videoEnabled = false
        }
        #expect(
            await texts(bare.channel) == [
                "MediaChannel error (audioEnabled is false)", "MediaChannel error (audioEnabled is false)",
                "MediaChannel error (videoEnabled is false)", "MediaChannel error (videoEnabled is false)",
                "MediaChannel error (videoEnabled is false)",
            ])
        bare.channel.disconnect(error: nil)
    }

    @Test func softMuteSwitchesTheStream() async throws {
        let (stage, driver, channel) = try await connected()
        let events = channel.subscribeEvents()
        let video = RecordingTrack()
        let audio = RecordingTrack()
        let stream = Transfer(
            ConnectedStream(streamId: "mainStream", isLocal: true, core: driver.core, video: video, audio: audio))
        stream.value.handlers.onSwitchVideo = { stage.journal.add("video \($0)") }
        stream.value.handlers.onSwitchAudio = { stage.journal.add("audio \($0)") }
        driver.core.deliver(.streamAdded(stream.value))
        await driver.core.deliveries.run {}
        #expect(channel.setVideoSoftMute(true) == nil && channel.setVideoSoftMute(true) == nil)
        #expect(channel.setAudioSoftMute(true) == nil && channel.setAudioSoftMute(false) == nil)
        #expect(video.journal.entries == ["enabled false"])
        #expect(audio.journal.entries == ["enabled false", "enabled true"])
        #expect(
            stage.journal.entries.filter { $0.hasPrefix("video") || $0.hasPrefix("audio") } == [
                "video false", "audio false", "audio true",
            ])
        channel.disconnect(error: nil)
        var switches: [String] = []
        for await event in events {
            if let isEnabled = event.isEnabled {
                switches.append("\(event.kind.rawValue) \(event.streamId ?? "") \(isEnabled)")
            }
        }
        #expect(
            switches == [
                "videoEnabledChanged mainStream false", "audioEnabledChanged mainStream false",
                "audioEnabledChanged mainStream true",
            ])
    }
}
