import Foundation

/// One line of progress that is written over itself on a terminal. Nothing when standard error is no
/// terminal, or with `--quiet`.
struct Progress: Sendable {
    private let isShown: Bool

    init(_ arguments: ParsedArguments) {
        isShown = isatty(STDERR_FILENO) == 1 && !arguments.has("quiet") && !arguments.has("json")
    }

    func show(_ text: String) {
        guard isShown else { return }
        Terminal.raw("\r\u{1B}[K\(text)")
    }

    /// Ends the line, so that what follows begins on a new one.
    func finish() {
        guard isShown else { return }
        Terminal.raw("\n")
    }
}
