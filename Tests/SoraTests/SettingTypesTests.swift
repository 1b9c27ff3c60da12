import Foundation
import Testing

@testable import Sora

@Suite(.serialized, .leavesNoObjects) struct SettingTypesTests {
    private func json(_ value: some Encodable) throws -> String {
        String(decoding: try JSONEncoder().encode([value]), as: UTF8.self)
    }
    private func parse<Value: Decodable>(_ type: Value.Type, _ text: String) throws -> Value {
        try JSONDecoder().decode([Value].self, from: Data("[\(text)]".utf8))[0]
    }

    @Test func rolesTravelAsTheirNames() throws {
        for (role, text) in [(Role.sendonly, "sendonly"), (.recvonly, "recvonly"), (.sendrecv, "sendrecv")] {
            #expect(try json(role) == "[\"\(text)\"]")
            #expect(role.description == text)
            #expect(try parse(Role.self, "\"\(text)\"") == role)
        }
        #expect(throws: DecodingError.self) { try parse(Role.self, "\"SENDONLY\"") }
    }

    @Test func codecsTravelInCapitals() throws {
        for codec in [VideoCodec.default, .vp8, .vp9, .h264, .h265, .av1] {
            #expect(try parse(VideoCodec.self, "\"\(codec.description)\"") == codec)
            #expect(try json(codec) == "[\"\(codec)\"]")
        }
        #expect(VideoCodec.default.description == "default")
        #expect(VideoCodec.vp8.description == "VP8")
        #expect(VideoCodec.av1.description == "AV1")
        for codec in [AudioCodec.default, .opus, .pcmu] {
            #expect(try parse(AudioCodec.self, "\"\(codec.description)\"") == codec)
        }
        #expect(throws: DecodingError.self) { try parse(VideoCodec.self, "\"vp8\"") }
        #expect(throws: DecodingError.self) { try parse(AudioCodec.self, "7") }
    }

    @Test func ridsDecodeAndUnknownOnesAreInvalidMessages() throws {
        #expect(try parse(Rid.self, "\"none\"") == .none)
        #expect(try parse(Rid.self, "\"r2\"") == .r2)
        #expect(throws: SoraError.self) { try parse(Rid.self, "\"r3\"") }
    }

    @Test func sentOnlyRidsNeverDecode() throws {
        #expect(throws: SoraError.self) { try parse(SimulcastRid.self, "\"r0\"") }
        #expect(throws: SoraError.self) { try parse(SimulcastRequestRid.self, "\"r0\"") }
        #expect(throws: SoraError.self) { try parse(SpotlightRid.self, "\"r0\"") }
        #expect(throws: EncodingError.self) { try json(SimulcastRequestRid.unspecified) }
        #expect(try json(SpotlightRid.unspecified) == #"["unspecified"]"#)
        #expect(try json(SimulcastRid.r2) == #"["r2"]"#)
    }

    @Test func aspectRatiosGiveHeights() {
        #expect(AspectRatio.standard.height(forWidth: 4) == 3)
        #expect(AspectRatio.wide.height(forWidth: 16) == 9)
        #expect(AspectRatio.wide.scale(size: CGSize(width: 32, height: 1)) == CGSize(width: 32, height: 18))
    }

    @Test func resolutionsHaveTheirSizesAndNames() throws {
        let sizes: [(CameraSettings.Resolution, Int32, Int32, String)] = [
            (.qvga240p, 320, 240, "qvga240p"), (.vga480p, 640, 480, "vga480p"), (.qhd540p, 960, 540, "qhd540p"),
            (.hd720p, 1280, 720, "hd720p"), (.hd1080p, 1920, 1080, "hd1080p"), (.uhd2160p, 3840, 2160, "uhd2160p"),
            (.uhd3024p, 4032, 3024, "uhd3024p"),
        ]
        for (resolution, width, height, name) in sizes {
            #expect(resolution.width == width && resolution.height == height)
            #expect(try json(resolution) == "[\"\(name)\"]")
            #expect(try parse(CameraSettings.Resolution.self, "\"\(name)\"") == resolution)
        }
    }

    @Test func proxyDescriptionHidesThePassword() {
        let proxy = Proxy(host: "h", port: 1, agent: "a", username: "u", password: "secret")
        #expect(proxy.description == "host=h port=1 agent=a username=u password=******")
        let plain = Proxy(host: "h", port: 1)
        #expect(plain.description == "host=h port=1 agent=Sora for Swift \(SDKInfo.version) username= password=")
    }

    @Test func filtersWriteOnlyWhatIsSet() throws {
        let empty = try JSONSerialization.jsonObject(with: JSONEncoder().encode(ForwardingFilter(rules: [])))
        #expect(empty as? NSDictionary == ["rules": [Any]()])
        // LIF17: without an action.
        let full = ForwardingFilter(
            name: "n", priority: 2, rules: [[ForwardingFilterRule(field: .kind, operator: .isNotIn, values: ["v"])]],
            version: "1", metadata: ["k": [1]])
        let object = try JSONSerialization.jsonObject(with: JSONEncoder().encode(full)) as? NSDictionary
        let expected: NSDictionary = [
            "name": "n", "priority": 2, "version": "1", "metadata": ["k": [1]],
            "rules": [[["field": "kind", "operator": "is_not_in", "values": ["v"]]]],
        ]
        #expect(object == expected)
    }

    @Test func iceServersKeepTheirURIs() throws {
        let server = ICEServerInfo(urls: ["turn:t.example.com?transport=udp"], userName: "u", credential: nil)
        #expect(server.description == #"{"urls":["turn:t.example.com?transport=udp"],"username":"u"}"#)
        let decoded = try JSONDecoder().decode(ICEServerInfo.self, from: Data(server.description.utf8))
        #expect(decoded.urls == server.urls && decoded.userName == "u" && decoded.credential == nil)
        #expect(!decoded.skipsCertificateCheck)
    }

    @Test func iceCandidatesAreBareStrings() throws {
        let candidate = ICECandidate(url: URL(string: "https://example.com"), sdp: "candidate:1")
        #expect(try json(candidate) == #"["candidate:1"]"#)
        let decoded = try parse(ICECandidate.self, #""candidate:1""#)
        #expect(decoded.url == nil && decoded.sdp == "candidate:1")
        #expect(decoded != candidate)
    }

    @Test func webRTCConfigurationNeedsAllItsKeys() throws {
        let text =
            #"{"constraints":{"mandatory":{},"optional":{}},"iceServerInfos":[],"iceTransportPolicy":"all","sdpSemantics":"unifiedPlan"}"#
        let decoded = try JSONDecoder().decode(WebRTCConfiguration.self, from: Data(text.utf8))
        #expect(decoded.iceTransportPolicy == .all)
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode(WebRTCConfiguration.self, from: Data(#"{"iceServerInfos":[]}"#.utf8))
        }
        #expect(throws: DecodingError.self) { try parse(ICETransportPolicy.self, "\"none\"") }
    }

    @Test func randomStringsAvoidLookAlikes() {
        let text = Utilities.randomString(length: 5_000)
        #expect(text.count == 5_000)
        #expect(!text.contains { "lIO".contains($0) })
        #expect(Utilities.randomString(length: 0) == "" && Utilities.randomString(length: -3) == "")
        #expect(Utilities.randomString().count == 8)
    }

    @Test func stopwatchTextWrapsMinutes() {
        #expect(Utilities.clockText(seconds: 3909) == "01:05:09")
        #expect(Utilities.clockText(seconds: 0) == "00:00:00")
    }

    @Test func deviceInfoIsReadWithoutTheMainThread() {
        let info = DeviceInfo.current
        #expect(!info.machineName.isEmpty && !info.systemName.isEmpty && !info.systemVersion.isEmpty)
        #expect(info.description == "\(info.machineName); \(info.systemName) \(info.systemVersion)")
        #expect(WebRTCInfo.shortRevision.count <= 7)
    }

    @Test func dispatcherKeepsOrder() async {
        let journal = Journal()
        for number in 0..<100 { SoraDispatcher.async(on: .audio) { journal.add("\(number)") } }
        #expect(await journal.wait { $0.count == 100 })
        #expect(journal.entries == (0..<100).map(String.init))
    }
}
