import SoraCrypto
import SoraEmulator
import SoraWire
import Testing

@testable import SoraICE

/// The ready-made STUN inputs: we are `aB3dE5fG`, the peer is `wX9zY7kL`.
@Suite struct PitfallInputTests {
    static let control = hex(
        """
        0001004c2112a442c3d1e7f5a90b1d2f3e4c5a680006001161423364453566473a7758397a59376b4c000000002400046efffeff\
        802900085c6d7e8f90a1b2c3000800144b63a9dce7570258bbb55384f28691d5b62f35e38028000468ce41b3
        """)
    static let useCandidateAfterIntegrity = hex(
        """
        000100502112a442c3d1e7f5a90b1d2f3e4c5a680006001161423364453566473a7758397a59376b4c000000002400046efffeff\
        802a00085c6d7e8f90a1b2c3000800148e3039c5e0a038fda789acb53ec80afc2f17a15e002500008028000463aaef54
        """)
    static let unknownRequired = hex(
        """
        000100542112a442c3d1e7f5a90b1d2f3e4c5a680006001161423364453566473a7758397a59376b4c000000002400046efffeff\
        802900085c6d7e8f90a1b2c34321000201020000000800145060b3e6fcdac891f0643f40c4771a95dfcdf3d080280004f01fd0ef
        """)
    static let usernameSwapped = hex(
        """
        0001004c2112a442c3d1e7f5a90b1d2f3e4c5a68000600117758397a59376b4c3a6142336445356647000000002400046efffeff\
        802900085c6d7e8f90a1b2c300080014d84cc2fb29865e84033799b561eaad816829c72980280004a3402b68
        """)
    static let indication = hex(
        "001100182112a442c3d1e7f5a90b1d2f3e4c5a6880220009736f726120746573740000008028000407b246df")
    static let successUnsigned = hex("010100142112a442c3d1e7f5a90b1d2f3e4c5a68002000080001bd52ea12d54b80280004795295a1")
    static let malformed: [(String, String)] = [
        ("stun-attr-overruns", "0101000c2112a442c3d1e7f5a90b1d2f3e4c5a68002000400001beef0badcafe"),
        ("stun-header-length-beyond", "000100602112a442c3d1e7f5a90b1d2f3e4c5a680024000401020304"),
        ("stun-length-not-multiple-of-4", "0001000a2112a442c3d1e7f5a90b1d2f3e4c5a6800240004010203040000"),
        ("stun-family-3", "0101000c2112a442c3d1e7f5a90b1d2f3e4c5a68002000080003be120badcafe"),
        ("stun-error-code-short", "011100082112a442c3d1e7f5a90b1d2f3e4c5a680009000200040000"),
        (
            "stun-fingerprint-not-last",
            """
            000100282112a442c3d1e7f5a90b1d2f3e4c5a680006001161423364453566473a7758397a59376b4c000000\
            802800045d77a3d4002400046efffeff
            """
        ),
    ]

    static let peerAddress = SocketAddress(.v4(0xC633_6407), port: 40_000)

    /// An agent with the fixture's credentials and one socket, connected to nobody.
    static func agent(_ role: ICEAgent.Role, mode: ICEAgent.Mode = .full, withPeer: Bool = true) -> ICEAgent {
        var configuration = ICEConfiguration()
        configuration.mode = mode
        configuration.credentials = ICECredentials(usernameFragment: "aB3dE5fG", password: "q7Rt2LmN8pVc4KsD1yHb6JfG")
        let agent = ICEAgent(configuration: configuration, role: role, random: RandomSource(seed: 3), now: .zero)
        agent.addLocalSocket(SocketID(1), address: SocketAddress(.v4(0xC000_0201), port: 5_000), now: .zero)
        if withPeer {
            agent.setRemote(
                credentials: ICECredentials(usernameFragment: "wX9zY7kL", password: "zzzzzzzzzzzzzzzzzzzzzz"),
                isLite: false, now: .zero)
        }
        while agent.poll() != nil {}
        return agent
    }

    static func give(_ packet: [UInt8], to agent: ICEAgent, from: SocketAddress = peerAddress) -> [[UInt8]] {
        #expect(agent.handle(Datagram(socket: SocketID(1), remote: from, payload: packet), now: .zero) == nil)
        var sent: [[UInt8]] = []
        while let output = agent.poll() {
            if case .transmit(let datagram) = output { sent.append(datagram.payload) }
        }
        return sent
    }

    static func answers(_ packets: [[UInt8]]) -> [STUNMessage] {
        packets.compactMap { try? STUNMessage(parsing: $0) }.filter {
            $0.messageClass == .success || $0.messageClass == .error
        }
    }

    @Test func controlIsAnsweredAndCheckedBack() throws {
        let agent = Self.agent(.controlling)
        let sent = Self.give(Self.control, to: agent)
        let messages = try sent.map { try STUNMessage(parsing: $0) }
        #expect(messages.count == 2)
        #expect(messages.first?.messageClass == .success)
        #expect(messages.first?.mappedAddress == Self.peerAddress)
        #expect(messages.first?.isAuthentic(.sha1(HMACKey(.sha1, key: Array("q7Rt2LmN8pVc4KsD1yHb6JfG".utf8)))) == true)
        #expect(messages.last?.messageClass == .request)
        #expect(messages.last?.username == Array("wX9zY7kL:aB3dE5fG".utf8))
        let pair = try #require(agent.checklist.pairs.first)
        #expect(pair.remote.type == .peerReflexive)
        #expect(pair.remote.priority == 0x6EFF_FEFF)
    }

    // ICE3
    @Test(arguments: malformed.map(\.0)) func malformedIsAParseErrorAndChangesNothing(_ name: String) throws {
        let packet = hex(try #require(Self.malformed.first { $0.0 == name }).1)
        #expect(throws: STUNError.self) { try STUNMessage(parsing: packet) }
        let agent = Self.agent(.controlling)
        #expect(Self.give(packet, to: agent).isEmpty)
        #expect(agent.checklist.pairs.isEmpty)
    }

    // ICE14
    @Test func aNominationBehindIntegrityIsNone() throws {
        for mode in [ICEAgent.Mode.full, .lite] {
            let agent = Self.agent(.controlled, mode: mode)
            #expect(Self.answers(Self.give(Self.useCandidateAfterIntegrity, to: agent)).first?.messageClass == .success)
            let pair = try #require(agent.checklist.pairs.first)
            #expect(pair.nominationReceived == nil)
            #expect(!pair.isNominated)
        }
    }

    // ICE16
    @Test func anUnknownRequiredAttributeIsNamedIn420() throws {
        let agent = Self.agent(.controlling)
        let answer = try #require(Self.answers(Self.give(Self.unknownRequired, to: agent)).first)
        #expect(answer.errorCode?.code == 420)
        #expect(answer.unknownAttributes == [0x4321])
        #expect(answer.isAuthentic(.sha1(HMACKey(.sha1, key: Array("q7Rt2LmN8pVc4KsD1yHb6JfG".utf8)))))
        #expect(agent.checklist.pairs.isEmpty)
        #expect(agent.remoteCandidates.isEmpty)
    }

    // ICE15
    @Test func foreignUserNamesMeetSilence() {
        let key = HMACKey(.sha1, key: Array("q7Rt2LmN8pVc4KsD1yHb6JfG".utf8))
        func request(_ username: String) -> [UInt8] {
            STUNMessage(
                .request, .binding, transactionID: STUNTransactionID(high: 1, low: 1),
                attributes: [.username(Array(username.utf8)), .priority(1), .iceControlled(tieBreaker: 1)]
            ).serialized(integrity: .sha1(key), fingerprint: true)
        }
        for name in [
            "aB3dE5fG", "aB3dE5fG:", "aB3dE5fG:wX9zY7k", "aB3dE5fG:wX9zY7kLx", ":wX9zY7kL", "", "aB3dE5fGwX9zY7kL",
        ] {
            let agent = Self.agent(.controlling)
            #expect(Self.give(request(name), to: agent).isEmpty, "\(name)")
        }
        #expect(Self.give(Self.usernameSwapped, to: Self.agent(.controlling)).isEmpty)
        #expect(!Self.give(request("aB3dE5fG:wX9zY7kL"), to: Self.agent(.controlling)).isEmpty)
        #expect(Self.give(request("aB3dE5fG"), to: Self.agent(.controlling, withPeer: false)).isEmpty)
        #expect(Self.give(request("aB3dE5fG:"), to: Self.agent(.controlling, withPeer: false)).isEmpty)
    }

    // ICE15: last generation's
    @Test func credentialsOfTheLastGenerationAreRefused() {
        let agent = Self.agent(.controlling)
        agent.restart(now: .zero)
        #expect(Self.give(Self.control, to: agent).isEmpty)
    }

    // ICE4
    @Test func indicationsAndVanishedSocketsDoNothing() {
        let agent = Self.agent(.controlling)
        #expect(Self.give(Self.indication, to: agent).isEmpty)
        agent.removeLocalSocket(SocketID(1), now: .zero)
        #expect(Self.give(Self.control, to: agent).isEmpty)
        #expect(agent.checklist.pairs.isEmpty)
    }

    // ICE13
    @Test func anUnsignedAnswerIsNoAnswer() throws {
        let agent = Self.agent(.controlling)
        let sent = Self.give(Self.control, to: agent)
        let check = try #require(
            sent.compactMap { try? STUNMessage(parsing: $0) }.first { $0.messageClass == .request })
        // The unsigned one of the fixture, with the transaction in flight.
        var unsigned = try STUNMessage(parsing: Self.successUnsigned)
        unsigned.transactionID = check.transactionID
        unsigned.attributes = [.xorMappedAddress(SocketAddress(.v4(0xCB00_7109), port: 40_000))]
        #expect(Self.give(unsigned.serialized(fingerprint: true), to: agent).isEmpty)
        #expect(agent.selectedPair == nil)
        let key = HMACKey(.sha1, key: Array("zzzzzzzzzzzzzzzzzzzzzz".utf8))
        let signed = unsigned.serialized(integrity: .sha1(key), fingerprint: true)
        let elsewhere = SocketAddress(Self.peerAddress.ip, port: 40_001)
        #expect(Self.give(signed, to: agent, from: elsewhere).isEmpty)
        #expect(agent.selectedPair == nil)
        var changed = signed
        changed[signed.count - 20] ^= 1
        #expect(Self.give(changed, to: agent).isEmpty)
        #expect(agent.selectedPair == nil)
        var role = STUNMessage(
            .error, .binding, transactionID: check.transactionID, attributes: [.errorCode(.roleConflict)])
        #expect(Self.give(role.serialized(fingerprint: true), to: agent).isEmpty)
        #expect(agent.role == .controlling)
        // ICE16: a signed answer with an unknown required attribute is discarded.
        role = unsigned
        role.attributes.append(.unknown(type: 0x4321, value: []))
        #expect(Self.give(role.serialized(integrity: .sha1(key)), to: agent).isEmpty)
        #expect(agent.selectedPair == nil)
        #expect(!Self.give(signed, to: agent).isEmpty)
        #expect(agent.selectedPair != nil)
    }

    // ICE13, SAF2, SAF3
    @Test func aChangedControlMeetsSilenceBeforeAndDuringACall() {
        let (world, a, _) = ConnectTests.pair()
        world.run(for: .seconds(1))
        let agents = [Self.agent(.controlling), Self.agent(.controlled, mode: .lite), a.agent]
        for agent in agents {
            let before = agent.selectedPair?.remote
            // Up to FINGERPRINT, which protects nothing.
            for index in 0..<88 where index != 3 {
                var packet = Self.control
                packet[index] ^= 0x04
                // Without FINGERPRINT, so that only integrity stands in the way.
                for bytes in [packet, Self.withoutFingerprint(packet)] {
                    let datagram = Datagram(socket: SocketID(1), remote: Self.peerAddress, payload: bytes)
                    #expect(agent.handle(datagram, now: world.now) == nil)
                    while let output = agent.poll() {
                        if case .transmit = output { Issue.record("byte \(index) was answered") }
                    }
                }
            }
            #expect(agent.selectedPair?.remote == before)
        }
    }

    private static func withoutFingerprint(_ packet: [UInt8]) -> [UInt8] {
        var packet = Array(packet.dropLast(8))
        packet[3] = UInt8(packet.count - 20)
        return packet
    }

    // SAF1, SAF3
    @Test func dataOfStrangersIsNotDelivered() {
        let (world, a, b) = ConnectTests.pair()
        world.run(for: .seconds(1))
        let stranger = SocketAddress(.v4(0xC000_0299), port: 5_000)
        for first: UInt8 in [0, 20, 64, 128, 200] {
            #expect(
                a.agent.handle(Datagram(socket: SocketID(1), remote: stranger, payload: [first, 1, 2]), now: world.now)
                    == nil)
            #expect(a.agent.poll() == nil)
        }
        #expect(a.agent.selectedPair?.remote.socketAddress == b.sockets[SocketID(1)]?.address)
        #expect(a.agent.handle(Datagram(socket: SocketID(1), remote: stranger, payload: []), now: world.now) == nil)
    }
}
