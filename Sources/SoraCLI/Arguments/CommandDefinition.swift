/// One command of the tool: its words on the command line and what they do.
///
/// Commands are values; the parser, `--help` and the completion scripts all read the same definition.
struct CommandDefinition: Sendable {
    var name: String
    /// One line for the list of commands.
    var abstract: String
    /// Paragraphs for `--help`, below the abstract.
    var discussion = ""
    var options: [OptionDefinition] = []
    var operands: [OperandDefinition] = []
    var subcommands: [CommandDefinition] = []
    /// Nil for a command that only groups others.
    var run: (@Sendable (ParsedArguments) async throws -> ExitStatus)?
}

/// A named option, `--name VALUE`, `--name=VALUE`, `-n VALUE`, or a flag without a value.
struct OptionDefinition: Sendable {
    enum Kind: Sendable, Equatable {
        case flag
        /// Takes a value; the word stands for it in help texts.
        case value(String)
    }
    /// Without the dashes.
    var name: String
    var short: Character?
    var kind: Kind
    var help: String
    var isRepeatable = false
    /// Shown in help; the command applies it itself.
    var defaultText: String?
    /// The only values that are allowed; empty: any.
    var allowed: [String] = []

    static func flag(_ name: String, short: Character? = nil, _ help: String) -> OptionDefinition {
        OptionDefinition(name: name, short: short, kind: .flag, help: help)
    }
    static func value(
        _ name: String, _ placeholder: String, short: Character? = nil, default defaultText: String? = nil,
        allowed: [String] = [], isRepeatable: Bool = false, _ help: String
    ) -> OptionDefinition {
        OptionDefinition(
            name: name, short: short, kind: .value(placeholder), help: help, isRepeatable: isRepeatable,
            defaultText: defaultText, allowed: allowed)
    }
}

/// A word that is told by its place.
struct OperandDefinition: Sendable {
    var name: String
    var help: String
    var isOptional = false
    var isRepeatable = false
}

/// How the tool ended, after sysexits.h where it has a word for it. Documented in README.md.
enum ExitStatus: Int32, Sendable, CaseIterable {
    case success = 0
    case failure = 1
    case usage = 64
    case noInput = 66
    case hostNotFound = 68
    case unavailable = 69
    case internalError = 70
    case cannotCreate = 73
    case timeout = 75
    case protocolError = 76
    case refused = 77
    case tls = 80
    case sessionDescription = 81
    case ice = 82
    case dtls = 83
    case media = 84
    case interrupted = 130

    var meaning: String {
        switch self {
        case .success: "the job was done"
        case .failure: "the job was done in part, or its result is negative"
        case .usage: "wrong words on the command line"
        case .noInput: "an input file is missing or cannot be decoded"
        case .hostNotFound: "the server's name cannot be resolved"
        case .unavailable: "the server cannot be reached or went away"
        case .internalError: "a fault of this program"
        case .cannotCreate: "an output file cannot be written"
        case .timeout: "a stated time limit passed"
        case .protocolError: "the other side does not speak the protocol (no WebSocket, malformed messages)"
        case .refused: "the server refused the connection"
        case .tls: "TLS failed: certificate not trusted, wrong name, no common version"
        case .sessionDescription: "the server's offer cannot be used"
        case .ice: "no network path for media and data (ICE failed)"
        case .dtls: "DTLS failed on the media path"
        case .media: "connected, but data channels or media did not come"
        case .interrupted: "ended by Ctrl-C before the job was done"
        }
    }
}

/// A failure with the one sentence that goes to standard error and the status to exit with.
struct CommandFailure: Error, Equatable {
    var status: ExitStatus
    var message: String

    init(_ status: ExitStatus, _ message: String) {
        self.status = status
        self.message = message
    }
}
