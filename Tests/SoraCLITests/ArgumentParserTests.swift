import Testing

@testable import SoraCLI

@Suite struct ArgumentParserTests {
    static let tool = CommandDefinition(
        name: "tool", abstract: "A tool.",
        subcommands: [
            CommandDefinition(
                name: "send", abstract: "Sends.",
                options: [
                    .value("label", "label", short: "l", "The label."),
                    .value("role", "role", allowed: ["sendonly", "recvonly"], "The role."),
                    .value("url", "url", isRepeatable: true, "A URL."),
                    .value("count", "n", "How many."),
                    .flag("verbose", short: "v", "More words."),
                    .flag("verify", "Checks."),
                ],
                operands: [OperandDefinition(name: "file", help: "A file.", isOptional: true)],
                run: { _ in .success }),
            CommandDefinition(
                name: "read", abstract: "Reads.",
                operands: [OperandDefinition(name: "file", help: "A file.")], run: { _ in .success }),
        ])

    func parse(_ words: String...) throws -> ParsedArguments {
        guard case .run(_, _, let arguments) = try ArgumentParser(root: Self.tool).parse(words) else {
            Issue.record("not a run: \(words)")
            return ParsedArguments()
        }
        return arguments
    }

    func failure(_ words: String...) -> String? {
        do {
            _ = try ArgumentParser(root: Self.tool).parse(words)
            return nil
        } catch {
            #expect(error.status == .usage)
            return error.message
        }
    }

    @Test func takesLongShortAndAttachedValues() throws {
        let arguments = try parse("send", "--label", "#a", "-v", "--url=x=1", "--url", "y", "--", "--file")
        #expect(arguments.string("label") == "#a")
        #expect(arguments.has("verbose"))
        #expect(arguments.strings("url") == ["x=1", "y"])
        #expect(arguments.operands == ["--file"])
        #expect(try parse("send", "-l", "b").string("label") == "b")
        #expect(try parse("send", "--lab", "b").string("label") == "b")
    }

    @Test func namesWhatIsWrong() {
        #expect(failure("sned") == "unknown command 'sned'; did you mean 'send'?")
        #expect(failure("send", "--lable", "x") == "unknown option '--lable'; did you mean '--label'?")
        #expect(failure("send", "--zzzzzzzz")?.contains("tool send --help") == true)
        #expect(failure("send", "--label") == "--label needs a value: --label label")
        #expect(failure("send", "--label", "a", "--label", "b") == "--label is given twice")
        #expect(failure("send", "--role", "both") == "--role takes one of sendonly, recvonly, not 'both'")
        #expect(failure("send", "--ver")?.contains("ambiguous") == true)
        #expect(failure("send", "--verbose=1") == "--verbose takes no value")
        #expect(failure("send", "a", "b")?.contains("unexpected 'b'") == true)
        #expect(failure("read")?.contains("file is missing") == true)
    }

    @Test func numbersAreChecked() throws {
        let arguments = try parse("send", "--count", "12x")
        #expect(throws: CommandFailure(.usage, "--count takes a whole number from 1 to 9, not '12x'")) {
            try arguments.integer("count", in: 1...9)
        }
        #expect(try parse("send", "--count", "7").integer("count", in: 1...9) == 7)
        #expect(try parse("send").integer("count") == nil)
    }

    @Test func helpBehindAGroupIsThatGroups() throws {
        let root = CommandDefinition(name: "tool", abstract: "", subcommands: [Self.tool])
        for (words, expected) in [(["help"], "tool"), (["help", "tool", "send"], "tool tool send")] {
            guard case .help(_, let path) = try ArgumentParser(root: root).parse(words) else {
                Issue.record("no help")
                continue
            }
            #expect(path.joined(separator: " ") == expected)
        }
        // What the group's help names: 'tool tool help COMMAND'.
        guard case .help(let command, let path) = try ArgumentParser(root: root).parse(["tool", "help", "send"]) else {
            Issue.record("no help")
            return
        }
        #expect(command.name == "send" && path == ["tool", "tool", "send"])
        guard case .help(let group, _) = try ArgumentParser(root: root).parse(["tool", "help"]) else {
            Issue.record("no help")
            return
        }
        #expect(group.subcommands.map(\.name) == ["send", "read"])
    }

    @Test func helpNamesEveryOption() throws {
        guard case .help(let command, let path) = try ArgumentParser(root: Self.tool).parse(["send", "-h"]) else {
            Issue.record("no help")
            return
        }
        let text = HelpText.text(for: command, path: path)
        #expect(text.contains("USAGE: tool send [options] [<file>]"))
        for option in command.options { #expect(text.contains("--" + option.name)) }
        #expect(HelpText.text(for: Self.tool, path: ["tool"]).contains("COMMANDS:"))
    }

    @Test(arguments: ["bash", "zsh", "fish"])
    func completionNamesCommands(shell: String) throws {
        guard
            case .completionScript(let wanted) = try ArgumentParser(root: Self.tool).parse([
                "--generate-completion-script", shell,
            ])
        else {
            Issue.record("no script")
            return
        }
        let text = CompletionScript.text(for: Self.tool, shell: wanted)
        #expect(text.contains("send") && text.contains("label"))
    }

    @Test func distanceCountsEdits() {
        #expect(editDistance("kitten", "sitting") == 3)
        #expect(editDistance("", "abc") == 3)
    }
}
