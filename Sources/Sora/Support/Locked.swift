import Foundation

/// One value behind one lock.
///
/// Invariant: the value is touched only while the lock is held, for the time of one short closure that calls
/// no code of the application.
///
/// `@unchecked Sendable`: the lock is the proof for the storage. What a caller takes out by ``read()`` may itself
/// be non-Sendable (handler closures of the application are, by the API's contract): the promise of the public API
/// is that such values may be called from any thread, and the application is told so.
final class Locked<Value>: @unchecked Sendable {
    private let lock = NSLock()
    private var value: Value

    init(_ value: Value) { self.value = value }

    /// Runs `body` with exclusive access.
    func withLock<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
        lock.lock()
        defer { lock.unlock() }
        return try body(&value)
    }

    /// A copy of the value.
    func read() -> Value { withLock { $0 } }

    /// Replaces the value and returns the old one, so that its destruction, which may run code of the application,
    /// happens after the lock was released.
    @discardableResult
    func exchange(_ newValue: Value) -> Value {
        withLock { value in
            let old = value
            value = newValue
            return old
        }
    }

    /// Replaces the value; the old one is destroyed after the lock was released.
    func write(_ newValue: Value) {
        let old = exchange(newValue)
        withExtendedLifetime(old) {}
    }
}

/// Carries a value that the compiler cannot prove safe to a place where it is used under the SDK's own rules.
///
/// `@unchecked Sendable`: used only for (a) handler closures and completion closures of the application, which
/// by the contract of the API run on any thread, and (b) objects of this module whose state is lock protected but
/// which the API declares non-Sendable (`MediaChannel`, `MediaStream`).
struct Transfer<Value>: @unchecked Sendable {
    let value: Value
    init(_ value: Value) { self.value = value }
}
