internal import SoraFrames
internal import SoraPeer
internal import SoraSDP
internal import SoraWire
#if Media
internal import SoraCodecs
#endif

/// The codecs and header extensions that this build can handle.
enum ClientCapabilities {
    #if Media
    static let codecs: any CodecFactory = MediaCodecs()
    #else
    static let codecs: any CodecFactory = NoCodecs()
    #endif

    /// - Parameter playsStereo: asks senders for Opus in stereo (RFC 7587, 6.1).
    static func media(playsStereo: Bool) -> MediaCapabilities {
        var media = plain
        guard playsStereo else { return media }
        for index in media.audioCodecs.indices where media.audioCodecs[index].name == "opus" {
            media.audioCodecs[index].formatParameters["stereo"] = "1"
        }
        return media
    }

    private static let plain = MediaCapabilities(
        audioCodecs: codecs.audioCodecs.map(audio), videoCodecs: videoKinds.enumerated().flatMap(video),
        audioExtensions: extensions([
            HeaderExtensionURI.mid, HeaderExtensionURI.audioLevel, HeaderExtensionURI.transportWideCC,
        ]),
        videoExtensions: extensions(
            [
                HeaderExtensionURI.mid, HeaderExtensionURI.audioLevel, HeaderExtensionURI.transportWideCC,
                HeaderExtensionURI.rid, HeaderExtensionURI.repairedRid, HeaderExtensionURI.absoluteSendTime,
                HeaderExtensionURI.videoOrientation, HeaderExtensionURI.dependencyDescriptor,
            ].filter { $0 != HeaderExtensionURI.audioLevel }))

    /// What can be decoded; the encoders are among them.
    private static var videoKinds: [VideoCodecKind] { codecs.videoDecoders }

    private static func extensions(_ uris: [String]) -> [HeaderExtensionDescription] {
        uris.enumerated().map { HeaderExtensionDescription(id: UInt8($0.offset + 1), uri: $0.element) }
    }

    private static func audio(_ kind: AudioCodecKind) -> CodecDescription {
        switch kind {
        case .opus:
            CodecDescription(
                payloadType: PayloadType(111), name: "opus", clockRate: 48_000, channels: 2,
                formatParameters: FormatParameters([SDPAttribute("minptime", "10"), SDPAttribute("useinbandfec", "1")]),
                rtcpFeedback: ["transport-cc"])
        case .pcmu: CodecDescription(payloadType: PayloadType(0), name: "PCMU", clockRate: 8_000)
        }
    }

    /// A codec with its repair format.
    private static func video(_ index: Int, _ kind: VideoCodecKind) -> [CodecDescription] {
        let number = UInt8(96 + 2 * index)
        var parameters = FormatParameters()
        switch kind {
        case .vp9: parameters["profile-id"] = "0"
        case .h264:
            parameters["level-asymmetry-allowed"] = "1"
            parameters["packetization-mode"] = "1"
            parameters["profile-level-id"] = "42e01f"
        case .av1:
            parameters["profile"] = "0"
            parameters["level-idx"] = "5"
            parameters["tier"] = "0"
        case .vp8, .h265: break
        }
        return [
            CodecDescription(
                payloadType: PayloadType(number), name: kind.rawValue, clockRate: 90_000, formatParameters: parameters,
                rtcpFeedback: ["goog-remb", "transport-cc", "ccm fir", "nack", "nack pli"]),
            CodecDescription(
                payloadType: PayloadType(number + 1), name: "rtx", clockRate: 90_000,
                formatParameters: FormatParameters([SDPAttribute("apt", String(number))])),
        ]
    }
}
