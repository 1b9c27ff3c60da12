import Foundation
import Sora

/// The words that every command which connects to a server understands.
enum ConnectionOptions {
    static let definitions: [OptionDefinition] = [
        .value(
            "url", "url", short: "u", default: "ws://127.0.0.1:5000/signaling", isRepeatable: true,
            "Signaling URL (ws or wss). Several are tried at once."),
        .value("channel", "id", short: "c", default: "sora", "Channel to join."),
        .value("client-id", "id", "Client id."),
        .value("bundle-id", "id", "Bundle id."),
        .value(
            "metadata", "json",
            "Metadata for authentication: JSON, or @FILE. SORA_METADATA in the environment keeps it out of the process list."
        ),
        .value("notify-metadata", "json", "Metadata for notifications: JSON, or @FILE."),
        .value(
            "data-channel-signaling", "on|off", allowed: ["on", "off"],
            "Signaling over data channels; without it the server decides."),
        .value(
            "ignore-disconnect-websocket", "on|off", allowed: ["on", "off"],
            "Goes on without the WebSocket once signaling is on data channels."),
        .value("timeout", "seconds", default: "30", "Limit for connecting."),
        .value("ca", "file", "PEM file with certificate authorities to trust instead of the system's."),
        .flag("insecure", "Accepts any server certificate. For tests only."),
        .value("proxy", "host:port", "HTTP proxy."),
        .value("proxy-user", "name:password", "Proxy credentials; SORA_PROXY_USER in the environment does the same."),
        .value("duration", "seconds", "Ends after this time; without it at Ctrl-C."),
        .flag("json", "Results as one JSON object a line."),
        .value(
            "log", "level", default: "warn", allowed: ["off", "fatal", "error", "warn", "info", "debug", "trace"],
            "What goes to standard error."),
        .flag("quiet", short: "q", "No progress."),
    ]

    static func configuration(_ arguments: ParsedArguments, role: Role) throws -> Configuration {
        let texts = arguments.strings("url").isEmpty ? ["ws://127.0.0.1:5000/signaling"] : arguments.strings("url")
        let urls = try texts.map { text in
            guard let url = URL(string: text), let scheme = url.scheme?.lowercased(), ["ws", "wss"].contains(scheme),
                url.host?.isEmpty == false
            else { throw CommandFailure(.usage, "--url takes a ws or wss URL, not '\(text)'") }
            return url
        }
        var configuration = Configuration(
            urlCandidates: urls, channelId: arguments.string("channel") ?? "sora", role: role)
        configuration.clientId = arguments.string("client-id")
        configuration.bundleId = arguments.string("bundle-id")
        if let text = arguments.string("metadata") ?? ProcessInfo.processInfo.environment["SORA_METADATA"] {
            configuration.signalingConnectMetadata = try json(text, option: "metadata")
        }
        if let text = arguments.string("notify-metadata") {
            configuration.signalingConnectNotifyMetadata = try json(text, option: "notify-metadata")
        }
        configuration.dataChannelSignaling = arguments.string("data-channel-signaling").map { $0 == "on" }
        configuration.ignoreDisconnectWebSocket = arguments.string("ignore-disconnect-websocket").map { $0 == "on" }
        configuration.connectionTimeout = try arguments.integer("timeout", in: 1...3600) ?? 30
        if let path = arguments.string("ca") { configuration.caCertificate = try text(ofFile: path) }
        configuration.insecure = arguments.has("insecure")
        if let proxy = arguments.string("proxy") { configuration.proxy = try self.proxy(proxy, arguments) }
        configuration.cameraSettings = CameraSettings(isEnabled: false)
        return configuration
    }

    static func applyLogLevel(_ arguments: ParsedArguments) {
        // Standard output holds results only; the log goes to standard error.
        let level: LogLevel =
            switch arguments.string("log") ?? "warn" {
            case "off": .off
            case "fatal": .fatal
            case "error": .error
            case "info": .info
            case "debug": .debug
            case "trace": .trace
            default: .warn
            }
        Logger.shared.level = level
        Logger.shared.destination = .standardError
    }

    /// Any JSON, given as text or as `@FILE`.
    static func json(_ text: String, option: String) throws -> JSONValue { try json(text, of: "--\(option)") }

    /// - Parameter word: what the complaint names.
    static func json(_ text: String, of word: String) throws -> JSONValue {
        let source = text.hasPrefix("@") ? try self.text(ofFile: String(text.dropFirst())) : text
        do {
            return try JSONDecoder().decode(JSONValue.self, from: Data(source.utf8))
        } catch {
            let position = (error as NSError).userInfo["NSJSONSerializationErrorIndex"].map { " at byte \($0)" } ?? ""
            throw CommandFailure(.usage, "\(word) is not JSON\(position)")
        }
    }

    static func text(ofFile path: String) throws -> String {
        do {
            return try String(contentsOfFile: path, encoding: .utf8)
        } catch {
            throw CommandFailure(.noInput, "cannot read '\(path)'")
        }
    }

    private static func proxy(_ text: String, _ arguments: ParsedArguments) throws -> Proxy {
        let parts = text.split(separator: ":")
        guard parts.count == 2, let port = Int(parts[1]), (1...65_535).contains(port) else {
            throw CommandFailure(.usage, "--proxy takes HOST:PORT, not '\(text)'")
        }
        let credentials = arguments.string("proxy-user") ?? ProcessInfo.processInfo.environment["SORA_PROXY_USER"]
        let pair = credentials?.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        return Proxy(
            host: String(parts[0]), port: port, agent: "sora/\(Tool.version)", username: pair?.first,
            password: pair.flatMap { $0.count > 1 ? $0[1] : nil })
    }
}
