import Foundation
import LocalSora

/// `sora serve`: the local Sora-compatible server.
enum ServeCommand {
    static let definition = CommandDefinition(
        name: "serve",
        abstract: "Runs a local Sora-compatible server with a web page.",
        discussion: """
            Signaling is at ws://HOST:PORT/signaling, a page to join a channel with a browser at http://HOST:PORT/, the \
            HTTP API at POST / with the header x-sora-target, metrics at /metrics and /stats. Stop it with Ctrl-C.

            Browsers give camera and microphone only to https pages and to localhost: use --tls-self-signed for \
            phones in the room. Secrets can come from the environment: SORA_JWT_SECRET, SORA_TURN_PASSWORD.

            A fault is a list of key=value, for example --fault fault=refuse,stage=connect,times=2 or \
            --fault fault=network,loss=0.1,delay_ms=50 (docs/fault-injection.md).
            """,
        options: network + signaling + admission + limits + output,
        run: run)

    private static let network: [OptionDefinition] = [
        .value("host", "address", default: "127.0.0.1", "Address to listen on; 0.0.0.0 for all."),
        .value("port", "number", short: "p", default: "5000", "Port of signaling, page and API; 0: any free one."),
        .value("api-port", "number", "Another port for the HTTP API and metrics alone; 0: any free one."),
        .value("api-allow-origin", "origin", "Lets web pages of this origin call the HTTP API (CORS); * for all."),
        .value("media-port", "number", default: "0", "UDP port of media; 0: any free one."),
        .value(
            "media-address", "address", isRepeatable: true,
            "Address for media, instead of the host's or all of this machine's."),
        .value("loops", "number", default: "1", "Event loops, each a thread; a channel lives on one."),
        .value("tls-cert", "file", "Certificate with its chain (PEM): serves https and wss."),
        .value("tls-key", "file", "Private key of the certificate (PEM, no password)."),
        .value("cert", "file", "The same as --tls-cert."),
        .value("key", "file", "The same as --tls-key."),
        .flag("tls-self-signed", "Serves https and wss with a certificate made at the start, and prints it."),
        .value("tls-name", "name", isRepeatable: true, "Further name or address in the self-signed certificate."),
        .value("turn", "uri", isRepeatable: true, "TURN server that clients are told to use: turn: or turns:."),
        .value("turn-user", "name", "User name for the TURN server."),
        .value("turn-password", "password", "Password for the TURN server."),
        .value(
            "turn-policy", "policy", default: "all", allowed: ["all", "relay"],
            "relay: clients use nothing but TURN."),
        .value("redirect", "url", "Sends every client to another server's signaling URL."),
        .flag("no-page", "Serves no web page."),
    ]

    private static let signaling: [OptionDefinition] = [
        .value(
            "video-codec", "codec", default: "VP9", allowed: ["VP8", "VP9", "AV1", "H264", "H265"],
            "Video codec for clients that name none."),
        .value("video-bit-rate", "kbit/s", default: "1000", "Video bit rate for clients that name none."),
        .value(
            "data-channel-signaling", "on|off", default: "on", allowed: ["on", "off"],
            "What holds for clients that leave it out."),
        .flag("ignore-disconnect-websocket", "Clients that leave it out go on without their WebSocket."),
        .flag("no-compression", "Does not compress the system's data channels."),
        .value("rpc-method", "name", isRepeatable: true, "RPC method to allow, instead of all; none turns RPC off."),
        .value("spotlight-number", "number", default: "5", "Speakers in focus, 1 to 8."),
        .value("ping-interval", "seconds", default: "5", "Between pings on the WebSocket."),
        .value("answer-timeout", "seconds", default: "30", "For each step of connecting, and for re-answers."),
    ]

    private static let admission: [OptionDefinition] = [
        .value("jwt-secret", "text", "Asks for an access token in metadata.access_token, signed with it (HS256)."),
        .flag("jwt-unchecked", "Honours the claims of access tokens without checking them."),
        .value("auth-webhook", "url", "Asks this URL about each connect."),
        .value("session-webhook", "url", "Tells this URL of sessions."),
        .value("event-webhook", "url", "Tells this URL of connections."),
        .value("webhook-timeout", "seconds", default: "5", "For one webhook request."),
        .value("recordings", "directory", "Where recordings go, as WebM; without it the API refuses to record."),
    ]

    private static let limits: [OptionDefinition] = [
        .value("max-connections", "number", default: "1000", "Connections in one channel."),
        .value("max-sockets", "number", default: "10000", "Open TCP connections."),
        .value("max-channels", "number", default: "10000", "Channels on one event loop."),
        .value("max-signaling-rate", "number", default: "100", "Signaling messages of one client in a second."),
        .value("max-message-size", "bytes", default: "262144", "One data channel message."),
        .value("connect-timeout", "seconds", default: "5", "For a whole request, or connect, after TCP is up."),
        .value("max-waiting-sockets", "number", default: "1000", "TCP connections of one address before connect."),
        .value("fault", "description", isRepeatable: true, "Something to go wrong on purpose."),
        .value("seed", "number", "Makes identifiers repeatable."),
    ]

    private static let output: [OptionDefinition] = [
        .value("config", "file", "Options in a file, one a line without the dashes; those given here win."),
        .flag("verbose", short: "v", "Logs every event."),
        .flag("json", "Every event as one JSON object a line on standard output."),
    ]

    // MARK: Running

    static func run(_ words: ParsedArguments) async throws -> ExitStatus {
        let arguments = try withFile(words)
        var configuration = try configuration(arguments)
        let isVerbose = arguments.has("verbose")
        let isJSON = arguments.has("json")
        configuration.onEvent = { event in
            if isJSON {
                Terminal.result([
                    "event": event.kind.rawValue, "channel": event.channelID, "connection": event.connectionID,
                    "detail": event.detail,
                ])
            }
            if isVerbose || ServeCommand.isWorthALine(event.kind) { Terminal.log("\(event)") }
        }
        let server: SoraServer
        do {
            server = try await SoraServer.start(configuration)
        } catch let error as ServerError {
            throw CommandFailure(status(of: error), "\(error)")
        }
        if isJSON { Terminal.result(["event": "serving", "url": server.signalingURL]) }
        if arguments.has("tls-self-signed"), let certificate = server.certificate { Terminal.log(certificate) }
        Terminal.log("serving \(server.signalingURL)")
        if configuration.servesPage { Terminal.log("page    \(server.pageURL)") }
        if let port = server.apiPort { Terminal.log("API     port \(port)") }
        await Interruption.wait()
        await server.stop()
        return .success
    }

    static func status(of error: ServerError) -> ExitStatus {
        switch error {
        case .invalidAddress, .invalidURL: .usage
        case .certificate: .noInput
        case .cannotListen: .unavailable
        }
    }

    /// Adds the options of `--config`.
    static func withFile(_ arguments: ParsedArguments) throws -> ParsedArguments {
        guard let path = arguments.string("config") else { return arguments }
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
            throw CommandFailure(.noInput, "the file '\(path)' cannot be read")
        }
        var words = [definition.name]
        for line in text.split(whereSeparator: \.isNewline) {
            let line = line.trimmingCharacters(in: .whitespaces)
            if line.isEmpty || line.hasPrefix("#") { continue }
            let name = line.prefix { !$0.isWhitespace && $0 != "=" }
            let value = line.dropFirst(name.count).drop { $0.isWhitespace || $0 == "=" }
            words.append(value.isEmpty ? "--\(name)" : "--\(name)=\(value)")
        }
        let root = CommandDefinition(name: "sora", abstract: "", subcommands: [definition])
        do throws(CommandFailure) {
            guard case .run(_, _, let file) = try ArgumentParser(root: root).parse(words) else {
                throw CommandFailure(.usage, "only options may stand there")
            }
            return ParsedArguments(
                values: file.values.merging(arguments.values) { _, given in given },
                flags: file.flags.union(arguments.flags), operands: [])
        } catch {
            throw CommandFailure(.usage, "\(path): \(error.message)")
        }
    }

    static func configuration(_ arguments: ParsedArguments) throws -> ServerConfiguration {
        var configuration = ServerConfiguration()
        try setNetwork(arguments, &configuration)
        try setTURN(arguments, &configuration)
        configuration.videoCodec = arguments.string("video-codec") ?? configuration.videoCodec
        configuration.videoBitRate =
            try arguments.integer("video-bit-rate", in: 1...50_000) ?? configuration.videoBitRate
        configuration.dataChannelSignaling = arguments.string("data-channel-signaling") != "off"
        configuration.ignoreDisconnectWebSocket = arguments.has("ignore-disconnect-websocket")
        configuration.compressesDataChannels = !arguments.has("no-compression")
        let methods = arguments.strings("rpc-method")
        if !methods.isEmpty { configuration.rpcMethods = methods.filter { $0 != "none" } }
        configuration.spotlightNumber = try arguments.integer("spotlight-number", in: 1...8) ?? 5
        configuration.pingInterval = try seconds(arguments, "ping-interval") ?? configuration.pingInterval
        configuration.answerTimeout = try seconds(arguments, "answer-timeout") ?? configuration.answerTimeout
        let environment = ProcessInfo.processInfo.environment
        configuration.tokenSecret = arguments.string("jwt-secret") ?? environment["SORA_JWT_SECRET"]
        if configuration.tokenSecret?.isEmpty == true {
            // Everybody knows the empty secret: that would look like a check and be none.
            throw CommandFailure(
                .usage, "the secret of --jwt-secret or SORA_JWT_SECRET is empty: give one, or leave the option out")
        }
        configuration.acceptsUncheckedTokens = arguments.has("jwt-unchecked")
        configuration.authWebhook = try url(arguments, "auth-webhook", ["http", "https"])
        configuration.sessionWebhook = try url(arguments, "session-webhook", ["http", "https"])
        configuration.eventWebhook = try url(arguments, "event-webhook", ["http", "https"])
        if let directory = arguments.string("recordings") {
            var isDirectory: ObjCBool = false
            guard FileManager.default.fileExists(atPath: directory, isDirectory: &isDirectory), isDirectory.boolValue
            else { throw CommandFailure(.noInput, "'\(directory)' is no directory: make it first") }
            configuration.recordingDirectory = directory
        }
        configuration.webhookTimeout = try seconds(arguments, "webhook-timeout") ?? configuration.webhookTimeout
        configuration.maximumConnectionsPerChannel = try arguments.integer("max-connections", in: 1...100_000) ?? 1000
        configuration.maximumSockets = try arguments.integer("max-sockets", in: 1...1_000_000) ?? 10_000
        configuration.maximumWaitingSocketsPerAddress =
            try arguments.integer("max-waiting-sockets", in: 1...1_000_000) ?? 1000
        configuration.maximumChannels = try arguments.integer("max-channels", in: 1...1_000_000) ?? 10_000
        configuration.maximumMessagesPerSecond = try arguments.integer("max-signaling-rate", in: 1...1_000_000) ?? 100
        configuration.maximumMessageSize =
            try arguments.integer("max-message-size", in: 1_200...1_073_741_824) ?? configuration.maximumMessageSize
        configuration.connectTimeout = try seconds(arguments, "connect-timeout") ?? configuration.connectTimeout
        configuration.faults = try arguments.strings("fault").map { text in
            do {
                return try Fault(parsing: text)
            } catch {
                throw CommandFailure(.usage, "--fault \(text): \(error)")
            }
        }
        configuration.seed = try arguments.integer("seed").map { UInt64(clamping: $0) }
        return configuration
    }

    private static func setNetwork(_ arguments: ParsedArguments, _ configuration: inout ServerConfiguration) throws {
        func port(_ name: String) throws -> UInt16? {
            try arguments.integer(name, in: 0...65_535).map { UInt16(clamping: $0) }
        }
        configuration.host = arguments.string("host") ?? "127.0.0.1"
        configuration.port = try port("port") ?? 5000
        configuration.apiPort = try port("api-port")
        configuration.apiAllowedOrigin = arguments.string("api-allow-origin")
        configuration.mediaPort = try port("media-port") ?? 0
        configuration.mediaAddresses = arguments.strings("media-address")
        configuration.eventLoops = try arguments.integer("loops", in: 1...64) ?? 1
        configuration.redirectLocation = try url(arguments, "redirect", ["ws", "wss"])
        configuration.servesPage = !arguments.has("no-page")
        let certificate = arguments.string("tls-cert") ?? arguments.string("cert")
        let key = arguments.string("tls-key") ?? arguments.string("key")
        switch (certificate, key, arguments.has("tls-self-signed")) {
        case (nil, nil, false): break
        case (nil, nil, true): configuration.transportSecurity = .selfSigned(names: arguments.strings("tls-name"))
        case (let certificate?, let key?, false):
            configuration.transportSecurity = .files(certificate: certificate, key: key)
        case (_, _, true):
            throw CommandFailure(.usage, "--tls-self-signed makes a certificate: give no --tls-cert and --tls-key")
        case (_, nil, false), (nil, _, false):
            throw CommandFailure(.usage, "--tls-cert and --tls-key belong together")
        }
    }

    private static func setTURN(_ arguments: ParsedArguments, _ configuration: inout ServerConfiguration) throws {
        let urls = arguments.strings("turn")
        configuration.forcesRelay = arguments.string("turn-policy") == "relay"
        guard !urls.isEmpty else {
            if configuration.forcesRelay { throw CommandFailure(.usage, "--turn-policy relay needs a --turn server") }
            return
        }
        for url in urls where !url.hasPrefix("turn:") && !url.hasPrefix("turns:") {
            throw CommandFailure(.usage, "--turn \(url) is no turn: or turns: URI")
        }
        // Some clients end with a fault when one of the two is missing (spec/signaling.md 2.3).
        let password = arguments.string("turn-password") ?? ProcessInfo.processInfo.environment["SORA_TURN_PASSWORD"]
        guard let user = arguments.string("turn-user"), let password else {
            throw CommandFailure(.usage, "--turn needs --turn-user and --turn-password")
        }
        configuration.turnServers = [.init(urls: urls, username: user, credential: password)]
    }

    private static func url(_ arguments: ParsedArguments, _ name: String, _ schemes: [String]) throws -> String? {
        guard let text = arguments.string(name) else { return nil }
        guard let url = URL(string: text), schemes.contains(url.scheme?.lowercased() ?? ""), url.host?.isEmpty == false
        else {
            throw CommandFailure(
                .usage,
                "--\(name) takes a URL with \(schemes.map { "\($0)://" }.joined(separator: " or ")), not '\(text)'")
        }
        return text
    }

    private static func seconds(_ arguments: ParsedArguments, _ name: String) throws -> Duration? {
        try arguments.number(name, in: 0.01...86_400).map { .milliseconds(Int64($0 * 1000)) }
    }

    private static func isWorthALine(_ kind: ServerEvent.Kind) -> Bool {
        switch kind {
        case .joined, .left, .refused, .redirected, .disconnected, .mediaLost, .protocolError: true
        default: false
        }
    }
}
