import SoraClient
import SoraMessages
import SoraPeer
import SoraSDP
import SoraWire
import TestSupport
import Testing

/// Random sequences of everything that can happen; the invariants of the machine must hold in each.
@Suite(.serialized, .leavesNoObjects) struct ClientFuzzTests {
    @Test(arguments: 0..<60)
    func invariantsHoldWhateverHappens(seed: UInt64) {
        var random = RandomSource(seed: seed &* 7919)
        let test = Harness(urls: ["ws://a", "ws://b"]) {
            $0.waitsForDelivery = seed % 3 == 0
            $0.sendsVideo = seed % 5 == 0
        } prepare: {
            $0.holdsAnswers = seed % 2 == 0
        }
        test.start()
        var tokens: [RPCCallToken] = []
        for _ in 0..<Int.random(in: 20..<200, using: &random) {
            step(test, &random, &tokens)
            checkTimeout(test)
        }
        test.client.disconnect(now: test.now)
        test.advance(.seconds(60))
        check(test, tokens: tokens)
    }

    private func checkTimeout(_ test: Harness) {
        // Acting on a deadline always makes progress.
        guard let due = test.client.nextTimeout else { return }
        let at = max(due, test.now)
        for _ in 0..<5 {
            guard let next = test.client.nextTimeout, next <= test.now else { return }
            test.client.handleTimeout(now: at)
            test.drain()
        }
        if let next = test.client.nextTimeout { #expect(next > test.now, "a deadline that stays in the past") }
    }

    private func step(_ test: Harness, _ random: inout RandomSource, _ tokens: inout [RPCCallToken]) {
        func pick<Item>(_ items: [Item]) -> Item { items[Int.random(in: 0..<items.count, using: &random)] }
        let dial = DialID(Int.random(in: 1...4, using: &random))
        let stream = StreamID(UInt16.random(in: 0..<6, using: &random))
        let labels = ["signaling", "notify", "push", "stats", "rpc", "#a"]
        switch Int.random(in: 0..<24, using: &random) {
        case 0, 1: test.client.webSocketOpened(dial, now: test.now)
        case 2, 3, 4, 5, 6:
            let messages: [SignalingMessage] = [
                Harness.offer(labels: labels) { $0.mid = OfferMids(video: "v") }, Harness.reOffer,
                .switched(SwitchedMessage(ignoreDisconnectWebSocket: Bool.random(using: &random))),
                .ping(PingMessage(stats: Bool.random(using: &random))),
                .redirect(RedirectMessage(location: "ws://c")), .close(CloseMessage(code: 1000, reason: "X")),
                .notify(NotifyMessage(eventType: "x")), .update(DescriptionMessage(sdp: Harness.sdp)),
                .unknown(type: "z", ["type": "z"]),
            ]
            let message = pick(messages)
            // Redirects would be most of what happens.
            if case .redirect = message, Int.random(in: 0..<4, using: &random) > 0 { return }
            test.client.webSocketText(dial, message.text, now: test.now)
        case 7: test.client.webSocketText(dial, pick(["", "{", "null", "{\"type\":1}"]), now: test.now)
        case 8:
            if Int.random(in: 0..<8, using: &random) == 0 {
                test.client.webSocketClosed(dial, code: 1000, reason: nil, now: test.now)
            }
        case 9:
            if Int.random(in: 0..<8, using: &random) == 0 {
                test.client.webSocketFailed(dial, WebSocketFailure("x"), now: test.now)
            }
        case 10, 11:
            let state = pick([PeerConnectionState.connecting, .connected, .connected, .disconnected])
            test.peer(.stateChanged(state))
        case 12, 13: test.peer(.dataChannelOpened(stream, label: labels[Int(stream.rawValue)]))
        case 14: if Int.random(in: 0..<6, using: &random) == 0 { test.peer(.dataChannelClosed(stream)) }
        case 15: test.channel(labels[Int(stream.rawValue)], id: stream.rawValue, Harness.reOffer.text)
        case 16: test.peer(.dataChannelMessage(stream, random.bytes(8), isBinary: Bool.random(using: &random)))
        case 17:
            test.peer?.releaseAnswer()
            test.client.peerWasUsed(now: test.now)
        case 18: tokens.append(test.client.call(method: "m", params: nil, timeout: .seconds(2), now: test.now))
        case 19: if let token = tokens.last { test.client.cancelCall(token) }
        case 20: test.channel("rpc", id: 4, #"{"jsonrpc":"2.0","id":1,"result":1}"#)
        case 21: _ = test.client.sendMessage(label: "#a", [1, 2], now: test.now)
        case 22:
            if let token = test.statistics.last { test.client.provideStatistics([], for: token, now: test.now) }
            test.client.signalingTextDelivered(now: test.now)
        default: test.advance(.milliseconds(Int64.random(in: 0..<1_500, using: &random)))
        }
        test.drain()
    }

    private func check(_ test: Harness, tokens: [RPCCallToken]) {
        #expect(test.ends.count == 1)
        #expect(test.client.state == .disconnected && test.client.nextTimeout == nil)
        let trace = test.take()
        // Nothing is told after the end (but that calls made then have failed), and all that was opened is closed.
        let end = trace.firstIndex(of: "event ended") ?? 0
        #expect(trace[(end + 1)...].allSatisfy { $0.hasPrefix("abandon") || $0 == "event rpc" }, "\(trace[end...])")
        let opened = trace.filter { $0.hasPrefix("open sockets") }.map { $0.dropFirst(5) }
        let closed = trace.filter { $0.hasPrefix("close sockets") }.map { $0.dropFirst(6) }
        #expect(opened == closed)
        #expect(test.allPeers.allSatisfy { $0.isClosed })
        #expect(test.events.filter { $0 == .connected }.count <= 1)
        for token in tokens {
            let outcomes = test.events.filter { if case .rpcFinished(token, _) = $0 { true } else { false } }
            #expect(outcomes.count == 1)
        }
        // Nothing leaves on a WebSocket behind its close frame, and one close frame is all.
        for dial in 1...40 {
            guard let close = trace.firstIndex(where: { $0.hasPrefix("close \(dial) ") }) else { continue }
            #expect(!trace[(close + 1)...].contains { $0.hasPrefix("send \(dial) ") || $0.hasPrefix("close \(dial) ") })
        }
        // A label opens once per epoch and before its messages.
        var open = Set<String>()
        for event in test.events {
            switch event {
            case .dataChannelOpened(let label): #expect(open.insert(label).inserted)
            case .dataChannelMessage(let label, _): #expect(open.contains(label))
            case .redirected: open = []
            default: break
            }
        }
    }
}
