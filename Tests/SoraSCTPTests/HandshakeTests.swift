import SoraWire
import Testing

@testable import SoraSCTP

@Suite struct HandshakeTests {
    private func firstChunk(_ packet: [UInt8]) -> UInt8 { packet.count > 12 ? packet[12] : 255 }

    // SCT11: both ends send INIT, each packet of the exchange lost, doubled or late in turn.
    @Test(arguments: 0..<8, ["drop", "duplicate", "late"])
    func crossingInitsSurvive(index: Int, fate: String) throws {
        for side in [SimulatedPair.Side.a, .b] {
            let pair = SimulatedPair(seed: UInt64(index))
            pair.filter = { from, number, _ in
                guard from == side, number == index else { return .pass }
                switch fate {
                case "drop": return .drop
                case "duplicate": return .duplicate
                default: return .delay(.milliseconds(1_700))
                }
            }
            let id = try pair.a.transport.open(label: "x", now: pair.now)
            try pair.a.transport.send([1], isBinary: true, on: id, now: pair.now)
            let other = try pair.b.transport.open(label: "y", now: pair.now)
            try pair.b.transport.send([2], isBinary: true, on: other, now: pair.now)
            #expect(pair.connect(within: .seconds(10)))
            pair.run(for: .seconds(10))
            #expect(pair.a.log.filter { $0 == "connected" }.count == 1)
            #expect(pair.b.log.filter { $0 == "connected" }.count == 1)
            #expect(pair.b.payloads(id) == [[1]])
            #expect(pair.a.payloads(other) == [[2]])
            #expect(pair.a.ending == nil && pair.b.ending == nil)
            #expect(pair.invariantFailures.isEmpty)
        }
    }

    // SCT11: one end starts later than the other, or never.
    @Test(arguments: [0, 3, 6, 12, 40, 600])
    func oneSideMayStartLate(milliseconds: Int) throws {
        let pair = SimulatedPair()
        pair.a.transport.start(now: pair.now)
        pair.run(for: .milliseconds(milliseconds))
        pair.b.transport.start(now: pair.now)
        #expect(pair.run(for: .seconds(5)) { pair.a.isConnected && pair.b.isConnected })
        pair.run(for: .seconds(2))
        #expect(pair.a.log == ["connected"] && pair.b.log == ["connected"])
    }

    @Test func peerThatNeverStartsIsConnectedByTheOtherEnd() {
        let pair = SimulatedPair()
        pair.a.transport.start(now: pair.now)
        #expect(pair.run(for: .seconds(5)) { pair.a.isConnected && pair.b.isConnected })
    }

    @Test func connectsInOneAndAHalfRoundTripsWithDataOnTheThirdFlight() throws {
        let pair = SimulatedPair(link: Link(delay: .milliseconds(10)))
        let id = try pair.a.transport.open(label: "x", now: pair.now)
        try pair.a.transport.send([9], isBinary: true, on: id, now: pair.now)
        let start = pair.now
        pair.start()
        #expect(pair.run(for: .seconds(1)) { !pair.b.received.isEmpty })
        #expect(pair.now - start == .milliseconds(30))
    }

    @Test func initIsRepeatedWithBackOffAndGivesUp() {
        var configuration = SCTPConfiguration()
        configuration.maximumHandshakeRetransmissions = 3
        let pair = SimulatedPair(a: configuration)
        var times: [Instant] = []
        pair.filter = { from, _, _ in
            if from == .a { times.append(pair.now) }
            return .drop
        }
        let start = pair.now
        pair.a.transport.start(now: pair.now)
        pair.run(for: .seconds(60))
        #expect(times.map { $0 - start } == [.zero, .milliseconds(500), .milliseconds(1_500), .milliseconds(3_500)])
        #expect(pair.a.ending == .some(.handshakeTimedOut(attempts: 4)))
        #expect(pair.a.transport.nextTimeout == nil)
    }

    @Test func staleCookieIsAnsweredWithAnError() {
        var peer = CraftedPeer()
        let chunk = peer.initChunk()
        peer.send(peer.packet(tag: 0) { chunk.write(to: &$0) })
        let answer = peer.drain()[0]
        let ack = try? InitChunk(value: ByteReader(answer, in: 16..<(12 + Int(loadUInt16(answer, 14)))), isAck: true)
        peer.now += .seconds(61)
        peer.send(peer.packet { writeChunk(ChunkType.cookieEcho, to: &$0) { $0.write(ack?.cookie ?? []) } })
        let sent = peer.sentChunks()
        #expect(sent.map(\.type) == [ChunkType.error])
        #expect(Array(sent[0].bytes[4..<6]) == [0, 3])
        #expect(peer.association.state == .closed)
    }

    @Test func forgedCookieIsDropped() {
        var peer = CraftedPeer()
        let chunk = peer.initChunk()
        peer.send(peer.packet(tag: 0) { chunk.write(to: &$0) })
        let answer = peer.drain()[0]
        guard
            let ack = try? InitChunk(
                value: ByteReader(answer, in: 16..<(12 + Int(loadUInt16(answer, 14)))), isAck: true),
            let cookie = ack.cookie
        else {
            Issue.record("no cookie in the INIT ACK")
            return
        }
        for index in cookie.indices {
            var forged = cookie
            forged[index] ^= 0x40
            peer.send(peer.packet { writeChunk(ChunkType.cookieEcho, to: &$0) { $0.write(forged) } })
            #expect(peer.drain().isEmpty)
            #expect(peer.association.state == .closed)
        }
        peer.send(peer.packet { writeChunk(ChunkType.cookieEcho, to: &$0) { $0.write(cookie) } })
        #expect(peer.association.state == .established)
        // D: the same again only repeats the COOKIE ACK.
        _ = peer.drain()
        peer.send(peer.packet { writeChunk(ChunkType.cookieEcho, to: &$0) { $0.write(cookie) } })
        #expect(peer.sentChunks().map(\.type) == [ChunkType.cookieAck])
        #expect(peer.events.count == 1)
    }

    @Test func lateInitGetsNewTagsAndDoesNotDisturb() {
        var peer = CraftedPeer()
        peer.establish()
        let chunk = peer.initChunk()
        peer.send(peer.packet(tag: 0) { chunk.write(to: &$0) })
        let sent = peer.sentChunks()
        #expect(sent.map(\.type) == [ChunkType.initiationAck])
        #expect(Array(sent[0].bytes[4..<8]) != hex("7a3c91e5"))
        peer.sendData([1])
        #expect(peer.messages.count == 1)
    }

    @Test func restartedPeerEndsTheAssociation() {
        var peer = CraftedPeer()
        peer.establish()
        var chunk = peer.initChunk()
        chunk.initiateTag = 0x1111_2222
        peer.send(peer.packet(tag: 0) { chunk.write(to: &$0) })
        let answer = peer.drain()[0]
        let ack = try? InitChunk(value: ByteReader(answer, in: 16..<(12 + Int(loadUInt16(answer, 14)))), isAck: true)
        peer.send(
            peer.packet(tag: ack?.initiateTag ?? 0) {
                writeChunk(ChunkType.cookieEcho, to: &$0) { $0.write(ack?.cookie ?? []) }
            })
        #expect(peer.ending == .some(.peerRestarted))
    }

    @Test func unknownParametersFollowTheirUpperBits() throws {
        // 0xC123 skip and report, 0x8123 skip, then FORWARD-TSN supported; 0x4123 report and stop.
        var writer = ByteWriter()
        peerFixedPart(&writer)
        writer.write(hex("c1230006aabb0000 81230004 c0000004 41230004 c0000004"))
        let chunk = try InitChunk(value: ByteReader(writer.bytes), isAck: false)
        #expect(chunk.features == [.partialReliability])
        #expect(chunk.unrecognized == [hex("c1230006aabb"), hex("41230004")])
        var peer = CraftedPeer()
        let bytes = writer.bytes
        peer.send(peer.packet(tag: 0) { writeChunk(ChunkType.initiation, to: &$0) { $0.write(bytes) } })
        let answer = peer.sentChunks()[0].bytes
        let text = answer.map { String($0, radix: 16) }.joined(separator: " ")
        #expect(text.contains("0 8 0 a c1 23 0 6 aa bb"))
        #expect(text.contains("0 8 0 8 41 23 0 4"))
    }

    @Test func unknownParametersOfTheInitAckAreReportedWithTheCookie() {
        var peer = CraftedPeer()
        peer.association.start(now: peer.now)
        _ = peer.drain()
        var writer = ByteWriter()
        peerFixedPart(&writer)
        writer.write(hex("00070005 ee000000 c1230006 aabb0000"))
        let bytes = writer.bytes
        peer.send(peer.packet { writeChunk(ChunkType.initiationAck, to: &$0) { $0.write(bytes) } })
        let sent = peer.sentChunks()
        #expect(sent.map(\.type) == [ChunkType.cookieEcho, ChunkType.error])
        #expect(sent[0].bytes == hex("0a000005ee"))
        #expect(sent[1].bytes == hex("0900000e 0008000a c1230006aabb"))
        peer.advance(.milliseconds(500))
        #expect(peer.sentChunks().map(\.type) == [ChunkType.cookieEcho])
    }

    private func peerFixedPart(_ writer: inout ByteWriter) {
        writer.write(0x0BAD_CAFE as UInt32)
        writer.write(100_000 as UInt32)
        writer.write(10 as UInt16)
        writer.write(10 as UInt16)
        writer.write(77 as UInt32)
    }

    @Test func streamCountsAreTheSmallerOfBothEnds() {
        var configuration = SCTPConfiguration()
        configuration.maximumStreams = 16
        let pair = SimulatedPair(a: SCTPConfiguration(), b: configuration)
        pair.connect()
        #expect(pair.a.transport.association.outboundStreams == 16)
        #expect(pair.b.transport.association.inboundStreams == 16)
        #expect(throws: SCTPError.streamOutOfRange(StreamID(16), limit: 16)) {
            try pair.a.transport.open(label: "x", negotiatedID: StreamID(16), now: pair.now)
        }
    }

    @Test func abortReachesThePeerWithItsCause() {
        let pair = SimulatedPair()
        pair.connect()
        pair.a.transport.abort(now: pair.now)
        pair.run(for: .seconds(1))
        #expect(pair.a.ending == .some(nil))
        #expect(pair.b.ending == .some(.aborted(cause: 12, reason: "")))
        #expect(pair.a.transport.nextTimeout == nil && pair.b.transport.nextTimeout == nil)
    }

    @Test func peerThatMissedTheAbortIsToldWhenItSpeaks() throws {
        let pair = SimulatedPair()
        let id = try pair.b.transport.open(label: "x", now: pair.now)
        pair.connect()
        pair.run(for: .seconds(1))
        pair.filter = { _, _, packet in packet[12] == ChunkType.abort && packet[13] == 0 ? .drop : .pass }
        pair.a.transport.abort(now: pair.now)
        pair.run(for: .seconds(1))
        #expect(pair.b.ending == nil)
        try pair.b.transport.send([1], isBinary: true, on: id, now: pair.now)
        pair.run(for: .seconds(1))
        #expect(pair.b.ending == .some(.aborted(cause: nil, reason: "")))
    }

    // Each packet of the shutdown is lost in turn.
    @Test(arguments: 0..<5)
    func shutdownDeliversEverythingFirst(lost: Int) throws {
        for side in [SimulatedPair.Side.a, .b] {
            let pair = SimulatedPair()
            let id = try pair.a.transport.open(label: "x", now: pair.now)
            pair.connect()
            pair.run(for: .seconds(1))
            for index in 0..<50 {
                try pair.a.transport.send([UInt8(index)], isBinary: true, on: id, now: pair.now)
            }
            pair.a.transport.shutdown(now: pair.now)
            var shutdownPackets = 0
            pair.filter = { from, _, packet in
                let isShutdown = CraftedPeer.chunks(packet).contains { [7, 8, 14].contains($0.type) }
                guard isShutdown, from == side else { return .pass }
                shutdownPackets += 1
                return shutdownPackets == lost ? .drop : .pass
            }
            pair.run(for: .seconds(30)) { pair.a.ending != nil && pair.b.ending != nil }
            #expect(pair.b.received.count == 50)
            #expect(pair.a.ending == .some(nil))
            #expect(pair.a.closed == [0] && pair.b.closed == [0])
        }
    }

    @Test func unansweredHeartbeatsEndTheAssociation() {
        var configuration = SCTPConfiguration()
        configuration.heartbeatInterval = .seconds(5)
        configuration.maximumRetransmissions = 4
        let pair = SimulatedPair(a: configuration)
        pair.connect()
        pair.run(for: .seconds(60))
        #expect(pair.a.ending == nil)
        #expect(pair.a.transport.roundTripTime == .milliseconds(10))
        pair.filter = { _, _, _ in .drop }
        pair.run(for: .seconds(60))
        #expect(pair.a.ending == .some(.peerUnreachable(timeouts: 5)))
    }
}
