/// Shell completion for commands and options, made from the definitions.
enum CompletionScript {
    static func text(for root: CommandDefinition, shell: String) -> String {
        switch shell {
        case "zsh": "autoload -U +X bashcompinit && bashcompinit\n" + bash(root)
        case "fish": fish(root)
        default: bash(root)
        }
    }

    private static func options(_ command: CommandDefinition) -> [String] {
        command.options.map { "--" + $0.name } + ["--help"]
    }

    private static func bash(_ root: CommandDefinition) -> String {
        let cases = root.subcommands.map { command in
            "        \(command.name)) words=\"\(options(command).joined(separator: " "))\" ;;"
        }
        return """
            _\(root.name)() {
                local words current="${COMP_WORDS[COMP_CWORD]}"
                if ((COMP_CWORD == 1)); then
                    words="\((root.subcommands.map(\.name) + ["help", "--help", "--version"]).joined(separator: " "))"
                else
                    case "${COMP_WORDS[1]}" in
            \(cases.joined(separator: "\n"))
                    esac
                fi
                if [[ $current == -* || $COMP_CWORD == 1 ]]; then
                    COMPREPLY=($(compgen -W "$words" -- "$current"))
                else
                    COMPREPLY=($(compgen -f -- "$current"))
                fi
            }
            complete -F _\(root.name) \(root.name)
            """
    }

    private static func fish(_ root: CommandDefinition) -> String {
        func quoted(_ text: String) -> String { "'" + text.replacing("'", with: "\\'") + "'" }
        var lines: [String] = []
        for command in root.subcommands {
            lines.append(
                "complete -c \(root.name) -n __fish_use_subcommand -a \(command.name) -d \(quoted(command.abstract))")
            for option in command.options {
                var line = "complete -c \(root.name) -n '__fish_seen_subcommand_from \(command.name)' -l \(option.name)"
                if let short = option.short { line += " -s \(short)" }
                if case .value = option.kind { line += " -r" }
                if !option.allowed.isEmpty { line += " -f -a \(quoted(option.allowed.joined(separator: " ")))" }
                lines.append(line + " -d \(quoted(option.help))")
            }
        }
        return lines.joined(separator: "\n")
    }
}
