import LocalSora
import SoraMessages
import Testing

/// The judge of all other tests of the server sees what it has to see.
@Suite(.serialized, .leavesNoObjects) struct ServerMessageValidatorTests {
    private func offer(_ connect: ConnectMessage) throws -> JSONObject {
        let harness = try ChannelHarness()
        let client = try harness.joined(connect)
        return try #require(client.messages("offer").first)
    }

    private func faults(_ object: JSONObject, connect: ConnectMessage? = nil) -> [String] {
        var validator = ServerMessageValidator(connect: connect)
        return validator.faults(JSONValue.object(object).utf8, label: nil)
    }

    @Test func everyMissingMistypedOrUnknownKeyOfAnOfferIsSeen() throws {
        let connect = ChannelHarness.connect { $0.simulcast = true }
        let offer = try offer(connect)
        #expect(faults(offer, connect: connect).isEmpty)
        for key in offer.keys {
            var altered = offer
            altered[key] = nil
            let isOptional = [
                "audio_codec_type", "video_codec_type", "audio_bit_rate", "video_bit_rate", "metadata",
            ].contains(key)
            #expect(faults(altered).isEmpty == isOptional, "\(key)")
            altered[key] = [1.5]
            #expect(!faults(altered).isEmpty || key == "metadata", "\(key)")
        }
        var altered = offer
        altered["surprise"] = true
        #expect(!faults(altered).isEmpty)
    }

    @Test func descriptionsAreLookedInto() throws {
        let connect = ChannelHarness.connect { $0.dataChannelSignaling = false }
        let offer = try offer(connect)
        let sdp = try #require(offer["sdp"]?.stringValue)
        let damages = [
            ("a=recvonly", "a=recvonly\r\na=msid:x y"), ("a=recvonly", "a=sendonly"),
            ("a=setup:actpass", "a=setup:active"),
            ("a=end-of-candidates\r\n", ""), ("a=rtcp-mux\r\n", ""), ("a=group:BUNDLE ", "a=group:LS "),
            ("a=recvonly", "a=recvonly\r\na=ssrc:1 cname:x"), ("a=fingerprint:sha-256", "a=fingerprint:sha-1"),
        ]
        for (from, to) in damages {
            let range = try #require(sdp.firstRange(of: from), "\(from)")
            var altered = offer
            altered["sdp"] = .string(sdp.replacing(from, with: to, maxReplacements: 1))
            #expect(!faults(altered).isEmpty, "\(from) \(sdp[range]) -> \(to)")
        }
    }

    @Test func orderAndCarriersAreLookedAt() throws {
        let harness = try ChannelHarness()
        let client = try harness.joined(ChannelHarness.messaging())
        let offer = try #require(client.messages("offer").first)
        let created = try #require(client.messages("notify").first)
        let switched = try #require(client.messages("switched").first)
        func bytes(_ object: JSONObject) -> [UInt8] { JSONValue.object(object).utf8 }
        var validator = ServerMessageValidator()
        #expect(validator.faults(bytes(created), label: nil).contains("notify before offer"))
        validator = ServerMessageValidator()
        #expect(validator.faults(bytes(offer), label: nil).isEmpty)
        #expect(!validator.faults(bytes(created), label: "notify").isEmpty)
        #expect(!validator.faults(bytes(offer), label: nil).isEmpty)
        validator = ServerMessageValidator()
        _ = validator.faults(bytes(offer), label: nil)
        #expect(validator.faults(bytes(switched), label: nil).isEmpty)
        #expect(!validator.faults(bytes(switched), label: nil).isEmpty)
        #expect(validator.faults(bytes(created), label: "notify").isEmpty)
        validator.transportsAreOrdered = false
        #expect(!validator.faults(bytes(created), label: nil).isEmpty)
        var altered = created
        altered["channel_recvonly_connections"] = 5
        altered["connection_id"] = .string(harness.channel.sessionID)
        altered["data"] = nil
        #expect(validator.faults(bytes(altered), label: "notify").count == 1)
        for text in [
            #"{"type":"close","code":1000,"reason":""}"#, #"{"type":"push"}"#, #"{"type":"push","data":[]}"#,
            #"{"type":"req-stats","x":1}"#, #"{"type":"notify","event_type":"connection.gone"}"#, "[]", "{",
        ] {
            let label = text.contains("close") ? "signaling" : text.contains("push") ? "push" : "stats"
            #expect(!validator.faults(Array(text.utf8), label: label).isEmpty, "\(text)")
        }
        #expect(validator.faults(Array(#"{"type":"close","code":1000,"reason":"X"}"#.utf8), label: "signaling").isEmpty)
        #expect(!validator.frameFaults(label: "notify", payload: [1, 2], isBinary: true).isEmpty)
        #expect(!validator.frameFaults(label: "notify", payload: [1, 2], isBinary: false).isEmpty)
        #expect(!validator.frameFaults(label: "#x", payload: [1, 2], isBinary: true).isEmpty)
    }
}
