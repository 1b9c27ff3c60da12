import SoraPeer
import SoraRTP
import SoraSDP
import SoraWire

/// Payload types and header extension ids of every offer of this server.
///
/// One numbering for all connections: a packet can be forwarded without translating payload types.
enum MediaNumbers {
    static let opus: PayloadType = PayloadType(109)

    static let audioExtensions = extensions([.mid, .audioLevel, .transportSequenceNumber])
    static let videoExtensions = extensions([
        .mid, .rid, .repairedRid, .absoluteSendTime, .transportSequenceNumber, .videoOrientation,
        .dependencyDescriptor,
    ])

    /// Extension ids fit the one-byte form.
    private static func extensions(_ kinds: [RTPExtensionKind]) -> [HeaderExtensionDescription] {
        kinds.map { HeaderExtensionDescription(id: id(of: $0), uri: $0.uri) }
    }

    private static func id(of kind: RTPExtensionKind) -> UInt8 {
        switch kind {
        case .mid: 1
        case .rid: 2
        case .repairedRid: 3
        case .audioLevel: 4
        case .transportSequenceNumber: 5
        case .absoluteSendTime: 6
        case .videoOrientation: 7
        case .dependencyDescriptor: 8
        default: 14
        }
    }

    /// Opus with the parameters that the sender asked for.
    static func opusCodec(_ parameters: FormatParameters) -> CodecDescription {
        var merged = FormatParameters([SDPAttribute("minptime", "10"), SDPAttribute("useinbandfec", "1")])
        for entry in parameters.entries { merged[entry.name] = entry.value }
        return CodecDescription(
            payloadType: opus, name: "opus", clockRate: 48_000, channels: 2, formatParameters: merged,
            rtcpFeedback: ["transport-cc"])
    }

    /// One video codec with its repair format. `name` is Sora's `codec_type`.
    static func videoCodec(_ name: String, parameters: FormatParameters = FormatParameters()) -> [CodecDescription] {
        let type: UInt8
        let sdpName: String
        var defaults = FormatParameters()
        switch name {
        case "VP9":
            (type, sdpName) = (122, "VP9")
            defaults["profile-id"] = "0"
        case "AV1":
            (type, sdpName) = (124, "AV1")
            defaults["profile"] = "0"
            defaults["level-idx"] = "5"
            defaults["tier"] = "0"
        case "H264":
            (type, sdpName) = (126, "H264")
            defaults["level-asymmetry-allowed"] = "1"
            defaults["packetization-mode"] = "1"
            defaults["profile-level-id"] = "42e01f"
        case "H265":
            (type, sdpName) = (118, "H265")
            defaults["level-id"] = "93"
            defaults["profile-id"] = "1"
            defaults["tier-flag"] = "0"
            defaults["tx-mode"] = "SRST"
        default:
            (type, sdpName) = (120, "VP8")
        }
        for entry in parameters.entries { defaults[entry.name] = entry.value }
        return [
            CodecDescription(
                payloadType: PayloadType(type), name: sdpName, clockRate: 90_000, formatParameters: defaults,
                rtcpFeedback: ["goog-remb", "transport-cc", "ccm fir", "nack", "nack pli"]),
            CodecDescription(
                payloadType: PayloadType(type + 1), name: "rtx", clockRate: 90_000,
                formatParameters: FormatParameters([SDPAttribute("apt", String(type))])),
        ]
    }

    static let capabilities = MediaCapabilities(
        audioCodecs: [opusCodec(FormatParameters())],
        videoCodecs: ["VP8", "VP9", "AV1", "H264", "H265"].flatMap { videoCodec($0) },
        audioExtensions: audioExtensions, videoExtensions: videoExtensions)
}
