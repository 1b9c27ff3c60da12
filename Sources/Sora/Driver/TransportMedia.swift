internal import SoraClient
internal import SoraFrames
internal import SoraLocking
internal import SoraMedia
internal import SoraMessages
internal import SoraNetwork
internal import SoraPeer
internal import SoraWire

/// The media of one peer connection: ties the streams that the application sees to the pipelines. Confined to the
/// driver's loop.
final class TransportMedia {
    private let peer: PeerConnection
    private let session: MediaSession
    private var localVideo: (id: TransceiverID, track: LocalVideo)?
    private var localAudio: (id: TransceiverID, track: LocalAudio, settings: AudioEncoderSettings)?
    /// Remote streams by id, with what their transceivers bring.
    private var remotes: [String: Transfer<ConnectedStream>] = [:]
    private var tracks: [String: [RemoteStream.Track]] = [:]
    private var maximumBitrate: Int?
    private var content = VideoEncoderSettings.Content.motion
    /// What is played of the remote sound.
    private var speakers: [TransceiverID: TrackSpeaker] = [:]

    init(peer: PeerConnection, wake: @escaping @Sendable () -> Void) {
        self.peer = peer
        session = MediaSession(peer: peer, codecs: ClientCapabilities.codecs, wake: wake)
    }

    // MARK: Streams

    /// The local stream gets its tracks. They send once the answer is in force (``takeParameters()``).
    func attach(
        _ senders: AttachedSenders, to stream: ConnectedStream, settings: ConfigurationSnapshot, offer: OfferMessage?
    ) {
        if let id = senders.video {
            let track = LocalVideo()
            // Who wants to keep the resolution shows something to read.
            content = settings.degradationPreference == .maintainResolution ? .detail : .motion
            localVideo = (id, track)
            maximumBitrate = (offer?.videoBitRate ?? settings.videoBitRate).map(Self.bitsPerSecond)
            stream.attach(video: LocalVideoPort(track), audio: nil)
        }
        if let id = senders.audio {
            let track = LocalAudio()
            let bitrate = (offer?.audioBitRate ?? settings.audioBitRate).map(Self.bitsPerSecond)
            localAudio = (id, track, AudioEncoderSettings(bitrate: bitrate))
            stream.attach(video: nil, audio: LocalAudioPort(track))
        }
    }

    /// From kbit/s, within what encoders take, whatever the application or the server says.
    static func bitsPerSecond(_ kilobits: Int) -> Int { min(max(kilobits, 1), 1_000_000) * 1000 }

    /// Takes codec, layers and limits of the senders from the negotiation that has just ended.
    func takeParameters() {
        if let localVideo {
            if let transceiver = peer.transceiver(localVideo.id), transceiver.encodings.count == 1,
                transceiver.encodings[0].maximumBitrate == nil
            {
                transceiver.encodings[0].maximumBitrate = maximumBitrate
            }
            session.send(localVideo.track, on: localVideo.id, content: content)
        }
        if let localAudio { session.send(localAudio.track, on: localAudio.id, settings: localAudio.settings) }
    }

    func attach(_ remote: RemoteStream, to stream: ConnectedStream) {
        remotes[remote.id] = Transfer(stream)
        connect(remote)
    }

    /// Tracks of a stream came or went.
    func update(_ remote: RemoteStream) { connect(remote) }

    private func connect(_ remote: RemoteStream) {
        guard let stream = remotes[remote.id]?.value else { return }
        for old in tracks[remote.id] ?? [] where !remote.tracks.contains(old) {
            stream.detach(video: old.isVideo, audio: !old.isVideo)
            session.removeRemote(old.transceiver)
            speakers.removeValue(forKey: old.transceiver)?.close()
        }
        tracks[remote.id] = remote.tracks
        for track in remote.tracks {
            if track.isVideo {
                let port = RemoteVideoPort(session.remoteVideo(on: track.transceiver, sender: remote.id))
                stream.attach(video: port, audio: nil)
            } else {
                let audio = session.remoteAudio(on: track.transceiver, sender: remote.id)
                stream.attach(video: nil, audio: RemoteAudioPort(audio))
                if speakers[track.transceiver] == nil { speakers[track.transceiver] = TrackSpeaker(audio) }
            }
        }
    }

    func removeRemote(_ id: String) {
        for track in tracks.removeValue(forKey: id) ?? [] {
            session.removeRemote(track.transceiver)
            speakers.removeValue(forKey: track.transceiver)?.close()
        }
        remotes[id] = nil
    }

    // MARK: Driving

    func handle(_ output: PeerConnection.Output, now: Instant) { session.handle(output, now: now) }
    func process(now: Instant) { session.process(now: now) }
    var nextTimeout: Instant? { session.nextTimeout }
    func handleTimeout(now: Instant) {
        if let due = session.nextTimeout, due <= now { session.handleTimeout(now: now) }
    }

    func close() {
        session.close()
        for speaker in speakers.values { speaker.close() }
        speakers = [:]
        remotes = [:]
        tracks = [:]
    }

    // MARK: Statistics

    func addStatistics(to records: inout StatisticsRecords) {
        for sender in session.videoSenderStatistics {
            records.add(
                "media-source-video", "media-source",
                [
                    "kind": .string("video"), "frames": .number(sender.framesIn),
                    "framesDropped": .number(sender.framesDropped),
                    "width": sender.layers.last.map { .number($0.width) },
                    "height": sender.layers.last.map { .number($0.height) },
                ])
            for (index, layer) in sender.layers.enumerated() {
                guard let transceiver = peer.transceiver(sender.transceiver), index < transceiver.encodings.count
                else { continue }
                records.extend(
                    "outbound-rtp-\(transceiver.encodings[index].ssrc)",
                    [
                        "framesEncoded": .number(layer.framesEncoded), "framesSent": .number(layer.framesEncoded),
                        "keyFramesEncoded": .number(layer.keyFramesEncoded), "frameWidth": .number(layer.width),
                        "frameHeight": .number(layer.height), "targetBitrate": .number(layer.targetBitrate),
                    ])
            }
        }
        for (sender, remote) in tracks {
            for track in remote {
                guard let transceiver = peer.transceiver(track.transceiver),
                    let ssrc = peer.inboundSSRC(of: transceiver)
                else { continue }
                records.extend(
                    "inbound-rtp-\(ssrc)",
                    track.isVideo
                        ? Self.values(of: session.remoteVideo(on: track.transceiver, sender: sender).statistics)
                        : Self.values(of: session.remoteAudio(on: track.transceiver, sender: sender).statistics))
            }
        }
    }

    private static func values(of video: RemoteVideo.Statistics) -> [String: JSONValue] {
        [
            "framesReceived": .number(video.framesReceived), "framesDecoded": .number(video.framesDecoded),
            "framesDropped": .number(video.framesDropped), "keyFramesDecoded": .number(video.keyFramesReceived),
            "frameWidth": .number(video.width), "frameHeight": .number(video.height),
            "framesPerSecond": .fraction(video.framerate),
        ]
    }

    private static func values(of audio: RemoteAudio.Statistics) -> [String: JSONValue] {
        [
            "totalSamplesReceived": .number(audio.totalSamples), "concealedSamples": .number(audio.concealedSamples),
            "concealmentEvents": .number(audio.concealmentEvents), "audioLevel": .fraction(audio.level),
            "jitterBufferTargetDelay": .fraction(audio.targetDelay),
        ]
    }
}

/// The sending end of a video track.
private final class LocalVideoPort: VideoTrackPort {
    private let track: LocalVideo
    init(_ track: LocalVideo) { self.track = track }
    func setEnabled(_ isEnabled: Bool) { track.isEnabled = isEnabled }
    func send(_ frame: SoraFrames.VideoFrame) { track.send(frame) }
    func setVideoReceiver(_ receiver: (@Sendable (SoraFrames.VideoFrame) -> Void)?) {}
}

/// The sending end of an audio track.
private final class LocalAudioPort: AudioTrackPort {
    private let track: LocalAudio
    private let tap = Locked<Int?>(nil)
    init(_ track: LocalAudio) { self.track = track }
    func setEnabled(_ isEnabled: Bool) { track.isEnabled = isEnabled }
    func setVolume(_ volume: Double) {}
    func send(_ chunk: AudioChunk) {
        track.send(
            AudioFrame(
                samples: chunk.samples, sampleRate: chunk.sampleRate, channels: chunk.channels,
                timestamp: chunk.timestamp ?? EventLoop.clock().nanoseconds))
    }
    func setAudioReceiver(_ receiver: (@Sendable (AudioChunk) -> Void)?) {
        if let old = tap.exchange(nil) { track.removeTap(old) }
        guard let receiver else { return }
        tap.write(track.addTap { receiver(AudioChunk($0)) })
    }
}

/// The receiving end of a video track.
private final class RemoteVideoPort: VideoTrackPort {
    private let track: RemoteVideo
    private let sink = Locked<Int?>(nil)
    init(_ track: RemoteVideo) { self.track = track }
    func setEnabled(_ isEnabled: Bool) { track.isEnabled = isEnabled }
    func send(_ frame: SoraFrames.VideoFrame) {}
    func setVideoReceiver(_ receiver: (@Sendable (SoraFrames.VideoFrame) -> Void)?) {
        if let old = sink.exchange(nil) { track.removeSink(old) }
        guard let receiver else { return }
        sink.write(track.addSink(receiver))
    }
    func addEncodedSink(_ sink: any EncodedSink) { _ = track.addEncodedSink(sink) }
}

/// The receiving end of an audio track.
private final class RemoteAudioPort: AudioTrackPort {
    private let track: RemoteAudio
    private let sink = Locked<Int?>(nil)
    init(_ track: RemoteAudio) { self.track = track }
    func setEnabled(_ isEnabled: Bool) { track.isEnabled = isEnabled }
    func setVolume(_ volume: Double) { track.volume = volume }
    func send(_ chunk: AudioChunk) {}
    func setAudioReceiver(_ receiver: (@Sendable (AudioChunk) -> Void)?) {
        if let old = sink.exchange(nil) { track.removeSink(old) }
        guard let receiver else { return }
        sink.write(track.addSink { receiver(AudioChunk($0)) })
    }
    func addEncodedSink(_ sink: any EncodedSink) { _ = track.addEncodedSink(sink) }
}

extension AudioChunk {
    init(_ frame: AudioFrame) {
        self.init(samples: frame.samples, sampleRate: frame.sampleRate, channels: frame.channels)
    }
}
