import SoraClient
import SoraMessages
import SoraPeer
import SoraWire
import TestSupport
import Testing

@Suite(.serialized, .leavesNoObjects) struct ConnectTests {
    // api 3.1; LIF27: connect leaves in the turn of the 101.
    @Test func successfulConnectTellsEverythingInOrder() {
        let test = Harness {
            $0.sendsAudio = true; $0.sendsVideo = true
        } prepare: {
            $0.remoteStreams = [RemoteStream(id: "OTHER", tracks: [])]
        }
        test.start()
        #expect(test.client.state == .connecting)
        #expect(test.take() == ["dial 1 ws://one/signaling"])
        test.open(1)
        #expect(test.take() == ["send 1 connect", "event webSocketOpened"])
        #expect(test.client.contactURL == "ws://one/signaling" && test.client.connectedURL == nil)
        test.receive(Harness.offer { $0.mid = OfferMids(audio: "a", video: "v") })
        #expect(
            test.take() == [
                "event text", "open sockets 0", "event offerTaken", "event signaling offer", "event sendersAttached",
                "send 1 answer", "event streamAdded OTHER",
            ])
        #expect(test.client.connectionID == "CONNECTION" && test.client.clientID == "CLIENT")
        #expect(test.client.connectedURL == "ws://one/signaling")
        test.peer(.localCandidate("candidate:1 1 udp 1 192.0.2.1 9 typ host"))
        #expect(test.take() == ["send 1 candidate"])
        test.peer(.stateChanged(.connecting))
        #expect(test.client.state == .connecting)
        test.peer(.stateChanged(.connected))
        #expect(test.take() == ["event connected"])
        #expect(test.client.state == .connected)
        // The timer of the attempt is gone.
        test.advance(.seconds(3_600))
        #expect(test.take() == [])
    }

    @Test func connectMessageIsTheConfiguredOne() throws {
        let test = Harness {
            $0.connect.metadata = ["token": "x"]; $0.connect.dataChannelSignaling = false
        }
        test.start()
        test.open(1)
        let json = try JSONValue(parsing: test.texts[0].text)
        #expect(
            json == [
                "type": "connect", "role": "sendrecv", "channel_id": "room", "metadata": ["token": "x"],
                "data_channel_signaling": false,
            ])
    }

    @Test func tracksGoWhereTheOfferSaysWithItsEncodings() {
        let test = Harness {
            $0.sendsAudio = true; $0.sendsVideo = true; $0.connect.simulcast = true
        }
        var encoding = SimulcastEncoding(rid: "r0")
        encoding.active = false
        let layers = [encoding]
        test.connect {
            $0.mid = OfferMids(audio: "a", video: "v"); $0.encodings = layers; $0.simulcast = false
        }
        // LIF19: the offer's simulcast overrides the setting.
        #expect(test.peer?.attached.map(\.mid) == ["a", "v"])
        #expect(test.peer?.attached.last?.isSimulcast == false && test.peer?.attached.last?.encodings == layers)
        #expect(test.peer?.attached.map(\.streamID) == ["mainStream", "mainStream"])
        // Re-offers apply them again.
        test.receive(Harness.reOffer)
        #expect(test.peer?.attached.count == 4)
        #expect(test.events.filter { if case .sendersAttached = $0 { true } else { false } }.count == 1)
    }

    // api 5.29
    @Test func simulcastIsWhatTheServerDecidesForEachConnection() {
        let layers = ["r0", "r1"].map { SimulcastEncoding(rid: $0) }
        // All at once, so that one could disturb the other.
        let cases: [(setting: Bool?, offer: Bool?, expected: Bool)] = [
            (nil, true, true), (true, false, false), (false, true, true), (true, nil, true), (nil, nil, false),
        ]
        let tests = cases.map { row in
            Harness {
                $0.sendsVideo = true
                $0.connect.simulcast = row.setting
            }
        }
        for test in tests {
            test.start()
            test.open(1)
        }
        for (test, row) in zip(tests, cases) {
            test.receive(
                Harness.offer {
                    $0.mid = OfferMids(audio: "a", video: "v")
                    $0.encodings = layers
                    $0.simulcast = row.offer
                })
        }
        for (test, row) in zip(tests, cases) {
            #expect(test.peer?.attached.map(\.isSimulcast) == [row.expected], "\(row)")
            test.receive(Harness.reOffer)
            #expect(test.peer?.attached.last?.isSimulcast == row.expected, "\(row)")
        }
    }

    @Test func eventsCarryEpochAndConnectionID() {
        let test = Harness()
        test.connect()
        #expect(test.records.allSatisfy { $0.epoch == 0 })
        // Nil in the event that carries the offer itself.
        #expect(test.records.prefix { $0.event != .connected }.map(\.connectionID).prefix(2) == [nil, nil])
        #expect(test.records.last?.connectionID == "CONNECTION")
    }

    // api 3.1.5; LIF13
    @Test func firstOpenWebSocketWinsAndTheOthersAreClosed() {
        let test = Harness(urls: ["ws://a", "ws://b", "ws://a", "ws://c"])
        test.start()
        #expect(test.take() == ["dial 1 ws://a", "dial 2 ws://b", "dial 3 ws://c"])
        test.wsFailed(1)
        test.open(3)
        #expect(test.take() == ["abandon 2", "send 3 connect", "event webSocketOpened"])
        #expect(test.client.contactURL == "ws://c")
        // A late success is closed, a late failure ignored.
        test.open(2)
        test.wsFailed(2)
        #expect(test.take() == ["abandon 2"])
    }

    @Test func allDialsFailedEndsWithTheLastError() {
        let test = Harness(urls: ["ws://a", "ws://b"])
        test.start()
        test.wsFailed(1, "refused")
        #expect(test.ends.isEmpty)
        test.client.webSocketFailed(DialID(2), WebSocketFailure("407", isProxy: true), now: test.now)
        #expect(test.ends == [ClientEnd(error: .signalingChannel("407"), wasConnected: false)])
        #expect(test.client.nextTimeout == nil)
    }

    // api 3.2.2, D20
    @Test func noURLsFailAtOnce() {
        let test = Harness(urls: [])
        test.start()
        #expect(test.take() == ["event disconnecting", "event ended"])
        #expect(test.ends.first?.error == .configuration("urlCandidates is empty"))
    }

    // api 3.2.2, checklist 1; LIF8
    // api 5.1
    @Test func attemptTimesOutOnceAndClosesEverything() {
        let test = Harness(urls: ["ws://a", "ws://b"]) { $0.connectionTimeout = .seconds(12) }
        test.start()
        _ = test.take()
        test.advance(.seconds(11))
        #expect(test.take() == [])
        test.advance(.seconds(1))
        #expect(test.take() == ["event disconnecting", "abandon 1", "abandon 2", "event ended"])
        #expect(test.ends == [ClientEnd(error: .timeout, wasConnected: false)])
        test.advance(.seconds(60))
        #expect(test.take() == [])
    }

    @Test func timeoutAfterOfferClosesPeerAndSocket() {
        let test = Harness()
        test.start()
        test.open(1)
        test.receive(Harness.offer())
        _ = test.take()
        test.advance(.seconds(30))
        #expect(test.take() == ["event disconnecting", "close 1 1000", "close sockets 0", "event ended"])
        #expect(test.peer?.isClosed == true)
    }

    // LIF7, LIF23: failures of the offer need no timer.
    // api 5.3, 5.4
    @Test func offerThatCannotBeAppliedFailsAtOnce() {
        let failures: [(String, (inout OfferMessage) -> Void, (ScriptedPeer) -> Void, ClientError)] = [
            (
                "syntax", { $0.sdp = "nonsense" }, { _ in },
                .engine(
                    .unusableDescription(
                        "SDP line 1 is malformed: \"nonsense\"; expected one letter and \"=\""))
            ),
            (
                "accept", { _ in }, { $0.acceptError = .unusableDescription("no fingerprint") },
                .engine(.unusableDescription("no fingerprint"))
            ),
            // LIF25: no answer leaves when the local description failed.
            ("answer", { _ in }, { $0.answerError = .mismatchedAnswer("x") }, .engine(.mismatchedAnswer("x"))),
            ("mid", { $0.mid = nil }, { _ in }, .peerChannel("mid not found")),
            ("audio", { _ in }, { $0.missingMids = ["a"] }, .peerChannel("transceiver for audio not found")),
            ("video", { _ in }, { $0.missingMids = ["v"] }, .peerChannel("transceiver for video not found")),
        ]
        for (name, change, prepare, error) in failures {
            let test = Harness {
                $0.sendsAudio = true; $0.sendsVideo = true
            } prepare: {
                prepare($0)
            }
            test.start()
            test.open(1)
            test.receive(
                Harness.offer {
                    $0.mid = OfferMids(audio: "a", video: "v")
                    change(&$0)
                })
            #expect(test.ends == [ClientEnd(error: error, wasConnected: false)], "\(name)")
            let trace = test.take()
            #expect(
                !trace.contains("send 1 answer")
                    && trace.suffix(3) == ["close 1 1000", "close sockets 0", "event ended"])
            #expect(test.client.state == .disconnected && test.now == .zero)
        }
    }

    @Test func peerConnectionThatCannotBeMadeFailsAtOnce() {
        let configuration = ClientConfiguration(
            urls: ["ws://a"], connect: ConnectMessage(role: .recvonly, channelID: "c"))
        let client = ClientConnection(configuration: configuration) { (_, _) throws(ClientError) in
            throw .peerChannel("createNativePeerChannel failed")
        }
        client.start(now: .zero)
        client.webSocketOpened(DialID(1), now: .zero)
        client.webSocketText(DialID(1), Harness.offer().text, now: .zero)
        var ended: ClientEnd?
        while let output = client.poll() {
            if case .event(let record) = output, case .ended(let end) = record.event { ended = end }
        }
        #expect(ended?.error == .peerChannel("createNativePeerChannel failed"))
    }

    // LIF18: a messaging offer has no mids; nothing is to be sent.
    @Test func offerWithoutMidIsFineWhenNothingIsSent() {
        let test = Harness()
        test.connect()
        #expect(test.client.state == .connected)
    }

    // LIF28, api 3.2.2 last line
    @Test func undecodableMessagesAreToldLoggedAndIgnored() {
        let test = Harness()
        test.start()
        test.open(1)
        _ = test.take()
        for text in ["\"offer\"", "{\"type\":null}", "{\"Type\":\"offer\"}", "{", "{\"type\":\"offer\"}", "[1]"] {
            test.text(text)
            #expect(test.take() == ["event text"])
        }
        #expect(test.logs.filter { $0.level == .warning }.count == 6)
        test.text("{\"type\":\"news\"}")
        #expect(test.take() == ["event text", "event signaling news"])
        test.connect()
        #expect(test.client.state == .connecting || test.client.state == .connected)
    }

    // LIF24
    @Test func everyMessageIsHandledBeforeTheAnswerHasLeft() {
        let test = Harness { _ in
        } prepare: {
            $0.holdsAnswers = true
        }
        test.start()
        test.open(1)
        test.receive(Harness.offer())
        _ = test.take()
        test.receive(.ping(PingMessage()))
        #expect(test.take() == ["event text", "send 1 pong", "event signaling ping"])
        test.receive(.notify(NotifyMessage(eventType: "connection.created")))
        test.receive(.push(PushMessage(data: ["a": 1])))
        test.receive(Harness.reOffer)
        test.peer(.localCandidate("candidate:1"))
        #expect(
            test.take() == [
                "event text", "event signaling notify", "event text", "event signaling push", "event text",
                "event signaling re-offer",
            ])
        // A candidate never precedes the answer; re-offers wait for their turn.
        test.peer?.releaseAnswer()
        test.client.peerWasUsed(now: test.now)
        #expect(test.take() == ["send 1 answer", "send 1 candidate"])
        test.peer?.releaseAnswer()
        test.client.peerWasUsed(now: test.now)
        #expect(test.take() == ["send 1 re-answer"])
        #expect(test.peer?.accepted.count == 2)
    }

    // EVT8
    @Test func connectedIsToldOnce() {
        let test = Harness()
        test.connect()
        for _ in 0..<3 {
            test.peer(.stateChanged(.disconnected))
            test.advance(.seconds(1))
            test.peer(.stateChanged(.connected))
        }
        #expect(test.events.filter { $0 == .connected }.count == 1)
    }

    // api 5.32
    @Test func countsComeFromCompleteNotificationsOnly() {
        let test = Harness()
        test.connect()
        var notify = NotifyMessage(eventType: "connection.created")
        notify.channelConnections = 4
        notify.channelSendonlyConnections = 1
        notify.channelRecvonlyConnections = 1
        test.receive(.notify(notify))
        notify.channelSendrecvConnections = 2
        test.receive(.notify(notify))
        #expect(test.take().filter { $0.hasPrefix("event counts") } == ["event counts 4 3 3"])
    }

    // api 3.11
    @Test func streamsComeAndGoWithReOffers() {
        let test = Harness()
        test.connect()
        let audio = RemoteStream.Track(transceiver: TransceiverID(1), isVideo: false, trackID: nil)
        let video = RemoteStream.Track(transceiver: TransceiverID(2), isVideo: true, trackID: nil)
        _ = test.take()
        // Own ids and the placeholder are no senders.
        test.peer?.remoteStreams = ["CONNECTION", "CLIENT", "default", "A"].map {
            RemoteStream(id: $0, tracks: [audio])
        }
        test.receive(Harness.reOffer)
        #expect(test.take() == ["event text", "event signaling re-offer", "send 1 re-answer", "event streamAdded A"])
        test.peer?.remoteStreams = [RemoteStream(id: "A", tracks: [audio, video]), RemoteStream(id: "B", tracks: [])]
        test.receive(Harness.reOffer)
        #expect(test.take().suffix(2) == ["event streamChanged A", "event streamAdded B"])
        test.peer?.remoteStreams = [RemoteStream(id: "B", tracks: [])]
        test.receive(Harness.reOffer)
        #expect(test.take().suffix(1) == ["event streamRemoved A"])
        #expect(test.client.streams.map(\.id) == ["B"])
    }
}
