extension ConnectMessage {
    /// Longest channel, client and bundle id and data-channel label, in UTF-8 bytes.
    package static let maximumIDLength = 255
    package static let maximumDataChannels = 128
    package static let maximumForwardingFilters = 64
    /// `OPUS` and historic ones.
    package static let audioCodecTypes = ["OPUS", "PCMU", "LYRA", "MULTIOPUS"]

    /// Reads and judges the first message of a client, as signaling specification 1.10 asks. Keys that
    /// are not known are kept; JSON null counts as absent, except for metadata.
    ///
    /// - Parameter dataChannelSignalingDefault: what the server does when the client leaves
    ///   `data_channel_signaling` out.
    package init(validating json: JSONValue, dataChannelSignalingDefault: Bool = true) throws(ConnectRejection) {
        guard let object = json.objectValue, object["type"]?.stringValue == Self.type else {
            throw ConnectRejection(reason: "INVALID-CONNECT-MESSAGE")
        }
        var fields = FieldReader(object)
        fields.drop("type")
        guard let role: ConnectionRole = fields.read("role") else { throw ConnectRejection(reason: "INVALID-ROLE") }
        guard let channelID: String = fields.read("channel_id"), Self.isValidID(channelID) else {
            throw ConnectRejection(reason: "INVALID-CHANNEL-ID")
        }
        self.init(role: role, channelID: channelID)
        clientID = fields.read("client_id")
        bundleID = fields.read("bundle_id")
        metadata = fields.read("metadata")
        signalingNotifyMetadata = fields.read("signaling_notify_metadata")
        multistream = fields.read("multistream")
        simulcast = fields.read("simulcast")
        simulcastRID = fields.read("simulcast_rid")
        simulcastRequestRID = fields.read("simulcast_request_rid")
        // Very old clients sent a number.
        if let number = object["spotlight"]?.intValue {
            fields.drop("spotlight")
            spotlight = number != 0
        } else {
            spotlight = fields.read("spotlight")
        }
        spotlightNumber = fields.read("spotlight_number")
        spotlightFocusRID = fields.read("spotlight_focus_rid")
        spotlightUnfocusRID = fields.read("spotlight_unfocus_rid")
        audio = fields.read("audio")
        video = fields.read("video")
        sdp = fields.read("sdp")
        soraClient = fields.read("sora_client")
        libwebrtc = fields.read("libwebrtc")
        environment = fields.read("environment")
        dataChannelSignaling = fields.read("data_channel_signaling")
        ignoreDisconnectWebSocket = fields.read("ignore_disconnect_websocket")
        dataChannels = fields.read("data_channels")
        forwardingFilters = fields.read("forwarding_filters")
        forwardingFilter = fields.read("forwarding_filter")
        audioStreamingLanguageCode = fields.read("audio_streaming_language_code")
        redirect = fields.read("redirect")
        if let key = fields.mistyped.first { throw ConnectRejection(reason: Self.reason(forKey: key)) }
        extra = fields.rest
        try validate(dataChannelSignalingDefault: dataChannelSignalingDefault)
    }

    /// Judges the values against each other.
    package func validate(dataChannelSignalingDefault: Bool = true) throws(ConnectRejection) {
        if !Self.isValidID(channelID) { throw ConnectRejection(reason: "INVALID-CHANNEL-ID") }
        if let clientID, !Self.isValidID(clientID) { throw ConnectRejection(reason: "INVALID-CLIENT-ID") }
        if let bundleID, !Self.isValidID(bundleID) { throw ConnectRejection(reason: "INVALID-BUNDLE-ID") }
        if multistream == false { throw ConnectRejection(reason: "SINGLE-STREAM-IS-NOT-SUPPORTED") }
        if spotlight != true {
            if spotlightFocusRID != nil { throw ConnectRejection(reason: "SPOTLIGHT-FOCUS-RID-WITHOUT-SPOTLIGHT") }
            if spotlightUnfocusRID != nil { throw ConnectRejection(reason: "SPOTLIGHT-UNFOCUS-RID-WITHOUT-SPOTLIGHT") }
        }
        if let spotlightNumber, !(1...8).contains(spotlightNumber) {
            throw ConnectRejection(reason: "INVALID-SPOTLIGHT-NUMBER")
        }
        try validateMedia()
        try validateDataChannels()
        try validateForwardingFilters()
        if !wantsAudio, !wantsVideo, !(dataChannelSignaling ?? dataChannelSignalingDefault) {
            throw ConnectRejection(reason: "NOTHING-TO-NEGOTIATE")
        }
    }

    private static func isValidID(_ id: String) -> Bool { (1...maximumIDLength).contains(id.utf8.count) }

    private static func reason(forKey key: String) -> String {
        "INVALID-" + key.uppercased().replacing("_", with: "-")
    }

    private func validateMedia() throws(ConnectRejection) {
        if let wishes = audio?.wishes {
            if let codec = wishes.codecType, !Self.audioCodecTypes.contains(codec) {
                throw ConnectRejection(reason: "INVALID-AUDIO-CODEC-TYPE")
            }
            if let rate = wishes.bitRate, !(6...510).contains(rate) {
                throw ConnectRejection(reason: "INVALID-AUDIO-BIT-RATE")
            }
            if let opus = wishes.opusParams, !opus.isInRange {
                throw ConnectRejection(reason: "INVALID-AUDIO-OPUS-PARAMS")
            }
        }
        if let wishes = video?.wishes {
            if let codec = wishes.codecType, !["VP8", "VP9", "AV1", "H264", "H265"].contains(codec) {
                throw ConnectRejection(reason: "INVALID-VIDEO-CODEC-TYPE")
            }
            if let rate = wishes.bitRate, !(1...50_000).contains(rate) {
                throw ConnectRejection(reason: "INVALID-VIDEO-BIT-RATE")
            }
            try validateParameters(of: wishes)
        }
    }

    /// Codec parameters stand in the offer's `a=fmtp`, where a wrong one would end the negotiation.
    private func validateParameters(of wishes: VideoWishes) throws(ConnectRejection) {
        func number(_ parameters: JSONObject?, _ key: String, in range: ClosedRange<Int>) -> Bool {
            guard let value = parameters?[key], !value.isNull else { return true }
            return value.exactIntValue.map(range.contains) ?? false
        }
        func flag(_ parameters: JSONObject?, _ key: String) -> Bool {
            guard let value = parameters?[key], !value.isNull else { return true }
            return value.boolValue != nil
        }
        guard number(wishes.vp9Params, "profile_id", in: 0...3) else {
            throw ConnectRejection(reason: "INVALID-VIDEO-VP9-PARAMS")
        }
        guard number(wishes.av1Params, "profile", in: 0...2) else {
            throw ConnectRejection(reason: "INVALID-VIDEO-AV1-PARAMS")
        }
        var isLevel = true
        if let level = wishes.h264Params?["profile_level_id"], !level.isNull {
            isLevel = level.stringValue.map { $0.utf8.count == 6 && UInt32($0, radix: 16) != nil } ?? false
        }
        guard isLevel, flag(wishes.h264Params, "b_frame") else {
            throw ConnectRejection(reason: "INVALID-VIDEO-H264-PARAMS")
        }
        guard number(wishes.h265Params, "level_id", in: 1...255), flag(wishes.h265Params, "b_frame") else {
            throw ConnectRejection(reason: "INVALID-VIDEO-H265-PARAMS")
        }
    }

    private func validateDataChannels() throws(ConnectRejection) {
        guard let dataChannels else { return }
        guard dataChannels.count <= Self.maximumDataChannels else {
            throw ConnectRejection(reason: "TOO-MANY-DATA-CHANNELS")
        }
        var labels = Set<String>()
        for channel in dataChannels {
            guard SystemLabel.isApplication(channel.label), channel.label.utf8.count <= Self.maximumIDLength else {
                throw ConnectRejection(reason: "INVALID-DATA-CHANNEL-LABEL")
            }
            guard labels.insert(channel.label).inserted else {
                throw ConnectRejection(reason: "DUPLICATE-DATA-CHANNEL-LABEL")
            }
            guard channel.direction != nil else { throw ConnectRejection(reason: "INVALID-DATA-CHANNEL-DIRECTION") }
            guard channel.maxPacketLifeTime == nil || channel.maxRetransmits == nil else {
                throw ConnectRejection(reason: "MAX-PACKET-LIFE-TIME-AND-MAX-RETRANSMITS")
            }
            let limits = [channel.maxPacketLifeTime, channel.maxRetransmits].compactMap { $0 }
            guard limits.allSatisfy({ (0...65_535).contains($0) }) else {
                throw ConnectRejection(reason: "INVALID-DATA-CHANNEL-RELIABILITY")
            }
            guard (channel.header ?? []).allSatisfy({ $0.type == DataChannelHeaderField.senderConnectionID }) else {
                throw ConnectRejection(reason: "INVALID-DATA-CHANNEL-HEADER")
            }
        }
    }

    private func validateForwardingFilters() throws(ConnectRejection) {
        let filters = effectiveForwardingFilters
        guard filters.count <= Self.maximumForwardingFilters else {
            throw ConnectRejection(reason: "TOO-MANY-FORWARDING-FILTERS")
        }
        var names = Set<String>()
        for filter in filters where !names.insert(filter.effectiveName).inserted {
            throw ConnectRejection(reason: "DUPLICATE-FORWARDING-FILTER-NAME")
        }
    }
}
