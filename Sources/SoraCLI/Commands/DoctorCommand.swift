import Foundation
import SoraDiagnostics

/// `sora doctor`: examines a connection stage by stage.
enum DoctorCommand {
    static let definition = CommandDefinition(
        name: "doctor",
        abstract: "Walks through each stage of a connection and says what is wrong.",
        discussion: """
            Stages: \(DoctorStage.allCases.map(\.rawValue).joined(separator: ", "
                + "")). Each URL is examined by itself; each \
            stage ends within --timeout. Passwords, tokens and metadata never appear in the output.
            The exit status tells the stage at which the first URL fails:
             64 url, 68 dns, 69 tcp and proxy, 80 tls, 76 upgrade, 75 no offer in time, 77 refused by proxy or server,
             81 offer, 82 turn and ice, 83 dtls and srtp, 84 data channels and media.
            """,
        options: [
            .value(
                "url", "url", short: "u", isRepeatable: true,
                "Signaling URL (ws or wss), like the words "
                    + "without option."),
            .value("channel", "id", short: "c", default: "sora", "Channel to join."),
            .value(
                "role", "role", default: "recvonly", allowed: ["recvonly", "sendrecv", "sendonly"],
                "Role; nothing is sent in any."),
            .value(
                "metadata", "json",
                "Metadata for authentication: JSON, or @FILE. SORA_METADATA in the environment keeps it out of the "
                    + "process list."
            ),
            .value("video-codec", "codec", "VP8, VP9, AV1, H264 or H265; without it the server chooses."),
            .flag("no-audio", "Without audio."),
            .flag("no-video", "Without video."),
            .value(
                "data-channel-signaling", "on|off", allowed: ["on", "off"],
                "Signaling over data channels; without it the server decides."),
            .flag("relay", "Uses TURN servers only, whatever the server says."),
            .value("timeout", "seconds", default: "10", "Limit for each stage."),
            .value("ca", "file", "PEM file with certificate authorities to trust instead of the system's."),
            .flag("insecure", "Accepts any server certificate, and reports it all the same."),
            .value("proxy", "host:port", "HTTP proxy."),
            .value(
                "proxy-user", "name:password", "Proxy credentials; SORA_PROXY_USER in the environment does the same."),
            .flag("json", "One JSON object a line: versions, then for each URL its stages and a verdict."),
            .flag("verbose", short: "v", "Shows the details of stages that passed, too."),
        ],
        operands: [
            OperandDefinition(
                name: "url", help: "Signaling URLs, such as wss://sora.example.com/signaling.", isOptional: true,
                isRepeatable: true)
        ],
        run: run)

    static func run(_ arguments: ParsedArguments) async throws -> ExitStatus {
        let configuration = try configuration(arguments)
        let isJSON = arguments.has("json")
        let isVerbose = arguments.has("verbose")
        if isJSON {
            Terminal.result(LibraryVersions.jsonText)
        } else {
            Terminal.result(LibraryVersions.all.map { "\($0.name) \($0.version)" }.joined(separator: "; "))
        }
        let examination = Task {
            try await Doctor(configuration).examine { report in
                Terminal.result(isJSON ? report.jsonText : text(of: report, isVerbose: isVerbose))
            } onDiagnosis: { diagnosis in
                Terminal.result(isJSON ? diagnosis.jsonText : "\(diagnosis.url) \(diagnosis.summary)")
            }
        }
        // The first signal leaves the server in order.
        Interruption.onRequest { examination.cancel() }
        let diagnoses = try await examination.value
        if diagnoses.contains(where: \.wasInterrupted) || diagnoses.count < configuration.urls.count {
            return .interrupted
        }
        guard let failure = diagnoses.compactMap(\.failure).first else { return .success }
        Terminal.error("\(failure.url) \(failure.stage.rawValue): \(failure.summary)")
        return status(of: failure.stage, failure.failure)
    }

    private static func text(of report: StageReport, isVerbose: Bool) -> String {
        let mark =
            switch report.verdict {
            case .passed: "ok  "
            case .warning: "WARN"
            case .failed: "FAIL"
            case .skipped: "skip"
            }
        let name = report.stage.rawValue.padding(toLength: 14, withPad: " ", startingAt: 0)
        let time = "\(report.milliseconds) ms"
        let padding = String(repeating: " ", count: max(1, 11 - time.count))
        var lines = ["\(mark) \(name)\(padding)\(time)  \(report.summary)"]
        if isVerbose || report.verdict == .failed { lines += report.details.map { "       \($0)" } }
        if !report.advice.isEmpty { lines.append("     → \(report.advice)") }
        return lines.joined(separator: "\n")
    }

    /// The exit status of a failed stage, as in the table of README.md.
    static func status(of stage: DoctorStage, _ failure: StageReport.Failure?) -> ExitStatus {
        switch stage {
        case .url: .usage
        case .dns: .hostNotFound
        case .tcp: .unavailable
        case .proxy: failure == .refused ? .refused : .unavailable
        case .tls: .tls
        case .upgrade, .connect:
            switch failure {
            case .refused: .refused
            case .timedOut: .timeout
            default: .protocolError
            }
        case .offer: .sessionDescription
        case .turn, .ice: .ice
        case .dtls, .srtp: .dtls
        case .dataChannels, .rtp, .keyFrame: .media
        }
    }

    // MARK: Words

    private static func configuration(_ arguments: ParsedArguments) throws -> DoctorConfiguration {
        let urls = arguments.operands + arguments.strings("url")
        guard !urls.isEmpty else { throw CommandFailure(.usage, "url is missing; see 'sora doctor --help'") }
        var configuration = DoctorConfiguration(urls: urls, channelID: arguments.string("channel") ?? "sora")
        if let role = arguments.string("role"), !configuration.setRole(role) {
            throw CommandFailure(.usage, "unknown role '\(role)'")
        }
        let environment = ProcessInfo.processInfo.environment
        if let metadata = arguments.string("metadata") ?? environment["SORA_METADATA"] {
            let json = metadata.hasPrefix("@") ? try text(ofFile: String(metadata.dropFirst())) : metadata
            do {
                try configuration.setMetadata(json: json)
            } catch {
                throw CommandFailure(.usage, "--metadata: \(error)")
            }
        }
        configuration.audio = !arguments.has("no-audio")
        configuration.video = !arguments.has("no-video")
        if let codec = arguments.string("video-codec") {
            let known = ["VP8", "VP9", "AV1", "H264", "H265"]
            guard known.contains(codec.uppercased()) else {
                throw CommandFailure(
                    .usage,
                    "--video-codec takes one of \(known.joined(separator: ", ")), not "
                        + "'\(codec)'")
            }
            configuration.videoCodec = codec.uppercased()
        }
        configuration.dataChannelSignaling = arguments.string("data-channel-signaling").map { $0 == "on" }
        configuration.relayOnly = arguments.has("relay")
        configuration.timeout = .seconds(try arguments.number("timeout", in: 0.1...600) ?? 10)
        if let path = arguments.string("ca") { configuration.certificateAuthorities = try text(ofFile: path) }
        configuration.ignoresCertificates = arguments.has("insecure")
        if let text = arguments.string("proxy") {
            let credentials = arguments.string("proxy-user") ?? environment["SORA_PROXY_USER"]
            configuration.proxy = try proxy(text, credentials: credentials)
        }
        configuration.agent = "Sora for Swift doctor \(Tool.version)"
        return configuration
    }

    private static func proxy(_ text: String, credentials: String?) throws -> DoctorConfiguration.Proxy {
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]), port > 0,
            colon > text.startIndex
        else { throw CommandFailure(.usage, "--proxy takes HOST:PORT, not '\(text)'") }
        let pair = credentials?.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        return DoctorConfiguration.Proxy(
            host: String(text[..<colon]), port: port, username: pair?.first,
            password: pair.flatMap { $0.count > 1 ? $0[1] : nil })
    }

    private static func text(ofFile path: String) throws -> String {
        do {
            return try String(contentsOfFile: path, encoding: .utf8)
        } catch {
            throw CommandFailure(.noInput, "cannot read '\(path)'")
        }
    }
}
