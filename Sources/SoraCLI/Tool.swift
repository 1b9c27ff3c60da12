import Foundation

/// The `sora` command: finds the command that the words name, runs it, reports its failure.
enum Tool {
    static let version = "0.1.0"

    static let root = CommandDefinition(
        name: "sora",
        abstract: "Sora for Swift: a client, tools and a local server for the WebRTC SFU Sora.",
        options: [
            .flag("version", "Prints the version."),
            .value(
                "generate-completion-script", "shell", allowed: ["bash", "zsh", "fish"],
                "Prints a script for the shell."),
        ],
        subcommands: commands)

    static let commands: [CommandDefinition] = {
        var commands = [ServeCommand.definition]
        #if Media
        commands += [PublishCommand.definition, WatchCommand.definition]
        #endif
        commands += [MessageCommand.definition, RPCCommand.definition, LoadCommand.definition]
        commands += [DoctorCommand.definition, SDPCommand.definition]
        #if Media
        commands.append(DemoCommand.definition)
        #endif
        return commands
    }()

    static func run(_ words: [String]) async -> ExitStatus {
        let status = await perform(words)
        guard status == .success, let reason = Terminal.lostResults else { return status }
        Terminal.error("standard output cannot be written: \(reason)")
        return .cannotCreate
    }

    private static func perform(_ words: [String]) async -> ExitStatus {
        do {
            switch try ArgumentParser(root: root).parse(words) {
            case .version:
                Terminal.result("sora \(version)")
                return .success
            case .help(let command, let path):
                Terminal.result(HelpText.text(for: command, path: path))
                return .success
            case .completionScript(let shell):
                Terminal.result(CompletionScript.text(for: root, shell: shell))
                return .success
            case .run(let command, _, let arguments):
                guard let run = command.run else { return .usage }
                return try await run(arguments)
            }
        } catch let failure as CommandFailure {
            Terminal.error(failure.message)
            return failure.status
        } catch {
            Terminal.error("\(error)")
            return .internalError
        }
    }
}
