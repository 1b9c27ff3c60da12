import SoraWire

/// Deadlines of many members, earliest first: a binary heap in which each member knows its place, so
/// that a deadline can be moved either way in logarithmic time.
struct TimeoutQueue {
    private var heap: [Member] = []

    var earliest: Instant? { heap.first?.scheduledAt }

    /// Looks at the member at `due`, and not before; `.distantFuture` takes it out.
    mutating func schedule(_ member: Member, at due: Instant) {
        guard due != .distantFuture else { return remove(member) }
        if let place = member.timeoutIndex {
            guard due != member.scheduledAt else { return }
            member.scheduledAt = due
            settle(place)
        } else {
            member.scheduledAt = due
            heap.append(member)
            member.timeoutIndex = heap.count - 1
            rise(heap.count - 1)
        }
    }

    mutating func remove(_ member: Member) {
        member.scheduledAt = .distantFuture
        guard let place = member.timeoutIndex, heap.indices.contains(place) else { return }
        member.timeoutIndex = nil
        let last = heap.removeLast()
        guard last !== member else { return }
        heap[place] = last
        last.timeoutIndex = place
        settle(place)
    }

    /// A member whose time has come. It is out of the queue until it is scheduled again.
    mutating func pop(now: Instant) -> Member? {
        guard let first = heap.first, first.scheduledAt <= now else { return nil }
        remove(first)
        return first
    }

    private mutating func settle(_ place: Int) {
        rise(place)
        sink(place)
    }

    private mutating func rise(_ place: Int) {
        var child = place
        while child > 0 {
            let parent = (child - 1) / 2
            guard heap[child].scheduledAt < heap[parent].scheduledAt else { return }
            exchange(child, parent)
            child = parent
        }
    }

    private mutating func sink(_ place: Int) {
        var parent = place
        while true {
            var least = parent
            for child in [2 * parent + 1, 2 * parent + 2]
            where child < heap.count && heap[child].scheduledAt < heap[least].scheduledAt { least = child }
            guard least != parent else { return }
            exchange(parent, least)
            parent = least
        }
    }

    private mutating func exchange(_ a: Int, _ b: Int) {
        heap.swapAt(a, b)
        heap[a].timeoutIndex = a
        heap[b].timeoutIndex = b
    }
}
