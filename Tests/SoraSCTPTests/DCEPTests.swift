import SoraWire
import Testing

@testable import SoraSCTP

/// RFC 8832.
@Suite struct DCEPTests {
    private static let cases: [(DCEPMessage, [UInt8])] = [
        (.ack, hex("02")),
        (
            .open(.init(ordered: true, reliability: .reliable, priority: 256, label: "signaling", protocolName: "")),
            hex("03 00 0100 00000000 0009 0000") + Array("signaling".utf8)
        ),
        (
            .open(.init(ordered: false, reliability: .reliable, priority: 128, label: "#dev", protocolName: "p1")),
            hex("03 80 0080 00000000 0004 0002") + Array("#devp1".utf8)
        ),
        (
            .open(
                .init(
                    ordered: true, reliability: .maxRetransmits(3), priority: 512, label: "ü", protocolName: "")),
            hex("03 01 0200 00000003 0002 0000 c3bc")
        ),
        (
            .open(
                .init(
                    ordered: false, reliability: .maxRetransmits(0), priority: 1_024, label: "", protocolName: "")),
            hex("03 81 0400 00000000 0000 0000")
        ),
        (
            .open(
                .init(
                    ordered: true, reliability: .maxLifetime(milliseconds: 500), priority: 256, label: "a",
                    protocolName: "b")),
            hex("03 02 0100 000001f4 0001 0001 61 62")
        ),
        (
            .open(
                .init(
                    ordered: false, reliability: .maxLifetime(milliseconds: 65_535), priority: 0, label: "a",
                    protocolName: "")),
            hex("03 82 0000 0000ffff 0001 0000 61")
        ),
    ]

    @Test func goldenBytes() {
        for (message, bytes) in DCEPTests.cases {
            #expect(message.bytes == bytes)
            #expect(DCEPMessage(bytes, maximumLength: 65_535) == message)
        }
    }

    @Test func everyPrefixIsRefusedAndAppendedBytesAreIgnored() {
        for (message, bytes) in DCEPTests.cases {
            for length in 0..<bytes.count {
                #expect(DCEPMessage(Array(bytes[0..<length]), maximumLength: 65_535) == nil)
            }
            #expect(DCEPMessage(bytes + [1, 2, 3], maximumLength: 65_535) == message)
        }
    }

    @Test func everyChangedByteIsReadOrRefused() {
        for (_, bytes) in DCEPTests.cases {
            for index in bytes.indices {
                for value in [0, 1, 0x7F, 0x80, 0xFF] as [UInt8] {
                    var changed = bytes
                    changed[index] = value
                    guard let message = DCEPMessage(changed, maximumLength: 65_535) else { continue }
                    #expect(DCEPMessage(message.bytes, maximumLength: 65_535) == message)
                }
            }
        }
    }

    @Test func unknownTypesAndTextThatIsNotUTF8AreRefused() {
        for text in [
            "00", "01", "04", "ff", "", "03 03 0100 00000000 0000 0000", "03 83 0100 00000000 0000 0000",
            "03 00 0100 00000000 0001 0000 ff", "03 00 0100 00000000 0002 0000 c328",
            "03 00 0100 00000000 0000 0001 80", "03 00 0100 00000000 ffff 0000 61",
        ] {
            #expect(DCEPMessage(hex(text), maximumLength: 65_535) == nil, "\(text)")
        }
        #expect(DCEPMessage(hex("03 00 0100 00000000 0003 0000 616263"), maximumLength: 2) == nil)
    }

    @Test func valuesAbove16BitsAreLimited() {
        let bytes = hex("03 01 0100 ffffffff 0000 0000")
        #expect(
            DCEPMessage(bytes, maximumLength: 10)
                == .open(
                    .init(
                        ordered: true, reliability: .maxRetransmits(65_535), priority: 256, label: "",
                        protocolName: "")))
    }

    // MARK: Channels

    /// Sends raw bytes on a stream of `a`, past the channel logic.
    private func raw(_ pair: SimulatedPair, _ payload: [UInt8], ppid: UInt32, stream: UInt16, unordered: Bool = false) {
        pair.a.transport.sendRaw(
            OutgoingMessage(
                payload: payload, ppid: ppid, isUnordered: unordered, isCounted: false, limits: DeliveryLimits()),
            on: stream, now: pair.now)
    }

    private func connected(_ configuration: SCTPConfiguration = SCTPConfiguration()) -> SimulatedPair {
        let pair = SimulatedPair(a: configuration)
        pair.connect()
        return pair
    }

    @Test func badOpenClosesItsStreamOnly() {
        let pair = connected()
        raw(pair, hex("03 00 0100 00000000 0001 0000 ff"), ppid: 50, stream: 8)
        raw(pair, hex("03 00 0100 00000000 0001 0000 61"), ppid: 50, stream: 10)
        pair.keepsPackets = true
        pair.run(for: .seconds(1))
        #expect(pair.b.opened.map(\.id) == [StreamID(10)])
        let requests = pair.packets.filter { $0.from == .b }.flatMap { CraftedPeer.chunks($0.packet) }
            .filter { $0.type == ChunkType.reconfiguration && $0.bytes[5] == 13 }
        #expect(requests.count == 1)
        #expect(requests.first?.bytes.suffix(2) == [0, 8])
        #expect(pair.b.ending == nil)
    }

    @Test func openOnAStreamInUseClosesTheChannel() throws {
        let pair = connected()
        let id = try pair.a.transport.open(label: "x", now: pair.now)
        pair.run(for: .seconds(1))
        raw(pair, hex("03 00 0100 00000000 0001 0000 61"), ppid: 50, stream: id.rawValue)
        pair.run(for: .seconds(1))
        #expect(pair.b.opened.count == 1)
        #expect(pair.b.closed == [0] && pair.a.closed == [0])
    }

    @Test func channelsAboveTheLimitAreRefusedOnBothSides() throws {
        var small = SCTPConfiguration()
        small.maximumChannels = 3
        let pair = SimulatedPair(a: SCTPConfiguration(), b: small)
        pair.connect()
        for index in 0..<5 { _ = try pair.a.transport.open(label: "\(index)", now: pair.now) }
        pair.run(for: .seconds(2))
        #expect(pair.b.opened.map(\.label) == ["0", "1", "2"])
        #expect(pair.a.closed == [6, 8])
        #expect(throws: SCTPError.tooManyChannels(limit: 3)) {
            try pair.b.transport.open(label: "y", now: pair.now)
        }
    }

    @Test func idsFollowTheDTLSRole() throws {
        let pair = connected()
        #expect(try (0..<4).map { _ in try pair.a.transport.open(label: "", now: pair.now).rawValue } == [0, 2, 4, 6])
        #expect(try (0..<4).map { _ in try pair.b.transport.open(label: "", now: pair.now).rawValue } == [1, 3, 5, 7])
        pair.run(for: .seconds(1))
        pair.a.transport.close(StreamID(2), now: pair.now)
        pair.run(for: .seconds(1))
        #expect(try (0..<2).map { _ in try pair.a.transport.open(label: "", now: pair.now).rawValue } == [2, 8])
    }

    @Test func labelsAndProtocolsAreLimitedTo16BitLengths() throws {
        let pair = connected(TransferTests.largeMessages)
        let long = String(repeating: "x", count: 65_535)
        _ = try pair.a.transport.open(label: long, protocolName: long, now: pair.now)
        pair.run(for: .seconds(5))
        #expect(pair.b.opened.first?.label == long)
        #expect(throws: SCTPError.labelTooLong(bytes: 65_536, limit: 65_535)) {
            try pair.a.transport.open(label: long + "x", now: pair.now)
        }
        #expect(throws: SCTPError.protocolTooLong(bytes: 65_536, limit: 65_535)) {
            try pair.a.transport.open(label: "", protocolName: long + "x", now: pair.now)
        }
    }

    @Test func attributesReachThePeer() throws {
        let pair = connected()
        let wanted: [(Bool, Reliability, UInt16)] = [
            (true, .reliable, 256), (false, .maxRetransmits(7), 128), (true, .maxLifetime(milliseconds: 900), 1_024),
        ]
        for (ordered, reliability, priority) in wanted {
            _ = try pair.a.transport.open(
                label: "l", protocolName: "p", ordered: ordered, reliability: reliability, priority: priority,
                now: pair.now)
        }
        pair.run(for: .seconds(1))
        for (info, expected) in zip(pair.b.opened, wanted) {
            #expect(info.ordered == expected.0 && info.reliability == expected.1 && info.priority == expected.2)
            #expect(info.label == "l" && info.protocolName == "p" && info.isRemote)
        }
        #expect(pair.b.opened.count == 3)
    }

    @Test func negotiatedChannelsExchangeNoOpen() throws {
        let pair = SimulatedPair()
        let id = StreamID(100)
        #expect(try pair.a.transport.open(label: "n", ordered: false, negotiatedID: id, now: pair.now) == id)
        try pair.a.transport.send([1], isBinary: true, on: id, now: pair.now)
        pair.connect()
        pair.run(for: .seconds(1))
        // The other application is slower: its data waits.
        #expect(pair.b.received.isEmpty && pair.b.opened.isEmpty)
        _ = try pair.b.transport.open(label: "n", ordered: false, negotiatedID: id, now: pair.now)
        try pair.b.transport.send([2], isBinary: true, on: id, now: pair.now)
        pair.run(for: .seconds(1))
        #expect(pair.b.payloads(id) == [[1]])
        #expect(pair.a.payloads(id) == [[2]])
        #expect(pair.b.opened.first?.isNegotiated == true)
        #expect(throws: SCTPError.streamInUse(id)) {
            try pair.b.transport.open(label: "m", negotiatedID: id, now: pair.now)
        }
    }

    // SCT6: data before its OPEN waits within bounds.
    @Test func dataBeforeItsOpenWaitsWithinBounds() {
        var configuration = SCTPConfiguration()
        configuration.maximumHeldBytes = 10_000
        let pair = connected(configuration)
        for index in 0..<5 { raw(pair, [UInt8(index)], ppid: 53, stream: 4) }
        pair.run(for: .seconds(1))
        #expect(pair.b.received.isEmpty)
        raw(pair, hex("03 00 0100 00000000 0001 0000 61"), ppid: 50, stream: 4)
        pair.run(for: .seconds(1))
        #expect(pair.b.payloads(StreamID(4)) == (0..<5).map { [UInt8($0)] })
        // Too much on another stream: it is closed, not held.
        for _ in 0..<20 { raw(pair, [UInt8](repeating: 0, count: 1_000), ppid: 53, stream: 6) }
        pair.keepsPackets = true
        pair.run(for: .seconds(1))
        #expect(
            pair.packets.contains { side, packet in
                side == .b && CraftedPeer.chunks(packet).contains { $0.type == 130 && $0.bytes.suffix(2) == [0, 6] }
            })
        #expect(pair.b.ending == nil)
    }

    // RFC 8832, 6: an unordered channel sends in order until the peer is known to have its OPEN.
    @Test func unorderedChannelSendsInOrderUntilAcknowledged() throws {
        let pair = connected()
        pair.keepsPackets = true
        let id = try pair.a.transport.open(label: "x", ordered: false, now: pair.now)
        try pair.a.transport.send([1], isBinary: true, on: id, now: pair.now)
        pair.run(for: .seconds(1))
        try pair.a.transport.send([2], isBinary: true, on: id, now: pair.now)
        pair.run(for: .seconds(1))
        let flags = pair.packets.filter { $0.from == .a }.flatMap { CraftedPeer.chunks($0.packet) }
            .filter { $0.type == 0 }.map { $0.flags & 4 }
        #expect(flags == [0, 0, 4])
    }

    // RFC 8831, 6.6: deprecated identifiers and unknown ones.
    @Test func partialMessagesAreJoinedAndUnknownKindsDropped() throws {
        let pair = connected()
        let id = try pair.a.transport.open(label: "x", now: pair.now)
        for (payload, ppid) in [
            ([1], 52), ([2], 52), ([3], 53), ([65], 54), ([66], 51), ([9], 0), ([9], 58), ([0], 57), ([7], 53),
        ] as [([UInt8], UInt32)] {
            raw(pair, payload, ppid: ppid, stream: id.rawValue)
        }
        pair.run(for: .seconds(1))
        #expect(pair.b.received.map(\.payload) == [[1, 2, 3], [65, 66], [], [7]])
        #expect(pair.b.received.map(\.isBinary) == [true, false, true, true])
    }

    @Test func endClosesEveryChannelOnce() throws {
        let pair = connected()
        for index in 0..<3 { _ = try pair.a.transport.open(label: "\(index)", now: pair.now) }
        pair.run(for: .seconds(1))
        pair.a.transport.close(StreamID(0), now: pair.now)
        pair.a.transport.abort(now: pair.now)
        pair.run(for: .seconds(1))
        #expect(pair.a.closed.sorted() == [0, 2, 4] && pair.b.closed.sorted() == [0, 2, 4])
        #expect(pair.a.log.last == "ended" && pair.b.log.last == "ended")
        #expect(throws: SCTPError.associationClosed) {
            try pair.a.transport.send([1], isBinary: true, on: StreamID(2), now: pair.now)
        }
        #expect(throws: SCTPError.associationClosed) {
            _ = try pair.a.transport.open(label: "x", now: pair.now)
        }
    }
}
