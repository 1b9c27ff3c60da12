import Foundation
import LocalSora
import SoraMessages
import Testing

/// Each mistake in `connect` (spec/signaling.md 1.10) on a real socket: close code 4490, a reason, and no message.
@Suite("Server: refusals", .serialized, .leavesNoObjects) struct RefusalTests {
    /// `connect` that would be accepted, with these changes; null removes a key.
    struct Mistake: CustomTestStringConvertible, Sendable {
        var changes: JSONObject
        var reason: String
        init(_ reason: String, _ changes: JSONObject) {
            self.changes = changes
            self.reason = reason
        }
        var text: String {
            var object: JSONObject = ["type": "connect", "role": "sendrecv", "channel_id": "sora"]
            for member in changes.members { object[member.key] = member.value.isNull ? nil : member.value }
            return object.text
        }
        var testDescription: String { "\(reason) \(changes.text.prefix(60))" }
    }

    private static let long = JSONValue.string(String(repeating: "x", count: 256))
    private static let rules: JSONValue = [[["field": "kind", "operator": "is_in", "values": ["audio"]]]]

    private static func channels(_ entries: JSONValue...) -> JSONObject { ["data_channels": .array(entries)] }

    static let mistakes: [Mistake] = [
        Mistake("INVALID-CONNECT-MESSAGE", ["type": "ping"]), Mistake("INVALID-CONNECT-MESSAGE", ["type": nil]),
        Mistake("INVALID-CONNECT-MESSAGE", ["type": 7]),
        Mistake("INVALID-ROLE", ["role": "boss"]), Mistake("INVALID-ROLE", ["role": nil]),
        Mistake("INVALID-ROLE", ["role": 1]), Mistake("INVALID-ROLE", ["role": "SENDRECV"]),
        Mistake("INVALID-CHANNEL-ID", ["channel_id": ""]), Mistake("INVALID-CHANNEL-ID", ["channel_id": nil]),
        Mistake("INVALID-CHANNEL-ID", ["channel_id": long]), Mistake("INVALID-CHANNEL-ID", ["channel_id": 5]),
        Mistake("INVALID-CLIENT-ID", ["client_id": ""]), Mistake("INVALID-CLIENT-ID", ["client_id": long]),
        Mistake("INVALID-BUNDLE-ID", ["bundle_id": ""]), Mistake("INVALID-BUNDLE-ID", ["bundle_id": long]),
        Mistake("SINGLE-STREAM-IS-NOT-SUPPORTED", ["multistream": false]),
        Mistake("SPOTLIGHT-FOCUS-RID-WITHOUT-SPOTLIGHT", ["spotlight_focus_rid": "r1"]),
        Mistake("SPOTLIGHT-UNFOCUS-RID-WITHOUT-SPOTLIGHT", ["spotlight_unfocus_rid": "r1"]),
        Mistake("SPOTLIGHT-FOCUS-RID-WITHOUT-SPOTLIGHT", ["spotlight": false, "spotlight_focus_rid": "r1"]),
        Mistake("INVALID-SPOTLIGHT-FOCUS-RID", ["spotlight": true, "spotlight_focus_rid": "r3"]),
        Mistake("INVALID-SPOTLIGHT-UNFOCUS-RID", ["spotlight": true, "spotlight_unfocus_rid": 1]),
        Mistake("INVALID-SPOTLIGHT-NUMBER", ["spotlight": true, "spotlight_number": 0]),
        Mistake("INVALID-SPOTLIGHT-NUMBER", ["spotlight": true, "spotlight_number": 9]),
        Mistake("INVALID-SIMULCAST", ["simulcast": "yes"]),
        Mistake("INVALID-SIMULCAST-RID", ["simulcast_rid": "high"]),
        Mistake("INVALID-SIMULCAST-REQUEST-RID", ["simulcast_request_rid": "auto"]),
        Mistake("INVALID-AUDIO", ["audio": "on"]),
        Mistake("INVALID-AUDIO-CODEC-TYPE", ["audio": ["codec_type": "MP3"]]),
        Mistake("INVALID-AUDIO-BIT-RATE", ["audio": ["bit_rate": 5]]),
        Mistake("INVALID-AUDIO-BIT-RATE", ["audio": ["bit_rate": 511]]),
        Mistake("INVALID-AUDIO-OPUS-PARAMS", ["audio": ["opus_params": ["channels": 9]]]),
        Mistake("INVALID-AUDIO-OPUS-PARAMS", ["audio": ["opus_params": ["maxplaybackrate": 96_000]]]),
        Mistake("INVALID-AUDIO-OPUS-PARAMS", ["audio": ["opus_params": ["minptime": 2]]]),
        Mistake("INVALID-VIDEO", ["video": []]), Mistake("INVALID-VIDEO-CODEC-TYPE", ["video": ["codec_type": "VP7"]]),
        Mistake("INVALID-VIDEO-BIT-RATE", ["video": ["bit_rate": 0]]),
        Mistake("INVALID-VIDEO-BIT-RATE", ["video": ["bit_rate": 50_001]]),
        Mistake("INVALID-VIDEO-VP9-PARAMS", ["video": ["vp9_params": ["profile_id": 4]]]),
        Mistake("INVALID-VIDEO-AV1-PARAMS", ["video": ["av1_params": ["profile": 3]]]),
        Mistake("INVALID-VIDEO-H264-PARAMS", ["video": ["h264_params": ["profile_level_id": "high"]]]),
        Mistake("INVALID-VIDEO-H264-PARAMS", ["video": ["h264_params": ["b_frame": 1]]]),
        Mistake("INVALID-VIDEO-H265-PARAMS", ["video": ["h265_params": ["level_id": 0]]]),
        Mistake("INVALID-DATA-CHANNEL-SIGNALING", ["data_channel_signaling": "true"]),
        Mistake("INVALID-IGNORE-DISCONNECT-WEBSOCKET", ["ignore_disconnect_websocket": 1]),
        Mistake("INVALID-DATA-CHANNEL-LABEL", channels(["label": "chat", "direction": "sendrecv"])),
        Mistake("INVALID-DATA-CHANNEL-LABEL", channels(["label": "", "direction": "sendrecv"])),
        Mistake(
            "DUPLICATE-DATA-CHANNEL-LABEL",
            channels(["label": "#a", "direction": "sendrecv"], ["label": "#a", "direction": "recvonly"])),
        Mistake("INVALID-DATA-CHANNEL-DIRECTION", channels(["label": "#a"])),
        Mistake("INVALID-DATA-CHANNELS", channels(["label": "#a", "direction": "up"])),
        Mistake("INVALID-DATA-CHANNELS", channels("#a")),
        Mistake(
            "MAX-PACKET-LIFE-TIME-AND-MAX-RETRANSMITS",
            channels(["label": "#a", "direction": "sendrecv", "max_retransmits": 0, "max_packet_life_time": 9])),
        Mistake(
            "INVALID-DATA-CHANNEL-RELIABILITY",
            channels(["label": "#a", "direction": "sendrecv", "max_packet_life_time": 70_000])),
        Mistake(
            "INVALID-DATA-CHANNEL-HEADER",
            channels(["label": "#a", "direction": "sendrecv", "header": [["type": "time"]]])),
        Mistake(
            "DUPLICATE-FORWARDING-FILTER-NAME",
            ["forwarding_filters": [["name": "a", "rules": rules], ["name": "a", "rules": rules]]]),
        Mistake("DUPLICATE-FORWARDING-FILTER-NAME", ["forwarding_filters": [["rules": rules], ["rules": rules]]]),
        Mistake("INVALID-FORWARDING-FILTERS", ["forwarding_filters": [["action": "hide", "rules": rules]]]),
        Mistake(
            "INVALID-FORWARDING-FILTERS",
            ["forwarding_filters": [["rules": [[["field": "role", "operator": "is_in", "values": []]]]]]]),
        Mistake("INVALID-FORWARDING-FILTER", ["forwarding_filter": ["rules": "all"]]),
        Mistake("NOTHING-TO-NEGOTIATE", ["audio": false, "video": false, "data_channel_signaling": false]),
    ]

    private func refuse(_ text: String, with reason: String) async throws {
        try await withServer { server in
            try await withClient { client in
                try await client.open(server.signalingURL)
                await client.send(text)
                let closure = await client.closed()
                #expect(closure?.code == 4490)
                #expect(closure?.reason == reason)
                #expect(await client.texts.isEmpty)
                #expect(server.recordedEvents.contains { $0.kind == .refused && $0.detail == reason })
            }
        }
    }

    @Test(arguments: mistakes) func badConnectIsClosedWith4490AndAReason(mistake: Mistake) async throws {
        try await refuse(mistake.text, with: mistake.reason)
    }

    @Test(arguments: [("{", "INVALID-JSON"), ("", "INVALID-JSON"), ("[]", "INVALID-CONNECT-MESSAGE")])
    func firstMessageThatIsNoObjectIsRefused(text: String, reason: String) async throws {
        try await refuse(text, with: reason)
    }

    /// The base of all the mistakes is none itself, nor are values at the edges.
    @Test func edgesAreAccepted() throws {
        let accepted: [JSONObject] = [
            [:], ["channel_id": .string(String(repeating: "x", count: 255))],
            ["spotlight": true, "spotlight_number": 8, "spotlight_focus_rid": "none"],
            ["audio": ["bit_rate": 510, "opus_params": ["channels": 8, "minptime": 3, "maxplaybackrate": 8000]]],
            ["video": ["bit_rate": 50_000, "vp9_params": ["profile_id": 3], "h265_params": ["level_id": 93]]],
            Self.channels(["label": "#", "direction": "sendonly", "max_retransmits": 65_535]),
            ["audio": false, "video": false], ["metadata": nil], ["multistream": true],
        ]
        for changes in accepted {
            let json = try JSONValue(parsing: Mistake("", changes).text)
            #expect(throws: Never.self, "\(changes.text)") { try ConnectMessage(validating: json) }
        }
    }
}
