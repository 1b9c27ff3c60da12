import SoraClient
import SoraMessages
import SoraPeer
import SoraWire
import TestSupport
import Testing

@Suite(.serialized, .leavesNoObjects) struct RedirectTests {
    private let redirect = SignalingMessage.redirect(RedirectMessage(location: "wss://two.example/signaling?x=1"))

    // api 3.9
    @Test func redirectDialsTheLocationAndConnectsAgain() throws {
        let test = Harness()
        test.start()
        test.open(1)
        _ = test.take()
        test.receive(redirect)
        #expect(
            test.take() == [
                "event text", "close 1 1000", "event redirected", "dial 2 wss://two.example/signaling?x=1",
                "event signaling redirect",
            ])
        #expect(test.client.epoch == 1 && test.client.state == .connecting)
        // The old socket's end is nobody's business any more.
        test.wsClosed(1, code: 1000)
        test.text(#"{"type":"ping"}"#, on: 1)
        #expect(test.take() == [])
        test.open(2)
        let first = try JSONValue(parsing: test.texts[0].text).objectValue
        var second = try JSONValue(parsing: test.texts[1].text).objectValue
        #expect(second?["redirect"] == true)
        second?["redirect"] = nil
        #expect(first == second)
        test.receive(Harness.offer(), on: 2)
        test.peer(.stateChanged(.connected))
        #expect(test.client.contactURL == "ws://one/signaling")
        #expect(test.client.connectedURL == "wss://two.example/signaling?x=1")
        #expect(test.records.last?.epoch == 1 && test.records.last?.event == .connected)
    }

    // LIF3
    // api 5.33, 5.68
    @Test func nothingOfTheOldTransportSurvivesALateRedirect() throws {
        let test = Harness()
        test.connect(labels: ["signaling", "#a", "rpc"])
        test.switchOver(ignore: true)
        test.receive(.ping(PingMessage(stats: true)))
        let token = try #require(test.statistics.first)
        let old = try #require(test.peer)
        old.remoteStreams = [RemoteStream(id: "A", tracks: [])]
        test.receive(Harness.reOffer)
        #expect(test.client.streams.count == 1)
        _ = test.take()
        test.receive(redirect)
        #expect(
            test.take() == [
                "event text", "close 1 1000", "close sockets 0", "event redirected",
                "dial 2 wss://two.example/signaling?x=1", "event signaling redirect",
            ])
        #expect(old.isClosed && test.client.streams.isEmpty && test.client.state == .connected)
        old.outputs = [
            .dataChannelMessage(StreamID(1), [1], isBinary: true), .stateChanged(.failed), .localCandidate("c"),
        ]
        test.client.peerWasUsed(now: test.now)
        test.client.provideStatistics([], for: token, now: test.now)
        test.client.addLocalSocket(SocketID(1), address: SocketAddress(.anyV4, port: 1), epoch: 0, now: test.now)
        test.client.handle(
            Datagram(socket: SocketID(1), remote: SocketAddress(.anyV4, port: 1), payload: [1]), epoch: 0, now: test.now
        )
        #expect(test.take() == [])
        #expect(test.client.sendMessage(label: "#a", [1], now: test.now) == .notSwitched)
        _ = test.client.call(method: "m", params: nil, now: test.now)
        #expect(test.outcomes == [.failure(.unavailable("rpc channel is not available"))])

        // The new transport reports its channels anew, but not `connected`.
        test.open(2)
        test.receive(Harness.offer(labels: ["#a"]), on: 2)
        test.peer(.stateChanged(.connected))
        test.openChannels(["#a"])
        let trace = test.take()
        #expect(trace.contains("open sockets 1") && trace.suffix(2) == ["event opened #a", "event available"])
        #expect(test.events.filter { $0 == .connected }.count == 1)
        test.advance(.seconds(120))
        #expect(test.ends.isEmpty)
    }

    @Test func unusableLocationEndsTheAttempt() {
        for location in ["", "http://x", "ws://", "wss:///path", "nonsense", "ws://a b"] {
            let test = Harness()
            test.start()
            test.open(1)
            test.receive(.redirect(RedirectMessage(location: location)))
            #expect(test.ends.first?.error == .signalingChannel("invalid message: \(location)"), "\(location)")
        }
    }

    @Test func attemptTimerKeepsRunningAcrossRedirects() {
        let test = Harness()
        test.start()
        test.open(1)
        test.advance(.seconds(20))
        test.receive(redirect)
        test.advance(.seconds(9))
        #expect(test.ends.isEmpty)
        test.advance(.seconds(1))
        #expect(test.ends == [ClientEnd(error: .timeout, wasConnected: false)])
    }

    @Test func lateRedirectThatLeadsNowhereEndsByItsOwnBound() {
        let test = Harness()
        test.connect()
        test.advance(.seconds(1_000))
        test.receive(redirect)
        test.advance(.seconds(30))
        #expect(test.ends == [ClientEnd(error: .timeout, wasConnected: true)])
    }

    @Test func failingRedialIsTheError() {
        let test = Harness()
        test.start()
        test.open(1)
        test.receive(redirect)
        test.wsFailed(2, "refused")
        #expect(test.ends == [ClientEnd(error: .webSocketFailed(WebSocketFailure("refused")), wasConnected: false)])
    }

    // api 3.9 last line; LIF4
    // api 5.34
    @Test func disconnectDuringRedirectWins() {
        let test = Harness()
        test.start()
        test.open(1)
        test.receive(redirect)
        _ = test.take()
        test.client.disconnect(now: test.now)
        #expect(test.take() == ["event disconnecting", "abandon 2", "event ended"])
        test.open(2)
        #expect(test.take() == ["abandon 2"])
    }

    // api 5.34
    @Test func redirectWhileDisconnectingMakesNothingNew() {
        for hasConnected in [false, true] {
            for cancels in [false, true] where !(hasConnected && cancels) {
                let test = Harness()
                if hasConnected {
                    test.connect(labels: ["signaling"])
                } else {
                    test.start()
                    test.open(1)
                }
                if cancels { test.client.cancel(now: test.now) } else { test.client.disconnect(now: test.now) }
                _ = test.take()
                test.receive(redirect)
                #expect(test.take() == ["event text", "event signaling redirect"])
                #expect(test.client.epoch == 0 && test.client.state == .disconnecting)
                test.receive(Harness.offer())
                test.wsClosed(1, code: 1000)
                test.advance(.seconds(60))
                #expect(!test.take().contains { $0.hasPrefix("dial") || $0.hasPrefix("open sockets") })
                #expect(test.allPeers.count == (hasConnected ? 1 : 0) && test.allPeers.allSatisfy(\.isClosed))
                #expect(test.ends == [ClientEnd(error: cancels ? .cancelled : nil, wasConnected: hasConnected)])
            }
        }
    }

    @Test func redirectsWithoutEndAreRefused() {
        let test = Harness()
        test.start()
        for dial in 1...17 {
            test.open(dial)
            test.receive(redirect, on: dial)
        }
        #expect(test.ends.first?.error == .signalingChannel("more than 16 redirects"))
    }
}
