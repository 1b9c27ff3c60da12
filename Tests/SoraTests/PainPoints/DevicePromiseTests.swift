import Foundation
import LocalSora
import SoraLocking
import Testing

import struct SoraFrames.AudioFrame

@testable import Sora
@testable import SoraMedia

// Devices are one for the process, like the logger, and so these tests run one after the other with the logger's.
extension LoggingTests {
    /// What applications are promised about the devices of the process, which these tests replace.
    @Suite struct DevicePromiseTests {
        private let microphone = ScriptedMicrophone()

        /// Runs `body` with devices that the test holds in its hands.
        private func withDevices(
            _ cameras: ScriptedCameras = ScriptedCameras([]), _ screen: ScriptedScreen = ScriptedScreen(),
            speaker: ScriptedSpeaker = ScriptedSpeaker(), _ body: () async throws -> Void
        ) async rethrows {
            let former = (
                ConnectionMicrophone.backend.exchange(microphone), TrackSpeaker.backend.exchange(speaker),
                CameraSystem.shared.backend, ScreenCaptureOwner.shared.backend
            )
            CameraSystem.shared.backend = cameras
            ScreenCaptureOwner.shared.backend = screen
            defer {
                ConnectionMicrophone.backend.write(former.0)
                TrackSpeaker.backend.write(former.1)
                CameraSystem.shared.backend = former.2
                ScreenCaptureOwner.shared.backend = former.3
            }
            try await body()
        }

        /// A connected channel with its local stream.
        private func connected(_ stage: Stage) async throws -> (ScriptedDriver, MediaChannel, Transfer<ConnectedStream>)
        {
            let configuration = Stage.configuration()
            stage.record(configuration.mediaChannelHandlers)
            stage.sora.connect(configuration: configuration) { _, _ in }
            let channel = try #require(stage.sora.mediaChannels.first)
            let driver = try #require(await stage.driver())
            let local = Transfer(
                ConnectedStream(
                    streamId: "mainStream", isLocal: true, core: driver.core, video: RecordingTrack(),
                    audio: RecordingTrack()))
            driver.takeOffer()
            driver.core.deliver(.streamAdded(local.value))
            driver.core.deliver(.connected)
            #expect(await stage.journal.wait(for: "channel.onConnect nil"))
            return (driver, channel, local)
        }

        // api 5.9
        @Test(arguments: ["transport", "microphone", "screen", "camera"])
        func theStateIsDisconnectedOnlyWhenEverythingIsReleased(held: String) async throws {
            let screen = ScriptedScreen()
            try await withDevices(ScriptedCameras([]), screen) {
                let stage = Stage()
                let (driver, channel, local) = try await connected(stage)
                driver.core.microphone.open(for: local.value)
                try await channel.startScreenCapture()
                await audioQueueTurn()
                #expect(microphone.journal.entries == ["open"])
                let (gate, screenGate) = (DispatchSemaphore(value: 0), OneShot<Void>())
                switch held {
                case "transport": driver.holdsEnd.write(true)
                case "microphone": microphone.stopGate.write(gate)
                case "screen": screen.stopGate.write(screenGate)
                default: CameraSystem.shared.perform { gate.wait() }
                }
                channel.disconnect(error: nil)
                // Everything but what is held has had time to go.
                switch held {
                case "microphone": #expect(await microphone.journal.wait(for: "closing"))
                case "transport": #expect(await driver.journal.wait(for: "end"))
                default: #expect(await screen.journal.wait(for: "stop"))
                }
                if held != "camera" {
                    // The camera's release is asked for behind the screen's: it may come after the first turn.
                    for _ in 0..<2 { await CameraSystem.shared.turn() }
                }
                await driver.core.deliveries.run {}
                #expect(channel.state == .disconnecting)
                #expect(!stage.journal.entries.contains { $0.hasPrefix("channel.onDisconnect") })
                switch held {
                case "transport": driver.finishEnd()
                case "screen": screenGate.settle(.success(()))
                default: gate.signal()
                }
                #expect(await stage.journal.wait(for: "channel.onDisconnect ok 1000 NO-ERROR"))
                #expect(channel.state == .disconnected && !channel.isScreenCaptureActive())
                #expect(microphone.journal.entries == ["open", "closing", "closed"])
            }
        }

        // api 5.9
        @Test func aCameraOpenedBeforeItsStreamWasToldIsClosedToo() async throws {
            let device = ScriptedCameras.device("f", .front, [(1280, 720, 30)])
            let cameras = ScriptedCameras([device])
            try await withDevices(cameras) {
                let stage = Stage()
                let (driver, channel, _) = try await connected(stage)
                // A handler is busy, so that the stream cannot be told yet.
                let gate = DispatchSemaphore(value: 0)
                driver.core.deliveries.enqueue { gate.wait() }
                let late = Transfer(
                    ConnectedStream(streamId: "late", isLocal: true, core: driver.core, video: RecordingTrack()))
                driver.core.deliver(.streamAdded(late.value))
                driver.core.camera.open(.default, for: late.value)
                #expect(await cameras.journal.wait(for: "open f 1280x720@30"))
                channel.disconnect(error: nil)
                #expect(await cameras.journal.wait(for: "close"))
                gate.signal()
                #expect(await stage.journal.wait(for: "channel.onDisconnect ok 1000 NO-ERROR"))
                #expect(CameraSystem.shared.current == nil)
            }
        }

        // api 5.52
        @Test func playoutDoesNotDependOnACategoryForCapture() async {
            let speaker = ScriptedSpeaker()
            await withDevices(speaker: speaker) {
                let categories: [AVAudioSession.Category] = [
                    .ambient, .soloAmbient, .playback, .playAndRecord, .multiRoute, .record,
                ]
                let session = RTCAudioSession()
                // Out of the box, too.
                let first = TrackSpeaker(RemoteAudio(wake: {}), session: session)
                await audioQueueTurn()
                #expect(speaker.journal.entries == ["open"])
                first.close()
                for category in categories {
                    await audioQueueTurn()
                    let before = speaker.journal.entries.filter { $0 == "open" }.count
                    try? session.setCategory(category, with: [])
                    let audio = RemoteAudio(wake: {})
                    let track = TrackSpeaker(audio, session: session)
                    await audioQueueTurn()
                    let isOpen = speaker.journal.entries.filter { $0 == "open" }.count == before + 1
                    #expect(isOpen == (category != .record), "\(category)")
                    audio.deliver(.silence(samplesPerChannel: 480, channels: 2, timestamp: 0))
                    #expect((speaker.journal.entries.last == "play 2") == isOpen)
                    track.close()
                    await audioQueueTurn()
                }
            }
        }

        #if Media
        private func live(_ server: SoraServer, _ role: Role, _ change: (inout Configuration) -> Void = { _ in }) async
            -> LiveClient
        {
            var configuration = Configuration(
                url: URL(string: server.signalingURL)!, channelId: "devices", role: role)
            configuration.videoEnabled = false
            change(&configuration)
            let client = LiveClient(configuration)
            #expect(await client.connected())
            await audioQueueTurn()
            return client
        }

        // api 5.47
        @Test func clientsThatOnlyReceiveNeverOpenTheMicrophone() async throws {
            try await withDevices {
                try await withServer { server in
                    let sender = await live(server, .sendonly) { $0.initialMicrophoneEnabled = false }
                    for stereo in [false, true] {
                        let receiver = await live(server, .recvonly) { $0.audioStereoOutputEnabled = stereo }
                        #expect(
                            await receiver.journal.wait(for: "add \(sender.channel.connectionId ?? "")", seconds: 20))
                        #expect(
                            receiver.channel.setAudioHardMute(false)?.localizedDescription
                                == "MediaChannel error (role is not sender)")
                        await audioQueueTurn()
                        await receiver.leave()
                    }
                    await sender.leave()
                }
                #expect(microphone.journal.entries == [])
            }
        }

        // api 5.48
        @Test func clientsThatSendOpenTheMicrophoneUnlessItIsOff() async throws {
            try await withDevices {
                try await withServer { server in
                    for role in [Role.sendonly, .sendrecv] {
                        let before = microphone.journal.entries.count
                        let client = await live(server, role)
                        #expect(await microphone.journal.wait { $0.count == before + 1 })
                        await client.leave()
                        #expect(Array(microphone.journal.entries[before...]) == ["open", "closing", "closed"])
                    }
                    let before = microphone.journal.entries.count
                    let muted = await live(server, .sendonly) { $0.initialMicrophoneEnabled = false }
                    #expect(microphone.journal.entries.count == before)
                    // It opens when it is wanted.
                    #expect(muted.channel.setAudioHardMute(false) == nil)
                    #expect(microphone.journal.entries.last == "open")
                    await muted.leave()
                    let silent = await live(server, .sendonly) {
                        $0.audioEnabled = false
                        $0.videoEnabled = true
                        $0.initialCameraEnabled = false
                    }
                    await silent.leave()
                    #expect(microphone.journal.entries.count == before + 3)
                }
            }
        }
        #endif
    }
}
