#if Media
import Foundation
import LocalSora
import SoraLocking
import TestSupport
import Testing

import enum SoraFrames.FrameCounter
import struct SoraFrames.TestPattern

@testable import Sora

/// Video and sound from one client to another through the local server.
@Suite(.serialized, .leavesNoObjects) struct LiveMediaTests {
    private final class Screen: VideoRenderer {
        let journal = Journal()
        let numbers = Locked<[UInt32]>([])
        func onChange(size: CGSize) { journal.add("size \(Int(size.width))x\(Int(size.height))") }
        func render(videoFrame: VideoFrame?) {
            guard case .native(_, let frame)? = videoFrame else { return }
            let buffer = frame.buffer.toI420().storage
            let number = FrameCounter.read(from: buffer)
            if let number { numbers.withLock { $0.append(number) } }
            journal.add(number == nil ? "blank" : "frame")
        }
        func onDisconnect(from: MediaChannel?) { journal.add("disconnect") }
        func onAdded(from: any MediaStream) { journal.add("added") }
        func onRemoved(from: any MediaStream) { journal.add("removed") }
        func onSwitch(video: Bool) { journal.add("video \(video)") }
        func onSwitch(audio: Bool) {}
    }
    private final class Ear: RTCAudioTrackSink {
        let journal = Journal()
        /// The loudest sample.
        let peak = Locked(0)
        func onData(
            _ audioData: Data, bitsPerSample: Int, sampleRate: Int, numberOfChannels: Int, numberOfFrames: Int
        ) {
            let loudest = audioData.withUnsafeBytes { bytes in
                stride(from: 0, to: bytes.count - 1, by: 2).map { offset in
                    abs(Int(bytes.loadUnaligned(fromByteOffset: offset, as: Int16.self)))
                }.max() ?? 0
            }
            peak.withLock { $0 = max($0, loudest) }
            journal.add("\(sampleRate) \(numberOfFrames) \(loudest > 2_000 ? "loud" : "quiet")")
        }
    }

    private func configuration(_ server: SoraServer, _ role: Role) -> Configuration {
        var configuration = Configuration(url: URL(string: server.signalingURL)!, channelId: "media", role: role)
        configuration.videoCodec = .vp8
        configuration.initialCameraEnabled = false
        configuration.initialMicrophoneEnabled = false
        return configuration
    }

    /// Sends a test pattern and a tone until told to stop.
    private func play(into stream: any MediaStream) -> Task<Void, Never> {
        let pattern = TestPattern(width: 320, height: 180, framerate: 30)
        let target = Transfer(stream)
        return Task.detached {
            var number: UInt32 = 0
            let clock = ContinuousClock()
            let start = clock.now
            while !Task.isCancelled {
                let buffer = pattern.draw(number)
                target.value.send(
                    videoFrame: .native(
                        capturer: nil,
                        frame: RTCVideoFrame(
                            buffer: RTCI420Buffer(buffer), rotation: ._0,
                            timeStampNs: Int64(number) * 33_333_333)))
                for part in 0..<3 {
                    let samples = (0..<480).map { index in
                        let time = Double((Int(number) * 3 + part) * 480 + index) / 48_000
                        return Int16(12_000 * sin(time * 2 * .pi * 440))
                    }
                    (target.value as? ConnectedStream)?.send(
                        audio: AudioChunk(samples: samples, sampleRate: 48_000, channels: 1))
                }
                number += 1
                try? await clock.sleep(until: start + .milliseconds(33 * Int(number)))
            }
        }
    }

    @Test func pictureAndSoundArrive() async throws {
        try await withServer { server in
            let receiver = LiveClient(configuration(server, .recvonly))
            #expect(await receiver.connected())
            let sender = LiveClient(configuration(server, .sendonly))
            #expect(await sender.connected())
            let local = try #require(sender.channel.senderStream)
            #expect(local.hasVideoTrack && local.hasAudioTrack && local.streamId == "mainStream")
            let playing = play(into: local)
            defer { playing.cancel() }
            let id = try #require(sender.channel.connectionId)
            #expect(await receiver.journal.wait(for: "add \(id)", seconds: 20))
            let remote = try #require(receiver.channel.receiverStreams.first)
            #expect(remote.streamId == id)
            let screen = Screen()
            let ear = Ear()
            remote.videoRenderer = screen
            remote.addAudioTrackSink(ear)
            #expect(await screen.journal.wait(seconds: 30) { $0.filter { $0 == "frame" }.count >= 30 })
            #expect(await ear.journal.wait(seconds: 20) { $0.filter { $0 == "48000 480 loud" }.count >= 20 })
            #expect(screen.journal.entries.prefix(2) == ["added", "size 320x180"])
            let numbers = screen.numbers.read()
            #expect(numbers.count >= 25)
            #expect(zip(numbers, numbers.dropFirst()).allSatisfy { $0 < $1 })

            let snapshot = try await receiver.channel.getStatsSnapshot()
            #expect(snapshot.entries.contains { $0.type == "inbound-rtp" })
            let sent = try await sender.channel.getStatsSnapshot()
            #expect(sent.entries.contains { $0.type == "outbound-rtp" && $0.values["packetsSent"] != .decimal(0) })

            for report in [snapshot, sent] {
                let codecs = report.entries.filter { $0.type == "codec" }.map { $0.values["mimeType"] }
                #expect(codecs.contains(.string("video/VP8")) && codecs.contains(.string("audio/opus")), "\(codecs)")
            }

            // Soft mute sends black; switching off at the receiver shows nothing.
            #expect(sender.channel.setVideoSoftMute(true) == nil)
            remote.videoEnabled = false
            #expect(await screen.journal.wait(for: "video false"))
            await sender.leave()
            #expect(await receiver.journal.wait(for: "remove \(id)", seconds: 20))
            #expect(await screen.journal.wait(for: "disconnect"))
            await receiver.leave()
        }
    }

    // api 5.46, 5.49
    @Test func switchingOnAgainResumesSendingAtTheSameLoudness() async throws {
        try await withServer { server in
            let receiver = LiveClient(configuration(server, .recvonly))
            #expect(await receiver.connected())
            let sender = LiveClient(configuration(server, .sendonly))
            #expect(await sender.connected())
            let local = try #require(sender.channel.senderStream)
            let playing = play(into: local)
            defer { playing.cancel() }
            #expect(await receiver.journal.wait(for: "add \(sender.channel.connectionId ?? "")", seconds: 20))
            let remote = try #require(receiver.channel.receiverStreams.first)
            let (screen, ear) = (Screen(), Ear())
            remote.videoRenderer = screen
            remote.addAudioTrackSink(ear)
            #expect(remote.remoteAudioVolume == 1)
            for round in 1...2 {
                #expect(await screen.journal.wait(seconds: 30) { $0.last == "frame" })
                #expect(await ear.journal.wait(seconds: 20) { $0.last == "48000 480 loud" })
                // Both ways to switch: the stream's properties, and the channel's soft mute.
                func set(_ isOn: Bool) {
                    if round == 1 {
                        local.videoEnabled = isOn
                        local.audioEnabled = isOn
                    } else {
                        #expect(sender.channel.setVideoSoftMute(!isOn) == nil)
                        #expect(sender.channel.setAudioSoftMute(!isOn) == nil)
                    }
                }
                set(false)
                #expect(await screen.journal.wait(seconds: 30) { $0.suffix(3) == ["blank", "blank", "blank"] })
                #expect(await ear.journal.wait(seconds: 20) { $0.suffix(5).allSatisfy { $0 == "48000 480 quiet" } })
                set(true)
            }
            #expect(await screen.journal.wait(seconds: 30) { $0.suffix(3) == ["frame", "frame", "frame"] })
            #expect(await ear.journal.wait(seconds: 20) { $0.suffix(5).allSatisfy { $0 == "48000 480 loud" } })
            // 12,000 was sent: nothing is amplified, nothing is clipped.
            let peak = ear.peak.read()
            #expect(peak > 8_000 && peak < 16_000, "\(peak)")
            await sender.leave()
            await receiver.leave()
        }
    }

    // api 5.38
    @Test func bitRatesBeyondReasonAreSentAtWhatEncodersTake() async throws {
        // The server's word counts before the setting.
        try await withServer({
            $0.script = { message in
                guard message.type == "offer" else { return [.pass] }
                let text = message.text.replacing(#/"(video|audio)_bit_rate":\d+/#) {
                    #""\#($0.output.1)_bit_rate":9223372036854775807"#
                }
                return [.send(text)]
            }
        }) { server in
            let receiver = LiveClient(configuration(server, .recvonly))
            #expect(await receiver.connected())
            let sender = LiveClient(configuration(server, .sendonly))
            #expect(await sender.connected())
            let playing = play(into: try #require(sender.channel.senderStream))
            defer { playing.cancel() }
            #expect(await receiver.journal.wait(for: "add \(sender.channel.connectionId ?? "")", seconds: 20))
            let (screen, ear) = (Screen(), Ear())
            let remote = try #require(receiver.channel.receiverStreams.first)
            remote.videoRenderer = screen
            remote.addAudioTrackSink(ear)
            #expect(await screen.journal.wait(seconds: 30) { $0.filter { $0 == "frame" }.count >= 10 })
            #expect(await ear.journal.wait(seconds: 20) { $0.contains("48000 480 loud") })
            await sender.leave()
            await receiver.leave()
        }
    }

    // api 5.53
    @Test func anyCombinationOfMediaConnects() async throws {
        try await withServer { server in
            for (video, audio) in [(true, true), (true, false), (false, true), (false, false)] {
                for role in [Role.sendonly, .recvonly, .sendrecv] {
                    var settings = configuration(server, role)
                    settings.videoEnabled = video
                    settings.audioEnabled = audio
                    settings.dataChannelSignaling = true
                    let client = LiveClient(settings)
                    #expect(await client.connected(), "\(role) video \(video) audio \(audio)")
                    if let stream = client.channel.senderStream {
                        #expect(stream.hasVideoTrack == video && stream.hasAudioTrack == audio)
                    } else {
                        #expect(role == .recvonly)
                    }
                    await client.leave()
                }
            }
        }
    }
}
#endif
