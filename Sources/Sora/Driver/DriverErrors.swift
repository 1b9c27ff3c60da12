import Foundation
internal import SoraClient
internal import SoraMessages
internal import SoraPeer

/// An error of the engine or the network, in its own words.
struct EngineError: Error, LocalizedError, CustomStringConvertible {
    let description: String
    var errorDescription: String? { description }

    /// `error` itself if it has words for people, otherwise its description as an error of the engine.
    static func wrapping(_ error: any Error) -> any Error {
        error is any LocalizedError ? error : EngineError(description: "\(error)")
    }
}

extension ClientError {
    /// The error that the application gets.
    var publicError: any Error {
        switch self {
        case .cancelled: SoraError.connectionCancelled
        case .timeout: SoraError.connectionTimeout
        case .configuration(let reason): SoraError.configurationError(reason: reason)
        case .webSocketClosed(let code, let reason):
            SoraError.webSocketClosed(statusCode: WebSocketStatusCode(rawValue: Int(code)), reason: reason)
        case .webSocketFailed(let failure): SoraError.webSocketError(EngineError(description: failure.text))
        case .signalingChannel(let reason): SoraError.signalingChannelError(reason: reason)
        case .peerChannel(let reason): SoraError.peerChannelError(reason: reason)
        case .engine(let error): EngineError(description: error.description)
        case .dataChannelClosed(let code, let reason): SoraError.dataChannelClosed(statusCode: code, reason: reason)
        }
    }
}

extension ClientConnection.RPCOutcome {
    /// The outcome in the words of ``ConnectionDriver``.
    var publicResult: Result<RPCAnswer?, any Error> {
        switch self {
        case .sent: .success(nil)
        case .result(let id, let result, _): .success(RPCAnswer(id: id, result: Data(result.text.utf8)))
        case .serverError(let error, _):
            .failure(
                SoraError.rpcServerError(
                    detail: RPCErrorDetail(
                        code: error.code, message: error.message, data: error.data.flatMap { JSONValue(wire: $0) })))
        case .failure(let failure):
            switch failure {
            case .unavailable(let reason): .failure(SoraError.rpcUnavailable(reason: reason))
            case .encoding(let reason): .failure(SoraError.rpcEncodingError(reason: reason))
            case .dataChannelClosed(let reason): .failure(SoraError.rpcDataChannelClosed(reason: reason))
            case .timeout: .failure(SoraError.rpcTimeout)
            case .cancelled: .failure(CancellationError())
            }
        }
    }
}
