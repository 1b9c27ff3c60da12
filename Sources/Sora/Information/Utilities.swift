import Foundation
internal import SoraLocking

/// Small things that applications use.
public enum Utilities {
    private static let letters = Array("abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ0123456789")

    /// A random text of letters and digits without `l`, `I` and `O`. A negative length counts as 0.
    public static func randomString(length: Int = 8) -> String {
        var generator = SystemRandomNumberGenerator()
        var text = ""
        for _ in 0..<max(0, length) {
            text.append(letters[Int.random(in: 0..<letters.count, using: &generator)])
        }
        return text
    }

    /// Calls a handler each second with the time that passed, as `hh:mm:ss`.
    @available(*, deprecated, message: "use a timer of your own")
    public final class Stopwatch {
        private final class Ticks: Sendable {
            let count = Locked(0)
        }
        private let handler: (String) -> Void
        private let timer = Locked<(any DispatchSourceTimer)?>(nil)

        public init(handler: @escaping (String) -> Void) { self.handler = handler }
        deinit { timer.read()?.cancel() }

        /// Starts from zero; the handler is called at once and then each second.
        public func run() {
            stop()
            let timer = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "sora.stopwatch"))
            let ticks = Ticks()
            let handler = Transfer(handler)
            timer.setEventHandler {
                let seconds = ticks.count.withLock { count in
                    defer { count += 1 }
                    return count
                }
                handler.value(Utilities.clockText(seconds: seconds))
            }
            timer.schedule(deadline: .now(), repeating: .seconds(1))
            self.timer.write(timer)
            timer.resume()
        }

        public func stop() {
            timer.exchange(nil)?.cancel()
        }
    }

    /// `hh:mm:ss`
    static func clockText(seconds: Int) -> String {
        func two(_ value: Int) -> String { value < 10 ? "0\(value)" : String(value) }
        return "\(two(seconds / 3600)):\(two(seconds / 60 % 60)):\(two(seconds % 60))"
    }
}
