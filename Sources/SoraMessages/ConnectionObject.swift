/// A connection as the HTTP API lists it (signaling specification 9.2).
package struct ConnectionObject: Sendable, Equatable, JSONConvertible {
    package var channelID: String
    package var sessionID: String?
    package var clientID: String
    package var bundleID: String
    package var connectionID: String
    package var role: ConnectionRole
    package var audio: JSONValue
    package var video: JSONValue
    package var simulcast: Bool
    package var spotlight: Bool
    package var multistream: Bool
    /// Seconds since 1970.
    package var createdTime: Int

    package init(
        channelID: String, sessionID: String?, clientID: String, bundleID: String, connectionID: String,
        role: ConnectionRole, audio: JSONValue, video: JSONValue, simulcast: Bool, spotlight: Bool,
        multistream: Bool = true, createdTime: Int
    ) {
        self.channelID = channelID
        self.sessionID = sessionID
        self.clientID = clientID
        self.bundleID = bundleID
        self.connectionID = connectionID
        self.role = role
        self.audio = audio
        self.video = video
        self.simulcast = simulcast
        self.spotlight = spotlight
        self.multistream = multistream
        self.createdTime = createdTime
    }

    package init?(json: JSONValue) {
        guard let object = json.objectValue else { return nil }
        var fields = FieldReader(object)
        guard let channelID: String = fields.read("channel_id"), let clientID: String = fields.read("client_id"),
            let connectionID: String = fields.read("connection_id"), let role: ConnectionRole = fields.read("role")
        else { return nil }
        self.init(
            channelID: channelID, sessionID: fields.read("session_id"), clientID: clientID,
            bundleID: fields.read("bundle_id") ?? connectionID, connectionID: connectionID, role: role,
            audio: fields.read("audio") ?? true, video: fields.read("video") ?? true,
            simulcast: fields.read("simulcast") ?? false, spotlight: fields.read("spotlight") ?? false,
            multistream: fields.read("multistream") ?? true, createdTime: fields.read("created_time") ?? 0)
        guard fields.mistyped.isEmpty else { return nil }
    }

    package var json: JSONValue {
        var object = JSONObject()
        object.set("channel_id", channelID)
        object.set("session_id", sessionID)
        object.set("client_id", clientID)
        object.set("bundle_id", bundleID)
        object.set("connection_id", connectionID)
        object.set("role", role)
        object.set("audio", audio)
        object.set("video", video)
        object.set("simulcast", simulcast)
        object.set("spotlight", spotlight)
        object.set("multistream", multistream)
        object.set("created_time", createdTime)
        return .object(object)
    }
}
