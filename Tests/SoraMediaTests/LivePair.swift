#if Media
import Dispatch
import SoraCodecs
import SoraDevices
import SoraFrames
import SoraICE
import SoraLocking
import SoraMedia
import SoraPeer
import SoraRTP
import SoraSDP
import SoraSecureTransport
import SoraWire
import TestSupport

/// Two peer connections with media sessions in real time, because codecs run on real threads; the network is a queue.
final class LivePair {
    enum Side: Int, CaseIterable {
        case offerer, answerer
        var other: Side { self == .offerer ? .answerer : .offerer }
    }
    let peers: [PeerConnection]
    let sessions: [MediaSession]
    let woken = DispatchSemaphore(value: 0)
    /// Datagrams that never arrive.
    var drop: (Side, [UInt8]) -> Bool = { _, _ in false }
    private(set) var keyFrameRequests = 0
    private let addresses = [SocketAddress(.v4(0x0A00_0001), port: 1000), SocketAddress(.v4(0x0A00_0002), port: 2000)]

    static let certificates: [DTLSCertificate] = {
        guard let a = try? DTLSCertificate.selfSigned(), let b = try? DTLSCertificate.selfSigned() else { return [] }
        return [a, b]
    }()

    static func media(_ codec: String = "VP8", stereo: Bool = true) -> MediaCapabilities {
        MediaCapabilities(
            audioCodecs: [
                CodecDescription(
                    payloadType: PayloadType(109), name: "opus", clockRate: 48_000, channels: 2,
                    formatParameters: FormatParameters(
                        (stereo ? [SDPAttribute("stereo", "1")] : []) + [SDPAttribute("useinbandfec", "1")]))
            ],
            videoCodecs: [
                CodecDescription(
                    payloadType: PayloadType(120), name: codec, clockRate: 90_000,
                    formatParameters: FormatParameters(
                        codec == "H264"
                            ? [
                                SDPAttribute("profile-level-id", "42e01f"), SDPAttribute("packetization-mode", "1"),
                                SDPAttribute("level-asymmetry-allowed", "1"),
                            ] : []),
                    rtcpFeedback: ["nack", "nack pli", "ccm fir"]),
                CodecDescription(
                    payloadType: PayloadType(121), name: "rtx", clockRate: 90_000,
                    formatParameters: FormatParameters([SDPAttribute("apt", "120")])),
            ],
            audioExtensions: [HeaderExtensionDescription(id: 1, uri: HeaderExtensionURI.mid)],
            videoExtensions: [
                HeaderExtensionDescription(id: 1, uri: HeaderExtensionURI.mid),
                HeaderExtensionDescription(id: 2, uri: HeaderExtensionURI.rid),
                HeaderExtensionDescription(id: 3, uri: HeaderExtensionURI.repairedRid),
                HeaderExtensionDescription(id: 7, uri: HeaderExtensionURI.videoOrientation),
            ])
    }

    var now: Instant { Instant(nanoseconds: MonotonicClock.now) }

    /// The answerer sends; `layers` names simulcast layers.
    init(_ codec: String = "VP8", stereo: Bool = true, layers: [String] = []) throws {
        let now = Instant(nanoseconds: MonotonicClock.now)
        var lite = ICEConfiguration()
        lite.mode = .lite
        let media = Self.media(codec, stereo: stereo)
        peers = [
            PeerConnection(
                configuration: PeerConfiguration(
                    iceRole: .controlled, ice: lite, certificate: Self.certificates[0], media: media), now: now),
            PeerConnection(
                configuration: PeerConfiguration(
                    iceRole: .controlling, certificate: Self.certificates[1], media: media), now: now),
        ]
        let woken = woken
        sessions = peers.map { peer in MediaSession(peer: peer, codecs: MediaCodecs(), wake: { woken.signal() }) }
        for side in Side.allCases {
            peers[side.rawValue].addLocalSocket(
                SocketID(side.rawValue), address: addresses[side.rawValue], now: now)
        }
        let video = peers[0].addTransceiver(kind: .video, direction: .recvonly)
        video.requestedLayers = layers.map { RequestedLayer(rid: RestrictionID($0)) }
        _ = peers[0].addTransceiver(kind: .audio, direction: .recvonly)
        let offer = try peers[0].makeOffer(now: now).serialized()
        try peers[1].acceptOffer(SessionDescription(parsing: offer), now: now)
        for transceiver in peers[1].transceivers {
            transceiver.direction = .sendonly
            transceiver.streamIdentifier = MediaStreamIdentifier(stream: "s", track: "t")
            transceiver.encodings =
                transceiver.kind == .video && !layers.isEmpty
                ? layers.map { peers[1].makeEncoding(rid: RestrictionID($0)) } : [peers[1].makeEncoding()]
        }
        let answer = try peers[1].makeAnswer(now: now).serialized()
        try peers[0].acceptAnswer(SessionDescription(parsing: answer), now: now)
    }

    var sender: PeerConnection { peers[1] }
    func transceiver(_ side: Side, _ kind: MediaKind) -> Transceiver {
        peers[side.rawValue].transceivers.first { $0.kind == kind }!
    }

    /// Runs until the condition holds; false after `seconds`.
    @discardableResult
    func run(_ seconds: Double = 20, until condition: () -> Bool = { false }) -> Bool {
        let end = now + .milliseconds(Int64(seconds * 1000 * RealTime.factor))
        while !condition() {
            let time = now
            if time >= end { return condition() }
            for side in Side.allCases {
                sessions[side.rawValue].process(now: time)
                if let due = sessions[side.rawValue].nextTimeout, due <= time {
                    sessions[side.rawValue].handleTimeout(now: time)
                }
                if let due = peers[side.rawValue].nextTimeout, due <= time {
                    peers[side.rawValue].handleTimeout(now: time)
                }
            }
            if exchange(time) { continue }
            var next = min(end, time + .milliseconds(50))
            for side in Side.allCases {
                for due in [sessions[side.rawValue].nextTimeout, peers[side.rawValue].nextTimeout] {
                    if let due { next = min(next, due) }
                }
            }
            let wait = max(0, (next - now).wholeNanoseconds)
            _ = woken.wait(timeout: .now() + .nanoseconds(Int(wait)))
        }
        return true
    }

    /// Moves everything that the peers put out; returns whether there was anything.
    private func exchange(_ time: Instant) -> Bool {
        var isBusy = false
        for side in Side.allCases {
            while let output = peers[side.rawValue].poll() {
                isBusy = true
                if case .transmit(let datagram) = output {
                    if drop(side, datagram.payload) { continue }
                    peers[side.other.rawValue].handle(
                        Datagram(
                            socket: SocketID(side.other.rawValue), remote: addresses[side.rawValue],
                            payload: datagram.payload), now: time)
                } else {
                    if case .keyFrameRequested = output { keyFrameRequests += 1 }
                    sessions[side.rawValue].handle(output, now: time)
                }
            }
        }
        return isBusy
    }

    var isConnected: Bool { peers.allSatisfy { $0.state == .connected } }
}

/// What a remote track gave.
final class Received: Sendable {
    struct Content: Sendable {
        var counters: [UInt32?] = []
        var times: [Int64] = []
        var shownAt: [Int64] = []
        var sizes: [[Int]] = []
        var rotations: [VideoRotation] = []
        var audio: [AudioFrame] = []
        var heardAt: [Int64] = []
    }
    private let content = Locked(Content())
    private let wake: DispatchSemaphore
    init(_ pair: LivePair) { wake = pair.woken }
    var now: Content { content.withLock { $0 } }

    func take(_ frame: VideoFrame) {
        let counter = FrameCounter.read(from: frame)
        content.withLock {
            $0.counters.append(counter)
            $0.times.append(frame.timestamp)
            $0.shownAt.append(MonotonicClock.now)
            $0.sizes.append([frame.width, frame.height])
            $0.rotations.append(frame.rotation)
        }
        wake.signal()
    }
    func take(_ frame: AudioFrame) {
        content.withLock {
            $0.audio.append(frame)
            $0.heardAt.append(MonotonicClock.now)
        }
        wake.signal()
    }
}
#endif
