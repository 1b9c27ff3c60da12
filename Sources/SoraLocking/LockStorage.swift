#if ThreadSanitizer
import Glibc

/// What `Locked` stands on in a build for the thread sanitizer: the shape of `Synchronization.Mutex` on pthread's.
// `@unchecked Sendable`: both pointers are `let`s, made and freed once by their only owner (the type is not copyable);
// `mutex` is made for use from any thread, and `value` is touched only between its lock and unlock.
@usableFromInline
struct LockStorage<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let value = UnsafeMutablePointer<Value>.allocate(capacity: 1)

    @usableFromInline
    init(_ value: consuming sending Value) {
        mutex.initialize(to: pthread_mutex_t())
        pthread_mutex_init(mutex, nil)
        self.value.initialize(to: value)
    }

    deinit {
        value.deinitialize(count: 1)
        value.deallocate()
        pthread_mutex_destroy(mutex)
        mutex.deallocate()
    }

    @usableFromInline
    func withLock<Result, Failure>(
        _ body: (inout sending Value) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return try body(&value.pointee)
    }
}
#else
public import Synchronization

/// What `Locked` stands on.
@usableFromInline
typealias LockStorage = Mutex
#endif

/// What stands behind a lock, for the compiler: `Locked` looks after what it is not told.
// `@unchecked Sendable`: inside a lock the value is reached by one thread at a time. On the way out of `withLock` the
// compiler has proved the value free of ties (`sending`); on the way out of `withLockUnchecked` its caller has.
@usableFromInline
struct Unchecked<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
    @usableFromInline var value: Value

    @inlinable
    init(_ value: consuming Value) { self.value = value }
}

extension Unchecked: Copyable where Value: Copyable {}
