/// A map from stream id to a small value, found by two array look-ups. Pages of 16 ids exist only
/// where an id is in use, so that 65,536 possible streams cost nothing.
struct StreamTable<Value> {
    private var pages: [[Value?]] = []
    private(set) var count = 0

    init() {}

    subscript(id: UInt16) -> Value? {
        @inline(__always)
        get {
            let page = Int(id >> 4)
            guard page < pages.count, !pages[page].isEmpty else { return nil }
            return pages[page][Int(id & 0xF)]
        }
        set {
            let page = Int(id >> 4)
            if page >= pages.count || pages[page].isEmpty {
                guard newValue != nil else { return }
                while pages.count <= page { pages.append([]) }
                pages[page] = [Value?](repeating: nil, count: 16)
            }
            let slot = Int(id & 0xF)
            count += (newValue == nil ? 0 : 1) - (pages[page][slot] == nil ? 0 : 1)
            pages[page][slot] = newValue
        }
    }

    /// Changes the value of `id` in place and returns what `change` returns; nil if there is none.
    @inline(__always)
    mutating func update<Result>(_ id: UInt16, _ change: (inout Value) -> Result) -> Result? {
        let page = Int(id >> 4)
        guard page < pages.count, !pages[page].isEmpty, pages[page][Int(id & 0xF)] != nil else { return nil }
        return change(&pages[page][Int(id & 0xF)]!)  // not nil: checked in the line above
    }

    /// The ids that have a value, in ascending order.
    var ids: [UInt16] {
        var result: [UInt16] = []
        for (page, values) in pages.enumerated() {
            for (slot, value) in values.enumerated() where value != nil {
                result.append(UInt16(truncatingIfNeeded: page << 4 | slot))
            }
        }
        return result
    }

    mutating func removeAll() {
        pages = []
        count = 0
    }
}
