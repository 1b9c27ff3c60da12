import Foundation
import LocalSora
import SoraClient
import SoraLocking
import SoraPeer
import SoraWire
import Testing

@testable import Sora

/// What applications are promised about the network and about signaling.
@Suite(.serialized, .leavesNoObjects) struct SignalingPromiseTests {
    private func decode(_ text: String) throws -> Signaling { try Signaling.decode(Data(text.utf8)).get() }

    private final class Seat: Encodable {
        var number: Int
        init(_ number: Int) { self.number = number }
        private enum CodingKeys: CodingKey { case number }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(number, forKey: .number)
        }
    }

    // api 5.14
    @Test func whatChangesAfterConnectDoesNotChangeLaterMessages() async throws {
        try await withServer { target in
            try await withServer({ $0.redirectLocation = target.signalingURL }) { first in
                var configuration = LiveClient.messaging(first)
                let (seat, label) = (Seat(7), NSMutableString(string: "#before"))
                configuration.signalingConnectNotifyMetadata = seat
                configuration.dataChannels = [["label": label, "direction": "sendrecv"]]
                let client = LiveClient(configuration)
                seat.number = 8
                label.setString("#after")
                // Redirected, the client sends its message a second time.
                #expect(await client.journal.wait(for: "available", seconds: 20))
                #expect(client.journal.entries.contains("opened #before"))
                #expect(!client.journal.entries.contains("opened #after"))
                let observer = LiveClient(LiveClient.messaging(target))
                let metadata = Locked<String?>(nil)
                observer.channel.handlers.onReceiveSignalingJSON = { text in
                    if text.contains(#""number":"#) { metadata.write(text) }
                }
                #expect(await observer.connected())
                #expect(await eventually { metadata.read() != nil })
                #expect(metadata.read()?.contains(#""number":7"#) == true)
                await observer.leave()
                await client.leave()
            }
        }
    }

    // api 5.17
    @Test func lossOfTheNetworkIsToldAfterFiveSecondsOfGrace() async {
        let client = VirtualClient()
        client.establish()
        for _ in 0..<2 {
            client.peer(.stateChanged(.disconnected))
            client.advance(.milliseconds(4_999))
            client.peer(.stateChanged(.connected))
            client.advance(.seconds(60))
        }
        client.peer(.stateChanged(.disconnected))
        client.advance(.milliseconds(2_000))
        // A repetition does not start the time again.
        client.peer(.stateChanged(.disconnected))
        client.advance(.milliseconds(2_999))
        _ = client.news()
        #expect(client.channel.state == .connected)
        client.advance(.milliseconds(1))
        #expect(await client.hasEnded())
        let text = "PeerChannel error (peer connection state: disconnected)"
        #expect(
            client.news() == [
                "removed false", "sora.onDisconnect \(text) disconnected", "channel.onDisconnect error \(text)",
            ])
    }

    // api 5.18, 5.19
    @Test(arguments: [1000, 1001, 4490] as [UInt16]) func closeFramesAreToldWithCodeAndReason(code: UInt16) async {
        for hasConnected in [false, true] {
            for reason in ["BYE", nil] {
                let client = VirtualClient()
                client.act { $0.openLatestDial() }
                if hasConnected {
                    client.text(VirtualClient.offer())
                    client.peer(.stateChanged(.connected))
                }
                _ = client.news()
                client.act { $0.closeWebSocket(code, reason) }
                #expect(await client.hasEnded())
                let told = client.news()
                let text = "WebSocket is closed (\(code) \(reason ?? "Unknown reason"))"
                #expect(told.contains("sora.onDisconnect \(text) disconnected"))
                #expect(told.last == "channel.onDisconnect ok \(code) \(reason ?? "")")
                #expect(told.first == (hasConnected ? "removed false" : "completion nil \(text)"))
            }
        }
        let lost = VirtualClient()
        lost.act { $0.openLatestDial() }
        lost.act { $0.loseWebSocket("reset") }
        #expect(await lost.hasEnded())
        #expect(lost.news().last == "channel.onDisconnect error WebSocket error (reset)")
    }

    // api 5.20
    @Test func aWebSocketLostAfterConnectingEndsTheConnectionUnlessItIsIgnored() async {
        let labels = ["signaling", "notify", "#a"]
        for (switched, survives) in [(nil, false), (false, false), (true, true)] as [(Bool?, Bool)] {
            let client = VirtualClient { $0.ignoreDisconnectWebSocket = true }
            client.establish(labels)
            if let switched { client.text(#"{"type":"switched","ignore_disconnect_websocket":\#(switched)}"#) }
            _ = client.news()
            client.act { $0.loseWebSocket("reset") }
            if survives {
                client.advance(.seconds(600))
                #expect(client.news() == [] && client.channel.state == .connected)
                client.peer(.dataChannelMessage(StreamID(2), [1], isBinary: true))
                #expect(client.news() == ["message #a 1"])
                client.channel.disconnect(error: nil)
                client.peer(.dataChannelClosed(StreamID(0)))
                client.advance(.seconds(3))
            }
            #expect(await client.hasEnded())
            #expect(
                client.news().last
                    == "channel.onDisconnect \(survives ? "ok 1000 NO-ERROR" : "error WebSocket error (reset)")")
        }
    }

    // api 5.22
    @Test func notificationsAreDeliveredInEveryStateUpToTheEnd() async {
        var number = 0
        let client = VirtualClient()
        func notify(_ send: (String) -> Void) {
            number += 1
            let text = #"{"type":"notify","event_type":"e\#(number)"}"#
            send(text)
            #expect(client.news().filter { $0.hasPrefix("json") } == ["json \(text)"], "\(client.channel.state)")
        }
        func overChannel(_ text: String) {
            client.peer(.dataChannelMessage(StreamID(1), Array(text.utf8), isBinary: false))
        }
        client.act { $0.openLatestDial() }
        notify(client.text)
        client.text(VirtualClient.offer(["signaling", "notify"]))
        _ = client.news()
        #expect(client.channel.state == .connecting)
        notify(client.text)
        client.peer(.stateChanged(.connected))
        notify(client.text)
        client.peer(.dataChannelOpened(StreamID(0), label: "signaling"))
        client.peer(.dataChannelOpened(StreamID(1), label: "notify"))
        notify(client.text)
        notify(overChannel)
        client.text(#"{"type":"switched","ignore_disconnect_websocket":true}"#)
        _ = client.news()
        notify(client.text)
        notify(overChannel)
        client.peer(.stateChanged(.disconnected))
        notify(overChannel)
        client.peer(.stateChanged(.connected))
        // The farewell is said and the server has not let go yet.
        client.channel.disconnect(error: nil)
        #expect(client.channel.state == .disconnecting)
        notify(overChannel)
        notify(client.text)
        client.advance(.seconds(3))
        #expect(await client.hasEnded())
    }

    // api 5.23
    @Test func everyRoleOfANotificationDecodes() throws {
        for (text, role) in [
            ("sendonly", SignalingRole.sendonly), ("recvonly", .recvonly), ("sendrecv", .sendrecv),
        ] {
            guard
                case .notify(let notify) = try decode(
                    #"{"type":"notify","event_type":"connection.created","role":"\#(text)"}"#)
            else {
                Issue.record("no notification")
                continue
            }
            #expect(notify.role == role)
        }
    }

    // api 5.24
    @Test func metadataArriveAsTheJSONTheyAre() throws {
        let value = #"{"seat":7,"ratio":0.5,"name":"x","on":true,"none":null,"list":[1,{"a":2}]}"#
        func check(_ metadata: Any?, _ place: String) {
            let object = metadata as? [String: Any]
            #expect(object?.count == 6, "\(place)")
            // Numbers are both, as users cast them both ways.
            #expect(object?["seat"] as? Int == 7 && object?["seat"] as? Double == 7, "\(place)")
            #expect(object?["ratio"] as? Double == 0.5 && object?["name"] as? String == "x", "\(place)")
            #expect(object?["on"] as? Bool == true && object?["none"] is NSNull, "\(place)")
            #expect(((object?["list"] as? [Any])?.last as? [String: Any])?["a"] as? Int == 2, "\(place)")
        }
        guard
            case .notify(let notify) = try decode(
                #"{"type":"notify","event_type":"e","metadata":\#(value),"authn_metadata":\#(value),"#
                    + #""authz_metadata":\#(value),"data":[{"client_id":"c","metadata":\#(value),"#
                    + #""authn_metadata":\#(value),"authz_metadata":\#(value)}]}"#),
            case .push(let push) = try decode(#"{"type":"push","data":\#(value)}"#),
            case .offer(let offer) = try decode(
                #"{"type":"offer","client_id":"c","connection_id":"k","sdp":"v=0","metadata":\#(value),"#
                    + ##""data_channels":[{"label":"#a","header":[{"type":"sender_connection_id","length":26}]}]}"##)
        else {
            Issue.record("another message came out")
            return
        }
        check(notify.metadata, "metadata")
        check(notify.authnMetadata, "authn_metadata")
        check(notify.authzMetadata, "authz_metadata")
        let item = try #require(notify.data?.first)
        check(item.metadata, "data.metadata")
        check(item.authnMetadata, "data.authn_metadata")
        check(item.authzMetadata, "data.authz_metadata")
        check(push.data, "push")
        check(offer.metadata, "offer")
        let header = try #require((offer.dataChannels?.first?["header"] as? [[String: Any]])?.first)
        #expect(header["length"] as? Double == 26 && header["length"] as? Int == 26)
        // Any JSON value may be metadata, not objects alone.
        for (text, isExpected) in [
            (#""text""#, { $0 as? String == "text" }), ("3", { $0 as? Int == 3 }),
            ("[]", { ($0 as? [Any])?.count == 0 }),
            ("null", { $0 is NSNull }),
        ] as [(String, (Any?) -> Bool)] {
            guard
                case .notify(let notify) = try decode(
                    #"{"type":"notify","event_type":"e","metadata":\#(text)}"#)
            else { continue }
            #expect(isExpected(notify.metadata), "\(text)")
        }
    }

    // api 5.30
    @Test func relaysKeepTheirURIs() throws {
        let uris = [
            "turn:relay.example.com?transport=udp", "turn:[2001:db8::1]:3478?transport=tcp",
            "turns:relay.example.com:443?transport=tcp", "turn:ユーザ.example.com:3478", "turn:a%20b.example.com",
        ]
        let list = uris.map { #""\#($0)""# }.joined(separator: ",")
        guard
            case .offer(let offer) = try decode(
                #"{"type":"offer","client_id":"c","connection_id":"k","sdp":"v=0","config":{"iceServers":"#
                    + #"[{"urls":[\#(list)],"username":"u","credential":"p"}],"iceTransportPolicy":"relay"}}"#)
        else {
            Issue.record("no offer")
            return
        }
        let server = try #require(offer.configuration?.iceServerInfos.first)
        #expect(server.urls == uris && server.userName == "u" && server.credential == "p")
        var configuration = Stage.configuration()
        configuration.webRTCConfiguration.iceServerInfos = [server]
        #expect(try ConfigurationSnapshot(configuration).iceServers.first?.urls == uris)
        let coded = try JSONDecoder().decode(ICEServerInfo.self, from: JSONEncoder().encode(server))
        #expect(coded.urls == uris)
    }
}
