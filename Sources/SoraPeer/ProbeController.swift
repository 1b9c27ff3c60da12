import SoraWire

/// Decides when to measure whether the path carries more than is being sent.
///
/// Feedback alone tells only that what was sent arrived: the estimate cannot grow much beyond it. So
/// short bursts of padding go out at a higher rate: at the start of media at twice and four times the
/// estimate, again at twice a measured one, and every five seconds while less is allowed than wanted.
struct ProbeController {
    /// A part of a burst that is to leave now.
    struct Slice {
        var probe: Int
        var bytes: Int
    }

    private struct Burst {
        var probe: Int
        var bytesPerSlice: Int
        var remaining: Int
        var due: Instant
    }

    private static let sliceInterval: Duration = .milliseconds(3)
    private static let slices = 6
    private static let pause: Duration = .seconds(5)

    private var bursts: [Burst] = []
    private var nextProbe = 1
    /// Bits per second that the application could use.
    private var wanted = 0
    private var estimate = 0
    private var hasStarted = false
    private var nextPeriodic: Instant?
    private var lastProbe: Instant?
    /// The estimate when the latest burst was planned; a rise above it by the burst calls for the next one.
    private var estimateAtProbe = 0

    /// Media flows, and `wanted` bits per second could be used.
    mutating func mediaIsFlowing(wanted: Int, estimate: Int, now: Instant) {
        self.wanted = wanted
        if !hasStarted {
            hasStarted = true
            self.estimate = estimate
            plan(2 * estimate, at: now)
            plan(4 * estimate, at: now + .milliseconds(40))
            nextPeriodic = now + Self.pause
        }
    }

    mutating func estimateChanged(_ estimate: Int, now: Instant) {
        let rose = estimate > estimateAtProbe * 5 / 4
        self.estimate = estimate
        guard hasStarted, rose, bursts.isEmpty, let lastProbe, now - lastProbe < .seconds(1) else { return }
        plan(2 * estimate, at: now + .milliseconds(10))
    }

    private mutating func plan(_ bitrate: Int, at due: Instant) {
        // A tenth more than wanted, so that what is measured covers it.
        let rate = min(bitrate, wanted + wanted / 10)
        guard rate > estimate + estimate / 10 else { return }
        bursts.append(
            Burst(
                probe: nextProbe, bytesPerSlice: max(rate / 8 * 3 / 1000, 300), remaining: Self.slices, due: due))
        nextProbe += 1
        lastProbe = due
        estimateAtProbe = estimate
    }

    var nextTimeout: Instant? {
        guard hasStarted else { return nil }
        let burst = bursts.lazy.map(\.due).min()
        return [burst, nextPeriodic].compactMap { $0 }.min()
    }

    /// What is to leave now.
    mutating func handleTimeout(now: Instant) -> [Slice] {
        if let due = nextPeriodic, due <= now {
            nextPeriodic = now + Self.pause
            if bursts.isEmpty { plan(2 * estimate, at: now) }
        }
        var slices: [Slice] = []
        for index in bursts.indices where bursts[index].due <= now {
            slices.append(Slice(probe: bursts[index].probe, bytes: bursts[index].bytesPerSlice))
            bursts[index].remaining -= 1
            bursts[index].due = now + Self.sliceInterval
        }
        bursts.removeAll { $0.remaining == 0 }
        return slices
    }
}
