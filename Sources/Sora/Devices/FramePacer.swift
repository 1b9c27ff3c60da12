/// Lets through at most so many pictures a second.
struct FramePacer {
    private let interval: Double
    private var last: (presentation: Int64?, arrival: Double)?

    /// - Parameter rate: pictures a second.
    init(rate: Int) { interval = 1 / Double(ScreenCaptureSettings.clamped(rate)) }

    /// Whether a picture is sent: by its presentation time, or by the time of its arrival when presentation times are
    /// missing or run backwards.
    ///
    /// - Parameters:
    ///   - presentation: nanoseconds; nil if missing.
    ///   - arrival: seconds of a clock that never goes back.
    mutating func admits(presentation: Int64?, arrival: Double) -> Bool {
        guard let last else {
            self.last = (presentation, arrival)
            return true
        }
        var elapsed = arrival - last.arrival
        if let presentation, let before = last.presentation, presentation >= before {
            elapsed = (Double(presentation) - Double(before)) / 1e9
        }
        // A camera at exactly the wanted rate must not lose frames to rounding.
        guard elapsed >= interval * 0.999 else { return false }
        self.last = (presentation, arrival)
        return true
    }
}
