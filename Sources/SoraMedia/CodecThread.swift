import Dispatch
import Glibc
import SoraLocking
import Synchronization

/// One of the process's threads for coding. Runs work in the order in which it is handed in.
///
/// Each encoder or decoder is an actor that has one of these as its executor. Work comes in as plain closures that
/// enter the actor by `assumeIsolated`, because tasks would lose the order of frames.
package final class CodecThread: SerialExecutor {
    private enum Work {
        case job(UnownedJob)
        case closure(@Sendable () -> Void)
    }
    private struct Queue {
        var work: [Work] = []
        var start = 0
    }
    private let queue = Locked(Queue())
    private let available = DispatchSemaphore(value: 0)
    private let identity = Atomic<UInt>(0)

    /// As many as cores, at least two, made when first asked for; they live as long as the process.
    package static let pool: [CodecThread] = {
        let cores = max(2, min(64, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN)))))
        return (0..<cores).map { _ in CodecThread() }
    }()
    private static let nextIndex = Atomic<Int>(0)

    /// The next thread in turn.
    package static func assign() -> CodecThread {
        let index = nextIndex.wrappingAdd(1, ordering: .relaxed).newValue
        return pool[((index % pool.count) + pool.count) % pool.count]
    }

    private init() {
        let me = Unmanaged.passRetained(self)
        var thread = pthread_t()
        let code = pthread_create(
            &thread, nil,
            { raw in
                guard let raw else { return nil }
                Unmanaged<CodecThread>.fromOpaque(raw).takeUnretainedValue().run()
            }, me.toOpaque())
        precondition(code == 0, "the system gives no thread for coding")
        pthread_detach(thread)
    }

    private func run() -> Never {
        identity.store(UInt(pthread_self()), ordering: .releasing)
        while true {
            available.wait()
            let work: Work? = queue.withLock { queue in
                guard queue.start < queue.work.count else { return nil }
                defer {
                    queue.start += 1
                    if queue.start == queue.work.count {
                        queue.work.removeAll(keepingCapacity: true)
                        queue.start = 0
                    }
                }
                return queue.work[queue.start]
            }
            switch work {
            case .job(let job): job.runSynchronously(on: asUnownedSerialExecutor())
            case .closure(let body): body()
            case nil: break
            }
        }
    }

    private func put(_ work: Work) {
        queue.withLock { $0.work.append(work) }
        available.signal()
    }

    package func submit(_ body: @escaping @Sendable () -> Void) { put(.closure(body)) }

    package func enqueue(_ job: consuming ExecutorJob) { put(.job(UnownedJob(job))) }

    package func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

    private var isCurrent: Bool {
        identity.load(ordering: .acquiring) == UInt(pthread_self())
    }
    package func checkIsolated() { precondition(isCurrent, "must run on its codec thread") }
    package func isIsolatingCurrentContext() -> Bool? { isCurrent }
}

/// Things that other threads leave for a loop, which is woken when the first one comes.
package final class Mailbox<Element: Sendable>: Sendable {
    private let contents = Locked<[Element]>([])
    private let wake: @Sendable () -> Void
    private let limit: Int

    /// Beyond `limit` the oldest goes: a loop that stands still must not take all memory.
    package init(limit: Int = 256, wake: @escaping @Sendable () -> Void) {
        self.limit = limit
        self.wake = wake
    }

    /// Returns false when something older was dropped for it.
    @discardableResult
    package func put(_ element: Element) -> Bool {
        let (isFirst, isFull) = contents.withLock { contents in
            let isFull = contents.count >= limit
            if isFull { contents.removeFirst() }
            contents.append(element)
            return (contents.count == 1, isFull)
        }
        if isFirst { wake() }
        return !isFull
    }

    package func takeAll() -> [Element] {
        contents.withLock { contents in
            defer { contents = [] }
            return contents
        }
    }
}
