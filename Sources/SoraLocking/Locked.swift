#if !ThreadSanitizer
public import Synchronization
#endif

/// A value behind a lock: the one lock of this package. A reference: whoever has it shares the value.
///
/// Invariant: the value is touched only while the lock is held, for the time of one short closure. The closure
/// calls no code of the application and takes no lock that another thread may hold while it wants this one.
///
/// It stands on `Synchronization.Mutex`, except in a build for the thread sanitizer
/// (`SORA_SANITIZER=thread`, which `scripts/test.sh deep` sets for Package.swift). There it is a pthread mutex: the
/// sanitizer does not see a contended `Mutex`, because the kernel hands a priority-inheriting futex over, and would
/// report every value behind one as a race.
///
/// Sans-IO modules have one owner and need no lock; `ArchitectureTests` keeps them from importing this module.
// `public`, because only public code is inlined and specialized in other modules; no product exports the module.
public final class Locked<Value: ~Copyable>: Sendable {
    @usableFromInline let storage: LockStorage<Unchecked<Value>>

    @inlinable
    public init(_ value: consuming sending Value) { storage = LockStorage(Unchecked(value)) }

    /// For a value that may be used from any thread though the compiler cannot see it; see ``withLockUnchecked(_:)``.
    @inlinable
    public init(unchecked value: consuming Value) { storage = LockStorage(Unchecked(value)) }

    /// Runs `body` with exclusive access. As with `Mutex`, the compiler proves that nothing which is not Sendable
    /// stays shared between the value and the outside.
    @inlinable
    public func withLock<Result, Failure>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        try storage.withLock { content throws(Failure) in Unchecked(try body(&content.value)) }.value
    }

    /// Runs `body` with exclusive access, and leaves it to the caller to prove that what goes in or comes out may be
    /// used from any thread. For handlers of the application, which by the contract of the API are called from any
    /// thread although their types do not say so, and for objects of the API that guard their own state but are
    /// declared non-Sendable.
    @inlinable
    public func withLockUnchecked<Result, Failure>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try storage.withLock { content throws(Failure) in Unchecked(try body(&content.value)) }.value
    }
}

extension Locked {
    /// A copy of the value; unchecked as in ``withLockUnchecked(_:)``.
    @inlinable
    public func read() -> Value { withLockUnchecked { $0 } }

    /// Replaces the value and returns the old one, so that its destruction, which may run code of the application,
    /// happens after the lock was released; unchecked as in ``withLockUnchecked(_:)``.
    @inlinable
    @discardableResult
    public func exchange(_ newValue: Value) -> Value {
        withLockUnchecked { value in
            let old = value
            value = newValue
            return old
        }
    }

    /// Replaces the value; the old one is destroyed after the lock was released. Unchecked as in
    /// ``withLockUnchecked(_:)``.
    @inlinable
    public func write(_ newValue: Value) {
        let old = exchange(newValue)
        withExtendedLifetime(old) {}
    }
}
