import LocalSora
import SoraHTTP
import SoraMessages
import Testing

@Suite("Metrics", .serialized, .leavesNoObjects) struct MetricsTests {
    private func metrics(of server: SoraServer) async throws -> Exposition {
        try await withClient { client in
            try await client.dial(port: server.port)
            let response = try #require(await client.request("GET", "/metrics"))
            #expect(response.head.status == 200)
            return try Exposition(String(decoding: response.body, as: UTF8.self))
        }
    }

    @Test func metricsAreValidAndCount() async throws {
        try await withServer { server in
            let before = try await metrics(of: server)
            #expect(before.families.count > 20)
            #expect(before["sora_connections", ["role": "sendonly"]] == 0)
            try await withClient { client in
                let chat = DataChannelDefinition(label: "#chat", direction: .sendrecv)
                try await client.join(server.signalingURL, ChannelHarness.messaging([chat]))
                #expect(await client.isUp())
                _ = await client.withPeer { $0.send(data: [1], label: "#chat", now: $1) }
                #expect(await server.waitForEvent(.messageRelayed) != nil)
                _ = try await server.call("Sora_0.Unknown")
                let now = try await metrics(of: server)
                #expect(now["sora_connections", ["role": "sendonly"]] == 1)
                #expect(now["sora_connections_created_total"] == 1)
                #expect(now["sora_channels"] == 1)
                #expect(now["sora_messages_relayed_total"] == 1)
                #expect(now["sora_api_calls_failed_total"] == 1)
                #expect(now["sora_udp_received_packets_total"] ?? 0 > 0)
                #expect(now["sora_connection_setup_seconds_total"] ?? 0 > 0)
                #expect(now["sora_build_info", ["version": "2025.2.0"]] == 1)
                // Counters never fall.
                for family in now.families.values where family.type == "counter" {
                    for (sample, value) in family.samples {
                        #expect(value >= before.families[family.name]?.samples[sample] ?? 0, "\(family.name)")
                    }
                }
            }
        }
    }

    @Test(arguments: [
        "a 1", "# TYPE a counter\na 1\n", "# HELP a_total h\n# TYPE a_total counter\na_total one\n",
        "# HELP a h\n# TYPE a counter\na 1\n", "# HELP a h\n# TYPE a gauge\na 1\na 2\n",
        "# HELP a h\n# TYPE a gauge\na{b=c} 1\n", "# HELP a h\n# TYPE a gauge\na{b=\"c} 1\n",
        "# HELP a h\n# TYPE a gauge\na{b=\"\\x\"} 1\n", "# HELP a h\n# TYPE a gauge\na 1\n# HELP a h\n",
        "# HELP 1a h\n# TYPE 1a gauge\n1a 1\n", "# HELP a h\n# TYPE a gauge\nb 1\n", "# HELP a h\n# TYPE a gauge\na 1",
    ])
    func parserIsStrict(text: String) {
        #expect(throws: Exposition.Failure.self) { try Exposition(text) }
    }

    @Test func parserReadsEscapes() throws {
        let text = "# HELP a back\\\\slash\n# TYPE a gauge\na{x=\"q\\\"\\\\\\n\",y=\"\"} +Inf\n"
        #expect(try Exposition(text)["a", ["x": "q\"\\\n", "y": ""]] == .infinity)
    }
}

/// A strict reader of the Prometheus text exposition format 0.0.4, with promtool's rules on names.
struct Exposition {
    struct Failure: Error, CustomStringConvertible {
        var description: String
    }
    struct Family {
        var name: String
        var type: String
        var samples: [[String: String]: Double] = [:]
    }
    private(set) var families: [String: Family] = [:]

    subscript(name: String, labels: [String: String] = [:]) -> Double? { families[name]?.samples[labels] }

    init(_ text: String) throws {
        guard text.hasSuffix("\n") else { throw Failure(description: "no line feed at the end") }
        var current: Family?
        var helped: String?
        for line in text.dropLast().split(separator: "\n", omittingEmptySubsequences: false).map(String.init) {
            func fail(_ reason: String) -> Failure { Failure(description: "\(reason): \(line)") }
            if line.hasPrefix("# HELP ") {
                if let done = current { families[done.name] = done }
                current = nil
                let name = String(line.dropFirst(7).prefix { $0 != " " })
                guard Self.isName(name), families[name] == nil, line.count > 8 + name.count else {
                    throw fail("help")
                }
                helped = name
            } else if line.hasPrefix("# TYPE ") {
                let words = line.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
                guard words.count == 4, words[2] == helped, current == nil else { throw fail("type without its help") }
                guard ["counter", "gauge"].contains(words[3]) else { throw fail("type") }
                guard (words[3] == "counter") == words[2].hasSuffix("_total") else { throw fail("name of a counter") }
                current = Family(name: words[2], type: words[3])
            } else {
                guard let family = current else { throw fail("sample without a type") }
                var rest = Substring(line)
                guard rest.hasPrefix(family.name) else { throw fail("sample of another metric") }
                rest = rest.dropFirst(family.name.count)
                let labels = try Self.labels(&rest)
                guard rest.first == " " else { throw fail("no space before the value") }
                let value = String(rest.dropFirst())
                let special: [String: Double] = ["+Inf": .infinity, "-Inf": -.infinity, "NaN": .nan]
                guard let number = special[value] ?? Double(value), !value.contains(" ") else { throw fail("value") }
                guard current?.samples.updateValue(number, forKey: labels) == nil else { throw fail("twice") }
            }
        }
        if let done = current { families[done.name] = done }
    }

    private static func isName(_ name: String) -> Bool { name.wholeMatch(of: /[a-zA-Z_:][a-zA-Z0-9_:]*/) != nil }

    private static func labels(_ rest: inout Substring) throws -> [String: String] {
        guard rest.first == "{" else { return [:] }
        rest.removeFirst()
        var labels: [String: String] = [:]
        while true {
            let name = String(rest.prefix { $0 != "=" })
            guard name.wholeMatch(of: /[a-zA-Z_][a-zA-Z0-9_]*/) != nil, rest.dropFirst(name.count).hasPrefix("=\"")
            else {
                throw Failure(description: "label name: \(rest)")
            }
            rest = rest.dropFirst(name.count + 2)
            var value = ""
            while let next = rest.popFirst(), next != "\"" {
                guard next == "\\" else {
                    value.append(next)
                    continue
                }
                switch rest.popFirst() {
                case "n": value.append("\n")
                case "\\": value.append("\\")
                case "\"": value.append("\"")
                default: throw Failure(description: "escape in a label")
                }
            }
            guard labels.updateValue(value, forKey: name) == nil else { throw Failure(description: "label twice") }
            switch rest.popFirst() {
            case ",": continue
            case "}": return labels
            default: throw Failure(description: "labels do not end")
            }
        }
    }
}
