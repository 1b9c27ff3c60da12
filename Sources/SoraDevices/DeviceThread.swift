import Glibc
import SoraLocking

/// A thread for work that blocks: waiting for a bus, for the next frame's time, for a device.
///
/// It runs `body` once. `join` waits until that is done; called on the thread itself it returns at once.
package final class DeviceThread: Sendable {
    private enum Phase { case running(pthread_t), joining, joined }
    private let phase: Locked<Phase>

    /// Nil when the system gives no thread.
    package init?(_ body: @escaping @Sendable () -> Void) {
        let box = Unmanaged.passRetained(Body(run: body))
        var thread = pthread_t()
        let code = pthread_create(
            &thread, nil,
            { raw in
                guard let raw else { return nil }
                let body = Unmanaged<Body>.fromOpaque(raw).takeRetainedValue()
                body.run()
                return nil
            }, box.toOpaque())
        guard code == 0 else {
            box.release()
            return nil
        }
        phase = Locked(.running(thread))
    }

    deinit {
        if case .running(let thread) = phase.withLock({ $0 }) { pthread_detach(thread) }
    }

    /// Whether the caller runs on this thread.
    package var isCurrent: Bool {
        guard case .running(let thread) = phase.withLock({ $0 }) else { return false }
        return pthread_equal(thread, pthread_self()) != 0
    }

    package func join() {
        if isCurrent { return }
        let thread: pthread_t? = phase.withLock { phase in
            guard case .running(let thread) = phase else { return nil }
            phase = .joining
            return thread
        }
        if let thread {
            pthread_join(thread, nil)
            phase.withLock { $0 = .joined }
            return
        }
        // Someone else joins; wait until they are done.
        while true {
            if case .joined = phase.withLock({ $0 }) { return }
            usleep(1_000)
        }
    }

    private final class Body: Sendable {
        let run: @Sendable () -> Void
        init(run: @escaping @Sendable () -> Void) { self.run = run }
    }
}

/// The system's monotonic clock, which GStreamer's pipelines use too.
package enum MonotonicClock {
    /// Nanoseconds since boot.
    package static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }

    /// Returns at that time, or at once if it is past.
    package static func sleep(until nanoseconds: Int64) {
        guard nanoseconds > 0 else { return }
        var time = timespec(
            tv_sec: Int(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
        while clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nil) == EINTR {}
    }
}
