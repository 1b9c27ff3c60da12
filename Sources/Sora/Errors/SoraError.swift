import Foundation

/// Every error that the SDK itself makes.
///
/// Applications switch over it exhaustively, so no case is ever added.
public enum SoraError: Error, LocalizedError {
    /// The attempt was cancelled by ``ConnectionTask/cancel()`` or ended by `disconnect(error: nil)`.
    case connectionCancelled
    /// ``Configuration/connectionTimeout`` seconds passed without a connection.
    case connectionTimeout
    /// A setting cannot be used.
    case configurationError(reason: String)
    /// A connection object was used a second time.
    case connectionBusy(reason: String)
    /// The server closed the WebSocket with a close frame.
    case webSocketClosed(statusCode: WebSocketStatusCode, reason: String?)
    /// The WebSocket failed without a close frame: refused, lost, DNS, TLS.
    case webSocketError(any Error)
    /// Signaling failed outside of the WebSocket itself, for instance at an HTTP proxy.
    case signalingChannelError(reason: String)
    /// A signaling message has not the form it should have.
    case invalidSignalingMessage
    /// A signaling message has a `type` that the SDK does not know.
    case unknownSignalingMessageType(type: String)
    /// The peer connection failed or is missing.
    case peerChannelError(reason: String)
    /// An operation on a ``MediaChannel`` is not possible.
    case mediaChannelError(reason: String)
    /// A camera operation failed.
    case cameraError(reason: String)
    /// A message could not be sent.
    case messagingError(reason: String)
    /// RPC is not possible now.
    case rpcUnavailable(reason: String)
    /// The parameters of an RPC call cannot be encoded.
    case rpcEncodingError(reason: String)
    /// The result of an RPC call is not of the expected type.
    case rpcDecodingError(reason: String)
    /// The channel that carried an RPC call ended.
    case rpcDataChannelClosed(reason: String)
    /// No reply came in time.
    case rpcTimeout
    /// The server answered an RPC call with an error.
    case rpcServerError(detail: RPCErrorDetail)
    /// The server ended the connection over data channels.
    case dataChannelClosed(statusCode: Int, reason: String)

    public var errorDescription: String? {
        switch self {
        case .connectionCancelled: "Connection is cancelled"
        case .connectionTimeout: "Connection is timeout"
        case .configurationError(let reason): "Configuration error (\(reason))"
        case .connectionBusy(let reason): "Connection is busy (\(reason))"
        case .webSocketClosed(let statusCode, let reason):
            "WebSocket is closed (\(statusCode.intValue()) \(reason ?? "Unknown reason"))"
        case .webSocketError(let error): "WebSocket error (\(error.localizedDescription))"
        case .signalingChannelError(let reason): "SignalingChannel error (\(reason))"
        case .invalidSignalingMessage: "Invalid signaling message format"
        case .unknownSignalingMessageType(let type): "Unknown signaling message type \(type)"
        case .peerChannelError(let reason): "PeerChannel error (\(reason))"
        case .mediaChannelError(let reason): "MediaChannel error (\(reason))"
        case .cameraError(let reason): "Camera error: \(reason)"
        case .messagingError(let reason): "Messaging error: \(reason)"
        case .rpcUnavailable(let reason): "RPC unavailable: \(reason)"
        case .rpcEncodingError(let reason): "RPC encoding error: \(reason)"
        case .rpcDecodingError(let reason): "RPC decoding error: \(reason)"
        case .rpcDataChannelClosed(let reason): "RPC DataChannel is closed: \(reason)"
        case .rpcTimeout: "RPC response timeout"
        case .rpcServerError(let detail): "RPC server error: \(detail.message) (\(detail.code))"
        case .dataChannelClosed(let statusCode, let reason): "DataChannel is closed (\(statusCode) \(reason))"
        }
    }
}
