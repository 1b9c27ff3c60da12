import SoraRTP
import SoraWire
import Testing

@Suite struct AudioJitterBufferTests {
    private static let speech: UInt8 = 0x78  // CELT 20 ms mono

    private func insert(
        _ buffer: inout AudioJitterBuffer, _ number: Int, time: Int? = nil, payload: [UInt8]? = nil, at millisecond: Int
    ) throws {
        let bytes = payload ?? [AudioJitterBufferTests.speech, UInt8(truncatingIfNeeded: number), 7, 7]
        let packet = RTPPacket(
            payloadType: PayloadType(111), sequenceNumber: SequenceNumber(UInt16(truncatingIfNeeded: number)),
            timestamp: RTPTimestamp(UInt32(truncatingIfNeeded: time ?? number * 960)), ssrc: SSRC(1), payload: bytes
        ).serialized()
        buffer.insert(bytes, header: try RTPHeader(parsing: packet), now: at(milliseconds: millisecond))
    }

    /// Plays for a while at the sound card's pace; numbers of packets, or letters for the rest.
    private func play(_ buffer: inout AudioJitterBuffer, from start: Int, until end: Int, clock: inout Int) -> [String]
    {
        var pieces: [String] = []
        clock = max(clock, start * 48)
        while clock < end * 48 {
            let piece = buffer.pull(now: Instant(nanoseconds: Int64(clock) * 1_000_000 / 48))
            clock += piece.samples
            switch piece {
            case .packet(let payload, _, _): pieces.append(payload.count > 1 ? "\(payload[1])" : "s")
            case .recover(let payload, _): pieces.append("r\(payload[1])")
            case .conceal: pieces.append("c")
            case .silence: pieces.append("s")
            }
        }
        return pieces
    }

    @Test func playsInOrderAfterTheInitialDelay() throws {
        var buffer = AudioJitterBuffer()
        var clock = 0
        var pieces: [String] = []
        let base = 65_530
        for index in 0..<50 {
            // Swapped in pairs.
            let number = base + (index ^ 1)
            try insert(&buffer, number, at: index * 20)
            pieces += play(&buffer, from: index * 20, until: (index + 1) * 20, clock: &clock)
        }
        pieces += play(&buffer, from: 1000, until: 1100, clock: &clock)
        let played = pieces.compactMap { Int($0) }
        #expect(played == (0..<50).map { Int(UInt8(truncatingIfNeeded: base + $0)) })
        #expect(!pieces.dropLast(6).contains("c"))
    }

    @Test func lossTakesItsTime() throws {
        var buffer = AudioJitterBuffer()
        var clock = 0
        for number in [1, 2, 3, 6, 7, 8] { try insert(&buffer, number, at: 0) }
        let pieces = play(&buffer, from: 0, until: 160, clock: &clock)
        #expect(pieces == ["1", "2", "3", "c", "c", "6", "7", "8"])
        #expect(buffer.concealedSamples == 1920)
        // Came too late, and twice.
        try insert(&buffer, 5, at: 160)
        #expect(buffer.droppedPackets == 1)
    }

    @Test func inBandCorrectionRestoresASingleLoss() throws {
        var buffer = AudioJitterBuffer()
        var clock = 0
        // SILK 20 ms with the redundancy flag.
        for number in [1, 2, 4, 7] {
            try insert(&buffer, number, payload: [1 << 3, 0x40 | UInt8(number), 7, 7], at: 0)
        }
        let pieces = play(&buffer, from: 0, until: 140, clock: &clock)
        let flag = 0x40
        #expect(
            pieces == ["\(flag | 1)", "\(flag | 2)", "r\(flag | 4)", "\(flag | 4)", "c", "r\(flag | 7)", "\(flag | 7)"])
        #expect(buffer.recoveredPackets == 2)
    }

    @Test func runningEmptyDelaysAndDoesNotSkip() throws {
        var buffer = AudioJitterBuffer()
        var clock = 0
        for number in 1...4 { try insert(&buffer, number, at: 0) }
        #expect(play(&buffer, from: 0, until: 120, clock: &clock) == ["1", "2", "3", "4", "c", "c"])
        for number in 5...8 { try insert(&buffer, number, at: 120) }
        #expect(play(&buffer, from: 120, until: 200, clock: &clock) == ["5", "6", "7", "8"])
        // The lost packet that was concealed while empty is not concealed again.
        #expect(play(&buffer, from: 200, until: 220, clock: &clock) == ["c"])
        for number in 10...12 { try insert(&buffer, number, at: 220) }
        #expect(play(&buffer, from: 220, until: 280, clock: &clock) == ["10", "11", "12"])
        // Long silence on the wire: concealment ends, and buffering begins anew.
        let rest = play(&buffer, from: 280, until: 800, clock: &clock)
        #expect(rest.filter { $0 == "c" }.count == 6 && rest.last == "s")
        for number in 100...104 { try insert(&buffer, number, at: 800) }
        #expect(play(&buffer, from: 800, until: 880, clock: &clock) == ["100", "101", "102", "103"])
    }

    // COD10: a gap of 2 s in discontinuous transmission
    @Test func discontinuousTransmissionIsSilence() throws {
        var buffer = AudioJitterBuffer()
        var clock = 0
        for number in 1...3 { try insert(&buffer, number, at: (number - 1) * 20) }
        try insert(&buffer, 4, payload: [AudioJitterBufferTests.speech], at: 60)
        let pieces = play(&buffer, from: 60, until: 140, clock: &clock)
        #expect(pieces == ["1", "2", "3"] || pieces.prefix(3) == ["1", "2", "3"])
        let silence = play(&buffer, from: 140, until: 2060, clock: &clock)
        #expect(!silence.contains("c"))
        for number in 5...8 { try insert(&buffer, number, time: 96_000 + number * 960, at: 2060 + (number - 5) * 20) }
        let resumed = play(&buffer, from: 2060, until: 2240, clock: &clock)
        #expect(resumed.compactMap { Int($0) } == [5, 6, 7, 8])
    }

    @Test func delayFollowsTheJitter() throws {
        var random = RandomSource(seed: 4)
        var calm = AudioJitterBuffer()
        var rough = AudioJitterBuffer()
        for number in 0..<300 {
            try insert(&calm, number, at: number * 20)
            try insert(&rough, number, at: number * 20 + Int.random(in: 0...120, using: &random))
            if number > 20 {
                _ = calm.pull(now: at(milliseconds: number * 20))
                _ = rough.pull(now: at(milliseconds: number * 20))
            }
        }
        #expect(calm.targetDelay == .milliseconds(20))
        #expect(rough.targetDelay > .milliseconds(110) && rough.targetDelay < .milliseconds(160))
    }

    @Test func backlogIsWonBack() throws {
        var buffer = AudioJitterBuffer()
        for number in 0..<20 { try insert(&buffer, number, at: number * 20) }
        guard case .packet(_, _, let pace) = buffer.pull(now: at(milliseconds: 400)) else {
            Issue.record("no packet")
            return
        }
        #expect(pace == .faster)
        for number in 20..<120 { try insert(&buffer, number, at: number * 20) }
        guard case .packet(let payload, _, _) = buffer.pull(now: at(milliseconds: 2400)) else {
            Issue.record("no packet")
            return
        }
        #expect(payload[1] > 100)  // leapt
    }

    @Test func whateverComesIsBounded() throws {
        var random = RandomSource(seed: 8)
        var buffer = AudioJitterBuffer()
        for step in 0..<5000 {
            let packet = RTPPacket(
                payloadType: PayloadType(111),
                sequenceNumber: SequenceNumber(UInt16.random(in: 0...(.max), using: &random)),
                timestamp: RTPTimestamp(UInt32.random(in: 0...(.max), using: &random)), ssrc: SSRC(1)
            ).serialized()
            buffer.insert(
                random.bytes(Int.random(in: 0...6, using: &random)), header: try RTPHeader(parsing: packet),
                now: at(milliseconds: step))
            let piece = buffer.pull(now: at(milliseconds: step))
            #expect(piece.samples > 0 && piece.samples <= 5760)
        }
    }
}
