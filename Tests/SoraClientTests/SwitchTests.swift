import SoraClient
import SoraMessages
import SoraPeer
import SoraWire
import TestSupport
import Testing

@Suite(.serialized, .leavesNoObjects) struct SwitchTests {
    // api 3.8.4
    // api 5.21
    @Test func webSocketIsLetGoTenSecondsAfterTheFirstSignalingMessage() {
        let test = Harness()
        test.connect(labels: Harness.systemLabels)
        test.switchOver(ignore: true)
        test.advance(.seconds(60))
        #expect(!test.take().contains("close 1 1000"))
        test.channel("signaling", id: 0, Harness.reOffer.text)
        _ = test.take()
        test.advance(.milliseconds(9_999))
        test.channel("signaling", id: 0, Harness.reOffer.text)
        #expect(!test.take().contains("close 1 1000"))
        test.advance(.milliseconds(1))
        #expect(test.take() == ["close 1 1000"])
        test.wsClosed(code: 1000)
        test.advance(.seconds(60))
        #expect(test.ends.isEmpty && test.client.state == .connected)
    }

    @Test func withoutIgnoringTheWebSocketStays() {
        let test = Harness()
        test.connect(labels: Harness.systemLabels)
        test.switchOver(ignore: false)
        test.channel("signaling", id: 0, Harness.reOffer.text)
        test.advance(.seconds(600))
        #expect(!test.take().contains("close 1 1000"))
    }

    // LIF1
    // api 5.21
    @Test func owedAnswerLeavesBeforeTheCloseFrame() {
        let test = Harness()
        test.connect(labels: Harness.systemLabels)
        test.switchOver(ignore: true)
        test.peer?.holdsAnswers = true
        test.receive(Harness.reOffer)
        test.channel("signaling", id: 0, SignalingMessage.ping(PingMessage()).text)
        _ = test.take()
        test.advance(.seconds(25))
        #expect(test.take() == [])
        test.peer?.releaseAnswer()
        test.client.peerWasUsed(now: test.now)
        #expect(test.take() == ["send 1 re-answer", "close 1 1000"])
    }

    // LIF2: the path is a function of facts, not of their order.
    @Test func orderOfFactsMakesNoDifference() {
        let facts = ["switched", "open signaling", "open push", "message"]
        func orders(_ items: [String]) -> [[String]] {
            items.count < 2
                ? [items]
                : items.indices.flatMap { index in
                    var rest = items
                    let first = rest.remove(at: index)
                    return orders(rest).map { [first] + $0 }
                }
        }
        for order in orders(facts) {
            // A message needs its channel.
            guard let open = order.firstIndex(of: "open signaling"), let message = order.firstIndex(of: "message"),
                open < message
            else { continue }
            let test = Harness()
            test.connect { $0.dataChannels = ["signaling", "push"].map { DataChannelDefinition(label: $0) } }
            for fact in order {
                switch fact {
                case "switched": test.switchOver(ignore: true)
                case "open signaling": test.peer(.dataChannelOpened(StreamID(0), label: "signaling"))
                case "open push": test.peer(.dataChannelOpened(StreamID(1), label: "push"))
                default: test.channel("signaling", id: 0, SignalingMessage.ping(PingMessage()).text)
                }
            }
            test.advance(.seconds(10))
            #expect(test.trace.contains("close 1 1000"), "\(order)")
            test.wsClosed(code: 1000)
            test.client.disconnect(now: test.now)
            #expect(test.channelTexts("signaling", id: 0).last == #"{"type":"disconnect","reason":"NO-ERROR"}"#)
        }
    }

    // LIF2
    @Test func missingAndRepeatedLabelsAreLoggedByNameAndNothingIsLost() {
        let test = Harness()
        test.connect { $0.dataChannels = ["signaling", "notify", "push"].map { DataChannelDefinition(label: $0) } }
        test.peer(.dataChannelOpened(StreamID(0), label: "signaling"))
        test.peer(.dataChannelOpened(StreamID(1), label: "push"))
        test.peer(.dataChannelOpened(StreamID(2), label: "push"))
        test.peer(.dataChannelOpened(StreamID(3), label: "surplus"))
        test.switchOver(ignore: true)
        let warnings = test.logs.filter { $0.level == .warning }.map(\.text).joined(separator: "\n")
        #expect(warnings.contains("second channel with the label push"))
        #expect(warnings.contains("not list: surplus") && warnings.contains("not open: notify"))
        test.channel("signaling", id: 0, Harness.reOffer.text)
        test.channel("signaling", id: 0, SignalingMessage.ping(PingMessage()).text)
        #expect(test.channelTexts("signaling", id: 0).count == 2)
        #expect(test.events.filter { $0 == .dataChannelOpened(label: "push") }.count == 1)
        // The older of two channels ends the connection like any other.
        test.channel("push", id: 2, #"{"type":"push","data":{}}"#)
        #expect(test.take().suffix(2) == ["event signaling push", "event message push"])
    }

    // api 3.10: answers go the way the request came.
    @Test func answersUseThePathOfTheRequest() {
        let test = Harness()
        test.connect(labels: Harness.systemLabels)
        test.switchOver(ignore: false)
        _ = test.take()
        test.receive(Harness.reOffer)
        #expect(test.take().contains("send 1 re-answer"))
        #expect(test.channelTexts("signaling", id: 0) == [])
        test.channel("signaling", id: 0, Harness.reOffer.text)
        #expect(test.take() == ["event text", "event signaling re-offer", "event message signaling"])
        #expect(test.channelTexts("signaling", id: 0).first?.hasPrefix(#"{"type":"re-answer""#) == true)
    }

    @Test func updateIsAnsweredByUpdate() {
        let test = Harness()
        test.connect()
        test.receive(.update(DescriptionMessage(sdp: Harness.sdp)))
        #expect(test.take().suffix(2) == ["event signaling update", "send 1 update"])
    }

    @Test func failedReOfferEndsTheConnectionWithTheEngineError() {
        let test = Harness()
        test.connect()
        test.peer?.acceptError = .unusableDescription("x")
        test.receive(Harness.reOffer)
        #expect(test.ends == [ClientEnd(error: .engine(.unusableDescription("x")), wasConnected: true)])
    }

    @Test func reAnswerThatCannotBeSentEndsTheConnection() {
        let test = Harness()
        test.connect(labels: Harness.systemLabels)
        test.switchOver(ignore: true)
        test.wsClosed(code: 1005)
        test.peer?.refusesToSend = true
        test.channel("signaling", id: 0, Harness.reOffer.text)
        #expect(test.ends.first?.error == .peerChannel("failed to send re-answer message over DataChannel"))
    }

    // LIF20: the carrier makes no difference.
    @Test(arguments: [false, true], [true, false, nil] as [Bool?])
    func pingIsAnsweredWithStatisticsOnlyWhenAsked(overChannel: Bool, flag: Bool?) throws {
        for failing in [false, true] {
            let test = Harness()
            test.connect(labels: Harness.systemLabels)
            test.switchOver(ignore: false)
            let ping = SignalingMessage.ping(PingMessage(stats: flag))
            if overChannel { test.channel("signaling", id: 0, ping.text) } else { test.receive(ping) }
            if flag == true {
                let token = try #require(test.statistics.first)
                test.client.provideStatistics(failing ? nil : [["id": "x"]], for: token, now: test.now)
                test.drain()
            }
            let answer = overChannel ? test.channelTexts("signaling", id: 0).last : test.texts.last?.text
            #expect(
                answer == (flag == true && !failing ? #"{"type":"pong","stats":[{"id":"x"}]}"# : #"{"type":"pong"}"#))
        }
    }

    @Test func statsRequestIsAnsweredOnItsChannel() throws {
        let test = Harness()
        test.connect(labels: Harness.systemLabels)
        test.channel("stats", id: 3, #"{"type":"req-stats"}"#)
        let token = try #require(test.statistics.first)
        test.client.provideStatistics([1], for: token, now: test.now)
        test.client.provideStatistics([2], for: token, now: test.now)
        #expect(test.channelTexts("stats", id: 3) == [#"{"type":"stats","reports":[1]}"#])
    }

    // EVT9
    @Test func lateStatisticsVanish() throws {
        let test = Harness()
        test.connect()
        test.receive(.ping(PingMessage(stats: true)))
        let token = try #require(test.statistics.first)
        test.client.disconnect(now: test.now)
        _ = test.take()
        test.client.provideStatistics([], for: token, now: test.now)
        #expect(test.take() == [])
    }
}
