import CLinux
import Glibc
import SoraLocking
import SoraWire

/// One thread that waits for sockets and timers with epoll and runs everything that belongs to it:
/// socket handlers, timer handlers, closures from other threads, and the jobs of actors whose
/// executor it is.
///
/// **Ownership.** Sockets, timers and streams are plain classes without locks, confined to the loop
/// they were made on. Their handlers are plain closures that the loop calls. The intended owner is an
/// actor pinned to the loop, so that the compiler keeps everything of a connection on one thread:
///
/// ```swift
/// actor Driver {
///     nonisolated let loop: EventLoop
///     nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
///     private var socket: UDPSocket?
///     func open() throws {
///         let socket = try UDPSocket(on: loop, id: SocketID(0), address: …)
///         socket.onDatagrams = { [weak self] batch in
///             self?.assumeIsolated { $0.receive(batch) }   // no hop: the loop is the actor's executor
///         }
///         self.socket = socket
///     }
/// }
/// ```
///
/// **A turn** is: wait; handle ready sockets; run timers that are due; run queued jobs and closures
/// under a budget, so that application code cannot starve sockets; then let sockets write what was
/// queued during the turn. Data written within one turn leaves in as few system calls as possible.
///
/// **End.** The thread keeps the loop alive until ``stop()``. Stopping runs what is queued, closes all
/// sockets without further callbacks, drops all timers and ends the thread. Actor jobs that are enqueued
/// later still run, one at a time, on the thread that enqueues them: no task is left hanging.
// Unchecked: `shared` and `thread` are locked, the constants are immutable, and every other stored property is
// touched only by the thread that runs the loop (`assertOnLoop`), or, once that thread has ended, by
// the one thread that holds `shared.isDraining`.
package final class EventLoop: SerialExecutor, @unchecked Sendable {
    private enum Work {
        case job(UnownedJob)
        case closure(@Sendable () -> Void)
    }

    private enum Phase { case running, stopping, stopped }

    private struct Shared {
        var queue: [Work] = []
        var phase = Phase.running
        /// The loop is in, or about to enter, epoll_wait with nothing to do: a wake-up is needed.
        var isSleeping = false
        /// After the end: some thread is running the queue.
        var isDraining = false
    }

    /// For logs and thread lists; the thread's name keeps the first 15 bytes.
    package let name: String
    private let epoll: Int32
    private let wakeUp: Int32
    private let shared = Locked(Shared())
    private let thread = Locked<pthread_t?>(nil)

    // Loop-confined.
    private var sources: [Int32: (generation: UInt32, source: any LoopSource)] = [:]
    private var generation: UInt32 = 0
    private var layers: [ObjectIdentifier: any LoopLayer] = [:]
    private var timers = TimerHeap()
    private var batch: [Work] = []
    private var batchIndex = 0
    private var flushes: [any TurnFlushing] = []
    private var turnTime: Instant = .zero
    /// Results of name resolution find their way back by number; see ``Resolver``.
    var resolutions: [UInt64: Resolution] = [:]
    var nextResolution: UInt64 = 0
    /// Where sockets read into and write from; see ``LoopBuffers``.
    let buffers = LoopBuffers()

    /// Jobs and closures that run before sockets get their turn again.
    private static let jobsPerTurn = 512

    /// Makes a loop and starts its thread.
    /// - Parameter cpu: Pins the thread to this CPU; nil leaves it to the kernel.
    package init(name: String = "sora-loop", cpu: Int? = nil) throws(NetworkError) {
        self.name = name
        epoll = try system("epoll_create1", clinux_epoll_create())
        do throws(NetworkError) {
            wakeUp = try system("eventfd", clinux_eventfd())
        } catch {
            _ = clinux_close(epoll)
            throw error
        }
        try start(cpu: cpu)
    }

    private func start(cpu: Int?) throws(NetworkError) {
        try system("epoll_ctl", clinux_epoll_add(epoll, wakeUp, UInt32(CLINUX_READABLE), UInt64.max))
        let handle = try Thread.start(name: name) {
            if let cpu { _ = clinux_pin_to_cpu(Int32(clamping: cpu)) }
            self.run()
        }
        thread.withLock { $0 = handle }
    }

    deinit {
        // The thread holds the loop, so it has ended by now; nobody can wake or poll any more.
        _ = clinux_close(wakeUp)
        _ = clinux_close(epoll)
        // Stopped from its own thread: nobody waited for it.
        if let handle = thread.withLock({ $0 }) { pthread_detach(handle) }
    }

    // MARK: Where am I

    /// Whether the caller runs on this loop.
    package var isOnLoop: Bool { clinux_current_loop() == identity }

    private var identity: UnsafeRawPointer { UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque()) }

    /// Traps, in debug and release, unless the caller is on the loop. A programming error of ours, never
    /// caused by what a peer sends.
    package func assertOnLoop(_ file: StaticString = #fileID, line: UInt = #line) {
        precondition(isOnLoop, "must run on event loop \(name)", file: file, line: line)
    }

    /// The time. On the loop: when the current stage of the turn began (reading it costs nothing and all
    /// of a batch agree); elsewhere the clock.
    package var now: Instant { isOnLoop ? turnTime : EventLoop.clock() }

    /// CLOCK_MONOTONIC.
    package static func clock() -> Instant { Instant(nanoseconds: clinux_monotonic_ns()) }

    // MARK: Executor

    package func enqueue(_ job: consuming ExecutorJob) {
        // The runtime names its executor without holding it: the job may let go of the actor that owns this loop,
        // and the loop with it, before this call is over.
        let held = Unmanaged.passRetained(self)
        defer { held.release() }
        submit(.job(UnownedJob(job)))
    }

    package func asUnownedSerialExecutor() -> UnownedSerialExecutor { UnownedSerialExecutor(ordinary: self) }

    package func checkIsolated() { assertOnLoop() }

    package func isIsolatingCurrentContext() -> Bool? { isOnLoop }

    /// Runs `body` on the loop, after what was submitted earlier. From any thread, also from the loop
    /// itself (then in this turn or the next). After ``stop()`` it is dropped.
    package func execute(_ body: @escaping @Sendable () -> Void) { submit(.closure(body)) }

    private func submit(_ work: Work) {
        let (wakes, drains) = shared.withLock { shared -> (Bool, Bool) in
            if shared.phase == .stopped {
                guard case .job = work else { return (false, false) }
                shared.queue.append(work)
                defer { shared.isDraining = true }
                return (false, !shared.isDraining)
            }
            shared.queue.append(work)
            let sleeping = shared.isSleeping
            shared.isSleeping = false
            return (sleeping, false)
        }
        if wakes { _ = clinux_eventfd_signal(wakeUp) }
        if drains { drainAfterEnd() }
    }

    private func perform(_ work: Work) {
        switch work {
        case .job(let job): job.runSynchronously(on: asUnownedSerialExecutor())
        case .closure(let body): body()
        }
    }

    /// Runs jobs that came after the end, as the only thread to do so.
    private func drainAfterEnd() {
        let previous = clinux_current_loop()
        clinux_set_current_loop(identity)
        defer { clinux_set_current_loop(previous) }
        while true {
            let work = shared.withLock { shared -> [Work] in
                defer { shared.queue = [] }
                if shared.queue.isEmpty { shared.isDraining = false }
                return shared.queue
            }
            if work.isEmpty { return }
            turnTime = EventLoop.clock()
            for item in work { perform(item) }
            closeEverything()  // a late job may have opened something
        }
    }

    // MARK: Timers

    /// Calls `handler` once, on the loop, at `deadline` or soon after. The loop keeps the timer until
    /// then; ``LoopTimer/cancel()`` lets go of it.
    @discardableResult
    package func scheduleTimer(at deadline: Instant, _ handler: @escaping () -> Void) -> LoopTimer {
        let timer = LoopTimer(on: self, handler)
        timer.schedule(at: deadline)
        return timer
    }

    func schedule(_ timer: LoopTimer, at deadline: Instant) {
        assertOnLoop()
        timers.set(timer, at: deadline)
    }

    func unschedule(_ timer: LoopTimer) {
        assertOnLoop()
        timers.remove(timer)
    }

    /// How many timers are waiting; for tests of cleanliness.
    package var pendingTimerCount: Int {
        assertOnLoop()
        return timers.count
    }

    // MARK: Sockets

    /// Watches a descriptor. The loop keeps `source` until ``unregister(_:)``.
    func register(_ descriptor: Int32, _ source: any LoopSource, events: LoopEvents) throws(NetworkError) {
        assertOnLoop()
        generation &+= 1
        let data = UInt64(generation) << 32 | UInt64(UInt32(bitPattern: descriptor))
        try system("epoll_ctl", clinux_epoll_add(epoll, descriptor, events.rawValue, data))
        sources[descriptor] = (generation, source)
    }

    func update(_ descriptor: Int32, events: LoopEvents) {
        assertOnLoop()
        guard let entry = sources[descriptor] else { return }
        let data = UInt64(entry.generation) << 32 | UInt64(UInt32(bitPattern: descriptor))
        _ = clinux_epoll_modify(epoll, descriptor, events.rawValue, data)
    }

    /// To be called before the descriptor is closed.
    func unregister(_ descriptor: Int32) {
        assertOnLoop()
        guard sources.removeValue(forKey: descriptor) != nil else { return }
        _ = clinux_epoll_remove(epoll, descriptor)
    }

    /// Keeps an object without a descriptor of its own until ``removeLayer(_:)``, and tells it when the loop
    /// stops.
    func addLayer(_ layer: any LoopLayer) {
        assertOnLoop()
        layers[ObjectIdentifier(layer)] = layer
    }

    func removeLayer(_ layer: any LoopLayer) { layers[ObjectIdentifier(layer)] = nil }

    /// How many descriptors are watched; for tests of cleanliness.
    package var sourceCount: Int {
        assertOnLoop()
        return sources.count
    }

    /// Calls `object.flush()` once at the end of this turn.
    func flushAtEndOfTurn(_ object: any TurnFlushing) {
        assertOnLoop()
        flushes.append(object)
    }

    // MARK: Running

    private func run() {
        clinux_set_current_loop(identity)
        var events = [clinux_event](repeating: clinux_event(), count: 128)
        while true {
            turnTime = EventLoop.clock()
            let count = wait(&events)
            if shared.withLock({ $0.phase != .running }) { break }
            turnTime = EventLoop.clock()
            for index in 0..<max(0, count) { dispatch(events[index]) }
            runDueTimers()
            runJobs()
            flushTurn()
        }
        finish()
        clinux_set_current_loop(nil)
    }

    private func wait(_ events: inout [clinux_event]) -> Int {
        var timeout: Int64 = 0
        if batchIndex == batch.count {
            timeout = timers.nextDeadline.map { max(0, ($0 - turnTime).wholeNanoseconds) } ?? -1
        }
        if timeout != 0 {
            let hasWork = shared.withLock { shared in
                let hasWork = !shared.queue.isEmpty || shared.phase != .running
                shared.isSleeping = !hasWork
                return hasWork
            }
            if hasWork { timeout = 0 }
        }
        let count = events.withUnsafeMutableBufferPointer { buffer in
            clinux_epoll_wait(epoll, buffer.baseAddress, Int32(clamping: buffer.count), timeout)
        }
        if timeout != 0 { shared.withLock { $0.isSleeping = false } }
        return Int(count)
    }

    private func dispatch(_ event: clinux_event) {
        if event.data == UInt64.max {
            _ = clinux_eventfd_drain(wakeUp)
            return
        }
        let descriptor = Int32(truncatingIfNeeded: event.data)
        // Closed earlier in this turn, or its number given to a new socket: the event is stale.
        guard let entry = sources[descriptor], entry.generation == UInt32(event.data >> 32) else { return }
        entry.source.handle(LoopEvents(rawValue: event.events))
    }

    private func runDueTimers() {
        turnTime = EventLoop.clock()
        // Timers that are set for now by these handlers wait for the next turn.
        let limit = turnTime
        let mark = timers.sequence
        while let timer = timers.popDue(at: limit, setBefore: mark) { timer.fire() }
    }

    private func runJobs() {
        turnTime = EventLoop.clock()
        var budget = EventLoop.jobsPerTurn
        while budget > 0 {
            if batchIndex == batch.count {
                batch.removeAll(keepingCapacity: batch.capacity <= 4096)
                batchIndex = 0
                shared.withLock { swap(&$0.queue, &batch) }
                if batch.isEmpty { return }
            }
            let work = batch[batchIndex]
            batchIndex += 1
            budget -= 1
            perform(work)
        }
        if batchIndex == batch.count {
            batch.removeAll(keepingCapacity: true)
            batchIndex = 0
        }
    }

    private func flushTurn() {
        while !flushes.isEmpty {
            var current: [any TurnFlushing] = []
            swap(&current, &flushes)
            for object in current { object.flush() }
        }
    }

    // MARK: Stopping

    /// Runs what is queued, closes all sockets without further callbacks, drops all timers, ends the
    /// thread and waits for it. Repeated calls do nothing. Called on the loop itself it does not wait:
    /// the thread ends after the current turn.
    package func stop() {
        shared.withLock { shared in
            if shared.phase == .running { shared.phase = .stopping }
        }
        _ = clinux_eventfd_signal(wakeUp)
        if isOnLoop { return }
        let handle = thread.withLock { handle -> pthread_t? in
            defer { handle = nil }
            return handle
        }
        if let handle { pthread_join(handle, nil) }
    }

    private func finish() {
        // What was submitted before the stop still runs, and what that submits, with a bound for work
        // that submits itself for ever (the rest runs as late jobs do).
        for _ in 0..<1000 {
            runJobs()
            if batchIndex == batch.count, shared.withLock({ $0.queue.isEmpty }) { break }
        }
        flushTurn()
        closeEverything()
        let leftover = Array(batch[batchIndex...])
        batch = []
        batchIndex = 0
        let drains = shared.withLock { shared -> Bool in
            shared.phase = .stopped
            // Closures are for a running loop; jobs belong to tasks that must end.
            shared.queue = (leftover + shared.queue).filter { if case .job = $0 { true } else { false } }
            shared.isDraining = !shared.queue.isEmpty
            return shared.isDraining
        }
        if drains { drainAfterEnd() }
    }

    private func closeEverything() {
        while let layer = layers.popFirst()?.value { layer.loopStops() }
        while let source = sources.first?.value.source { source.loopStops() }
        timers.removeAll()
        flushes.removeAll()
        resolutions.removeAll()
    }
}

/// Something with a descriptor that a loop watches.
protocol LoopSource: AnyObject {
    func handle(_ events: LoopEvents)
    /// Must unregister and close the descriptor, and call no handler.
    func loopStops()
}

/// Something on top of a source, with handlers to let go of.
protocol LoopLayer: AnyObject {
    /// Must close, and call no handler.
    func loopStops()
}

/// Something that collects output during a turn.
protocol TurnFlushing: AnyObject {
    func flush()
}

/// What a descriptor is watched for, and what it is ready for. Errors and hang-ups are always reported.
struct LoopEvents: OptionSet {
    var rawValue: UInt32
    static let readable = LoopEvents(rawValue: UInt32(CLINUX_READABLE))
    static let writable = LoopEvents(rawValue: UInt32(CLINUX_WRITABLE))
    static let hangUp = LoopEvents(rawValue: UInt32(CLINUX_HANGUP))
    static let error = LoopEvents(rawValue: UInt32(CLINUX_ERROR))
    static let readHangUp = LoopEvents(rawValue: UInt32(CLINUX_READ_HANGUP))
}
