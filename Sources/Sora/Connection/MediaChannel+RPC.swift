import Foundation

extension MediaChannel {
    /// Calls a method of the server over the `rpc` data channel.
    ///
    /// - Parameters:
    ///   - method: the type of the method; see ``RPCMethodProtocol``.
    ///   - params: its parameters.
    ///   - is_notification_request: true sends a notification, which has no answer; the result is nil.
    ///   - timeout: seconds from sending on.
    nonisolated(nonsending) public func rpc<M: RPCMethodProtocol>(
        method: M.Type, params: M.Params, is_notification_request: Bool = false, timeout: TimeInterval = 5.0
    ) async throws -> RPCResponse<M.Result>? {
        guard
            let (id, result) = try await call(
                method, params, isNotification: is_notification_request, timeout: timeout)
        else { return nil }
        return RPCResponse(id: id, result: result)
    }

    /// The same with the other spelling of the label, which has no default.
    nonisolated(nonsending) public func rpc<M: RPCMethodProtocol>(
        method: M.Type, params: M.Params, isNotificationRequest: Bool, timeout: TimeInterval = 5.0
    ) async throws -> RPCResponse<M.Result>? {
        guard
            let (id, result) = try await call(method, params, isNotification: isNotificationRequest, timeout: timeout)
        else { return nil }
        return RPCResponse(id: id, result: result)
    }

    /// Calls a method whose values may cross actors.
    nonisolated(nonsending) public func sendableRPC<M: SendableRPCMethodProtocol>(
        method: M.Type, params: M.Params, isNotificationRequest: Bool = false, timeout: TimeInterval = 5.0
    ) async throws -> SendableRPCResponse<M.Result>? {
        guard
            let (id, result) = try await call(method, params, isNotification: isNotificationRequest, timeout: timeout)
        else { return nil }
        return SendableRPCResponse(id: id, result: result)
    }

    nonisolated(nonsending) private func call<M: RPCMethodProtocol>(
        _ method: M.Type, _ params: M.Params, isNotification: Bool, timeout: TimeInterval
    ) async throws -> (Int, M.Result)? {
        try Task.checkCancellation()
        if let obstacle = core.outgoing.rpcObstacle() { throw obstacle }
        let call = RPCCall(
            method: M.name, params: try Self.encode(params), isNotification: isNotification, timeout: timeout)
        guard let answer = try await answer(to: call) else { return nil }
        do {
            return (answer.id, try JSONDecoder().decode(M.Result.self, from: answer.result))
        } catch {
            throw SoraError.rpcDecodingError(reason: String(describing: error))
        }
    }

    /// The channel was open a moment ago: if there is none now, it was taken away meanwhile.
    nonisolated(nonsending) private func answer(to call: RPCCall) async throws -> RPCAnswer? {
        do {
            return try await core.call(call)
        } catch SoraError.rpcUnavailable {
            throw SoraError.rpcDataChannelClosed(reason: "RPC channel is invalidated")
        }
    }

    private static func encode(_ params: any Encodable) throws -> JSONText {
        do {
            return try JSONText(encoding: params)
        } catch let error as EncodingError {
            // Foundation reports numbers that are not finite as an encoding error of its own.
            if case .invalidValue(let value, _) = error, JSONText.isNonFinite(value) {
                throw SoraError.rpcEncodingError(reason: "invalid JSON payload")
            }
            throw SoraError.rpcEncodingError(reason: String(describing: error))
        } catch is JSONText.NotJSON {
            throw SoraError.rpcEncodingError(reason: "invalid JSON payload")
        } catch {
            throw SoraError.rpcEncodingError(reason: String(describing: error))
        }
    }
}

extension ChannelCore {
    /// Makes the call and waits for its one outcome: answer, error, time-out, loss of the channel or cancellation.
    nonisolated(nonsending) func call(_ call: RPCCall) async throws -> RPCAnswer? {
        guard let driver = liveDriver else {
            throw SoraError.rpcUnavailable(reason: "rpc channel is not available")
        }
        let outcome = OneShot<RPCAnswer?>()
        let id = driver.call(call) { outcome.settle($0) }
        return try await withTaskCancellationHandler {
            try await outcome.value()
        } onCancel: {
            if outcome.settle(.failure(CancellationError())) { driver.cancelCall(id) }
        }
    }
}
