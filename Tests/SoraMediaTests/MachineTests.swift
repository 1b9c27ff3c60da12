import SoraFrames
import SoraRTP
import SoraWire
import Testing

@testable import SoraMedia

@Suite struct TrackClockTests {
    @Test func followsArrivalUntilReportsPutTracksInStep() {
        let sender = PlayoutClock()
        var video = TrackClock(clockRate: 90_000)
        var audio = TrackClock(clockRate: 48_000)
        let start = Instant(nanoseconds: 50_000_000_000)
        // Captured together; the picture's first packet came 200 ms later (a large key frame).
        #expect(audio.local(RTPTimestamp(1_000), arrival: start, sender: sender) == 50_000_000_000)
        let late = start + .milliseconds(200)
        #expect(video.local(RTPTimestamp(.max), arrival: late, sender: sender) == 50_200_000_000)
        // Reports: both first samples at the same wall-clock time.
        let wall = NTPTime(UInt64(1_000_000) << 32)
        audio.receive(ntp: wall, timestamp: RTPTimestamp(1_000), arrival: late, sender: sender)
        video.receive(ntp: wall, timestamp: RTPTimestamp(.max), arrival: late, sender: sender)
        let a = audio.local(RTPTimestamp(1_000 + 48_000), arrival: late, sender: sender)
        let v = video.local(RTPTimestamp(UInt32.max &+ 90_000), arrival: late, sender: sender)
        #expect(a == v && a == 51_000_000_000)
    }

    @Test func wrapsAndRunsForDays() {
        let sender = PlayoutClock()
        var clock = TrackClock(clockRate: 90_000)
        var timestamp = RTPTimestamp(4_000_000_000)
        let first = clock.local(timestamp, arrival: .zero, sender: sender)
        // Three days in steps of ten hours: several wraps of 13 hours.
        for _ in 0..<18 {
            timestamp = timestamp + 90_000 * 3_600 * 4
            _ = clock.local(timestamp, arrival: .zero, sender: sender)
        }
        let last = clock.local(timestamp, arrival: .zero, sender: sender)
        #expect(last - first == 18 * 4 * 3_600 * 1_000_000_000)
    }
}

@Suite struct SequenceRelayTests {
    func frame(_ number: Int) -> EncodedAudioFrame {
        EncodedAudioFrame(codec: .opus, timestamp: Int64(number), duration: 960, payload: [UInt8(number & 255)])
    }
    func drain(_ relay: inout SequenceRelay) -> [Int64] {
        var output: [Int64] = []
        while let frame = relay.poll() { output.append(frame.timestamp) }
        return output
    }

    @Test func bringsPacketsInOrderAndLeavesGaps() {
        var relay = SequenceRelay()
        var now = Instant.zero
        for number in [0, 1, 3, 2, 2, 5] {
            relay.insert(frame(number), SequenceNumber(UInt16(truncatingIfNeeded: 65_534 + number)), now: now)
        }
        #expect(drain(&relay) == [0, 1, 2, 3])
        #expect(relay.nextTimeout != nil)
        now += .milliseconds(151)
        relay.handleTimeout(now: now)
        #expect(drain(&relay) == [5])
        // Too late now.
        relay.insert(frame(4), SequenceNumber(UInt16(truncatingIfNeeded: 65_538)), now: now)
        #expect(drain(&relay).isEmpty && relay.nextTimeout == nil)
    }

    @Test func everyTimeoutMakesProgress() {
        var random = RandomSource(seed: 5)
        var relay = SequenceRelay()
        var now = Instant.zero
        var last: Int64 = -1
        for number in 0..<2_000 where random.next() % 4 != 0 {
            let shuffled = max(0, number - Int(random.next() % 6))
            relay.insert(frame(shuffled), SequenceNumber(UInt16(truncatingIfNeeded: shuffled)), now: now)
            now += .milliseconds(20)
            var rounds = 0
            while let due = relay.nextTimeout, due <= now {
                relay.handleTimeout(now: now)
                for time in drain(&relay) {
                    #expect(time > last)
                    last = time
                }
                rounds += 1
                #expect(rounds < 100)
                if rounds >= 100 { return }
            }
            for time in drain(&relay) {
                #expect(time > last)
                last = time
            }
        }
        #expect(last > 1_980)
    }
}

@Suite struct PacketPacerTests {
    @Test func largeFramesAreSpreadAndNothingIsLost() throws {
        var pacer = PacketPacer()
        pacer.setRate(1_000_000)
        let peer = try #require(LoneTransceiver.make())
        for number in 0..<80 {
            pacer.put(
                OutgoingPacket(
                    packet: RTPPacket(
                        payloadType: PayloadType(96), sequenceNumber: SequenceNumber(UInt16(number)),
                        timestamp: RTPTimestamp(0), ssrc: SSRC(0), payload: [UInt8](repeating: 0, count: 1_100)),
                    transceiver: peer, layer: 0))
        }
        var now = Instant(nanoseconds: 1_000_000_000)
        var sent: [UInt16] = []
        var mostAtOnce = 0
        var turns = 0
        while pacer.nextTimeout != nil, turns < 1_000 {
            var count = 0
            while let packet = pacer.poll(now: now) {
                sent.append(packet.packet.sequenceNumber.rawValue)
                count += 1
            }
            mostAtOnce = max(mostAtOnce, count)
            turns += 1
            if let due = pacer.nextTimeout { now = max(due, now) }
        }
        #expect(sent == (0..<80).map { UInt16($0) })
        #expect(mostAtOnce <= 8 && turns > 10)
        #expect(now - Instant(nanoseconds: 1_000_000_000) < .milliseconds(400))
    }
}

@Suite struct CodedSizeTests {
    @Test func sizeOfAVP8KeyFrameIsRead() {
        // The upper two bits of each number are a scale.
        let frame: [UInt8] = [0x50, 0, 0, 0x9D, 0x01, 0x2A, 0x80, 0x42, 0x68, 0x81]
        let size = CodedSize.of(.vp8, frame)
        #expect(size?.width == 640 && size?.height == 360)
        #expect(CodedSize.of(.vp8, Array(frame.dropLast())) == nil)
        #expect(CodedSize.of(.vp8, [0x51] + frame.dropFirst()) == nil)
        #expect(CodedSize.of(.h265, frame) == nil)
    }

    @Test func arbitraryBytesAreNoSizeAndNoCrash() {
        var random = RandomSource(seed: 11)
        for codec in VideoCodecKind.allCases {
            for length in 0..<400 {
                var bytes = random.bytes(length)
                if codec == .h264, length > 8 { bytes.replaceSubrange(0..<5, with: [0, 0, 1, 0x67, 0x42]) }
                if codec == .av1, length > 4 { bytes[0] = 0x0A }
                if codec == .vp9, length > 4 { bytes.replaceSubrange(0..<4, with: [0x82, 0x49, 0x83, 0x42]) }
                if let size = CodedSize.of(codec, bytes) { #expect(size.width >= 0 && size.height >= 0) }
            }
        }
    }
}
