import SoraWire

/// How hard a channel tries to deliver a message (RFC 8831, 6.6; W3C `maxRetransmits`, `maxPacketLifeTime`).
package enum Reliability: Equatable, Sendable {
    case reliable
    /// One transmission and at most this many repetitions.
    case maxRetransmits(UInt16)
    /// No transmission later than this after `send`.
    case maxLifetime(milliseconds: UInt16)

    /// The limits of a message sent at `now`.
    func limits(now: Instant) -> DeliveryLimits {
        switch self {
        case .reliable: DeliveryLimits()
        case .maxRetransmits(let count): DeliveryLimits(maximumRetransmissions: Int(count))
        case .maxLifetime(let milliseconds): DeliveryLimits(expires: now + .milliseconds(Int(milliseconds)))
        }
    }
}

/// What both ends know of a data channel.
package struct DataChannelInfo: Equatable, Sendable {
    package var id: StreamID
    package var label: String
    package var protocolName: String
    package var ordered: Bool
    package var reliability: Reliability
    /// Weight against the other channels (RFC 8831, 6.4): 128 below normal, 256 normal, 512 high, 1024 extra high.
    package var priority: UInt16
    /// The peer opened it.
    package var isRemote: Bool
    /// Both sides were told its id by the application; no OPEN was exchanged.
    package var isNegotiated: Bool

    package init(
        id: StreamID, label: String, protocolName: String = "", ordered: Bool = true,
        reliability: Reliability = .reliable, priority: UInt16 = 256, isRemote: Bool = false,
        isNegotiated: Bool = false
    ) {
        self.id = id
        self.label = label
        self.protocolName = protocolName
        self.ordered = ordered
        self.reliability = reliability
        self.priority = priority
        self.isRemote = isRemote
        self.isNegotiated = isNegotiated
    }
}

/// Counters of one channel, as in W3C `RTCDataChannelStats`. Bytes are user bytes.
package struct DataChannelStatistics: Equatable, Sendable {
    package var messagesSent = 0
    package var bytesSent = 0
    package var messagesReceived = 0
    package var bytesReceived = 0
    package init() {}
}
