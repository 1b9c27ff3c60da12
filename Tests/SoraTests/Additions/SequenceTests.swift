import Foundation
import TestSupport
import Testing

@testable import Sora

/// Messages, streams and frames as sequences.
@Suite(.serialized, .leavesNoObjects) struct SequenceTests {
    /// A connection with a scripted driver.
    private func begin() async throws -> (channel: MediaChannel, driver: ScriptedDriver, stage: Stage) {
        let stage = Stage()
        stage.sora.connect(configuration: Stage.configuration()) { _, _ in }
        let driver = try #require(await stage.driver())
        driver.takeOffer()
        driver.core.deliver(.connected)
        return (try #require(stage.sora.mediaChannels.first), driver, stage)
    }

    private func message(_ label: String, _ text: String) -> ConnectionReport {
        .dataChannelMessage(label: label, data: Data(text.utf8))
    }

    private func all<Element>(_ stream: AsyncStream<Element>) async -> [Element] {
        await stream.reduce(into: []) { $0.append($1) }
    }

    // MARK: Messages

    @Test func messagesAreThoseOfTheLabelUntilTheEnd() async throws {
        let (channel, driver, stage) = try await begin()
        defer { withExtendedLifetime(stage) {} }
        let data = channel.messages(label: "#a")
        let texts = channel.texts(label: "#b")
        for report in [message("#a", "1"), message("#b", "2"), message("#a", ""), message("notify", "{}")] {
            driver.core.deliver(report)
        }
        driver.core.deliver(.dataChannelMessage(label: "#b", data: Data([0xff])))
        driver.fail(nil)
        #expect(await all(data) == [Data("1".utf8), Data()])
        #expect(await all(texts) == ["2", "\u{fffd}"])
        #expect(await channel.texts(label: "#a").first { _ in true } == nil)
    }

    @Test func otherEventsTakeNoPlaceInTheBufferOfMessages() async throws {
        let (channel, driver, stage) = try await begin()
        defer { withExtendedLifetime(stage) {} }
        let newest = channel.texts(label: "#a", bufferingPolicy: .bufferingNewest(2))
        for number in 0..<5 { driver.core.deliver(message("#a", "\(number)")) }
        for _ in 0..<1_000 { driver.core.deliver(.signalingText("{}")) }
        // Nobody reads before all of it was told.
        await driver.core.deliveries.run {}
        driver.fail(nil)
        #expect(await all(newest) == ["3", "4"])
    }

    @Test func aSequenceThatIsLetGoOfIsUnsubscribed() async throws {
        let (channel, driver, stage) = try await begin()
        defer { withExtendedLifetime(stage) {} }
        do {
            let first = channel.messages(label: "#a")
            let second = channel.remoteStreams()
            #expect(driver.core.events.subscriberCount == 2)
            withExtendedLifetime((first, second)) {}
        }
        #expect(driver.core.events.subscriberCount == 0)
    }

    @Test func sendingThrowsTheReasons() async throws {
        let (channel, driver, stage) = try await begin()
        defer { withExtendedLifetime(stage) {} }
        func reason(_ label: String) -> String {
            do {
                try channel.send("hello", label: label)
                return "sent"
            } catch .messagingError(let reason) {
                return reason
            } catch {
                return "\(error)"
            }
        }
        #expect(reason("#a") == "DataChannel is not open yet")
        driver.core.outgoing.markSwitched()
        #expect(reason("a") == "label should start with #")
        driver.core.outgoing.set(.open, label: "#a")
        #expect(reason("#a") == "sent")
        try channel.send(Data([1, 2]), label: "#a")
        #expect(driver.core.outgoing.takeAll().map(\.data) == [Data("hello".utf8), Data([1, 2])])
    }

    // MARK: Waiting for a channel

    @Test func aLabelIsUsableOnceItIsOpenAndSwitched() async throws {
        let (channel, driver, stage) = try await begin()
        let outgoing = driver.core.outgoing
        let transfer = Transfer(channel)
        let waiting = Task {
            try await transfer.value.waitUntilOpen(label: "#a")
            stage.journal.add("usable")
        }
        outgoing.set(.open, label: "#a")
        outgoing.set(.open, label: "rpc")
        try await channel.waitUntilOpen(label: "rpc")
        #expect(!stage.journal.entries.contains("usable"))
        outgoing.reset()
        outgoing.markSwitched()
        #expect(!stage.journal.entries.contains("usable"))
        outgoing.set(.open, label: "#a")
        try await waiting.value
        try await channel.waitUntilOpen(label: "#a")
    }

    @Test func waitingForALabelEndsWithTheConnectionOrTheTask() async throws {
        let (channel, driver, stage) = try await begin()
        defer { withExtendedLifetime(stage) {} }
        let transfer = Transfer(channel)
        let cancelled = Task { try await transfer.value.waitUntilOpen(label: "#a") }
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        let ended = Task { try await transfer.value.waitUntilOpen(label: "#b") }
        driver.fail(nil)
        for attempt in [ended, Task { try await transfer.value.waitUntilOpen(label: "#b") }] {
            await #expect {
                try await attempt.value
            } throws: {
                $0.localizedDescription
                    == "Messaging error: the connection ended before the DataChannel was open: label => #b"
            }
        }
    }

    // MARK: Streams and frames

    private func stream(_ id: String, _ driver: ScriptedDriver, isLocal: Bool = false) -> ConnectedStream {
        let stream = ConnectedStream(streamId: id, isLocal: isLocal, core: driver.core, video: RecordingTrack())
        driver.core.deliver(.streamAdded(stream))
        return stream
    }

    @Test func remoteStreamsAreThoseThatAreThereAndThoseThatCome() async throws {
        let (channel, driver, stage) = try await begin()
        defer { withExtendedLifetime(stage) {} }
        _ = stream("mainStream", driver, isLocal: true)
        _ = stream("one", driver)
        await driver.core.deliveries.run {}
        let streams = channel.remoteStreams()
        _ = stream("two", driver)
        driver.core.deliver(.streamRemoved(id: "one"))
        _ = stream("one", driver)
        driver.fail(nil)
        var ids: [String] = []
        for await stream in streams { ids.append(stream.streamId) }
        #expect(ids == ["one", "two", "one"])
    }

    private func frame(_ time: Int64) -> VideoFrame {
        .native(
            capturer: nil,
            frame: RTCVideoFrame(buffer: RTCI420Buffer(width: 4, height: 2), rotation: ._0, timeStampNs: time))
    }

    private func times(_ frames: VideoFrames) async -> [Int64] {
        var times: [Int64] = []
        for await case .native(_, let frame) in frames { times.append(frame.timeStampNs) }
        return times
    }

    @Test func framesAreTheNewestUntilTheStreamEnds() async throws {
        let track = RecordingTrack()
        let stream = ConnectedStream(streamId: "remote", isLocal: false, core: nil, video: track)
        let frames = stream.frames()
        let last = stream.frames(bufferingNewest: 0)
        #expect(track.journal.entries == ["watched true"])
        for time in 1...6 { stream.receive(video: frame(Int64(time))) }
        stream.terminate()
        #expect(await times(frames) == [3, 4, 5, 6])
        #expect(await times(last) == [6])
        #expect(await times(stream.frames()) == [])
    }

    @Test func aTrackIsDecodedWhileAnybodyWatches() async throws {
        final class Renderer: VideoRenderer {
            func onChange(size: CGSize) {}
            func render(videoFrame: VideoFrame?) {}
            func onDisconnect(from: MediaChannel?) {}
            func onAdded(from: any MediaStream) {}
            func onRemoved(from: any MediaStream) {}
            func onSwitch(video: Bool) {}
            func onSwitch(audio: Bool) {}
        }
        let track = RecordingTrack()
        let stream = ConnectedStream(streamId: "remote", isLocal: false, core: nil, video: track)
        let renderer = Renderer()
        do {
            let frames = stream.frames()
            stream.videoRenderer = renderer
            withExtendedLifetime(frames) {}
        }
        #expect(track.journal.entries == ["watched true"])
        stream.videoRenderer = nil
        #expect(track.journal.entries == ["watched true", "watched false"])
        do {
            let frames = stream.frames()
            withExtendedLifetime(frames) {}
        }
        #expect(track.journal.entries.count == 4)
        stream.detach(video: true, audio: false)
        let late = RecordingTrack()
        let frames = stream.frames()
        stream.attach(video: late, audio: nil)
        #expect(late.journal.entries == ["watched true"])
        withExtendedLifetime(frames) {}
    }

    @Test func aTrackWhoseRendererIsGoneIsNoLongerDecodedOnceThatIsSaid() async {
        final class Renderer: VideoRenderer {
            func onChange(size: CGSize) {}
            func render(videoFrame: VideoFrame?) {}
            func onDisconnect(from: MediaChannel?) {}
            func onAdded(from: any MediaStream) {}
            func onRemoved(from: any MediaStream) {}
            func onSwitch(video: Bool) {}
            func onSwitch(audio: Bool) {}
        }
        let track = RecordingTrack()
        let stream = ConnectedStream(streamId: "remote", isLocal: false, core: nil, video: track)
        var renderer: Renderer? = Renderer()
        weak let observed = renderer
        stream.videoRenderer = renderer
        renderer = nil
        await mainQueueTurn()  // A callback that waits there holds the renderer.
        #expect(observed == nil)
        stream.videoRenderer = nil
        #expect(track.journal.entries == ["watched true", "watched false"])
    }

    @Test func watchersThatComeAndGoAtOnceLeaveTheTrackAsTheLastOneWantsIt() async {
        let track = RecordingTrack()
        let stream = ConnectedStream(streamId: "remote", isLocal: false, core: nil, video: track)
        let shared = Transfer(stream)
        let stays = stream.frames()
        await withTaskGroup { group in
            for _ in 0..<8 {
                group.addTask { for _ in 0..<50 { _ = shared.value.frames() } }
            }
        }
        #expect(track.journal.entries == ["watched true"])
        withExtendedLifetime(stays) {}
    }

    @Test func framesOfTheLocalStreamAreThoseThatAreSent() async throws {
        let (_, driver, stage) = try await begin()
        defer { withExtendedLifetime(stage) {} }
        let local = stream("mainStream", driver, isLocal: true)
        let frames = local.frames()
        local.send(videoFrame: frame(7))
        let first = await { () async -> Int64? in
            for await case .native(_, let frame) in frames { return frame.timeStampNs }
            return nil
        }()
        #expect(first == 7)
    }
}
