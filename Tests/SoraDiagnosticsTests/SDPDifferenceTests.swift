import SoraSDP
import Testing

@testable import SoraDiagnostics

@Suite struct SDPDifferenceTests {
    private func description(_ name: String) throws -> SessionDescription {
        try SessionDescription(parsing: Fixtures.text(name))
    }

    @Test(arguments: Fixtures.descriptions) func findsNothingBetweenADescriptionAndItself(_ name: String) throws {
        let description = try description(name)
        #expect(SDPDifference(from: description, to: try SessionDescription(parsing: description.serialized())).isEmpty)
        #expect(SDPDifference(from: description, to: description).text == "Both mean the same.")
    }

    @Test func ignoresWhereTransportAttributesStand() throws {
        let sections = try Fixtures.text("template-1-initial-offer.sdp")
        var description = try SessionDescription(parsing: sections)
        let credentials = description.media[0].iceCredentials
        description.sessionLevel.iceCredentials = credentials
        #expect(SDPDifference(from: try SessionDescription(parsing: sections), to: description).isEmpty)
    }

    @Test func tellsAJoinedSender() throws {
        let difference = SDPDifference(
            from: try description("template-1-initial-offer.sdp"),
            to: try description("template-2-sender-joined-offer.sdp"))
        let added = difference.changes.filter { $0.what == "section" && $0.before == nil }
        #expect(!added.isEmpty && added.allSatisfy { $0.after?.contains("sendonly") == true }, "\(difference.text)")
        #expect(difference.changes.contains { $0.what == "bundled mid" && $0.before == nil })
        #expect(!difference.changes.contains { $0.what == "ICE credentials" })
    }

    @Test func tellsALeftSenderAndAReusedSlot() throws {
        let left = SDPDifference(
            from: try description("template-2-sender-joined-offer.sdp"),
            to: try description("template-3-sender-left-offer.sdp"))
        #expect(left.changes.contains { $0.what == "section" && $0.after == "out of use" }, "\(left.text)")
        let reused = SDPDifference(
            from: try description("template-3-sender-left-offer.sdp"),
            to: try description("template-4-mline-recycled-offer.sdp"))
        #expect(reused.changes.contains { $0.what == "section" && $0.before == "out of use" }, "\(reused.text)")
    }

    @Test func tellsAnICERestartFromAnotherConnection() throws {
        let before = try description("template-1-initial-offer.sdp")
        var after = before
        for index in after.media.indices {
            after.media[index].iceCredentials = ICEParameters(
                usernameFragment: "zzzzzz", password: "new-password-new-password")
        }
        let restart = SDPDifference(from: before, to: after)
        #expect(restart.changes.count == 1 && restart.changes.first?.meaning == "an ICE restart")
        #expect(!restart.text.contains("new-password"))
        after.sessionID = "77"
        #expect(SDPDifference(from: before, to: after).changes.first { $0.what == "ICE credentials" }?.meaning == nil)
    }

    @Test func tellsCodecsParametersAndOrder() throws {
        let before = try description("answer-js-sendrecv.sdp")
        var after = before
        let index = try #require(after.media.firstIndex { $0.kind == .video && $0.codecs.count > 1 })
        after.media[index].codecs.reverse()
        #expect(SDPDifference(from: before, to: after).changes.map(\.what) == ["preference of codecs"])
        after = before
        after.media[index].codecs[0].formatParameters["x-new"] = "1"
        after.media[index].codecs[0].rtcpFeedback.removeLast()
        let changed = SDPDifference(from: before, to: after).changes
        #expect(changed.count == 2, "\(changed)")
        #expect(changed.contains { $0.after?.contains("x-new=1") == true })
        #expect(changed.contains { $0.what.hasPrefix("feedback of") && $0.after == nil })
        after = before
        let removed = after.media[index].codecs.removeLast()
        #expect(SDPDifference(from: before, to: after).changes.first?.before?.contains(removed.name) == true)
    }

    @Test func tellsAPausedLayer() throws {
        let difference = SDPDifference(
            from: try description("answer-js-simulcast.sdp"), to: try description("answer-js-simulcast-r2-paused.sdp"))
        #expect(
            difference.changes.contains { $0.what == "simulcast" && $0.after?.contains("~r2") == true },
            "\(difference.text)")
        #expect(difference.changes.allSatisfy { !$0.jsonText.contains("\n") })
    }
}
