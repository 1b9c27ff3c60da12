import SoraICE
import SoraPeer
import SoraRTP
import SoraSDP
import SoraSecureTransport
import SoraWire

/// What happened to the examined peer connection, and when.
struct PeerCourse {
    var answeredAt: Instant = .zero
    var iceConnectedAt: Instant?
    var dtlsConnectedAt: Instant?
    /// Labels of open data channels.
    var openLabels: [String: StreamID] = [:]
    var labelsByID: [StreamID: String] = [:]
    var channelsReadyAt: Instant?
    /// The reason is nil when the other side ended in order.
    var ended: PeerError??
    var endedAt: Instant?
    /// What the other side's `close` message or WebSocket said.
    var serverEnd: String?

    /// Kept from before the end, which forgets them.
    var servers: [ICEServerReport] = []
    var ice: ICEStatistics?
    var iceFailure: String?

    /// Media, by transceiver.
    var firstPacketAt: [TransceiverID: Instant] = [:]
    var packets: [TransceiverID: Int] = [:]
    var firstKeyFrameAt: [TransceiverID: Instant] = [:]
    var keyFrameRequestedAt: [TransceiverID: Instant] = [:]
    var keyFrameRequests = 0
}

/// Every codec of Sora that the project can carry. The doctor decodes none of them.
enum DoctorMedia {
    static let capabilities = MediaCapabilities(
        audioCodecs: [
            CodecDescription(
                payloadType: PayloadType(111), name: "opus", clockRate: 48_000, channels: 2,
                rtcpFeedback: ["transport-cc"]),
            CodecDescription(payloadType: PayloadType(0), name: "PCMU", clockRate: 8_000),
        ],
        videoCodecs: video,
        audioExtensions: extensions([
            HeaderExtensionURI.mid, HeaderExtensionURI.transportWideCC, HeaderExtensionURI.audioLevel,
        ]),
        videoExtensions: extensions([
            HeaderExtensionURI.mid, HeaderExtensionURI.transportWideCC, HeaderExtensionURI.rid,
            HeaderExtensionURI.repairedRid, HeaderExtensionURI.absoluteSendTime, HeaderExtensionURI.videoOrientation,
            HeaderExtensionURI.dependencyDescriptor,
        ]))

    private static func extensions(_ uris: [String]) -> [HeaderExtensionDescription] {
        uris.enumerated().map { HeaderExtensionDescription(id: UInt8($0.offset + 1), uri: $0.element) }
    }

    private static var video: [CodecDescription] {
        var formats: [(String, FormatParameters)] = [
            ("VP8", [:]), ("VP9", ["profile-id": "0"]), ("VP9", ["profile-id": "2"]), ("AV1", ["profile": "0"]),
            ("H265", [:]),
        ]
        for profile in ["42e01f", "42001f", "4d001f", "64001f", "640c1f"] {
            for mode in ["1", "0"] {
                formats.append(("H264", ["profile-level-id": profile, "packetization-mode": mode]))
            }
        }
        let codecs = formats.enumerated().map { index, format in
            CodecDescription(
                payloadType: PayloadType(UInt8(96 + index)), name: format.0, clockRate: VideoPayloadFormat.clockRate,
                formatParameters: format.1,
                rtcpFeedback: ["goog-remb", "transport-cc", "ccm fir", "nack", "nack pli"])
        }
        let repair = CodecDescription(
            payloadType: PayloadType(127), name: "rtx", clockRate: VideoPayloadFormat.clockRate,
            formatParameters: ["apt": "96"])
        return codecs + [repair]
    }
}
