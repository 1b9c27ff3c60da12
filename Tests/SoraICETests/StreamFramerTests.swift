import SoraWire
import Testing

@testable import SoraICE

/// ICE18
@Suite struct StreamFramerTests {
    static let messages: [[UInt8]] = {
        let stun = STUNMessage(
            .success, .allocate, transactionID: STUNTransactionID(high: 1, low: 2),
            attributes: [.xorRelayedAddress(SocketAddress(.v4(0xC633_6405), port: 50_000)), .lifetime(600)]
        ).serialized()
        let payloads: [[UInt8]] = [[1], [1, 2, 3, 4], [], Array(repeating: 7, count: 1_201)]
        return [stun] + payloads.compactMap { TURNChannelData.wrap($0, channel: 0x4001, padded: false) } + [stun]
    }()

    static let stream: [UInt8] = messages.flatMap { $0 + Array(repeating: 0, count: -$0.count & 3) }

    static func cut(_ stream: [UInt8], at cuts: [Int], _ format: StreamFramer.Format = .turn) throws -> [[UInt8]] {
        var framer = StreamFramer(format)
        var result: [[UInt8]] = []
        var start = 0
        for end in cuts.sorted() + [stream.count] {
            framer.append(Array(stream[start..<end]))
            start = end
            while let message = try framer.next() { result.append(message) }
        }
        #expect(framer.pending == 0)
        return result
    }

    @Test func atOnceByteByByteAndAtRandomCuts() throws {
        #expect(try Self.cut(Self.stream, at: []) == Self.messages)
        #expect(try Self.cut(Self.stream, at: Array(0..<Self.stream.count)) == Self.messages)
        var random = RandomSource(seed: 1)
        for _ in 0..<200 {
            let cuts = (0..<Int.random(in: 0...20, using: &random)).map { _ in
                Int.random(in: 0...Self.stream.count, using: &random)
            }
            #expect(try Self.cut(Self.stream, at: cuts) == Self.messages)
        }
    }

    @Test func framesWithLengthPrefixSurviveAnyCut() throws {
        let packets: [[UInt8]] = [[], [1], Array(repeating: 3, count: 1_200), Array(repeating: 4, count: 65_535)]
        let stream = packets.compactMap { StreamFramer.frame($0) }.flatMap(\.self)
        #expect(try Self.cut(stream, at: [], .lengthPrefixed) == packets)
        #expect(try Self.cut(stream, at: [1, 2, 3, 700, 1_205, 1_206, 40_000], .lengthPrefixed) == packets)
        #expect(StreamFramer.frame(Array(repeating: 0, count: 65_536)) == nil)
    }

    @Test func aStreamOutOfStepIsAnErrorAtOnce() {
        for first in [0x50, 0x80, 0x16, 0xFF] as [UInt8] {
            var framer = StreamFramer(.turn)
            framer.append([first, 1, 2, 3])
            #expect(throws: StreamFramer.OutOfStep.self) { try framer.next() }
        }
        var framer = StreamFramer(.turn)
        framer.append([0, 1, 0, 3])
        #expect(throws: StreamFramer.OutOfStep.self) { try framer.next() }
    }

    @Test func manyMessagesInOneReadTakeLinearTime() throws {
        let small = TURNChannelData.wrap([1, 2, 3, 4], channel: 0x4000, padded: true) ?? []
        var framer = StreamFramer(.turn)
        framer.append(Array(repeating: small, count: 50_000).flatMap(\.self))
        var count = 0
        while try framer.next() != nil { count += 1 }
        #expect(count == 50_000)
    }

    @Test func channelDataIsPaddedWithZerosOnStreamsOnly() {
        // SAF5
        #expect(TURNChannelData.wrap([9, 9, 9], channel: 0x4002, padded: true) == [0x40, 2, 0, 3, 9, 9, 9, 0])
        #expect(TURNChannelData.wrap([9, 9, 9], channel: 0x4002, padded: false) == [0x40, 2, 0, 3, 9, 9, 9])
        #expect(TURNChannelData.wrap([], channel: 0x4FFF, padded: true) == [0x4F, 0xFF, 0, 0])
        #expect(TURNChannelData.wrap(Array(repeating: 0, count: 65_536), channel: 0x4000, padded: true) == nil)
    }

    @Test func channelDataSurvivesAndCutsAreRefused() {
        let packet = TURNChannelData.wrap([1, 2, 3, 4, 5], channel: 0x4003, padded: true) ?? []
        #expect(TURNChannelData.unwrap(packet)?.payload == [1, 2, 3, 4, 5])
        #expect(TURNChannelData.unwrap(packet)?.channel == 0x4003)
        for length in 0..<9 { #expect(TURNChannelData.unwrap(Array(packet[..<length])) == nil) }
        #expect(TURNChannelData.unwrap([0x50, 0, 0, 0]) == nil)
        #expect(TURNChannelData.unwrap([0x3F, 0, 0, 0]) == nil)
    }
}
