/// Stops the server from forwarding chosen senders' audio or video to one connection (signaling
/// specification 7.8).
package struct ForwardingFilter: Sendable, Equatable, JSONConvertible {
    package enum Action: String, Sendable, Equatable, JSONConvertible { case block, allow }

    package enum Field: String, Sendable, Equatable, JSONConvertible {
        case connectionID = "connection_id"
        case clientID = "client_id"
        case kind
    }

    package enum Operator: String, Sendable, Equatable, JSONConvertible {
        case isIn = "is_in"
        case isNotIn = "is_not_in"
    }

    package struct Rule: Sendable, Equatable, JSONConvertible {
        package var field: Field
        package var `operator`: Operator
        package var values: [String]

        package init(field: Field, operator: Operator, values: [String]) {
            self.field = field
            self.operator = `operator`
            self.values = values
        }

        package init?(json: JSONValue) {
            guard let object = json.objectValue else { return nil }
            var fields = FieldReader(object)
            guard let field: Field = fields.read("field"), let comparison: Operator = fields.read("operator"),
                let values: [String] = fields.read("values")
            else { return nil }
            self.init(field: field, operator: comparison, values: values)
        }

        package var json: JSONValue {
            ["field": field.json, "operator": `operator`.json, "values": values.json]
        }

        func matches(_ sender: Subject) -> Bool {
            let value =
                switch field {
                case .connectionID: sender.connectionID
                case .clientID: sender.clientID
                case .kind: sender.kind
                }
            return values.contains(value) == (`operator` == .isIn)
        }
    }

    /// What a filter judges: one kind of media of one sender.
    package struct Subject: Sendable, Equatable {
        package var connectionID: String
        package var clientID: String
        /// `audio` or `video`.
        package var kind: String
        package init(connectionID: String, clientID: String, kind: String) {
            self.connectionID = connectionID
            self.clientID = clientID
            self.kind = kind
        }
    }

    package static let defaultName = "default"
    package static let defaultPriority = 32_767

    package var name: String?
    /// Smaller is evaluated first.
    package var priority: Int?
    package var action: Action?
    /// The outer list is OR, the inner AND.
    package var rules: [[Rule]]
    package var version: String?
    package var metadata: JSONValue?
    package var extra = JSONObject()

    package init(
        name: String? = nil, priority: Int? = nil, action: Action? = nil, rules: [[Rule]], version: String? = nil,
        metadata: JSONValue? = nil
    ) {
        self.name = name
        self.priority = priority
        self.action = action
        self.rules = rules
        self.version = version
        self.metadata = metadata
    }

    package init?(json: JSONValue) {
        guard let object = json.objectValue else { return nil }
        var fields = FieldReader(object)
        name = fields.read("name")
        priority = fields.read("priority")
        action = fields.read("action")
        rules = fields.read("rules") ?? []
        version = fields.read("version")
        metadata = fields.read("metadata")
        guard fields.mistyped.isEmpty else { return nil }
        extra = fields.rest
    }

    package var json: JSONValue {
        var object = JSONObject()
        object.set("name", name)
        object.set("priority", priority)
        object.set("action", action)
        object.set("rules", rules)
        object.set("version", version)
        object.set("metadata", metadata)
        object.append(missingFrom: extra)
        return .object(object)
    }

    package var effectiveName: String { name ?? Self.defaultName }
    package var effectivePriority: Int { priority ?? Self.defaultPriority }
    package var effectiveAction: Action { action ?? .block }

    /// Whether this filter lets `sender` through: `allow` only what matches, `block` all but that.
    package func passes(_ sender: Subject) -> Bool {
        let matches = rules.contains { $0.allSatisfy { $0.matches(sender) } }
        return matches == (effectiveAction == .allow)
    }

    /// Whether all of `filters` let `sender` through. No filters let everything through.
    package static func forwards(_ sender: Subject, through filters: [ForwardingFilter]) -> Bool {
        filters.allSatisfy { $0.passes(sender) }
    }
}
