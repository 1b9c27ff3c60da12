import SoraClient
import SoraMessages
import SoraPeer
import SoraWire
import TestSupport
import Testing

@Suite(.serialized, .leavesNoObjects) struct EndTests {
    // api 3.4, 3.7
    @Test func disconnectOverWebSocketWaitsForTheServer() {
        let test = Harness()
        test.connect()
        _ = test.take()
        test.client.disconnect(now: test.now)
        #expect(test.client.state == .disconnecting)
        #expect(test.take() == ["event disconnecting", "send 1 disconnect", "close 1 1000"])
        #expect(test.texts.last?.text == #"{"type":"disconnect","reason":"NO-ERROR"}"#)
        test.client.disconnect(now: test.now)
        test.wsClosed(code: 1000, reason: "TYPE-DISCONNECT")
        #expect(test.take() == ["close sockets 0", "event ended"])
        #expect(test.ends == [ClientEnd(error: nil, wasConnected: true)])
        #expect(test.ends.first?.closeCode?.code == 1000 && test.ends.first?.closeCode?.reason == "NO-ERROR")
        #expect(test.client.state == .disconnected && test.peer?.isClosed == true)
        // Ids stay readable, URLs do not.
        #expect(test.client.connectionID == "CONNECTION" && test.client.contactURL == nil)
    }

    @Test func disconnectGivesUpWaitingAfterThreeSeconds() {
        let test = Harness()
        test.connect()
        test.client.disconnect(now: test.now)
        test.advance(.milliseconds(2_999))
        #expect(test.ends.isEmpty)
        test.advance(.milliseconds(1))
        #expect(test.ends == [ClientEnd(error: nil, wasConnected: true)])
        test.advance(.seconds(100))
        #expect(test.ends.count == 1)
    }

    @Test func disconnectOverDataChannelWaitsForChannelsThenWebSocket() {
        let test = Harness()
        let labels = ["signaling", "notify"]
        test.connect(labels: labels)
        test.switchOver(ignore: false)
        _ = test.take()
        test.client.disconnect(now: test.now)
        #expect(test.take() == ["event disconnecting"])
        #expect(test.channelTexts("signaling", id: 0) == [#"{"type":"disconnect","reason":"NO-ERROR"}"#])
        test.peer(.dataChannelClosed(StreamID(1)))
        #expect(test.take() == [])
        test.peer(.dataChannelClosed(StreamID(0)))
        #expect(test.take() == ["close 1 1000"])
        test.wsClosed(code: 1000)
        #expect(test.take() == ["close sockets 0", "event ended"])
        #expect(test.ends.count == 1)
    }

    @Test func disconnectWithoutWebSocketEndsWithTheChannels() {
        let test = Harness()
        test.connect(labels: ["signaling"])
        test.switchOver(ignore: true)
        test.wsClosed(code: 1006)
        #expect(test.ends.isEmpty)
        test.client.disconnect(now: test.now)
        test.peer(.dataChannelClosed(StreamID(0)))
        #expect(test.ends == [ClientEnd(error: nil, wasConnected: true)])
    }

    // LIF4, LIF5: disconnect wins in every sub-step.
    @Test func disconnectBeforeEachStepEndsOnceAndClosesEverything() {
        for step in 0..<7 {
            let test = Harness(urls: ["ws://a", "ws://b", "ws://c", "ws://d"]) { $0.sendsVideo = false }
            let steps: [() -> Void] = [
                { test.start() }, { test.wsFailed(2) }, { test.open(3) }, { test.receive(Harness.offer(), on: 3) },
                { test.peer(.localCandidate("candidate:1")) }, { test.peer(.stateChanged(.connected)) },
            ]
            for action in steps.prefix(step) { action() }
            test.client.disconnect(now: test.now)
            for action in steps.suffix(from: min(step, steps.count)) { action() }
            test.wsClosed(3, code: 1000)
            test.advance(.seconds(60))
            #expect(test.ends.count == 1 && test.ends.first?.error == nil, "step \(step)")
            let trace = test.take()
            #expect(trace.last { $0.hasPrefix("event") } == "event ended")
            // Every dial was closed, abandoned or has ended by itself; no connect after the disconnect.
            let dials = trace.filter { $0.hasPrefix("dial") }.count
            #expect(dials == (step == 0 ? 0 : 4))
            if step > 0 {
                for dial in [1, 3, 4] where !(dial == 3 && step >= 3) {
                    #expect(trace.contains("abandon \(dial)"), "step \(step) dial \(dial)")
                }
            }
            #expect(trace.filter { $0 == "send 3 connect" }.count == (step >= 3 ? 1 : 0))
            #expect(trace.contains("close sockets 0") == trace.contains("open sockets 0"))
            #expect(test.client.nextTimeout == nil)
        }
    }

    // api 3.3; LIF5
    @Test func cancelEndsAnAttemptAndNothingElse() {
        let early = Harness()
        early.client.cancel(now: .zero)
        early.client.cancel(now: .zero)
        early.start()
        #expect(early.take() == ["event disconnecting", "event ended"])
        #expect(early.ends == [ClientEnd(error: .cancelled, wasConnected: false)])

        let connected = Harness()
        connected.connect()
        connected.client.cancel(now: connected.now)
        #expect(connected.ends.isEmpty && connected.client.state == .connected)

        let middle = Harness()
        middle.start()
        middle.open(1)
        _ = middle.take()
        middle.client.cancel(now: .zero)
        #expect(middle.take() == ["event disconnecting", "send 1 disconnect", "close 1 1000"])
        middle.wsClosed(code: 1000)
        #expect(middle.ends == [ClientEnd(error: .cancelled, wasConnected: false)])
    }

    // api 3.5; LIF10
    @Test(arguments: [UInt16(1000), 1005, 1008, 4401, 4490])
    func closeFrameIsReportedWithCodeAndReason(code: UInt16) {
        for connected in [false, true] {
            let test = Harness()
            if connected {
                test.connect()
            } else {
                test.start()
                test.open(1)
            }
            let reason: String? = code == 1005 ? nil : "REASON"
            test.wsClosed(code: code, reason: reason)
            #expect(
                test.ends == [ClientEnd(error: .webSocketClosed(code: code, reason: reason), wasConnected: connected)])
            #expect(test.ends.first?.closeCode?.code == Int(code))
            #expect(!test.trace.contains { $0.hasPrefix("close 1") })
        }
    }

    @Test func lostWebSocketIsAFailure() {
        let test = Harness()
        test.connect()
        test.wsFailed(1, "reset by peer")
        #expect(test.ends.first?.error == .webSocketFailed(WebSocketFailure("reset by peer")))
        #expect(test.ends.first?.closeCode == nil)
    }

    // api 3.5, 3.6, 3.7: in hybrid state the server is told over the data channel.
    @Test func webSocketEndInHybridStateIsToldOnTheChannel() {
        for failed in [false, true] {
            let test = Harness()
            test.connect(labels: ["signaling", "notify"])
            test.switchOver(ignore: failed ? false : nil)
            if failed { test.wsFailed() } else { test.wsClosed(code: 4490, reason: "X") }
            let reason = failed ? "WEBSOCKET-ONERROR" : "WEBSOCKET-ONCLOSE"
            #expect(test.channelTexts("signaling", id: 0) == [#"{"type":"disconnect","reason":"\#(reason)"}"#])
            #expect(test.ends.count == 1)
        }
    }

    // api 3.8; sig 4.7: before the switch every loss ends the connection.
    @Test func lossBeforeSwitchEndsEvenWithChannels() {
        let test = Harness()
        test.connect(labels: ["signaling"]) { $0.ignoreDisconnectWebSocket = true }
        test.wsFailed()
        #expect(test.ends.count == 1)
        #expect(test.peer?.sent == [])
    }

    @Test func lossAfterIgnoringSwitchChangesNothing() {
        for ending in 0..<3 {
            let test = Harness()
            test.connect(labels: Harness.systemLabels)
            test.switchOver(ignore: true)
            switch ending {
            case 0: test.wsClosed(code: 1000)
            case 1: test.wsClosed(code: 4490, reason: "X")
            default: test.wsFailed()
            }
            #expect(test.ends.isEmpty && test.client.state == .connected)
            test.channel("signaling", id: 0, Harness.reOffer.text)
            #expect(test.channelTexts("signaling", id: 0).count == 1)
        }
    }

    // LIF21
    @Test func closeMessageThenChannelsIsAnOrderlyEnd() {
        let close = SignalingMessage.close(CloseMessage(code: 1000, reason: "DISCONNECTED-API"))
        let expected = ClientError.dataChannelClosed(code: 1000, reason: "DISCONNECTED-API")
        for variant in 0..<4 {
            let test = Harness()
            test.connect(labels: ["signaling", "notify"])
            test.switchOver(ignore: true)
            test.wsClosed(code: 1005)
            test.channel("signaling", id: 0, close.text)
            #expect(test.ends.isEmpty)
            switch variant {
            case 0: test.peer(.dataChannelClosed(StreamID(1)))
            case 1: test.peer(.ended(nil))
            case 2: test.peer(.stateChanged(.failed))
            default: test.advance(.seconds(5))
            }
            #expect(test.ends == [ClientEnd(error: expected, wasConnected: true)], "variant \(variant)")
            #expect(test.client.nextTimeout == nil)
        }
    }

    // LIF21
    @Test func channelsClosedWithoutAWordIsANormalEnd() {
        let test = Harness()
        test.connect(labels: ["signaling", "notify"])
        test.switchOver(ignore: true)
        test.peer(.dataChannelClosed(StreamID(1)))
        #expect(test.ends == [ClientEnd(error: nil, wasConnected: true)])
        #expect(test.peer?.sent == [])
        test.peer(.dataChannelClosed(StreamID(0)))
        #expect(test.ends.count == 1)
    }

    @Test func orderlyEndOfThePeerConnectionIsANormalEnd() {
        let test = Harness()
        test.connect(labels: ["signaling"])
        test.peer(.ended(nil))
        #expect(test.ends == [ClientEnd(error: nil, wasConnected: true)])
    }

    // api 3.6; LIF9
    // api 5.17
    @Test func disconnectedPeerEndsAfterFiveSecondsOnly() {
        let test = Harness()
        test.connect()
        for _ in 0..<3 {
            test.peer(.stateChanged(.disconnected))
            test.advance(.seconds(4))
            test.peer(.stateChanged(.connected))
            test.advance(.seconds(10))
        }
        #expect(test.ends.isEmpty)
        test.peer(.stateChanged(.disconnected))
        _ = test.take()
        test.advance(.seconds(5))
        #expect(
            test.take() == [
                "event disconnecting", "send 1 disconnect", "close 1 1000", "close sockets 0", "event ended",
            ])
        #expect(test.texts.last?.text == #"{"type":"disconnect","reason":"NO-ERROR"}"#)
        #expect(
            test.ends == [ClientEnd(error: .peerChannel("peer connection state: disconnected"), wasConnected: true)])
    }

    @Test func disconnectedBeforeConnectedIsNoEnd() {
        let test = Harness()
        test.start()
        test.open(1)
        test.receive(Harness.offer())
        test.peer(.stateChanged(.disconnected))
        test.advance(.seconds(10))
        #expect(test.ends.isEmpty)
    }

    @Test func failedPeerEndsAtOnceWithoutAWord() {
        let test = Harness()
        test.connect(labels: ["signaling"])
        test.switchOver(ignore: false)
        _ = test.take()
        test.peer(.stateChanged(.failed))
        test.peer(.ended(.iceFailed))
        #expect(test.take() == ["event disconnecting", "close 1 1000", "close sockets 0", "event ended"])
        #expect(test.ends == [ClientEnd(error: .peerChannel("peer connection state: failed"), wasConnected: true)])
        #expect(test.peer?.sent == [])
    }

    // api 5.35
    @Test func everyFailureClosesThePeerConnection() {
        let failures: [(name: String, (Harness) -> Void)] = [
            ("relay", { $0.peer(.ended(.iceFailed)) }), ("failed", { $0.peer(.stateChanged(.failed)) }),
            ("close frame", { $0.wsClosed(code: 4490, reason: "x") }), ("lost", { $0.wsFailed() }),
            (
                "re-offer",
                { test in
                    test.peer?.acceptError = .unusableDescription("x")
                    test.receive(Harness.reOffer)
                }
            ),
            (
                "answer",
                { test in
                    test.peer?.answerError = .mismatchedAnswer("x")
                    test.receive(Harness.reOffer)
                }
            ),
            ("redirect", { $0.receive(.redirect(RedirectMessage(location: "nowhere"))) }),
            ("channel", { $0.peer(.dataChannelClosed(StreamID(0))) }), ("timeout", { $0.advance(.seconds(30)) }),
            ("cancelled", { $0.client.cancel(now: $0.now) }),
        ]
        for hasConnected in [false, true] {
            for (name, failure) in failures {
                if hasConnected && ["timeout", "cancelled"].contains(name) { continue }
                if !hasConnected && name == "channel" { continue }
                let test = Harness()
                if hasConnected {
                    test.connect(labels: ["signaling"])
                } else {
                    test.start()
                    test.open(1)
                    test.receive(Harness.offer())
                }
                failure(test)
                test.wsClosed(code: 1000)
                #expect(test.ends.count == 1, "\(name)")
                #expect(test.allPeers.count == 1 && test.peer?.isClosed == true, "\(name)")
                #expect(test.take().contains("close sockets 0") && test.client.peer == nil, "\(name)")
            }
        }
    }

    // LIF11
    @Test func outcomeIsSettledByTheFirstCause() {
        func orders(_ items: [Int]) -> [[Int]] {
            items.count < 2
                ? [items]
                : items.indices.flatMap { index in
                    var rest = items
                    let first = rest.remove(at: index)
                    return orders(rest).map { [first] + $0 }
                }
        }
        for order in orders([0, 1, 2]) {
            let test = Harness()
            test.start()
            test.open(1)
            let due = Instant.zero + .seconds(30)
            test.now = due
            for cause in order {
                switch cause {
                case 0: test.client.disconnect(now: due)
                case 1: test.client.webSocketClosed(DialID(1), code: 4490, reason: "X", now: due)
                default: test.client.handleTimeout(now: due)
                }
            }
            test.advance(.seconds(10))
            let expected: ClientError? = [nil, .webSocketClosed(code: 4490, reason: "X"), .timeout][order[0]]
            #expect(test.ends == [ClientEnd(error: expected, wasConnected: false)], "\(order)")
            #expect(test.take().last == "event ended")
        }
    }

    @Test func nothingIsToldAfterTheEnd() {
        let test = Harness()
        test.connect(labels: ["signaling", "#a"])
        test.wsClosed(code: 1000)
        _ = test.take()
        test.text(#"{"type":"ping"}"#)
        test.open(1)
        test.peer(.dataChannelMessage(StreamID(1), [1], isBinary: true))
        test.client.disconnect(now: test.now)
        test.client.cancel(now: test.now)
        test.advance(.seconds(100))
        #expect(test.take() == ["abandon 1"])
        #expect(test.client.sendMessage(label: "#a", [], now: test.now) == .notSwitched)
    }

    // EVT4: disconnect while an answer is being made.
    @Test func disconnectDuringReOfferDropsTheAnswer() {
        let test = Harness()
        test.connect()
        test.peer?.holdsAnswers = true
        test.receive(Harness.reOffer)
        test.receive(Harness.reOffer)
        test.client.disconnect(now: test.now)
        test.peer?.releaseAnswer()
        test.client.peerWasUsed(now: test.now)
        test.receive(Harness.reOffer)
        test.wsClosed(code: 1000)
        #expect(!test.take().contains("send 1 re-answer"))
        #expect(test.ends.count == 1)
    }
}
