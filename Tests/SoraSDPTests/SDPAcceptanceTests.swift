import SoraSDP
import SoraWire
import Testing

/// A good description that the tests vary.
let goodOffer = """
    v=0
    o=- 7303014511 1 IN IP4 0.0.0.0
    s=-
    t=0 0
    a=group:BUNDLE a v d
    a=ice-lite
    m=audio 9 UDP/TLS/RTP/SAVPF 109
    c=IN IP4 0.0.0.0
    a=ice-ufrag:abdb
    a=ice-pwd:bce2d4eb55401c4977ccd20fX
    a=fingerprint:sha-256 7C:1D:81:85:82:0A:E0:BC:9B:7F:CE:B4:BE:A0:F0:0F:F1:E9:C2:02:13:5C:34:8A:B3:DE:19:D4:BD:31:8F:AF
    a=setup:actpass
    a=candidate:1 1 udp 2130706431 192.0.2.10 50000 typ host
    a=mid:a
    a=recvonly
    a=rtcp-mux
    a=extmap:1 urn:ietf:params:rtp-hdrext:sdes:mid
    a=rtpmap:109 opus/48000/2
    a=fmtp:109 minptime=10;useinbandfec=1
    m=video 9 UDP/TLS/RTP/SAVPF 120 121
    c=IN IP4 0.0.0.0
    a=ice-ufrag:abdb
    a=ice-pwd:bce2d4eb55401c4977ccd20fX
    a=fingerprint:sha-256 7C:1D:81:85:82:0A:E0:BC:9B:7F:CE:B4:BE:A0:F0:0F:F1:E9:C2:02:13:5C:34:8A:B3:DE:19:D4:BD:31:8F:AF
    a=setup:actpass
    a=mid:v
    a=recvonly
    a=rtcp-mux
    a=rtpmap:120 VP8/90000
    a=rtcp-fb:120 nack
    a=rtpmap:121 rtx/90000
    a=fmtp:121 apt=120
    a=rid:r0 recv
    a=rid:r1 recv
    a=simulcast:recv r0;~r1
    m=application 9 UDP/DTLS/SCTP webrtc-datachannel
    c=IN IP4 0.0.0.0
    a=ice-ufrag:abdb
    a=ice-pwd:bce2d4eb55401c4977ccd20fX
    a=fingerprint:sha-256 7C:1D:81:85:82:0A:E0:BC:9B:7F:CE:B4:BE:A0:F0:0F:F1:E9:C2:02:13:5C:34:8A:B3:DE:19:D4:BD:31:8F:AF
    a=setup:actpass
    a=mid:d
    a=sctp-port:5000
    a=max-message-size:262144

    """

/// `goodOffer` with the first occurrence of `line` replaced.
func changed(_ line: String, _ replacement: String) -> String {
    guard let range = goodOffer.range(of: line) else { return "" }
    return goodOffer.replacingCharacters(in: range, with: replacement)
}

extension String {
    func range(of needle: String) -> Range<String.Index>? {
        var start = startIndex
        while start < endIndex {
            if self[start...].hasPrefix(needle) { return start..<index(start, offsetBy: needle.count) }
            start = index(after: start)
        }
        return nil
    }
    func replacingCharacters(in range: Range<String.Index>, with text: String) -> String {
        String(self[..<range.lowerBound]) + text + String(self[range.upperBound...])
    }
}

@Suite struct SDPAcceptanceTests {
    let fixture: SessionDescription
    init() throws { fixture = try SessionDescription(parsing: goodOffer) }

    @Test func readsEveryPartOfTheTemplateOffer() throws {
        let offer = try SessionDescription(parsing: SDPFixtures.text("template-1-initial-offer.sdp"))
        #expect(offer.sessionID == "7303014511" && offer.sessionVersion == "1")
        #expect(offer.isICELite && offer.extmapAllowMixed && offer.msidSemantic == "WMS *")
        #expect(offer.bundledMids == [Mid("audio_a0B1"), Mid("video_c2D3"), Mid("data")])
        let video = offer.media[1]
        #expect(video.kind == .video && video.port == 9 && video.mid == Mid("video_c2D3"))
        #expect(video.direction == .recvonly && video.setup == .actpass && video.rtcpMux && video.rtcpReducedSize)
        #expect(video.codecs.map(\.name) == ["VP8", "rtx"])
        #expect(video.codecs[0].rtcpFeedback == ["goog-remb", "transport-cc", "ccm fir", "nack", "nack pli"])
        #expect(video.codecs[1].associatedPayloadType == PayloadType(120))
        #expect(video.retransmissionCodec(for: PayloadType(120))?.payloadType == PayloadType(121))
        #expect(video.headerExtension(HeaderExtensionURI.rid)?.id == 2)
        #expect(video.rids.map(\.id.rawValue) == ["r0", "r1", "r2"])
        #expect(video.simulcast?.receive.map { $0.map(\.rid.rawValue) } == [["r0"], ["r1"], ["r2"]])
        #expect(offer.media[0].candidates == ["candidate:1 1 udp 2130706431 192.0.2.10 50000 typ host"])
        #expect(offer.media[0].hasEndOfCandidates)
        #expect(offer.media[0].codecs[0].formatParameters["useinbandfec"] == "1")
        let data = offer.media[2]
        #expect(data.carriesDataChannels && data.sctpPort == 5000 && data.maxMessageSize == 262_144)
        #expect(data.iceCredentials?.usernameFragment == "abdb")
    }

    @Test func pausedLayersAreMarked() throws {
        let answer = try SessionDescription(parsing: SDPFixtures.text("answer-js-simulcast-r2-paused.sdp"))
        let layers = answer.media[0].simulcast?.send.compactMap(\.first) ?? []
        #expect(layers.map(\.isPaused) == [false, false, true])
    }

    // SDP1
    @Test func unusualLineEndsAndPlacesMakeNoDifference() throws {
        let crlf = goodOffer.split(separator: "\n", omittingEmptySubsequences: false).joined(separator: "\r\n")
        #expect(try SessionDescription(parsing: crlf) == fixture)
        #expect(try SessionDescription(parsing: String(crlf.dropLast(1))) == fixture)
        #expect(try SessionDescription(parsing: goodOffer + "\n\r\n") == fixture)
        var named = try SessionDescription(parsing: changed("s=-", "s= "))
        #expect(named.name == " ")
        named.name = "-"
        #expect(named == fixture)
        let title = try SessionDescription(parsing: changed("s=-", "s=Señor Über 会議"))
        #expect(title.name == "Señor Über 会議")
    }

    // SDP1
    @Test func connectionAndBandwidthMayStandAtSessionLevel() throws {
        let session = try SessionDescription(parsing: changed("t=0 0", "c=IN IP4 192.0.2.1\nb=AS:300\nt=0 0"))
        #expect(session.sessionLevel.connection == "IN IP4 192.0.2.1")
        #expect(session.sessionLevel.bandwidths == [BandwidthLimit(type: "AS", value: 300)])
        #expect(session.media == fixture.media)
    }

    // SDP1
    @Test func longCredentialsWithPlusAndSlashAreAccepted() throws {
        let user = String(repeating: "a+/Z", count: 64)
        let session = try SessionDescription(parsing: changed("a=ice-ufrag:abdb", "a=ice-ufrag:" + user))
        #expect(session.media[0].iceCredentials?.usernameFragment == user)
        #expect(throws: SDPError.self) {
            try SessionDescription(parsing: changed("a=ice-ufrag:abdb", "a=ice-ufrag:" + user + "x"))
        }
    }

    // SDP2
    @Test func answersWithoutSSRCLinesAreReadable() throws {
        for name in SDPFixtures.names where name.contains("answer") {
            let text = try SDPFixtures.text(name).split(separator: "\r\n").filter { !$0.hasPrefix("a=ssrc") }
                .joined(separator: "\r\n")
            let answer = try SessionDescription(parsing: text)
            #expect(answer.media.allSatisfy { $0.ssrcs.isEmpty && $0.ssrcGroups.isEmpty })
        }
    }

    // SDP3
    @Test func addressOfRTCPLineIsOptional() throws {
        let short = try SessionDescription(parsing: changed("a=mid:a", "a=mid:a\na=rtcp:40102"))
        #expect(short.media[0].rtcp == RTCPAddress(port: 40_102))
        let long = try SessionDescription(parsing: changed("a=mid:a", "a=mid:a\na=rtcp:40102 IN IP6 2001:db8::9"))
        #expect(long.media[0].rtcp == RTCPAddress(port: 40_102, address: "IN IP6 2001:db8::9"))
    }

    // SDP5
    @Test func sectionsNeedNoMid() throws {
        let session = try SessionDescription(
            parsing: changed("a=mid:a\n", "").replacing("BUNDLE a v d", with: "BUNDLE v d"))
        #expect(session.media[0].mid == nil)
        #expect(try SessionDescription(parsing: session.serialized()) == session)
    }

    // SDP6
    @Test func transportComesFromTheFirstLiveBundledSection() throws {
        let text = """
            v=0
            o=- 1 1 IN IP4 0.0.0.0
            s=-
            t=0 0
            a=group:BUNDLE c
            m=audio 0 UDP/TLS/RTP/SAVPF 0
            a=mid:a
            m=video 0 UDP/TLS/RTP/SAVPF 0
            a=mid:b
            m=application 9 UDP/DTLS/SCTP webrtc-datachannel
            a=mid:c
            a=ice-ufrag:live
            a=ice-pwd:aaaaaaaaaaaaaaaaaaaaaaaa
            """
        let session = try SessionDescription(parsing: text)
        #expect(session.transportSectionIndex == 2)
        #expect(session.transportAttributes?.iceCredentials?.usernameFragment == "live")
        // Without BUNDLE: the first section with a port.
        let unbundled = try SessionDescription(parsing: text.replacing("a=group:BUNDLE c\n", with: ""))
        #expect(unbundled.transportSectionIndex == 2)
        // A name that no section carries can be found out.
        let unknown = try SessionDescription(parsing: text.replacing("BUNDLE c", with: "BUNDLE c zz"))
        #expect(unknown.unknownBundledMids == [Mid("zz")])
    }

    @Test func bundleOnlyPortZeroIsNotRejected() throws {
        let session = try SessionDescription(
            parsing: changed("m=video 9", "m=video 0").replacing("a=mid:v", with: "a=mid:v\na=bundle-only"))
        #expect(!session.media[1].isRejected && session.media[1].port == 0)
    }

    // SDP8
    @Test func descriptionWithoutSectionsIsLegal() throws {
        let session = try SessionDescription(parsing: "v=0\no=- 1 2 IN IP4 0.0.0.0\ns=-\nt=0 0\n")
        #expect(session.media.isEmpty && session.transportAttributes == nil)
        #expect(try SessionDescription(parsing: session.serialized()) == session)
    }

    // SDP9
    @Test func longOriginVersionIsKeptAsText() throws {
        let version = String(repeating: "9", count: 25)
        let session = try SessionDescription(parsing: changed("7303014511 1", "7303014511 \(version)"))
        #expect(session.sessionVersion == version)
    }

    // SDP16
    @Test func allGroupsAndOptionsAreKept() throws {
        let session = try SessionDescription(
            parsing: changed("a=group:BUNDLE a v d", "a=group:BUNDLE a v\na=group:LS v a\na=ice-options:trickle ice2"))
        #expect(session.groups.map(\.semantics) == ["BUNDLE", "LS"])
        #expect(session.groups[1].mids == [Mid("v"), Mid("a")])
        #expect(session.media[0].iceOptions == ["trickle", "ice2"])
        #expect(session.serialized().contains("a=ice-options:trickle ice2\r\n"))
    }

    // SDP18
    @Test func wildcardFeedbackAddsToEveryPayloadType() throws {
        let session = try SessionDescription(
            parsing: changed("a=rtcp-fb:120 nack", "a=rtcp-fb:* ccm fir\na=rtcp-fb:120 nack\na=rtcp-fb:* nack"))
        #expect(session.media[1].codecs[0].rtcpFeedback == ["nack", "ccm fir"])
        #expect(session.media[1].codecs[1].rtcpFeedback == ["ccm fir", "nack"])
    }

    // SDP19
    @Test func olderDataSectionIsReadAndWrittenInItsOwnForm() throws {
        let text = """
            v=0
            o=- 1 1 IN IP4 0.0.0.0
            s=-
            t=0 0
            m=application 54111 DTLS/SCTP 6001
            a=mid:data
            a=sctpmap:6001 webrtc-datachannel 16
            """
        let session = try SessionDescription(parsing: text)
        let data = session.media[0]
        #expect(data.carriesDataChannels && data.usesLegacySCTPSyntax)
        #expect(data.sctpPort == 6001 && data.sctpMapStreams == 16 && data.effectiveMaxMessageSize == 65_536)
        #expect(session.serialized().contains("m=application 54111 DTLS/SCTP 6001\r\n"))
        #expect(session.serialized().contains("a=sctpmap:6001 webrtc-datachannel 16\r\n"))
        #expect(try SessionDescription(parsing: session.serialized()) == session)
    }

    @Test func sessionLevelAttributesReachEverySection() throws {
        let text = """
            v=0
            o=- 1 1 IN IP4 0.0.0.0
            s=-
            c=IN IP4 192.0.2.9
            t=0 0
            a=ice-ufrag:user
            a=ice-pwd:aaaaaaaaaaaaaaaaaaaaaaaa
            a=ice-options:trickle
            a=fingerprint:sha-1 00:01:02:03:04:05:06:07:08:09:0A:0B:0C:0D:0E:0F:10:11:12:13
            a=setup:active
            a=extmap:3 urn:3gpp:video-orientation
            a=sendonly
            m=audio 9 UDP/TLS/RTP/SAVPF 0
            m=video 9 UDP/TLS/RTP/SAVPF 96
            a=setup:passive
            a=recvonly
            a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid
            a=rtpmap:96 VP8/90000
            """
        let session = try SessionDescription(parsing: text)
        #expect(session.media[0].direction == .sendonly && session.media[1].direction == .recvonly)
        #expect(session.media[0].setup == .active && session.media[1].setup == .passive)
        #expect(session.media.allSatisfy { $0.iceCredentials?.usernameFragment == "user" })
        #expect(session.media.allSatisfy { $0.fingerprints.count == 1 && $0.iceOptions == ["trickle"] })
        #expect(session.media.allSatisfy { $0.connection == "IN IP4 192.0.2.9" })
        #expect(session.media[1].headerExtensions.map(\.id) == [4, 3])
        #expect(session.media[0].codecs[0].name == "PCMU")
        #expect(try SessionDescription(parsing: session.serialized()) == session)
    }

    @Test func valuesCannotSmuggleLines() throws {
        var session = fixture
        session.media[0].msids = [MediaStreamIdentifier(stream: "x\r\na=inactive", track: "t")]
        #expect(session.serialized().contains("a=msid:xa=inactive t\r\n"))
    }
}
