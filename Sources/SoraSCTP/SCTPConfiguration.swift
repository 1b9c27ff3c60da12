/// What an association may use and must keep to. Sizes are in bytes.
package struct SCTPConfiguration: Sendable {
    /// Port numbers in the common header; `a=sctp-port` (RFC 8841). They only have to match.
    package var localPort: UInt16 = 5000
    package var remotePort: UInt16 = 5000
    /// Largest SCTP packet sent, including the common header. The default leaves room for a DTLS 1.2
    /// AES-GCM record (37 bytes) in a UDP payload of 1,200. Rounded down to a multiple of four.
    package var maximumPacketSize = 1160
    /// Largest message accepted from the peer: what `a=max-message-size` of our description says.
    package var maximumMessageSize = 262_144
    /// Largest message the peer accepts: its `a=max-message-size`, 65,536 if it gave none,
    /// `Int.max` if it said 0 (RFC 8841, 6).
    package var remoteMaximumMessageSize = 65_536
    /// Offer and use zero checksums, since DTLS already protects every packet (RFC 9653).
    package var zeroChecksum = true
    /// Streams offered and accepted; ids from 0 up to this number less one. Costs nothing until used.
    package var maximumStreams: UInt16 = 65_535
    /// Channels open at one time.
    package var maximumChannels = 1_024
    /// Bytes that may wait in one channel's send queue before `send` refuses.
    package var maximumBufferedAmount = 16 * 1_048_576
    /// Receive window: bytes held for reordering, reassembly and for an application that does not read.
    package var receiveWindow = 8 * 1_048_576
    /// Bytes kept for channels whose OPEN has not arrived yet (RFC 8832, 6).
    package var maximumHeldBytes = 1_048_576
    /// Bytes of a label or protocol accepted from the peer.
    package var maximumLabelLength = 65_535

    /// Retransmission timeout before the first measurement, and its bounds (RFC 9260, 6.3.1).
    package var initialRetransmissionTimeout: Duration = .milliseconds(500)
    package var minimumRetransmissionTimeout: Duration = .milliseconds(250)
    package var maximumRetransmissionTimeout: Duration = .seconds(4)
    /// Attempts of the handshake's chunks before giving up.
    package var maximumHandshakeRetransmissions = 12
    /// Consecutive timeouts without a sign of life before giving up.
    package var maximumRetransmissions = 16
    /// Longest that an acknowledgement is held back (RFC 9260, 6.2: at most 500 ms).
    package var acknowledgementDelay: Duration = .milliseconds(20)
    /// Quiet time after which the path is probed; nil for never.
    package var heartbeatInterval: Duration? = .seconds(30)
    /// How long a state cookie stays good.
    package var cookieLifetime: Duration = .seconds(60)
    /// First congestion window, in full packets.
    package var initialWindowPackets = 10
    /// Congestion window after a timeout, in full packets.
    package var minimumWindowPackets = 4
    /// Upper bound of the congestion window.
    package var maximumCongestionWindow = 16 * 1_048_576
    /// Most packets that leave at once after an acknowledgement.
    package var maximumBurstPackets = 64

    package init() {}

    /// `maximumPacketSize` made usable: a multiple of four, at least 128, below the limits of 16-bit lengths.
    var packetLimit: Int { min(max(maximumPacketSize, 128), 65_532) & ~3 }
    /// `maximumMessageSize` made usable: within what sums of sizes can hold.
    var messageLimit: Int { min(max(maximumMessageSize, 0), 1 << 30) }
    /// Most streams named in one reset request: what fits a packet with room to spare.
    var resetLimit: Int { min(400, (packetLimit - 64) / 2) }
    /// `receiveWindow` made usable: room for at least two messages, and within 32 bits.
    var windowLimit: Int { min(max(receiveWindow, 4_096), Int(UInt32.max)) }
}
