import SoraClient
import SoraMessages
import SoraPeer
import SoraWire
import TestSupport
import Testing

/// Messages that wait until the application was told of them.
@Suite(.serialized, .leavesNoObjects) struct DeliveryTests {
    private func waiting() -> Harness { Harness(change: { $0.waitsForDelivery = true }) }

    private func delivered(_ test: Harness) -> [String] {
        test.client.signalingTextDelivered(now: test.now)
        return test.take()
    }

    @Test func anOfferIsTakenAfterItsDelivery() {
        let test = waiting()
        test.start()
        test.open(1)
        _ = test.take()
        test.receive(Harness.offer())
        #expect(test.take() == ["event text"])
        #expect(delivered(test).prefix(3) == ["open sockets 0", "event offerTaken", "event signaling offer"])
        #expect(delivered(test) == [])
    }

    @Test func messagesAreActedUponInTheirOrder() {
        let test = waiting()
        test.connect()
        _ = delivered(test)
        test.peer(.stateChanged(.connected))
        _ = test.take()
        test.receive(Harness.reOffer)
        test.receive(.push(PushMessage(data: .null)))
        test.text("not JSON")
        test.receive(Harness.reOffer)
        #expect(test.take() == ["event text", "event text", "event text", "event text"])
        #expect(delivered(test) == ["event signaling re-offer", "send 1 re-answer"])
        #expect(delivered(test) == ["event signaling push"])
        #expect(delivered(test) == [])
        #expect(delivered(test) == ["event signaling re-offer", "send 1 re-answer"])
    }

    @Test func pingsAreAnsweredAtOnce() {
        let test = waiting()
        test.connect()
        _ = test.take()
        test.receive(.ping(PingMessage()))
        #expect(test.take() == ["event text", "send 1 pong", "event signaling ping"])
        // The offer was told first and is still to be delivered; the ping needs nothing more.
        #expect(delivered(test).contains("event offerTaken"))
        #expect(delivered(test) == [])
    }

    @Test func aRedirectVoidsWhatWaits() {
        let test = waiting()
        test.start()
        test.open(1)
        test.receive(Harness.offer())
        test.receive(.redirect(RedirectMessage(location: "ws://two/signaling")))
        _ = test.take()
        #expect(delivered(test) == [])
        #expect(delivered(test) == [])
        #expect(test.client.epoch == 1 && test.client.offer == nil)
    }

    @Test func theEndVoidsWhatWaits() {
        let test = waiting()
        test.start()
        test.open(1)
        test.receive(Harness.offer())
        test.wsFailed()
        _ = test.take()
        #expect(delivered(test) == [])
        #expect(test.ends.count == 1)
    }

    // LIF1: an answer that waits for a delivery is owed too.
    @Test func theWebSocketStaysWhileAReOfferWaits() {
        let test = waiting()
        test.connect(labels: Harness.systemLabels)
        _ = delivered(test)
        test.peer(.stateChanged(.connected))
        test.openChannels(Harness.systemLabels)
        test.switchOver(ignore: true)
        _ = delivered(test)
        test.channel("signaling", id: 0, SignalingMessage.ping(PingMessage()).text)
        _ = delivered(test)
        test.receive(Harness.reOffer)
        _ = test.take()
        test.advance(.seconds(60))
        #expect(test.take() == [])
        #expect(delivered(test) == ["event signaling re-offer", "send 1 re-answer", "close 1 1000"])
    }

    @Test func channelMessagesAreToldAfterTheirSignaling() {
        let test = waiting()
        test.connect(labels: Harness.systemLabels)
        _ = delivered(test)
        test.peer(.stateChanged(.connected))
        test.openChannels(Harness.systemLabels)
        _ = test.take()
        test.channel("notify", id: 1, #"{"type":"notify","event_type":"x"}"#)
        #expect(test.take() == ["event text"])
        #expect(delivered(test) == ["event signaling notify", "event message notify"])
    }
}
