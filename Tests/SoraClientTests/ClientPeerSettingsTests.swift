import SoraICE
import SoraMessages
import SoraPeer
import SoraSDP
import SoraSecureTransport
import SoraWire
import TestSupport
import Testing

@testable import SoraClient

@Suite(.serialized, .leavesNoObjects) struct ClientPeerSettingsTests {
    private func configure(_ config: OfferICEConfiguration?) -> (configuration: PeerConfiguration, unusable: [String]) {
        var base = PeerConfiguration(certificate: World.certificates[0])
        base.ice.servers = [
            ICEServer(uri: ICEServerURI(isTURN: false, host: "stun.example", port: 3478, transport: .udp))
        ]
        base.ice.transportPolicy = .relay
        var offer = OfferMessage(sdp: "", connectionID: "C")
        offer.config = config
        return ClientPeerSettings(base: base).configuration(for: offer)
    }

    // api 3.1.8
    @Test func serversOfTheOfferReplaceTheConfiguredOnes() {
        let own = configure(nil).configuration.ice
        #expect(own.servers.map(\.uri.host) == ["stun.example"] && own.transportPolicy == .relay)
        #expect(configure(OfferICEConfiguration(iceServers: [])).configuration.ice.servers.isEmpty)
        let urls = ["turn:192.0.2.1:3478?transport=udp", "turns:turn.example:443?transport=tcp", "stun:192.0.2.1"]
        let server = OfferICEConfiguration.Server(urls: urls, username: "u", credential: "p")
        let ice = configure(OfferICEConfiguration(iceServers: [server], iceTransportPolicy: "relay")).configuration.ice
        #expect(
            ice.servers.map(\.uri.transport) == [.udp, .tls, .udp] && ice.servers.allSatisfy { $0.username == "u" })
        #expect(ice.transportPolicy == .relay)
    }

    // sig 10.4: a policy of any value is accepted; relay without a relay would be no connection at all.
    @Test func relayPolicyNeedsARelay() {
        for policy in ["relay", "all", "nonsense", nil] {
            let ice = configure(OfferICEConfiguration(iceServers: [], iceTransportPolicy: policy)).configuration.ice
            #expect(ice.transportPolicy == .all)
        }
    }

    // api 3.2.2: an answer that accepts nothing fails at once, and says why; there is no transport that could.
    @Test func anAnswerThatAcceptsNothingFailsAtOnce() throws {
        func adapter(_ media: MediaCapabilities) throws -> PeerConnectionAdapter {
            PeerConnectionAdapter(
                PeerConnection(
                    configuration: PeerConfiguration(certificate: try DTLSCertificate.selfSigned(), media: media),
                    now: .zero))
        }
        func failure(_ client: PeerConnectionAdapter, of offer: SessionDescription) throws -> String? {
            try client.accept(offer, now: .zero)
            client.beginAnswer(now: .zero)
            while let output = client.poll() {
                if case .answerFailed(let error) = output { return "\(error)" }
                if case .answer = output { return nil }
            }
            return "no answer"
        }
        let server = try adapter(World.media).connection
        _ = server.addTransceiver(kind: .audio, direction: .sendonly)
        let audioOnly = try server.makeOffer(now: .zero)
        #expect(
            try failure(adapter(.none), of: audioOnly)
                == """
                the session description cannot be used: none of its m-lines (audio) can be accepted; codecs of this \
                side: audio none, video none
                """)
        var empty = audioOnly
        empty.media = []
        empty.groups = []
        #expect(
            try failure(adapter(World.media), of: empty)?.contains("none of its m-lines (none) can be accepted") == true
        )
        // A data channel section is enough, and what is rejected later ends nothing.
        try server.rollback()
        server.enableDataChannels()
        let client = try adapter(.none)
        let offer = try server.makeOffer(now: .zero)
        #expect(try failure(client, of: offer) == nil)
        var rejected = offer
        for index in rejected.media.indices { rejected.media[index].port = 0 }
        rejected.groups = []
        let isRejected = rejected.media.allSatisfy(\.isRejected)
        #expect(isRejected)
        #expect(try failure(client, of: rejected) == nil)
    }

    // api 5.37
    @Test func activeOfEachEncodingReachesItsLayer() throws {
        func peer() throws -> PeerConnection {
            PeerConnection(
                configuration: PeerConfiguration(certificate: try DTLSCertificate.selfSigned(), media: World.media),
                now: .zero)
        }
        for pattern in [[false, true, true], [true, false, true], [false, false, false], [true, true, true]] {
            let encodings = zip(["r0", "r1", "r2"], pattern).map { rid, isActive in
                var encoding = SimulcastEncoding(rid: rid)
                encoding.active = isActive
                return encoding
            }
            for isSimulcast in [true, false] {
                let server = try peer()
                let video = server.addTransceiver(kind: .video, direction: .recvonly)
                if isSimulcast {
                    video.requestedLayers = ["r0", "r1", "r2"].map { RequestedLayer(rid: RestrictionID($0)) }
                }
                let offer = try server.makeOffer(now: .zero)
                let mid = try #require(video.mid?.rawValue)
                let client = PeerConnectionAdapter(try peer())
                // At every negotiation.
                for _ in 0..<2 {
                    if client.connection.signalingState == .stable { try client.accept(offer, now: .zero) }
                    let id = try client.attach(
                        LocalTrack(
                            isVideo: true, mid: mid, streamID: "s", trackID: "t", encodings: encodings,
                            isSimulcast: isSimulcast), now: .zero)
                    let sent = try #require(client.connection.transceiver(id))
                    // One stream alone is the first encoding.
                    #expect(sent.encodings.map(\.isActive) == (isSimulcast ? pattern : [pattern[0]]))
                }
            }
        }
    }

    @Test func unusableServersAreLeftOutAndNamed() {
        let server = OfferICEConfiguration.Server(urls: ["turn:192.0.2.1", "http://x", "stun:192.0.2.2"])
        let (configuration, unusable) = configure(OfferICEConfiguration(iceServers: [server]))
        #expect(configuration.ice.servers.map(\.uri.host) == ["192.0.2.2"])
        #expect(unusable.count == 2)
    }
}
