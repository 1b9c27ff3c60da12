import SoraMessages
import SoraWire

// JSON-RPC on the label `rpc` (spec/signaling.md 5).

extension Channel {
    func handleRPC(_ bytes: [UInt8], from member: Member, now: Instant) {
        let request: RPCRequest
        switch RPCRequest.receive(bytes) {
        case .rejected(let response):
            deliver(response.json, type: "rpc", to: member, over: .dataChannel(SystemLabel.rpc), now: now)
            return
        case .request(let received): request = received
        }
        let response: RPCResponse
        do {
            response = RPCResponse(id: request.id, result: try perform(request, for: member, now: now))
            emit(event: .rpc, member, request.method, now: now)
        } catch {
            response = RPCResponse(id: request.id, error: error)
            emit(event: .rpc, member, "\(request.method): \(error.message)", now: now)
        }
        // A notification is never answered.
        guard request.id != nil else { return }
        deliver(response.json, type: "rpc", to: member, over: .dataChannel(SystemLabel.rpc), now: now)
    }

    private func perform(
        _ request: RPCRequest, for member: Member, now: Instant
    ) throws(RPCErrorObject) -> JSONValue {
        let call = try RPCCall(request, callerConnectionID: member.id.rawValue)
        guard member.grant.rpcMethods.contains(call.method) else {
            throw RPCErrorObject(code: RPCErrorObject.methodNotFound, message: "Method not found: \(call.method)")
        }
        switch call {
        case .requestSimulcastRID(let rid, let sender):
            guard member.grant.simulcastRPCRids.contains(rid) else {
                throw RPCErrorObject(
                    code: RPCErrorObject.invalidParams, message: "Invalid params", data: "this rid is not allowed")
            }
            requestLayer(.rid(rid), of: try known(sender), for: member, now: now)
            return RequestSimulcastRIDResult(
                channelID: id, receiverConnectionID: member.id.rawValue, rid: rid, senderConnectionID: sender
            ).json
        case .requestSpotlightRID(let sender, let focus, let unfocus):
            try checkSpotlight(member)
            requestSpotlightLayers(focus: focus, unfocus: unfocus, of: try known(sender), for: member, now: now)
            return SpotlightRIDResult(
                channelID: id, recvConnectionID: member.id.rawValue, focus: focus, unfocus: unfocus
            ).json
        case .resetSpotlightRID(let sender):
            try checkSpotlight(member)
            resetSpotlightLayers(of: try known(sender), for: member, now: now)
            return SpotlightRIDResult(channelID: id, recvConnectionID: member.id.rawValue).json
        case .putSignalingNotifyMetadata(let metadata, let push):
            return putNotifyMetadata(metadata, of: member, push: push ?? false, now: now)
        case .putSignalingNotifyMetadataItem(let key, let value, let push):
            return putNotifyMetadata(
                metadata(of: member, setting: key, to: value), of: member, push: push ?? false, now: now)
        case .custom(let method, _):
            throw RPCErrorObject(code: RPCErrorObject.methodNotFound, message: "Method not found: \(method)")
        }
    }

    private func checkSpotlight(_ member: Member) throws(RPCErrorObject) {
        guard member.grant.spotlight else {
            throw RPCErrorObject(code: RPCErrorObject.invalidParams, message: "the channel has no spotlight")
        }
    }

    private func known(_ sender: String?) throws(RPCErrorObject) -> ConnectionID? {
        guard let sender else { return nil }
        guard let member = members[ConnectionID(sender)], member.isAnnounced, member.role.sends else {
            throw RPCErrorObject(code: RPCErrorObject.invalidParams, message: "no such sender: \(sender)")
        }
        return member.id
    }

    /// A member's metadata with one key changed. Metadata that is no object is replaced.
    func metadata(of member: Member, setting key: String, to value: JSONValue) -> JSONValue {
        var object = member.notifyMetadata?.objectValue ?? JSONObject()
        object[key] = value
        return .object(object)
    }

    /// Changes the metadata of a member's notifications; with `push` the others are told.
    func putNotifyMetadata(_ metadata: JSONValue, of member: Member, push: Bool, now: Instant) -> JSONValue {
        member.notifyMetadata = metadata
        if push {
            // The form of this push is our choice (spec/signaling.md 5.2, not established).
            let data: JSONValue = [
                "type": "signaling_notify_metadata", "connection_id": .string(member.id.rawValue),
                "client_id": .string(member.clientID), "bundle_id": .string(member.bundleID), "metadata": metadata,
            ]
            for id in order {
                guard let other = members[id], other !== member, other.isAnnounced, other.bundleID != member.bundleID
                else { continue }
                deliver(PushMessage(data: data).json, type: "push", to: other, now: now)
                drain(other, now: now)
            }
        }
        return metadata
    }
}
