import Foundation
import Sora

/// Sorts errors of the SDK into exit statuses, with one sentence each.
enum FailureClass {
    static func failure(of error: any Error, doing what: String) -> CommandFailure {
        guard let error = error as? SoraError else {
            return CommandFailure(.failure, "\(what): \(error.localizedDescription)")
        }
        let text = error.errorDescription ?? "\(error)"
        return CommandFailure(status(of: error, text: text), "\(what): \(text)")
    }

    private static func status(of error: SoraError, text: String) -> ExitStatus {
        switch error {
        case .connectionCancelled: .interrupted
        case .connectionTimeout, .rpcTimeout: .timeout
        case .configurationError: .usage
        case .webSocketClosed(let code, _): code.intValue() == 1000 ? .success : .refused
        case .dataChannelClosed(let code, _): code == 1000 ? .success : .refused
        case .webSocketError: webSocketStatus(text.lowercased())
        case .invalidSignalingMessage, .unknownSignalingMessageType, .signalingChannelError: .protocolError
        case .peerChannelError(let reason): peerStatus(reason.lowercased())
        case .mediaChannelError, .cameraError, .messagingError, .rpcUnavailable, .rpcEncodingError,
            .rpcDecodingError, .rpcDataChannelClosed, .rpcServerError, .connectionBusy:
            .failure
        }
    }

    private static func webSocketStatus(_ text: String) -> ExitStatus {
        if text.contains("resolve") || text.contains("name") && text.contains("not known") { return .hostNotFound }
        if text.contains("certificate") || text.contains("tls") { return .tls }
        if text.contains("timed out") || text.contains("timeout") { return .timeout }
        if text.contains("websocket handshake") || text.contains("instead of opening") || text.contains("http") {
            return .protocolError
        }
        return .unavailable
    }

    private static func peerStatus(_ reason: String) -> ExitStatus {
        if reason.contains("dtls") { return .dtls }
        if reason.hasPrefix("peer connection state:") || reason.contains("ice") { return .ice }
        return .sessionDescription
    }
}
