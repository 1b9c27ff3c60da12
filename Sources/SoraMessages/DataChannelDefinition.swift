/// One entry of `data_channels`, in `connect` (what the client wishes) and in `offer` (what the server
/// opens).
package struct DataChannelDefinition: Sendable, Equatable, JSONConvertible {
    /// System label, or an application's label beginning with `#`.
    package var label: String
    /// Seen from the client. Absent in offers of some servers: `sendrecv`.
    package var direction: DataChannelDirection?
    package var ordered: Bool?
    /// Milliseconds. Not together with ``maxRetransmits``.
    package var maxPacketLifeTime: Int?
    package var maxRetransmits: Int?
    /// Subprotocol of the data channel.
    package var protocolName: String?
    package var compress: Bool?
    package var header: [DataChannelHeaderField]?
    package var extra = JSONObject()

    package init(label: String, direction: DataChannelDirection? = nil, compress: Bool? = nil) {
        self.label = label
        self.direction = direction
        self.compress = compress
    }

    package init?(json: JSONValue) {
        guard let object = json.objectValue else { return nil }
        var fields = FieldReader(object)
        guard let label: String = fields.read("label") else { return nil }
        self.label = label
        direction = fields.read("direction")
        ordered = fields.read("ordered")
        maxPacketLifeTime = fields.read("max_packet_life_time")
        maxRetransmits = fields.read("max_retransmits")
        protocolName = fields.read("protocol")
        compress = fields.read("compress")
        header = fields.read("header")
        guard fields.mistyped.isEmpty else { return nil }
        extra = fields.rest
    }

    package var json: JSONValue {
        var object = JSONObject()
        object.set("label", label)
        object.set("direction", direction)
        object.set("ordered", ordered)
        object.set("max_packet_life_time", maxPacketLifeTime)
        object.set("max_retransmits", maxRetransmits)
        object.set("protocol", protocolName)
        object.set("compress", compress)
        object.set("header", header)
        object.append(missingFrom: extra)
        return .object(object)
    }

    package var effectiveDirection: DataChannelDirection { direction ?? .sendrecv }
    package var isCompressed: Bool { compress ?? false }
    /// Whether each received message begins with its sender's connection id.
    package var hasSenderHeader: Bool {
        header?.contains { $0.type == DataChannelHeaderField.senderConnectionID } ?? false
    }
}

/// One part of the prefix of received messages.
package struct DataChannelHeaderField: Sendable, Equatable, JSONConvertible {
    package static let senderConnectionID = "sender_connection_id"
    package var type: String
    /// Bytes; stated by the server only.
    package var length: Int?
    package var extra = JSONObject()

    package init(type: String, length: Int? = nil) {
        self.type = type
        self.length = length
    }

    package init?(json: JSONValue) {
        guard let object = json.objectValue else { return nil }
        var fields = FieldReader(object)
        guard let type: String = fields.read("type") else { return nil }
        self.type = type
        length = fields.read("length")
        guard fields.mistyped.isEmpty else { return nil }
        extra = fields.rest
    }

    package var json: JSONValue {
        var object = JSONObject()
        object.set("type", type)
        object.set("length", length)
        object.append(missingFrom: extra)
        return .object(object)
    }
}
