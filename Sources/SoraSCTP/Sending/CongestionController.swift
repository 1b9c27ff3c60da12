import SoraWire

/// How many bytes may be in flight: slow start and fast recovery of RFC 9260, 7.2, with the growth of
/// CUBIC (RFC 9438) in congestion avoidance, so that long fat paths refill within seconds after a loss.
///
/// Invariant: the window never falls below one packet nor rises above the configured maximum.
struct CongestionController {
    private let packet: Int
    private let maximumWindow: Int
    private let minimumWindow: Int
    /// CUBIC's constants: packets per second cubed, and the share kept after a loss.
    private static let aggressiveness = 0.4
    private static let reduction = 0.7

    private(set) var window: Int
    private(set) var slowStartThreshold: Int
    /// TSN that must be acknowledged to leave fast recovery; nil outside.
    private(set) var recoveryPoint: TSN?

    private var windowBeforeLoss = 0.0
    private var epochStart: Instant?
    private var timeToPlateau = 0.0
    private var renoWindow = 0.0
    private var fraction = 0.0

    init(configuration: SCTPConfiguration) {
        packet = configuration.packetLimit
        maximumWindow = max(configuration.maximumCongestionWindow, 4 * packet)
        minimumWindow = min(max(configuration.minimumWindowPackets, 1) * packet, maximumWindow)
        window = min(max(configuration.initialWindowPackets, 1) * packet, maximumWindow)
        slowStartThreshold = maximumWindow
    }

    var isInSlowStart: Bool { window <= slowStartThreshold }
    var isInRecovery: Bool { recoveryPoint != nil }

    /// `bytes` were newly acknowledged. `flight` is what was outstanding before that.
    mutating func acknowledged(
        bytes: Int, flight: Int, cumulative: TSN, advanced: Bool, roundTrip: Duration?, now: Instant
    ) {
        if let point = recoveryPoint {
            guard cumulative - point >= 0 else { return }
            recoveryPoint = nil
            return
        }
        // A window that the sender did not fill says nothing about the path.
        guard advanced, bytes > 0, flight + packet > window else { return }
        if isInSlowStart {
            window = min(window + min(bytes, 16 * packet), maximumWindow)
            return
        }
        let size = Double(window) / Double(packet)
        if epochStart == nil {
            epochStart = now
            if windowBeforeLoss < size { windowBeforeLoss = size }
            timeToPlateau = CongestionController.cubeRoot(
                (windowBeforeLoss - size) / CongestionController.aggressiveness)
            renoWindow = size
            fraction = 0
        }
        let trip = (roundTrip ?? .milliseconds(100)).inSeconds
        let time = (now - (epochStart ?? now)).inSeconds + trip - timeToPlateau
        let cubic = windowBeforeLoss + CongestionController.aggressiveness * time * time * time
        let acked = Double(bytes) / Double(packet)
        renoWindow += 0.529 * acked / size
        let target = min(max(cubic, renoWindow), size * 1.5)
        guard target > size else { return }
        fraction += (target - size) * acked / size * Double(packet)
        let whole = Int(min(fraction, Double(bytes)))
        fraction -= Double(whole)
        window = min(window + max(whole, 0), maximumWindow)
    }

    /// Gaps show a loss. Reduces once per window in flight; `highest` is the last TSN sent.
    mutating func lossDetected(highest: TSN) {
        guard recoveryPoint == nil else { return }
        recoveryPoint = highest
        reduce()
        window = slowStartThreshold
    }

    /// The retransmission timer ran out (RFC 9260, 6.3.3). The window falls to the configured minimum, not to
    /// one packet: with a single packet in flight every loss costs another timeout, twice as long.
    mutating func timedOut() {
        reduce()
        recoveryPoint = nil
        window = min(window, minimumWindow)
    }

    /// Nothing was sent for a while: what was learnt about the path is old (RFC 9260, 7.2.1).
    mutating func idle(initialWindow: Int) {
        window = max(min(window, slowStartThreshold), min(window, initialWindow * packet))
        epochStart = nil
    }

    private mutating func reduce() {
        windowBeforeLoss = Double(window) / Double(packet)
        slowStartThreshold = max(Int(Double(window) * CongestionController.reduction), 4 * packet)
        epochStart = nil
    }

    /// Newton's method; the core has no Foundation.
    private static func cubeRoot(_ value: Double) -> Double {
        guard value > 0 else { return 0 }
        var root = max(value / 3, 1)
        for _ in 0..<40 { root -= (root * root * root - value) / (3 * root * root) }
        return root
    }
}
