/// Bytes that wait to be written, as the runs in which they came.
struct OutputQueue {
    private var runs: [[UInt8]] = []
    private var firstRun = 0
    /// Bytes of `runs[firstRun]` already written.
    private var offset = 0
    private(set) var count = 0

    var isEmpty: Bool { count == 0 }

    mutating func append(_ bytes: [UInt8]) {
        runs.append(bytes)
        count += bytes.count
    }

    /// Hands the front of the queue to `body`: small runs joined in `scratch`, a large one as it is.
    func withFront(scratch: UnsafeMutableBufferPointer<UInt8>, _ body: (UnsafeBufferPointer<UInt8>) -> Int64) -> Int64 {
        let limit = min(scratch.count, 64 * 1024)
        let first = runs[firstRun]
        if first.count - offset >= 16 * 1024 || firstRun == runs.count - 1 {
            return first.withUnsafeBufferPointer { body(UnsafeBufferPointer(rebasing: $0[offset...])) }
        }
        var filled = 0
        var start = offset
        for run in runs[firstRun...] {
            let take = min(run.count - start, limit - filled)
            _ = UnsafeMutableBufferPointer(rebasing: scratch[filled..<(filled + take)])
                .update(fromContentsOf: run[start..<(start + take)])
            filled += take
            start = 0
            if filled == limit { break }
        }
        return body(UnsafeBufferPointer(rebasing: scratch[..<filled]))
    }

    mutating func removeFirst(_ written: Int) {
        count -= written
        var left = written
        while left > 0 {
            let available = runs[firstRun].count - offset
            if left < available {
                offset += left
                return
            }
            left -= available
            runs[firstRun] = []
            firstRun += 1
            offset = 0
        }
        if firstRun == runs.count || firstRun > 64 {
            runs.removeFirst(firstRun)
            firstRun = 0
        }
    }
}
