// Messages with few members. Each keeps keys that it does not know in `extra`.

/// `redirect`: connect to `location` instead.
package struct RedirectMessage: Sendable, Equatable {
    package var location: String
    package var extra = JSONObject()
    package init(location: String) { self.location = location }

    init(_ object: JSONObject) throws(MessageError) {
        var fields = FieldReader(object)
        fields.drop("type")
        location = try fields.require("location", in: "redirect")
        extra = fields.rest
    }

    package var json: JSONObject {
        var object: JSONObject = ["type": "redirect", "location": .string(location)]
        object.append(missingFrom: extra)
        return object
    }
}

/// `answer`, `re-offer`, `re-answer` and `update`: a session description.
package struct DescriptionMessage: Sendable, Equatable {
    package var sdp: String
    package var extra = JSONObject()
    package init(sdp: String) { self.sdp = sdp }

    init(_ object: JSONObject, type: String) throws(MessageError) {
        var fields = FieldReader(object)
        fields.drop("type")
        sdp = try fields.require("sdp", in: type)
        extra = fields.rest
    }

    func json(type: String) -> JSONObject {
        var object: JSONObject = ["type": .string(type), "sdp": .string(sdp)]
        object.append(missingFrom: extra)
        return object
    }
}

/// `candidate`: one of the client's ICE candidates; empty text means that there are no more.
package struct CandidateMessage: Sendable, Equatable {
    package var candidate: String
    package var sdpMid: String?
    package var sdpMLineIndex: Int?
    package var usernameFragment: String?
    package var extra = JSONObject()
    package init(candidate: String) { self.candidate = candidate }

    init(_ object: JSONObject) throws(MessageError) {
        var fields = FieldReader(object)
        fields.drop("type")
        candidate = try fields.require("candidate", in: "candidate")
        sdpMid = fields.read("sdpMid")
        sdpMLineIndex = fields.read("sdpMLineIndex")
        usernameFragment = fields.read("usernameFragment")
        try fields.check("candidate")
        extra = fields.rest
    }

    package var json: JSONObject {
        var object: JSONObject = ["type": "candidate", "candidate": .string(candidate)]
        object.set("sdpMid", sdpMid)
        object.set("sdpMLineIndex", sdpMLineIndex)
        object.set("usernameFragment", usernameFragment)
        object.append(missingFrom: extra)
        return object
    }
}

/// `ping`. With `stats` true the answer carries statistics.
package struct PingMessage: Sendable, Equatable {
    package var stats: Bool?
    package var extra = JSONObject()
    package init(stats: Bool? = nil) { self.stats = stats }

    init(_ object: JSONObject) throws(MessageError) {
        var fields = FieldReader(object)
        fields.drop("type")
        stats = fields.read("stats")
        try fields.check("ping")
        extra = fields.rest
    }

    package var json: JSONObject {
        var object: JSONObject = ["type": "ping"]
        object.set("stats", stats)
        object.append(missingFrom: extra)
        return object
    }
}

/// `pong`. `stats` holds RTCStats dictionaries, only when asked for.
package struct PongMessage: Sendable, Equatable {
    package var stats: [JSONValue]?
    package var extra = JSONObject()
    package init(stats: [JSONValue]? = nil) { self.stats = stats }

    init(_ object: JSONObject) throws(MessageError) {
        var fields = FieldReader(object)
        fields.drop("type")
        stats = fields.read("stats")
        try fields.check("pong")
        extra = fields.rest
    }

    package var json: JSONObject {
        var object: JSONObject = ["type": "pong"]
        object.set("stats", stats)
        object.append(missingFrom: extra)
        return object
    }
}

/// `stats`: the answer to `req-stats`.
package struct StatsMessage: Sendable, Equatable {
    package var reports: [JSONValue]
    package var extra = JSONObject()
    package init(reports: [JSONValue]) { self.reports = reports }

    init(_ object: JSONObject) throws(MessageError) {
        var fields = FieldReader(object)
        fields.drop("type")
        reports = try fields.require("reports", in: "stats")
        extra = fields.rest
    }

    package var json: JSONObject {
        var object: JSONObject = ["type": "stats", "reports": .array(reports)]
        object.append(missingFrom: extra)
        return object
    }
}

/// `push`: data from whoever called the HTTP API.
package struct PushMessage: Sendable, Equatable {
    package var data: JSONValue?
    package var extra = JSONObject()
    package init(data: JSONValue?) { self.data = data }

    init(_ object: JSONObject) {
        var fields = FieldReader(object)
        fields.drop("type")
        data = fields.read("data")
        extra = fields.rest
    }

    package var json: JSONObject {
        var object: JSONObject = ["type": "push"]
        object.set("data", data)
        object.append(missingFrom: extra)
        return object
    }
}

/// `switched`: signaling moves to the data channels.
package struct SwitchedMessage: Sendable, Equatable {
    package var ignoreDisconnectWebSocket: Bool?
    package var extra = JSONObject()
    package init(ignoreDisconnectWebSocket: Bool?) { self.ignoreDisconnectWebSocket = ignoreDisconnectWebSocket }

    init(_ object: JSONObject) throws(MessageError) {
        var fields = FieldReader(object)
        fields.drop("type")
        ignoreDisconnectWebSocket = fields.read("ignore_disconnect_websocket")
        try fields.check("switched")
        extra = fields.rest
    }

    package var json: JSONObject {
        var object: JSONObject = ["type": "switched"]
        object.set("ignore_disconnect_websocket", ignoreDisconnectWebSocket)
        object.append(missingFrom: extra)
        return object
    }
}

/// `disconnect`: the client leaves.
package struct DisconnectMessage: Sendable, Equatable {
    package var reason: String?
    package var extra = JSONObject()
    package init(reason: String?) { self.reason = reason }

    init(_ object: JSONObject) throws(MessageError) {
        var fields = FieldReader(object)
        fields.drop("type")
        reason = fields.read("reason")
        try fields.check("disconnect")
        extra = fields.rest
    }

    package var json: JSONObject {
        var object: JSONObject = ["type": "disconnect"]
        object.set("reason", reason)
        object.append(missingFrom: extra)
        return object
    }
}

/// `close`: the server ends the connection over data channels.
package struct CloseMessage: Sendable, Equatable {
    package var code: Int
    package var reason: String
    package var extra = JSONObject()
    package init(code: Int, reason: String) {
        self.code = code
        self.reason = reason
    }

    init(_ object: JSONObject) throws(MessageError) {
        var fields = FieldReader(object)
        fields.drop("type")
        code = try fields.require("code", in: "close")
        reason = try fields.require("reason", in: "close")
        extra = fields.rest
    }

    package var json: JSONObject {
        var object: JSONObject = ["type": "close", "code": code.json, "reason": .string(reason)]
        object.append(missingFrom: extra)
        return object
    }
}
