import SoraWire

/// Why a channel operation was refused or an association ended.
package enum SCTPError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The peer's `max-message-size` is smaller than the message. Nothing was sent; the channel stays usable.
    case messageTooLarge(size: Int, limit: Int)
    /// The channel's send queue is full. Wait for `bufferedAmountLow`.
    case sendBufferFull(StreamID, buffered: Int, size: Int, limit: Int)
    /// No channel has this id.
    case unknownChannel(StreamID)
    /// The channel is closing.
    case channelClosing(StreamID)
    /// Text sent as a text message that is not UTF-8 is refused by the caller; labels are checked here.
    case labelTooLong(bytes: Int, limit: Int)
    case protocolTooLong(bytes: Int, limit: Int)
    /// A negotiated id that another channel uses, or whose streams are still being reset.
    case streamInUse(StreamID)
    /// An id at or above what both ends can carry.
    case streamOutOfRange(StreamID, limit: Int)
    case tooManyChannels(limit: Int)
    /// The association has ended.
    case associationClosed
    /// The peer ended the association. Cause code and text of RFC 9260, 3.3.10, if it gave any.
    case aborted(cause: UInt16?, reason: String)
    case handshakeTimedOut(attempts: Int)
    case peerUnreachable(timeouts: Int)
    case peerRestarted
    case protocolViolation(String)

    package var description: String {
        switch self {
        case .messageTooLarge(let size, let limit):
            "message of \(size) bytes: the peer accepts at most \(limit); split it"
        case .sendBufferFull(let id, let buffered, let size, let limit):
            "channel \(id) has \(buffered) of \(limit) bytes waiting, no room for \(size) more; "
                + "send again when bufferedAmount is low"
        case .unknownChannel(let id): "no data channel with id \(id)"
        case .channelClosing(let id): "data channel \(id) is closing"
        case .labelTooLong(let bytes, let limit): "label of \(bytes) bytes; at most \(limit) are possible"
        case .protocolTooLong(let bytes, let limit): "protocol of \(bytes) bytes; at most \(limit) are possible"
        case .streamInUse(let id): "id \(id) is in use or still closing; choose another or wait for its close"
        case .streamOutOfRange(let id, let limit): "id \(id) is out of range; ids below \(limit) are possible"
        case .tooManyChannels(let limit): "all \(limit) data channels are in use; close one first"
        case .associationClosed: "the SCTP association has ended; open a new peer connection"
        case .aborted(let cause, let reason):
            "the peer aborted the association" + (cause.map { " (cause \($0))" } ?? "")
                + (reason.isEmpty ? "" : ": \(reason)")
        case .handshakeTimedOut(let attempts):
            "no answer to the SCTP handshake after \(attempts) attempts; check the peer's SCTP port"
        case .peerUnreachable(let timeouts): "the peer acknowledged nothing in \(timeouts) timeouts in a row"
        case .peerRestarted: "the peer restarted its SCTP association; open a new peer connection"
        case .protocolViolation(let what): "the peer broke the protocol: \(what)"
        }
    }
}
