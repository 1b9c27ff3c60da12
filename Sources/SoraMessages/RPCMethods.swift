// The methods that Sora defines (signaling specification 5.2), with typed parameters and results.

/// Names of the methods.
package enum RPCMethodName {
    package static let requestSimulcastRID = "2025.2.0/RequestSimulcastRid"
    package static let requestSpotlightRID = "2025.2.0/RequestSpotlightRid"
    package static let resetSpotlightRID = "2025.2.0/ResetSpotlightRid"
    package static let putSignalingNotifyMetadata = "2025.2.0/PutSignalingNotifyMetadata"
    package static let putSignalingNotifyMetadataItem = "2025.2.0/PutSignalingNotifyMetadataItem"
    package static let all = [
        requestSimulcastRID, requestSpotlightRID, resetSpotlightRID, putSignalingNotifyMetadata,
        putSignalingNotifyMetadataItem,
    ]
}

/// A call of one of the known methods, or of any other.
package enum RPCCall: Sendable, Equatable {
    case requestSimulcastRID(rid: LayerRID, senderConnectionID: String?)
    case requestSpotlightRID(sendConnectionID: String?, focus: LayerRID, unfocus: LayerRID)
    case resetSpotlightRID(sendConnectionID: String?)
    case putSignalingNotifyMetadata(metadata: JSONValue, push: Bool?)
    case putSignalingNotifyMetadataItem(key: String, value: JSONValue, push: Bool?)
    case custom(method: String, params: JSONValue?)

    package var method: String {
        switch self {
        case .requestSimulcastRID: RPCMethodName.requestSimulcastRID
        case .requestSpotlightRID: RPCMethodName.requestSpotlightRID
        case .resetSpotlightRID: RPCMethodName.resetSpotlightRID
        case .putSignalingNotifyMetadata: RPCMethodName.putSignalingNotifyMetadata
        case .putSignalingNotifyMetadataItem: RPCMethodName.putSignalingNotifyMetadataItem
        case .custom(let method, _): method
        }
    }

    package var params: JSONValue? {
        var object = JSONObject()
        switch self {
        case .requestSimulcastRID(let rid, let sender):
            object.set("rid", rid)
            object.set("sender_connection_id", sender)
        case .requestSpotlightRID(let sender, let focus, let unfocus):
            object.set("send_connection_id", sender)
            object.set("spotlight_focus_rid", focus)
            object.set("spotlight_unfocus_rid", unfocus)
        case .resetSpotlightRID(let sender):
            object.set("send_connection_id", sender)
        case .putSignalingNotifyMetadata(let metadata, let push):
            object.set("metadata", metadata)
            object.set("push", push)
        case .putSignalingNotifyMetadataItem(let key, let value, let push):
            object.set("key", key)
            object.set("value", value)
            object.set("push", push)
        case .custom(_, let params): return params
        }
        return .object(object)
    }

    /// Reads a request as a server does. Parameters that a known method does not have are an error,
    /// except the caller's own connection id, which some clients send.
    package init(_ request: RPCRequest, callerConnectionID: String) throws(RPCErrorObject) {
        guard RPCMethodName.all.contains(request.method) else {
            self = .custom(method: request.method, params: request.params)
            return
        }
        let given = request.params ?? .object(JSONObject())
        guard let object = given.objectValue else { throw Self.invalid("params must be an object") }
        var fields = FieldReader(object)
        for key in ["receiver_connection_id", "recv_connection_id"]
        where object[key]?.stringValue == callerConnectionID { fields.drop(key) }
        let call: RPCCall
        switch request.method {
        case RPCMethodName.requestSimulcastRID:
            guard let rid: LayerRID = fields.read("rid") else { throw Self.invalid("rid must be none, r0, r1 or r2") }
            call = .requestSimulcastRID(rid: rid, senderConnectionID: fields.read("sender_connection_id"))
        case RPCMethodName.requestSpotlightRID:
            guard let focus: LayerRID = fields.read("spotlight_focus_rid"),
                let unfocus: LayerRID = fields.read("spotlight_unfocus_rid")
            else { throw Self.invalid("spotlight_focus_rid and spotlight_unfocus_rid must be none, r0, r1 or r2") }
            call = .requestSpotlightRID(
                sendConnectionID: fields.read("send_connection_id"), focus: focus, unfocus: unfocus)
        case RPCMethodName.resetSpotlightRID:
            call = .resetSpotlightRID(sendConnectionID: fields.read("send_connection_id"))
        case RPCMethodName.putSignalingNotifyMetadata:
            guard let metadata: JSONValue = fields.read("metadata") else { throw Self.invalid("metadata is missing") }
            call = .putSignalingNotifyMetadata(metadata: metadata, push: fields.read("push"))
        default:
            guard let key: String = fields.read("key"), let value: JSONValue = fields.read("value") else {
                throw Self.invalid("key must be a string and value must be there")
            }
            call = .putSignalingNotifyMetadataItem(key: key, value: value, push: fields.read("push"))
        }
        // Null stands for an absent optional.
        if let surplus = fields.rest.members.first(where: { !$0.value.isNull || fields.mistyped.contains($0.key) }) {
            throw Self.invalid("unexpected parameter or type: \(surplus.key)")
        }
        self = call
    }

    private static func invalid(_ text: String) -> RPCErrorObject {
        RPCErrorObject(code: RPCErrorObject.invalidParams, message: "Invalid params", data: .string(text))
    }
}

/// Result of `RequestSimulcastRid`.
package struct RequestSimulcastRIDResult: Sendable, Equatable, JSONConvertible {
    package var channelID: String
    package var receiverConnectionID: String
    package var rid: LayerRID
    package var senderConnectionID: String?

    package init(channelID: String, receiverConnectionID: String, rid: LayerRID, senderConnectionID: String? = nil) {
        self.channelID = channelID
        self.receiverConnectionID = receiverConnectionID
        self.rid = rid
        self.senderConnectionID = senderConnectionID
    }

    package init?(json: JSONValue) {
        guard let object = json.objectValue else { return nil }
        var fields = FieldReader(object)
        guard let channelID: String = fields.read("channel_id"),
            let receiver: String = fields.read("receiver_connection_id"), let rid: LayerRID = fields.read("rid")
        else { return nil }
        self.init(
            channelID: channelID, receiverConnectionID: receiver, rid: rid,
            senderConnectionID: fields.read("sender_connection_id"))
        guard fields.mistyped.isEmpty else { return nil }
    }

    package var json: JSONValue {
        var object = JSONObject()
        object.set("channel_id", channelID)
        object.set("receiver_connection_id", receiverConnectionID)
        object.set("rid", rid)
        object.set("sender_connection_id", senderConnectionID)
        return .object(object)
    }
}

/// Result of `RequestSpotlightRid` (with rids) and of `ResetSpotlightRid` (without).
package struct SpotlightRIDResult: Sendable, Equatable, JSONConvertible {
    package var channelID: String
    package var recvConnectionID: String
    package var focus: LayerRID?
    package var unfocus: LayerRID?

    package init(channelID: String, recvConnectionID: String, focus: LayerRID? = nil, unfocus: LayerRID? = nil) {
        self.channelID = channelID
        self.recvConnectionID = recvConnectionID
        self.focus = focus
        self.unfocus = unfocus
    }

    package init?(json: JSONValue) {
        guard let object = json.objectValue else { return nil }
        var fields = FieldReader(object)
        guard let channelID: String = fields.read("channel_id"),
            let receiver: String = fields.read("recv_connection_id")
        else { return nil }
        self.init(
            channelID: channelID, recvConnectionID: receiver, focus: fields.read("spotlight_focus_rid"),
            unfocus: fields.read("spotlight_unfocus_rid"))
        guard fields.mistyped.isEmpty else { return nil }
    }

    package var json: JSONValue {
        var object = JSONObject()
        object.set("channel_id", channelID)
        object.set("recv_connection_id", recvConnectionID)
        object.set("spotlight_focus_rid", focus)
        object.set("spotlight_unfocus_rid", unfocus)
        return .object(object)
    }
}
