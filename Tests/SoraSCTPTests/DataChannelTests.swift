import SoraWire
import Testing

@testable import SoraSCTP

@Suite struct DataChannelTests {
    @Test func bothEndsConnectWhenBothStart() {
        let pair = SimulatedPair()
        #expect(pair.connect())
        #expect(pair.a.log == ["connected"])
        #expect(pair.b.log == ["connected"])
    }

    @Test func channelIsAnnouncedOnBothSidesAndCarriesMessages() throws {
        let pair = SimulatedPair()
        let id = try pair.a.transport.open(label: "chat", protocolName: "p", now: pair.now)
        try pair.a.transport.send(Array("hello".utf8), isBinary: false, on: id, now: pair.now)
        pair.connect()
        pair.run(for: .seconds(1))
        #expect(id == StreamID(0))
        #expect(pair.a.opened.map(\.label) == ["chat"])
        #expect(pair.b.opened.map(\.label) == ["chat"])
        #expect(pair.b.opened.first?.isRemote == true)
        #expect(pair.b.payloads(id) == [Array("hello".utf8)])
        let back = try pair.b.transport.open(label: "back", now: pair.now)
        #expect(back == StreamID(1))
        try pair.b.transport.send([1, 2, 3], isBinary: true, on: id, now: pair.now)
        pair.run(for: .seconds(1))
        #expect(pair.a.received.last?.payload == [1, 2, 3])
        #expect(pair.a.received.last?.isBinary == true)
        #expect(pair.a.opened.map(\.label) == ["chat", "back"])
    }

    @Test func largeMessagesArriveWhole() throws {
        var configuration = SCTPConfiguration()
        configuration.remoteMaximumMessageSize = 262_144
        let big = SimulatedPair(a: configuration)
        let id = try big.a.transport.open(label: "x", now: big.now)
        var random = RandomSource(seed: 5)
        let message = random.bytes(262_144)
        try big.a.transport.send(message, isBinary: true, on: id, now: big.now)
        big.connect()
        big.run(for: .seconds(5))
        #expect(big.b.payloads(id) == [message])
    }

    @Test func closingClosesBothSidesAndFreesTheID() throws {
        let pair = SimulatedPair()
        let id = try pair.a.transport.open(label: "x", now: pair.now)
        pair.connect()
        pair.run(for: .seconds(1))
        pair.a.transport.close(id, now: pair.now)
        pair.run(for: .seconds(1))
        #expect(pair.a.closed == [0])
        #expect(pair.b.closed == [0])
        #expect(try pair.a.transport.open(label: "y", now: pair.now) == id)
        pair.run(for: .seconds(1))
        #expect(pair.b.opened.map(\.label) == ["x", "y"])
    }

    // SCT7: everything that send accepted arrives before the close.
    @Test func tailArrivesBeforeClose() throws {
        let pair = SimulatedPair(link: Link(delay: .milliseconds(40)))
        let id = try pair.a.transport.open(label: "x", now: pair.now)
        pair.connect()
        for index in 0..<3_000 {
            try pair.a.transport.send(
                [UInt8](repeating: UInt8(truncatingIfNeeded: index), count: 700), isBinary: true, on: id, now: pair.now)
        }
        pair.a.transport.close(id, now: pair.now)
        pair.run(for: .seconds(30)) { !pair.b.closed.isEmpty }
        #expect(pair.b.received.count == 3_000)
        pair.run(for: .seconds(1))
        #expect(pair.a.closed == [0])
    }
}
