import LocalSora
import SoraEmulator
import SoraMessages
import SoraPeer
import SoraSCTP
import SoraWire
import TestSupport
import Testing

/// Messages between members (spec/signaling.md 6).
@Suite(.serialized, .leavesNoObjects) struct MessagingTests {
    static func definition(
        _ label: String, _ direction: DataChannelDirection = .sendrecv, compress: Bool? = nil, header: Bool = false
    ) -> DataChannelDefinition {
        var definition = DataChannelDefinition(label: label, direction: direction, compress: compress)
        if header { definition.header = [DataChannelHeaderField(type: DataChannelHeaderField.senderConnectionID)] }
        return definition
    }

    @Test func everyOtherMemberGetsAMessageOnce() throws {
        let harness = try ChannelHarness()
        let clients = try (0..<4).map { _ in try harness.joined(ChannelHarness.messaging([Self.definition("#a")])) }
        let payload = RandomSourceBytes.make(1000)
        harness.perform { clients[0].send(data: payload, label: "#a", now: $1) }
        harness.run(for: .milliseconds(200))
        #expect(clients[0].data("#a").isEmpty)
        for client in clients.dropFirst() { #expect(client.data("#a") == [payload]) }
        #expect(harness.count(.messageRelayed) == 1)
    }

    @Test(arguments: [0, 1, 26, 1200, 65_536, 262_144 - 26]) func sizesArriveByteExact(size: Int) throws {
        let harness = try ChannelHarness()
        let sender = try harness.joined(ChannelHarness.messaging([Self.definition("#a")]))
        let plain = try harness.joined(ChannelHarness.messaging([Self.definition("#a")]))
        let headed = try harness.joined(ChannelHarness.messaging([Self.definition("#a", header: true)]))
        let payload = RandomSourceBytes.make(size)
        harness.perform { sender.send(data: payload, label: "#a", now: $1) }
        harness.run(for: .seconds(5)) { !headed.data("#a").isEmpty && !plain.data("#a").isEmpty }
        #expect(plain.data("#a") == [payload])
        #expect(headed.data("#a") == [Array(sender.id.rawValue.utf8) + payload])
    }

    @Test func offerStatesWhatIsInForce() throws {
        let harness = try ChannelHarness()
        var wish = Self.definition("#a", .sendrecv, header: true)
        wish.maxRetransmits = 3
        wish.ordered = false
        wish.protocolName = "p"
        let client = try harness.joined(ChannelHarness.messaging([wish, Self.definition("#b")]))
        let offered = try #require(client.definitions["#a"])
        #expect(offered.compress == false)
        #expect(offered.ordered == false)
        #expect(offered.maxRetransmits == 3)
        #expect(offered.header?.first?.length == 26)
        #expect(client.definitions["#b"]?.ordered == true)
        let info = try #require(client.infos["#a"])
        #expect(!info.ordered)
        #expect(info.protocolName == "p")
        #expect(info.reliability == .maxRetransmits(3))
    }

    /// Compression is each client's own: the server inflates and deflates in between.
    @Test(arguments: [true, false], [true, false]) func compressionIsPerClient(sends: Bool, receives: Bool) throws {
        let harness = try ChannelHarness()
        let a = try harness.joined(ChannelHarness.messaging([Self.definition("#a", compress: sends)]))
        let b = try harness.joined(ChannelHarness.messaging([Self.definition("#a", compress: receives, header: true)]))
        let payload = [UInt8](repeating: 65, count: 5000)
        harness.perform { a.send(data: payload, label: "#a", now: $1) }
        harness.run(for: .milliseconds(200))
        #expect(b.data("#a") == [Array(a.id.rawValue.utf8) + payload])
    }

    @Test func directionsAreKept() throws {
        let harness = try ChannelHarness()
        let both = try harness.joined(ChannelHarness.messaging([Self.definition("#a", .sendrecv)]))
        let sends = try harness.joined(ChannelHarness.messaging([Self.definition("#a", .sendonly)]))
        let receives = try harness.joined(ChannelHarness.messaging([Self.definition("#a", .recvonly)]))
        let without = try harness.joined(ChannelHarness.messaging([Self.definition("#b")]))
        for (number, client) in [both, sends, receives, without].enumerated() {
            harness.perform { client.send(data: [UInt8(number)], label: "#a", now: $1) }
        }
        harness.run(for: .milliseconds(200))
        #expect(both.data("#a") == [[1]])
        #expect(sends.data("#a").isEmpty)
        #expect(receives.data("#a") == [[0], [1]])
        #expect(without.data("#a").isEmpty)
        #expect(harness.count(.messageDropped) == 1)
    }

    /// All reliable messages arrive once and in order over a bad network.
    @Test func messagesSurviveLossAndReordering() throws {
        let bad = LinkConditions(delay: .milliseconds(50), jitter: .milliseconds(10), loss: 0.05, reordering: 0.05)
        let harness = try ChannelHarness(conditions: bad)
        let a = try harness.joined(ChannelHarness.messaging([Self.definition("#a")]))
        let b = try harness.joined(ChannelHarness.messaging([Self.definition("#a")]))
        for number in 0..<300 {
            harness.perform { a.send(data: Array("\(number)".utf8), label: "#a", now: $1) }
            harness.run(for: .milliseconds(20))
        }
        harness.run(for: .seconds(20)) { b.data("#a").count == 300 }
        #expect(b.data("#a") == (0..<300).map { Array("\($0)".utf8) })
    }

    @Test func brokenCompressionCostsTheMessageOnly() throws {
        let harness = try ChannelHarness()
        let a = try harness.joined(ChannelHarness.messaging([Self.definition("#a", compress: true)]))
        let b = try harness.joined(ChannelHarness.messaging([Self.definition("#a")]))
        let stream = try #require(a.streams["#a"])
        harness.perform { try? a.peer.send(message: [1, 2, 3, 4], isBinary: true, on: stream, now: $1) }
        // A bomb: 100 MB of zeros in a hundred kilobytes.
        var bomb = try Compression.deflate([UInt8](repeating: 0, count: 10_000_000))
        #expect(bomb.count < 20_000)
        harness.perform { try? a.peer.send(message: bomb, isBinary: true, on: stream, now: $1) }
        bomb.removeLast(10)
        harness.perform { try? a.peer.send(message: bomb, isBinary: true, on: stream, now: $1) }
        harness.perform { a.send(data: [7], label: "#a", now: $1) }
        harness.run(for: .milliseconds(300))
        #expect(b.data("#a") == [[7]])
        #expect(harness.channel.hasMember(a.id))
        #expect(harness.count(.messageDropped) == 3)
    }

    /// SRV2: a member that takes nothing ends with a reason; the others notice nothing.
    @Test func slowReaderIsEnded() throws {
        let harness = try ChannelHarness { $0.maximumBufferedMessages = 200_000 }
        let a = try harness.joined(ChannelHarness.messaging([Self.definition("#a")]))
        let slow = try harness.joined(ChannelHarness.messaging([Self.definition("#a")]))
        let good = try harness.joined(ChannelHarness.messaging([Self.definition("#a")]))
        harness.dropDown = { id, payload in id == slow.id && payload.count > 200 }
        for _ in 0..<40 {
            harness.perform { a.send(data: [UInt8](repeating: 1, count: 10_000), label: "#a", now: $1) }
            harness.run(for: .milliseconds(20))
        }
        harness.run(for: .seconds(1))
        #expect(good.data("#a").count == 40)
        #expect(slow.closeFrames.map(\.reason) == ["TOO-SLOW"])
        #expect(slow.closeFrames.map(\.code) == [4490])
        harness.run(for: .seconds(10))
        #expect(harness.removed == [slow.id])
        #expect(good.notifications("connection.destroyed").count == 1)
    }

    /// SRV1: who floods is dropped; the others go on undisturbed.
    @Test func floodOfMessagesEndsItsSender() throws {
        let harness = try ChannelHarness { $0.maximumMessagesPerSecond = 100 }
        let flooder = try harness.joined(ChannelHarness.messaging([Self.definition("#a")]))
        let a = try harness.joined(ChannelHarness.messaging([Self.definition("#b")]))
        let b = try harness.joined(ChannelHarness.messaging([Self.definition("#b")]))
        for number in 0..<60 {
            for _ in 0..<10 { harness.perform { flooder.send(data: [1], label: "#a", now: $1) } }
            if number % 10 == 0 { harness.perform { a.send(data: [UInt8(number)], label: "#b", now: $1) } }
            harness.run(for: .milliseconds(10))
        }
        harness.run(for: .seconds(5))
        #expect(flooder.closeFrames.map(\.reason) == ["TOO-MANY-MESSAGES"])
        #expect(b.data("#b").count == 6)
        #expect(harness.channel.hasMember(a.id))
    }

    /// Misuse of the server's own labels (4.7).
    @Test(arguments: ["notify", "push"]) func misuseOfASystemLabelEndsTheConnection(label: String) throws {
        let harness = try ChannelHarness()
        let client = try harness.joined(ChannelHarness.messaging())
        harness.perform { client.send(data: [1], label: label, now: $1) }
        harness.run(for: .milliseconds(100))
        #expect(client.closeFrames.map(\.code) == [4490])
        #expect(client.closeFrames.map(\.reason) == ["INTERNAL-ERROR"])
    }

    @Test(arguments: [
        ("signaling", "{"), ("signaling", #"{"type":7}"#), ("stats", "[]"), ("stats", #"{"type":"disconnect"}"#),
        ("stats", #"{"type":"candidate","candidate":""}"#),
    ])
    func nonsenseOnASystemLabelEndsTheConnection(label: String, text: String) throws {
        let harness = try ChannelHarness()
        let client = try harness.joined(ChannelHarness.messaging())
        harness.perform { client.send(data: Array(text.utf8), label: label, now: $1) }
        harness.run(for: .milliseconds(200))
        #expect(client.closeFrames.map(\.code) == [4490])
        #expect(client.closeFrames.map(\.reason) == ["INTERNAL-ERROR"])
        #expect(client.messages("close").map { $0["reason"] } == ["INTERNAL-ERROR"])
    }

    /// Clients never open channels (4.1).
    @Test func channelsThatAClientOpensAreClosed() throws {
        let harness = try ChannelHarness()
        let client = try harness.joined(ChannelHarness.messaging([Self.definition("#a")]))
        _ = try harness.perform { try client.peer.openDataChannel(label: "#mine", now: $1) }
        harness.run(for: .seconds(1))
        #expect(client.log.contains { if case .channelClosed("#mine") = $0 { true } else { false } })
        #expect(harness.channel.hasMember(client.id))
    }

    @Test func uncompressedSystemLabelsCarryText() throws {
        let harness = try ChannelHarness { $0.compressesSystemChannels = false }
        let client = try harness.joined(ChannelHarness.messaging())
        #expect(client.definitions["notify"]?.compress == false)
        #expect(client.notifications("connection.created").count == 1)
        #expect(client.systemFramesAreText)
        client.send(["type": "disconnect"], label: "signaling", now: harness.now)
        harness.run(for: .seconds(2))
        #expect(client.closeFrames.map(\.reason) == ["TYPE-DISCONNECT"])
    }
}

enum RandomSourceBytes {
    static func make(_ count: Int) -> [UInt8] {
        var random = RandomSource(seed: UInt64(count) + 3)
        return random.bytes(count)
    }
}
