/// Builds `--help` from a definition.
enum HelpText {
    static func text(for command: CommandDefinition, path: [String], width: Int = 90) -> String {
        var parts: [String] = [command.abstract, "", "USAGE: " + usage(command, path: path)]
        if !command.discussion.isEmpty { parts += ["", wrap(command.discussion, width: width)] }
        if !command.operands.isEmpty {
            parts += ["", "ARGUMENTS:"]
            parts += rows(command.operands.map { ("<\($0.name)>", $0.help) }, width: width)
        }
        let options = command.options + [.flag("help", short: "h", "Shows this text.")]
        parts += ["", "OPTIONS:"]
        parts += rows(options.map { (label($0), help($0)) }, width: width)
        if !command.subcommands.isEmpty {
            parts += ["", "COMMANDS:"]
            parts += rows(command.subcommands.map { ($0.name, $0.abstract) }, width: width)
            parts += ["", "See '\(path.joined(separator: " ")) help COMMAND' for one of them."]
        }
        return parts.joined(separator: "\n")
    }

    static func usage(_ command: CommandDefinition, path: [String]) -> String {
        var words = path
        if !command.options.isEmpty { words.append("[options]") }
        words += command.operands.map { operand in
            let name = "<\(operand.name)>" + (operand.isRepeatable ? " ..." : "")
            return operand.isOptional ? "[\(name)]" : name
        }
        if !command.subcommands.isEmpty { words.append("<command>") }
        return words.joined(separator: " ")
    }

    private static func label(_ option: OptionDefinition) -> String {
        var text = option.short.map { "-\($0), " } ?? ""
        text += "--\(option.name)"
        if case .value(let placeholder) = option.kind { text += " <\(placeholder)>" }
        return text
    }

    private static func help(_ option: OptionDefinition) -> String {
        var text = option.help
        if !option.allowed.isEmpty { text += " One of: \(option.allowed.joined(separator: ", "))." }
        if option.isRepeatable { text += " May be given several times." }
        if let defaultText = option.defaultText { text += " (default: \(defaultText))" }
        return text
    }

    private static func rows(_ pairs: [(String, String)], width: Int) -> [String] {
        let column = min((pairs.map(\.0.count).max() ?? 0) + 4, 34)
        return pairs.map { label, help in
            let lines = wrap(help, width: width - column).split(separator: "\n", omittingEmptySubsequences: false)
            let indent = String(repeating: " ", count: column)
            let head = "  " + label
            let first =
                head.count + 2 > column
                ? head + "\n" + indent + (lines.first ?? "")
                : head + String(repeating: " ", count: column - head.count) + (lines.first ?? "")
            return ([first] + lines.dropFirst().map { indent + $0 }).joined(separator: "\n")
        }
    }

    /// Breaks text at spaces; line breaks in it stay.
    static func wrap(_ text: String, width: Int) -> String {
        text.split(separator: "\n", omittingEmptySubsequences: false).map { paragraph in
            // Lines that begin with a space are examples and stay as they are.
            if paragraph.hasPrefix(" ") { return String(paragraph) }
            var lines: [String] = []
            var line = ""
            for word in paragraph.split(separator: " ") {
                if line.isEmpty {
                    line = String(word)
                } else if line.count + 1 + word.count <= width {
                    line += " " + word
                } else {
                    lines.append(line)
                    line = String(word)
                }
            }
            lines.append(line)
            return lines.joined(separator: "\n")
        }.joined(separator: "\n")
    }
}
