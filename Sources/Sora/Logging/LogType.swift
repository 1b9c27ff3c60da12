/// The part of the SDK, or of the application, that a log message comes from.
public enum LogType: Sendable, CustomStringConvertible {
    case sora
    case webSocketChannel
    case signaling
    case signalingChannel
    case peerChannel
    case nativePeerChannel
    case connectionTimer
    case mediaChannel
    case mediaStream
    case cameraVideoCapturer
    case videoRenderer
    case videoView
    /// A type of the application's own; the text is its name.
    case user(String)
    case configurationViewController
    case dataChannel

    public var description: String {
        switch self {
        case .sora: "Sora"
        case .webSocketChannel: "WebSocketChannel"
        case .signaling: "Signaling"
        case .signalingChannel: "SignalingChannel"
        case .peerChannel: "PeerChannel"
        case .nativePeerChannel: "NativePeerChannel"
        case .connectionTimer: "ConnectionTimer"
        case .mediaChannel: "MediaChannel"
        case .mediaStream: "MediaStream"
        case .cameraVideoCapturer: "CameraVideoCapturer"
        case .videoRenderer: "VideoRenderer"
        case .videoView: "VideoView"
        case .user(let name): name
        case .configurationViewController: "ConfigurationViewController"
        case .dataChannel: "DataChannel"
        }
    }
}
