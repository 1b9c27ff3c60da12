import SoraWire
import Testing

@testable import SoraSecureTransport

@Suite struct DTLSHandshakeTests {
    @Test func completesInTwoRoundTripsWithMatchingKeys() throws {
        let pair = try DTLSPair.make()
        pair.start()
        pair.run()
        #expect(pair.agrees)
        #expect(pair.clientKeys?.profile == .aeadAES128GCM)
        #expect(pair.now == .zero + .milliseconds(20))
        #expect(pair.sent.count == 4)
        #expect(pair.client.nextTimeout == nil)
        #expect(pair.server.nextTimeout == nil)
    }

    @Test func dataPassesBothWaysInOrder() throws {
        let pair = try DTLSPair.make()
        pair.start()
        pair.run()
        let messages: [[UInt8]] = (1...20).map { [UInt8](repeating: UInt8($0), count: $0 * 50) }
        for message in messages {
            try pair.turn { try pair.client.send(message) }
            try pair.turn { try pair.server.send(message) }
        }
        pair.run()
        #expect(pair.clientData == messages)
        #expect(pair.serverData == messages)
    }

    @Test func clientRetransmitsAtFiftyMillisecondsDoublingUpToThreeSecondsAndGivesUp() throws {
        let pair = try DTLSPair.make()
        pair.network = { _, _, _ in [] }
        pair.start()
        pair.run()
        let times = pair.sentTimes(.toServer)
        #expect(times.prefix(9) == [0, 50, 150, 350, 750, 1550, 3150, 6150, 9150])
        #expect(zip(times.dropFirst(7), times.dropFirst(8)).allSatisfy { $1 - $0 == 3000 })
        #expect(pair.clientOutputs == [.failed(.timedOut)])
        #expect(pair.client.nextTimeout == nil)
        #expect(pair.server.nextTimeout == nil)
    }

    /// DTL3
    @Test func survivesTheLossOfEachSingleDatagram() throws {
        for direction in [DTLSPair.Direction.toServer, .toClient] {
            for lost in 0..<2 {
                let pair = try DTLSPair.make()
                pair.network = { way, index, bytes in
                    way == direction && index == lost ? [] : [DTLSPair.Delivery(bytes: bytes)]
                }
                pair.start()
                pair.run()
                #expect(pair.agrees, "\(direction) \(lost)")
                // One retransmission, 50 ms after the lost flight was sent.
                #expect(pair.now <= .zero + .milliseconds(75), "\(direction) \(lost)")
            }
        }
    }

    /// DTL3
    @Test func survivesDoublingOfEachDatagram() throws {
        let pair = try DTLSPair.make()
        pair.network = { _, _, bytes in
            [DTLSPair.Delivery(bytes: bytes), DTLSPair.Delivery(delay: .milliseconds(1), bytes: bytes)]
        }
        pair.start()
        pair.run()
        #expect(pair.agrees)
        try pair.turn { try pair.client.send([1, 2, 3]) }
        pair.run()
        #expect(pair.serverData == [[1, 2, 3]])
    }

    /// DTL3: with small datagrams a flight has many, and any two neighbours may be swapped.
    @Test func survivesSwappingOfEachNeighbouringPair() throws {
        for direction in [DTLSPair.Direction.toServer, .toClient] {
            for late in 0..<6 {
                let pair = try DTLSPair.make(maximumDatagramSize: 300)
                pair.network = { way, index, bytes in
                    [
                        DTLSPair.Delivery(
                            delay: way == direction && index == late ? .milliseconds(3) : .zero, bytes: bytes)
                    ]
                }
                pair.start()
                pair.run()
                #expect(pair.agrees, "\(direction) \(late)")
                #expect(pair.now < .zero + .milliseconds(80), "\(direction) \(late)")
            }
        }
    }

    /// DTL3
    @Test func survivesLossOfAQuarterOverManySeeds() throws {
        for seed in 0..<60 {
            var random = RandomSource(seed: UInt64(seed))
            let pair = try DTLSPair.make(maximumDatagramSize: seed % 2 == 0 ? 1200 : 400)
            pair.network = { _, _, bytes in
                if Int.random(in: 0..<4, using: &random) == 0 { return [] }
                let delay = Duration.milliseconds(Int.random(in: 0..<20, using: &random))
                return [DTLSPair.Delivery(delay: delay, bytes: bytes)]
            }
            pair.start()
            pair.run()
            #expect(pair.agrees, "seed \(seed)")
            pair.network = { _, _, bytes in [DTLSPair.Delivery(bytes: bytes)] }
            try pair.turn { try pair.client.send([7]) }
            try pair.turn { try pair.server.send([8]) }
            pair.run()
            #expect(pair.serverData == [[7]] && pair.clientData == [[8]], "seed \(seed)")
        }
    }

    @Test func dataThatOvertakesTheLastFlightIsDeliveredOnceConnected() throws {
        let pair = try DTLSPair.make()
        pair.network = { way, index, bytes in
            [DTLSPair.Delivery(delay: way == .toClient && index == 1 ? .milliseconds(10) : .zero, bytes: bytes)]
        }
        pair.start()
        while pair.serverKeys == nil { pair.run(for: .milliseconds(1)); pair.now += .milliseconds(1) }
        try pair.turn { try pair.server.send([1, 2, 3]) }
        pair.run()
        #expect(pair.agrees)
        #expect(pair.clientData == [[1, 2, 3]])
        #expect(pair.clientOutputs.first == .connected(pair.clientKeys))
    }

    @Test func refusesDataBeforeTheHandshakeAndAfterTheEnd() throws {
        let pair = try DTLSPair.make()
        #expect(throws: DTLSError.notConnected) { try pair.client.send([1]) }
        pair.start()
        #expect(throws: DTLSError.notConnected) { try pair.client.send([1]) }
        pair.run()
        pair.turn { pair.client.close() }
        #expect(throws: DTLSError.notConnected) { try pair.client.send([1]) }
        #expect(pair.client.maximumApplicationDataSize == 0)
    }

    @Test func refusesRecordsAboveTheDatagramLimit() throws {
        let pair = try DTLSPair.make()
        pair.start()
        pair.run()
        let maximum = pair.client.maximumApplicationDataSize
        #expect(maximum == 1200 - 13 - 8 - 16)
        try pair.turn { try pair.client.send([UInt8](repeating: 1, count: maximum)) }
        #expect(pair.sent.last?.bytes.count == 1200)
        #expect(throws: DTLSError.messageTooLarge(size: maximum + 1, maximum: maximum)) {
            try pair.client.send([UInt8](repeating: 1, count: maximum + 1))
        }
        #expect(throws: DTLSError.messageTooLarge(size: 0, maximum: maximum)) { try pair.client.send([]) }
    }

    @Test func closeTellsThePeerAndBothEndOnce() throws {
        let pair = try DTLSPair.make()
        pair.start()
        pair.run()
        pair.turn { pair.server.close() }
        pair.turn { pair.server.close() }
        pair.run()
        #expect(pair.serverOutputs.last == .closed && pair.serverOutputs.count == 2)
        #expect(pair.clientOutputs.last == .closed && pair.clientOutputs.count == 2)
    }

    @Test func closeDuringTheHandshakeEndsAtOnce() throws {
        let pair = try DTLSPair.make()
        pair.start()
        pair.turn { pair.client.close() }
        #expect(pair.clientOutputs == [.closed])
        #expect(pair.client.nextTimeout == nil)
        pair.turn { pair.client.handle(pair.sent[0].bytes, now: pair.now) }
        #expect(pair.clientOutputs == [.closed])
    }
}
