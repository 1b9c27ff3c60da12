import SoraMessages
import SoraWire
import Testing

@Suite struct ConnectValidationTests {
    private func reason(_ changes: JSONObject, default dataChannels: Bool = true) -> String? {
        var object: JSONObject = ["type": "connect", "role": "sendrecv", "channel_id": "room"]
        for member in changes.members { object[member.key] = member.value }
        do throws(ConnectRejection) {
            _ = try ConnectMessage(validating: .object(object), dataChannelSignalingDefault: dataChannels)
            return nil
        } catch { return error.reason }
    }

    @Test func refusesWhatTheServerMustRefuse() {
        let long = JSONValue.string(String(repeating: "x", count: 256))
        let rule: JSONValue = [["field": "kind", "operator": "is_in", "values": ["audio"]]]
        let cases: [(JSONObject, String)] = [
            (["type": "hello"], "INVALID-CONNECT-MESSAGE"),
            (["role": "viewer"], "INVALID-ROLE"), (["role": nil], "INVALID-ROLE"), (["role": 1], "INVALID-ROLE"),
            (["channel_id": ""], "INVALID-CHANNEL-ID"), (["channel_id": long], "INVALID-CHANNEL-ID"),
            (["channel_id": nil], "INVALID-CHANNEL-ID"),
            (["client_id": ""], "INVALID-CLIENT-ID"), (["client_id": long], "INVALID-CLIENT-ID"),
            (["client_id": 5], "INVALID-CLIENT-ID"),
            (["bundle_id": ""], "INVALID-BUNDLE-ID"), (["bundle_id": long], "INVALID-BUNDLE-ID"),
            (["multistream": false], "SINGLE-STREAM-IS-NOT-SUPPORTED"),
            (["spotlight_focus_rid": "r1"], "SPOTLIGHT-FOCUS-RID-WITHOUT-SPOTLIGHT"),
            (["spotlight_unfocus_rid": "r1"], "SPOTLIGHT-UNFOCUS-RID-WITHOUT-SPOTLIGHT"),
            (["spotlight": true, "spotlight_focus_rid": "r9"], "INVALID-SPOTLIGHT-FOCUS-RID"),
            (["spotlight": true, "spotlight_number": 9], "INVALID-SPOTLIGHT-NUMBER"),
            (["simulcast_rid": "r3"], "INVALID-SIMULCAST-RID"),
            (["audio": "yes"], "INVALID-AUDIO"), (["video": ["codec_type": 1]], "INVALID-VIDEO"),
            (["video": ["codec_type": "VP7"]], "INVALID-VIDEO-CODEC-TYPE"),
            (["audio": ["bit_rate": 5]], "INVALID-AUDIO-BIT-RATE"),
            (["video": ["bit_rate": 50_001]], "INVALID-VIDEO-BIT-RATE"),
            (["data_channel_signaling": 1], "INVALID-DATA-CHANNEL-SIGNALING"),
            (["data_channels": [["label": "dev", "direction": "sendrecv"]]], "INVALID-DATA-CHANNEL-LABEL"),
            (["data_channels": [["label": "#dev", "direction": "up"]]], "INVALID-DATA-CHANNELS"),
            (["data_channels": [["label": "#dev"]]], "INVALID-DATA-CHANNEL-DIRECTION"),
            (
                [
                    "data_channels": [
                        ["label": "#a", "direction": "sendonly"], ["label": "#a", "direction": "recvonly"],
                    ]
                ],
                "DUPLICATE-DATA-CHANNEL-LABEL"
            ),
            (
                [
                    "data_channels": [
                        ["label": "#a", "direction": "sendonly", "max_packet_life_time": 1, "max_retransmits": 1]
                    ]
                ],
                "MAX-PACKET-LIFE-TIME-AND-MAX-RETRANSMITS"
            ),
            (
                ["data_channels": [["label": "#a", "direction": "sendonly", "max_retransmits": 65_536]]],
                "INVALID-DATA-CHANNEL-RELIABILITY"
            ),
            (
                ["data_channels": [["label": "#a", "direction": "sendonly", "header": [["type": "clock"]]]]],
                "INVALID-DATA-CHANNEL-HEADER"
            ),
            (["forwarding_filters": [["rules": [rule]], ["rules": [rule]]]], "DUPLICATE-FORWARDING-FILTER-NAME"),
            (
                ["forwarding_filters": [["rules": [[["field": "kind", "operator": "is", "values": []]]]]]],
                "INVALID-FORWARDING-FILTERS"
            ),
            (
                ["audio": false, "video": false, "data_channel_signaling": false], "NOTHING-TO-NEGOTIATE"
            ),
        ]
        for (changes, expected) in cases {
            #expect(reason(changes) == expected, "\(changes.text)")
        }
        #expect(reason(["audio": false, "video": false], default: false) == "NOTHING-TO-NEGOTIATE")
        for notObject in ["[]", "\"x\"", "{}"] {
            #expect(throws: ConnectRejection(reason: "INVALID-CONNECT-MESSAGE")) {
                try ConnectMessage(validating: JSONValue(parsing: notObject))
            }
        }
    }

    @Test func acceptsWhatClientsSend() {
        let cases: [JSONObject] = [
            ["metadata": nil], ["metadata": ""], ["client_id": nil], ["simulcast": false], ["multistream": true],
            ["audio": false, "video": false], ["spotlight": 1, "spotlight_focus_rid": "r0"], ["sdp": "v=0"],
            ["forwarding_filter": ["rules": []], "forwarding_filters": [["rules": []]]], ["unknown": [1]],
            ["channel_id": .string(String(repeating: "é", count: 127))], ["simulcast_request_rid": "none"],
        ]
        for changes in cases { #expect(reason(changes) == nil, "\(changes.text)") }
    }

    @Test func reasonsFitACloseFrame() {
        let text = "INVALID-" + "audio_streaming_language_code".uppercased().replacing("_", with: "-")
        #expect(reason(["audio_streaming_language_code": 1]) == text)
        #expect(text.utf8.count <= 123)
    }

    // LIF17
    @Test func filtersApplyTheirAction() throws {
        let text =
            #"{"rules":[[{"field":"kind","operator":"is_in","values":["video"]},"#
            + #"{"field":"client_id","operator":"is_not_in","values":["me"]}]]}"#
        var filter = try #require(ForwardingFilter(json: JSONValue(parsing: text)))
        #expect(filter.json.text == text)
        #expect(filter.action == nil && filter.effectiveAction == .block && filter.effectiveName == "default")
        #expect(filter.effectivePriority == 32_767)
        let video = ForwardingFilter.Subject(connectionID: "C", clientID: "you", kind: "video")
        let audio = ForwardingFilter.Subject(connectionID: "C", clientID: "you", kind: "audio")
        let own = ForwardingFilter.Subject(connectionID: "C", clientID: "me", kind: "video")
        #expect(!filter.passes(video) && filter.passes(audio) && filter.passes(own))
        filter.action = .allow
        #expect(filter.passes(video) && !filter.passes(audio))
        #expect(ForwardingFilter.forwards(audio, through: []))
        #expect(!ForwardingFilter.forwards(audio, through: [filter]))
        filter.rules = []
        #expect(filter.json.text == #"{"action":"allow","rules":[]}"#)
    }
}
