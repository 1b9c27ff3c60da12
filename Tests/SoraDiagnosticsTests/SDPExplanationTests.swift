import Foundation
import SoraMessages
import SoraNetwork
import SoraSDP
import SoraWire
import Testing

@testable import SoraDiagnostics

/// Recorded descriptions and messages of real clients.
enum Fixtures {
    static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Fixtures/signaling")

    static func text(_ name: String) throws -> String {
        String(decoding: try Data(contentsOf: folder.appendingPathComponent(name)), as: UTF8.self)
    }

    static let names: [String] =
        ((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? [])
        .filter { $0.hasSuffix(".sdp") || $0.hasSuffix(".json") }.sorted()
    static let descriptions = names.filter { $0.hasSuffix(".sdp") }
}

@Suite struct SDPExplanationTests {
    private func explanation(_ sdp: String, kind: SDPDocument.Kind? = nil) throws -> SDPExplanation {
        SDPExplanation(SDPDocument(try SessionDescription(parsing: sdp), kind: kind))
    }

    /// A good offer, to be spoilt by the tests.
    private static let offer = """
        v=0
        o=- 1 1 IN IP4 0.0.0.0
        s=-
        t=0 0
        a=group:BUNDLE audio_1 video_1 data
        m=audio 9 UDP/TLS/RTP/SAVPF 109
        c=IN IP4 0.0.0.0
        a=ice-ufrag:secretuser
        a=ice-pwd:topsecrettopsecrettopsecret
        a=fingerprint:sha-256 \(Array(repeating: "AB", count: 32).joined(separator: ":"))
        a=setup:actpass
        a=candidate:1 1 udp 2130706431 192.0.2.10 50000 typ host
        a=end-of-candidates
        a=mid:audio_1
        a=recvonly
        a=rtcp-mux
        a=rtpmap:109 opus/48000/2
        a=fmtp:109 minptime=10;useinbandfec=1
        m=video 9 UDP/TLS/RTP/SAVPF 120 121
        a=ice-ufrag:secretuser
        a=ice-pwd:topsecrettopsecrettopsecret
        a=fingerprint:sha-256 \(Array(repeating: "AB", count: 32).joined(separator: ":"))
        a=setup:actpass
        a=mid:video_1
        a=sendonly
        a=msid:S8YEN0TSE13JDC2991NG4XZ150 track
        a=rtcp-mux
        a=extmap:1 urn:ietf:params:rtp-hdrext:sdes:mid
        a=rtpmap:120 H264/90000
        a=fmtp:120 profile-level-id=42e01f;packetization-mode=1
        a=rtcp-fb:120 nack
        a=rtcp-fb:120 nack pli
        a=rtpmap:121 rtx/90000
        a=fmtp:121 apt=120
        m=application 9 UDP/DTLS/SCTP webrtc-datachannel
        a=ice-ufrag:secretuser
        a=ice-pwd:topsecrettopsecrettopsecret
        a=fingerprint:sha-256 \(Array(repeating: "AB", count: 32).joined(separator: ":"))
        a=setup:actpass
        a=mid:data
        a=sctp-port:5000
        a=max-message-size:262144

        """

    // MARK: Fixtures

    @Test(arguments: Fixtures.descriptions)
    func explainsEveryRecordedDescriptionWithoutFaults(_ name: String) throws {
        let document = try #require(try SDPDocument.find(in: Fixtures.text(name)).first)
        let explanation = SDPExplanation(document)
        // The throw-away offer of a browser has no candidates, but is no fault either.
        #expect(!explanation.hasFaults, "\(explanation.findings)")
        #expect(document.kind == (name.contains("answer") ? .answer : .offer))
        let sections = explanation.groups.filter { $0.title.hasPrefix("Section") }
        #expect(sections.count == document.description.media.count)
        let text = explanation.text
        for credentials in document.description.media.compactMap(\.iceCredentials) {
            #expect(!text.contains(credentials.password))
            #expect(!explanation.jsonText.contains(credentials.password))
        }
        // One JSON object on one line.
        #expect(!explanation.jsonText.contains("\n"))
        #expect(
            try JSONValue(parsing: explanation.jsonText).objectValue?["sections"]?.arrayValue?.count == sections.count)
    }

    @Test(arguments: Fixtures.names.filter { $0.hasSuffix(".json") })
    func findsTheDescriptionsInEveryRecordedMessage(_ name: String) throws {
        let text = try Fixtures.text(name)
        let expected = text.components(separatedBy: "\"sdp\": \"v=").count - 1
        guard expected > 0 else {
            #expect(throws: SDPDocumentError.noDescription) { try SDPDocument.find(in: text) }
            return
        }
        let found = try SDPDocument.find(in: text)
        #expect(found.count == expected)
        for document in found { #expect(!SDPExplanation(document).hasFaults) }
    }

    @Test func explainsTheMessageAroundAnOffer() throws {
        let document = try #require(try SDPDocument.find(in: Fixtures.text("offer-template.json")).first)
        let text = SDPExplanation(document).text
        #expect(document.writer == "server" && document.reader == "client")
        #expect(text.contains("Message"))
        #expect(text.contains("the client may send, the server receives"))
        let offer = try #require(document.offer)
        for server in offer.config?.iceServers ?? [] {
            for secret in [server.credential, server.username].compactMap({ $0 }) where secret.count > 3 {
                #expect(!text.contains(secret))
            }
        }
    }

    // MARK: Words

    @Test func saysWhoSendsFromBothViews() throws {
        let text = try explanation(Self.offer).text
        #expect(text.contains("recvonly: the answerer may send, the offerer receives"))
        #expect(text.contains("sendonly: the offerer sends, the answerer receives"))
    }

    @Test func explainsTransportCodecsAndChannels() throws {
        let text = try explanation(Self.offer).text
        for words in [
            "audio_1, video_1, data share one transport", "1 host", "192.0.2.10:50000/udp", "none will follow",
            "actpass: the other side chooses who begins", "109 opus/48000/2", "repairs losses by itself",
            "constrainedBaseline, level 3.1", "rtx 121", "asks for a key frame (PLI)", "262144 bytes",
            "stream: S8YEN0TSE13JDC2991NG4XZ150, track track", "mid: which section a packet belongs to",
            "Nothing is wrong with it.",
        ] { #expect(text.contains(words), "\(words) in \(text)") }
    }

    @Test func masksCredentials() throws {
        let explanation = try explanation(Self.offer)
        for output in [explanation.text, explanation.jsonText] {
            #expect(!output.contains("topsecret"))
            #expect(!output.contains("secretuser"))
        }
        #expect(explanation.text.contains("••• (27 characters)"))
    }

    // MARK: Findings

    struct Spoilt: CustomTestStringConvertible, Sendable {
        var name: String
        var find: String
        var replacement: String
        var severity: SDPFinding.Severity
        var text: String
        var testDescription: String { name }
    }

    static let spoilt: [Spoilt] = [
        Spoilt(
            name: "no fingerprint", find: "a=fingerprint:", replacement: "a=x-fingerprint:", severity: .fault,
            text: "no a=fingerprint"),
        Spoilt(
            name: "weak hash", find: "sha-256 \(Array(repeating: "AB", count: 32).joined(separator: ":"))",
            replacement: "sha-1 \(Array(repeating: "AB", count: 20).joined(separator: ":"))", severity: .fault,
            text: "weak or unknown hashes"),
        Spoilt(
            name: "plain RTP", find: "m=audio 9 UDP/TLS/RTP/SAVPF", replacement: "m=audio 9 RTP/AVP", severity: .fault,
            text: "not protected by DTLS"),
        Spoilt(
            name: "bundle names nobody", find: "BUNDLE audio_1", replacement: "BUNDLE ghost audio_1", severity: .fault,
            text: "names ghost, which no section has"),
        Spoilt(
            name: "section outside of the bundle", find: " video_1 data\n", replacement: " data\n", severity: .fault,
            text: "not in a=group:BUNDLE"),
        Spoilt(name: "no credentials", find: "a=ice-", replacement: "a=x-", severity: .fault, text: "no a=ice-ufrag"),
        Spoilt(
            name: "no candidate", find: "a=candidate:", replacement: "a=x-candidate:", severity: .fault,
            text: "none will follow"),
        Spoilt(name: "loopback only", find: "192.0.2.10", replacement: "127.0.0.1", severity: .note, text: "loopback"),
        Spoilt(
            name: "unspecified address", find: "192.0.2.10", replacement: "0.0.0.0", severity: .warning,
            text: "unspecified address"),
        Spoilt(
            name: "name", find: "192.0.2.10", replacement: "a.local", severity: .warning,
            text: "all candidates are names"),
        Spoilt(
            name: "no rtcp-mux", find: "a=rtcp-mux", replacement: "a=x-mux", severity: .fault, text: "no a=rtcp-mux"),
        Spoilt(
            name: "active offer", find: "setup:actpass", replacement: "setup:active", severity: .warning,
            text: "offer with setup:active"),
        Spoilt(
            name: "holdconn", find: "setup:actpass", replacement: "setup:holdconn", severity: .fault, text: "holdconn"),
        Spoilt(
            name: "recvonly with msid", find: "a=recvonly", replacement: "a=recvonly\na=msid:a b", severity: .warning,
            text: "carries a=msid or a=ssrc"),
        Spoilt(
            name: "placeholder", find: "a=msid:S8YEN0TSE13JDC2991NG4XZ150", replacement: "a=msid:default",
            severity: .note, text: "\"default\""),
        Spoilt(name: "rtx of nothing", find: "apt=120", replacement: "apt=99", severity: .warning, text: "repeats 99"),
        Spoilt(
            name: "no key frame requests", find: "a=rtcp-fb:120 nack pli", replacement: "a=x", severity: .warning,
            text: "no feedback that asks for key frames"),
        Spoilt(
            name: "no profile", find: "42e01f", replacement: "zzzzzz", severity: .warning, text: "is no H.264 profile"),
        Spoilt(
            name: "simulcast without rid extension", find: "a=sendonly",
            replacement: "a=sendonly\na=rid:r0 send\na=simulcast:send r0", severity: .fault,
            text: "without the header extension rtp-stream-id"),
        Spoilt(
            name: "simulcast of unknown layers", find: "a=sendonly", replacement: "a=sendonly\na=simulcast:send r7",
            severity: .warning, text: "names r7"),
        Spoilt(
            name: "payload type with two meanings", find: "SAVPF 109",
            replacement: "SAVPF 109 120\na=rtpmap:120 PCMU/8000", severity: .fault, text: "payload type 120 means"),
        Spoilt(
            name: "no SCTP port", find: "a=sctp-port:5000", replacement: "a=x", severity: .warning,
            text: "no a=sctp-port"),
        Spoilt(
            name: "no message size", find: "a=max-message-size:262144", replacement: "a=x", severity: .note,
            text: "no a=max-message-size"),
        Spoilt(
            name: "data channels in the clear", find: "UDP/DTLS/SCTP", replacement: "UDP/SCTP2", severity: .fault,
            text: "is not SCTP over DTLS"),
    ]

    @Test(arguments: spoilt) func finds(_ spoilt: Spoilt) throws {
        let sound = try explanation(Self.offer, kind: .offer)
        #expect(sound.findings.isEmpty, "\(sound.findings)")
        let sdp = Self.offer.replacing(spoilt.find, with: spoilt.replacement)
        #expect(sdp != Self.offer)
        let explanation = try explanation(sdp, kind: .offer)
        let found = explanation.findings.filter { $0.text.contains(spoilt.text) }
        #expect(!found.isEmpty, "\(explanation.findings)")
        #expect(found.allSatisfy { $0.severity == spoilt.severity && !$0.advice.isEmpty })
        #expect(explanation.hasFaults == explanation.findings.contains { $0.severity == .fault })
        // The worst first.
        #expect(explanation.findings.map(\.severity) == explanation.findings.map(\.severity).sorted())
    }

    @Test func findsWhatTheMessageAndItsDescriptionContradict() throws {
        func findings(_ change: (inout JSONObject) -> Void) throws -> [String] {
            var object: JSONObject = [
                "type": "offer", "connection_id": "c", "client_id": "c", "sdp": .string(Self.offer),
                "config": ["iceServers": [], "iceTransportPolicy": "all"], "mid": ["audio": "audio_1"],
                "data_channel_signaling": true,
            ]
            change(&object)
            let document = try #require(try SDPDocument.find(in: object.text).first)
            return SDPExplanation(document).findings.map(\.text)
        }
        #expect(try findings { _ in } == [])
        #expect(try findings { $0["mid"] = ["video": "nobody"] }.contains { $0.contains("which no section has") })
        #expect(try findings { $0["mid"] = ["video": "video_1"] }.contains { $0.contains("sendonly") })
        #expect(try findings { $0["config"] = nil }.contains { $0.contains("no config") })
        #expect(
            try findings { $0["config"] = ["iceServers": [], "iceTransportPolicy": "relay"] }
                .contains { $0.contains("no TURN server") })
        #expect(
            try findings {
                $0["sdp"] = .string(
                    Self.offer.replacing("m=application 9", with: "m=application 0").replacing(" data\n", with: "\n"))
            }
            .contains { $0.contains("no section carries data channels") })
    }

    @Test func saysWhyATextCannotBeExplained() {
        #expect(throws: SDPDocumentError.empty) { try SDPDocument.find(in: " \n") }
        #expect(throws: SDPDocumentError.noDescription) { try SDPDocument.find(in: "{\"type\":\"ping\"}") }
        #expect(throws: SDPDocumentError.self) { try SDPDocument.find(in: "{\"type\":") }
        do {
            _ = try SDPDocument.find(in: "v=0\no=nonsense\n")
            Issue.record("accepted")
        } catch {
            #expect("\(error)".contains("line 2") || "\(error)".contains("2"), "\(error)")
        }
    }

    @Test func neverTrapsOnDamagedInput() throws {
        let bytes = Array(Self.offer.utf8)
        var random = RandomSource(seed: 5)
        for _ in 0..<300 {
            var damaged = bytes
            for _ in 0..<3 {
                let place = Int(random.next() % UInt64(damaged.count))
                switch random.next() % 3 {
                case 0: damaged[place] = UInt8(truncatingIfNeeded: random.next())
                case 1: damaged.removeSubrange(place..<min(place + 20, damaged.count))
                default: damaged.removeLast(min(damaged.count - 1, 40))
                }
            }
            guard let documents = try? SDPDocument.find(in: String(decoding: damaged, as: UTF8.self)) else { continue }
            for document in documents {
                let explanation = SDPExplanation(document)
                #expect(!explanation.text.isEmpty)
                #expect(SDPDifference(from: document.description, to: document.description).isEmpty)
            }
        }
    }

    @Test func neverTrapsOnDamagedMessages() throws {
        let bytes = Array(try Fixtures.text("offer-template.json").utf8)
        var random = RandomSource(seed: 6)
        var readable = 0
        for _ in 0..<300 {
            var damaged = bytes
            let place = Int(random.next() % UInt64(damaged.count))
            damaged[place] = UInt8(truncatingIfNeeded: random.next())
            if random.next() % 4 == 0 { damaged.removeLast(Int(random.next() % UInt64(damaged.count))) }
            guard let documents = try? SDPDocument.find(in: String(decoding: damaged, as: UTF8.self)) else { continue }
            readable += documents.count
            for document in documents {
                let json = try JSONValue(parsing: SDPExplanation(document).jsonText)
                #expect(json.objectValue?["findings"] != nil)
            }
        }
        #expect(readable > 0)
    }

    @Test func readsDamagedCertificatesWithoutHarm() throws {
        let identity = try TLSIdentity.generate(names: ["127.0.0.1", "a.example.com"])
        let der = try #require(try CertificateBundle(pem: identity.certificateChain).certificates.first)
        let summary = try #require(CertificateSummary(der: der))
        #expect(summary.subject == "CN=127.0.0.1" && summary.isSelfSigned)
        #expect(summary.names == "IP Address:127.0.0.1, DNS:a.example.com")
        #expect((363...365).contains(summary.daysLeft))
        #expect(CertificateSummary(der: []) == nil)
        for place in der.indices {
            var damaged = der
            damaged[place] ^= 0x55
            if let summary = CertificateSummary(der: damaged) { #expect(!summary.description.contains("\n")) }
            if place % 7 == 0 { #expect(CertificateSummary(der: Array(der[..<place])) == nil) }
        }
    }

    @Test func masksUserAndQueryOfURLs() {
        #expect(
            Masking.url("wss://user:pass@h.example/signaling?token=abc&x")
                == "wss://•••@h.example/signaling?token=•••&•••")
        #expect(Masking.url("wss://h.example/a") == "wss://h.example/a")
        #expect(Masking.removing(["hunter2!", "ab"], from: "say hunter2! ab") == "say ••• ab")
        #expect(Masking.line("a\u{1B}[2Jb\nc") == "a [2Jb c")
    }
}
