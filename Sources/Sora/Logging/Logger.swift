import Foundation
internal import SoraLocking

/// Writes the log of the SDK and, if it wants, of the application.
///
/// A message goes first to ``onOutputHandler`` and then as one line to standard output. Both get the text with
/// secrets masked. Everything may be called from any thread, also from the handler.
public final class Logger: Sendable {
    /// A set of log types that is switched on or off as one.
    public enum Group: Sendable {
        /// Connections, signaling, data channels, streams.
        case channels
        /// The clock of attempts.
        case connectionTimer
        /// Cameras.
        case videoCapturer
        /// Renderers and views.
        case videoRenderer
        /// Kept for compatibility; nothing writes to it.
        case configurationViewController
        /// Messages of the application.
        case user

        func covers(_ type: LogType) -> Bool {
            switch (self, type) {
            case (.channels, .sora), (.channels, .webSocketChannel), (.channels, .signalingChannel),
                (.channels, .peerChannel), (.channels, .nativePeerChannel), (.channels, .mediaChannel),
                (.channels, .mediaStream), (.channels, .dataChannel), (.channels, .cameraVideoCapturer),
                (.connectionTimer, .connectionTimer), (.videoCapturer, .cameraVideoCapturer),
                (.videoRenderer, .videoRenderer), (.videoRenderer, .videoView),
                (.configurationViewController, .configurationViewController), (.user, .user):
                true
            default: false
            }
        }
    }

    /// Where lines go besides the handler.
    package enum Destination: Sendable {
        case standardOutput
        case standardError
        case none
    }

    private struct Settings {
        var handler: ((Log) -> Void)?
        var groups: [Group] = [.channels, .user]
        var level = LogLevel.info
        var destination = Destination.standardOutput
    }

    private static let sharedSlot = Locked(Logger())
    private let settings = Locked(Settings())

    init() {}

    /// The logger that the SDK uses.
    public static var shared: Logger {
        get { sharedSlot.read() }
        set { sharedSlot.write(newValue) }
    }

    /// Gets every message that is written, on the thread that logs, outside of all locks.
    public var onOutputHandler: ((Log) -> Void)? {
        get { settings.withLock { $0.handler } }
        set {
            let old = settings.withLockUnchecked { settings in
                let old = settings.handler
                settings.handler = newValue
                return old
            }
            withExtendedLifetime(old) {}
        }
    }

    /// What is written. Initially `[.channels, .user]`.
    public var groups: [Group] {
        get { settings.withLock { $0.groups } }
        set { settings.withLock { $0.groups = newValue } }
    }

    /// The least grave level that is written. Initially `.info`.
    public var level: LogLevel {
        get { settings.withLock { $0.level } }
        set { settings.withLock { $0.level = newValue } }
    }

    /// Where lines go. The `sora` command keeps standard output for results and uses standard error.
    package var destination: Destination {
        get { settings.withLock { $0.destination } }
        set { settings.withLock { $0.destination = newValue } }
    }

    /// Writes at the level ``LogLevel/fatal``.
    public static func fatal(type: LogType, message: String) { write(.fatal, type, message) }
    /// Writes at the level ``LogLevel/error``.
    public static func error(type: LogType, message: String) { write(.error, type, message) }
    /// Writes at the level ``LogLevel/warn``.
    public static func warn(type: LogType, message: String) { write(.warn, type, message) }
    /// Writes at the level ``LogLevel/info``.
    public static func info(type: LogType, message: String) { write(.info, type, message) }
    /// Writes at the level ``LogLevel/debug``.
    public static func debug(type: LogType, message: String) { write(.debug, type, message) }
    /// Writes at the level ``LogLevel/trace``.
    public static func trace(type: LogType, message: String) { write(.trace, type, message) }

    /// True if a message of this kind would be written: lets callers skip making costly texts.
    static func isEnabled(_ level: LogLevel, _ type: LogType) -> Bool { shared.isEnabled(level, type) }

    private static func write(_ level: LogLevel, _ type: LogType, _ message: String) {
        shared.output(level, type, message)
    }

    private func isEnabled(_ level: LogLevel, _ type: LogType) -> Bool {
        settings.withLock { settings in
            settings.level.severity > 0 && level.severity >= settings.level.severity && level.severity > 0
                && settings.groups.contains { $0.covers(type) }
        }
    }

    private func output(_ level: LogLevel, _ type: LogType, _ message: String) {
        guard isEnabled(level, type) else { return }
        let log = Log(level: level, type: type, timestamp: Date(), message: SecretMask.apply(to: message))
        let (handler, destination) = settings.withLock { ($0.handler, $0.destination) }
        handler?(log)
        LogOutput.write(line: log.description, to: destination)
    }
}

/// Writes whole lines, so that lines of several threads never mix.
enum LogOutput {
    static func write(line: String, to destination: Logger.Destination) {
        switch destination {
        case .none: break
        case .standardOutput: print(line)
        case .standardError:
            // A closed standard error is no reason to end the process: what cannot be written is dropped.
            let bytes = Array((line + "\n").utf8)
            bytes.withUnsafeBytes { buffer in
                var offset = 0
                while offset < buffer.count {
                    let written = Foundation.write(2, buffer.baseAddress! + offset, buffer.count - offset)
                    if written > 0 {
                        offset += written
                    } else if written < 0 && errno == EINTR {
                        continue
                    } else {
                        break
                    }
                }
            }
        }
    }
}
