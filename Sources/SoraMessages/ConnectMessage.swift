/// The client's first message (signaling specification 1.6). Unset members are left out of the JSON.
package struct ConnectMessage: Sendable, Equatable {
    package static let type = "connect"
    package var role: ConnectionRole
    package var channelID: String
    package var clientID: String?
    package var bundleID: String?
    /// ``JSONValue/null`` is sent as null; nil leaves the key out.
    package var metadata: JSONValue?
    package var signalingNotifyMetadata: JSONValue?
    package var multistream: Bool?
    package var simulcast: Bool?
    package var simulcastRID: LayerRID?
    package var simulcastRequestRID: LayerRID?
    package var spotlight: Bool?
    /// 1...8.
    package var spotlightNumber: Int?
    package var spotlightFocusRID: LayerRID?
    package var spotlightUnfocusRID: LayerRID?
    package var audio: MediaSetting<AudioWishes>?
    package var video: MediaSetting<VideoWishes>?
    /// A throw-away offer that shows the client's abilities.
    package var sdp: String?
    package var soraClient: String?
    package var libwebrtc: String?
    package var environment: String?
    /// Nil lets the server decide.
    package var dataChannelSignaling: Bool?
    /// Nil lets the server decide.
    package var ignoreDisconnectWebSocket: Bool?
    package var dataChannels: [DataChannelDefinition]?
    package var forwardingFilters: [ForwardingFilter]?
    /// The older single form. Never sent together with the list.
    package var forwardingFilter: ForwardingFilter?
    package var audioStreamingLanguageCode: String?
    /// True only on the connection after a redirect.
    package var redirect: Bool?
    /// Keys that are not known here.
    package var extra = JSONObject()

    package init(role: ConnectionRole, channelID: String) {
        self.role = role
        self.channelID = channelID
    }

    package var json: JSONObject {
        var object: JSONObject = ["type": .string(Self.type)]
        object.set("role", role)
        object.set("channel_id", channelID)
        object.set("client_id", clientID)
        object.set("bundle_id", bundleID)
        object.set("metadata", metadata)
        object.set("signaling_notify_metadata", signalingNotifyMetadata)
        object.set("multistream", multistream)
        object.set("simulcast", simulcast)
        object.set("simulcast_rid", simulcastRID)
        object.set("simulcast_request_rid", simulcastRequestRID)
        object.set("spotlight", spotlight)
        object.set("spotlight_number", spotlightNumber)
        object.set("spotlight_focus_rid", spotlightFocusRID)
        object.set("spotlight_unfocus_rid", spotlightUnfocusRID)
        object.set("audio", audio)
        object.set("video", video)
        object.set("sdp", sdp)
        object.set("sora_client", soraClient)
        object.set("libwebrtc", libwebrtc)
        object.set("environment", environment)
        object.set("data_channel_signaling", dataChannelSignaling)
        object.set("ignore_disconnect_websocket", ignoreDisconnectWebSocket)
        object.set("data_channels", dataChannels)
        object.set("forwarding_filters", forwardingFilters)
        object.set("forwarding_filter", forwardingFilter)
        object.set("audio_streaming_language_code", audioStreamingLanguageCode)
        object.set("redirect", redirect)
        object.append(missingFrom: extra)
        return object
    }

    package var wantsAudio: Bool { audio?.isEnabled ?? true }
    package var wantsVideo: Bool { video?.isEnabled ?? true }
    /// The list form, or the single one as a list. The list wins when both are there.
    package var effectiveForwardingFilters: [ForwardingFilter] {
        forwardingFilters ?? forwardingFilter.map { [$0] } ?? []
    }
    /// The newer wish wins when both are there.
    package var effectiveSimulcastRequestRID: LayerRID? { simulcastRequestRID ?? simulcastRID }
}

/// Why `connect` is refused: the reason beside close code 4490.
package struct ConnectRejection: Error, Equatable, Sendable, CustomStringConvertible {
    package var reason: String
    package init(reason: String) { self.reason = reason }
    package var description: String { "connect refused: \(reason)" }
}
