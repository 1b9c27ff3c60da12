import SoraWire

/// Something that happened in the server: a line of its log, and what tests assert on.
public struct ServerEvent: Sendable, CustomStringConvertible {
    public enum Kind: String, Sendable {
        /// `connect` was accepted and the offer sent.
        case connectReceived = "connect"
        /// `connect` was refused, or the client was redirected.
        case refused, redirected
        case answered
        /// Media or data is up and the others were told.
        case joined
        case left
        case switched
        case dataChannelOpened, dataChannelClosed
        case messageRelayed, messageDropped
        case rpc
        case forwardingStarted, keyFrameRequested, layerSwitched
        /// A sender came into focus or left it.
        case spotlight
        /// A receiver gets lower layers for lack of bandwidth.
        case bandwidthReduced
        case webSocketClosed
        case mediaLost
        case disconnected
        case protocolError
        case httpRequest
    }
    public var kind: Kind
    /// Time on the server's clock, for durations between events only.
    package var at: Instant
    public var channelID: String
    /// Empty for events that belong to no connection.
    public var connectionID: String
    /// What else is to be said. Never holds metadata, tokens or credentials.
    public var detail: String

    /// Seconds on the server's clock, which starts at an arbitrary point.
    public var seconds: Double { Double(at.nanoseconds) / 1e9 }

    /// One line. Control characters in the words of clients are escaped, so that nobody can forge a line of the
    /// log or speak to the terminal.
    public var description: String {
        var text = kind.rawValue
        if !channelID.isEmpty { text += " channel=\(channelID)" }
        if !connectionID.isEmpty { text += " connection=\(connectionID)" }
        if !detail.isEmpty { text += " \(detail)" }
        return text.escapingControlCharacters
    }
}
