import Foundation

/// One message of a WebSocket.
public enum WebSocketMessage: Sendable {
    /// A text message.
    case text(String)
    /// A message of bytes.
    case binary(Data)
}
