/// The words of one invocation, sorted by the command's definition.
struct ParsedArguments: Sendable {
    fileprivate(set) var values: [String: [String]] = [:]
    fileprivate(set) var flags: Set<String> = []
    fileprivate(set) var operands: [String] = []

    func has(_ flag: String) -> Bool { flags.contains(flag) }
    /// The last value given for an option.
    func string(_ option: String) -> String? { values[option]?.last }
    func strings(_ option: String) -> [String] { values[option] ?? [] }

    /// A whole number within `range`, or nil if the option was not given.
    func integer(_ option: String, in range: ClosedRange<Int> = 0...Int.max) throws -> Int? {
        guard let text = string(option) else { return nil }
        guard let number = Int(text), range.contains(number) else {
            throw CommandFailure(
                .usage,
                "--\(option) takes a whole number\(range.upperBound == .max ? " of at least \(range.lowerBound)" : " from \(range.lowerBound) to \(range.upperBound)"), not '\(text)'"
            )
        }
        return number
    }

    /// A number within `range`, or nil if the option was not given.
    func number(_ option: String, in range: ClosedRange<Double>) throws -> Double? {
        guard let text = string(option) else { return nil }
        guard let number = Double(text), range.contains(number) else {
            throw CommandFailure(
                .usage, "--\(option) takes a number from \(range.lowerBound) to \(range.upperBound), not '\(text)'")
        }
        return number
    }
}

/// What the words on the command line ask for.
enum Invocation: Sendable {
    case run(CommandDefinition, path: [String], ParsedArguments)
    case help(CommandDefinition, path: [String])
    case version
    case completionScript(shell: String)
}

/// Sorts words by definitions. Conventions: long options with a space or `=`, short ones singly, `--`
/// ends options, `--help` anywhere, names may be shortened as long as they are unambiguous.
struct ArgumentParser {
    let root: CommandDefinition

    func parse(_ words: [String]) throws(CommandFailure) -> Invocation {
        var command = root
        var path = [root.name]
        var rest = words[...]

        while let word = rest.first, !command.subcommands.isEmpty, !word.hasPrefix("-") {
            if word == "help" {
                return .help(try find(rest.dropFirst(), in: command, path: &path), path: path)
            }
            guard let next = command.subcommands.first(where: { $0.name == word }) else {
                throw unknown("command", word, among: command.subcommands.map(\.name), path: path)
            }
            command = next
            path.append(next.name)
            rest = rest.dropFirst()
        }

        var arguments = ParsedArguments()
        var mayBeOption = true
        while let word = rest.popFirst() {
            guard mayBeOption, word.hasPrefix("-"), word != "-" else {
                arguments.operands.append(word)
                continue
            }
            switch word {
            case "--":
                mayBeOption = false
            case "--help", "-h":
                return .help(command, path: path)
            case "--version" where command.name == root.name:
                return .version
            case "--generate-completion-script" where command.name == root.name:
                let shell = rest.popFirst() ?? ""
                guard ["bash", "zsh", "fish"].contains(shell) else {
                    throw CommandFailure(.usage, "--generate-completion-script takes bash, zsh or fish, not '\(shell)'")
                }
                return .completionScript(shell: shell)
            default:
                try takeOption(word, rest: &rest, command: command, path: path, into: &arguments)
            }
        }
        guard command.run != nil else { return .help(command, path: path) }
        try checkOperands(arguments.operands, command: command, path: path)
        return .run(command, path: path, arguments)
    }

    private func find(
        _ names: ArraySlice<String>, in command: CommandDefinition, path: inout [String]
    ) throws(CommandFailure) -> CommandDefinition {
        var command = command
        for name in names {
            guard let next = command.subcommands.first(where: { $0.name == name }) else {
                throw unknown("command", name, among: command.subcommands.map(\.name), path: path)
            }
            command = next
            path.append(name)
        }
        return command
    }

    private func takeOption(
        _ word: String, rest: inout ArraySlice<String>, command: CommandDefinition, path: [String],
        into arguments: inout ParsedArguments
    ) throws(CommandFailure) {
        var name = word
        var attached: String?
        if word.hasPrefix("--"), let equals = word.firstIndex(of: "=") {
            name = String(word[..<equals])
            attached = String(word[word.index(after: equals)...])
        }
        let option = try find(option: name, command: command, path: path)
        switch option.kind {
        case .flag:
            guard attached == nil else { throw CommandFailure(.usage, "--\(option.name) takes no value") }
            arguments.flags.insert(option.name)
        case .value(let placeholder):
            guard let value = attached ?? rest.popFirst() else {
                throw CommandFailure(.usage, "--\(option.name) needs a value: --\(option.name) \(placeholder)")
            }
            guard option.allowed.isEmpty || option.allowed.contains(value) else {
                throw CommandFailure(
                    .usage, "--\(option.name) takes one of \(option.allowed.joined(separator: ", ")), not '\(value)'")
            }
            if !option.isRepeatable, arguments.values[option.name] != nil {
                throw CommandFailure(.usage, "--\(option.name) is given twice")
            }
            arguments.values[option.name, default: []].append(value)
        }
    }

    private func find(
        option word: String, command: CommandDefinition, path: [String]
    ) throws(CommandFailure) -> OptionDefinition {
        if !word.hasPrefix("--") {
            if word.count == 2, let option = command.options.first(where: { $0.short == word.last }) { return option }
            throw unknown("option", word, among: command.options.map { "--" + $0.name }, path: path)
        }
        let name = String(word.dropFirst(2))
        if let exact = command.options.first(where: { $0.name == name }) { return exact }
        let beginning = command.options.filter { $0.name.hasPrefix(name) }
        if !name.isEmpty, beginning.count == 1 { return beginning[0] }
        if beginning.count > 1 {
            throw CommandFailure(
                .usage, "\(word) is ambiguous: \(beginning.map { "--" + $0.name }.joined(separator: ", "))")
        }
        throw unknown("option", word, among: command.options.map { "--" + $0.name }, path: path)
    }

    private func checkOperands(
        _ operands: [String], command: CommandDefinition, path: [String]
    ) throws(CommandFailure) {
        let needed = command.operands.filter { !$0.isOptional }
        if operands.count < needed.count {
            throw CommandFailure(
                .usage, "\(needed[operands.count].name) is missing; see '\(path.joined(separator: " ")) --help'")
        }
        let takesMore = command.operands.last?.isRepeatable ?? false
        if operands.count > command.operands.count, !takesMore {
            throw CommandFailure(
                .usage,
                "unexpected '\(operands[command.operands.count])'; see '\(path.joined(separator: " ")) --help'")
        }
    }

    private func unknown(
        _ what: String, _ word: String, among known: [String], path: [String]
    ) -> CommandFailure {
        let nearest = known.map { ($0, editDistance($0, word)) }.min { $0.1 < $1.1 }
        let hint = nearest.map { $0.1 <= 2 ? "; did you mean '\($0.0)'?" : "" } ?? ""
        return CommandFailure(
            .usage, "unknown \(what) '\(word)'\(hint.isEmpty ? "; see '\(path.joined(separator: " ")) --help'" : hint)")
    }
}

/// Number of single-character insertions, deletions and replacements between two words (Levenshtein).
func editDistance(_ a: String, _ b: String) -> Int {
    let a = Array(a)
    let b = Array(b)
    var row = Array(0...b.count)
    for i in 0..<a.count {
        var diagonal = row[0]
        row[0] = i + 1
        for j in 0..<b.count {
            let replaced = diagonal + (a[i] == b[j] ? 0 : 1)
            diagonal = row[j + 1]
            row[j + 1] = min(replaced, row[j] + 1, row[j + 1] + 1)
        }
    }
    return row[b.count]
}
