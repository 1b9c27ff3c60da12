import SoraClient
import SoraMessages
import SoraPeer
import SoraWire
import TestSupport
import Testing

@Suite(.serialized, .leavesNoObjects) struct MessagingTests {
    // api 3.11
    // api 5.60
    @Test func everyLabelOpensOnceAndAllApplicationLabelsMakeAvailable() {
        let test = Harness()
        let labels = ["signaling", "notify", "#a", "#b", "rpc"]
        test.connect(labels: labels)
        #expect(
            test.take().suffix(6) == [
                "event opened signaling", "event opened notify", "event opened #a", "event opened #b",
                "event available",
                "event opened rpc",
            ])
        let plain = Harness()
        plain.connect(labels: ["signaling", "rpc"])
        #expect(!plain.take().contains("event available"))
    }

    // LIF22: order of checks, labels as exact bytes.
    @Test func sendingChecksInOrder() {
        let test = Harness()
        test.connect(labels: ["signaling", "#a", "e2ee"])
        #expect(test.client.sendMessage(label: "#a", [1], now: test.now) == .notSwitched)
        #expect(test.client.sendMessage(label: "signaling", [1], now: test.now) == .notSwitched)
        test.switchOver(ignore: false)
        for label in ["signaling", "e2ee", " #log", "＃log", ""] {
            #expect(test.client.sendMessage(label: label, [1], now: test.now) == .labelWithoutHash)
        }
        for label in ["#", "#A", "#b"] {
            #expect(test.client.sendMessage(label: label, [1], now: test.now) == .unknownLabel(label))
        }
        #expect(test.peer?.sent == [])
        #expect(test.client.sendMessage(label: "#a", [1], now: test.now) == nil)
        #expect(test.client.sendMessage(label: "#a", [], now: test.now) == nil)
        let tooLarge = [UInt8](repeating: 0, count: 262_145)
        #expect(test.client.sendMessage(label: "#a", tooLarge, now: test.now) == .sendFailed(label: "#a"))
        test.peer?.refusesToSend = true
        #expect(test.client.sendMessage(label: "#a", [1], now: test.now) == .sendFailed(label: "#a"))
        #expect(test.channelTexts("#a", id: 1) == ["\u{1}", ""])
        #expect(test.peer?.sent.allSatisfy { $0.isBinary } == true)
    }

    @Test func messagesArriveInflatedOnEveryLabel() {
        let test = Harness()
        test.connect(labels: ["signaling", "notify", "#a"])
        _ = test.take()
        test.channel("#a", id: 2, [0, 1, 2])
        test.channel("notify", id: 1, #"{"type":"notify","event_type":"x"}"#)
        #expect(
            test.take() == ["event message #a", "event text", "event signaling notify", "event message notify"])
        #expect(test.events.contains(.dataChannelMessage(label: "#a", [0, 1, 2])))
    }

    // SCT14
    // api 5.62
    @Test func oneBadMessageIsDroppedAndTheNextArrives() {
        let test = Harness()
        test.connect(labels: ["#a"])
        _ = test.take()
        test.peer(.dataChannelMessage(StreamID(0), [0x78, 0x9C, 1], isBinary: true))
        #expect(test.take() == [])
        test.channel("#a", id: 0, [5])
        #expect(test.take() == ["event message #a"])
    }

    @Test func redirectAndOfferOverDataChannelsHaveNoEffect() {
        let test = Harness()
        test.connect(labels: ["signaling"])
        test.channel("signaling", id: 0, #"{"type":"redirect","location":"ws://evil"}"#)
        test.channel("signaling", id: 0, Harness.offer().text)
        #expect(test.client.epoch == 0 && !test.take().contains { $0.hasPrefix("dial 2") })
        #expect(test.peer?.accepted.count == 1)
    }

    @Test func rpcCallEndsWithItsOwnValidReply() throws {
        let test = Harness()
        test.connect(labels: ["signaling", "rpc"])
        let params = Array(#"{"rid":"r1"}"#.utf8)
        _ = test.client.call(method: "m", params: params, now: test.now)
        _ = test.client.call(method: "n", params: nil, now: test.now)
        #expect(
            test.channelTexts("rpc", id: 1) == [
                #"{"jsonrpc":"2.0","method":"m","id":1,"params":{"rid":"r1"}}"#,
                #"{"jsonrpc":"2.0","method":"n","id":2}"#,
            ])
        // LIF26: what is no valid reply leaves the call waiting.
        for bad in [
            #"{"jsonrpc":2.0,"id":1,"result":1}"#, #"{"jsonrpc":"2.0","id":"1","result":1}"#, "x",
            #"{"jsonrpc":"2.0","id":1.5,"result":1}"#, #"{"jsonrpc":"2.0","id":1,"error":{}}"#,
            #"{"jsonrpc":"2.0","id":99,"result":1}"#, #"{"jsonrpc":"2.0","id":1,"result":1} y"#,
        ] { test.channel("rpc", id: 1, bad) }
        #expect(test.outcomes.isEmpty)
        let reply = #"{"jsonrpc":"2.0","id":2,"result":null}"#
        test.channel("rpc", id: 1, reply)
        #expect(test.outcomes == [.result(id: 2, .null, message: Array(reply.utf8))])
        test.channel("rpc", id: 1, #"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}"#)
        guard case .serverError(let error, _)? = test.outcomes.last else {
            Issue.record("no server error")
            return
        }
        #expect(error == RPCErrorObject(code: -32_601, message: "no"))
        test.channel("rpc", id: 1, reply)
        #expect(test.outcomes.count == 2)
    }

    @Test func rpcNotificationResolvesAtOnceAndConsumesNoID() {
        let test = Harness()
        test.connect(labels: ["rpc"])
        _ = test.client.call(method: "m", params: nil, isNotification: true, now: test.now)
        #expect(test.outcomes == [.sent])
        _ = test.client.call(method: "m", params: nil, now: test.now)
        #expect(test.channelTexts("rpc", id: 0).last?.contains("\"id\":1") == true)
    }

    @Test func rpcErrorsBeforeSending() {
        let test = Harness()
        _ = test.client.call(method: "m", params: nil, now: test.now)
        test.connect(labels: ["signaling"])
        _ = test.client.call(method: "m", params: nil, now: test.now)
        _ = test.client.call(method: "m", params: Array("{".utf8), now: test.now)
        test.peer(.dataChannelOpened(StreamID(9), label: "rpc"))
        test.peer?.refusesToSend = true
        _ = test.client.call(method: "m", params: nil, now: test.now)
        #expect(
            test.outcomes == [
                .failure(.unavailable("rpc channel is not available")),
                .failure(.unavailable("rpc channel is not available")),
                .failure(.encoding("invalid JSON payload")), .failure(.dataChannelClosed("failed to send rpc message")),
            ])
    }

    @Test func rpcTimesOutIsCancelledOrEndsWithTheConnection() {
        let test = Harness()
        test.connect(labels: ["rpc"])
        _ = test.client.call(method: "a", params: nil, timeout: .seconds(1), now: test.now)
        let second = test.client.call(method: "b", params: nil, timeout: .seconds(9), now: test.now)
        _ = test.client.call(method: "c", params: nil, timeout: .seconds(9), now: test.now)
        _ = test.client.call(method: "d", params: nil, timeout: .zero, now: test.now)
        #expect(test.outcomes == [.failure(.timeout)])
        test.advance(.milliseconds(999))
        #expect(test.outcomes.count == 1)
        test.advance(.milliseconds(1))
        #expect(test.outcomes == [.failure(.timeout), .failure(.timeout)])
        test.client.cancelCall(second)
        test.client.cancelCall(second)
        #expect(test.outcomes.suffix(1) == [.failure(.cancelled)] && test.outcomes.count == 3)
        test.client.disconnect(now: test.now)
        #expect(test.outcomes.suffix(1) == [.failure(.dataChannelClosed("user"))])
        #expect(test.outcomes.count == 4)
    }

    @Test func rpcEndsWithTheNameOfTheCause() {
        let causes: [(String, (Harness) -> Void)] = [
            ("webSocket", { $0.wsFailed() }), ("dataChannelClosed", { $0.peer(.dataChannelClosed(StreamID(0))) }),
            ("peerConnectionStateFailed", { $0.peer(.stateChanged(.failed)) }),
            (
                "peerConnectionStateDisconnected",
                {
                    $0.peer(.stateChanged(.disconnected))
                    $0.advance(.seconds(5))
                }
            ),
            ("redirect", { $0.receive(.redirect(RedirectMessage(location: "ws://two"))) }),
        ]
        for (name, cause) in causes {
            let test = Harness()
            test.connect(labels: ["rpc"])
            _ = test.client.call(method: "a", params: nil, timeout: .seconds(60), now: test.now)
            cause(test)
            #expect(test.outcomes == [.failure(.dataChannelClosed(name))])
        }
    }
}
