import SoraMessages
import SoraWire

/// One signaling message that the server is about to send, as a script sees it.
public struct ScriptedMessage: Sendable {
    public var channelID: String
    public var connectionID: String
    /// `offer`, `re-offer`, `notify`, `push`, `ping`, `req-stats`, `switched`, `close`, `rpc`.
    public var type: String
    /// The message as JSON text.
    public var text: String
    /// The data channel label that carries it, or nil for the WebSocket.
    public var label: String?
    /// How many messages of this type this connection was about to get before this one.
    public var index: Int
}

/// What a script does with one message. Several actions are done in order.
public enum ScriptAction: Sendable {
    /// Sends the message as it is.
    case pass
    /// Never sends it.
    case drop
    /// Sends this text instead of, or in addition to, the message, on the same carrier.
    case send(String)
    /// Sends the message after a while.
    case delay(Duration)
    /// Keeps the message until ``SoraServer/release(_:)`` is called with this name.
    case hold(String)
    /// Closes the WebSocket with this code and reason. Data channels stay as they are.
    case closeWebSocket(code: UInt16, reason: String)
    /// Cuts the TCP connection without a close frame.
    case resetWebSocket
}

/// A message that leaves later.
struct DelayedMessage {
    var due: Instant
    var member: ConnectionID
    var text: String
    var carrier: Carrier
}

/// What a signaling message travels on.
enum Carrier: Equatable {
    case webSocket
    case dataChannel(String)
}
