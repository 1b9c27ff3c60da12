import LocalSora
import SoraPeer
import SoraRTP
import SoraSDP
import SoraWire

/// Makes a simulated client send VP8 frames and Opus packets, as an encoder with simulcast would.
///
/// Each video frame carries its number and its layer in its payload, so that a receiver can tell what it got.
final class MediaSource {
    private struct Layer {
        var packetizer: VP8Packetizer
        var sequence: UInt16
        let timestampOffset: UInt32
        var needsKeyFrame = true
        var requestsSeen = 0
    }
    private let client: SimulatedClient
    private var layers: [Layer] = []
    private var audioSequence: UInt16 = 100
    private(set) var frame = 0
    /// Layers that are encoded at present, by index.
    var activeLayers: Set<Int> = [0, 1, 2]
    /// Bytes of a frame, by layer.
    var frameSizes = [600, 1800, 5000]
    /// Answers key frame requests; off to test their repetition.
    var answersKeyFrameRequests = true
    /// A loudness of the audio-level extension, -dBov; nil: none.
    var audioLevel: UInt8? = 127
    /// Sends padding packets behind each frame.
    var sendsPadding = false
    /// Key frames sent, by layer.
    private(set) var keyFrames = [0, 0, 0]
    static let frameInterval: Duration = .nanoseconds(33_333_333)

    init(_ client: SimulatedClient) {
        self.client = client
        var random = RandomSource(
            seed: UInt64(client.address.port) + UInt64(client.id.rawValue.utf8.reduce(0) { $0 + Int($1) }))
        for index in 0..<3 {
            // Layers have numbers of their own, as in libwebrtc, and some wrap soon.
            layers.append(
                Layer(
                    packetizer: VP8Packetizer(random: &random),
                    sequence: UInt16(truncatingIfNeeded: 65_000 + index * 300),
                    timestampOffset: UInt32(truncatingIfNeeded: random.next())))
        }
    }

    /// Sends one frame of each active layer, and the sound of its time.
    func tick(now: Instant) {
        frame += 1
        if let video = client.ownTransceivers["video"] {
            for index in video.encodings.indices { sendFrame(index, on: video, now: now) }
        }
        if client.ownTransceivers["audio"] != nil { sendAudio(now: now) }
    }

    private func sendFrame(_ index: Int, on video: Transceiver, now: Instant) {
        guard activeLayers.contains(index), let type = video.primaryCodec?.payloadType else {
            layers[index].needsKeyFrame = true
            return
        }
        let requests = client.keyFrameRequests[index] ?? 0
        if answersKeyFrameRequests, requests > layers[index].requestsSeen {
            layers[index].needsKeyFrame = true
        }
        layers[index].requestsSeen = requests
        let isKeyFrame = layers[index].needsKeyFrame
        layers[index].needsKeyFrame = false
        if isKeyFrame { keyFrames[index] += 1 }
        let payload = Self.payload(frame: frame, layer: index, isKeyFrame: isKeyFrame, size: frameSizes[index])
        let parts = layers[index].packetizer.packetize(
            payload, traits: VideoFrameTraits(isKeyFrame: isKeyFrame), limit: 1100)
        let timestamp = RTPTimestamp(UInt32(truncatingIfNeeded: frame * 3000) &+ layers[index].timestampOffset)
        for (number, part) in parts.enumerated() {
            send(
                RTPPacket(
                    marker: number == parts.count - 1, payloadType: type,
                    sequenceNumber: SequenceNumber(layers[index].sequence), timestamp: timestamp, ssrc: SSRC(0),
                    payload: part),
                on: video, encoding: index, now: now)
            layers[index].sequence &+= 1
        }
        if sendsPadding {
            send(
                RTPPacket(
                    payloadType: type, sequenceNumber: SequenceNumber(layers[index].sequence), timestamp: timestamp,
                    ssrc: SSRC(0), paddingLength: 200),
                on: video, encoding: index, now: now)
            layers[index].sequence &+= 1
        }
    }

    private func sendAudio(now: Instant) {
        guard let audio = client.ownTransceivers["audio"], let type = audio.primaryCodec?.payloadType else { return }
        var packet = RTPPacket(
            payloadType: type, sequenceNumber: SequenceNumber(audioSequence),
            timestamp: RTPTimestamp(UInt32(truncatingIfNeeded: frame * 1600)), ssrc: SSRC(0),
            payload: [0x78] + [UInt8](repeating: 7, count: 60))
        if let audioLevel, let id = audio.extensions[.audioLevel] {
            packet.extensions = [
                RTPExtensionElement(id: id, value: RTPExtensionValue.bytes(ofAudioLevel: audioLevel, isVoice: true))
            ]
        }
        audioSequence &+= 1
        send(packet, on: audio, encoding: 0, now: now)
    }

    private func send(_ packet: RTPPacket, on transceiver: Transceiver, encoding: Int, now: Instant) {
        let bytes = packet.serialized()
        guard let header = try? RTPHeader(parsing: bytes) else { return }
        try? client.peer.send(rtp: bytes, header: header, on: transceiver, encoding: encoding, now: now)
    }

    private static func payload(frame: Int, layer: Int, isKeyFrame: Bool, size: Int) -> [UInt8] {
        // 160x90, 320x180, 640x360.
        let (width, height) = (160 << layer, 90 << layer)
        var bytes: [UInt8] = [isKeyFrame ? 0x10 : 0x11, 0, 0, 0x9D, 0x01, 0x2A]
        for number in [width, height] {
            bytes += [UInt8(truncatingIfNeeded: number), UInt8(truncatingIfNeeded: number >> 8)]
        }
        bytes.append(UInt8(layer))
        for shift in [24, 16, 8, 0] { bytes.append(UInt8(truncatingIfNeeded: frame >> shift)) }
        while bytes.count < size { bytes.append(UInt8(truncatingIfNeeded: bytes.count)) }
        return bytes
    }
}

/// A frame as a receiver got it, put together from its packets.
struct ReceivedFrame {
    var number: Int
    var layer: Int
    var isKeyFrame: Bool
    var timestamp: RTPTimestamp
    var pictureID: UInt16
    var arrival: Instant
}

/// What a decoder would make of a stream: checks that it is one unbroken stream.
struct StreamCheck {
    private(set) var frames: [ReceivedFrame] = []
    private(set) var faults: [String] = []
    private(set) var ssrcs: Set<SSRC> = []

    /// - Parameter packets: of one stream, in order of arrival; put into order of numbers first.
    init(_ packets: [ReceivedRTP]) {
        var unwrapper = SequenceUnwrapper()
        let numbered = packets.map { (unwrapper.unwrap($0.header.sequenceNumber), $0) }.sorted { $0.0 < $1.0 }
        var last: Int64?
        var parts: [VideoPayloadSlice] = []
        var pictureID: UInt16?
        for (number, packet) in numbered {
            ssrcs.insert(packet.ssrc)
            if let last, number != last + 1 { faults.append("number \(number) follows \(last)") }
            last = number
            let range = packet.header.payloadRange
            guard !range.isEmpty, let descriptor = try? VP8PayloadDescriptor(parsing: packet.packet, in: range) else {
                faults.append("packet \(number) has no payload")
                continue
            }
            if descriptor.startsFrame {
                if !parts.isEmpty { faults.append("frame before \(number) has no end") }
                parts = []
            }
            parts.append(VideoPayloadSlice(packet: packet.packet, range: range))
            guard packet.header.marker else { continue }
            if let frame = try? VideoPayloadFormat.vp8.assemble(parts), frame.count >= 15 {
                let counter = frame[11..<15].reduce(0) { $0 << 8 | Int($1) }
                if let last = frames.last {
                    if packet.header.timestamp.distance(from: last.timestamp) <= 0 {
                        faults.append("timestamp goes back at \(number)")
                    }
                    if let id = descriptor.pictureID, let before = pictureID, (before &+ 1) & 0x7FFF != id {
                        faults.append("picture \(id) follows \(before)")
                    }
                    // At a switch the same picture may be there in both sizes.
                    if counter < last.number || (counter == last.number && last.layer == Int(frame[10])) {
                        faults.append("frame \(counter) follows \(last.number)")
                    }
                } else if !VP8Bitstream.isKeyFrame(firstByte: frame[0]) {
                    faults.append("the stream does not begin with a key frame")
                }
                if let last = frames.last, last.layer != Int(frame[10]), !VP8Bitstream.isKeyFrame(firstByte: frame[0]) {
                    faults.append("layer \(frame[10]) begins without a key frame")
                }
                pictureID = descriptor.pictureID
                frames.append(
                    ReceivedFrame(
                        number: counter, layer: Int(frame[10]),
                        isKeyFrame: VP8Bitstream.isKeyFrame(firstByte: frame[0]),
                        timestamp: packet.header.timestamp, pictureID: descriptor.pictureID ?? 0,
                        arrival: packet.arrival))
            }
            parts = []
        }
    }

    var layers: [Int] { frames.map(\.layer) }
    /// The longest time between frames.
    var longestFreeze: Duration {
        zip(frames, frames.dropFirst()).map { $1.arrival - $0.arrival }.max() ?? .zero
    }
}

extension ChannelHarness {
    /// Lets sources send at 30 frames a second for a while.
    func play(_ sources: [MediaSource], for duration: Duration, every: () -> Void = {}) {
        let end = now + duration
        while now < end {
            perform { _, now in for source in sources { source.tick(now: now) } }
            every()
            run(for: MediaSource.frameInterval)
        }
    }
}
