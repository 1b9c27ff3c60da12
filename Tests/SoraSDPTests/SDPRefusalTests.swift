import SoraSDP
import SoraWire
import Testing

@Suite struct SDPRefusalTests {
    // SDP4, SDP9, SDP15
    @Test(arguments: [
        ("v=0", "vv=0"), ("v=0", "v=1"), ("v=0", "s=-"), ("s=-", "x=-"), ("s=-\n", ""),
        ("o=- 7303014511 1", "o=- seven 1"), ("IN IP4 0.0.0.0\ns", "IN IP4\ns"),
        ("7C:1D:81:", "7C:1D:"), ("7C:1D:81:", "7C:D:81:"), ("7C:1D:81:", "7C:1D:8G:"),
        ("opus/48000/2", "opus/0/2"), ("opus/48000/2", "opus"), ("opus/48000/2", "opus/48000/x"),
        ("a=extmap:1 ", "a=extmap:256 "), ("a=extmap:1 ", "a=extmap:0 "),
        (" urn:ietf:params:rtp-hdrext:sdes:mid", ""), ("a=extmap:1 ", "a=extmap:1/up "),
        ("a=rid:r0 recv", "a=rid:r0 sideways"), ("a=rid:r1 recv", "a=rid:r0 recv"), ("a=rid:r0 recv", "a=rid:r0"),
        ("candidate:1 1 udp", "candidate:1 300 udp"), ("candidate:1 1 udp", "candidate:1 0 udp"),
        ("typ host", "typ hostess"), (" typ host", ""), ("candidate:1 1 udp", "candidate:1 1 tcp"),
        ("candidate:1 1 udp", "candidate: 1 udp"), ("2130706431", "21307064312130706431"),
        ("192.0.2.10 50000", "192.0.2.10 65536"), ("typ host", "typ host generation"),
        ("m=video 9", "m=video 65536"), ("m=video 9", "m=video -9"), ("SAVPF 109", "SAVPF 255"),
        ("SAVPF 109", "SAVPF opus"), ("a=rtpmap:109", "a=rtpmap:128"), ("a=setup:actpass", "a=setup:sometimes"),
        ("a=ice-ufrag:abdb", "a=ice-ufrag:ab"), ("a=ice-ufrag:abdb\n", ""), ("a=ice-ufrag:abdb", "a=ice-ufrag:ab db"),
        ("a=mid:v", "a=mid:a"), ("a=mid:v", "a=mid:v\na=mid:w"), ("a=mid:v", "a=mid:v\na=ssrc:-5 cname:x"),
        ("a=mid:v", "a=mid:v\na=ssrc:4294967296 cname:x"), ("a=mid:v", "a=mid:v\na=ssrc-group:FID 1 x"),
        ("recv r0;~r1", "recv r0;;r1"), ("recv r0;~r1", "recv r0 recv r1"), ("recv r0;~r1", "recv"),
        ("a=sctp-port:5000", "a=sctp-port:65536"), ("a=max-message-size:262144", "a=max-message-size:lots"),
        ("a=mid:a", "b=AS\na=mid:a"), ("a=mid:a", "\na=mid:a"), ("a=mid:a", "a=mid:a\u{0}"),
        ("a=mid:a", "a=rtcp:70000\na=mid:a"), ("a=mid:a", "a=rtcp:9 IN\na=mid:a"),
        ("a=rtcp-fb:120 nack", "a=rtcp-fb:x nack"), ("a=rtcp-fb:120 nack", "a=rtcp-fb:120"),
        ("t=0 0", "garbage"), ("a=recvonly", "a=recvonly:yes"),
    ])
    func brokenLineRefusesTheDescription(good: String, broken: String) {
        #expect(changed(good, broken).isEmpty == false)
        #expect(throws: SDPError.self) { try SessionDescription(parsing: changed(good, broken)) }
    }

    // SDP9, SDP15
    @Test func errorNamesLineAndText() {
        do throws(SDPError) {
            _ = try SessionDescription(parsing: changed("m=video 9", "m=video 65536"))
            Issue.record("accepted")
        } catch {
            guard case .syntax(let line, let text, _) = error else {
                Issue.record("\(error)")
                return
            }
            #expect(line == 20 && text.hasPrefix("m=video 65536"))
            #expect(error.description.contains("line 20"))
        }
    }

    // SDP4
    @Test func candidateWithEmptyFoundationIsRefusedWhole() {
        let line = "a=candidate: 2 udp 1694498815 198.51.100.7 40000 typ srflx raddr 0.0.0.0 rport 0"
        #expect(throws: SDPError.self) { try SessionDescription(parsing: changed("a=mid:a", line + "\na=mid:a")) }
    }

    // SDP15
    @Test(arguments: [
        "a=setuptime:5", "a=ridiculous:1", "a=midway", "a=candidates:x", "a=x", "a=x:", "a=x:y", "b=AS:-1",
    ])
    func unknownAttributesAndNegativeBandwidthsAreIgnored(line: String) throws {
        let fixture = try SessionDescription(parsing: goodOffer)
        var session = try SessionDescription(parsing: changed("a=mid:a", line + "\na=mid:a"))
        session.media[0].otherAttributes = []
        #expect(session == fixture)
        var top = try SessionDescription(parsing: changed("a=ice-lite", line + "\na=ice-lite"))
        top.otherAttributes = []
        #expect(top == fixture)
    }

    // SDP10
    @Test func attributesInAllThreeFormsGiveValueOrError() {
        let names = [
            "ice-ufrag", "ice-pwd", "ice-options", "fingerprint", "setup", "sendrecv", "extmap", "extmap-allow-mixed",
            "group", "ice-lite", "msid-semantic", "mid", "rtcp-mux", "rtcp-rsize", "bundle-only", "end-of-candidates",
            "rtcp", "candidate", "rtpmap", "fmtp", "rtcp-fb", "msid", "ssrc", "ssrc-group", "rid", "simulcast",
            "sctp-port", "max-message-size", "sctpmap",
        ]
        for name in names {
            for form in ["a=\(name)", "a=\(name):", "a=\(name): ", "a=\(name):y"] {
                for place in ["a=mid:a", "a=ice-lite", "a=sctp-port:5000"] {
                    let text = changed(place, form + "\n" + place)
                    guard let session = try? SessionDescription(parsing: text) else { continue }
                    #expect((try? SessionDescription(parsing: session.serialized())) == session, "\(form)")
                }
            }
        }
        // A flag has no value; a valued attribute has one.
        for form in ["a=rtcp-mux:", "a=rtcp-mux:y", "a=setup", "a=setup:", "a=msid:", "a=candidate"] {
            #expect(throws: SDPError.self, "\(form)") {
                try SessionDescription(parsing: changed("a=mid:a", form + "\na=mid:a"))
            }
        }
    }
}

@Suite struct CodecCompatibilityTests {
    private func h264(_ id: String, mode: String? = "1") -> CodecDescription {
        var parameters: FormatParameters = ["profile-level-id": id]
        if let mode { parameters["packetization-mode"] = mode }
        return CodecDescription(
            payloadType: PayloadType(96), name: "H264", clockRate: 90_000, formatParameters: parameters)
    }

    // SDP17
    @Test func h264ProfilesMatchWhateverTheLevel() {
        #expect(h264("42e01f").isCompatible(with: h264("42e034")))
        #expect(h264("640c1f").isCompatible(with: h264("640c2a")))
        #expect(h264("42E01F").isCompatible(with: h264("42c00a")))
        #expect(h264("4d801f").isCompatible(with: h264("42e01f")))
        #expect(!h264("42e01f").isCompatible(with: h264("640c1f")))
        #expect(!h264("42e01f").isCompatible(with: h264("42001f")))
        #expect(!h264("640c1f").isCompatible(with: h264("64001f")))
        #expect(!h264("42e01f", mode: "0").isCompatible(with: h264("42e01f")))
        #expect(h264("42e01f", mode: nil).isCompatible(with: h264("42e01f", mode: "0")))
        #expect(!h264("zz").isCompatible(with: h264("zz")))
        #expect(H264ProfileLevel(profileLevelID: "640c1f")?.profile == .constrainedHigh)
    }

    @Test func otherCodecsCompareTheirProfile() {
        func codec(_ name: String, _ parameters: FormatParameters = [:], channels: Int? = nil) -> CodecDescription {
            CodecDescription(
                payloadType: PayloadType(96), name: name, clockRate: 90_000, channels: channels,
                formatParameters: parameters)
        }
        #expect(codec("VP9").isCompatible(with: codec("vp9", ["profile-id": "0"])))
        #expect(!codec("VP9").isCompatible(with: codec("VP9", ["profile-id": "2"])))
        #expect(!codec("AV1").isCompatible(with: codec("AV1", ["profile": "1"])))
        #expect(codec("opus", channels: nil).isCompatible(with: codec("opus", channels: 1)))
        #expect(!codec("opus", channels: 2).isCompatible(with: codec("opus", channels: 1)))
        #expect(!codec("VP8").isCompatible(with: codec("VP9")))
    }
}
