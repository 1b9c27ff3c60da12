import SoraMessages
import SoraPeer
import SoraWire

/// What is known of a connection at one moment, for the HTTP API, webhooks and metrics. A value.
package struct ConnectionRecord: Sendable {
    package var channelID: String
    package var sessionID: String
    package var connectionID: String
    package var grant: ConnectionGrant
    /// What it sent in `connect`.
    package var connect: ConnectMessage
    package var notifyMetadata: JSONValue?
    /// On the server's clock.
    package var joinedAt: Instant
    /// When it was announced to the others; nil before.
    package var connectedAt: Instant?
    /// Seconds since 1970.
    package var createdTime: Double
    /// Since it was announced.
    package var minutes: Int
    package var counts: ChannelCounts
    package var webSocketIsOpen: Bool
    package var isSwitched: Bool
    package var isFocused: Bool
    /// Payload bytes of media and messages that the client sent us, and that we sent it.
    package var receivedBytes: UInt64
    package var sentBytes: UInt64
    /// How long ICE has been checking, and disconnected.
    package var checkingTime: Duration
    package var disconnectedTime: Duration
    /// What the client reported last, as it came: an array of RTCStats.
    package var clientStats: JSONValue?

    package var object: ConnectionObject {
        var audio: JSONValue = .bool(grant.audio)
        if grant.audio {
            var object: JSONObject = ["codec_type": .string(grant.audioCodec)]
            if let rate = grant.audioBitRate { object["bit_rate"] = .integer(Int64(rate)) }
            audio = .object(object)
        }
        var video: JSONValue = .bool(grant.video)
        if grant.video {
            video = ["codec_type": .string(grant.videoCodec), "bit_rate": .integer(Int64(grant.videoBitRate))]
        }
        return ConnectionObject(
            channelID: channelID, sessionID: sessionID, clientID: grant.clientID, bundleID: grant.bundleID,
            connectionID: connectionID, role: grant.role, audio: audio, video: video, simulcast: grant.simulcast,
            spotlight: grant.spotlight, createdTime: Int(createdTime))
    }
}

/// How many connections a channel has, by role. Only announced ones count.
package struct ChannelCounts: Sendable, Equatable {
    package var connections = 0
    package var sendrecv = 0
    package var sendonly = 0
    package var recvonly = 0

    mutating func add(_ role: ConnectionRole) {
        connections += 1
        switch role {
        case .sendrecv: sendrecv += 1
        case .sendonly: sendonly += 1
        case .recvonly: recvonly += 1
        }
    }
}

/// Something that happened to a connection, for event webhooks and counters.
package struct ConnectionEvent: Sendable {
    package enum Kind: String, Sendable {
        case created, updated, destroyed
        /// It ended before it was announced.
        case failed
        case spotlightFocused, spotlightUnfocused
    }
    package var kind: Kind
    package var record: ConnectionRecord
    /// Close code and reason; with `destroyed` and `failed`.
    package var code: UInt16?
    package var reason: String?
    /// What the HTTP API's caller gave as reason.
    package var apiReason: JSONValue?
    /// `reason` of the client's `disconnect` message.
    package var clientReason: String?
    /// With the spotlight's events.
    package var isFixed: Bool?
}

/// A channel's session: from its first connection to its last.
package struct SessionRecord: Sendable {
    package var channelID: String
    package var sessionID: String
    package var isSpotlight: Bool
    /// Seconds since 1970.
    package var createdTime: Double
    package var counts: ChannelCounts
    /// Most connections at one time, and all that ever were.
    package var maximumConnections: Int
    package var totalConnections: Int
}

/// Counters of a connection's tracks.
package struct ConnectionStatistics: Sendable {
    package struct Layer: Sendable {
        /// `r0`…; nil without simulcast.
        package var rid: String?
        package var isActive: Bool
        package var packets: UInt64
        /// Bits per second.
        package var bitrate: Int
        package var keyFrameRequests: Int
    }
    /// What it sends, by kind.
    package struct Sent: Sendable {
        package var kind: String
        package var codec: String?
        package var layers: [Layer]
        package var subscribers: Int
    }
    /// What it receives of one sender.
    package struct Received: Sendable {
        package var senderConnectionID: String
        package var kind: String
        /// `none` while nothing is forwarded.
        package var rid: String
        package var packets: UInt64
        package var bytes: UInt64
        package var layerSwitches: Int
        package var isBlocked: Bool
        package var isPaused: Bool
        package var isLimitedByBandwidth: Bool
    }
    package var connectionID: String
    package var sent: [Sent]
    package var received: [Received]
    /// Bits per second that the way to the client is estimated to carry.
    package var availableBitrate: Int?
    package var messagesReceived: UInt64
    package var messagesSent: UInt64
    package var peer: PeerStatistics
}
