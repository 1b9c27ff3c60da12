import SoraEmulator
import SoraICE
import SoraPeer
import SoraSCTP
import SoraSDP
import SoraSecureTransport
import SoraWire
import TestSupport
import Testing

@Suite(.serialized, .leavesNoObjects) struct ConnectionTests {
    @Test func connectsAndExchangesMessages() throws {
        let pair = PeerPair()
        pair.offerer.enableDataChannels()
        try pair.negotiate()
        #expect(pair.run(for: .seconds(5)) { pair.isConnected })
        let id = try pair.offerer.openDataChannel(label: "#a", now: pair.now)
        let opened = pair.run(for: .seconds(5)) {
            pair.outputs[1].contains { if case .dataChannelOpened(let info) = $0 { info.label == "#a" } else { false } }
        }
        #expect(opened)
        try pair.answerer.send(message: [1, 2, 3], isBinary: true, on: id, now: pair.now)
        try pair.offerer.send(message: [9], isBinary: false, on: id, now: pair.now)
        #expect(pair.run(for: .seconds(5)) { !pair.messages(.offerer).isEmpty && !pair.messages(.answerer).isEmpty })
        #expect(pair.messages(.offerer) == [[1, 2, 3]])
        #expect(pair.messages(.answerer) == [[9]])
    }

    /// Connecting is bounded by round trips, not by timers of ours.
    @Test func connectTakesFewRoundTrips() throws {
        let pair = PeerPair(conditions: LinkConditions(delay: .milliseconds(50)))
        pair.offerer.enableDataChannels()
        try pair.negotiate()
        #expect(pair.run(for: .seconds(5)) { pair.isConnected })
        // One round trip of checks and two of DTLS (RFC 6347 without a cookie), 100 ms each.
        #expect(pair.now <= Instant.zero + .milliseconds(310), "\(pair.now)")
    }

    /// The answer goes another way than packets: the handshake must not wait for a retransmission when it comes late.
    @Test(arguments: [true, false])
    func firstFlightThatOvertakesTheAnswerIsKept(offererIsLite: Bool) throws {
        let pair = PeerPair(conditions: LinkConditions(delay: .milliseconds(1)), offererIsLite: offererIsLite)
        pair.offerer.enableDataChannels()
        let offer = try pair.offerer.makeOffer(now: pair.now).serialized()
        try pair.answerer.acceptOffer(SessionDescription(parsing: offer), now: pair.now)
        let answer = try pair.answerer.makeAnswer(now: pair.now).serialized()
        var hellos = 0
        pair.drop = { side, packet in
            if side == .answerer, packet.first == 22 { hellos += 1 }
            return false
        }
        pair.run(for: .milliseconds(20))
        if offererIsLite { #expect(hellos == 1) }
        try pair.offerer.acceptAnswer(SessionDescription(parsing: answer), now: pair.now)
        #expect(pair.run(for: .milliseconds(20)) { pair.isConnected }, "\(pair.now)")
    }

    @Test func twoFullAgentsConnect() throws {
        let pair = PeerPair(offererIsLite: false)
        pair.offerer.enableDataChannels()
        try pair.negotiate()
        #expect(pair.run(for: .seconds(5)) { pair.isConnected })
    }

    @Test func closeEndsTheOtherSideToo() throws {
        let pair = PeerPair()
        pair.offerer.enableDataChannels()
        try pair.negotiate()
        #expect(pair.run(for: .seconds(5)) { pair.isConnected })
        pair.answerer.close(now: pair.now)
        let ended = pair.run(for: .seconds(2)) {
            pair.outputs[0].contains { if case .ended(nil) = $0 { true } else { false } }
        }
        #expect(ended)
        #expect(pair.offerer.state == .closed)
        #expect(pair.offerer.nextTimeout == nil)
    }

    /// DTL4: a certificate that does not match the description ends the attempt with a reason.
    @Test func wrongFingerprintFails() throws {
        let pair = PeerPair()
        pair.offerer.enableDataChannels()
        let offer = try pair.offerer.makeOffer(now: pair.now)
        try pair.answerer.acceptOffer(offer, now: pair.now)
        var answer = try pair.answerer.makeAnswer(now: pair.now)
        answer.media[0].fingerprints = [PeerPair.certificates[0].fingerprint.sdp]
        try pair.offerer.acceptAnswer(answer, now: pair.now)
        let failed = pair.run(for: .seconds(5)) {
            pair.outputs[0].contains { if case .ended(.dtls?) = $0 { true } else { false } }
        }
        #expect(failed)
        #expect(pair.offerer.state == .failed)
        #expect(!pair.outputs[0].contains { if case .dataChannelOpened = $0 { true } else { false } })
    }

    /// SAF3, DTL5: strangers get no answer and change nothing.
    @Test func packetsFromStrangersAreIgnored() throws {
        let pair = PeerPair()
        pair.offerer.enableDataChannels()
        try pair.negotiate()
        #expect(pair.run(for: .seconds(5)) { pair.isConnected })
        _ = pair.takeOutputs(.offerer)
        let stranger = SocketAddress(.v4(0x0A00_0009), port: 9)
        var random = RandomSource(seed: 5)
        for first in [0, 20, 22, 64, 128, 200] {
            for length in [1, 2, 12, 60, 1200] {
                var payload = random.bytes(length)
                payload[0] = UInt8(first)
                pair.offerer.handle(Datagram(socket: SocketID(0), remote: stranger, payload: payload), now: pair.now)
            }
        }
        while let output = pair.offerer.poll() {
            Issue.record("a stranger caused \(output)")
        }
        #expect(pair.isConnected)
    }

    /// DTL14: demultiplexing is a function of the first bytes (RFC 7983, 7).
    @Test func demultiplexesByFirstByte() {
        #expect(DatagramKind([]) == .unknown)
        for first in 0...255 {
            let kind = DatagramKind([UInt8(first), 0, 0, 0])
            switch first {
            case 0...3: #expect(kind == .stun)
            case 20...63: #expect(kind == .dtls)
            case 64...79: #expect(kind == .turnChannel)
            case 128...191: #expect(kind == .rtp)
            default: #expect(kind == .unknown)
            }
        }
        #expect(DatagramKind([128]) == .unknown)
        #expect(DatagramKind([128, 191]) == .rtp)
        #expect(DatagramKind([128, 192]) == .rtcp)
        #expect(DatagramKind([129, 223]) == .rtcp)
        #expect(DatagramKind([129, 224]) == .rtp)
    }

    @Test func silentPeerFails() throws {
        let pair = PeerPair()
        pair.offerer.enableDataChannels()
        try pair.negotiate()
        #expect(pair.run(for: .seconds(5)) { pair.isConnected })
        pair.drop = { side, _ in side == .offerer }
        let disconnected = pair.run(for: .seconds(20)) { pair.answerer.state == .disconnected }
        #expect(disconnected)
        let ended = pair.run(for: .seconds(60)) {
            pair.outputs[1].contains { if case .ended(.iceFailed?) = $0 { true } else { false } }
        }
        #expect(ended)
    }

    @Test func sleepsWhileNothingIsToBeSaid() throws {
        let pair = PeerPair()
        pair.offerer.enableDataChannels()
        try pair.negotiate()
        #expect(pair.run(for: .seconds(5)) { pair.isConnected })
        pair.run(for: .seconds(20))
        // Without media no reports are due: a lite side waits for the other's consent checks alone.
        let due = try #require(pair.offerer.nextTimeout)
        #expect(due > pair.now + .seconds(2))
    }
}
