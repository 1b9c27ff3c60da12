import SoraRTP
import SoraWire
import Testing

/// A simulcast sender's layer: VP8 frames with numbers of its own.
private struct Layer {
    var index: Int
    var ssrc: SSRC
    var sequence: Int
    var timestampBase: UInt32
    var packetizer: VP8Packetizer
    var wantsKeyFrame = true
    /// Picture id of the frame that the next one depends on, -1 if lost.
    var frameNumber = 0

    init(_ index: Int, random: inout RandomSource) {
        self.index = index
        ssrc = SSRC(UInt32(1000 + index))
        sequence = Int.random(in: 60_000...65_535, using: &random)
        timestampBase = UInt32.random(in: 0...(.max), using: &random)
        packetizer = VP8Packetizer(random: &random)
    }

    mutating func timestamp(_ now: Instant) -> RTPTimestamp {
        RTPTimestamp(timestampBase &+ UInt32(truncatingIfNeeded: now.nanoseconds * 90 / 1_000_000))
    }

    mutating func frame(_ now: Instant, random: inout RandomSource) -> [[UInt8]] {
        let isKey = wantsKeyFrame
        wantsKeyFrame = false
        var data = [UInt8](repeating: UInt8(index), count: Int.random(in: 20...(isKey ? 900 : 300), using: &random))
        data[0] = isKey ? 0 : 1
        data[1] = UInt8(index)
        frameNumber += 1
        let payloads = packetizer.packetize(data, traits: .init(isKeyFrame: isKey, temporalLayer: 0), limit: 120)
        var packets: [[UInt8]] = []
        for (position, payload) in payloads.enumerated() {
            packets.append(packet(payload, marker: position == payloads.count - 1, now))
            if Int.random(in: 0..<20, using: &random) == 0 { packets.append(padding(now)) }
        }
        return packets
    }

    mutating func packet(_ payload: [UInt8], marker: Bool, _ now: Instant) -> [UInt8] {
        defer { sequence += 1 }
        return RTPPacket(
            marker: marker, payloadType: PayloadType(96),
            sequenceNumber: SequenceNumber(UInt16(truncatingIfNeeded: sequence)), timestamp: timestamp(now),
            ssrc: ssrc, payload: payload
        ).serialized()
    }

    mutating func padding(_ now: Instant) -> [UInt8] {
        defer { sequence += 1 }
        return RTPPacket(
            payloadType: PayloadType(96), sequenceNumber: SequenceNumber(UInt16(truncatingIfNeeded: sequence)),
            timestamp: timestamp(now), ssrc: ssrc, paddingLength: 200
        ).serialized()
    }
}

@Suite struct StreamForwarderTests {
    private func forwardable(_ bytes: [UInt8], _ format: VideoPayloadFormat? = .vp8) throws -> ForwardablePacket {
        ForwardablePacket(bytes, header: try RTPHeader(parsing: bytes), format: format)
    }

    private func forward(
        _ forwarder: inout StreamForwarder, _ bytes: [UInt8], layer: Int, _ now: Instant,
        _ format: VideoPayloadFormat? = .vp8
    ) throws -> [RTPPacket] {
        var packets: [RTPPacket] = []
        if let sent = forwarder.forward(try forwardable(bytes, format), layer: layer, now: now) {
            packets.append(try RTPPacket(parsing: sent))
        }
        while let sent = forwarder.poll() { packets.append(try RTPPacket(parsing: sent)) }
        return packets
    }

    // RTP10: three layers with padding, reordering, loss that is repaired late, copies and random switches. The
    // receiver's sequence numbers have no gap once everything came, picture ids go on by one per frame, timestamps
    // rise with the sender's clock, and each layer is entered with a key frame.
    @Test(arguments: 1...60) func randomSwitchesGiveOneContinuousStream(seed: Int) throws {
        var random = RandomSource(seed: UInt64(seed))
        var layers = (0..<3).map { Layer($0, random: &random) }
        var forwarder = StreamForwarder(
            ssrc: SSRC(7), payloadType: PayloadType(100), clockRate: 90_000, isVideo: true, random: &random)
        var sent: [(packet: RTPPacket, at: Instant)] = []
        /// Packets on their way: due time and what.
        var flying: [(due: Instant, layer: Int, bytes: [UInt8])] = []
        forwarder.select(0)
        for tick in 0..<400 {
            let now = at(milliseconds: tick * 33)
            for index in layers.indices {
                if forwarder.layerNeedingKeyFrame == index, Int.random(in: 0..<3, using: &random) == 0 {
                    layers[index].wantsKeyFrame = true
                }
                if tick % 10 == 0 {
                    let report = SenderReport(
                        ssrc: layers[index].ssrc, ntpTime: NTPTime(now), rtpTimestamp: layers[index].timestamp(now),
                        packetCount: 0, octetCount: 0)
                    forwarder.receive(report, layer: index)
                }
                for bytes in layers[index].frame(now, random: &random) {
                    // Mostly in order; some late by a few packets, some by a retransmission; some twice.
                    var delay = Int64(flying.count)
                    switch Int.random(in: 0..<20, using: &random) {
                    case 0: delay += 3_000_000
                    case 1: delay += 60_000_000
                    case 2: flying.append((Instant(nanoseconds: now.nanoseconds + 20_000_000), index, bytes))
                    default: break
                    }
                    flying.append((Instant(nanoseconds: now.nanoseconds + delay), index, bytes))
                }
            }
            if Int.random(in: 0..<25, using: &random) == 0 {
                forwarder.select(
                    Int.random(in: 0..<12, using: &random) == 0 ? nil : Int.random(in: 0..<3, using: &random))
            } else if forwarder.currentLayer == nil, forwarder.targetLayer == nil {
                forwarder.select(1)
            }
            let horizon = at(milliseconds: (tick + 1) * 33)
            let arrived = flying.filter { $0.due < horizon }.sorted { $0.due < $1.due }
            flying.removeAll { $0.due < horizon }
            for item in arrived {
                for packet in try forward(&forwarder, item.bytes, layer: item.layer, item.due) {
                    sent.append((packet, item.due))
                }
            }
        }
        #expect(forwarder.switchCount >= 3)
        // One SSRC and payload type.
        #expect(sent.allSatisfy { $0.packet.ssrc == SSRC(7) && $0.packet.payloadType == PayloadType(100) })
        // No number twice; the numbers of what came form one run but for packets that a switch or pause cut off.
        var unwrapper = SequenceUnwrapper()
        var byNumber: [Int64: (packet: RTPPacket, at: Instant)] = [:]
        for item in sent {
            let number = unwrapper.unwrap(item.packet.sequenceNumber)
            #expect(byNumber[number] == nil)
            byNumber[number] = item
        }
        let numbers = byNumber.keys.sorted()
        let missing = Int(numbers[numbers.count - 1] - numbers[0]) + 1 - numbers.count
        // Only packets in flight when forwarding was paused, or when two switches followed within a round trip, and
        // those still in flight at the end may be missing.
        #expect(missing <= numbers.count / 100 + 8, "missing \(missing) of \(numbers.count)")
        // What a decoder sees, in order of the numbers.
        var lastID: UInt16?
        var lastTL0: UInt8?
        var lastTimestamp: RTPTimestamp?
        var layerShown: UInt8?
        for number in numbers {
            guard let item = byNumber[number], !item.packet.payload.isEmpty else { continue }
            let payload = item.packet.payload
            let descriptor = try VP8PayloadDescriptor(parsing: payload, in: 0..<payload.count)
            let id = try #require(descriptor.pictureID)
            if id != lastID {
                if let lastID { #expect(id == (lastID &+ 1) & 0x7FFF) }
                if let lastTL0 { #expect(descriptor.tl0PictureIndex == lastTL0 &+ 1) }
                if let lastTimestamp { #expect(item.packet.timestamp.distance(from: lastTimestamp) > 0) }
                lastID = id
                lastTL0 = descriptor.tl0PictureIndex
                lastTimestamp = item.packet.timestamp
            } else {
                #expect(item.packet.timestamp == lastTimestamp)
            }
            if descriptor.startsFrame {
                let layer = payload[descriptor.length + 1]
                if layer != layerShown {
                    #expect(payload[descriptor.length] == 0, "layer entered without key frame")
                    layerShown = layer
                }
            }
        }
        // Timestamps keep to the sender's clock over the whole run.
        let first = try #require(sent.first)
        let last = try #require(sent.last)
        let elapsed = Double(last.packet.timestamp.distance(from: first.packet.timestamp)) / 90
        #expect(abs(elapsed - (last.at - first.at).inMilliseconds) < 200)
    }

    @Test func paddingLeavesNoGap() throws {
        var random = RandomSource(seed: 1)
        var layer = Layer(0, random: &random)
        layer.sequence = 65_534
        var forwarder = StreamForwarder(
            ssrc: SSRC(7), payloadType: nil, clockRate: 90_000, isVideo: true, random: &random)
        forwarder.select(0)
        let key = layer.packet([0x10, 0x00], marker: true, .zero)
        let paddings = [layer.padding(.zero), layer.padding(.zero)]
        let next = layer.packet([0x10, 0x01], marker: true, .zero)
        let latePadding = layer.padding(.zero)
        let last = layer.packet([0x10, 0x01], marker: true, .zero)
        var numbers: [Int] = []
        var out: [RTPPacket] = []
        for bytes in [key, paddings[0], paddings[1], paddings[0], next, paddings[1], last, latePadding] {
            let packets = try forward(&forwarder, bytes, layer: 0, .zero)
            out += packets
            numbers += packets.map { $0.sequenceNumber.distance(from: out[0].sequenceNumber) }
        }
        // The padding that came after its successor keeps its number, which was left free.
        #expect(numbers == [0, 1, 3, 2])
        #expect(out.map(\.payload.isEmpty) == [false, false, false, true])
    }

    @Test func packetsThatOvertookTheKeyFrameFollowIt() throws {
        var random = RandomSource(seed: 2)
        var layer = Layer(1, random: &random)
        var forwarder = StreamForwarder(
            ssrc: SSRC(7), payloadType: nil, clockRate: 90_000, isVideo: true, random: &random)
        forwarder.select(1)
        #expect(forwarder.layerNeedingKeyFrame == 1)
        let old = layer.packet([0x10, 0x01], marker: true, .zero)
        let start = layer.packet([0x10, 0x00, 1], marker: false, .zero)
        let middle = layer.packet([0x00, 0x22], marker: false, .zero)
        let end = layer.packet([0x00, 0x33], marker: true, .zero)
        for bytes in [end, old, middle] { #expect(try forward(&forwarder, bytes, layer: 1, .zero).isEmpty) }
        let packets = try forward(&forwarder, start, layer: 1, .zero)
        #expect(packets.map { $0.payload[1] } == [0x00, 0x22, 0x33])
        #expect(packets.map { $0.sequenceNumber.distance(from: packets[0].sequenceNumber) } == [0, 1, 2])
        #expect(forwarder.layerNeedingKeyFrame == nil && forwarder.currentLayer == 1)
        // The old frame comes again: it lies before the start.
        #expect(try forward(&forwarder, old, layer: 1, .zero).isEmpty)
    }

    @Test func keyFrameOfWhichPartsAreGoneIsNotEntered() throws {
        var random = RandomSource(seed: 2)
        var layer = Layer(1, random: &random)
        var forwarder = StreamForwarder(
            ssrc: SSRC(7), payloadType: nil, clockRate: 90_000, isVideo: true, random: &random)
        forwarder.select(1)
        let start = layer.packet([0x10, 0x00, 1], marker: false, .zero)
        for _ in 0..<400 {
            let packets = try forward(&forwarder, layer.packet([0x00, 0x22], marker: false, .zero), layer: 1, .zero)
            #expect(packets.isEmpty)
        }
        #expect(try forward(&forwarder, start, layer: 1, .zero).isEmpty)
        #expect(forwarder.layerNeedingKeyFrame == 1)
        let second = layer.packet([0x10, 0x00, 1], marker: true, .zero)
        #expect(try forward(&forwarder, second, layer: 1, .zero).count == 1)
    }

    // A slice of an H.264 key frame is no entry while its parameter sets may still be on their way.
    @Test func parameterSetsAreWaitedFor() throws {
        var random = RandomSource(seed: 2)
        var layer = Layer(1, random: &random)
        let end = layer.packet([0x41, 0x9A], marker: true, .zero)
        let sets = layer.packet(hex("780004 6742c00d 000268ce"), marker: false, at(milliseconds: 33))
        let slice = layer.packet([0x65, 0x88, 1], marker: true, at(milliseconds: 33))
        let next = layer.packet([0x65, 0x88, 1], marker: true, at(milliseconds: 66))
        func numbers(_ order: [[UInt8]]) throws -> [UInt8] {
            var forwarder = StreamForwarder(
                ssrc: SSRC(7), payloadType: nil, clockRate: 90_000, isVideo: true, random: &random)
            forwarder.select(1)
            return try order.flatMap { try forward(&forwarder, $0, layer: 1, .zero, .h264) }.map { $0.payload[0] }
        }
        #expect(try numbers([end, slice, sets, next]) == [0x78, 0x65, 0x65])
        #expect(try numbers([slice]) == [])
        #expect(try numbers([end, sets, slice]) == [0x78, 0x65])
        // Without parameter sets in the stream: the frame before is known to be over.
        #expect(try numbers([slice, next]) == [0x65])
        #expect(try numbers([next, slice]) == [0x65])
    }

    @Test func latePacketsOfTheOldLayerFillTheirNumbers() throws {
        var random = RandomSource(seed: 3)
        var low = Layer(0, random: &random)
        var high = Layer(2, random: &random)
        var forwarder = StreamForwarder(
            ssrc: SSRC(7), payloadType: nil, clockRate: 90_000, isVideo: true, random: &random)
        forwarder.select(0)
        let first = try forward(&forwarder, low.packet([0x10, 0], marker: true, .zero), layer: 0, .zero)
        let late = low.packet([0x10, 1], marker: true, .zero)
        let second = try forward(&forwarder, low.packet([0x10, 1], marker: true, .zero), layer: 0, .zero)
        let later = low.packet([0x10, 1], marker: true, .zero)
        forwarder.select(2)
        let key = try forward(&forwarder, high.packet([0x10, 0], marker: true, .zero), layer: 2, .zero)
        let filled = try forward(&forwarder, late, layer: 0, .zero)
        #expect(try forward(&forwarder, later, layer: 0, .zero).isEmpty)
        #expect(try forward(&forwarder, late, layer: 0, .zero).isEmpty)
        let numbers = (first + second + key + filled).map { $0.sequenceNumber.distance(from: first[0].sequenceNumber) }
        #expect(numbers == [0, 2, 3, 1])
    }

    @Test func soundStartsWithAnyPacketAndGoesOnAfterAPause() throws {
        var random = RandomSource(seed: 4)
        var forwarder = StreamForwarder(
            ssrc: SSRC(9), payloadType: nil, clockRate: 48_000, isVideo: false, random: &random)
        forwarder.select(0)
        func opus(_ number: UInt16, _ time: UInt32) -> [UInt8] {
            RTPPacket(
                payloadType: PayloadType(111), sequenceNumber: SequenceNumber(number), timestamp: RTPTimestamp(time),
                ssrc: SSRC(1), payload: [0x78, 1, 2]
            ).serialized()
        }
        let first = try forward(&forwarder, opus(10, 1000), layer: 0, .zero, nil)[0]
        let second = try forward(&forwarder, opus(11, 1960), layer: 0, at(milliseconds: 20), nil)[0]
        #expect(second.sequenceNumber == first.sequenceNumber + 1)
        #expect(second.timestamp == first.timestamp + 960)
        forwarder.select(nil)
        #expect(try forward(&forwarder, opus(12, 2920), layer: 0, at(milliseconds: 40), nil).isEmpty)
        forwarder.select(0)
        let resumed = try forward(&forwarder, opus(62, 50_920), layer: 0, at(milliseconds: 1040), nil)[0]
        #expect(resumed.sequenceNumber == first.sequenceNumber + 2)
        #expect(resumed.timestamp == first.timestamp + 49_920)
        forwarder.sourceRestarted(0)
        let restarted = try forward(&forwarder, opus(7, 7), layer: 0, at(milliseconds: 1140), nil)[0]
        #expect(restarted.sequenceNumber == first.sequenceNumber + 3)
        #expect(abs(Int(restarted.timestamp.distance(from: resumed.timestamp)) - 4800) < 50)
    }

    @Test func senderReportsGiveOutgoingTimestamps() throws {
        var random = RandomSource(seed: 5)
        var low = Layer(0, random: &random)
        var forwarder = StreamForwarder(
            ssrc: SSRC(7), payloadType: nil, clockRate: 90_000, isVideo: true, random: &random)
        forwarder.select(0)
        #expect(forwarder.outgoingTimestamp(at: NTPTime(0)) == nil)
        let report = SenderReport(
            ssrc: low.ssrc, ntpTime: NTPTime(at(milliseconds: 5000)),
            rtpTimestamp: low.timestamp(at(milliseconds: 1000)),
            packetCount: 0, octetCount: 0)
        forwarder.receive(report, layer: 0)
        let key = try forward(&forwarder, low.packet([0x10, 0], marker: true, at(milliseconds: 2000)), layer: 0, .zero)
        #expect(forwarder.outgoingTimestamp(at: NTPTime(at(milliseconds: 6000))) == key[0].timestamp)
    }

    @Test func frameNumbersOfDependencyDescriptorsGoOn() throws {
        var random = RandomSource(seed: 6)
        var forwarder = StreamForwarder(
            ssrc: SSRC(7), payloadType: nil, clockRate: 90_000, isVideo: true, random: &random)
        func packet(_ ssrc: UInt32, _ number: UInt16, _ frame: UInt16, key: Bool) throws -> ForwardablePacket {
            let bytes = RTPPacket(
                marker: true, payloadType: PayloadType(45), sequenceNumber: SequenceNumber(number),
                timestamp: RTPTimestamp(UInt32(number)), ssrc: SSRC(ssrc),
                extensions: [.init(id: 5, value: [0xC0, UInt8(frame >> 8), UInt8(truncatingIfNeeded: frame)])],
                payload: [key ? 0x18 : 0x10, 0x0A, 0x01]
            ).serialized()
            return ForwardablePacket(
                bytes, header: try RTPHeader(parsing: bytes), format: .av1, dependencyDescriptorID: 5)
        }
        var numbers: [UInt16] = []
        func send(_ packet: ForwardablePacket, layer: Int) throws {
            guard let bytes = forwarder.forward(packet, layer: layer, now: .zero) else { return }
            let value = try RTPPacket(parsing: bytes).extensions[0].value
            numbers.append(UInt16(value[1]) << 8 | UInt16(value[2]))
        }
        forwarder.select(0)
        try send(try packet(1, 1, 65_535, key: true), layer: 0)
        try send(try packet(1, 2, 0, key: false), layer: 0)
        forwarder.select(1)
        try send(try packet(2, 900, 700, key: false), layer: 1)
        try send(try packet(2, 901, 701, key: true), layer: 1)
        try send(try packet(2, 902, 702, key: false), layer: 1)
        #expect(numbers == [65_535, 0, 1, 2])
    }

    // With end-to-end encryption the payload says nothing; the descriptor does.
    @Test func descriptorTellsKeyFramesOfUnreadablePayloads() throws {
        var writer = DependencyDescriptorWriter()
        let values = writer.values(isKeyFrame: true, packetCount: 2) + writer.values(isKeyFrame: false, packetCount: 1)
        let starts = try values.map { value in
            let bytes = RTPPacket(
                payloadType: PayloadType(45), sequenceNumber: SequenceNumber(1), timestamp: RTPTimestamp(1),
                ssrc: SSRC(1),
                extensions: [.init(id: 5, value: value)], payload: [0xFF, 0xFF, 0xFF]
            ).serialized()
            let header = try RTPHeader(parsing: bytes)
            return ForwardablePacket(bytes, header: header, format: .av1, dependencyDescriptorID: 5).startsKeyFrame
        }
        #expect(starts == [true, false, false])
    }

    // RTP9: 30 receivers join within 100 ms: at most two requests; lost requests are repeated with back-off.
    @Test func keyFrameRequestsAreMergedAndRepeated() {
        var requester = KeyFrameRequester()
        var sent: [Int] = []
        for millisecond in 0..<700 {
            let now = at(milliseconds: millisecond)
            if millisecond < 100, millisecond % 3 == 0 { requester.request(now: now) }
            if requester.handleTimeout(now: now) { sent.append(millisecond) }
            if millisecond == 50 || millisecond == 350 { requester.keyFrameArrived() }
        }
        #expect(sent == [0, 100])
        var lossy = KeyFrameRequester()
        lossy.request(now: .zero)
        var times: [Instant] = []
        while times.count < 6, let next = lossy.nextTimeout { if lossy.handleTimeout(now: next) { times.append(next) } }
        #expect(times == [0, 300, 900, 2100, 4500, 7500].map { at(milliseconds: $0) })
        lossy.keyFrameArrived()
        #expect(lossy.nextTimeout == nil)
    }

    // RTP9: who comes just behind a key frame waits 100 ms at most; but a crowd costs the source one key frame in 300 ms.
    @Test func requestsComeQuicklyInShortRunsOnly() {
        var requester = KeyFrameRequester()
        var sent: [Int] = []
        for millisecond in 0..<3_000 {
            let now = at(milliseconds: millisecond)
            // Somebody wants a key frame all the time, and each request is answered 20 ms later.
            if millisecond < 2_000 || millisecond >= 2_900 { requester.request(now: now) }
            if requester.handleTimeout(now: now) { sent.append(millisecond) }
            if let last = sent.last, millisecond == last + 20 { requester.keyFrameArrived() }
        }
        #expect(sent == [0, 100, 200, 300, 600, 900, 1200, 1500, 1800, 2100, 2900])
    }
}
