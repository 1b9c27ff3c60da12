import Foundation

/// One message of a WebSocket.
public enum WebSocketMessage: Sendable {
    case text(String)
    case binary(Data)
}
