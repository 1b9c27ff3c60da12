import SoraICE
import SoraSCTP
import SoraSDP
import SoraSecureTransport
import SoraWire

/// What a peer connection needs to know before it begins. A value; later changes have no effect.
package struct PeerConfiguration: Sendable {
    /// Which side nominates. A full agent that talks to a lite one always controls.
    package var iceRole: ICEAgent.Role
    /// Includes the mode: `lite` for a server at a public address, which answers checks and sends none.
    package var ice: ICEConfiguration
    /// Our identity in DTLS. Creating one costs a key generation: share it among connections.
    package var certificate: DTLSCertificate
    /// SRTP protection profiles in order of preference.
    package var srtpProfiles: [SRTPProfile]
    package var media: MediaCapabilities
    /// Largest data channel message that we accept, in bytes (`a=max-message-size`).
    package var maximumMessageSize: Int
    /// CNAME of our streams in RTCP and SDP; media of one CNAME is played in sync.
    package var canonicalName: String
    /// Largest UDP payload that we send, in bytes.
    package var maximumDatagramSize: Int
    /// The NTP time (64-bit, RFC 5905) at the clock's origin, for sender reports.
    package var ntpEpoch: UInt64

    package init(
        iceRole: ICEAgent.Role = .controlling,
        ice: ICEConfiguration = ICEConfiguration(), certificate: DTLSCertificate,
        srtpProfiles: [SRTPProfile] = [.aeadAES128GCM, .aeadAES256GCM, .aesCM128HMACSHA1_80],
        media: MediaCapabilities = .none, maximumMessageSize: Int = 262_144,
        canonicalName: String = "sora", maximumDatagramSize: Int = 1200, ntpEpoch: UInt64 = 0
    ) {
        self.iceRole = iceRole
        self.ice = ice
        self.certificate = certificate
        self.srtpProfiles = srtpProfiles
        self.media = media
        self.maximumMessageSize = maximumMessageSize
        self.canonicalName = canonicalName
        self.maximumDatagramSize = maximumDatagramSize
        self.ntpEpoch = ntpEpoch
    }
}

/// The codecs and header extensions that one side can handle.
///
/// An offering side sends them as they are, payload types and ids included. An answering side keeps
/// the offer's numbers and uses this list to decide what to accept.
package struct MediaCapabilities: Sendable {
    package var audioCodecs: [CodecDescription]
    package var videoCodecs: [CodecDescription]
    package var audioExtensions: [HeaderExtensionDescription]
    package var videoExtensions: [HeaderExtensionDescription]

    package init(
        audioCodecs: [CodecDescription], videoCodecs: [CodecDescription],
        audioExtensions: [HeaderExtensionDescription], videoExtensions: [HeaderExtensionDescription]
    ) {
        self.audioCodecs = audioCodecs
        self.videoCodecs = videoCodecs
        self.audioExtensions = audioExtensions
        self.videoExtensions = videoExtensions
    }

    /// Data channels only.
    package static let none = MediaCapabilities(
        audioCodecs: [], videoCodecs: [], audioExtensions: [], videoExtensions: [])

    func codecs(of kind: MediaKind) -> [CodecDescription] {
        switch kind {
        case .audio: audioCodecs
        case .video: videoCodecs
        default: []
        }
    }

    func extensions(of kind: MediaKind) -> [HeaderExtensionDescription] {
        switch kind {
        case .audio: audioExtensions
        case .video: videoExtensions
        default: []
        }
    }
}

/// Why a peer connection refused an operation or ended.
package enum PeerError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The operation does not fit the signaling state (RFC 9429, 4.1).
    case invalidState(operation: String, state: SignalingState)
    /// The description cannot be used; the text says which section lacks what.
    case unusableDescription(String)
    /// An answer that does not fit the offer.
    case mismatchedAnswer(String)
    case unknownTransceiver(TransceiverID)
    /// The transceiver has no negotiated codec for this payload type, or may not send.
    case cannotSend(String)
    case dataChannelsUnavailable
    case dataChannel(SCTPError)
    case dtls(DTLSError)
    case iceFailed
    case closed

    package var description: String {
        switch self {
        case .invalidState(let operation, let state): "\(operation) is not allowed in the signaling state \(state)"
        case .unusableDescription(let reason): "the session description cannot be used: \(reason)"
        case .mismatchedAnswer(let reason): "the answer does not fit the offer: \(reason)"
        case .unknownTransceiver(let id): "there is no transceiver \(id.rawValue)"
        case .cannotSend(let reason): "cannot send: \(reason)"
        case .dataChannelsUnavailable: "no data channel transport was negotiated"
        case .dataChannel(let error): "data channel: \(error)"
        case .dtls(let error): "DTLS: \(error)"
        case .iceFailed: "ICE failed: no working path to the peer"
        case .closed: "the peer connection is closed"
        }
    }
}

/// W3C `RTCSignalingState` without provisional answers, which Sora never uses.
package enum SignalingState: Sendable, Equatable {
    case stable
    case haveLocalOffer
    case haveRemoteOffer
    case closed
}

/// W3C `RTCPeerConnectionState`.
package enum PeerConnectionState: String, Sendable, Equatable {
    case new, connecting, connected, disconnected, failed, closed
}
