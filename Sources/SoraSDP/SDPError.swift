/// Why a session description was refused. The text names the line, so that a log entry is enough to
/// find the fault.
package enum SDPError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Line `line` (counted from 1) breaks the grammar: it reads `text` (cut to 200 bytes), and
    /// `expected` says what should stand there.
    case syntax(line: Int, text: String, expected: String)
    /// A line that RFC 8866 demands is not there.
    case missing(line: String)
    /// Two sections carry one identification tag.
    case duplicateMid(String, line: Int)
    /// More of `what` than ``SDPLimits`` allows.
    case limitExceeded(what: String, limit: Int, line: Int)

    package var description: String {
        switch self {
        case .syntax(let line, let text, let expected):
            "SDP line \(line) is malformed: \"\(text)\"; expected \(expected)"
        case .missing(let line):
            "SDP lacks its mandatory line \"\(line)\""
        case .duplicateMid(let mid, let line):
            "SDP line \(line) repeats the mid \"\(mid)\" of an earlier section; mids must be unique"
        case .limitExceeded(let what, let limit, let line):
            "SDP line \(line) exceeds the limit of \(limit) \(what)"
        }
    }
}

/// Bounds of what the parser accepts, far above real use. Beyond them parsing ends with
/// ``SDPError/limitExceeded(what:limit:line:)`` before memory is spent.
package enum SDPLimits {
    /// Bytes of a whole description.
    package static let size = 4 << 20
    /// Bytes of one line, without its line end.
    package static let lineLength = 1 << 16
    /// Media sections.
    package static let sections = 2_048
    /// Candidates of one section.
    package static let candidates = 512
    /// Wildcard feedback lines (`a=rtcp-fb:*`) of one section: each is copied to every codec.
    package static let wildcardFeedback = 64
    /// Header extensions of one section or of the session.
    package static let headerExtensions = 255
}
