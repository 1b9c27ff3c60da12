import Glibc

/// A value behind a pthread mutex.
///
/// Elsewhere `Synchronization.Mutex` is the better choice: it is faster. But the thread sanitizer does not
/// see it when it is contended (the kernel then hands the lock over), and everything that crosses to an
/// event loop crosses its queue: with `Mutex` there, the sanitizer reports races that are none in all code
/// that runs on loops.
// Unchecked: `value` is touched only between lock and unlock.
final class Locked<Value>: @unchecked Sendable {
    private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private var value: Value

    init(_ value: sending Value) {
        self.value = value
        mutex.initialize(to: pthread_mutex_t())
        pthread_mutex_init(mutex, nil)
    }

    deinit {
        pthread_mutex_destroy(mutex)
        mutex.deinitialize(count: 1)
        mutex.deallocate()
    }

    func withLock<Result>(_ body: (inout Value) -> Result) -> Result {
        pthread_mutex_lock(mutex)
        defer { pthread_mutex_unlock(mutex) }
        return body(&value)
    }
}
