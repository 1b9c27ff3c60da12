import SoraICE
import SoraSDP

/// Plain words for what descriptions say in codes.
enum SDPVocabulary {
    static func headerExtension(_ uri: String) -> String {
        switch uri {
        case HeaderExtensionURI.mid: "mid: which section a packet belongs to"
        case HeaderExtensionURI.rid: "rid: which simulcast layer a packet belongs to"
        case HeaderExtensionURI.repairedRid: "repaired rid: which layer a retransmission belongs to"
        case HeaderExtensionURI.audioLevel: "audio level of each packet"
        case HeaderExtensionURI.transportWideCC: "transport-wide sequence numbers for congestion control"
        case HeaderExtensionURI.absoluteSendTime: "send time for congestion control"
        case HeaderExtensionURI.videoOrientation: "rotation of the picture"
        case HeaderExtensionURI.dependencyDescriptor: "dependency descriptor: which frames need which (AV1, SVC)"
        case "urn:ietf:params:rtp-hdrext:toffset": "transmission time offset"
        case "http://www.webrtc.org/experiments/rtp-hdrext/playout-delay": "limits of the playout delay"
        case "http://www.webrtc.org/experiments/rtp-hdrext/video-content-type": "screen or camera"
        case "http://www.webrtc.org/experiments/rtp-hdrext/video-timing": "timing of encoder and packetizer"
        case "http://www.webrtc.org/experiments/rtp-hdrext/color-space": "colour space"
        case "http://www.webrtc.org/experiments/rtp-hdrext/abs-capture-time": "capture time"
        case "http://www.webrtc.org/experiments/rtp-hdrext/video-layers-allocation00": "bit rates of the layers"
        default: "not known here"
        }
    }

    static func feedback(_ value: String) -> String {
        switch value {
        case "nack": "asks for lost packets again"
        case "nack pli": "asks for a key frame (PLI)"
        case "ccm fir": "asks for a key frame (FIR)"
        case "goog-remb": "states a bit rate limit (REMB)"
        case "transport-cc": "reports arrival times for congestion control"
        case "rrtr": "reports the receiver's time"
        default: "not known here"
        }
    }

    static func setup(_ setup: DTLSSetup) -> String {
        switch setup {
        case .actpass: "actpass: the other side chooses who begins, usually itself"
        case .active: "active: the writer begins the handshake"
        case .passive: "passive: the other side begins the handshake"
        case .holdconn: "holdconn: no handshake for now"
        }
    }

    /// The parameters of a codec that choose how it is coded.
    static func parameters(of codec: CodecDescription) -> [String] {
        codec.formatParameters.entries.compactMap { entry in
            guard let value = entry.value else { return entry.name }
            return parameter(entry.name, value, of: codec.name.lowercased()).map { "\(entry.name)=\(value) (\($0))" }
                ?? "\(entry.name)=\(value)"
        }
    }

    private static func parameter(_ key: String, _ value: String, of codec: String) -> String? {
        switch (codec, key) {
        case ("opus", "useinbandfec"): value == "1" ? "repairs losses by itself" : nil
        case ("opus", "usedtx"): value == "1" ? "sends almost nothing in silence" : nil
        case ("opus", "stereo"): value == "1" ? "may receive two channels" : "prefers one channel"
        case ("opus", "maxplaybackrate"): "plays up to \(value) Hz"
        case ("opus", "minptime"): "packets of at least \(value) ms"
        case ("h264", "packetization-mode"): value == "1" ? "slices may be split over packets" : "one slice a packet"
        case ("h264", "profile-level-id"): h264(value)
        case ("vp9", "profile-id"): value == "2" ? "10 bits a sample" : value == "0" ? "8 bits, 4:2:0" : nil
        case ("av1", "profile"): value == "0" ? "main" : value == "1" ? "high" : "professional"
        case ("rtx", "apt"): "repeats payload type \(value)"
        default: nil
        }
    }

    private static func h264(_ value: String) -> String? {
        guard let level = H264ProfileLevel(profileLevelID: value) else { return "no valid profile" }
        return "\(level.profile), level \(level.levelIDC / 10).\(level.levelIDC % 10)"
    }

    static func candidateType(_ type: ICECandidateType) -> String {
        switch type {
        case .host: "host: an address of the machine itself"
        case .serverReflexive: "srflx: the address that a STUN server sees"
        case .peerReflexive: "prflx: the address that the peer sees"
        case .relayed: "relay: an address of a TURN server"
        }
    }

    static func direction(_ direction: MediaDirection, writer: String, reader: String) -> String {
        switch direction {
        case .sendrecv: "sendrecv: both sides may send and receive"
        case .sendonly: "sendonly: the \(writer) sends, the \(reader) receives"
        case .recvonly: "recvonly: the \(reader) may send, the \(writer) receives"
        case .inactive: "inactive: nobody sends"
        }
    }
}
