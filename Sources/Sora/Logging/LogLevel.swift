/// How grave a log message is; as ``Logger/level`` the least grave that is still written.
public enum LogLevel: Sendable, CustomStringConvertible {
    /// The process cannot go on.
    case fatal
    /// Something failed.
    case error
    /// Something is not as it should be, and goes on.
    case warn
    /// What a user of the application may want to know.
    case info
    /// What a developer of the application may want to know.
    case debug
    /// Everything.
    case trace
    /// Writes nothing.
    case off

    public var description: String {
        switch self {
        case .fatal: "FATAL"
        case .error: "ERROR"
        case .warn: "WARN"
        case .info: "INFO"
        case .debug: "DEBUG"
        case .trace: "TRACE"
        case .off: "OFF"
        }
    }

    /// Higher is graver.
    var severity: Int {
        switch self {
        case .fatal: 6
        case .error: 5
        case .warn: 4
        case .info: 3
        case .debug: 2
        case .trace: 1
        case .off: 0
        }
    }
}
