import Foundation

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
        private struct State {
            var timer: (any DispatchSourceTimer)?
            var seconds = 0
        }
        private let handler: (String) -> Void
        private let state = Locked(State())

        public init(handler: @escaping (String) -> Void) { self.handler = handler }
        deinit { state.read().timer?.cancel() }

        /// Starts from zero; the handler is called at once and then each second.
        public func run() {
            stop()
            let timer = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "sora.stopwatch"))
            let state = state
            let handler = Transfer(handler)
            timer.setEventHandler {
                let seconds = state.withLock { state in
                    defer { state.seconds += 1 }
                    return state.seconds
                }
                handler.value(Utilities.clockText(seconds: seconds))
            }
            timer.schedule(deadline: .now(), repeating: .seconds(1))
            state.withLock {
                $0.seconds = 0
                $0.timer = timer
            }
            timer.resume()
        }

        public func stop() {
            let timer = state.withLock { state in
                defer { state.timer = nil }
                return state.timer
            }
            timer?.cancel()
        }
    }

    /// `hh:mm:ss`
    static func clockText(seconds: Int) -> String {
        func two(_ value: Int) -> String { value < 10 ? "0\(value)" : String(value) }
        return "\(two(seconds / 3600)):\(two(seconds / 60 % 60)):\(two(seconds % 60))"
    }
}
