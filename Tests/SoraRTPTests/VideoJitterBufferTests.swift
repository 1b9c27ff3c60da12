import SoraEmulator
import SoraRTP
import SoraWire
import Testing

/// Frames for a buffer, packet by packet.
private struct FrameSource {
    var packetizer: any VideoPacketizer
    var sequence: Int
    var timestamp: UInt32 = 0
    var count = 0

    init(sequence: Int = 65_530) {
        self.sequence = sequence
        packetizer = VP8Packetizer(pictureID: 0x7FFE, tl0PictureIndex: 250)
    }

    mutating func frame(key: Bool = false, size: Int = 20, layer: UInt8? = nil, sync: Bool = false) -> [[UInt8]] {
        count += 1
        timestamp &+= 3000
        var data = [UInt8](repeating: UInt8(truncatingIfNeeded: count), count: size)
        data[0] = key ? 0 : 1
        let payloads = packetizer.packetize(
            data, traits: .init(isKeyFrame: key, temporalLayer: layer, isLayerSync: sync), limit: 16)
        return payloads.enumerated().map { index, payload in packet(payload, marker: index == payloads.count - 1) }
    }

    mutating func packet(_ payload: [UInt8], marker: Bool, padding: UInt8 = 0) -> [UInt8] {
        defer { sequence += 1 }
        return RTPPacket(
            marker: marker, payloadType: PayloadType(96),
            sequenceNumber: SequenceNumber(UInt16(truncatingIfNeeded: sequence)), timestamp: RTPTimestamp(timestamp),
            ssrc: SSRC(1), payload: payload, paddingLength: padding
        ).serialized()
    }
}

@Suite struct VideoJitterBufferTests {
    /// Inserts, and gives the second byte of each frame that comes out (its number), or -1 for a key frame request.
    private func insert(_ buffer: inout VideoJitterBuffer, _ packets: [[UInt8]], _ now: Instant = .zero) throws -> [Int]
    {
        for packet in packets { buffer.insert(packet, header: try RTPHeader(parsing: packet), now: now) }
        return drain(&buffer)
    }
    private func drain(_ buffer: inout VideoJitterBuffer) -> [Int] {
        var result: [Int] = []
        while let output = buffer.poll() {
            switch output {
            case .frame(let frame): result.append(Int(frame.data[1]))
            case .keyFrameNeeded: result.append(-1)
            }
        }
        return result
    }

    /// The key frame that a stream began with may be lost: a new one is asked for, once.
    @Test func lostStartIsAskedForOnce() throws {
        var source = FrameSource()
        var buffer = VideoJitterBuffer(format: .vp8)
        #expect(try insert(&buffer, source.frame()) == [])
        let due = try #require(buffer.nextTimeout)
        buffer.handleTimeout(now: due)
        #expect(buffer.poll() == .keyFrameNeeded)
        #expect(buffer.nextTimeout == nil && buffer.poll() == nil)
        #expect(try insert(&buffer, source.frame()) == [])
        #expect(try insert(&buffer, source.frame(key: true)) == [3])
    }

    @Test func startsWithAKeyFrameAndKeepsOrder() throws {
        var source = FrameSource()
        var buffer = VideoJitterBuffer(format: .vp8)
        #expect(try insert(&buffer, source.frame()) == [])
        #expect(buffer.isWaitingForKeyFrame)
        let key = source.frame(key: true, size: 50)
        let second = source.frame(size: 30)
        #expect(try insert(&buffer, second + key.dropFirst().reversed()) == [])
        #expect(try insert(&buffer, [key[0]]) == [2, 3])
        #expect(try insert(&buffer, key) == [])
        #expect(buffer.droppedPackets == UInt64(key.count))
        #expect(buffer.storedPackets == 0 && buffer.nextTimeout == nil)
    }

    @Test func waitsForARetransmissionThenGoesOn() throws {
        var source = FrameSource()
        var buffer = VideoJitterBuffer(format: .vp8)
        #expect(try insert(&buffer, source.frame(key: true)) == [1])
        let second = source.frame(size: 40)
        let third = source.frame(size: 40)
        var lost = second
        let missing = lost.remove(at: 1)
        #expect(try insert(&buffer, lost + third) == [])
        #expect(buffer.nextTimeout == at(milliseconds: 500))
        buffer.handleTimeout(now: at(milliseconds: 400))
        #expect(try insert(&buffer, [missing], at(milliseconds: 400)) == [2, 3])
    }

    @Test func lossEndsInAKeyFrameRequestAndNothingUndecodable() throws {
        var source = FrameSource()
        var buffer = VideoJitterBuffer(format: .vp8)
        #expect(try insert(&buffer, source.frame(key: true)) == [1])
        _ = source.frame()
        #expect(try insert(&buffer, source.frame()) == [])
        buffer.handleTimeout(now: at(milliseconds: 500))
        #expect(drain(&buffer) == [-1])
        #expect(buffer.isWaitingForKeyFrame && buffer.nextTimeout == nil)
        #expect(try insert(&buffer, source.frame(), at(milliseconds: 520)) == [])
        #expect(try insert(&buffer, source.frame(key: true), at(milliseconds: 540)) == [5])
        #expect(try insert(&buffer, source.frame(), at(milliseconds: 560)) == [6])
    }

    @Test func keyFrameBehindAGapIsShownSoon() throws {
        var source = FrameSource()
        var buffer = VideoJitterBuffer(format: .vp8)
        #expect(try insert(&buffer, source.frame(key: true)) == [1])
        _ = source.frame()
        #expect(try insert(&buffer, source.frame(key: true, size: 40)) == [])
        #expect(buffer.nextTimeout == at(milliseconds: 40))
        buffer.handleTimeout(now: at(milliseconds: 40))
        #expect(drain(&buffer) == [3])
        // The same, but the key frame is complete only later.
        _ = source.frame()
        let key = source.frame(key: true, size: 40)
        #expect(try insert(&buffer, Array(key.dropLast()), at(milliseconds: 100)) == [])
        buffer.handleTimeout(now: at(milliseconds: 140))
        #expect(buffer.nextTimeout == at(milliseconds: 600))
        #expect(try insert(&buffer, [key[key.count - 1]], at(milliseconds: 150)) == [5])
    }

    @Test func lostUpperTemporalLayersAreSkipped() throws {
        var source = FrameSource()
        var buffer = VideoJitterBuffer(format: .vp8)
        #expect(try insert(&buffer, source.frame(key: true, layer: 0)) == [1])
        _ = source.frame(layer: 1, sync: true)
        let base = source.frame(layer: 0)
        #expect(try insert(&buffer, base) == [])
        buffer.abandonGap(now: at(milliseconds: 30))
        #expect(drain(&buffer) == [3])
        // The layer that lost a frame stays out until its synchronization frame.
        #expect(try insert(&buffer, source.frame(layer: 1)) == [])
        #expect(try insert(&buffer, source.frame(layer: 0)) == [5])
        #expect(try insert(&buffer, source.frame(layer: 1, sync: true)) == [6])
        #expect(try insert(&buffer, source.frame(layer: 1)) == [7])
        // A lost base frame cannot be skipped.
        _ = source.frame(layer: 0)
        #expect(try insert(&buffer, source.frame(layer: 0)) == [])
        buffer.abandonGap(now: at(milliseconds: 60))
        #expect(drain(&buffer) == [-1])
    }

    @Test func lostPaddingIsNoLoss() throws {
        var source = FrameSource()
        var buffer = VideoJitterBuffer(format: .vp8)
        #expect(try insert(&buffer, source.frame(key: true)) == [1])
        let padding = source.packet([], marker: false, padding: 100)
        #expect(try insert(&buffer, [padding] + source.frame()) == [2])
        _ = source.packet([], marker: false, padding: 100)
        #expect(try insert(&buffer, source.frame()) == [])
        buffer.abandonGap(now: at(milliseconds: 10))
        #expect(drain(&buffer) == [3])
    }

    @Test func frameCutOffByASwitchIsNotShown() throws {
        var source = FrameSource()
        var buffer = VideoJitterBuffer(format: .vp8)
        #expect(try insert(&buffer, source.frame(key: true)) == [1])
        let cut = source.frame(size: 60)
        source.sequence -= 2
        #expect(try insert(&buffer, Array(cut.dropLast(2)) + source.frame(key: true)) == [3])
        let again = source.frame(size: 60)
        source.sequence -= 1
        #expect(try insert(&buffer, Array(again.dropLast()) + source.frame()) == [-1])
    }

    // RTP8: a key frame of 400 packets over the wrap, reordered
    @Test func largeKeyFrameOverTheWrap() throws {
        var source = FrameSource(sequence: 65_300)
        var buffer = VideoJitterBuffer(format: .vp8)
        var packets = source.frame(key: true, size: 400 * 12)
        #expect(packets.count == 400)
        for index in stride(from: 0, to: 399, by: 2) { packets.swapAt(index, index + 1) }
        #expect(try insert(&buffer, packets) == [1])
        #expect(try insert(&buffer, source.frame()) == [2])
    }

    // RTP8: bounded by packets and bytes
    @Test func boundsAreKept() throws {
        var source = FrameSource()
        var configuration = VideoJitterBuffer.Configuration()
        configuration.maximumPackets = 300
        var buffer = VideoJitterBuffer(format: .vp8, configuration: configuration)
        #expect(try insert(&buffer, source.frame(key: true)) == [1])
        _ = source.frame()
        var requests = 0
        for _ in 0..<2000 {
            requests += try insert(&buffer, source.frame(size: 30)).filter { $0 == -1 }.count
            #expect(buffer.storedPackets <= 300)
        }
        #expect(requests == 1)
        #expect(try insert(&buffer, source.frame(key: true)).count == 1)
        buffer.reset()
        #expect(buffer.storedPackets == 0 && buffer.isWaitingForKeyFrame)
    }

    @Test func randomPacketsDoNoHarm() throws {
        var random = RandomSource(seed: 9)
        for format in VideoPayloadFormat.allCases {
            var buffer = VideoJitterBuffer(format: format)
            for step in 0..<3000 {
                let packet = RTPPacket(
                    marker: Bool.random(using: &random), payloadType: PayloadType(96),
                    sequenceNumber: SequenceNumber(
                        UInt16(truncatingIfNeeded: step / 3 + Int.random(in: 0...8, using: &random))),
                    timestamp: RTPTimestamp(UInt32(step / 9)), ssrc: SSRC(1),
                    payload: random.bytes(Int.random(in: 0...12, using: &random))
                ).serialized()
                buffer.insert(packet, header: try RTPHeader(parsing: packet), now: at(milliseconds: step))
                while buffer.poll() != nil {}
                if let next = buffer.nextTimeout, next <= at(milliseconds: step) {
                    buffer.handleTimeout(now: at(milliseconds: step))
                    #expect(buffer.nextTimeout.map { $0 > at(milliseconds: step) } ?? true)
                }
            }
        }
    }

    // All frames come through 5 % loss and 50 ms each way by NACK and RTX, in order and once.
    @Test(arguments: 6...11) func everyFrameIsRecovered(seed: Int) throws {
        var random = RandomSource(seed: UInt64(seed))
        let format = VideoPayloadFormat.allCases[seed % 2]  // VP8, VP9
        let conditions = LinkConditions(delay: .milliseconds(50), jitter: .milliseconds(5), loss: 0.05)
        var forth = EmulatedLink<[UInt8]>(conditions, seed: UInt64(seed), link: 1)
        var back = EmulatedLink<[SequenceNumber]>(conditions, seed: UInt64(seed), link: 2)
        let types = [PayloadType(96): PayloadType(97)]
        var history = RTPSendHistory(
            rtx: RTXSender(ssrc: SSRC(2), payloadTypes: types, sequenceNumber: SequenceNumber(65_000)))
        let restorer = RTXReceiver(originalSSRC: SSRC(1), payloadTypes: [PayloadType(97): PayloadType(96)])
        var generator = NACKGenerator()
        generator.setRoundTripTime(.milliseconds(105))
        history.setRoundTripTime(.milliseconds(90))
        var configuration = VideoJitterBuffer.Configuration()
        configuration.maximumWait = .seconds(2)
        var buffer = VideoJitterBuffer(format: format, configuration: configuration)
        var packetizer = format.makePacketizer(random: &random)
        var sequence = SequenceNumber(UInt16.random(in: 64_000...65_535, using: &random))
        var frames: [[UInt8]] = []
        var received: [[UInt8]] = []
        var worst: Duration = .zero
        var sentAt: [UInt32: Instant] = [:]
        for millisecond in 0..<12_000 {
            let now = at(milliseconds: millisecond)
            if millisecond % 33 == 0, millisecond < 10_000 {
                // Nobody can know of packets lost before the first that came: that takes another key frame.
                let isKey = frames.isEmpty || (received.isEmpty && frames.count % 8 == 0)
                var data = random.bytes(Int.random(in: 200...(isKey ? 20_000 : 6000), using: &random))
                data[0] = data[0] & 0xFE | (isKey ? 0 : 1)
                frames.append(data)
                let timestamp = RTPTimestamp(UInt32(millisecond * 90))
                sentAt[timestamp.rawValue] = now
                let payloads = packetizer.packetize(data, traits: .init(isKeyFrame: isKey), limit: 1150)
                for (index, payload) in payloads.enumerated() {
                    let packet = RTPPacket(
                        marker: index == payloads.count - 1, payloadType: PayloadType(96), sequenceNumber: sequence,
                        timestamp: timestamp, ssrc: SSRC(1), payload: payload
                    ).serialized()
                    history.store(packet, sequenceNumber: sequence, now: now)
                    sequence += 1
                    forth.send(packet, now: now)
                }
            }
            while let lost = back.receive(now: now) {
                for packet in history.answer(lost, now: now) { forth.send(packet, now: now) }
            }
            while var packet = forth.receive(now: now) {
                var header = try RTPHeader(parsing: packet)
                if header.ssrc == SSRC(2) {
                    packet = try #require(restorer.unwrap(packet, header: header))
                    header = try RTPHeader(parsing: packet)
                }
                generator.receive(header.sequenceNumber, now: now)
                buffer.insert(packet, header: header, now: now)
            }
            if let next = generator.nextTimeout, next <= now {
                let request = generator.handleTimeout(now: now)
                #expect(!request.isStreamBroken)
                if !request.lost.isEmpty { back.send(request.lost, size: 40, now: now) }
            }
            if let next = buffer.nextTimeout, next <= now { buffer.handleTimeout(now: now) }
            while let output = buffer.poll() {
                guard case .frame(let frame) = output else {
                    Issue.record("key frame needed at \(now)")
                    continue
                }
                received.append(frame.data)
                if let sent = sentAt[frame.timestamp.rawValue] { worst = max(worst, now - sent) }
            }
        }
        #expect(forth.counts.lost > 25)
        // The last frame's tail may be lost with nothing behind it to show the gap.
        let shown = try #require(received.first)
        let first = try #require(frames.firstIndex(of: shown))
        #expect(first < 24 && first + received.count >= frames.count - 1)
        #expect(received == Array(frames[first..<(first + received.count)]))
        #expect(worst < .milliseconds(900))
    }

    // Without retransmission each loss costs a key frame, and no frame is shown that depends on a lost one.
    @Test(arguments: 1...6) func nothingUndecodableIsShown(seed: Int) throws {
        var random = RandomSource(seed: UInt64(seed))
        var source = FrameSource(sequence: 65_000)
        var buffer = VideoJitterBuffer(format: .vp8)
        var isKeyFrameWanted = true
        var previous = -1
        var shown = 0
        var now = Instant.zero
        for step in 0..<2000 {
            now = at(milliseconds: step * 33)
            let key = isKeyFrameWanted
            isKeyFrameWanted = false
            for packet in source.frame(key: key, size: 30) where Int.random(in: 0..<100, using: &random) >= 2 {
                buffer.insert(packet, header: try RTPHeader(parsing: packet), now: now)
            }
            if let next = buffer.nextTimeout, next <= now { buffer.handleTimeout(now: now) }
            while let output = buffer.poll() {
                switch output {
                case .keyFrameNeeded: isKeyFrameWanted = true
                case .frame(let frame):
                    let number = Int(frame.timestamp.rawValue / 3000)
                    #expect(frame.isKeyFrame || number == previous + 1)
                    previous = number
                    shown += 1
                }
            }
            // The request, or the key frame, may be lost as well: ask again, as KeyFrameRequester does.
            if buffer.isWaitingForKeyFrame, step % 10 == 0 { isKeyFrameWanted = true }
        }
        #expect(shown > 200)
    }
}
