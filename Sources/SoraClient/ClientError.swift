import SoraPeer

/// Why a connection or an attempt ended. The texts are those of the public API's table (api.md 3.2.2).
package enum ClientError: Error, Equatable, Sendable, CustomStringConvertible {
    case cancelled
    case timeout
    case configuration(String)
    /// The server sent a close frame; code 1005 stands for an empty one.
    case webSocketClosed(code: UInt16, reason: String?)
    /// A WebSocket could not be opened or was lost without a close frame.
    case webSocketFailed(WebSocketFailure)
    /// Proxy failures and unusable redirects.
    case signalingChannel(String)
    case peerChannel(String)
    /// A description could not be applied or answered.
    case engine(PeerError)
    /// The server announced the end by `close` on the data channel.
    case dataChannelClosed(code: Int, reason: String)

    package var description: String {
        switch self {
        case .cancelled: "connection is cancelled"
        case .timeout: "connection timed out"
        case .configuration(let reason): "configuration error: \(reason)"
        case .webSocketClosed(let code, let reason): "server closed the WebSocket: \(code) \(reason ?? "")"
        case .webSocketFailed(let failure): failure.description
        case .signalingChannel(let reason): "signaling channel error: \(reason)"
        case .peerChannel(let reason): "peer channel error: \(reason)"
        case .engine(let error): error.description
        case .dataChannelClosed(let code, let reason): "server closed the data channels: \(code) \(reason)"
        }
    }
}

/// How a WebSocket failed without a close frame, in the driver's words.
package struct WebSocketFailure: Error, Equatable, Sendable, CustomStringConvertible {
    package var text: String
    /// The failure happened at the HTTP proxy.
    package var isProxy: Bool
    package init(_ text: String, isProxy: Bool = false) {
        self.text = text
        self.isProxy = isProxy
    }
    package var description: String { text }

    var error: ClientError { isProxy ? .signalingChannel(text) : .webSocketFailed(self) }
}

/// The terminal result of a connection; there is exactly one.
package struct ClientEnd: Equatable, Sendable {
    /// Nil: the application disconnected, or the server closed the channels without a word.
    package var error: ClientError?
    /// Whether ``ClientConnection/Event/connected`` came before.
    package var wasConnected: Bool

    package init(error: ClientError?, wasConnected: Bool) {
        self.error = error
        self.wasConnected = wasConnected
    }

    /// Code and reason of an end that is no failure; nil for failures.
    package var closeCode: (code: Int, reason: String)? {
        switch error {
        case nil: (1000, "NO-ERROR")
        case .webSocketClosed(let code, let reason): (Int(code), reason ?? "")
        case .dataChannelClosed(let code, let reason): (code, reason)
        default: nil
        }
    }
}

/// Why `sendMessage` refused.
package enum MessagingError: Error, Equatable, Sendable, CustomStringConvertible {
    case notSwitched
    case labelWithoutHash
    case unknownLabel(String)
    case notOpen(label: String, state: String)
    case sendFailed(label: String)

    package var description: String {
        switch self {
        case .notSwitched: "DataChannel is not open yet"
        case .labelWithoutHash: "label should start with #"
        case .unknownLabel(let label): "no DataChannel found: label => \(label)"
        case .notOpen(let label, let state):
            "readyState of the DataChannel is not open: label => \(label), readyState => \(state)"
        case .sendFailed(let label): "failed to send message: label => \(label)"
        }
    }
}

/// Why a call ended without a result.
package enum RPCFailure: Error, Equatable, Sendable {
    case unavailable(String)
    case encoding(String)
    case dataChannelClosed(String)
    case timeout
    case cancelled
}
