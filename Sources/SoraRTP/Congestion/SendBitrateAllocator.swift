/// Divides a connection's bits among its streams and simulcast layers.
package enum SendBitrateAllocator {
    /// One encoding. Rates in bits per second.
    package struct Encoding: Equatable, Sendable {
        package var isActive: Bool
        /// Below this the encoding is not worth sending.
        package var minimum: Int
        /// More brings nothing.
        package var maximum: Int
        package init(isActive: Bool = true, minimum: Int, maximum: Int) {
            self.isActive = isActive
            self.minimum = max(minimum, 0)
            self.maximum = max(maximum, self.minimum)
        }
    }

    /// Gives simulcast layers, lowest first, what they need: each lower layer its maximum before the next one starts;
    /// a layer for which less than its minimum is left gets nothing, nor do those above it. The lowest active layer is
    /// always sent, with whatever there is. What is left over stays unused.
    package static func allocate(_ total: Int, to layers: [Encoding]) -> [Int] {
        var rest = max(total, 0)
        var isFirst = true
        var isOpen = true
        return layers.map { layer in
            guard layer.isActive, isOpen else { return 0 }
            guard rest >= layer.minimum || isFirst else {
                isOpen = false
                return 0
            }
            isFirst = false
            let share = min(rest, layer.maximum)
            rest -= share
            return share
        }
    }
}
