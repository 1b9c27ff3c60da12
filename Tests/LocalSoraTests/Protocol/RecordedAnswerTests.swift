import Foundation
import LocalSora
import SoraMessages
import SoraSDP
import SoraWire
import Testing

/// Every recorded `answer` and `re-answer` of real clients is accepted.
///
/// A recorded answer belongs to the offer that it was made for. Here it answers ours: mids, payload types and
/// extension ids are translated by section, codec and URI; everything else stays as the client wrote it.
@Suite(.serialized, .leavesNoObjects) struct RecordedAnswerTests {
    static func text(_ name: String) throws -> String {
        try String(contentsOf: SignalingTests.fixtures.appending(path: name), encoding: .utf8)
    }

    static func names(_ prefix: String, _ infix: String = "answer", suffix: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: SignalingTests.fixtures.path)
            .filter { $0.hasPrefix(prefix) && $0.contains(infix) && $0.hasSuffix(suffix) }.sorted()
    }

    static func adapt(_ recorded: String, to offer: SessionDescription) throws -> String {
        var answer = try SessionDescription(parsing: recorded)
        try #require(answer.media.map(\.kind) == offer.media.map(\.kind))
        for (index, offered) in offer.media.enumerated() {
            var media = answer.media[index]
            media.mid = offered.mid
            var types: [PayloadType: PayloadType] = [:]
            for codec in media.codecs {
                types[codec.payloadType] =
                    offered.codecs.first {
                        $0.name.lowercased() == codec.name.lowercased() && $0.clockRate == codec.clockRate
                    }?.payloadType
            }
            if !media.isRejected {
                media.codecs = media.codecs.compactMap { codec in
                    guard let type = types[codec.payloadType] else { return nil }
                    var codec = codec
                    codec.payloadType = type
                    if let repaired = codec.associatedPayloadType, let to = types[repaired] {
                        codec.formatParameters["apt"] = String(to.rawValue)
                    }
                    return codec
                }
                // A second repair format has lost the codec that it repairs.
                var seen = Set<PayloadType>()
                media.codecs.removeAll { !seen.insert($0.payloadType).inserted }
                if media.carriesRTP { media.formats = media.codecs.map { String($0.payloadType.rawValue) } }
            }
            media.headerExtensions = media.headerExtensions.compactMap { known in
                guard let same = offered.headerExtensions.first(where: { $0.uri == known.uri }) else { return nil }
                var translated = known
                translated.id = same.id
                return translated
            }
            answer.media[index] = media
        }
        answer.groups = [
            MediaGroup(semantics: "BUNDLE", mids: answer.media.filter { !$0.isRejected }.compactMap(\.mid))
        ]
        return answer.serialized()
    }

    private func answer(_ client: SimulatedClient, type: String, with recorded: String, in harness: ChannelHarness)
        throws
    {
        let offer = try #require(client.offeredDescriptions.last)
        client.forgetOldestOffer()
        client.send(
            ["type": .string(type), "sdp": .string(try Self.adapt(recorded, to: offer))], now: harness.now)
        harness.run(for: .milliseconds(20))
    }

    /// What the recorded client must have asked for, by what it answered.
    private func connect(for recorded: SessionDescription) -> ConnectMessage {
        let kinds = recorded.media.map(\.kind)
        return ChannelHarness.connect(.sendonly, audio: kinds.contains(.audio), video: kinds.contains(.video)) {
            $0.dataChannelSignaling = kinds.contains(.application)
            $0.simulcast = recorded.media.contains { $0.simulcast != nil }
        }
    }

    @Test func recordedAnswersAreAccepted() throws {
        var names = try Self.names("answer-", suffix: ".sdp")
        #expect(names.count == 8)
        names += try Self.names("answer-", suffix: ".json")
        #expect(names.count == 10)
        for name in names {
            var recorded = try Self.text(name)
            if name.hasSuffix(".json") {
                recorded = try #require(JSONValue(parsing: recorded).objectValue?["sdp"]?.stringValue)
            }
            let description = try SessionDescription(parsing: recorded)
            let isPaused = name.contains("r2-paused")
            let harness = try ChannelHarness()
            let client = try harness.join(
                connect(for: description),
                grant: { grant in
                    guard isPaused else { return }
                    grant.simulcastEncodings = ["r0", "r1", "r2"].map {
                        var encoding = SimulcastEncoding(rid: $0)
                        encoding.active = $0 != "r2"
                        return encoding
                    }
                }, prepare: { $0.answersAutomatically = false })
            try answer(client, type: "answer", with: recorded, in: harness)
            #expect(client.closeFrames.isEmpty, "\(name)")
            #expect(harness.count(.answered) == 1, "\(name)")
            #expect(harness.count(.protocolError) == 0, "\(name) \(harness.events)")
            if isPaused {
                let video = client.offeredDescriptions.last?.media.first { $0.kind == .video }
                #expect(video?.simulcast?.receive.map { $0.map(\.isPaused) } == [[false], [false], [true]])
            }
        }
    }

    /// The whole recorded series: sender joins, leaves, its sections are used again, and one in a codec that the
    /// client lacks comes back with port 0.
    @Test(arguments: ["js", "python"]) func recordedReanswersAreAccepted(client kind: String) throws {
        let harness = try ChannelHarness()
        let recorded = try harness.join(
            ChannelHarness.connect { $0.simulcast = true }, prepare: { $0.answersAutomatically = false })
        func go(_ type: String, _ stage: String) throws {
            try answer(recorded, type: type, with: Self.text("template-\(stage)-answer-\(kind).sdp"), in: harness)
            #expect(recorded.closeFrames.isEmpty, "\(stage)")
            #expect(harness.count(.protocolError) == 0, "\(stage) \(harness.events)")
        }
        func sections() -> Int? { recorded.offeredDescriptions.last?.media.count }
        try go("answer", "1-initial")
        let first = try harness.joined(ChannelHarness.connect(.sendonly))
        #expect(sections() == 5)
        try go("re-answer", "2-sender-joined")
        first.send(["type": "disconnect"], label: "signaling", now: harness.now)
        harness.run(for: .milliseconds(300))
        try go("re-answer", "3-sender-left")
        try harness.joined(ChannelHarness.connect(.sendonly))
        #expect(sections() == 5)
        try go("re-answer", "4-mline-recycled")
        try harness.joined(ChannelHarness.connect(.sendonly, audio: false))
        #expect(sections() == 6)
        try go("re-answer", "5-unsupported-codec")
        #expect(recorded.messages("re-offer").count == 4)
    }
}
