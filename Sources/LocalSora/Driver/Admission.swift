import SoraCrypto
import SoraMessages
import SoraWire

/// A client on its way in: what it asked for, and what it gets.
struct Admission: Sendable {
    let id: ConnectionID
    private(set) var connect: ConnectMessage
    private(set) var grant: ConnectionGrant
    private let settings: ChannelSettings
    /// Goes with event webhooks.
    private(set) var eventMetadata: JSONValue?

    init(connect: ConnectMessage, id: ConnectionID, settings: ChannelSettings) {
        self.connect = connect
        self.id = id
        self.settings = settings
        grant = ConnectionGrant(connect, connectionID: id, settings: settings)
    }

    // MARK: Access tokens

    /// Checks `metadata.access_token` and applies its claims.
    /// - Parameter wallClock: seconds since 1970.
    mutating func checkToken(_ configuration: ServerConfiguration, wallClock: Double) throws(ConnectRejection) {
        guard configuration.tokenSecret != nil || configuration.acceptsUncheckedTokens else { return }
        guard let text = connect.metadata?.objectValue?["access_token"]?.stringValue else {
            if configuration.tokenSecret == nil { return }
            throw ConnectRejection(reason: "ACCESS-TOKEN-REQUIRED")
        }
        let token: AccessToken
        do throws(AccessToken.Failure) {
            token = try AccessToken(text, secret: configuration.tokenSecret, wallClock: wallClock)
        } catch {
            throw ConnectRejection(reason: error.rawValue)
        }
        if let channel = token.claims["channel_id"], channel.stringValue != connect.channelID {
            throw ConnectRejection(reason: "ACCESS-TOKEN-FOR-ANOTHER-CHANNEL")
        }
        try apply(token.claims)
    }

    // MARK: Auth webhook

    /// - Parameter answer: nil if there was none, or none that could be used.
    mutating func apply(webhookAnswer answer: JSONObject?) throws(ConnectRejection) {
        guard let answer, let allowed = answer["allowed"]?.boolValue else {
            throw ConnectRejection(reason: SignalingReason.internalError)
        }
        guard allowed else {
            throw ConnectRejection(reason: answer["reason"]?.stringValue ?? "REJECTED")
        }
        try apply(answer)
    }

    /// Applies the keys of spec section 9.3, which override what the client asked for. Others are ignored.
    mutating func apply(_ values: JSONObject) throws(ConnectRejection) {
        var reader = GrantReader(values)
        let before = grant
        reader.set("client_id", &grant.clientID)
        reader.set("bundle_id", &grant.bundleID)
        reader.set("audio", &grant.audio)
        reader.set("audio_codec_type", &grant.audioCodec)
        reader.set("audio_bit_rate", &grant.audioBitRate)
        reader.set("video", &grant.video)
        reader.set("video_codec_type", &grant.videoCodec)
        reader.set("video_bit_rate", &grant.videoBitRate)
        reader.set("simulcast", &grant.simulcast)
        reader.set("simulcast_rid", &grant.simulcastRequestRID)
        reader.set("simulcast_request_rid", &grant.simulcastRequestRID)
        reader.setEncodings("simulcast_encodings", &grant.simulcastEncodings)
        reader.set("simulcast_rpc_rids", &grant.simulcastRPCRids)
        reader.set("spotlight", &grant.spotlight)
        reader.set("spotlight_number", &grant.spotlightNumber)
        reader.set("spotlight_focus_rid", &grant.spotlightRIDs.focus)
        reader.set("spotlight_unfocus_rid", &grant.spotlightRIDs.unfocus)
        reader.setEncodings("spotlight_encodings", &grant.spotlightEncodings)
        reader.set("data_channel_signaling", &grant.dataChannelSignaling)
        if grant.dataChannelSignaling, !before.dataChannelSignaling {
            // Turned on: what the client would have got, had it asked.
            grant.dataChannels = connect.dataChannels ?? []
            grant.rpcMethods = settings.rpcMethods
            grant.ignoreDisconnectWebSocket = connect.ignoreDisconnectWebSocket ?? settings.ignoreDisconnectWebSocket
        }
        reader.set("ignore_disconnect_websocket", &grant.ignoreDisconnectWebSocket)
        reader.set("data_channels", &grant.dataChannels)
        reader.set("rpc_methods", &grant.rpcMethods)
        reader.set("signaling_notify", &grant.notifies)
        var filter: ForwardingFilter?
        reader.set("forwarding_filter", &filter)
        if let filter { grant.forwardingFilters = [filter] }
        reader.set("forwarding_filters", &grant.forwardingFilters)
        reader.set("signaling_notify_metadata", &grant.authzMetadata)
        reader.set("metadata", &grant.metadata)
        reader.set("event_metadata", &eventMetadata)
        reader.set("user_agent_stats", &grant.collectsClientStats)
        // These go into URLs of the offer.
        reader.set("ipv4_address", &grant.turn.ipv4Address, if: TURNGrant.isIPv4Address)
        reader.set("ipv6_address", &grant.turn.ipv6Address, if: TURNGrant.isIPv6Address)
        reader.set("turn_fqdn", &grant.turn.domainName, if: TURNGrant.isDomainName)
        reader.set("turn_tls_fqdn", &grant.turn.tlsDomainName, if: TURNGrant.isDomainName)
        reader.set("turn_tcp_only", &grant.turn.allowsOnlyTCP)
        reader.set("turn_tls_only", &grant.turn.allowsOnlyTLS)
        var seconds: Double?
        reader.set("connection_lifetime", &seconds)
        if let seconds {
            // One that cannot be meant must not become none at all.
            guard seconds > 0, seconds < 1e9 else {
                throw ConnectRejection(reason: "INVALID-AUTH-RESULT-CONNECTION-LIFETIME")
            }
            grant.lifetime = .milliseconds(Int64(seconds * 1000))
        }
        applyParameters(&reader)
        if let key = reader.mistyped {
            throw ConnectRejection(reason: "INVALID-AUTH-RESULT-" + key.uppercased().replacing("_", with: "-"))
        }
        // Opus is what is offered, under whatever historic name it is granted.
        if grant.audioCodec != settings.audioCodec {
            guard ConnectMessage.audioCodecTypes.contains(grant.audioCodec) else {
                throw ConnectRejection(reason: "INVALID-AUDIO-CODEC-TYPE")
            }
            grant.audioCodec = settings.audioCodec
        }
        grant.settle()
        try validate()
    }

    /// Codec parameters are read from `connect` later; what was granted stands there instead.
    private mutating func applyParameters(_ reader: inout GrantReader) {
        var opus: OpusParameters?
        reader.set("audio_opus_params", &opus)
        if let opus {
            var wishes = connect.audio?.wishes ?? AudioWishes()
            wishes.opusParams = opus
            connect.audio = .wishes(wishes)
        }
        var wishes = connect.video?.wishes ?? VideoWishes()
        let before = wishes
        reader.set("video_vp9_params", &wishes.vp9Params)
        reader.set("video_av1_params", &wishes.av1Params)
        reader.set("video_h264_params", &wishes.h264Params)
        reader.set("video_h265_params", &wishes.h265Params)
        if wishes != before { connect.video = .wishes(wishes) }
    }

    /// What is granted must be as sound as what a client may ask for.
    private func validate() throws(ConnectRejection) {
        var check = connect
        check.clientID = grant.clientID
        check.bundleID = grant.bundleID
        var video = check.video?.wishes ?? VideoWishes()
        video.codecType = grant.videoCodec
        video.bitRate = grant.videoBitRate
        check.video = grant.video ? .wishes(video) : .enabled(false)
        var audio = check.audio?.wishes ?? AudioWishes()
        audio.codecType = grant.audioCodec
        audio.bitRate = grant.audioBitRate
        check.audio = grant.audio ? .wishes(audio) : .enabled(false)
        check.spotlight = grant.spotlight
        check.spotlightNumber = grant.spotlightNumber
        check.spotlightFocusRID = nil
        check.spotlightUnfocusRID = nil
        check.dataChannelSignaling = grant.dataChannelSignaling
        check.dataChannels = grant.dataChannels.isEmpty ? nil : grant.dataChannels
        check.forwardingFilter = nil
        check.forwardingFilters = grant.forwardingFilters.isEmpty ? nil : grant.forwardingFilters
        try check.validate()
    }
}

/// Takes granted values out of an object and remembers the first of a wrong type or form.
private struct GrantReader {
    private let values: JSONObject
    private(set) var mistyped: String?

    init(_ values: JSONObject) { self.values = values }

    mutating func set<Value: JSONConvertible>(_ key: String, _ target: inout Value) {
        guard let json = values[key], !json.isNull else { return }
        if let value = Value(json: json) { target = value } else { mistyped = mistyped ?? key }
    }

    mutating func set<Value: JSONConvertible>(_ key: String, _ target: inout Value?) {
        guard let json = values[key], !json.isNull else { return }
        if let value = Value(json: json) { target = value } else { mistyped = mistyped ?? key }
    }

    mutating func set(_ key: String, _ target: inout String?, if isSound: (String) -> Bool) {
        var text: String?
        set(key, &text)
        guard let text else { return }
        if isSound(text) { target = text } else { mistyped = mistyped ?? key }
    }

    /// Encodings name layers, each once. They are offered lowest first.
    mutating func setEncodings(_ key: String, _ target: inout [SimulcastEncoding]?) {
        var encodings: [SimulcastEncoding]?
        set(key, &encodings)
        guard let encodings else { return }
        let rids = encodings.compactMap(\.rid).filter { LayerRID(rawValue: $0).map { $0 != .none } ?? false }
        guard !encodings.isEmpty, Set(rids).count == encodings.count else {
            mistyped = mistyped ?? key
            return
        }
        target = encodings.sorted { ($0.rid ?? "") < ($1.rid ?? "") }
    }
}
