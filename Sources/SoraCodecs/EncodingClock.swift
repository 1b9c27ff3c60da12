#if Media
/// The presentation times that a codec library is told: they begin at zero and rise strictly, whatever the clock of the
/// frames does. A source whose clock stands still or jumps back must not stop the stream.
struct EncodingClock {
    /// Nanoseconds per unit of the library's time.
    let unit: Int64
    private var origin: Int64?
    private var last: Int64 = -1

    init(unit: Duration) { self.unit = max(1, unit.components.attoseconds / 1_000_000_000) }

    /// - Parameter timestamp: when the frame was captured, in nanoseconds.
    mutating func time(of timestamp: Int64) -> Int64 {
        let origin = origin ?? timestamp
        self.origin = origin
        let (offset, overflow) = timestamp.subtractingReportingOverflow(origin)
        last = max(overflow ? 0 : offset / unit, last + 1)
        return last
    }

    /// The library was opened anew.
    mutating func restart() {
        origin = nil
        last = -1
    }
}
#endif
