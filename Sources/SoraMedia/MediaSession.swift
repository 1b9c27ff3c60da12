import SoraFrames
import SoraPeer
import SoraRTP
import SoraSDP
import SoraWire
import Synchronization

/// The media of one peer connection: local tracks to packets, packets to remote tracks.
///
/// Sans-IO and confined to whoever drives the peer connection, like that itself: the driver hands in the peer's
/// outputs and time, and sends what the peer puts out afterwards. Coding runs on the codec threads; when they have
/// something, `wake` is called (on any thread), upon which the driver calls ``process(now:)``.
///
/// Invariant: after ``close()`` no track gets anything any more, and no coder is left.
package final class MediaSession {
    private let peer: PeerConnection
    private let codecs: any CodecFactory
    private let wake: @Sendable () -> Void
    private var random: RandomSource
    private var videoSenders: [TransceiverID: VideoSending] = [:]
    private var audioSenders: [TransceiverID: AudioSending] = [:]
    private var videoReceivers: [TransceiverID: VideoReceiving] = [:]
    private var audioReceivers: [TransceiverID: AudioReceiving] = [:]
    private var senderClocks: [String: PlayoutClock] = [:]
    /// What the path carries, from the peer's feedback; nil before the first word.
    private var estimate: Int?
    private var pacer = PacketPacer()
    private var isClosed = false

    package init(
        peer: PeerConnection, codecs: any CodecFactory, random: RandomSource = .system,
        wake: @escaping @Sendable () -> Void
    ) {
        self.peer = peer
        self.codecs = codecs
        self.random = random
        self.wake = wake
    }

    // MARK: Tracks

    /// Sends a local track on a transceiver, from now until ``close()``. Call again after each negotiation: codec,
    /// layers and limits are taken from the transceiver.
    package func send(_ video: LocalVideo, on id: TransceiverID, content: VideoEncoderSettings.Content = .motion) {
        guard !isClosed, let transceiver = peer.transceiver(id), transceiver.maySend else { return stopSending(id) }
        if let sender = videoSenders[id] {
            sender.configure(transceiver, content: content)
        } else if let sender = VideoSending(
            video, transceiver: transceiver, codecs: codecs, ntpEpoch: peer.configuration.ntpEpoch, content: content,
            random: &random, wake: wake)
        {
            videoSenders[id] = sender
        }
        allocate()
    }

    package func send(_ audio: LocalAudio, on id: TransceiverID, settings: AudioEncoderSettings = .init()) {
        guard !isClosed, let transceiver = peer.transceiver(id), transceiver.maySend else { return stopSending(id) }
        if let sender = audioSenders[id] {
            sender.configure(transceiver)
        } else {
            audioSenders[id] = AudioSending(
                audio, transceiver: transceiver, codecs: codecs, settings: settings,
                ntpEpoch: peer.configuration.ntpEpoch, random: &random, wake: wake)
        }
    }

    package func stopSending(_ id: TransceiverID) {
        videoSenders.removeValue(forKey: id)?.close()
        audioSenders.removeValue(forKey: id)?.close()
    }

    /// The pictures that come on a transceiver. `sender` names whose they are: tracks of one sender play in step.
    package func remoteVideo(on id: TransceiverID, sender: String) -> RemoteVideo {
        if let receiver = videoReceivers[id] { return receiver.port }
        let receiver = VideoReceiving(
            port: RemoteVideo(wake: wake), sender: clock(of: sender), codecs: codecs, wake: wake)
        videoReceivers[id] = receiver
        return receiver.port
    }

    package func remoteAudio(on id: TransceiverID, sender: String) -> RemoteAudio {
        if let receiver = audioReceivers[id] { return receiver.port }
        let receiver = AudioReceiving(port: RemoteAudio(wake: wake), sender: clock(of: sender), codecs: codecs)
        audioReceivers[id] = receiver
        return receiver.port
    }

    /// The track is gone: its port gets nothing any more.
    package func removeRemote(_ id: TransceiverID) {
        if let receiver = videoReceivers.removeValue(forKey: id) {
            receiver.close()
            receiver.port.removeAll()
        }
        if let receiver = audioReceivers.removeValue(forKey: id) {
            receiver.close()
            receiver.port.removeAll()
        }
    }

    private func clock(of sender: String) -> PlayoutClock {
        if let clock = senderClocks[sender] { return clock }
        let clock = PlayoutClock()
        senderClocks[sender] = clock
        return clock
    }

    // MARK: Driving

    /// Takes an output of the peer connection that concerns media; others are ignored.
    package func handle(_ output: PeerConnection.Output, now: Instant) {
        guard !isClosed else { return }
        switch output {
        case .rtp(let packet):
            guard let transceiver = peer.transceiver(packet.transceiver) else { return }
            if let receiver = videoReceivers[packet.transceiver] {
                receiver.receive(packet, transceiver: transceiver, now: now)
            } else if let receiver = audioReceivers[packet.transceiver] {
                receiver.receive(packet, transceiver: transceiver, now: now)
            }
        case .senderReport(let id, _, let ntp, let timestamp):
            videoReceivers[id]?.receive(ntp: ntp, timestamp: timestamp, now: now)
            audioReceivers[id]?.receive(ntp: ntp, timestamp: timestamp, now: now)
        case .keyFrameRequested(let id, let ssrc):
            guard let transceiver = peer.transceiver(id),
                let layer = transceiver.encodings.firstIndex(where: { $0.ssrc == ssrc })
            else { return }
            videoSenders[id]?.requestKeyFrame(layer: layer)
        case .keyFrameNeeded(let id, _):
            videoReceivers[id]?.keyFrameNeeded(now: now)
        case .availableBitrate(let bitrate):
            estimate = bitrate
            allocate()
        case .trackRemoved(let id):
            removeRemote(id)
        default: break
        }
        handleDue(now)
    }

    /// Takes what the codec threads have ready, and sends it. To be called after `wake`.
    package func process(now: Instant) {
        guard !isClosed else { return }
        for sender in audioSenders.values {
            for packet in sender.takePackets() { transmit(packet, now) }
        }
        for sender in videoSenders.values {
            let packets = sender.takePackets()
            for mapping in sender.takeClockMappings() {
                peer.setClockMapping(
                    of: sender.transceiver, encoding: mapping.layer, ntp: mapping.ntp, timestamp: mapping.timestamp,
                    now: mapping.at)
            }
            for packet in packets { pacer.put(packet) }
            if sender.sizeHasChanged() { allocate() }
        }
        for receiver in videoReceivers.values { receiver.process(now: now) }
        handleDue(now)
    }

    package var nextTimeout: Instant? {
        guard !isClosed else { return nil }
        var earliest = pacer.nextTimeout
        func consider(_ due: Instant?) {
            if let due { earliest = earliest.map { min($0, due) } ?? due }
        }
        for receiver in videoReceivers.values { consider(receiver.nextTimeout) }
        for receiver in audioReceivers.values { consider(receiver.nextTimeout) }
        return earliest
    }

    package func handleTimeout(now: Instant) {
        guard !isClosed else { return }
        handleDue(now)
    }

    private func handleDue(_ now: Instant) {
        for receiver in videoReceivers.values {
            if let due = receiver.nextTimeout, due <= now, let ssrc = receiver.handleTimeout(now: now) {
                peer.sendKeyFrameRequest(for: ssrc, now: now)
            }
        }
        for receiver in audioReceivers.values {
            if let due = receiver.nextTimeout, due <= now { receiver.handleTimeout(now: now) }
        }
        while let packet = pacer.poll(now: now) { transmit(packet, now) }
    }

    private func transmit(_ packet: OutgoingPacket, _ now: Instant) {
        let bytes = packet.packet.serialized()
        guard let header = try? RTPHeader(parsing: bytes) else { return }
        // Before the connection is up packets are lost, as on any network; the key-frame request mends it.
        try? peer.send(rtp: bytes, header: header, on: packet.transceiver, encoding: packet.layer, now: now)
    }

    /// Ends all tracks and frees all coders.
    package func close() {
        guard !isClosed else { return }
        isClosed = true
        for sender in videoSenders.values { sender.close() }
        for sender in audioSenders.values { sender.close() }
        for id in Array(videoReceivers.keys) + Array(audioReceivers.keys) { removeRemote(id) }
        videoSenders = [:]
        audioSenders = [:]
        senderClocks = [:]
        pacer = PacketPacer()
    }

    // MARK: Rates

    private func allocate() {
        // Video gets what audio leaves.
        let audio = audioSenders.isEmpty ? 0 : 64_000
        let share = estimate.map { max(30_000, $0 - audio) / max(1, videoSenders.count) }
        var total = 0
        for sender in videoSenders.values { total += sender.allocate(share) }
        pacer.setRate(total)
    }

    // MARK: Statistics

    package struct VideoSenderStatistics: Sendable {
        package struct Layer: Sendable {
            package var rid: RestrictionID?
            package var framesEncoded: UInt64
            package var keyFramesEncoded: UInt64
            package var width: Int
            package var height: Int
            package var targetBitrate: Int
        }
        package var transceiver: TransceiverID
        package var codec: VideoCodecKind
        package var framesIn: UInt64
        package var framesDropped: UInt64
        package var errors: UInt64
        package var lastError: CodecError?
        package var layers: [Layer]
    }

    package var videoSenderStatistics: [VideoSenderStatistics] {
        videoSenders.map { id, sender in
            let counters = sender.encoding.counters
            let settings = sender.encoding.settings
            return VideoSenderStatistics(
                transceiver: id, codec: settings.codec, framesIn: counters.framesIn,
                framesDropped: counters.framesDropped, errors: counters.errors, lastError: counters.lastError,
                layers: zip(settings.layers, counters.layers).map { settings, layer in
                    VideoSenderStatistics.Layer(
                        rid: settings.rid, framesEncoded: layer.framesEncoded,
                        keyFramesEncoded: layer.keyFramesEncoded, width: layer.width, height: layer.height,
                        targetBitrate: layer.targetBitrate)
                })
        }
    }
}
