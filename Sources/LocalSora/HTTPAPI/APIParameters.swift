import SoraMessages

/// The JSON body of a call.
struct APIParameters: Sendable {
    let object: JSONObject

    func optional<Value: JSONConvertible>(
        _ key: String, as type: Value.Type = Value.self
    ) throws(OperationError) -> Value? {
        guard let json = object[key], !json.isNull else { return nil }
        guard let value = Value(json: json) else { throw .invalidParameter(key) }
        return value
    }

    func require<Value: JSONConvertible>(
        _ key: String, as type: Value.Type = Value.self
    ) throws(OperationError) -> Value {
        guard let value: Value = try optional(key) else { throw .invalidParameter(key) }
        return value
    }

    /// Any value, also null.
    func any(_ key: String) throws(OperationError) -> JSONValue {
        guard let value = object[key] else { throw .invalidParameter(key) }
        return value
    }

    /// The given keys of the call: what most calls answer.
    func echo(_ keys: String...) -> JSONValue {
        var result = JSONObject()
        for key in keys { result[key] = object[key] }
        return .object(result)
    }

    /// `none`, `r0`, `r1`, `r2` or `auto`.
    func layerWish() throws(OperationError) -> LayerWish {
        let name: String = try require("rid")
        if name == "auto" { return .auto }
        guard let rid = LayerRID(rawValue: name) else { throw .invalidParameter("rid") }
        return .rid(rid)
    }

    /// The items of `BatchRequestSpotlightRid`. Keys that an item leaves out are those of the call.
    func spotlightRequests() throws(OperationError) -> [SpotlightRequest] {
        let items: [JSONObject] = try require("item_list")
        var requests: [SpotlightRequest] = []
        for var item in items {
            item.append(missingFrom: object)
            let one = APIParameters(object: item)
            requests.append(
                SpotlightRequest(
                    receiver: try one.require("recv_connection_id"), sender: try one.optional("send_connection_id"),
                    rids: SpotlightRIDs(
                        focus: try one.require("spotlight_focus_rid"),
                        unfocus: try one.require("spotlight_unfocus_rid"))))
        }
        return requests
    }

    /// What a recording is to be. Times in seconds.
    func recordingRequest() throws(OperationError) -> RecordingRequest {
        guard let expire = RecordingRequest.duration(object["expire_time"]) else {
            throw .invalidParameter("expire_time")
        }
        let split = RecordingRequest.duration(object["split_duration"], atLeast: RecordingRequest.shortestSplit)
        guard let split else {
            throw .invalidParameter("split_duration")
        }
        return RecordingRequest(expireTime: expire, splitDuration: split, metadata: object["metadata"])
    }

    /// `data` of a push. The JavaScript SDK takes objects only (3.5).
    func pushData() throws(OperationError) -> JSONValue {
        let data: JSONObject = try require("data")
        return .object(data)
    }

    /// The filter that the other keys describe.
    func filter() throws(OperationError) -> ForwardingFilter {
        var rest = object
        for key in ["channel_id", "connection_id", "expected_version"] { rest[key] = nil }
        guard let filter = ForwardingFilter(json: .object(rest)) else { throw .invalidParameter("rules") }
        return filter
    }
}

/// Why an API call fails: the answer is status 400 with this as `error_type`.
struct APIError: Error, Equatable, Sendable {
    var type: String
    /// For people.
    var message: String?

    init(_ type: String, _ message: String? = nil) {
        self.type = type
        self.message = message
    }

    init(_ error: OperationError) { self.init(error.type, error.description) }

    var json: JSONObject {
        var object: JSONObject = ["error_type": .string(type)]
        object.set("error_message", message)
        return object
    }
}
