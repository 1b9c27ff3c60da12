/// What a forwarding rule looks at.
public enum ForwardingFilterRuleField: String, Encodable, Sendable {
    /// The sender's connection id.
    case connectionId = "connection_id"
    /// The sender's client id.
    case clientId = "client_id"
    /// `audio` or `video`.
    case kind = "kind"
}

/// How a forwarding rule compares.
public enum ForwardingFilterRuleOperator: String, Encodable, Sendable {
    /// The field is one of the values.
    case isIn = "is_in"
    /// The field is none of the values.
    case isNotIn = "is_not_in"
}

/// What happens to media that matches a forwarding filter.
public enum ForwardingFilterAction: String, Encodable, Sendable {
    /// Media that matches is not forwarded.
    case block
    /// Media that matches is forwarded, other media is not.
    case allow
}

/// One comparison of a forwarding filter.
public struct ForwardingFilterRule: Encodable, Sendable {
    /// What is looked at.
    public let field: ForwardingFilterRuleField
    /// How it is compared.
    public let `operator`: ForwardingFilterRuleOperator
    /// What it is compared with.
    public let values: [String]

    /// One comparison.
    public init(field: ForwardingFilterRuleField, operator: ForwardingFilterRuleOperator, values: [String]) {
        self.field = field
        self.operator = `operator`
        self.values = values
    }
}

/// Which members' audio and video the server forwards to this connection.
public struct ForwardingFilter: Encodable {
    /// Tells filters apart where several are set.
    public var name: String?
    /// Orders the filters. Give both this and ``name``, or neither.
    public var priority: Int?
    /// What happens to media that matches; the server blocks when nil.
    public var action: ForwardingFilterAction?
    /// Rules of an inner list must all match; one inner list that matches is enough.
    public var rules: [[ForwardingFilterRule]]
    /// A text of the application about the filter.
    public var version: String?
    /// JSON of the application about the filter.
    public var metadata: (any Encodable)?

    /// A filter. Only ``rules`` must be given.
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
