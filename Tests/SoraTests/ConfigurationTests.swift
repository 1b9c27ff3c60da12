import Foundation
import Testing

@testable import Sora

@Suite(.serialized, .leavesNoObjects) struct ConfigurationTests {
    private struct Thrower: Encodable {
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: SignalingKey.self)
            try container.encode(1, forKey: "half")
            throw SoraError.connectionTimeout
        }
    }
    private struct Nested: Encodable {
        let depth: Int
        func encode(to encoder: any Encoder) throws {
            var container = encoder.unkeyedContainer()
            if depth > 0 { try container.encode(Nested(depth: depth - 1)) }
        }
    }
    private final class Mutable: Encodable {
        var value: Int
        init(_ value: Int) { self.value = value }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(value)
        }
    }

    private func reason(_ change: (inout Configuration) -> Void) -> String? {
        var configuration = Stage.configuration()
        change(&configuration)
        do {
            _ = try ConfigurationSnapshot(configuration)
            return nil
        } catch {
            if case .configurationError(let reason) = error { return reason }
            return "another error"
        }
    }

    @Test func defaultsAreAcceptable() {
        #expect(reason { _ in } == nil)
    }

    // LIF15: no value of the application aborts or hangs.
    // api 5.13
    @Test func metadataThatIsNotJSONIsRefused() {
        let connect = "signaling connect metadata could not be encoded"
        #expect(reason { $0.signalingConnectMetadata = Thrower() } == connect)
        #expect(reason { $0.signalingConnectMetadata = Double.nan } == connect)
        #expect(reason { $0.signalingConnectMetadata = ["a": Decimal.nan] } == connect)
        #expect(reason { $0.signalingConnectMetadata = [Float.infinity] } == connect)
        #expect(reason { $0.signalingConnectMetadata = Nested(depth: 2_000) } == connect)
        #expect(
            reason { $0.signalingConnectNotifyMetadata = Thrower() }
                == "signaling notify metadata could not be encoded")
    }

    // api 5.13
    @Test func dataChannelsMustBeJSON() {
        let text = "data channels are not JSON-serializable"
        #expect(reason { $0.dataChannels = [["label": Date()]] } == text)
        #expect(reason { $0.dataChannels = [["label": Mutable(1)]] } == text)
        #expect(reason { $0.dataChannels = [["max_retransmits": Double.nan]] } == text)
        #expect(reason { $0.dataChannels = "#label" } == text)
        #expect(reason { $0.dataChannels = [["label": "#a", "ordered": false, "max_retransmits": 0]] } == nil)
    }

    @Test func filterMetadataIsChecked() {
        let text = "forwarding filter metadata could not be encoded"
        #expect(reason { $0.forwardingFilter = ForwardingFilter(rules: [], metadata: Thrower()) } == text)
        #expect(
            reason {
                $0.forwardingFilters = [ForwardingFilter(rules: []), ForwardingFilter(rules: [], metadata: Double.nan)]
            } == text)
    }

    @Test func onlyCodecParametersThatAreSentAreChecked() {
        for (codec, name) in [(VideoCodec.vp9, "vp9"), (.av1, "av1"), (.h264, "h264"), (.h265, "h265")] {
            let change: (inout Configuration) -> Void = {
                $0.videoVp9Params = Thrower()
                $0.videoAv1Params = Thrower()
                $0.videoH264Params = Thrower()
                $0.videoH265Params = Thrower()
                $0.videoCodec = codec
            }
            #expect(reason(change) == "video \(name) params could not be encoded")
            #expect(
                reason {
                    change(&$0)
                    $0.videoEnabled = false
                } == nil)
            #expect(
                reason {
                    change(&$0)
                    $0.videoCodec = .vp8
                } == nil)
        }
        #expect(
            reason {
                $0.audioCodec = .opus
                $0.audioOpusParams = Thrower()
            } == "audio opus params could not be encoded")
        #expect(reason { $0.audioOpusParams = Thrower() } == nil)
    }

    @Test func stereoNeedsAudioInOpus() {
        #expect(
            reason {
                $0.audioStereoOutputEnabled = true
                $0.audioEnabled = false
            } == "audioStereoOutputEnabled requires audioEnabled to be true")
        #expect(
            reason {
                $0.audioStereoOutputEnabled = true
                $0.audioCodec = .pcmu
            } == "audioStereoOutputEnabled does not support PCMU")
        #expect(reason { $0.audioStereoOutputEnabled = true } == nil)
    }

    @Test func theFirstFaultInOrderIsReported() {
        #expect(
            reason {
                $0.audioStereoOutputEnabled = true
                $0.audioEnabled = false
                $0.dataChannels = 1
                $0.signalingConnectNotifyMetadata = Thrower()
            } == "signaling notify metadata could not be encoded")
    }

    // api 5.14
    @Test func theSnapshotDoesNotFollowLaterChanges() throws {
        let metadata = Mutable(1)
        let server = ICEServerInfo(urls: ["turn:a"], userName: "u", credential: "c")
        var configuration = Stage.configuration()
        configuration.signalingConnectMetadata = metadata
        configuration.webRTCConfiguration.iceServerInfos = [server]
        let snapshot = try ConfigurationSnapshot(configuration)
        metadata.value = 2
        server.urls = ["turn:b"]
        #expect(snapshot.metadata?.text == "1")
        #expect(snapshot.iceServers.first?.urls == ["turn:a"])
    }

    @Test func equalURLsAreDialledOnce() throws {
        let url = URL(string: "wss://a.example.com/signaling")!
        let other = URL(string: "wss://b.example.com/signaling")!
        let configuration = Configuration(urlCandidates: [url, other, url], channelId: "c", role: .recvonly)
        #expect(try ConfigurationSnapshot(configuration).urlCandidates == [url, other])
    }

    // LIF16: unset, null and empty object stay three things.
    // api 5.25
    @Test func unsetNullAndEmptyMetadataDiffer() throws {
        var configuration = Stage.configuration()
        #expect(try ConfigurationSnapshot(configuration).metadata == nil)
        configuration.signalingConnectMetadata = Optional<Int>.none as Int?
        #expect(try ConfigurationSnapshot(configuration).metadata == nil)
        configuration.signalingConnectMetadata = JSONValue.null
        #expect(try ConfigurationSnapshot(configuration).metadata?.text == "null")
        configuration.signalingConnectMetadata = [String: String]()
        #expect(try ConfigurationSnapshot(configuration).metadata?.text == "{}")
        configuration.signalingConnectMetadata = JSONValue.object(["a": .null, "b": .array([.null])])
        let text = try #require(try ConfigurationSnapshot(configuration).metadata?.text)
        #expect(text == #"{"a":null,"b":[null]}"# || text == #"{"b":[null],"a":null}"#)
    }

    @Test func secretsOfASnapshotAreItsTexts() throws {
        var configuration = Configuration(
            url: URL(string: "wss://user:urlpass@a.example.com/s?token=querytoken")!, channelId: "c", role: .recvonly)
        configuration.proxy = Proxy(host: "h", port: 1, username: "u", password: "proxypass")
        configuration.signalingConnectMetadata = ["access": ["deep": "metatoken"]]
        configuration.webRTCConfiguration.iceServerInfos = [
            ICEServerInfo(urls: [], userName: "u", credential: "turncredential")
        ]
        let secrets = try ConfigurationSnapshot(configuration).secrets
        for secret in ["urlpass", "token=querytoken", "proxypass", "metatoken", "turncredential"] {
            #expect(secrets.contains(secret))
        }
    }

    @Test func spotlightBridgeMapsBothWays() {
        var configuration = Stage.configuration()
        configuration.spotlightEnabled = .enabled
        #expect(configuration.isSpotlightEnabled)
        configuration.isSpotlightEnabled = false
        #expect(configuration.spotlightEnabled == .disabled)
    }
}
