/// Maps a source's extended sequence numbers to outgoing ones, closing the gaps that dropped padding would leave.
struct SequenceMap: Sendable {
    enum Action: Equatable {
        case forward(Int64)
        case drop
    }

    /// An offset and where it begins.
    private struct Step: Sendable {
        /// First source number that the offset holds for.
        var first: Int64
        /// How many numbers right before `first` were padding and dropped.
        var dropped: Int64
        var offset: Int64
    }

    private static let maximumSteps = 64
    /// Ascending; the last one is in force. What lies before the oldest one kept is too late to be forwarded.
    private var steps: [Step] = []
    private var newest: Int64 = .min

    init() {}

    init(first: Int64, offset: Int64) {
        steps = [Step(first: first, dropped: 0, offset: offset)]
        newest = first - 1
    }

    /// - Parameter mayGrow: false for a source that was left: only numbers reserved before are forwarded.
    mutating func map(_ sequence: Int64, isPadding: Bool, mayGrow: Bool) -> Action {
        guard let last = steps.last else { return .drop }
        if sequence > newest {
            guard mayGrow else { return .drop }
            newest = sequence
            guard isPadding else { return .forward(sequence + last.offset) }
            // Everything behind this packet moves up by one.
            if last.dropped > 0, last.first == sequence {
                steps[steps.count - 1] = Step(
                    first: sequence + 1, dropped: last.dropped + 1, offset: last.offset - 1)
            } else {
                steps.append(Step(first: sequence + 1, dropped: 1, offset: last.offset - 1))
                if steps.count > SequenceMap.maximumSteps { steps.removeFirst() }
            }
            return .drop
        }
        for step in steps.reversed() where step.first - step.dropped <= sequence {
            return sequence < step.first ? .drop : .forward(sequence + step.offset)
        }
        return .drop
    }
}

/// Which of the last 1,024 outgoing numbers were used.
struct ForwardedWindow: Sendable {
    private static let size: Int64 = 1024
    private var words = [UInt64](repeating: 0, count: 16)
    /// The newest number used.
    private(set) var highest: Int64

    /// - Parameter next: the first number that will be used; not below the window's size.
    init(next: Int64) { highest = next - 1 }

    /// Marks a number as used. False if it was, or is too old to tell.
    mutating func insert(_ number: Int64) -> Bool {
        guard number >= 0 else { return false }
        if number > highest {
            if number - highest >= ForwardedWindow.size {
                for index in words.indices { words[index] = 0 }
            } else {
                var between = highest + 1
                while between < number {
                    clear(between)
                    between += 1
                }
            }
            highest = number
        } else {
            if highest - number >= ForwardedWindow.size || isSet(number) { return false }
        }
        let bit = Int(number & 1023)
        words[bit >> 6] |= 1 << UInt64(bit & 63)
        return true
    }

    private func isSet(_ number: Int64) -> Bool {
        let bit = Int(number & 1023)
        return words[bit >> 6] & (1 << UInt64(bit & 63)) != 0
    }

    private mutating func clear(_ number: Int64) {
        let bit = Int(number & 1023)
        words[bit >> 6] &= ~(1 << UInt64(bit & 63))
    }
}
