import SoraWire
import Testing

@testable import SoraSCTP

/// What an association costs (guards against tables that grow with the number of possible streams).
@Suite struct MemoryTests {
    @Test func valuesInTablesAreSmall() {
        #expect(MemoryLayout<SCTPAssociation>.size < 2_048)
        #expect(MemoryLayout<DataChannel?>.stride <= 256)
        #expect(MemoryLayout<OutgoingStream>.stride <= 128)
        #expect(MemoryLayout<SentChunk?>.stride <= 112)
        #expect(MemoryLayout<OutgoingMessage?>.stride <= 72)
        #expect(MemoryLayout<DataChannelTransport.Output?>.stride <= 96)
        #expect(MemoryLayout<SCTPAssociation.Event?>.stride <= 72)
    }

    @Test func queuesReleaseTheirMemoryWhenTheyEmpty() throws {
        let pair = SimulatedPair(a: TransferTests.largeMessages)
        let id = try pair.a.transport.open(label: "x", now: pair.now)
        pair.connect()
        for _ in 0..<50 {
            try pair.a.transport.send([UInt8](repeating: 1, count: 60_000), isBinary: true, on: id, now: pair.now)
        }
        pair.run(for: .seconds(20))
        #expect(pair.b.received.count == 50)
        let association = pair.a.transport.association
        #expect(association.window.isEmpty && association.window.capacity <= 128)
        #expect(pair.b.transport.association.reassembly.received.capacity <= 1_024)
        #expect(pair.b.transport.association.reassembly.heldBytes == 0)
    }
}
