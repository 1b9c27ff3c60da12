import SoraMessages
import SoraWire

extension ClientConnection {
    /// Calls a method. The outcome comes by ``Event/rpcFinished(_:_:)``, exactly once.
    ///
    /// - Parameters:
    ///   - params: JSON text, which goes out as it is; nil leaves the key out.
    ///   - timeout: from sending on. Not used by notifications.
    package func call(
        method: String, params: [UInt8]?, isNotification: Bool = false, timeout: Duration = .seconds(5), now: Instant
    ) -> RPCCallToken {
        let token = RPCCallToken(makeToken())
        guard isAlive else {
            finish(token, .failure(.unavailable("rpc channel is not available")))
            return token
        }
        if let params {
            do throws(JSONError) { _ = try JSONValue(parsing: params) } catch {
                finish(token, .failure(.encoding("invalid JSON payload")))
                return token
            }
        }
        guard let channel = transport.channelOfLabel[SystemLabel.rpc] else {
            let closed = transport.closedLabels.contains(SystemLabel.rpc)
            finish(token, .failure(.unavailable(closed ? "DataChannel is not open" : "rpc channel is not available")))
            return token
        }
        let id = isNotification ? nil : transport.nextCallID
        var text = "{\"jsonrpc\":\"2.0\",\"method\":" + JSONValue.string(method).text
        if let id { text += ",\"id\":\(id)" }
        var message = Array(text.utf8)
        if let params { message += Array(",\"params\":".utf8) + params }
        message.append(UInt8(ascii: "}"))
        guard send(message, onChannel: channel, now: now) else {
            finish(token, .failure(.dataChannelClosed("failed to send rpc message")))
            return token
        }
        if let id {
            transport.nextCallID += 1
            transport.calls[id] = .init(token: token, deadline: now + timeout)
        } else {
            finish(token, .sent)
        }
        expireCalls(now: now)
        drainPeer(now: now)
        return token
    }

    /// Gives up waiting; the call ends as cancelled, unless it has ended already.
    package func cancelCall(_ token: RPCCallToken) {
        guard let id = transport.calls.first(where: { $0.value.token == token })?.key else { return }
        transport.calls[id] = nil
        finish(token, .failure(.cancelled))
    }

    private func finish(_ token: RPCCallToken, _ outcome: RPCOutcome) { tell(.rpcFinished(token, outcome)) }

    /// A message on label `rpc`. Only a valid response to a waiting call has an effect.
    func receiveRPC(_ message: [UInt8]) {
        guard isAlive else { return }
        guard let response = RPCResponse(parsing: message), case .number(let id) = response.id else {
            log(.warning, "ignored a message on rpc that is no valid response")
            return
        }
        guard let call = transport.calls.removeValue(forKey: id) else {
            log(.info, "ignored an rpc response to the unknown call \(id)")
            return
        }
        switch response.outcome {
        case .success(let result): finish(call.token, .result(id: id, result, message: message))
        case .failure(let error): finish(call.token, .serverError(error, message: message))
        }
    }

    func expireCalls(now: Instant) {
        for (id, call) in transport.calls.filter({ $0.value.deadline <= now }).sorted(by: { $0.key < $1.key }) {
            transport.calls[id] = nil
            finish(call.token, .failure(.timeout))
        }
    }

    /// Ends every waiting call.
    func failCalls(_ failure: RPCFailure) {
        let calls = transport.calls.sorted { $0.key < $1.key }
        transport.calls = [:]
        for (_, call) in calls { finish(call.token, .failure(failure)) }
    }
}
