import Foundation
import LocalSora
import SoraPeer
import SoraSDP
import SoraSecureTransport
import SoraWire
import Testing

import struct SoraMessages.OfferMessage

@testable import Sora

/// What applications are promised about streams, sound and renderers.
@Suite(.serialized, .leavesNoObjects) struct MediaPromiseTests {
    private func remote(_ video: RecordingTrack? = RecordingTrack(), audio: RecordingTrack? = nil) -> ConnectedStream {
        ConnectedStream(streamId: "s", isLocal: false, core: nil, video: video, audio: audio)
    }
    private func frame(_ time: Int64) -> VideoFrame {
        .native(
            capturer: nil,
            frame: RTCVideoFrame(buffer: RTCI420Buffer(width: 4, height: 2), rotation: ._0, timeStampNs: time))
    }

    private final class Screen: VideoRenderer {
        let journal = Journal()
        private func note(_ text: String) { journal.add(isOnMainQueue() ? text : "\(text) off the main queue") }
        func onChange(size: CGSize) { note("size") }
        func render(videoFrame: VideoFrame?) { note("frame \(videoFrame?.timestamp?.value ?? -1)") }
        func onDisconnect(from: MediaChannel?) { note("disconnect") }
        func onAdded(from: any MediaStream) { note("added") }
        func onRemoved(from: any MediaStream) { note("removed") }
        func onSwitch(video: Bool) { note("video \(video)") }
        func onSwitch(audio: Bool) { note("audio \(audio)") }
    }

    // api 5.50
    @Test(.needsCodecs, arguments: [true, false]) func stereoIsAskedForInTheAnswerWhenTheSettingSaysSo(isWanted: Bool)
        throws
    {
        let data = try #require(Fixtures.signaling("offer-template.json"))
        let json = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
        // The template is for one who sends.
        let sdp = try #require(json["sdp"] as? String).replacing("a=recvonly", with: "a=sendonly")
        let offer = OfferMessage(sdp: sdp, connectionID: "c")
        var settings = Stage.configuration(.recvonly)
        settings.audioStereoOutputEnabled = isWanted
        let peer = PeerConnection(
            configuration: PeerConfiguration(
                offer, settings: try ConfigurationSnapshot(settings), certificate: try DTLSCertificate.selfSigned(),
                now: .zero), now: .zero)
        try peer.acceptOffer(SessionDescription(parsing: offer.sdp), now: .zero)
        let answer = try peer.makeAnswer(now: .zero)
        let audio = try #require(answer.media.first { $0.kind == .audio })
        let opus = try #require(audio.codecs.first { $0.name.lowercased() == "opus" })
        #expect(opus.formatParameters["stereo"] == (isWanted ? "1" : nil))
    }

    // api 5.51
    @Test func comingBackFromTheSpeakerResetsTheOverride() throws {
        let session = RTCAudioSession()
        let modes: [AudioMode] = [
            .voiceChat(output: .default), .default(category: .playAndRecord, output: .default),
            .default(category: .playback, output: .default),
        ]
        for mode in modes {
            try AudioModeChange.apply(.voiceChat(output: .speaker), options: [], to: session)
            #expect(session.portOverride == .speaker && session.categoryOptions.contains(.defaultToSpeaker))
            try AudioModeChange.apply(mode, options: [], to: session)
            #expect(session.portOverride == .none && !session.categoryOptions.contains(.defaultToSpeaker), "\(mode)")
        }
    }

    // api 5.56
    @Test func renderersAreCalledOnTheMainQueueOnly() async {
        let stream = Transfer(remote(audio: RecordingTrack()))
        let (screen, next) = (Transfer(Screen()), Screen())
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { [self] in
                stream.value.videoRenderer = screen.value
                stream.value.receive(video: frame(1))
                stream.value.videoEnabled = false
                stream.value.audioEnabled = false
                stream.value.videoEnabled = true
                continuation.resume()
            }
        }
        await mainQueueTurn()
        await withTaskGroup(of: Void.self) { group in
            for time in 2..<40 as Range<Int64> {
                group.addTask { [self] in stream.value.receive(video: frame(time)) }
            }
        }
        let last = Transfer(next)
        await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                stream.value.videoRenderer = last.value
                stream.value.terminate()
                continuation.resume()
            }
        }
        await mainQueueTurn()
        let told = screen.value.journal.entries
        #expect(!told.contains { $0.hasSuffix("off the main queue") })
        #expect(Array(told.prefix(6)) == ["added", "size", "frame 1", "video false", "audio false", "video true"])
        #expect(told.last == "removed")
        #expect(next.journal.entries == ["added", "disconnect"])
    }

    // api 5.57
    @Test func theSameRendererAgainKeepsThePicture() async {
        let track = RecordingTrack()
        let stream = remote(track)
        let screen = Screen()
        stream.videoRenderer = screen
        stream.receive(video: frame(1))
        await mainQueueTurn()
        stream.videoRenderer = screen
        stream.receive(video: frame(2))
        await mainQueueTurn()
        #expect(screen.journal.entries == ["added", "size", "frame 1", "frame 2"])
        // Decoding was not interrupted either.
        #expect(track.journal.entries == ["watched true"])
        #expect(stream.videoRenderer === screen)
    }
}
