/// Replaces the metadata that notifications about this connection carry.
public enum PutSignalingNotifyMetadata<Metadata: Codable>: RPCMethodProtocol {
    public typealias Params = PutSignalingNotifyMetadataParams<Metadata>
    public typealias Result = Metadata
    public static var name: String { "2025.2.0/PutSignalingNotifyMetadata" }
}

/// The same for metadata that may cross actors.
public enum SendablePutSignalingNotifyMetadata<Metadata: Codable & Sendable>: SendableRPCMethodProtocol {
    public typealias Params = PutSignalingNotifyMetadataParams<Metadata>
    public typealias Result = Metadata
    public static var name: String { "2025.2.0/PutSignalingNotifyMetadata" }
}

/// Parameters of ``PutSignalingNotifyMetadata``.
public struct PutSignalingNotifyMetadataParams<Metadata: Encodable>: Encodable {
    /// Takes the place of the metadata of before.
    public let metadata: Metadata
    /// Whether the other members are told.
    public let push: Bool?

    public init(metadata: Metadata, push: Bool? = nil) {
        self.metadata = metadata
        self.push = push
    }

    private enum CodingKeys: String, CodingKey {
        case metadata, push
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(metadata, forKey: .metadata)
        try container.encodeIfPresent(push, forKey: .push)
    }
}

extension PutSignalingNotifyMetadataParams: Sendable where Metadata: Sendable {}

/// Sets one member of the metadata that notifications about this connection carry. The result is all of it.
public enum PutSignalingNotifyMetadataItem<Metadata: Decodable, Value: Encodable>: RPCMethodProtocol {
    public typealias Params = PutSignalingNotifyMetadataItemParams<Value>
    public typealias Result = Metadata
    public static var name: String { "2025.2.0/PutSignalingNotifyMetadataItem" }
}

/// The same for values that may cross actors.
public enum SendablePutSignalingNotifyMetadataItem<
    Metadata: Decodable & Sendable, Value: Encodable & Sendable
>: SendableRPCMethodProtocol {
    public typealias Params = PutSignalingNotifyMetadataItemParams<Value>
    public typealias Result = Metadata
    public static var name: String { "2025.2.0/PutSignalingNotifyMetadataItem" }
}

/// Parameters of ``PutSignalingNotifyMetadataItem``.
public struct PutSignalingNotifyMetadataItemParams<Value: Encodable>: Encodable {
    /// The key to set.
    public let key: String
    /// Its new value.
    public let value: Value
    /// Whether the other members are told.
    public let push: Bool?

    public init(key: String, value: Value, push: Bool? = nil) {
        self.key = key
        self.value = value
        self.push = push
    }

    private enum CodingKeys: String, CodingKey {
        case key, value, push
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(key, forKey: .key)
        try container.encode(value, forKey: .value)
        try container.encodeIfPresent(push, forKey: .push)
    }
}

extension PutSignalingNotifyMetadataItemParams: Sendable where Value: Sendable {}
