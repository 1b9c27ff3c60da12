import SoraEmulator
import SoraICE
import SoraPeer
import SoraRTP
import SoraSDP
import SoraSecureTransport
import SoraWire

/// Two peer connections and the links between them, in virtual time.
final class PeerPair {
    enum Side: Int, CaseIterable {
        case offerer, answerer
        var other: Side { self == .offerer ? .answerer : .offerer }
    }

    private(set) var now = Instant.zero
    let offerer: PeerConnection
    let answerer: PeerConnection
    private var links: [EmulatedLink<[UInt8]>]
    private(set) var outputs: [[PeerConnection.Output]] = [[], []]
    /// Datagrams of either side that are dropped before they reach the link.
    var drop: ((Side, [UInt8]) -> Bool)?
    private let addresses = [SocketAddress(.v4(0x0A00_0001), port: 1000), SocketAddress(.v4(0x0A00_0002), port: 2000)]

    static let certificates: [DTLSCertificate] = {
        // Two identities serve all tests: making one costs a key generation.
        guard let a = try? DTLSCertificate.selfSigned(), let b = try? DTLSCertificate.selfSigned() else { return [] }
        return [a, b]
    }()

    static let media = MediaCapabilities(
        audioCodecs: [
            CodecDescription(
                payloadType: PayloadType(109), name: "opus", clockRate: 48_000, channels: 2,
                rtcpFeedback: ["transport-cc"])
        ],
        videoCodecs: [
            CodecDescription(
                payloadType: PayloadType(120), name: "VP8", clockRate: 90_000,
                rtcpFeedback: ["nack", "nack pli", "ccm fir", "transport-cc"]),
            CodecDescription(
                payloadType: PayloadType(121), name: "rtx", clockRate: 90_000,
                formatParameters: FormatParameters([SDPAttribute("apt", "120")])),
        ],
        audioExtensions: [HeaderExtensionDescription(id: 1, uri: HeaderExtensionURI.mid)],
        videoExtensions: [
            HeaderExtensionDescription(id: 1, uri: HeaderExtensionURI.mid),
            HeaderExtensionDescription(id: 2, uri: HeaderExtensionURI.rid),
            HeaderExtensionDescription(id: 3, uri: HeaderExtensionURI.repairedRid),
            HeaderExtensionDescription(id: 5, uri: HeaderExtensionURI.transportWideCC),
            HeaderExtensionDescription(id: 7, uri: HeaderExtensionURI.videoOrientation),
        ])

    init(
        conditions: LinkConditions = .perfect, seed: UInt64 = 1, offererIsLite: Bool = true,
        media: MediaCapabilities = PeerPair.media
    ) {
        var lite = ICEConfiguration()
        lite.mode = offererIsLite ? .lite : .full
        offerer = PeerConnection(
            configuration: PeerConfiguration(
                iceRole: .controlled, ice: lite, certificate: Self.certificates[0], media: media),
            random: RandomSource(seed: seed), now: .zero)
        answerer = PeerConnection(
            configuration: PeerConfiguration(
                iceRole: .controlling, certificate: Self.certificates[1], media: media),
            random: RandomSource(seed: seed &+ 1000), now: .zero)
        links = Side.allCases.map { EmulatedLink(conditions, seed: seed, link: UInt64($0.rawValue)) }
        for side in Side.allCases {
            self[side].addLocalSocket(SocketID(side.rawValue), address: addresses[side.rawValue], now: now)
        }
        collect()
    }

    subscript(side: Side) -> PeerConnection { side == .offerer ? offerer : answerer }

    /// Takes outputs of both sides, sends what is to be sent.
    func collect() {
        for side in Side.allCases {
            while let output = self[side].poll() {
                if case .transmit(let datagram) = output {
                    if drop?(side, datagram.payload) ?? false { continue }
                    links[side.rawValue].send(datagram.payload, size: datagram.payload.count, now: now)
                } else {
                    outputs[side.rawValue].append(output)
                }
            }
        }
    }

    /// Runs until `condition` holds or `limit` of virtual time passed. Returns whether it held.
    @discardableResult
    func run(for limit: Duration, until condition: () -> Bool = { false }) -> Bool {
        let end = now + limit
        collect()
        while !condition() {
            var next = Instant.distantFuture
            for side in Side.allCases {
                next = min(
                    next, links[side.rawValue].nextTimeout ?? .distantFuture, self[side].nextTimeout ?? .distantFuture)
            }
            guard next <= end else {
                now = end
                return condition()
            }
            now = max(now, next)
            for side in Side.allCases {
                while let packet = links[side.rawValue].receive(now: now) {
                    let datagram = Datagram(
                        socket: SocketID(side.other.rawValue), remote: addresses[side.rawValue], payload: packet)
                    self[side.other].handle(datagram, now: now)
                    collect()
                }
            }
            for side in Side.allCases {
                if let due = self[side].nextTimeout, due <= now {
                    self[side].handleTimeout(now: now)
                    collect()
                }
            }
        }
        return true
    }

    /// Offer, answer, and back, through text.
    func negotiate(prepareAnswer: () -> Void = {}) throws {
        let offer = try offerer.makeOffer(now: now).serialized()
        try answerer.acceptOffer(SessionDescription(parsing: offer), now: now)
        prepareAnswer()
        let answer = try answerer.makeAnswer(now: now).serialized()
        try offerer.acceptAnswer(SessionDescription(parsing: answer), now: now)
        collect()
    }

    var isConnected: Bool { offerer.state == .connected && answerer.state == .connected }

    func takeOutputs(_ side: Side) -> [PeerConnection.Output] {
        defer { outputs[side.rawValue] = [] }
        return outputs[side.rawValue]
    }

    func messages(_ side: Side) -> [[UInt8]] {
        outputs[side.rawValue].compactMap {
            if case .dataChannelMessage(_, let payload, _) = $0 { payload } else { nil }
        }
    }

    func received(_ side: Side) -> [ReceivedRTP] {
        outputs[side.rawValue].compactMap { if case .rtp(let received) = $0 { received } else { nil } }
    }
}
