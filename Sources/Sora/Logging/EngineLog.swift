import Foundation
internal import SoraLocking

/// Log lines of the engine, which have a level and a form of their own.
enum EngineLog {
    private static let threshold = Locked(RTCLoggingSeverity.none)

    static func setSeverity(_ severity: RTCLoggingSeverity) { threshold.write(severity) }

    /// Writes a line if `severity` is grave enough. The text is made only then.
    static func write(_ severity: RTCLoggingSeverity, _ message: @autoclosure () -> String) {
        guard severity != .none, severity.rawValue >= threshold.read().rawValue else { return }
        let name =
            switch severity {
            case .verbose: "VERBOSE"
            case .info: "INFO"
            case .warning: "WARNING"
            case .error, .none: "ERROR"
            }
        let text = SecretMask.apply(to: message())
        LogOutput.write(
            line: "\(LogTimestamp.text(for: Date())) libwebrtc \(name): \(text)", to: Logger.shared.destination)
    }
}
