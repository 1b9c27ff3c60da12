import SoraMessages

// Faults as JSON objects (HTTP API) and as `key=value,key=value` (command line): the same keys, in
// docs/fault-injection.md.

extension Fault {
    /// What is wrong with a description of a fault.
    public struct ParseError: Error, Equatable, Sendable, CustomStringConvertible {
        public var description: String
    }

    /// Reads `fault=network,loss=0.1,channel_id=sora`. List items are separated by `+`.
    public init(parsing text: String) throws(ParseError) {
        var object = JSONObject()
        for part in text.split(separator: ",") {
            guard let equals = part.firstIndex(of: "="), equals > part.startIndex else {
                throw ParseError(description: "'\(part)' is not key=value")
            }
            let key = String(part[..<equals])
            let value = String(part[part.index(after: equals)...])
            guard object[key] == nil else { throw ParseError(description: "key '\(key)' is given twice") }
            object[key] = .string(value)
        }
        try self.init(json: object)
    }

    package init(json object: JSONObject) throws(ParseError) {
        var fields = FaultFields(object)
        let kind = try Self.kind(&fields)
        self.init(
            kind, channelID: try fields.text("channel_id"), clientID: try fields.text("client_id"),
            connectionID: try fields.text("connection_id"), times: try fields.whole("times", upTo: 1_000_000_000))
        try fields.finish()
    }

    private static func kind(_ fields: inout FaultFields) throws(ParseError) -> Kind {
        let names = "refuse, silence, redirect, network, delay, drop, close, reset, vanish, close_data_channel"
        guard let name = try fields.text("fault") else {
            throw ParseError(description: "key 'fault' is missing: one of \(names)")
        }
        switch name {
        case "refuse":
            return .refuse(
                try stage(&fields), code: UInt16(clamping: try fields.whole("code", upTo: 65_535) ?? 4490),
                reason: try fields.text("reason") ?? "INTERNAL-ERROR")
        case "silence": return .silence(try stage(&fields))
        case "redirect": return .redirect(to: try fields.text("location"))
        case "network":
            let parts = (up: try fields.object("upload"), down: try fields.object("download"))
            if parts.up != nil || parts.down != nil {
                return .network(upload: try conditions(of: parts.up), download: try conditions(of: parts.down))
            }
            let conditions = try conditions(&fields)
            let still = NetworkConditions()
            switch try fields.text("direction") ?? "both" {
            case "both": return .network(upload: conditions, download: conditions)
            case "up": return .network(upload: conditions, download: still)
            case "down": return .network(upload: still, download: conditions)
            case let other: throw ParseError(description: "direction '\(other)' is not up, down or both")
            }
        case "delay":
            guard let delay = try fields.milliseconds("delay_ms") else {
                throw ParseError(description: "key 'delay_ms' is missing")
            }
            if fields.has("stage") {
                let stage = try stage(&fields)
                guard [.tcp, .http, .connect].contains(stage) else {
                    throw ParseError(description: "stage '\(stage.rawValue)' has no answer to delay: use types")
                }
                return .late(stage, by: delay)
            }
            return .delayMessages(types: try fields.list("types"), by: delay)
        case "drop": return .dropMessages(types: try fields.list("types"))
        case "close":
            return .close(
                after: try fields.milliseconds("after_ms") ?? .zero,
                code: UInt16(clamping: try fields.whole("code", upTo: 65_535) ?? 1000),
                reason: try fields.text("reason") ?? "DISCONNECTED-API")
        case "reset": return .reset(after: try fields.milliseconds("after_ms") ?? .zero)
        case "vanish": return .vanish(after: try fields.milliseconds("after_ms") ?? .zero)
        case "close_data_channel":
            guard let label = try fields.text("label") else {
                throw ParseError(description: "key 'label' is missing")
            }
            return .closeDataChannel(label: label, after: try fields.milliseconds("after_ms") ?? .zero)
        default: throw ParseError(description: "there is no fault '\(name)': one of \(names)")
        }
    }

    private static func stage(_ fields: inout FaultFields) throws(ParseError) -> Stage {
        let name = try fields.text("stage") ?? "connect"
        guard let stage = Stage(rawValue: name) else {
            throw ParseError(description: "stage '\(name)' is not tcp, http, connect, answer or media")
        }
        return stage
    }

    private static func conditions(of part: JSONObject?) throws(ParseError) -> NetworkConditions {
        guard let part else { return NetworkConditions() }
        var fields = FaultFields(part)
        let conditions = try conditions(&fields)
        try fields.finish()
        return conditions
    }

    private static func conditions(_ fields: inout FaultFields) throws(ParseError) -> NetworkConditions {
        var conditions = NetworkConditions()
        conditions.delay = try fields.milliseconds("delay_ms") ?? .zero
        conditions.jitter = try fields.milliseconds("jitter_ms") ?? .zero
        conditions.loss = try fields.share("loss")
        conditions.meanLossBurst = max(1, try fields.number("loss_burst") ?? 1)
        conditions.reordering = try fields.share("reordering")
        conditions.duplication = try fields.share("duplication")
        conditions.corruption = try fields.share("corruption")
        conditions.kilobitsPerSecond = try fields.number("rate_kbps").map { max(1, Int(min($0, 1e9))) }
        return conditions
    }

    package var json: JSONObject {
        var object = JSONObject()
        switch kind {
        case .refuse(let stage, let code, let reason):
            object = [
                "fault": "refuse", "stage": .string(stage.rawValue), "code": .integer(Int64(code)),
                "reason": .string(reason),
            ]
        case .silence(let stage): object = ["fault": "silence", "stage": .string(stage.rawValue)]
        case .late(let stage, let delay):
            object = ["fault": "delay", "stage": .string(stage.rawValue), "delay_ms": delay.json]
        case .redirect(let location):
            object = ["fault": "redirect"]
            object.set("location", location)
        case .network(let upload, let download):
            object["fault"] = "network"
            if upload == download {
                object.append(missingFrom: upload.json)
            } else {
                object["upload"] = .object(upload.json)
                object["download"] = .object(download.json)
            }
        case .delayMessages(let types, let delay):
            object = ["fault": "delay", "types": types.json, "delay_ms": delay.json]
        case .dropMessages(let types): object = ["fault": "drop", "types": types.json]
        case .close(let after, let code, let reason):
            object = [
                "fault": "close", "after_ms": after.json, "code": .integer(Int64(code)), "reason": .string(reason),
            ]
        case .reset(let after): object = ["fault": "reset", "after_ms": after.json]
        case .vanish(let after): object = ["fault": "vanish", "after_ms": after.json]
        case .closeDataChannel(let label, let after):
            object = ["fault": "close_data_channel", "label": .string(label), "after_ms": after.json]
        }
        object.set("channel_id", channelID)
        object.set("client_id", clientID)
        object.set("connection_id", connectionID)
        object.set("times", times)
        return object
    }
}

extension Fault.NetworkConditions {
    fileprivate var json: JSONObject {
        var object: JSONObject = [
            "delay_ms": delay.json, "jitter_ms": jitter.json, "loss": .double(loss),
            "loss_burst": .double(meanLossBurst), "reordering": .double(reordering),
            "duplication": .double(duplication), "corruption": .double(corruption),
        ]
        object.set("rate_kbps", kilobitsPerSecond)
        return object
    }
}

extension Duration {
    fileprivate var json: JSONValue { .double(self / .milliseconds(1)) }
}

/// Reads the keys of one fault and complains about those that nobody asked for.
private struct FaultFields {
    private var rest: JSONObject

    init(_ object: JSONObject) { rest = object }

    private mutating func take(_ key: String) -> JSONValue? {
        guard let value = rest[key] else { return nil }
        rest[key] = nil
        return value.isNull ? nil : value
    }

    func has(_ key: String) -> Bool { !(rest[key]?.isNull ?? true) }

    mutating func object(_ key: String) throws(Fault.ParseError) -> JSONObject? {
        guard let value = take(key) else { return nil }
        guard let object = value.objectValue else {
            throw Fault.ParseError(description: "key '\(key)' is not an object")
        }
        return object
    }

    mutating func text(_ key: String) throws(Fault.ParseError) -> String? {
        switch take(key) {
        case nil: return nil
        case .string(let text): return text
        // Ids may be numbers in JSON that people write.
        case .integer(let number): return String(number)
        default: throw Fault.ParseError(description: "key '\(key)' is not a text")
        }
    }

    mutating func number(_ key: String) throws(Fault.ParseError) -> Double? {
        guard let value = take(key) else { return nil }
        // On the command line everything is text.
        guard let number = value.doubleValue ?? value.stringValue.flatMap(Double.init), number >= 0, number < 1e12
        else {
            throw Fault.ParseError(description: "key '\(key)' is not a number from 0")
        }
        return number
    }

    mutating func whole(_ key: String, upTo most: Int) throws(Fault.ParseError) -> Int? {
        guard let number = try number(key) else { return nil }
        guard number <= Double(most), number == number.rounded() else {
            throw Fault.ParseError(description: "key '\(key)' is not a whole number from 0 to \(most)")
        }
        return Int(number)
    }

    mutating func share(_ key: String) throws(Fault.ParseError) -> Double {
        let number = try number(key) ?? 0
        guard number <= 1 else { throw Fault.ParseError(description: "key '\(key)' is not between 0 and 1") }
        return number
    }

    mutating func milliseconds(_ key: String) throws(Fault.ParseError) -> Duration? {
        try number(key).map { .nanoseconds(Int64(min($0, 1e9) * 1e6)) }
    }

    /// A JSON array of texts, or one text with `+` between the items.
    mutating func list(_ key: String) throws(Fault.ParseError) -> [String] {
        switch take(key) {
        case nil: return []
        case .string(let text): return text.split(separator: "+").map(String.init)
        case .array(let items):
            let texts = items.compactMap(\.stringValue)
            guard texts.count == items.count else {
                throw Fault.ParseError(description: "key '\(key)' is not a list of texts")
            }
            return texts
        default: throw Fault.ParseError(description: "key '\(key)' is not a list of texts")
        }
    }

    func finish() throws(Fault.ParseError) {
        guard let key = rest.keys.first else { return }
        throw Fault.ParseError(description: "key '\(key)' does not belong to this fault")
    }
}
