import SoraEmulator
import SoraRTP
import SoraWire
import Testing

/// The whole way: simulcast sender → lossy link → server → lossy link → receiver, with NACK and RTX on both hops, in
/// virtual time.
private struct ForwardingPath {
    private struct Layer {
        var ssrc: SSRC
        var packetizer: any VideoPacketizer
        var sequence: SequenceNumber
        var timestampBase: UInt32
        var history: RTPSendHistory
        var restorer: RTXReceiver
        var nack = NACKGenerator()
        var keyFrames = KeyFrameRequester()
        var wantsKeyFrame = true
        var frame = 0
    }

    private enum Feedback { case nack(SSRC, [SequenceNumber]), keyFrame(Int) }

    let format: VideoPayloadFormat
    private var layers: [Layer] = []
    private var up: EmulatedLink<[UInt8]>
    private var upBack: EmulatedLink<Feedback>
    private var down: EmulatedLink<[UInt8]>
    private var downBack: EmulatedLink<Feedback>
    private var forwarder: StreamForwarder
    private var history: RTPSendHistory
    private let restorer: RTXReceiver
    private var nack = NACKGenerator()
    private var buffer: VideoJitterBuffer
    private var random: RandomSource
    private var millisecond = 0

    /// Layer and number of each frame shown, and whether it is a key frame.
    private(set) var shown: [(layer: Int, number: Int, isKey: Bool, at: Int, timestamp: RTPTimestamp)] = []
    private(set) var breaks = 0
    private(set) var keyFramesSent = 0
    var lost: Int { up.counts.lost + down.counts.lost }

    init(format: VideoPayloadFormat, conditions: LinkConditions, seed: UInt64) {
        self.format = format
        random = RandomSource(seed: seed)
        up = EmulatedLink(conditions, seed: seed, link: 1)
        upBack = EmulatedLink(conditions, seed: seed, link: 2)
        down = EmulatedLink(conditions, seed: seed, link: 3)
        downBack = EmulatedLink(conditions, seed: seed, link: 4)
        let types = [PayloadType(96): PayloadType(97)]
        for index in 0..<3 {
            layers.append(
                Layer(
                    ssrc: SSRC(UInt32(10 + index)), packetizer: format.makePacketizer(random: &random),
                    sequence: SequenceNumber(UInt16(truncatingIfNeeded: random.next())),
                    timestampBase: UInt32(truncatingIfNeeded: random.next()),
                    history: RTPSendHistory(
                        rtx: RTXSender(
                            ssrc: SSRC(UInt32(20 + index)), payloadTypes: types, sequenceNumber: SequenceNumber(65_500))
                    ),
                    restorer: RTXReceiver(
                        originalSSRC: SSRC(UInt32(10 + index)), payloadTypes: [PayloadType(97): PayloadType(96)])))
        }
        forwarder = StreamForwarder(
            ssrc: SSRC(70), payloadType: PayloadType(100), clockRate: 90_000, isVideo: true, random: &random)
        history = RTPSendHistory(
            rtx: RTXSender(
                ssrc: SSRC(71), payloadTypes: [PayloadType(100): PayloadType(101)], sequenceNumber: SequenceNumber(1)))
        restorer = RTXReceiver(originalSSRC: SSRC(70), payloadTypes: [PayloadType(101): PayloadType(100)])
        var configuration = VideoJitterBuffer.Configuration()
        configuration.maximumWait = .milliseconds(1500)
        buffer = VideoJitterBuffer(format: format, configuration: configuration)
        forwarder.select(0)
    }

    mutating func select(_ layer: Int?) { forwarder.select(layer) }
    var currentLayer: Int? { forwarder.currentLayer }

    mutating func run(milliseconds: Int) throws {
        for _ in 0..<milliseconds {
            let now = at(milliseconds: millisecond)
            if millisecond % 33 == 0 { for index in layers.indices { sendFrame(index, now) } }
            while let feedback = upBack.receive(now: now) {
                switch feedback {
                case .nack(let ssrc, let lost):
                    guard let index = layers.firstIndex(where: { $0.ssrc == ssrc }) else { continue }
                    for packet in layers[index].history.answer(lost, now: now) { up.send(packet, now: now) }
                case .keyFrame(let index): layers[index].wantsKeyFrame = true
                }
            }
            while let packet = up.receive(now: now) { try serve(packet, now) }
            serveTimers(now)
            while let feedback = downBack.receive(now: now) {
                switch feedback {
                case .nack(_, let lost):
                    for packet in history.answer(lost, now: now) { down.send(packet, now: now) }
                case .keyFrame:
                    if let layer = forwarder.currentLayer { layers[layer].keyFrames.request(now: now) }
                }
            }
            while let packet = down.receive(now: now) { try receive(packet, now) }
            receiverTimers(now)
            millisecond += 1
        }
    }

    private mutating func sendFrame(_ index: Int, _ now: Instant) {
        let isKey = layers[index].wantsKeyFrame
        layers[index].wantsKeyFrame = false
        layers[index].frame += 1
        if isKey { keyFramesSent += 1 }
        let number = layers[index].frame
        let size = Int.random(in: 200...(isKey ? 9000 : 2500), using: &random)
        // What a decoder must know: the layer, the frame's number, and whether it depends on the one before.
        var data: [UInt8] = [isKey ? 0 : 1, UInt8(index), UInt8(number >> 8), UInt8(number & 0xFF)]
        switch format {
        case .h264:
            data =
                (isKey
                    ? [0, 0, 0, 1, 0x67, 0x42, 0xC0, 0, 0, 0, 1, 0x68, 0xCE, 0, 0, 0, 1, 0x65] : [0, 0, 0, 1, 0x41])
                + [0x88, 0x10 | UInt8(index), UInt8(number >> 7) | 0x80, UInt8(number & 0x7F) | 0x80]
            data += [UInt8](repeating: 0x55, count: size)
        case .av1:
            let body = data + [UInt8](repeating: 0x55, count: size)
            data = isKey ? [0x0A, 0x01, 0x00] : []
            data += [0x32, UInt8(body.count & 0x7F) | 0x80, UInt8(body.count >> 7)] + body
        default: data += [UInt8](repeating: 0x55, count: size)
        }
        let payloads = layers[index].packetizer.packetize(data, traits: .init(isKeyFrame: isKey), limit: 1100)
        for (position, payload) in payloads.enumerated() {
            let packet = RTPPacket(
                marker: position == payloads.count - 1, payloadType: PayloadType(96),
                sequenceNumber: layers[index].sequence,
                timestamp: RTPTimestamp(layers[index].timestampBase &+ UInt32(millisecond * 90)),
                ssrc: layers[index].ssrc,
                payload: payload
            ).serialized()
            layers[index].history.store(packet, sequenceNumber: layers[index].sequence, now: now)
            layers[index].sequence += 1
            up.send(packet, now: now)
        }
        if number % 7 == 0 {
            let padding = RTPPacket(
                payloadType: PayloadType(96), sequenceNumber: layers[index].sequence,
                timestamp: RTPTimestamp(layers[index].timestampBase &+ UInt32(millisecond * 90)),
                ssrc: layers[index].ssrc,
                paddingLength: 100
            ).serialized()
            layers[index].history.store(padding, sequenceNumber: layers[index].sequence, now: now)
            layers[index].sequence += 1
            up.send(padding, now: now)
        }
    }

    private mutating func serve(_ bytes: [UInt8], _ now: Instant) throws {
        var packet = bytes
        var header = try RTPHeader(parsing: packet)
        let index = Int(header.ssrc.rawValue % 10)
        if header.ssrc.rawValue >= 20 {
            guard let restored = layers[index].restorer.unwrap(packet, header: header) else { return }
            packet = restored
            header = try RTPHeader(parsing: packet)
        }
        guard layers[index].nack.receive(header.sequenceNumber, now: now) else { return }
        let forwardable = ForwardablePacket(packet, header: header, format: format)
        if forwardable.startsKeyFrame { layers[index].keyFrames.keyFrameArrived() }
        var outgoing: [[UInt8]] = []
        if let first = forwarder.forward(forwardable, layer: index, now: now) { outgoing.append(first) }
        while let next = forwarder.poll() { outgoing.append(next) }
        for packet in outgoing {
            history.store(packet, sequenceNumber: try RTPHeader(parsing: packet).sequenceNumber, now: now)
            down.send(packet, now: now)
        }
    }

    private mutating func serveTimers(_ now: Instant) {
        for index in layers.indices {
            if forwarder.layerNeedingKeyFrame == index { layers[index].keyFrames.request(now: now) }
            if layers[index].keyFrames.handleTimeout(now: now) { upBack.send(.keyFrame(index), size: 20, now: now) }
            if let next = layers[index].nack.nextTimeout, next <= now {
                let request = layers[index].nack.handleTimeout(now: now)
                if !request.lost.isEmpty {
                    upBack.send(.nack(layers[index].ssrc, request.lost), size: 40, now: now)
                }
            }
        }
    }

    private mutating func receive(_ bytes: [UInt8], _ now: Instant) throws {
        var packet = bytes
        var header = try RTPHeader(parsing: packet)
        if header.ssrc == SSRC(71) {
            guard let restored = restorer.unwrap(packet, header: header) else { return }
            packet = restored
            header = try RTPHeader(parsing: packet)
        }
        nack.receive(header.sequenceNumber, now: now)
        buffer.insert(packet, header: header, now: now)
    }

    private mutating func receiverTimers(_ now: Instant) {
        if let next = nack.nextTimeout, next <= now {
            let request = nack.handleTimeout(now: now)
            if !request.lost.isEmpty { downBack.send(.nack(SSRC(70), request.lost), size: 40, now: now) }
            if request.isStreamBroken { buffer.abandonGap(now: now) }
        }
        if let next = buffer.nextTimeout, next <= now { buffer.handleTimeout(now: now) }
        while let output = buffer.poll() {
            switch output {
            case .keyFrameNeeded:
                breaks += 1
                downBack.send(.keyFrame(0), size: 20, now: now)
            case .frame(let frame): show(frame)
            }
        }
        if buffer.isWaitingForKeyFrame, millisecond % 500 == 499 { downBack.send(.keyFrame(0), size: 20, now: now) }
    }

    private mutating func show(_ frame: ReceivedVideoFrame) {
        var data = frame.data[...]
        let layer: Int
        let number: Int
        switch format {
        case .h264:
            if frame.isKeyFrame { data = data.dropFirst(13) }
            data = data.dropFirst(6)
            guard data.count >= 3 else { return }
            layer = Int(data[data.startIndex] & 0x0F)
            number = Int(data[data.startIndex + 1] & 0x7F) << 7 | Int(data[data.startIndex + 2] & 0x7F)
        case .av1:
            if frame.isKeyFrame { data = data.dropFirst(3) }
            data = data.dropFirst(3)
            layer = Int(data[data.startIndex + 1])
            number = Int(data[data.startIndex + 2]) << 8 | Int(data[data.startIndex + 3])
        default:
            layer = Int(data[data.startIndex + 1])
            number = Int(data[data.startIndex + 2]) << 8 | Int(data[data.startIndex + 3])
        }
        shown.append((layer, number, frame.isKeyFrame, millisecond, frame.timestamp))
    }
}

@Suite struct ForwardingPathTests {
    private static let lossy = LinkConditions(
        delay: .milliseconds(20), jitter: .milliseconds(4), loss: 0.03, reordering: 0.01,
        reorderingDelay: .milliseconds(10), duplication: 0.01)

    /// Every frame shown is a key frame or follows the one it depends on.
    private func check(_ path: ForwardingPath) {
        var last: (layer: Int, number: Int)?
        var timestamp: RTPTimestamp?
        for frame in path.shown {
            if !frame.isKey {
                #expect(
                    frame.layer == last?.layer && frame.number == (last?.number ?? -9) + 1,
                    "\(path.format) \(frame) after \(String(describing: last))")
            }
            if let timestamp { #expect(frame.timestamp.distance(from: timestamp) > 0) }
            timestamp = frame.timestamp
            last = (frame.layer, frame.number)
        }
    }

    // RTP10: switches in both directions with loss and reordering around them: no freeze.
    @Test(arguments: [VideoPayloadFormat.vp8, .vp9, .h264, .av1], [1, 2, 3])
    func switchesUnderLossShowOnlyDecodableFrames(format: VideoPayloadFormat, seed: Int) throws {
        var path = ForwardingPath(format: format, conditions: ForwardingPathTests.lossy, seed: UInt64(seed))
        var random = RandomSource(seed: UInt64(seed))
        for _ in 0..<14 {
            try path.run(milliseconds: Int.random(in: 300...1300, using: &random))
            path.select(Int.random(in: 0..<3, using: &random))
        }
        path.select(2)
        try path.run(milliseconds: 3000)
        check(path)
        #expect(path.lost > 30)
        #expect(path.currentLayer == 2 && path.shown.last?.layer == 2)
        // No freeze: pictures follow each other within the time that a switch or a repeated repeat takes.
        var longest = 0
        for (earlier, later) in zip(path.shown, path.shown.dropFirst()) {
            longest = max(longest, later.at - earlier.at)
        }
        #expect(longest < 1000, "longest gap \(longest) ms, \(path.breaks) breaks")
        #expect(path.breaks <= 2)
    }

    @Test func pauseAndResume() throws {
        var path = ForwardingPath(format: .vp8, conditions: ForwardingPathTests.lossy, seed: 9)
        for _ in 0..<6 {
            try path.run(milliseconds: 700)
            path.select(nil)
            try path.run(milliseconds: 600)
            path.select(1)
        }
        try path.run(milliseconds: 2000)
        check(path)
        #expect(path.shown.last.map { $0.at > 9000 } ?? false)
        #expect(path.breaks <= 2)
    }
}
