import Foundation

/// One log message, with secrets already masked.
public struct Log: Sendable, CustomStringConvertible {
    /// How serious it is.
    public let level: LogLevel
    /// Which part of the SDK says it.
    public let type: LogType
    /// When it was said.
    public let timestamp: Date
    /// The text, with secrets masked.
    public let message: String

    /// `yyyy-MM-dd HH:mm:ss TYPE LEVEL: MESSAGE` in local time.
    public var description: String {
        "\(LogTimestamp.text(for: timestamp)) \(type.description) \(level.description): \(message)"
    }
}

/// Local time for log lines, without a formatter object that would have to be shared between threads.
enum LogTimestamp {
    static func text(for date: Date) -> String {
        var seconds = time_t(date.timeIntervalSince1970.rounded(.down))
        var parts = tm()
        guard localtime_r(&seconds, &parts) != nil else { return "" }
        func padded(_ value: Int32, _ width: Int) -> String {
            let text = String(value)
            return String(repeating: "0", count: max(0, width - text.count)) + text
        }
        return padded(parts.tm_year + 1900, 4) + "-" + padded(parts.tm_mon + 1, 2) + "-" + padded(parts.tm_mday, 2)
            + " " + padded(parts.tm_hour, 2) + ":" + padded(parts.tm_min, 2) + ":" + padded(parts.tm_sec, 2)
    }
}
