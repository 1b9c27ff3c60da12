/// What a forwarding rule looks at.
public enum ForwardingFilterRuleField: String, Encodable, Sendable {
    case connectionId = "connection_id"
    case clientId = "client_id"
    case kind = "kind"
}

/// How a forwarding rule compares.
public enum ForwardingFilterRuleOperator: String, Encodable, Sendable {
    case isIn = "is_in"
    case isNotIn = "is_not_in"
}

/// What happens to media that matches a forwarding filter.
public enum ForwardingFilterAction: String, Encodable, Sendable {
    case block
    case allow
}

/// One comparison of a forwarding filter.
public struct ForwardingFilterRule: Encodable, Sendable {
    public let field: ForwardingFilterRuleField
    public let `operator`: ForwardingFilterRuleOperator
    public let values: [String]

    public init(field: ForwardingFilterRuleField, operator: ForwardingFilterRuleOperator, values: [String]) {
        self.field = field
        self.operator = `operator`
        self.values = values
    }
}

/// Which members' audio and video the server forwards to this connection.
public struct ForwardingFilter: Encodable {
    public var name: String?
    public var priority: Int?
    public var action: ForwardingFilterAction?
    public var rules: [[ForwardingFilterRule]]
    public var version: String?
    public var metadata: (any Encodable)?

    public init(
        name: String? = nil, priority: Int? = nil, action: ForwardingFilterAction? = nil,
        rules: [[ForwardingFilterRule]], version: String? = nil, metadata: (any Encodable)? = nil
    ) {
        self.name = name
        self.priority = priority
        self.action = action
        self.rules = rules
        self.version = version
        self.metadata = metadata
    }

    private enum CodingKeys: String, CodingKey {
        case name, priority, action, rules, version, metadata
    }

    /// Members that are nil are left out; `rules` is always written.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encodeIfPresent(name, forKey: .name)
        try container.encodeIfPresent(priority, forKey: .priority)
        try container.encodeIfPresent(action, forKey: .action)
        try container.encode(rules, forKey: .rules)
        try container.encodeIfPresent(version, forKey: .version)
        if let metadata { try metadata.encode(to: container.superEncoder(forKey: .metadata)) }
    }
}
