/// How a connection ended.
public enum SoraCloseEvent: Sendable {
    /// In order: by the application, by the server, by the server's API, also when authentication was refused.
    case ok(code: Int, reason: String)
    /// By a failure of network, WebSocket, ICE or settings, a time-out or a cancellation.
    case error(any Error)

    /// The public value for the raw error with which a connection ended.
    init(rawError: (any Error)?) {
        switch rawError {
        case nil: self = .ok(code: 1000, reason: "NO-ERROR")
        case SoraError.webSocketClosed(let statusCode, let reason)?:
            self = .ok(code: statusCode.intValue(), reason: reason ?? "")
        case SoraError.dataChannelClosed(let statusCode, let reason)?:
            self = .ok(code: statusCode, reason: reason)
        case let error?: self = .error(error)
        }
    }
}
