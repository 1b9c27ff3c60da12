// JSON-RPC 2.0 on the data channel `rpc` (signaling specification 5).

/// The id of a request. Clients use positive integers; strings are accepted by the server.
package enum RPCID: Sendable, Equatable, Hashable, JSONConvertible {
    case number(Int)
    case text(String)

    /// Numbers must be whole, in whatever notation.
    package init?(json: JSONValue) {
        if let number = json.exactIntValue {
            self = .number(number)
        } else if let text = json.stringValue {
            self = .text(text)
        } else {
            return nil
        }
    }

    package var json: JSONValue {
        switch self {
        case .number(let number): number.json
        case .text(let text): .string(text)
        }
    }
}

/// The error of a JSON-RPC response.
package struct RPCErrorObject: Error, Sendable, Equatable, JSONConvertible, CustomStringConvertible {
    package static let parseError = -32_700
    package static let invalidRequest = -32_600
    package static let methodNotFound = -32_601
    package static let invalidParams = -32_602
    package static let internalError = -32_603

    package var code: Int
    package var message: String
    package var data: JSONValue?

    package init(code: Int, message: String, data: JSONValue? = nil) {
        self.code = code
        self.message = message
        self.data = data
    }

    package init?(json: JSONValue) {
        guard let object = json.objectValue, let code = object["code"]?.exactIntValue,
            let message = object["message"]?.stringValue
        else { return nil }
        self.init(code: code, message: message, data: object["data"])
    }

    package var json: JSONValue {
        var object: JSONObject = ["code": code.json, "message": .string(message)]
        object.set("data", data)
        return .object(object)
    }

    package var description: String { "RPC error \(code): \(message)" }
}

/// A call (with id) or a notification (without).
package struct RPCRequest: Sendable, Equatable {
    package var id: RPCID?
    package var method: String
    package var params: JSONValue?

    package init(id: RPCID?, method: String, params: JSONValue?) {
        self.id = id
        self.method = method
        self.params = params
    }

    package var json: JSONObject {
        var object: JSONObject = ["jsonrpc": "2.0", "method": .string(method)]
        object.set("params", params)
        object.set("id", id)
        return object
    }

    /// What a server makes of one message on the channel.
    package enum Received: Sendable, Equatable {
        case request(RPCRequest)
        /// To be answered with this error.
        case rejected(RPCResponse)
    }

    /// Judges a message as JSON-RPC 2.0 demands: what is no request is answered with an error, under
    /// its id where one can be read, else under null.
    package static func receive(_ bytes: [UInt8]) -> Received {
        let json: JSONValue
        do throws(JSONError) { json = try JSONValue(parsing: bytes) } catch {
            return .rejected(
                RPCResponse(id: nil, error: RPCErrorObject(code: RPCErrorObject.parseError, message: "Parse error")))
        }
        let object = json.objectValue
        let id = object?["id"]
        let invalid = RPCErrorObject(code: RPCErrorObject.invalidRequest, message: "Invalid Request")
        guard let object, object["jsonrpc"]?.stringValue == "2.0", let method = object["method"]?.stringValue else {
            return .rejected(RPCResponse(id: id.flatMap { RPCID(json: $0) }, error: invalid))
        }
        guard let id else { return .request(RPCRequest(id: nil, method: method, params: object["params"])) }
        guard let valid = RPCID(json: id) else { return .rejected(RPCResponse(id: nil, error: invalid)) }
        return .request(RPCRequest(id: valid, method: method, params: object["params"]))
    }
}

/// The answer to a call.
package struct RPCResponse: Sendable, Equatable {
    /// Nil only in answers to something whose id could not be read.
    package var id: RPCID?
    package var outcome: Result<JSONValue, RPCErrorObject>

    package init(id: RPCID?, result: JSONValue) {
        self.id = id
        outcome = .success(result)
    }

    package init(id: RPCID?, error: RPCErrorObject) {
        self.id = id
        outcome = .failure(error)
    }

    package var json: JSONObject {
        var object: JSONObject = ["jsonrpc": "2.0", "id": id?.json ?? .null]
        switch outcome {
        case .success(let result): object["result"] = result
        case .failure(let error): object["error"] = error.json
        }
        return object
    }

    /// What a client makes of one message: nil unless it is a valid response to a call with a number
    /// as id. `"result": null` is a result; result and error together, or neither, are invalid.
    package init?(parsing bytes: [UInt8]) {
        guard let json = try? JSONValue(parsing: bytes) else { return nil }
        self.init(json: json)
    }

    package init?(json: JSONValue) {
        guard let object = json.objectValue, object["jsonrpc"]?.stringValue == "2.0", object["method"] == nil,
            let id = object["id"]?.exactIntValue
        else { return nil }
        switch (object["result"], object["error"]) {
        case (let result?, nil): self.init(id: .number(id), result: result)
        case (nil, let error?):
            guard let error = RPCErrorObject(json: error) else { return nil }
            self.init(id: .number(id), error: error)
        default: return nil
        }
    }
}
