import Foundation
import LocalSora
import SoraLocking
import Testing

@testable import Sora

/// Mutes, and several connections of one instance (api 3.12 and 3.13), on the real engine.
@Suite(.serialized, .leavesNoObjects) struct LifeSequenceTests {
    // MARK: Mute (3.12)

    private final class Renderer: VideoRenderer {
        let journal: Journal
        init(_ journal: Journal) { self.journal = journal }
        func onChange(size: CGSize) {}
        func render(videoFrame: VideoFrame?) {}
        func onDisconnect(from: MediaChannel?) {}
        func onAdded(from: any MediaStream) {}
        func onRemoved(from: any MediaStream) {}
        func onSwitch(video: Bool) { journal.add("renderer video \(video) \(isOnMainQueue())") }
        func onSwitch(audio: Bool) { journal.add("renderer audio \(audio) \(isOnMainQueue())") }
    }

    @Test func softMutesAreToldOnceInOrderAndLaterOnesWin() async throws {
        try await withServer { server in
            let witness = Witness(
                LiveClient.messaging(server) {
                    $0.audioEnabled = true
                    $0.videoEnabled = true
                    $0.cameraSettings.isEnabled = false
                    $0.initialMicrophoneEnabled = false
                })
            await expectReady(witness)
            let channel = Transfer(witness.channel)
            let stream = try #require(channel.value.senderStream)
            let journal = witness.journal
            let renderer = Renderer(Journal())
            stream.videoRenderer = renderer
            stream.handlers.onSwitchVideo = { journal.add("video \($0)") }
            stream.handlers.onSwitchAudio = { journal.add("audio \($0)") }
            let before = witness.entries.count
            #expect(channel.value.setVideoSoftMute(true) == nil && channel.value.setVideoSoftMute(true) == nil)
            #expect(channel.value.setAudioSoftMute(true) == nil && channel.value.setAudioSoftMute(false) == nil)
            #expect(!stream.videoEnabled && stream.audioEnabled)
            await mainQueueTurn()
            #expect(
                // The server may say something meanwhile.
                witness.entries.dropFirst(before).filter {
                    $0.hasPrefix("video ") || $0.hasPrefix("audio ") || $0.contains("Changed")
                } == [
                    "video false", "e:videoEnabledChanged mainStream", "audio false",
                    "e:audioEnabledChanged mainStream",
                    "audio true", "e:audioEnabledChanged mainStream",
                ])
            #expect(
                renderer.journal.entries == [
                    "renderer video false true", "renderer audio false true", "renderer audio true true",
                ])
            // Many at once: as many callbacks as events, and the value is the one that was told last by number.
            await withTaskGroup(of: Void.self) { group in
                for task in 0..<4 {
                    group.addTask {
                        for step in 0..<50 {
                            switch (task + step) % 4 {
                            case 0: _ = channel.value.setVideoSoftMute(step % 2 == 0)
                            case 1: _ = channel.value.setAudioSoftMute(step % 3 == 0)
                            case 2: channel.value.senderStream?.videoEnabled = step % 2 == 1
                            default: channel.value.senderStream?.audioEnabled = step % 5 == 0
                            }
                        }
                    }
                }
            }
            #expect(channel.value.setVideoSoftMute(true) == nil && !stream.videoEnabled)
            #expect(channel.value.setVideoSoftMute(false) == nil && stream.videoEnabled)
            let callbacks = witness.entries.filter { $0.hasPrefix("video ") || $0.hasPrefix("audio ") }
            let switches = witness.events.read().filter { $0.isEnabled != nil }
            #expect(callbacks.count == switches.count)
            // They alternate: on at first and on at last.
            #expect(
                callbacks.filter { $0 == "video false" }.count == callbacks.filter { $0 == "video true" }.count)
            // What the settings forbid is refused with their words.
            do {
                try await channel.value.setVideoHardMute(true)
                Issue.record("a camera that must not be touched was muted")
            } catch {
                #expect(error.localizedDescription == "MediaChannel error (cameraSettings.isEnabled is false)")
            }
            channel.value.disconnect(error: nil)
            #expect(await witness.ended())
            let numbers = witness.events.read().map(\.sequence)
            #expect(Set(numbers) == Set((1...UInt64(numbers.count))))
        }
    }

    // MARK: Several connections (3.13)

    @Test func manyConnectionsOfOneInstanceEndEachInItsOwnWay() async throws {
        try await withServer { try await self.manyConnections(to: $0) }
    }

    private func manyConnections(to server: SoraServer) async throws {
        let sora = Sora()
        let journal = Journal()
        sora.handlers.onAddMediaChannel = { _ in journal.add("added") }
        sora.handlers.onRemoveMediaChannel = { _ in journal.add("removed") }
        sora.handlers.onConnect = { channel, _ in journal.add(channel == nil ? "failed" : "connected") }
        sora.handlers.onDisconnect = { _, _ in journal.add("disconnected") }
        let events = sora.subscribeEvents(bufferingPolicy: .unbounded)
        let count = 24
        for number in 0..<count {
            var configuration = LiveClient.messaging(server) { $0.channelId = "room \(number % 5)" }
            if number % 4 == 3 { configuration.urlCandidates = [URL(string: "ws://127.0.0.1:1/signaling")!] }
            let journal = journal
            let terminal = Locked(0)
            configuration.mediaChannelHandlers.onConnect = { _ in
                if terminal.read() > 0 { journal.add("late") }
            }
            configuration.mediaChannelHandlers.onDisconnect = { _ in
                terminal.withLock { $0 += 1 }
                journal.add("end \(number) \(terminal.read())")
            }
            let room = configuration.channelId
            func act(_ channel: MediaChannel?, _ error: (any Error)?) {
                switch number % 4 {
                case 0: channel?.disconnect(error: nil)
                case 1:
                    let id = channel?.connectionId ?? ""
                    Task { await server.disconnect(channelID: room, connectionID: id) }
                default: break
                }
            }
            let task = sora.connect(configuration: configuration, handler: act)
            if number % 4 == 2 { task.cancel() }
        }
        #expect(sora.mediaChannels.count <= count)
        #expect(await journal.wait(seconds: 30) { $0.filter { $0.hasPrefix("end ") }.count == count })
        #expect(sora.mediaChannels.isEmpty && !journal.entries.contains("late"))
        for number in 0..<count { #expect(journal.entries.contains("end \(number) 1")) }
        var seen: [SoraEvent] = []
        for await event in events {
            seen.append(event)
            if seen.filter({ $0.kind == .disconnected }).count == count { break }
        }
        // Each event of the instance has its callback.
        for (kind, callback) in [
            (SoraEventKind.mediaChannelAdded, "added"), (.mediaChannelRemoved, "removed"),
            (.connected, "connected"), (.connectFailed, "failed"), (.disconnected, "disconnected"),
        ] {
            #expect(
                seen.filter { $0.kind == kind }.count == journal.entries.filter { $0 == callback }.count,
                "\(callback)")
        }
        #expect(seen.filter { $0.kind == .connected || $0.kind == .connectFailed }.count == count)
        #expect(Set(seen.map(\.sequence)) == Set(1...UInt64(seen.count)))
    }
}
