import SoraMessages
import SoraWire
import Testing

@Suite struct RecordedMessageTests {
    static let single = MessageFixtures.names.filter {
        !$0.hasPrefix("flow") && !$0.hasPrefix("upgrade") && !$0.hasPrefix("datachannel")
    }

    @Test(arguments: single)
    func recordedMessageDecodesAndLosesNothing(name: String) throws {
        for json in try MessageFixtures.messages(name) {
            let message = try SignalingMessage(json: json)
            #expect(message.type == json.objectValue?["type"]?.stringValue)
            if case .unknown = message { Issue.record("\(name) is unknown") }
            #expect(.object(message.json) == json)
            #expect(try SignalingMessage(parsing: message.text) == message)
        }
    }

    @Test(arguments: MessageFixtures.names("flow"))
    func everyMessageOfAFlowDecodesAndLosesNothing(name: String) throws {
        var count = 0
        for json in try MessageFixtures.messages(name) {
            guard let type = json.objectValue?["type"]?.stringValue else { continue }
            let message = try SignalingMessage(json: json)
            #expect(message.type == type)
            #expect(.object(message.json) == json, "\(type)")
            count += 1
        }
        #expect(count >= 2)
    }

    private func connect(_ name: String) throws -> ConnectMessage {
        guard case .connect(let message) = try SignalingMessage(json: MessageFixtures.json(name)) else {
            throw MessageError.missingType
        }
        return message
    }

    @Test func connectMembersHaveTheirTypes() throws {
        let full = try connect("connect-js-sendrecv-full-params.json")
        #expect(full.role == .sendrecv && full.channelID == "sora-dev")
        #expect(full.clientID == "client-a" && full.bundleID == "bundle-a")
        #expect(full.audio?.wishes?.codecType == "OPUS" && full.audio?.wishes?.bitRate == 64)
        let opus = full.audio?.wishes?.opusParams
        #expect(opus?.channels == 2 && opus?.maxPlaybackRate == 48_000 && opus?.stereo == true)
        #expect(opus?.useDTX == false && opus?.minPtime == 10 && opus?.ptime == 20 && opus?.useInbandFEC == true)
        #expect(full.video?.wishes?.vp9Params?["profile_id"] == .integer(0))
        #expect(full.metadata == ["access_token": "dummy"])
        #expect(full.audioStreamingLanguageCode == "ja-JP" && full.sdp?.hasPrefix("v=0\r\n") == true)
        #expect(full.extra.isEmpty)
    }

    @Test func connectMessagingAndFilters() throws {
        let messaging = try connect("connect-python-messaging.json")
        #expect(!messaging.wantsAudio && !messaging.wantsVideo && messaging.dataChannelSignaling == true)
        let channels = try #require(messaging.dataChannels)
        #expect(channels.map(\.label) == ["#dev", "#full", "#retry"])
        #expect(channels[1].maxPacketLifeTime == 500 && channels[1].protocolName == "dev-proto")
        #expect(channels[1].ordered == false && channels[1].isCompressed && !channels[0].isCompressed)
        #expect(channels[2].maxRetransmits == 3 && channels[2].hasSenderHeader && !channels[1].hasSenderHeader)

        let filter = try #require(try connect("connect-python-filters.json").effectiveForwardingFilters.first)
        #expect(filter.name == "only-audio-of-a" && filter.priority == 10 && filter.action == .block)
        #expect(filter.rules.first?.map(\.field) == [.connectionID, .kind])
        let legacy = try connect("connect-python-filter-legacy.json")
        #expect(
            legacy.effectiveForwardingFilters.first?.rules == [
                [.init(field: .kind, operator: .isIn, values: ["audio"])]
            ])
    }

    @Test func connectSpotlightSimulcastRedirect() throws {
        let spotlight = try connect("connect-js-spotlight.json")
        #expect(spotlight.spotlight == true && spotlight.spotlightNumber == 3)
        #expect(spotlight.spotlightFocusRID == .r2 && spotlight.spotlightUnfocusRID == LayerRID.none)
        // LIF16: null metadata stays null.
        #expect(spotlight.metadata == .some(.null))
        #expect(try connect("connect-python-spotlight.json").metadata == nil)
        #expect(try connect("connect-js-simulcast-receiver-request-rid.json").effectiveSimulcastRequestRID != nil)
        #expect(try connect("connect-python-redirected.json").redirect == true)
        #expect(try connect("connect-python-emptyids.json").clientID == nil)
    }

    @Test func offerMembersHaveTheirTypes() throws {
        guard case .offer(let offer) = try SignalingMessage(json: MessageFixtures.json("offer-template.json")) else {
            Issue.record("not an offer")
            return
        }
        #expect(offer.connectionID == "S8YEN0TSE13JDC2991NG4XZ150" && SignalingID.isValid(offer.connectionID))
        #expect(offer.mid == OfferMids(audio: "audio_a0B1", video: "video_c2D3"))
        #expect(offer.encodings?.map(\.maxBitrate) == [200_000, 700_000, 2_100_000])
        #expect(offer.encodings?.map(\.scaleResolutionDownBy) == [4, 2, 1])
        #expect(offer.config?.iceServers == [] && offer.config?.allowsOnlyRelay == false)
        #expect(offer.usesDataChannelSignaling == false && offer.metadata == [:])
        guard case .offer(let data) = try SignalingMessage(json: MessageFixtures.json("offer-datachannel.json")) else {
            Issue.record("not an offer")
            return
        }
        #expect(data.usesDataChannelSignaling && data.dataChannels?.count == 9)
        #expect(data.dataChannels?[6].header == [DataChannelHeaderField(type: "sender_connection_id", length: 26)])
        #expect(data.rpcMethods?.contains(RPCMethodName.requestSimulcastRID) == true)
    }

    // LIF18
    @Test func offerNeedsOnlyDescriptionAndConnectionID() throws {
        let whole = try #require(try MessageFixtures.json("offer-template.json").objectValue)
        var minimal = whole
        for key in whole.keys where !["type", "sdp", "connection_id"].contains(key) {
            var one = whole
            one[key] = nil
            #expect(throws: Never.self) { try SignalingMessage(json: .object(one)) }
            one[key] = .null
            #expect(throws: Never.self) { try SignalingMessage(json: .object(one)) }
            minimal[key] = nil
        }
        #expect(throws: Never.self) { try SignalingMessage(json: .object(minimal)) }
        for key in ["sdp", "connection_id"] {
            var broken = whole
            broken[key] = nil
            #expect(throws: MessageError.invalid(type: "offer", key: key)) {
                try SignalingMessage(json: .object(broken))
            }
        }
    }

    // LIF18
    @Test func offerNumbersMayHaveAnyNotation() throws {
        let text = #"""
            {"type":"offer","sdp":"v=0","connection_id":"X","audio_bit_rate":6.4e1,"encodings":
            [{"rid":"r0","maxBitrate":9.5e5,"maxFramerate":14.985,"scaleResolutionDownBy":2e0,"new":1}]}
            """#
        guard case .offer(let offer) = try SignalingMessage(parsing: text) else {
            Issue.record("not an offer")
            return
        }
        #expect(offer.audioBitRate == 64 && offer.encodings?[0].maxBitrate == 950_000)
        #expect(offer.encodings?[0].maxFramerate == 14.985 && offer.encodings?[0].scaleResolutionDownBy == 2)
        #expect(offer.encodings?[0].isActive == true && offer.encodings?[0].extra == ["new": 1])
    }

    // LIF28
    @Test func messagesThatAreNoneAreTypedErrors() {
        #expect(throws: MessageError.notAnObject) { try SignalingMessage(parsing: "\"connect\"") }
        #expect(throws: MessageError.missingType) { try SignalingMessage(parsing: #"{"type":null}"#) }
        #expect(throws: MessageError.missingType) { try SignalingMessage(parsing: #"{"Type":"ping"}"#) }
        #expect(throws: MessageError.self) { try SignalingMessage(parsing: #"{"type":"#) }
        #expect(throws: MessageError.invalid(type: "ping", key: "stats")) {
            try SignalingMessage(parsing: #"{"type":"ping","stats":1}"#)
        }
        #expect(throws: MessageError.invalid(type: "redirect", key: "location")) {
            try SignalingMessage(parsing: #"{"type":"redirect"}"#)
        }
    }

    @Test func unknownTypeIsKeptWhole() throws {
        let message = try SignalingMessage(parsing: #"{"type":"news","x":[1,null]}"#)
        #expect(message == .unknown(type: "news", ["type": "news", "x": [1, nil]]))
        #expect(message.text == #"{"type":"news","x":[1,null]}"#)
    }

    @Test func notificationMembers() throws {
        let text = #"""
            {"type":"notify","event_type":"connection.created","role":"sendrecv","connection_id":"A","minutes":0,
            "channel_connections":2,"authn_metadata":{"a":null,"b":[null]},
            "data":[{"connection_id":"B","metadata":null}],"z":1}
            """#
        guard case .notify(let notify) = try SignalingMessage(parsing: text) else {
            Issue.record("not a notification")
            return
        }
        #expect(notify.eventType == NotifyMessage.Event.connectionCreated && notify.role == .sendrecv)
        #expect(notify.channelConnections == 2 && notify.data?.first?.connectionID == "B")
        // LIF16
        #expect(notify.authnMetadata == ["a": nil, "b": [nil]] && notify.data?.first?.metadata == .some(.null))
        #expect(try .object(notify.json) == JSONValue(parsing: text))
        // `data` of another form counts as absent.
        guard case .notify(let odd) = try SignalingMessage(parsing: #"{"type":"notify","event_type":"x","data":5}"#)
        else { return }
        #expect(odd.data == nil && odd.extra == ["data": 5])
        #expect(throws: MessageError.invalid(type: "notify", key: "minutes")) {
            try SignalingMessage(parsing: #"{"type":"notify","event_type":"x","minutes":"1"}"#)
        }
    }

    // LIF16
    @Test func unsetMembersAreLeftOut() {
        var connect = ConnectMessage(role: .recvonly, channelID: "c")
        #expect(connect.json.text == #"{"type":"connect","role":"recvonly","channel_id":"c"}"#)
        connect.metadata = .null
        #expect(connect.json.text.hasSuffix(#""metadata":null}"#))
        connect.metadata = [:]
        #expect(connect.json.text.hasSuffix(#""metadata":{}}"#))
        #expect(SignalingMessage.pong(PongMessage()).text == #"{"type":"pong"}"#)
        #expect(SignalingMessage.pong(PongMessage(stats: [])).text == #"{"type":"pong","stats":[]}"#)
        #expect(
            SignalingMessage.disconnect(DisconnectMessage(reason: "NO-ERROR")).text
                == #"{"type":"disconnect","reason":"NO-ERROR"}"#)
    }
}
