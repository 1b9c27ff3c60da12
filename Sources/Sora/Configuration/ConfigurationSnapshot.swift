import Foundation

/// What one attempt works with: every setting as a value, checked, with the application's objects already encoded.
struct ConfigurationSnapshot: Sendable {
    var urlCandidates: [URL]
    var channelId: String
    var clientId: String?
    var bundleId: String?
    var role: Role
    var multistreamEnabled: Bool?
    var connectionTimeout: Int

    var videoEnabled: Bool
    var videoCodec: VideoCodec
    var videoBitRate: Int?
    /// Parameters of the chosen codec, with their key in `video`.
    var videoParameters: (key: String, value: JSONText)?
    var cameraSettings: CameraSettings
    var initialCameraEnabled: Bool

    var audioEnabled: Bool
    var audioCodec: AudioCodec
    var audioBitRate: Int?
    var opusParameters: JSONText?
    var audioStereoOutputEnabled: Bool
    var initialMicrophoneEnabled: Bool
    var bypassVoiceProcessing: Bool
    var audioStreamingLanguageCode: String?

    var simulcastEnabled: Bool
    var simulcastRid: SimulcastRid?
    var simulcastRequestRid: SimulcastRequestRid
    var isSpotlightEnabled: Bool
    var spotlightNumber: Int?
    var spotlightFocusRid: SpotlightRid
    var spotlightUnfocusRid: SpotlightRid

    var iceServers: [ICEServer]
    var iceTransportPolicy: ICETransportPolicy
    var degradationPreference: DegradationPreference?
    var metadata: JSONText?
    var notifyMetadata: JSONText?
    var dataChannelSignaling: Bool?
    var dataChannels: JSONText?
    var ignoreDisconnectWebSocket: Bool?
    var proxy: Proxy?
    var caCertificate: String?
    var insecure: Bool
    var transportSecurity: TransportSecurity
    var forwardingFilter: JSONText?
    var forwardingFilters: JSONText?
    /// The first message, without capability offer.
    var connectMessage: JSONText

    var publisherStreamId: String
    var publisherVideoTrackId: String
    var publisherAudioTrackId: String

    struct ICEServer: Sendable {
        var urls: [String]
        var userName: String?
        var credential: String?
        var skipsCertificateCheck: Bool
    }

    /// Checks and copies the settings, in the order that decides which of several faults is reported.
    init(_ configuration: Configuration) throws(SoraError) {
        metadata = try Self.encode(
            configuration.signalingConnectMetadata, or: "signaling connect metadata could not be encoded")
        notifyMetadata = try Self.encode(
            configuration.signalingConnectNotifyMetadata, or: "signaling notify metadata could not be encoded")
        if let value = configuration.dataChannels {
            guard let text = JSONText(object: value) else {
                throw .configurationError(reason: "data channels are not JSON-serializable")
            }
            dataChannels = text
        }
        let filterReason = "forwarding filter metadata could not be encoded"
        forwardingFilter = try Self.encode(configuration.forwardingFilter, or: filterReason)
        forwardingFilters = try Self.encode(configuration.forwardingFilters, or: filterReason)
        if configuration.videoEnabled, let (key, name, value) = Self.videoParameters(of: configuration) {
            let reason = "video \(name) params could not be encoded"
            if let text = try Self.encode(value, or: reason) { videoParameters = (key, text) }
        }
        if configuration.audioEnabled, configuration.audioCodec == .opus {
            opusParameters = try Self.encode(
                configuration.audioOpusParams, or: "audio opus params could not be encoded")
        }
        if configuration.audioStereoOutputEnabled {
            guard configuration.audioEnabled else {
                throw .configurationError(reason: "audioStereoOutputEnabled requires audioEnabled to be true")
            }
            guard configuration.audioCodec != .pcmu else {
                throw .configurationError(reason: "audioStereoOutputEnabled does not support PCMU")
            }
        }

        // Everything in it was encoded once already, so a failure here cannot be told from one of the metadata.
        connectMessage = try Self.encode(
            present: SignalingConnect(configuration, sdp: nil, redirect: false),
            or: "signaling connect metadata could not be encoded")

        var seen = Set<String>()
        urlCandidates = configuration.urlCandidates.filter { seen.insert($0.absoluteString).inserted }
        channelId = configuration.channelId
        clientId = configuration.clientId
        bundleId = configuration.bundleId
        role = configuration.role
        multistreamEnabled = configuration.multistreamEnabled
        connectionTimeout = configuration.connectionTimeout
        videoEnabled = configuration.videoEnabled
        videoCodec = configuration.videoCodec
        videoBitRate = configuration.videoBitRate
        cameraSettings = configuration.cameraSettings
        initialCameraEnabled = configuration.initialCameraEnabled
        audioEnabled = configuration.audioEnabled
        audioCodec = configuration.audioCodec
        audioBitRate = configuration.audioBitRate
        audioStereoOutputEnabled = configuration.audioStereoOutputEnabled
        initialMicrophoneEnabled = configuration.initialMicrophoneEnabled
        bypassVoiceProcessing = configuration.bypassVoiceProcessing
        audioStreamingLanguageCode = configuration.audioStreamingLanguageCode
        simulcastEnabled = configuration.simulcastEnabled
        simulcastRid = configuration.simulcastRid
        simulcastRequestRid = configuration.simulcastRequestRid
        isSpotlightEnabled = configuration.isSpotlightEnabled
        spotlightNumber = configuration.spotlightNumber
        spotlightFocusRid = configuration.spotlightFocusRid
        spotlightUnfocusRid = configuration.spotlightUnfocusRid
        iceServers = configuration.webRTCConfiguration.iceServerInfos.map {
            ICEServer(
                urls: $0.urls, userName: $0.userName, credential: $0.credential,
                skipsCertificateCheck: $0.skipsCertificateCheck)
        }
        iceTransportPolicy = configuration.webRTCConfiguration.iceTransportPolicy
        degradationPreference = configuration.webRTCConfiguration.degradationPreference
        dataChannelSignaling = configuration.dataChannelSignaling
        ignoreDisconnectWebSocket = configuration.ignoreDisconnectWebSocket
        proxy = configuration.proxy
        caCertificate = configuration.caCertificate
        insecure = configuration.insecure
        transportSecurity = configuration.transportSecurity
        publisherStreamId = configuration.publisherStreamId
        publisherVideoTrackId = configuration.publisherVideoTrackId
        publisherAudioTrackId = configuration.publisherAudioTrackId
    }

    /// Whether the microphone's sound is cleaned. Stereo is for music, which that would harm.
    var processesVoice: Bool { !bypassVoiceProcessing && !audioStereoOutputEnabled }

    /// Texts that must never appear in a log, by value.
    var secrets: [String] {
        var secrets: [String] = []
        if let password = proxy?.password { secrets.append(password) }
        secrets += iceServers.compactMap(\.credential)
        if let key = transportSecurity.clientCertificate?.privateKey { secrets.append(key) }
        for text in [metadata, notifyMetadata].compactMap({ $0 }) {
            guard let value = try? JSONSerialization.jsonObject(with: text.data, options: [.fragmentsAllowed]) else {
                continue
            }
            Self.collectTexts(of: value, into: &secrets)
        }
        for url in urlCandidates {
            if let query = url.query, !query.isEmpty { secrets.append(query) }
            if let password = url.password { secrets.append(password) }
        }
        return secrets
    }

    private static func collectTexts(of value: Any, into secrets: inout [String]) {
        switch value {
        case let text as String: secrets.append(text)
        case let list as [Any]: for element in list { collectTexts(of: element, into: &secrets) }
        case let object as [String: Any]: for element in object.values { collectTexts(of: element, into: &secrets) }
        default: break
        }
    }

    private static func encode(present value: any Encodable, or reason: String) throws(SoraError) -> JSONText {
        do { return try JSONText(encoding: value) } catch { throw .configurationError(reason: reason) }
    }

    private static func encode(_ value: (any Encodable)?, or reason: String) throws(SoraError) -> JSONText? {
        guard let value else { return nil }
        return try encode(present: value, or: reason)
    }

    /// Key in `video`, name in the error text and value of the parameters that go with the chosen codec.
    private static func videoParameters(of configuration: Configuration) -> (String, String, (any Encodable)?)? {
        switch configuration.videoCodec {
        case .vp9: ("vp9_params", "vp9", configuration.videoVp9Params)
        case .av1: ("av1_params", "av1", configuration.videoAv1Params)
        case .h264: ("h264_params", "h264", configuration.videoH264Params)
        case .h265: ("h265_params", "h265", configuration.videoH265Params)
        case .default, .vp8: nil
        }
    }
}
