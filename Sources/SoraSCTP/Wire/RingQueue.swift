/// First in, first out, without moving elements. Empty ones own no memory.
struct RingQueue<Element> {
    private var storage: [Element?] = []
    private var head = 0
    private(set) var count = 0

    init() {}

    var isEmpty: Bool { count == 0 }

    var first: Element? { count == 0 ? nil : storage[head] }

    mutating func append(_ element: Element) {
        if count == storage.count { grow() }
        storage[(head + count) & (storage.count - 1)] = element
        count += 1
    }

    mutating func popFirst() -> Element? {
        guard count > 0 else { return nil }
        let element = storage[head].take()
        head = (head + 1) & (storage.count - 1)
        count -= 1
        if count == 0 && storage.count > 64 { removeAll() }
        return element
    }

    /// Changes the first element in place; does nothing when empty.
    @inline(__always)
    mutating func updateFirst(_ change: (inout Element) -> Void) {
        guard count > 0, storage[head] != nil else { return }
        change(&storage[head]!)  // not nil: checked in the line above
    }

    mutating func removeAll() {
        storage = []
        head = 0
        count = 0
    }

    private mutating func grow() {
        var larger = [Element?](repeating: nil, count: max(4, storage.count * 2))
        for index in 0..<count { larger[index] = storage[(head + index) & (storage.count - 1)].take() }
        storage = larger
        head = 0
    }
}
