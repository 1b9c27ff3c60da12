import SoraWire
import Testing

@testable import SoraSCTP

/// Closing channels: RFC 8831, 6.7 and RFC 6525.
@Suite struct ResetTests {
    private func hasReconfiguration(_ packet: [UInt8]) -> Bool {
        CraftedPeer.chunks(packet).contains { $0.type == ChunkType.reconfiguration }
    }

    private func connected(seed: UInt64 = 1) throws -> (pair: SimulatedPair, id: StreamID) {
        let pair = SimulatedPair(seed: seed)
        let id = try pair.a.transport.open(label: "x", now: pair.now)
        pair.connect()
        pair.run(for: .seconds(1))
        return (pair, id)
    }

    // SCT8: both close at once, each RE-CONFIG lost in turn; the same label again at once.
    @Test(arguments: 0..<6, [true, false])
    func crossingClosesSurviveLossAndTheIDIsReused(lost: Int, both: Bool) throws {
        for side in [SimulatedPair.Side.a, .b] {
            let (pair, id) = try connected()
            for index in 0..<20 {
                try pair.a.transport.send([1, UInt8(index)], isBinary: true, on: id, now: pair.now)
                try pair.b.transport.send([1, UInt8(index)], isBinary: true, on: id, now: pair.now)
            }
            var seen = 0
            pair.filter = { from, _, packet in
                guard from == side, hasReconfiguration(packet) else { return .pass }
                seen += 1
                return seen == lost ? .drop : .pass
            }
            pair.a.transport.close(id, now: pair.now)
            if both { pair.b.transport.close(id, now: pair.now) }
            #expect(pair.run(for: .seconds(20)) { !pair.a.closed.isEmpty && !pair.b.closed.isEmpty })
            #expect(pair.a.closed == [0] && pair.b.closed == [0])
            #expect(both || pair.b.received.count == 20)
            let before = pair.b.received.count
            let again = try pair.a.transport.open(label: "x", now: pair.now)
            #expect(again == id)
            try pair.a.transport.send([2], isBinary: true, on: again, now: pair.now)
            try pair.a.transport.send([3], isBinary: true, on: again, now: pair.now)
            pair.run(for: .seconds(5))
            #expect(pair.b.received[before...].map(\.payload) == [[2], [3]])
            #expect(pair.b.opened.count == 2)
            #expect(pair.a.ending == nil && pair.b.ending == nil)
        }
    }

    // SCT8: the id is not free before both directions are reset.
    @Test func idIsNotReusedBeforeBothDirectionsAreReset() throws {
        let (pair, id) = try connected()
        pair.filter = { from, _, packet in from == .b && hasReconfiguration(packet) ? .drop : .pass }
        pair.a.transport.close(id, now: pair.now)
        pair.run(for: .milliseconds(900))
        #expect(pair.a.closed.isEmpty)
        #expect(try pair.a.transport.open(label: "y", now: pair.now) == StreamID(2))
        #expect(throws: SCTPError.streamInUse(id)) {
            try pair.a.transport.open(label: "z", negotiatedID: id, now: pair.now)
        }
        pair.filter = nil
        pair.run(for: .seconds(10))
        #expect(pair.a.closed == [0])
        #expect(try pair.a.transport.open(label: "w", now: pair.now) == id)
    }

    @Test func manyChannelsCloseTogether() throws {
        let pair = SimulatedPair(link: Link(delay: .milliseconds(10), loss: 0.1))
        pair.connect()
        var ids: [StreamID] = []
        for index in 0..<600 { ids.append(try pair.a.transport.open(label: "\(index)", now: pair.now)) }
        #expect(pair.run(for: .seconds(60)) { pair.b.opened.count == 600 })
        for id in ids { pair.a.transport.close(id, now: pair.now) }
        #expect(pair.run(for: .seconds(60)) { pair.a.closed.count == 600 && pair.b.closed.count == 600 })
        #expect(pair.a.transport.channelCount == 0 && pair.b.transport.channelCount == 0)
        #expect(pair.a.transport.association.queue.ids.isEmpty)
    }

    @Test func closeBeforeConnectingSendsWhatWasAccepted() throws {
        let pair = SimulatedPair()
        let id = try pair.a.transport.open(label: "x", now: pair.now)
        try pair.a.transport.send([1], isBinary: true, on: id, now: pair.now)
        pair.a.transport.close(id, now: pair.now)
        #expect(throws: SCTPError.channelClosing(id)) {
            try pair.a.transport.send([2], isBinary: true, on: id, now: pair.now)
        }
        pair.connect()
        pair.run(for: .seconds(2))
        #expect(pair.b.received.map(\.payload) == [[1]])
        #expect(pair.a.closed == [0] && pair.b.closed == [0])
        #expect(throws: SCTPError.unknownChannel(id)) {
            try pair.a.transport.send([2], isBinary: true, on: id, now: pair.now)
        }
    }

    @Test func resetThatOvertakesDataWaitsForIt() {
        var peer = CraftedPeer()
        peer.establish()
        let first = peer.nextTSN
        let request = first.rawValue
        let chunk = ReconfigurationChunk(parameters: [
            .outgoingReset(request: request, response: 0, lastTSN: first + 1, streams: [1])
        ])
        peer.send(peer.packet { chunk.write(to: &$0) })
        #expect(responses(peer.sentChunks()) == [.response(request: request, result: 6)])
        peer.sendData([2], ssn: 1, tsn: first + 1)
        // New numbering, ahead of the gap: must not be taken for the old one.
        peer.sendData([3], ssn: 0, tsn: first + 2)
        #expect(peer.messages.isEmpty)
        peer.sendData([1], ssn: 0, tsn: first)
        #expect(peer.messages.map(\.payload) == [[1], [2], [3]])
        #expect(responses(peer.sentChunks()) == [.response(request: request, result: 1)])
        var resets = 0
        for case .incomingReset(let streams) in peer.events {
            #expect(streams == [1])
            resets += 1
        }
        #expect(resets == 1)
        // The same request again is answered the same way.
        peer.send(peer.packet { chunk.write(to: &$0) })
        #expect(responses(peer.sentChunks()) == [.response(request: request, result: 1)])
    }

    private func responses(
        _ chunks: [(type: UInt8, flags: UInt8, bytes: [UInt8])]
    ) -> [ReconfigurationChunk.Parameter] {
        chunks.filter { $0.type == ChunkType.reconfiguration }.flatMap { chunk in
            (try? ReconfigurationChunk(value: ByteReader(chunk.bytes, in: 4..<chunk.bytes.count)))?.parameters ?? []
        }
    }

    @Test func requestsAreTakenInOrderAndOthersRefused() {
        var peer = CraftedPeer()
        peer.establish()
        let expected = peer.nextTSN.rawValue
        let cases: [(ReconfigurationChunk.Parameter, UInt32)] = [
            (.outgoingReset(request: expected &+ 5, response: 0, lastTSN: peer.nextTSN + -1, streams: []), 5),
            (.otherRequest(type: 15, request: expected), 2),
            (.otherRequest(type: 17, request: expected &+ 1), 2),
            (.incomingReset(request: expected &+ 2, streams: [4]), 1),
            (.outgoingReset(request: expected &+ 3, response: 0, lastTSN: peer.nextTSN + -1, streams: []), 1),
        ]
        for (parameter, result) in cases {
            let chunk = ReconfigurationChunk(parameters: [parameter])
            peer.send(peer.packet { chunk.write(to: &$0) })
            let results = responses(peer.sentChunks()).map { response -> UInt32 in
                if case .response(_, let result) = response { result } else { 99 }
            }
            #expect(results == [result])
        }
    }

    @Test func inProgressAnswerRepeatsTheSameRequest() {
        var peer = CraftedPeer()
        peer.establish()
        peer.association.resetOutgoing(1, now: peer.now)
        let first = responses(peer.sentChunks())
        guard case .outgoingReset(let number, _, _, let streams) = first.first else {
            Issue.record("no request: \(first)")
            return
        }
        #expect(streams == [1])
        let answer = { (result: UInt32) in
            ReconfigurationChunk(parameters: [.response(request: number, result: result)])
        }
        peer.send(peer.packet { answer(6).write(to: &$0) })
        peer.advance(.milliseconds(510))
        #expect(responses(peer.sentChunks()) == first)
        peer.send(peer.packet { answer(1).write(to: &$0) })
        #expect(peer.association.resets.current == nil)
        #expect(peer.association.nextTimeout == peer.association.heartbeatTimer)
        var done: [[UInt16]] = []
        for case .outgoingReset(let ids) in peer.events { done.append(ids) }
        #expect(done == [[1]])
    }

    @Test func peerWithoutResetsStillSeesCloseLocally() {
        var peer = CraftedPeer()
        peer.establish(features: [])
        peer.association.resetOutgoing(1, now: peer.now)
        #expect(peer.sentChunks().isEmpty)
        peer.collect()
        #expect(peer.events.count == 3)
    }

    // SCT8 under randomised loss: channels open, talk and close again and again.
    @Test(arguments: 0..<10)
    func randomOpeningAndClosingNeverMixesChannels(seed: Int) throws {
        var random = RandomSource(seed: UInt64(seed) &+ 500)
        let pair = SimulatedPair(
            seed: UInt64(seed), link: Link(delay: .milliseconds(15), jitter: .milliseconds(10), loss: 0.08))
        #expect(pair.connect())
        var generation: [UInt16: UInt32] = [:]
        var expected: [UInt32: Int] = [:]
        var live: [(id: StreamID, from: SimulatedPair.Side, generation: UInt32)] = []
        var current: UInt32 = 0
        var openedOn: [[UInt16: UInt32]] = [[:], [:]]
        var wrong = 0
        pair.onMessage = { side, message in
            let number = loadUInt32(message.payload, 0)
            if openedOn[side.rawValue][message.stream] != number { wrong += 1 }
            expected[number, default: 0] -= 1
        }
        for _ in 0..<120 {
            let side: SimulatedPair.Side = Bool.random(using: &random) ? .a : .b
            if live.count < 8, Bool.random(using: &random) {
                current += 1
                let id = try pair.end(side).transport.open(label: "\(current)", now: pair.now)
                generation[id.rawValue] = current
                openedOn[side == .a ? 1 : 0][id.rawValue] = current
                live.append((id, side, current))
            } else if let index = live.indices.randomElement(using: &random) {
                let channel = live[index]
                if Int.random(in: 0..<4, using: &random) == 0 {
                    pair.end(channel.from).transport.close(channel.id, now: pair.now)
                    live.remove(at: index)
                } else {
                    var writer = ByteWriter()
                    writer.write(channel.generation)
                    writer.write([UInt8](repeating: 0, count: Int.random(in: 0..<3_000, using: &random)))
                    try pair.end(channel.from).transport.send(
                        writer.bytes, isBinary: true, on: channel.id, now: pair.now)
                    expected[channel.generation, default: 0] += 1
                }
            }
            pair.run(for: .milliseconds(Int.random(in: 0..<80, using: &random)))
        }
        pair.run(for: .seconds(60))
        #expect(wrong == 0)
        #expect(expected.values.allSatisfy { $0 == 0 })
        #expect(pair.a.transport.channelCount == live.count)
        #expect(pair.b.transport.channelCount == live.count)
    }
}
