import Foundation
import LocalSora
import SoraLocking
import Testing

@testable import Sora

/// What applications are promised about threads and about state of the process.
@Suite(.serialized, .leavesNoObjects) struct ConcurrencyPromiseTests {
    // api 5.69
    @Test func handlersMayBeSetWhileTheyAreDelivered() async throws {
        let stage = Stage()
        stage.sora.connect(configuration: Stage.configuration()) { _, _ in }
        let channel = Transfer(try #require(stage.sora.mediaChannels.first))
        let driver = try #require(await stage.driver())
        let heard = Locked<[String: Int]>([:])
        func install(_ name: String) {
            let handlers = channel.value.handlers
            handlers.onDataChannelMessage = { _, _, _ in heard.withLock { $0[name, default: 0] += 1 } }
            handlers.onReceiveSignalingJSON = { _ in heard.withLock { $0[name, default: 0] += 1 } }
        }
        install("first")
        let isOver = Locked(false)
        async let writing: Void = withTaskGroup(of: Void.self) { group in
            for number in 0..<3 {
                group.addTask {
                    while !isOver.read() {
                        let handlers = channel.value.handlers
                        handlers.onDataChannelMessage = { _, _, _ in heard.withLock { $0["\(number)", default: 0] += 1 }
                        }
                        handlers.onReceiveSignalingJSON = { _ in heard.withLock { $0["\(number)", default: 0] += 1 } }
                        handlers.onConnect = nil
                        // The whole object may be exchanged, too.
                        let others = MediaChannelHandlers()
                        others.onDataChannelMessage = handlers.onDataChannelMessage
                        others.onReceiveSignalingJSON = handlers.onReceiveSignalingJSON
                        channel.value.handlers = others
                        await Task.yield()
                    }
                }
            }
        }
        for number in 0..<1_000 {
            driver.core.deliver(.dataChannelMessage(label: "#a", data: Data([1])))
            driver.core.deliver(.signalingText("\(number)"))
        }
        await driver.core.deliveries.run {}
        isOver.write(true)
        await writing
        // Each delivery went to exactly one handler, an old or a new one.
        #expect(heard.read().values.reduce(0, +) == 2_000)
        channel.value.disconnect(error: nil)
    }

    // api 5.73
    @Test func kindsOfEventsAreValuesThatMayGrow() {
        let kinds: [(SoraEventKind, String)] = [
            (.connected, "connected"), (.connectFailed, "connectFailed"), (.disconnected, "disconnected"),
            (.mediaChannelAdded, "mediaChannelAdded"), (.mediaChannelRemoved, "mediaChannelRemoved"),
            (.audioRouteChanged, "audioRouteChanged"), (.streamAdded, "streamAdded"),
            (.streamRemoved, "streamRemoved"), (.videoEnabledChanged, "videoEnabledChanged"),
            (.audioEnabledChanged, "audioEnabledChanged"), (.signalingReceivedJSON, "signalingReceivedJSON"),
            (.dataChannelOpened, "dataChannelOpened"), (.dataChannelAvailable, "dataChannelAvailable"),
            (.dataChannelMessage, "dataChannelMessage"),
        ]
        for (kind, name) in kinds { #expect(kind.rawValue == name && kind == SoraEventKind(rawValue: name)) }
        #expect(Set(kinds.map(\.0)).count == kinds.count)
        // One that this version does not know is as good a value, and a switch has a place for it.
        let future = SoraEventKind(rawValue: "cameraTurnedIntoAPumpkin")
        switch future {
        case .connected, .disconnected: Issue.record("another kind")
        default: #expect(future.rawValue == "cameraTurnedIntoAPumpkin")
        }
    }
}

extension LoggingTests {
    // api 5.70
    @Test func theHandlerOfTheLogMayCallEverythingBack() async throws {
        let former = Logger.shared
        let logger = Logger()
        logger.level = .trace
        logger.groups = [.channels, .connectionTimer, .videoCapturer, .videoRenderer, .user]
        logger.destination = .none
        let calls = Journal()
        let channelSlot = Locked<Transfer<MediaChannel>?>(nil)
        logger.onOutputHandler = { [unowned logger] log in
            calls.add(log.type.description)
            // A message of its own would lead back here for ever.
            guard log.type.description != "inner" else { return }
            Logger.info(type: .user("inner"), message: "inner")
            logger.level = .trace
            logger.groups = logger.groups
            _ = (CameraVideoCapturer.current, CameraVideoCapturer.handlers, DeviceInfo.current, Sora.logLevel)
            _ = (RTCAudioSession.sharedInstance().category, Sora.shared.usesManualAudio)
            guard let channel = channelSlot.read()?.value else { return }
            _ = (
                channel.state, channel.streams, channel.connectionId, channel.native?.connectionState, channel.handlers
            )
            _ = channel.sendMessage(label: "#spam", data: Data())
            _ = channel.setAudioHardMute(false)
            _ = channel.setVideoSoftMute(false)
            channel.getStats { _ in }
            channel.handlers.onDataChannel = channel.handlers.onDataChannel
            _ = channel.subscribeEvents()
        }
        Logger.shared = logger
        defer { Logger.shared = former }
        try await withServer { server in
            var configuration = LiveClient.messaging(server)
            configuration.audioEnabled = true
            let client = LiveClient(configuration)
            channelSlot.write(Transfer(client.channel))
            #expect(await client.isReadyForMessages())
            await client.leave()
            let failing = LiveClient(
                Configuration(url: URL(string: "ws://127.0.0.1:1/signaling")!, channelId: "c", role: .sendrecv))
            channelSlot.write(Transfer(failing.channel))
            #expect(await failing.journal.wait(seconds: 15) { $0.contains { $0.hasPrefix("disconnect") } })
        }
        #expect(calls.entries.contains("SignalingChannel") && calls.entries.contains("inner"))
        logger.onOutputHandler = nil
    }

    // api 5.70
    @Test func aMicrophoneThatFailsIsLoggedOutsideOfItsLock() async {
        let formerMicrophone = ConnectionMicrophone.backend.read()
        let former = Logger.shared
        let device = ScriptedMicrophone()
        device.failsToStart.write(true)
        ConnectionMicrophone.backend.write(device)
        let logger = Logger()
        logger.destination = .none
        Logger.shared = logger
        defer {
            Logger.shared = former
            ConnectionMicrophone.backend.write(formerMicrophone)
        }
        let microphone = ConnectionMicrophone(isHardMuted: false, session: RTCAudioSession())
        let journal = Journal()
        logger.onOutputHandler = { log in
            guard log.message.contains("cannot open the microphone") else { return }
            // As an application would that reacts to the failure.
            journal.add(microphone.setHardMute(true)?.localizedDescription ?? "muted")
        }
        let stream = Transfer(
            ConnectedStream(streamId: "s", isLocal: true, core: nil, video: nil, audio: RecordingTrack()))
        microphone.open(for: stream.value)
        #expect(await journal.wait(for: "muted"))
        microphone.close()
        await audioQueueTurn()
        logger.onOutputHandler = nil
    }

    // api 5.72
    @Test func deviceInfoNeedsNoMainThread() async {
        let (journal, gate) = (Journal(), DispatchSemaphore(value: 0))
        DispatchQueue.main.async {
            journal.add("main is blocked")
            gate.wait()
        }
        #expect(await journal.wait(for: "main is blocked"))
        Thread.detachNewThread {
            journal.add(DeviceInfo.read().description)
            journal.add(DeviceInfo.current.description)
            // What connecting reads of it, too.
            journal.add(SignalingConnect(Stage.configuration(), sdp: nil, redirect: false).environment ?? "nil")
        }
        let isRead = await journal.wait { $0.count == 4 }
        gate.signal()
        #expect(isRead)
        let info = DeviceInfo.current
        #expect(journal.entries.dropFirst().allSatisfy { $0 == info.description })
        #expect(info.description == "\(info.machineName); \(info.systemName) \(info.systemVersion)")
    }

    // api 5.71
    @Test func stateOfTheProcessIsOwnedAndLocked() async {
        let logger = Logger()
        logger.destination = .none
        let bench = CameraBench()
        let formerInfo = DeviceInfo.current
        let front = Transfer(bench.system.capturer(at: .front)!)
        let format = Transfer(CameraVideoCapturer.format(width: 1280, height: 720, for: front.value.device)!)
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<4 {
                group.addTask {
                    for round in 0..<200 {
                        logger.level = number % 2 == 0 ? .debug : .error
                        logger.groups = number % 2 == 0 ? [.user] : [.channels, .user]
                        logger.onOutputHandler = { _ in _ = (number, round) }
                        #expect(logger.groups.count <= 2)
                        let text = String(repeating: "\(number)", count: 40)
                        DeviceInfo.current = DeviceInfo(machineName: text, systemName: text, systemVersion: text)
                        let info = DeviceInfo.current
                        #expect(info.machineName == info.systemName && info.systemName == info.systemVersion)
                        bench.system.handlers = CameraVideoCapturerHandlers()
                        if round % 50 == 0 {
                            bench.system.start(front.value, format: format.value, frameRate: 30) { _ in }
                            bench.system.stop(front.value) { _ in }
                        }
                        if let current = bench.system.current { #expect(current === front.value) }
                    }
                }
            }
        }
        await bench.turn()
        DeviceInfo.current = formerInfo
        #expect(bench.system.current == nil)
        // Of the settings nothing is kept in the process: two connections have their own simulcast.
        let settings = [true, false].map { isOn in
            var configuration = Stage.configuration(.sendonly)
            configuration.simulcastEnabled = isOn
            return try? ConfigurationSnapshot(configuration)
        }
        #expect(settings.map { $0?.simulcastEnabled } == [true, false])
        #expect(settings.map { $0?.connectMessage.text.contains(#""simulcast":true"#) } == [true, false])
    }
}
