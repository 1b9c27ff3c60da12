import Foundation
import TestSupport
import Testing

@testable import Sora

@Suite(.serialized, .leavesNoObjects) struct SignalingTests {
    private func decode(_ text: String) throws -> Signaling { try Signaling.decode(Data(text.utf8)).get() }
    private func fails(_ text: String) -> (any Error)? {
        if case .failure(let error) = Signaling.decode(Data(text.utf8)) { return error }
        return nil
    }

    @Test func typeNamesAreThoseOfTheWire() throws {
        for (text, name) in [
            (#"{"type":"re-offer","sdp":"v=0"}"#, "re-offer"), (#"{"type":"update","sdp":"v=0"}"#, "update"),
            (#"{"type":"ping"}"#, "ping"), (#"{"type":"push","data":1}"#, "push"),
            (#"{"type":"switched"}"#, "switched"), (#"{"type":"notify","event_type":"x"}"#, "notify"),
            (#"{"type":"close","code":1,"reason":""}"#, "close"), (#"{"type":"redirect","location":"l"}"#, "redirect"),
        ] {
            #expect(try decode(text).typeName() == name)
        }
    }

    // LIF28: whatever is wrong becomes a failure.
    @Test func wrongMessagesFail() {
        for text in [
            "", "{", "[]", "7", "\"text\"", "null", "{}", #"{"type":null}"#, #"{"type":7}"#, #"{"Type":"ping"}"#,
            #"{"type":"offer"}"#, #"{"type":"offer","client_id":1,"connection_id":"","sdp":""}"#,
            #"{"type":"ping","stats":1}"#, #"{"type":"ping","stats":"true"}"#, #"{"type":"re-offer"}"#,
            #"{"type":"close","code":"1000","reason":"x"}"#, #"{"type":"close","code":1e999,"reason":"x"}"#,
            #"{"type":"notify"}"#, #"{"type":"notify","event_type":"x","channel_connections":"3"}"#,
            #"{"type":"notify","event_type":"x","role":"sender"}"#, #"{"type":"notify","event_type":"x","audio":0}"#,
        ] {
            #expect(fails(text) != nil, "\(text)")
        }
        for type in ["connect", "answer", "re-answer", "candidate", "pong", "disconnect", "mystery"] {
            guard case SoraError.unknownSignalingMessageType(type)? = fails(#"{"type":"\#(type)"}"#) else {
                Issue.record("\(type) must be unknown")
                continue
            }
        }
        let deep = String(repeating: "[", count: 100_000)
        #expect(fails(#"{"type":"push","data":\#(deep)"#) != nil)
    }

    @Test func everyCutOfAMessageFailsWithoutATrap() {
        let text = #"{"type":"notify","event_type":"connection.created","minutes":2,"data":[{"client_id":"x"}]}"#
        let bytes = Array(text.utf8)
        for length in 0..<bytes.count {
            guard case .failure = Signaling.decode(Data(bytes[..<length])) else {
                Issue.record("cut at \(length) decoded")
                continue
            }
        }
    }

    // LIF18: numbers in any notation.
    @Test func numbersMayBeWrittenInAnyNotation() throws {
        let text =
            ##"{"type":"offer","client_id":"c","connection_id":"k","sdp":"v=0","video_bit_rate":9.5e5,"encodings":[{"maxBitrate":2e0,"maxFramerate":14.985,"scaleResolutionDownBy":2},{"maxBitrate":1e30,"active":false}]}"##
        guard case .offer(let offer) = try decode(text) else {
            Issue.record("not an offer")
            return
        }
        #expect(offer.videoBitRate == 950_000)
        #expect(offer.encodings?[0].maxBitrate == 2)
        #expect(offer.encodings?[0].maxFramerate == 14.985)
        #expect(offer.encodings?[0].scaleResolutionDownBy == 2)
        #expect(offer.encodings?[1].maxBitrate == .max)
        #expect(offer.encodings?[1].active == false)
        #expect(offer.mid == nil && offer.dataChannels == nil && offer.configuration == nil)
    }

    @Test func encodingsBecomeParametersOfTheEngine() throws {
        let text =
            ##"{"type":"offer","client_id":"c","connection_id":"k","sdp":"v=0","encodings":[{"rid":"r0","active":false,"maxBitrate":1,"scaleResolutionDownTo":{"maxWidth":320,"maxHeight":180},"scalabilityMode":"L1T2","networkPriority":"high"},{"networkPriority":"urgent"}]}"##
        guard case .offer(let offer) = try decode(text), let encoding = offer.encodings?.first else {
            Issue.record("not an offer")
            return
        }
        let parameters = encoding.rtpEncodingParameters
        #expect(parameters.rid == "r0" && !parameters.isActive && parameters.maxBitrateBps == 1)
        #expect(parameters.scaleResolutionDownTo?.maxWidth == 320 && parameters.scaleResolutionDownTo?.maxHeight == 180)
        #expect(parameters.scalabilityMode == "L1T2" && parameters.networkPriority == .high)
        #expect(offer.encodings?[1].networkPriority == nil)
    }

    @Test func absentAndNullDiffer() throws {
        guard case .push(let absent) = try decode(#"{"type":"push"}"#),
            case .push(let null) = try decode(#"{"type":"push","data":null}"#)
        else {
            Issue.record("not a push")
            return
        }
        #expect(absent.data == nil)
        #expect(null.data is NSNull)
    }

    @Test func everyCoderReadsTheSameMessage() throws {
        let text =
            #"{"type":"notify","event_type":"e","minutes":3,"metadata":{"a":1,"b":[null,true,1.5]},"fixed":true}"#
        guard case .notify(let direct) = try decode(text),
            case .notify(let coded) = try JSONDecoder().decode(Signaling.self, from: Data(text.utf8))
        else {
            Issue.record("not a notify")
            return
        }
        #expect(direct.connectionTime == 3 && coded.connectionTime == 3 && coded.isFixed == true)
        #expect(direct.metadata as? NSDictionary == coded.metadata as? NSDictionary)
        #expect((coded.metadata as? [String: Any])?["a"] as? Double == 1)
        #expect((coded.metadata as? [String: Any])?["a"] as? Int == 1)
    }

    @Test func theFixtureOffersDecode() throws {
        for name in ["offer-template.json", "offer-datachannel.json"] {
            guard let data = Fixtures.signaling(name) else {
                Issue.record("fixture \(name) is missing")
                continue
            }
            guard case .offer(let offer) = try Signaling.decode(data).get() else {
                Issue.record("\(name) is no offer")
                continue
            }
            #expect(offer.sdp.hasPrefix("v=0"))
        }
    }

    // LIF18: each optional key removed.
    @Test func offersDecodeWithoutAnyOptionalKey() throws {
        let data = try #require(Fixtures.signaling("offer-template.json"))
        let object = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
        let required: Set<String> = ["type", "client_id", "connection_id", "sdp"]
        for key in object.keys where !required.contains(key) {
            var less = object
            less[key] = nil
            let text = try JSONSerialization.data(withJSONObject: less)
            #expect((try? Signaling.decode(text).get()) != nil, "without \(key)")
        }
        let bare = try JSONSerialization.data(withJSONObject: object.filter { required.contains($0.key) })
        #expect((try? Signaling.decode(bare).get()) != nil)
    }

    @Test func outgoingMessagesHaveTheirJSON() throws {
        func json(_ message: Signaling) throws -> NSDictionary {
            try #require(try JSONSerialization.jsonObject(with: JSONEncoder().encode(message)) as? NSDictionary)
        }
        #expect(try json(.answer(SignalingAnswer(sdp: "s"))) == ["type": "answer", "sdp": "s"])
        #expect(try json(.reAnswer(SignalingReAnswer(sdp: "s"))) == ["type": "re-answer", "sdp": "s"])
        #expect(try json(.update(SignalingUpdate(sdp: "s"))) == ["type": "update", "sdp": "s"])
        #expect(
            try json(.candidate(SignalingCandidate(candidate: ICECandidate(url: nil, sdp: "candidate:x"))))
                == ["type": "candidate", "candidate": "candidate:x"])
        #expect(try json(.pong(SignalingPong())) == ["type": "pong"])
        #expect(
            try json(.disconnect(SignalingDisconnect(reason: "NO-ERROR")))
                == ["type": "disconnect", "reason": "NO-ERROR"])
        #expect(try json(.disconnect(SignalingDisconnect(reason: nil))) == ["type": "disconnect", "reason": NSNull()])
    }

    @Test func receivedMessagesDoNotEncode() throws {
        for text in [#"{"type":"ping"}"#, #"{"type":"re-offer","sdp":""}"#, #"{"type":"switched"}"#] {
            let message = try decode(text)
            #expect(throws: SoraError.self) { try JSONEncoder().encode(message) }
        }
    }
}

@Suite(.serialized, .leavesNoObjects) struct SignalingConnectTests {
    private struct Metadata: Encodable { var seat = 7 }
    private struct Parameters: Encodable { var profile_id = 0 }

    private func json(_ configuration: Configuration, sdp: String? = nil, redirect: Bool = false) throws -> NSDictionary
    {
        var message = SignalingConnect(configuration, sdp: sdp, redirect: redirect)
        message.soraClient = "s"
        message.webRTCVersion = "w"
        message.environment = "e"
        return try #require(
            try JSONSerialization.jsonObject(with: JSONEncoder().encode(Signaling.connect(message))) as? NSDictionary)
    }
    private func expectation(_ members: [String: Any], role: String = "sendrecv") -> NSDictionary {
        let base: [String: Any] = [
            "type": "connect", "role": role, "channel_id": "room", "sora_client": "s", "libwebrtc": "w",
            "environment": "e",
        ]
        return base.merging(members) { $1 } as NSDictionary
    }

    // LIF16: unset metadata never becomes {}.
    // api 5.25
    @Test func defaultsSendNothingOptional() throws {
        #expect(try json(Stage.configuration()) == expectation([:]))
    }

    @Test func theDocumentedExampleHolds() throws {
        var configuration = Stage.configuration()
        configuration.clientId = "client-1"
        configuration.videoCodec = .vp9
        configuration.videoBitRate = 1500
        configuration.videoVp9Params = Parameters()
        configuration.videoH264Params = Parameters()
        configuration.audioBitRate = 96
        configuration.simulcastEnabled = true
        configuration.simulcastRequestRid = .r1
        configuration.isSpotlightEnabled = true
        configuration.spotlightNumber = 3
        configuration.spotlightFocusRid = .r2
        configuration.signalingConnectMetadata = Metadata()
        configuration.dataChannelSignaling = true
        configuration.dataChannels = [["label": "#spam", "direction": "sendrecv"]]
        #expect(
            try json(configuration, sdp: "v=0")
                == expectation([
                    "client_id": "client-1", "sdp": "v=0", "metadata": ["seat": 7], "data_channel_signaling": true,
                    "data_channels": [["label": "#spam", "direction": "sendrecv"]],
                    "video": ["codec_type": "VP9", "bit_rate": 1500, "vp9_params": ["profile_id": 0]],
                    "audio": ["bit_rate": 96], "simulcast": true, "simulcast_request_rid": "r1", "spotlight": true,
                    "spotlight_number": 3, "spotlight_focus_rid": "r2",
                ]))
    }

    // api 5.26
    @Test func parametersOfOtherCodecsLeaveNoTrace() throws {
        let codecs: [(VideoCodec, String, String?)] = [
            (.default, "", nil), (.vp8, "VP8", nil), (.vp9, "VP9", "vp9_params"), (.av1, "AV1", "av1_params"),
            (.h264, "H264", "h264_params"), (.h265, "H265", "h265_params"),
        ]
        for (codec, name, own) in codecs {
            for hasAll in [true, false] {
                var configuration = Stage.configuration()
                configuration.videoCodec = codec
                // All of them, or all but the codec's own.
                if hasAll || codec != .vp9 { configuration.videoVp9Params = Parameters() }
                if hasAll || codec != .av1 { configuration.videoAv1Params = Parameters() }
                if hasAll || codec != .h264 { configuration.videoH264Params = Parameters() }
                if hasAll || codec != .h265 { configuration.videoH265Params = Parameters() }
                configuration.audioOpusParams = Parameters()
                var video: [String: Any] = name.isEmpty ? [:] : ["codec_type": name]
                if hasAll, let own { video[own] = ["profile_id": 0] }
                // No empty object where nothing is left to say.
                #expect(try json(configuration) == expectation(video.isEmpty ? [:] : ["video": video]), "\(codec)")
            }
        }
    }

    // api 5.27
    @Test func multistreamIsSentExactlyAsSet() throws {
        for (setting, members) in [(nil, [:]), (true, ["multistream": true]), (false, ["multistream": false])]
            as [(Bool?, [String: Any])]
        {
            for spotlight in [false, true] {
                var configuration = Stage.configuration()
                configuration.multistreamEnabled = setting
                configuration.isSpotlightEnabled = spotlight
                let whole = members.merging(spotlight ? ["spotlight": true] : [:]) { $1 }
                #expect(try json(configuration) == expectation(whole))
            }
        }
    }

    // api 5.28
    @Test func spotlightAndSimulcastAreIndependent() throws {
        for spotlight in [false, true] {
            for simulcast in [false, true] {
                var configuration = Stage.configuration()
                configuration.isSpotlightEnabled = spotlight
                configuration.spotlightNumber = 2
                configuration.simulcastEnabled = simulcast
                configuration.simulcastRequestRid = .r1
                var members: [String: Any] = [:]
                if spotlight { members = ["spotlight": true, "spotlight_number": 2] }
                if simulcast { members.merge(["simulcast": true, "simulcast_request_rid": "r1"]) { $1 } }
                #expect(try json(configuration) == expectation(members))
                #expect(configuration.simulcastEnabled == simulcast)
            }
        }
    }

    @Test func mediaThatIsOffIsFalse() throws {
        var configuration = Stage.configuration(.recvonly)
        configuration.videoEnabled = false
        configuration.videoCodec = .av1
        configuration.audioEnabled = false
        #expect(
            try json(configuration, redirect: true)
                == expectation(["video": false, "audio": false, "redirect": true], role: "recvonly"))
    }

    @Test func sendersAskForNoLayer() throws {
        var configuration = Stage.configuration(.sendonly)
        configuration.simulcastEnabled = true
        configuration.simulcastRid = .r0
        configuration.simulcastRequestRid = .r1
        #expect(try json(configuration) == expectation(["simulcast": true], role: "sendonly"))
    }

    @Test func opusParametersNeedOpus() throws {
        var configuration = Stage.configuration()
        configuration.audioOpusParams = Parameters()
        #expect(try json(configuration) == expectation([:]))
        configuration.audioCodec = .opus
        #expect(
            try json(configuration)
                == expectation(["audio": ["codec_type": "OPUS", "opus_params": ["profile_id": 0]]]))
    }

    @Test func filtersAndFlagsGoAsSet() throws {
        var configuration = Stage.configuration()
        configuration.multistreamEnabled = false
        configuration.ignoreDisconnectWebSocket = false
        configuration.bundleId = "b"
        configuration.audioStreamingLanguageCode = "ja-JP"
        configuration.signalingConnectNotifyMetadata = ["a": JSONValue.null]
        configuration.forwardingFilter = ForwardingFilter(rules: [])
        configuration.forwardingFilters = []
        #expect(
            try json(configuration)
                == expectation([
                    "multistream": false, "ignore_disconnect_websocket": false, "bundle_id": "b",
                    "audio_streaming_language_code": "ja-JP", "signaling_notify_metadata": ["a": NSNull()],
                    "forwarding_filter": ["rules": [Any]()], "forwarding_filters": [Any](),
                ]))
    }

    @Test func neverDecodes() {
        #expect(throws: SoraError.self) {
            try JSONDecoder().decode(SignalingConnect.self, from: Data(#"{"role":"sendonly"}"#.utf8))
        }
    }
}
