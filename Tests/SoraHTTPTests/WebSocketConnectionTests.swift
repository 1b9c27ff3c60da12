import SoraHTTP
import SoraWire
import Testing

private func ascii(_ text: String) -> [UInt8] { Array(text.utf8) }

private let start = Instant(nanoseconds: 1_000_000_000)

private func connection(
    _ role: WebSocketConnection.Role, maximum: Int = 1 << 20, seed: UInt64 = 1
) -> WebSocketConnection {
    WebSocketConnection(
        role: role, configuration: .init(maximumMessageSize: maximum, closeTimeout: .seconds(3)),
        random: RandomSource(seed: seed))
}

private func drain(_ connection: inout WebSocketConnection) -> [WebSocketConnection.Output] {
    var result: [WebSocketConnection.Output] = []
    while let output = connection.poll() { result.append(output) }
    return result
}

/// A frame as a client sends it.
private func masked(_ opcode: WebSocketOpcode, _ payload: [UInt8], final: Bool = true) -> [UInt8] {
    WebSocketFrameHeader.frame(isFinal: final, opcode, mask: 0x37FA_213D, payload: payload)
}

/// A frame as a server sends it.
private func plain(_ opcode: WebSocketOpcode, _ payload: [UInt8], final: Bool = true) -> [UInt8] {
    WebSocketFrameHeader.frame(isFinal: final, opcode, mask: nil, payload: payload)
}

private func closeFrame(_ code: UInt16, _ reason: [UInt8] = []) -> [UInt8] {
    [UInt8(code >> 8), UInt8(code & 0xFF)] + reason
}

/// What a server makes of a client's bytes.
private func server(_ bytes: [UInt8], maximum: Int = 1 << 20) -> [WebSocketConnection.Output] {
    var machine = connection(.server, maximum: maximum)
    machine.handle(bytes, now: start)
    return drain(&machine)
}

private func failure(_ error: WebSocketError) -> [WebSocketConnection.Output] {
    [
        .transmit(plain(.close, closeFrame(error.closeCode, ascii(error.description)))),
        .closed(WebSocketClosure(code: error.closeCode, error: error, isLocal: true)), .closeStream,
    ]
}

@Suite struct WebSocketConnectionTests {
    // RFC 6455, 5.7.
    @Test func framesOfTheStandardsExamples() throws {
        #expect(plain(.text, ascii("Hello")) == [0x81, 0x05, 0x48, 0x65, 0x6C, 0x6C, 0x6F])
        #expect(masked(.text, ascii("Hello")) == [0x81, 0x85, 0x37, 0xFA, 0x21, 0x3D, 0x7F, 0x9F, 0x4D, 0x51, 0x58])
        #expect(plain(.text, ascii("Hel"), final: false) == [0x01, 0x03, 0x48, 0x65, 0x6C])
        #expect(plain(.continuation, ascii("lo")) == [0x80, 0x02, 0x6C, 0x6F])
        #expect(Array(plain(.binary, [UInt8](repeating: 0, count: 256)).prefix(4)) == [0x82, 0x7E, 0x01, 0x00])
        #expect(
            Array(plain(.binary, [UInt8](repeating: 0, count: 65536)).prefix(10))
                == [0x82, 0x7F, 0, 0, 0, 0, 0, 1, 0, 0])
    }

    @Test(arguments: [0, 1, 125, 126, 127, 65535, 65536, 70000]) func messagesOfEveryLengthFormArrive(_ size: Int) {
        var random = RandomSource(seed: UInt64(size))
        let payload = random.bytes(size)
        var client = connection(.client)
        var server = connection(.server)
        try? client.send(binary: payload)
        for output in drain(&client) { if case .transmit(let bytes) = output { server.handle(bytes, now: start) } }
        #expect(drain(&server) == [.binary(payload)])
        try? server.send(binary: payload)
        for output in drain(&server) { if case .transmit(let bytes) = output { client.handle(bytes, now: start) } }
        #expect(drain(&client) == [.binary(payload)])
    }

    @Test func fragmentsWithControlFramesBetweenThemMakeOneMessage() {
        let bytes =
            masked(.text, ascii("one "), final: false) + masked(.ping, ascii("p1"))
            + masked(.continuation, [], final: false) + masked(.pong, [])
            + masked(.continuation, ascii("two "), final: false) + masked(.ping, [])
            + masked(.continuation, ascii("three"))
        #expect(
            server(bytes) == [
                .transmit(plain(.pong, ascii("p1"))), .ping(ascii("p1")), .pong([]), .transmit(plain(.pong, [])),
                .ping([]),
                .text("one two three"),
            ])
    }

    @Test func anyPiecesGiveTheSameOutputs() {
        let bytes =
            masked(.text, ascii("žluťoučký 🐴 kůň")) + masked(.binary, Array(0...255), final: false)
            + masked(.ping, ascii("x")) + masked(.continuation, [UInt8](repeating: 9, count: 300))
            + masked(.close, closeFrame(4401, ascii("bye")))
        let whole = server(bytes)
        #expect(whole.count == 7)
        for cut in 0...bytes.count {
            var machine = connection(.server)
            machine.handle(Array(bytes[..<cut]), now: start)
            machine.handle(Array(bytes[cut...]), now: start)
            #expect(drain(&machine) == whole)
        }
        var machine = connection(.server)
        for byte in bytes { machine.handle([byte], now: start) }
        #expect(drain(&machine) == whole)
    }

    @Test func aCutStreamEndsAbnormallyOnce() {
        let bytes = masked(.text, ascii("hello")) + masked(.close, closeFrame(1000))
        for length in 0..<bytes.count {
            var machine = connection(.server)
            machine.handle(Array(bytes[..<length]), now: start)
            machine.handleEnd(now: start)
            machine.handleEnd(now: start)
            let ends = drain(&machine).suffix(2)
            #expect(
                Array(ends) == [
                    .closed(WebSocketClosure(code: 1006, error: .streamEnded, isLocal: false)), .closeStream,
                ])
        }
    }

    @Test func maskingIsRequiredOfClientsAndForbiddenToServers() {
        #expect(server(plain(.text, ascii("x"))) == failure(.wrongMasking(isMasked: false)))
        var client = connection(.client)
        client.handle(masked(.text, ascii("x")), now: start)
        #expect(
            drain(&client).contains(.closed(.init(code: 1002, error: .wrongMasking(isMasked: true), isLocal: true))))
    }

    @Test func everyClientFrameHasAFreshMask() throws {
        var client = connection(.client)
        for _ in 0..<3 { try client.send(text: "same") }
        #expect(Set(drain(&client).map { "\($0)" }).count == 3)
    }

    @Test(
        arguments: [
            ([0xC1, 0x80, 0, 0, 0, 0], WebSocketError.reservedBits(0xC1)),
            ([0x83, 0x80, 0, 0, 0, 0], .unknownOpcode(3)),
            ([0x8B, 0x80], .unknownOpcode(11)), ([0x09, 0x80], .fragmentedControlFrame(.ping)),
            ([0x89, 0xFE], .oversizedControlFrame(.ping)), ([0x82, 0xFE, 0x00, 0x7D], .lengthNotMinimal(125)),
            ([0x82, 0xFF, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF], .lengthNotMinimal(65535)),
            ([0x82, 0xFF, 0x80, 0, 0, 0, 0, 0, 0, 0], .invalidLength(1 << 63)),
            ([0x80, 0x80, 0, 0, 0, 0], .misplacedFrame(.continuation)),
        ] as [([UInt8], WebSocketError)])
    func protocolErrorsFailTheConnection(_ bytes: [UInt8], _ error: WebSocketError) {
        #expect(error.closeCode == 1002)
        #expect(server(bytes) == failure(error))
        var machine = connection(.server)
        for byte in bytes { machine.handle([byte], now: start) }
        #expect(drain(&machine) == failure(error))
    }

    @Test func aMessageWithinAMessageFailsTheConnection() {
        #expect(
            server(masked(.text, [], final: false) + masked(.binary, [])) == failure(.misplacedFrame(.binary)))
    }

    // LIF28: invalid UTF-8 fails with 1007, as soon as it is certain.
    @Test(
        arguments: [
            [0xED, 0xA0, 0x80], [0xC0, 0x80], [0xC1, 0xBF], [0xE0, 0x9F, 0xBF], [0xF0, 0x8F, 0xBF, 0xBF],
            [0xF4, 0x90, 0x80, 0x80], [0xF5], [0xFF], [0x80], [0xC3, 0x28], [0xE2, 0x82, 0x28],
        ] as [[UInt8]])
    func invalidUTF8FailsTheConnection(_ text: [UInt8]) {
        #expect(server(masked(.text, ascii("ok") + text)) == failure(.invalidUTF8))
        // Told before the message is complete.
        #expect(server(masked(.text, ascii("ok") + text, final: false)) == failure(.invalidUTF8))
    }

    @Test func aCharacterMayBeCutByFragmentsButNotByTheEnd() {
        let text = ascii("é€🐴")
        for cut in 0...text.count {
            let bytes = masked(.text, Array(text[..<cut]), final: false) + masked(.continuation, Array(text[cut...]))
            #expect(server(bytes) == [.text("é€🐴")])
        }
        #expect(server(masked(.text, [0xE2, 0x82])) == failure(.invalidUTF8))
        #expect(server(masked(.text, [0xE2], final: false) + masked(.continuation, [0x82])) == failure(.invalidUTF8))
    }

    @Test func validUTF8OfEveryLengthIsTaken() {
        for text in [
            "\u{0}", "\u{7F}", "\u{80}", "\u{7FF}", "\u{800}", "\u{D7FF}", "\u{E000}", "\u{FFFF}", "\u{10000}",
            "\u{10FFFF}",
        ] {
            #expect(server(masked(.text, ascii(text))) == [.text(text)])
        }
    }

    // SRV1: refused by the announced length, before a byte of it is stored.
    @Test func oversizedMessagesFailBeforeTheirPayload() {
        let error = WebSocketError.messageTooLarge(limit: 100)
        #expect(error.closeCode == 1009)
        #expect(server([0x82, 0xFE, 0x00, 0x7E, 1, 2, 3, 4], maximum: 100) == failure(error))
        #expect(
            server([0x82, 0xFF, 0x7F, 255, 255, 255, 255, 255, 255, 255, 1, 2, 3, 4], maximum: 100) == failure(error))
        let halves = masked(.binary, [UInt8](repeating: 0, count: 60), final: false)
        #expect(
            server(halves + Array(masked(.continuation, [UInt8](repeating: 0, count: 41)).prefix(6)), maximum: 100)
                == failure(error))
        let exact = [UInt8](repeating: 3, count: 100)
        #expect(server(masked(.binary, exact), maximum: 100) == [.binary(exact)])
    }

    // SRV1: fragments that never grow reach no size limit.
    @Test func endlessFragmentsFailTheConnection() {
        let limit = WebSocketConnection.Configuration().maximumFragments
        let next = masked(.continuation, [], final: false)
        let most = masked(.text, ascii("a"), final: false) + Array(repeating: next, count: limit - 2).flatMap { $0 }
        #expect(server(most + masked(.continuation, ascii("b"))) == [.text("ab")])
        let error = WebSocketError.tooManyFragments(limit: limit)
        #expect(error.closeCode == 1008)
        #expect(server(most + next + masked(.continuation, ascii("b"))) == failure(error))
    }

    // LIF10: each way of ending has one documented value.
    @Test(
        arguments: [
            ([], 1005, ""), (closeFrame(1000), 1000, ""), (closeFrame(4401, ascii("TOKEN")), 4401, "TOKEN"),
            (
                closeFrame(1008, ascii(String(repeating: "é", count: 61) + "x")), 1008,
                String(repeating: "é", count: 61) + "x"
            ),
            (closeFrame(3000), 3000, ""), (closeFrame(1013), 1013, ""),
        ] as [([UInt8], UInt16, String)])
    func thePeersCloseIsEchoedAndTold(_ payload: [UInt8], _ code: UInt16, _ reason: String) {
        let echo: [UInt8] = code == 1005 ? [] : closeFrame(code)
        #expect(
            server(masked(.close, payload)) == [
                .transmit(plain(.close, echo)), .closed(WebSocketClosure(code: code, reason: reason, isLocal: false)),
                .closeStream,
            ])
    }

    // LIF10.
    @Test func malformedCloseFramesFailTheConnection() {
        #expect(server(masked(.close, [3])) == failure(.truncatedCloseFrame))
        for code: UInt16 in [0, 999, 1004, 1005, 1006, 1015, 1016, 2999, 5000, 65535] {
            #expect(server(masked(.close, closeFrame(code))) == failure(.forbiddenCloseCode(code)))
        }
        #expect(server(masked(.close, closeFrame(1000, [0xC3]))) == failure(.invalidUTF8))
    }

    @Test func nothingBehindACloseFrameCounts() {
        let outputs = server(masked(.close, closeFrame(1000)) + masked(.text, ascii("late")) + [0xFF, 0xFF])
        #expect(outputs.count == 3)
    }

    @Test func ourCloseWaitsForThePeersAndStillDelivers() throws {
        var client = connection(.client)
        try client.close(code: 1000, reason: "TYPE-DISCONNECT", now: start)
        try client.close(code: 4000, now: start)
        #expect(client.nextTimeout == start + .seconds(3))
        #expect(throws: WebSocketError.notOpen) { try client.send(text: "x") }
        #expect(throws: WebSocketError.notOpen) { try client.ping() }
        #expect(drain(&client).count == 1)
        client.handle(plain(.text, ascii("on its way")) + plain(.ping, []), now: start)
        #expect(drain(&client) == [.text("on its way"), .ping([])])
        client.handle(plain(.close, closeFrame(1000)), now: start)
        #expect(drain(&client) == [.closed(WebSocketClosure(code: 1000, isLocal: true))])
        // The server ends the stream; if it does not, so do we.
        #expect(client.nextTimeout == start + .seconds(3))
        client.handleEnd(now: start)
        #expect(drain(&client) == [.closeStream])
        #expect(client.nextTimeout == nil)
    }

    @Test func aPeerThatNeverAnswersTheCloseTimesOut() throws {
        for role in [WebSocketConnection.Role.client, .server] {
            var machine = connection(role)
            try machine.close(code: 3000, now: start)
            _ = drain(&machine)
            machine.handleTimeout(now: start + .milliseconds(2999))
            #expect(drain(&machine).isEmpty)
            machine.handleTimeout(now: start + .seconds(3))
            #expect(
                drain(&machine) == [
                    .closed(WebSocketClosure(code: 1006, error: .closeTimeout, isLocal: true)), .closeStream,
                ])
            #expect(machine.nextTimeout == nil)
        }
    }

    @Test func aServerThatKeepsTheStreamOpenIsLeftAfterTheTimeout() {
        var client = connection(.client)
        client.handle(plain(.close, closeFrame(1001)), now: start)
        #expect(drain(&client).count == 2)
        client.handleTimeout(now: start + .seconds(3))
        #expect(drain(&client) == [.closeStream])
    }

    @Test func simultaneousClosesEndInOrder() throws {
        var client = connection(.client)
        var server = connection(.server)
        try client.close(code: 1000, now: start)
        try server.close(code: 4490, reason: "X", now: start)
        let toServer = drain(&client), toClient = drain(&server)
        for case .transmit(let bytes) in toServer { server.handle(bytes, now: start) }
        for case .transmit(let bytes) in toClient { client.handle(bytes, now: start) }
        #expect(drain(&server) == [.closed(WebSocketClosure(code: 1000, isLocal: true)), .closeStream])
        #expect(drain(&client) == [.closed(WebSocketClosure(code: 4490, reason: "X", isLocal: true))])
    }

    @Test func unsendableCodesAreRefusedToTheCaller() {
        for code: UInt16 in [0, 999, 1004, 1005, 1006, 1015, 2000, 5000] {
            var machine = connection(.client)
            #expect(throws: WebSocketError.forbiddenCloseCode(code)) { try machine.close(code: code, now: start) }
            #expect(machine.isOpen)
        }
    }

    @Test func longReasonsAreCutAtACharacter() throws {
        var machine = connection(.server)
        try machine.close(code: 4000, reason: String(repeating: "é", count: 100), now: start)
        #expect(
            drain(&machine) == [.transmit(plain(.close, closeFrame(4000, ascii(String(repeating: "é", count: 61)))))])
    }

    @Test func randomStreamsNeverTrapAndAgreeInAnyPieces() {
        var random = RandomSource(seed: 99)
        let seeds: [[UInt8]] = [
            masked(.text, ascii("hello")), masked(.binary, [UInt8](repeating: 1, count: 130)), masked(.ping, [1]),
            masked(.close, closeFrame(1000)), masked(.text, [], final: false), masked(.continuation, ascii("x")),
        ]
        for _ in 0..<5000 {
            var bytes: [UInt8] = []
            for _ in 0..<Int.random(in: 1...5, using: &random) {
                bytes += seeds[Int.random(in: 0..<seeds.count, using: &random)]
            }
            for _ in 0..<Int.random(in: 0...3, using: &random) {
                bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            let whole = server(bytes)
            var machine = connection(.server)
            for byte in bytes { machine.handle([byte], now: start) }
            #expect(drain(&machine) == whole)
            // At most one end, and nothing behind it.
            if let end = whole.firstIndex(where: { if case .closed = $0 { true } else { false } }) {
                #expect(Array(whole[(end + 1)...]) == [.closeStream])
            }
        }
    }

    @Test func twoMachinesTalkUnderRandomCuts() throws {
        var random = RandomSource(seed: 12)
        var client = connection(.client, seed: 3)
        var server = connection(.server, seed: 4)
        var sent: [WebSocketConnection.Output] = []
        var received: [WebSocketConnection.Output] = []
        var wire: [UInt8] = []
        for _ in 0..<300 {
            if Bool.random(using: &random) {
                let text = String(repeating: "ž", count: Int.random(in: 0..<400, using: &random))
                try client.send(text: text)
                sent.append(.text(text))
            } else {
                let data = random.bytes(Int.random(in: 0..<70_000, using: &random))
                try client.send(binary: data)
                sent.append(.binary(data))
            }
            for case .transmit(let bytes) in drain(&client) { wire += bytes }
            let count = Int.random(in: 0...wire.count, using: &random)
            server.handle(Array(wire[..<count]), now: start)
            wire.removeFirst(count)
            received += drain(&server)
        }
        server.handle(wire, now: start)
        received += drain(&server)
        #expect(received == sent)
    }
}
