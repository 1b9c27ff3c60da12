import Foundation
import LocalSora
import SoraLocking
import Testing

@testable import Sora

/// What happens to a connection that stands, and how it ends (api 3.4 to 3.13), on the real engine.
@Suite struct LifeSequenceTests {
    private func settings(_ server: SoraServer, _ change: (inout Configuration) -> Void = { _ in }) -> Configuration {
        var configuration = LiveClient.messaging(server)
        change(&configuration)
        return configuration
    }

    /// Waits for the end of a connection that stood and compares both brackets.
    private func expectEnd(
        _ witness: Witness, _ raw: String, isPrefix: Bool = false, close: String? = nil, seconds: Double = 20,
        location: SourceLocation = #_sourceLocation
    ) async {
        #expect(await witness.ended(seconds: seconds), "\(witness.entries)", sourceLocation: location)
        let told = witness.entries.first { $0.hasPrefix("legacy ") }.map { String($0.dropFirst(7)) } ?? "nothing"
        if isPrefix {
            #expect(told.hasPrefix(raw), sourceLocation: location)
        } else {
            #expect(told == raw, sourceLocation: location)
        }
        #expect(
            witness.bracket == Witness.beginning + Witness.success + Witness.end(told, close ?? "error \(told)"),
            sourceLocation: location)
        #expect(witness.faults == [], sourceLocation: location)
    }

    private func ready(_ witness: Witness, location: SourceLocation = #_sourceLocation) async {
        #expect(await witness.connected(), sourceLocation: location)
        #expect((try? await witness.channel.waitUntilOpen(label: "#spam")) != nil, sourceLocation: location)
    }

    // MARK: Ends

    // 3.4: whatever is under way, the end is one; what comes after it is refused.
    @Test func theApplicationEndsAConnection() async throws {
        let wire = Interjection()
        try await withServer({ wire.install(in: &$0) { $0.type == "rpc" ? [.drop] : [.pass] } }) { server in
            let outcomes = Journal()
            let witness = Witness(settings(server)) { entry, channel in
                // Everything is released when the last handlers run.
                guard entry.hasPrefix("removed") || entry.hasPrefix("disconnect ") else { return }
                outcomes.add("\(entry) \(channel.state) \(channel.native?.connectionState.description ?? "-")")
                outcomes.add("send \(channel.sendMessage(label: "#spam", data: Data())?.localizedDescription ?? "nil")")
            }
            await ready(witness)
            #expect(await witness.journal.wait(for: "opened rpc"))
            let channel = Transfer(witness.channel)
            async let call: Void = {
                do {
                    _ = try await channel.value.sendableRPC(
                        method: RequestSimulcastRid.self, params: RequestSimulcastRidParams(rid: .r0), timeout: 60)
                } catch { outcomes.add("call \(error.localizedDescription)") }
            }()
            for await event in server.events() where event.kind == .rpc { break }
            channel.value.disconnect(error: SoraError.rpcTimeout)
            #expect(channel.value.state == .disconnecting)
            #expect(
                channel.value.sendMessage(label: "#spam", data: Data())?.localizedDescription
                    == "Messaging error: DataChannel is not open yet")
            channel.value.disconnect(error: nil)
            await call
            await expectEnd(witness, "RPC response timeout")
            #expect(
                outcomes.entries == [
                    "call RPC DataChannel is closed: user", "removed disconnected closed",
                    "send Messaging error: DataChannel is not open yet",
                    "disconnect error RPC response timeout disconnected closed",
                    "send Messaging error: DataChannel is not open yet",
                ])
            #expect(await server.connectionIDs(channelID: "room").isEmpty)
        }
    }

    // 3.5, first row: the WebSocket decides as long as signaling has not moved.
    @Test func aCloseFrameEndsAConnectionWithoutDataChannels() async throws {
        let wire = Interjection()
        try await withServer({ wire.install(in: &$0) }) { server in
            let witness = Witness(
                settings(server) {
                    $0.dataChannelSignaling = false
                    $0.dataChannels = nil
                    $0.audioEnabled = true
                    $0.role = .recvonly
                })
            #expect(await witness.connected())
            wire.say(.closeWebSocket(code: 4490, reason: "OVERLOADED"))
            await expectEnd(witness, "WebSocket is closed (4490 OVERLOADED)", close: "ok 4490 OVERLOADED")
        }
    }

    // 3.5: a close frame in the hybrid state ends the connection; the server hears of it over the data channel.
    @Test func aCloseFrameThatIsNotIgnoredEndsASwitchedConnection() async throws {
        let wire = Interjection()
        try await withServer({ wire.install(in: &$0) }) { server in
            let witness = Witness(settings(server))
            await ready(witness)
            wire.say(.closeWebSocket(code: 1000, reason: "BYE"))
            await expectEnd(witness, "WebSocket is closed (1000 BYE)", close: "ok 1000 BYE")
        }
    }

    // 3.6: without a close frame it is an error.
    @Test func aLostWebSocketThatIsNotIgnoredIsAnError() async throws {
        let wire = Interjection()
        try await withServer({ wire.install(in: &$0) }) { server in
            let witness = Witness(settings(server))
            await ready(witness)
            wire.say(.resetWebSocket)
            await expectEnd(witness, "WebSocket error (", isPrefix: true)
        }
    }

    // 3.5, second row and 3.8: once the server said so the WebSocket may go, by a close frame or without.
    @Test func anIgnoredWebSocketMayGoEitherWay() async throws {
        for action in [ScriptAction.closeWebSocket(code: 1000, reason: "BYE"), .resetWebSocket] {
            let wire = Interjection()
            try await withServer({
                wire.install(in: &$0)
                $0.ignoreDisconnectWebSocket = true
            }) { server in
                let witness = Witness(settings(server) { $0.ignoreDisconnectWebSocket = true })
                await ready(witness)
                wire.say(action)
                for await event in server.events() where event.kind == .webSocketClosed { break }
                // Signaling goes on over its data channel.
                try await server.push(channelID: "room", json: #"{"a":1}"#)
                #expect(await witness.journal.wait(for: "signaling push"))
                #expect(witness.channel.isAvailable)
                let id = try #require(witness.channel.connectionId)
                await server.disconnect(channelID: "room", connectionID: id, code: 4000, reason: "API")
                await expectEnd(witness, "DataChannel is closed (4000 API)", close: "ok 4000 API")
                #expect(witness.entries.contains("json close") && witness.entries.contains("signaling close"))
            }
        }
    }

    // 3.8: the setting alone ignores nothing; the server's word counts.
    @Test func theSettingAloneIgnoresNothing() async throws {
        let wire = Interjection()
        try await withServer({
            wire.install(in: &$0) { message in
                message.type == "switched"
                    ? [.send(edited(message.text) { $0["ignore_disconnect_websocket"] = nil })] : [.pass]
            }
        }) { server in
            let witness = Witness(settings(server) { $0.ignoreDisconnectWebSocket = true })
            await ready(witness)
            wire.say(.closeWebSocket(code: 4001, reason: "X"))
            await expectEnd(witness, "WebSocket is closed (4001 X)", close: "ok 4001 X")
        }
    }

    // 3.5, last row
    @Test func channelsThatCloseWithoutAWordAreAnOrdinaryEnd() async throws {
        try await withServer { server in
            let witness = Witness(settings(server))
            await ready(witness)
            await server.inject(Fault(.closeDataChannel(label: "#egg", after: .zero)))
            await expectEnd(witness, "nil", close: "ok 1000 NO-ERROR")
        }
    }

    // 3.6: silence of the network is noticed, waited for, and then an error with the documented text.
    @Test(.timeLimit(.minutes(2))) func aLostNetworkEndsAfterItsGrace() async throws {
        try await withServer { server in
            let witness = Witness(settings(server))
            await ready(witness)
            await server.inject(Fault(.vanish(after: .zero)))
            await expectEnd(
                witness, "PeerChannel error (peer connection state: disconnected)", seconds: 60)
        }
    }

    // 3.6
    @Test func closingThePeerConnectionIsAnOrdinaryEnd() async throws {
        try await withServer { server in
            let witness = Witness(settings(server))
            await ready(witness)
            witness.channel.native?.close()
            await expectEnd(witness, "nil", close: "ok 1000 NO-ERROR")
        }
    }

    // MARK: Data channels (3.11, 1.3.4 rules 8 and 9)

    @Test func dataChannelsOpenInTheDocumentedOrder() async throws {
        try await withServer { server in
            let calls = Journal()
            let witness = Witness(settings(server)) { entry, channel in
                guard entry == "opened rpc" else { return }
                let channel = Transfer(channel)
                Task {
                    do {
                        let answer = try await channel.value.sendableRPC(
                            method: SendablePutSignalingNotifyMetadata<[String: Int]>.self,
                            params: PutSignalingNotifyMetadataParams(metadata: ["a": 1]))
                        calls.add("\(answer?.result["a"] ?? 0)")
                    } catch { calls.add(error.localizedDescription) }
                }
            }
            await ready(witness)
            let other = Witness(settings(server))
            await ready(other)
            #expect(other.channel.sendMessage(label: "#spam", data: Data([1])) == nil)
            #expect(await witness.journal.wait(for: "e:dataChannelMessage #spam 1"))
            // Usable from the moment it is reported.
            #expect(await calls.wait { !$0.isEmpty })
            #expect(calls.entries == ["1"])
            let entries = witness.entries
            let labels = ["signaling", "notify", "push", "stats", "rpc", "#spam", "#egg"]
            for label in labels {
                #expect(entries.filter { $0 == "opened \(label)" }.count == 1, "\(label)")
                let opened = try #require(entries.firstIndex(of: "opened \(label)"))
                if let message = entries.firstIndex(where: { $0.hasPrefix("message \(label) ") }) {
                    #expect(opened < message)
                }
            }
            // Once, directly after the last of the application's labels.
            #expect(entries.filter { $0 == "available" }.count == 1)
            let last = try #require(entries.lastIndex { $0.hasPrefix("opened #") })
            #expect(entries[last + 2] == "available")
            for one in [witness, other] { one.channel.disconnect(error: nil) }
            await expectEnd(witness, "nil", close: "ok 1000 NO-ERROR")
            #expect(await other.ended())
        }
    }

    // 3.11: without labels of the application there is nothing to be available.
    @Test func withoutApplicationLabelsNothingBecomesAvailable() async throws {
        try await withServer { server in
            let witness = Witness(settings(server) { $0.dataChannels = nil })
            #expect(await witness.connected())
            try await witness.channel.waitUntilOpen(label: "rpc")
            #expect(await witness.journal.wait(for: "signaling switched"))
            #expect(
                witness.channel.sendMessage(label: "#spam", data: Data())?.localizedDescription
                    == "Messaging error: no DataChannel found: label => #spam")
            witness.channel.disconnect(error: nil)
            await expectEnd(witness, "nil", close: "ok 1000 NO-ERROR")
            #expect(!witness.entries.contains("available"))
        }
    }

    // 3.8, 3.10: a re-offer that comes over its data channel before `switched` has come is answered there.
    @Test func aReOfferDuringTheSwitchIsAnswered() async throws {
        try await withServer({
            $0.script = {
                $0.type == "switched" && $0.connectionID != "" && $0.index == 0 ? [.hold("switch")] : [.pass]
            }
        }) { server in
            let witness = Witness(
                settings(server) {
                    $0.audioEnabled = true
                    $0.role = .recvonly
                })
            #expect(await witness.connected())
            #expect(await witness.journal.wait(for: "opened #egg"))
            // Its own hold is let go at once.
            let sender = Witness(
                settings(server) {
                    $0.audioEnabled = true
                    $0.role = .sendonly
                    $0.initialMicrophoneEnabled = false
                })
            #expect(await sender.connected())
            #expect(await witness.journal.wait { $0.contains { $0.hasPrefix("e:streamAdded ") } })
            #expect(
                witness.channel.sendMessage(label: "#spam", data: Data())?.localizedDescription
                    == "Messaging error: DataChannel is not open yet")
            await server.release("switch")
            try await witness.channel.waitUntilOpen(label: "#spam")
            try await sender.channel.waitUntilOpen(label: "#spam")
            // Messages may be sent before the handler of `switched` has its turn.
            #expect(await witness.journal.wait(for: "signaling switched"))
            let entries = witness.entries
            let reOffer = try #require(entries.firstIndex(of: "json re-offer"))
            let added = try #require(entries.firstIndex { $0.hasPrefix("stream+ ") })
            let switched = try #require(entries.firstIndex(of: "json switched"))
            #expect(reOffer < added && added < switched)
            #expect(entries[added] == "stream+ \(sender.channel.connectionId ?? "")")
            // The stream goes with its sender, and is told.
            sender.channel.disconnect(error: nil)
            #expect(await sender.ended())
            #expect(await witness.journal.wait { $0.contains { $0.hasPrefix("e:streamRemoved ") } })
            #expect(witness.channel.streams.isEmpty)
            witness.channel.disconnect(error: nil)
            await expectEnd(witness, "nil", close: "ok 1000 NO-ERROR")
        }
    }

    // MARK: Redirect (3.9)

    /// A connection that is sent elsewhere while everything is under way.
    @Test func aLateRedirectVoidsWhatIsUnderWay() async throws {
        let wire = Interjection()
        try await withServer { target in
            try await withServer({ wire.install(in: &$0) { $0.type == "rpc" ? [.drop] : [.pass] } }) { first in
                let outcomes = Journal()
                let witness = Witness(settings(first) { $0.audioEnabled = true })
                await ready(witness)
                #expect(await witness.journal.wait(for: "opened rpc"))
                let channel = Transfer(witness.channel)
                let (oldPeer, oldId) = (channel.value.native, channel.value.connectionId)
                let old = try #require(channel.value.senderStream)
                async let call: Void = {
                    do {
                        _ = try await channel.value.sendableRPC(
                            method: RequestSimulcastRid.self, params: RequestSimulcastRidParams(rid: .r0), timeout: 60)
                    } catch { outcomes.add("call \(error.localizedDescription)") }
                }()
                for await event in first.events() where event.kind == .rpc { break }
                wire.say(.send(#"{"type":"redirect","location":"\#(target.signalingURL)"}"#))
                // Messages go on all the while: each is accepted by one of the transports or refused, and none gets lost in
                // between the two.
                let sending = Task.detached {
                    var accepted = 0
                    while !Task.isCancelled {
                        if channel.value.sendMessage(label: "#spam", data: Data([1])) == nil { accepted += 1 }
                        await Task.yield()
                        try? await Task.sleep(for: .milliseconds(1))
                    }
                    return accepted
                }
                await call
                #expect(outcomes.entries == ["call RPC DataChannel is closed: redirect"])
                #expect(await witness.journal.wait { $0.filter { $0 == "available" }.count == 2 })
                try await channel.value.waitUntilOpen(label: "#spam")
                sending.cancel()
                _ = await sending.value
                #expect(channel.value.state == .connected && channel.value.native !== oldPeer)
                #expect(channel.value.connectionId != oldId && oldPeer?.connectionState == .closed)
                #expect(channel.value.contactUrl?.absoluteString == first.signalingURL)
                #expect(channel.value.connectedUrl?.absoluteString == target.signalingURL)
                // The streams of before are gone without a word.
                #expect(channel.value.senderStream != nil && channel.value.senderStream !== old)
                #expect(channel.value.streams.count == 1)
                #expect(!witness.entries.contains { $0.hasPrefix("stream- ") })
                // Calls count from one again.
                let answer = try await channel.value.rpc(
                    method: PutSignalingNotifyMetadata<[String: Int]>.self,
                    params: PutSignalingNotifyMetadataParams(metadata: ["a": 1]))
                #expect(answer?.id == 1)
                channel.value.disconnect(error: nil)
                await expectEnd(witness, "nil", close: "ok 1000 NO-ERROR")
                let entries = witness.entries
                let redirect = try #require(entries.firstIndex(of: "json redirect"))
                #expect(entries[(redirect + 1)...].contains("signaling redirect"))
                #expect(entries.filter { $0 == "json offer" }.count == 2)
                // Once per label and offer.
                #expect(entries.filter { $0 == "opened #spam" }.count == 2)
                let epochs = Set(witness.events.read().map(\.transportEpoch))
                #expect(epochs == [0, 1])
                #expect(await first.connectionIDs(channelID: "room").isEmpty)
            }
        }
    }

    // 3.9: a disconnect or a cancellation during the redirect wins; the new server is not asked for anything.
    @Test(arguments: ["json redirect", "signaling redirect"], [true, false])
    func anEndDuringARedirectWins(_ moment: String, _ isCancelled: Bool) async throws {
        try await withServer { target in
            try await withServer({ $0.redirectLocation = target.signalingURL }) { first in
                let task = Locked<Transfer<ConnectionTask>?>(nil)
                let hasTask = DispatchSemaphore(value: 0)
                let witness = Witness(settings(first)) { entry, channel in
                    guard entry == moment else { return }
                    hasTask.wait()
                    if isCancelled { task.read()?.value.cancel() } else { channel.disconnect(error: nil) }
                }
                task.write(Transfer(witness.task))
                hasTask.signal()
                #expect(await witness.ended())
                let raw = isCancelled ? "Connection is cancelled" : "nil"
                #expect(
                    witness.bracket == Witness.beginning
                        + Witness.failure("Connection is cancelled", isCancelled ? "canceled" : "completed")
                        + Witness.end(raw, isCancelled ? "error \(raw)" : "ok 1000 NO-ERROR"))
                #expect(witness.faults == [])
                // An offer that was on its way is told and changes nothing.
                #expect(!witness.entries.contains { $0.hasPrefix("stream+") || $0.hasPrefix("opened") })
                #expect(witness.channel.native.map { $0.connectionState == .closed } ?? true)
                #expect(await target.connectionIDs(channelID: "room").isEmpty)
            }
        }
    }

    // 3.9: a redirect that leads nowhere ends as a failed attempt, or as a connection if it stood already.
    @Test func aRedirectThatLeadsNowhere() async throws {
        let nowhere = "ws://127.0.0.1:1/signaling"
        try await withServer({ $0.redirectLocation = nowhere }) { first in
            let witness = Witness(settings(first))
            #expect(await witness.ended())
            let raw = witness.entries.first { $0.hasPrefix("legacy ") }.map { String($0.dropFirst(7)) } ?? ""
            #expect(raw.hasPrefix("WebSocket error ("))
            #expect(
                witness.bracket == Witness.beginning + Witness.failure(raw, "completed")
                    + Witness.end(raw, "error \(raw)"))
            #expect(witness.events.read().last?.transportEpoch == 1)
        }
        let wire = Interjection()
        try await withServer({ wire.install(in: &$0) }) { first in
            let witness = Witness(settings(first))
            await ready(witness)
            wire.say(.send(#"{"type":"redirect","location":"\#(nowhere)"}"#))
            await expectEnd(witness, "WebSocket error (", isPrefix: true)
        }
    }

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
                settings(server) {
                    $0.audioEnabled = true
                    $0.videoEnabled = true
                    $0.cameraSettings.isEnabled = false
                    $0.initialMicrophoneEnabled = false
                })
            await ready(witness)
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
            var configuration = settings(server) { $0.channelId = "room \(number % 5)" }
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
