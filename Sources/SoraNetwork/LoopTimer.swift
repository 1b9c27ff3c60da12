import SoraWire

/// A timer of an event loop. It can be set, moved and cancelled any number of times; each setting fires
/// at most once. Confined to its loop.
///
/// The loop keeps a timer that is set, and the timer keeps its handler: a handler that refers to the
/// timer's owner should do so weakly, or the owner cancels the timer when it ends.
package final class LoopTimer {
    private unowned let loop: EventLoop
    /// Nil once the loop has stopped while the timer was set: it will never fire.
    fileprivate var handler: (() -> Void)?
    /// When it fires; nil while it is not set.
    package fileprivate(set) var deadline: Instant?
    fileprivate var order: UInt64 = 0
    fileprivate var heapIndex = -1

    /// A timer that is not set yet. `handler` is called on the loop.
    package init(on loop: EventLoop, _ handler: @escaping () -> Void) {
        self.loop = loop
        self.handler = handler
    }

    /// Sets or moves the timer; nil cancels it. `Instant.distantFuture` means never.
    /// A deadline in the past fires in the next turn.
    package func schedule(at deadline: Instant?) {
        guard let deadline, deadline != .distantFuture else { return cancel() }
        if deadline == self.deadline { return }
        loop.schedule(self, at: deadline)
    }

    package func cancel() {
        guard deadline != nil else { return }
        loop.unschedule(self)
    }

    func fire() { handler?() }
}

/// A binary heap of timers by deadline, then by the order in which they were set. Each timer knows its
/// place, so moving and cancelling cost O(log n) and leave nothing behind.
struct TimerHeap {
    private var heap: [LoopTimer] = []
    /// Grows with each setting.
    private(set) var sequence: UInt64 = 0

    var count: Int { heap.count }
    var nextDeadline: Instant? { heap.first?.deadline }

    mutating func set(_ timer: LoopTimer, at deadline: Instant) {
        sequence += 1
        timer.deadline = deadline
        timer.order = sequence
        if timer.heapIndex < 0 {
            timer.heapIndex = heap.count
            heap.append(timer)
        }
        siftUp(timer.heapIndex)
        siftDown(timer.heapIndex)
    }

    mutating func remove(_ timer: LoopTimer) {
        let index = timer.heapIndex
        guard index >= 0 else { return }
        swapAt(index, heap.count - 1)
        heap.removeLast()
        forget(timer)
        if index < heap.count {
            siftUp(index)
            siftDown(index)
        }
    }

    /// Takes the first timer due at `limit`, if it was set at or before sequence `mark`.
    mutating func popDue(at limit: Instant, setBefore mark: UInt64) -> LoopTimer? {
        guard let first = heap.first, let deadline = first.deadline, deadline <= limit, first.order <= mark
        else { return nil }
        remove(first)
        return first
    }

    mutating func removeAll() {
        let timers = heap
        heap.removeAll()
        for timer in timers {
            forget(timer)
            timer.handler = nil  // what it refers to may refer back to the timer
        }
    }

    private func forget(_ timer: LoopTimer) {
        timer.heapIndex = -1
        timer.deadline = nil
    }

    private func isBefore(_ a: LoopTimer, _ b: LoopTimer) -> Bool {
        // Timers in the heap always have a deadline.
        let (left, right) = (a.deadline ?? .distantFuture, b.deadline ?? .distantFuture)
        return left != right ? left < right : a.order < b.order
    }

    private mutating func swapAt(_ i: Int, _ j: Int) {
        heap.swapAt(i, j)
        heap[i].heapIndex = i
        heap[j].heapIndex = j
    }

    private mutating func siftUp(_ start: Int) {
        var index = start
        while index > 0 {
            let parent = (index - 1) / 2
            guard isBefore(heap[index], heap[parent]) else { return }
            swapAt(index, parent)
            index = parent
        }
    }

    private mutating func siftDown(_ start: Int) {
        var index = start
        while true {
            var least = index
            for child in [2 * index + 1, 2 * index + 2] where child < heap.count && isBefore(heap[child], heap[least]) {
                least = child
            }
            guard least != index else { return }
            swapAt(index, least)
            index = least
        }
    }
}
