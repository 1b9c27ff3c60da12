import SoraWire
import Testing

@testable import SoraICE

@Suite struct ICECandidateTests {
    @Test(arguments: [
        "candidate:1 1 udp 2130706431 192.0.2.1 5000 typ host",
        "candidate:842163049 1 udp 1677729535 203.0.113.9 40000 typ srflx raddr 192.0.2.1 rport 5000",
        "candidate:4 1 udp 41885439 2001:db8::5 60000 typ relay raddr 203.0.113.9 rport 40000 ufrag 9TuE",
        "candidate:5 1 tcp 1518280447 192.0.2.1 9 typ host tcptype active",
        "candidate:7 1 udp 2122194687 0f6c1d2e-55aa-4c3b-9b1e-7d2f4a6b8c90.local 40311 typ host",
        "candidate:a+/9 256 udp 1 ::1 65535 typ prflx",
    ])
    func goodLinesSurvive(_ line: String) throws {
        let candidate = try ICECandidate(parsing: line)
        #expect(candidate.attributeValue == line)
        #expect(try ICECandidate(parsing: "a=\(line)\r\n") == candidate)
    }

    @Test func whatNativeClientsSendIsUnderstood() throws {
        let candidate = try ICECandidate(
            parsing:
                "candidate:1467250027 1 UDP 2122260223 192.168.0.196 46243 typ host generation 0 ufrag 9TuE network-id 1 network-cost 10"
        )
        #expect(candidate.foundation == "1467250027")
        #expect(candidate.transport == .udp)
        #expect(candidate.priority == 2_122_260_223)
        #expect(candidate.socketAddress == SocketAddress("192.168.0.196", port: 46_243))
        #expect(candidate.usernameFragment == "9TuE")
    }

    // SDP4, SDP15
    @Test(arguments: [
        "a=candidate: 2 udp 1694498815 198.51.100.7 40000 typ srflx raddr 0.0.0.0 rport 0",
        "candidate:1 300 udp 1 192.0.2.1 5000 typ host",
        "candidate:1 0 udp 1 192.0.2.1 5000 typ host",
        "candidate:1 1 udp 1 192.0.2.1 5000 typ hostess",
        "candidate:1 1 udp 1 192.0.2.1 5000",
        "candidate:1 1 udp 1 192.0.2.1 5000 typ",
        "candidate:1 1 tcp 1 192.0.2.1 9 typ host",
        "candidate:1 1 tcp 1 192.0.2.1 9 typ host tcptype sideways",
        "candidate:1 1 sctp 1 192.0.2.1 9 typ host",
        "candidate:1 1 udp 4294967296 192.0.2.1 5000 typ host",
        "candidate:1 1 udp -1 192.0.2.1 5000 typ host",
        "candidate:1 1 udp 1 192.0.2.1 65536 typ host",
        "candidate:1 1 udp 1 192.0.2.300 5000 typ host",
        "candidate:1 1 udp 1 :: 1 5000 typ host",
        "candidate:1 1 udp 1  192.0.2.1 5000 typ host",
        "candidate:1 1 udp 1 192.0.2.1 5000 typ srflx raddr 192.0.2.2",
        "candidate:1 1 udp 1 192.0.2.1 5000 typ srflx raddr 192.0.2.2 rport x",
        "candidate:1 1 udp 1 192.0.2.1 5000 typ host generation",
        "candidate:123456789012345678901234567890123 1 udp 1 192.0.2.1 5000 typ host",
        "candidate:ä 1 udp 1 192.0.2.1 5000 typ host", "candidate:", "candidates:1 1 udp 1 192.0.2.1 5000 typ host", "",
        "candidate:1 1 udp 1 192.0.2.1 5000 typ host ufrag a:b",
    ])
    func badLinesAreRefusedWhole(_ line: String) {
        #expect(throws: ICEError.self) { try ICECandidate(parsing: line) }
    }

    @Test func everyPrefixIsAValueOrAnError() {
        let line = "candidate:1 1 tcp 1518280447 192.0.2.1 9 typ host raddr 10.0.0.1 rport 7 tcptype active ufrag abcd"
        var good = 0
        for length in 0...line.utf8.count {
            if (try? ICECandidate(parsing: String(line.prefix(length)))) != nil { good += 1 }
        }
        #expect(good > 0 && good < 30)
    }

    @Test func changedCharactersNeverTrapAndWhatParsesSurvives() throws {
        let line = Array("candidate:1 1 udp 1518280447 192.0.2.1 9 typ host raddr a.local rport 7 ufrag abcd".utf8)
        var random = RandomSource(seed: 4)
        for _ in 0..<4_000 {
            var changed = line
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                changed[Int.random(in: 0..<changed.count, using: &random)] = UInt8(truncatingIfNeeded: random.next())
            }
            guard let candidate = try? ICECandidate(parsing: String(decoding: changed, as: UTF8.self)) else { continue }
            let again = try ICECandidate(parsing: candidate.attributeValue)
            #expect(again == candidate)
        }
    }

    @Test func aLineOfAMillionWordsIsRefusedByItsLength() {
        let line = "candidate:1 1 udp 1 192.0.2.1 5 typ host" + String(repeating: " a b", count: 500_000)
        #expect(throws: ICEError.self) { try ICECandidate(parsing: line) }
    }

    @Test func prioritiesFollowTypeThenRankAndFitTheField() {
        let host = ICECandidate.priority(type: .host, rank: 0)
        #expect(host == 126 << 24 | 65_535 << 8 | 255)
        #expect(ICECandidate.priority(type: .host, rank: 1) < host)
        #expect(
            ICECandidate.priority(type: .serverReflexive, rank: 0)
                < ICECandidate.priority(type: .peerReflexive, rank: 9))
        #expect(
            ICECandidate.priority(type: .host, rank: 0, transport: .tcp)
                < ICECandidate.priority(type: .serverReflexive, rank: 0))
        #expect(ICECandidate.priority(type: .relayed, rank: 1_000_000) == 255)
    }

    @Test func pairPrioritiesAreEqualSeenFromBothSides() {
        let a = ICECandidate(foundation: "1", priority: 100, address: .name("a.local", port: 1), type: .host)
        let b = ICECandidate(foundation: "1", priority: 200, address: .name("b.local", port: 1), type: .host)
        let address = SocketAddress(.loopbackV4, port: 1)
        let here = ICECandidatePair(id: 1, path: .socket(SocketID(1)), local: a, remote: b, remoteAddress: address)
        let there = ICECandidatePair(id: 1, path: .socket(SocketID(1)), local: b, remote: a, remoteAddress: address)
        #expect(here.priority(isControlling: true) == there.priority(isControlling: false))
        #expect(here.priority(isControlling: true) == 100 << 32 + 400)
        #expect(here.priority(isControlling: false) == 100 << 32 + 401)
    }

    @Test func freshCredentialsAreLongAndWellFormedAndDiffer() {
        // SAF6
        var random = RandomSource.system
        let one = ICECredentials(random: &random)
        let two = ICECredentials(random: &random)
        #expect(one.isWellFormed)
        #expect(one.usernameFragment != two.usernameFragment)
        #expect(one.password != two.password)
        #expect(!"\(one)".contains(one.password))
        #expect(!ICECredentials(usernameFragment: "abc", password: one.password).isWellFormed)
        #expect(!ICECredentials(usernameFragment: "abcd", password: "short").isWellFormed)
        #expect(!ICECredentials(usernameFragment: "ab:d", password: one.password).isWellFormed)
    }
}
